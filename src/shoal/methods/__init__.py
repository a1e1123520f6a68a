"""The registry: every method that a policy can name, one file each."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, did_you_mean
from shoal.methods.method import Masked, Method, Parameters, Setting, Tools

if TYPE_CHECKING:
    from shoal.mechanism.microaggregate_noise import noise_on_groups

NAMES = (
    "individual-ranking",
    "optimal-univariate",
    "mdav",
    "vmdav",
    "mu-approx",
    "mondrian",
    "full-domain",
    "bucketization",
    "insensitive",
    "stable",
    "laplace",
    "ir-laplace",
    "mdav-laplace",
    "ir-mdav-laplace",
    "insensitive-laplace",
    "stable-laplace",
    "public-laplace",
    "dp-kdtree",
    "dp-quadtree",
    "kanon-dp",
    "pram",
    "privtree",
    "copula",
    "maxent",
    "auto",
)
"""As written in a policy; with an underscore for each hyphen, the name of the method's file."""


class _Registry(Mapping[str, Method[Any]]):
    """Methods by name. A method's file, with its kernels, is loaded on first use."""

    def __getitem__(self, name: str) -> Method[Any]:
        if name not in NAMES:
            raise KeyError(name)
        method: Method[Any] = import_module(f"{__name__}.{name.replace('-', '_')}").METHOD
        return method

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


REGISTRY = _Registry()


def find(name: str) -> Method[Any]:
    """Look a method up by the name that policies use."""
    if name not in NAMES:
        known = ", ".join(NAMES)
        guess = did_you_mean(name, NAMES)
        raise InputError(f"No method named '{name}'.{guess} The methods are: {known}.")
    return REGISTRY[name]


def __getattr__(name: str) -> Any:
    """Load on first use what methods use and others may call directly."""
    if name == "noise_on_groups":
        return import_module("shoal.mechanism.microaggregate_noise").noise_on_groups
    raise AttributeError(f"module 'shoal.methods' has no attribute '{name}'")


__all__ = [
    "REGISTRY",
    "Masked",
    "Method",
    "Parameters",
    "Setting",
    "Tools",
    "find",
    "noise_on_groups",
]
