"""The registry of Shoal's methods, one file each; `external` finds those of other packages."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from shoal.errors import InputError, did_you_mean
from shoal.methods.external import external_names, load_external
from shoal.methods.method import Alternatives, Masked, Method, Parameters, Setting, Tools
from shoal.methods.papers import explain_name

if TYPE_CHECKING:
    from shoal.mechanism.microaggregate_noise import noise_on_groups

TITLES = {
    "local-suppression": "Rare cells left blank (local suppression)",
    "full-domain": "Coarser categories for everybody (full-domain generalisation)",
    "mondrian": "Groups by cuts at medians (Mondrian)",
    "mdav": "Groups of similar people (MDAV)",
    "auto": "Synthetic rows, the model chosen for you (auto)",
    "individual-ranking": "Blocks of similar values, column by column (individual ranking)",
    "optimal-univariate": "Blocks of similar values with optimal cuts (Hansen and Mukherjee)",
    "vmdav": "Groups of similar people, larger where people are alike (V-MDAV)",
    "mu-approx": "Groups of similar people along nearest neighbours (mu-Approx)",
    "bucketization": "Groups alike in their confidential values (bucketization)",
    "insensitive": "Groups of neighbours in a public order (insensitive microaggregation)",
    "stable": "Groups of similar people (stable microaggregation of one table, which is MDAV)",
    "laplace": "Noise on every cell (Laplace)",
    "ir-laplace": "Noise on blocks of similar values, column by column (individual ranking)",
    "mdav-laplace": "Noise on groups of similar people (MDAV)",
    "ir-mdav-laplace": "Noise on groups of similar values, column by column (MDAV)",
    "insensitive-laplace": "Noise on groups in a public order (insensitive MDAV)",
    "stable-laplace": "Noise on groups of similar people, for two changed groups (S-MDAV)",
    "public-laplace": "Noise on groups by public columns (Laplace)",
    "dp-kdtree": "Synthetic rows from boxes cut at private medians (k-d tree)",
    "dp-quadtree": "Synthetic rows from boxes cut in halves (quadtree)",
    "kanon-dp": "Groups of similar people, noise on confidential cells (k-anonymity and epsilon)",
    "pram": "Groups of similar people, confidential categories redrawn (PRAM)",
    "privtree": "Synthetic rows from boxes that follow the crowd (PrivTree)",
    "copula": "Synthetic rows from columns and their correlations (copula)",
    "maxent": "Synthetic rows from noisy counts (maximum entropy)",
    "record-swapping": "Households that trade places (targeted record swapping)",
}
"""Every method by its name in a policy, with what people call it. With an underscore for each
hyphen, the name is that of the method's file. Those to start with come first."""
NAMES = tuple(TITLES)
TO_START_WITH = NAMES[:5]
"""Methods for a table of one's own; the others are there to repeat what is published, and to
compare."""


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
    """Look up a method by its name in policies: one of ours, or of another package."""
    if name in NAMES:
        return REGISTRY[name]
    method = load_external(name)
    if method is None:
        known = (*NAMES, *external_names())
        if named := explain_name(name):
            raise InputError(f"No method has the name '{name}' in a policy.{named}")
        guess = did_you_mean(name, known)
        raise InputError(f"No method named '{name}'.{guess} The methods are: {', '.join(known)}.")
    return method


def title_of(name: str) -> str:
    """Return a method's title; for another package's method, its name."""
    return TITLES.get(name, name)


def __getattr__(name: str) -> Any:
    """Load lazily what methods use and others may call directly."""
    if name == "noise_on_groups":
        return import_module("shoal.mechanism.microaggregate_noise").noise_on_groups
    raise AttributeError(f"module 'shoal.methods' has no attribute '{name}'")


__all__ = [
    "REGISTRY",
    "Alternatives",
    "Masked",
    "Method",
    "Parameters",
    "Setting",
    "Tools",
    "find",
    "noise_on_groups",
    "title_of",
]
