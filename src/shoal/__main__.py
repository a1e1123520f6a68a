"""Run the command line, as `shoal` and as `python -m shoal`.

Until a command runs there is nothing to clean up, so an interrupt ends the process by the signal
itself: Python would show a traceback of whatever is being imported.

Linear algebra has one thread. Its matrices are small, its threads wait for each other by spinning,
and on a busy machine that took six times the CPU (bench/RESULTS.md). Whoever sets the variable
decides.

Warnings of libraries are not shown: they are about our code, and may follow the data. Whoever asks
Python for them (-W) gets them.
"""

import os
import signal
import sys
import warnings


def main() -> None:
    """Import the command line, and start it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if not sys.warnoptions:
        warnings.simplefilter("ignore")
        os.environ["PYTHONWARNINGS"] = "ignore"  # for the processes that this one starts
    from shoal.cli.commands import main as start  # noqa: PLC0415 (not before the line above)

    start()


if __name__ == "__main__":
    main()
