"""The two exits of a confidential value. An import contract lists who may use them."""

from operator import attrgetter
from pathlib import Path
from typing import TypeVar

from shoal.core.confidential import Confidential

T = TypeVar("T")
_content = attrgetter("_Confidential__held")


def for_method(secret: Confidential[T]) -> T:
    """Open a confidential value for a method, whose claims say what its result reveals.

    For an epsilon release this is the noise: the result is a function of noisy answers, of the
    policy and of declared public facts. `tests/test_boundary.py` checks this for every method.
    """
    content: T = _content(secret)
    return content


def for_folder(secret: Confidential[T], folder: Path) -> T:
    """Open a confidential value for a confidential folder, which only its owner may read."""
    if folder.stat().st_mode & 0o077:
        raise PermissionError("Only its owner may have access to a confidential folder.")
    content: T = _content(secret)
    return content
