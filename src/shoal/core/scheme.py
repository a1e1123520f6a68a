"""How a release recoded its table, so another table can be recoded the same way."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from shoal.core.confidential import Confidential
from shoal.core.policy import Policy


@dataclass(frozen=True, eq=False)
class Scheme:
    """How a release recoded its table, so another can be recoded the same way.

    Attributes:
        policy: of the release that it comes from.
        recoding: the levels, the cuts or the borders that were chosen; it cannot be printed.
        public: nothing in it was read off the table, beyond the levels that the release states.
    """

    policy: Policy = field(repr=False)
    recoding: Confidential[Mapping[str, Any]]
    public: bool

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write it as TOML for `shoal apply`; readable by you alone, unless it is public.

        Args:
            path: where to write it.
            force: replace an existing file.
        """
        # Imported by name: `core` does not depend on files.
        import_module("shoal.pipeline.scheme_files").write(self, Path(path), force=force)
