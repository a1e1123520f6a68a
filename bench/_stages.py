"""Where the CPU seconds of a run go, for benchmarks of whole releases."""

import time


class Stages:
    """CPU seconds by stage, as progress reports them."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._stage, self._since = "planning", time.process_time()

    def __call__(self, stage: str, _done: int, _total: int) -> None:
        """Close a stage and begin another."""
        now = time.process_time()
        self.spent[self._stage] = self.spent.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
