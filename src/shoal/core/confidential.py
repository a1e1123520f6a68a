"""A type for secrets: the original, and what was computed from it without noise."""

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar, final

T = TypeVar("T")
U = TypeVar("U")


@final
class Confidential(Generic[T]):
    """A value that only a method and the confidential folder can open.

    The two ways out are the functions of `shoal.core.exits`.

    It can be passed on and computed with (`map`), but not printed, compared, counted, iterated over
    or pickled. Code that makes the public folder, the returned object, the notes and the exit code
    of a release may hold one but cannot read it.

    >>> age = Confidential(43)
    >>> age, age.map(lambda years: years + 1)
    (<confidential>, <confidential>)
    >>> age == 43
    Traceback (most recent call last):
    TypeError: A confidential value has no content outside the noise and the confidential folder.
    """

    __slots__ = ("__held",)

    def __init__(self, held: T) -> None:
        self.__held = held

    def map(self, function: Callable[[T], U]) -> "Confidential[U]":
        """Apply a function to it; the result is confidential too."""
        return Confidential(function(self.__held))

    def __repr__(self) -> str:
        return "<confidential>"

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            "A confidential value has no content outside the noise and the confidential folder."
        )

    __bool__ = __eq__ = __hash__ = __len__ = __iter__ = __reduce_ex__ = _refuse
