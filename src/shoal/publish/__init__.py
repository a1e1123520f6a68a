"""Run, render and write: from files to folders.

`DIR` holds only what may be published; `DIR.internal` holds what compares the release with
the original. They are two transactions. The public folder is written whole and put in place, and
the budget's entry is settled; then, separately, the original is compared with it. That step may
fail, and be repeated (`report`), without touching the release.
"""

from shoal.folders import INTERNAL_SUFFIX, check_text, prepare, write_text
from shoal.public import EXTRAS
from shoal.publish.comparing import KEPT, compare, measure, select
from shoal.publish.finishing import finish, report
from shoal.publish.protecting import ENGINES, Published, protect

__all__ = [
    "ENGINES",
    "EXTRAS",
    "INTERNAL_SUFFIX",
    "KEPT",
    "Published",
    "check_text",
    "compare",
    "finish",
    "measure",
    "prepare",
    "protect",
    "report",
    "select",
    "write_text",
]
