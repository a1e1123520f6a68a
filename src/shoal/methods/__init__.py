"""The registry: every method that a policy can name, one line each."""

from typing import Any

from shoal.errors import InputError, did_you_mean
from shoal.methods import individual_ranking, mdav
from shoal.methods.method import Method, Parameters, Setting

REGISTRY: dict[str, Method[Any]] = {
    method.name: method
    for method in (
        individual_ranking.METHOD,
        mdav.METHOD,
    )
}


def find(name: str) -> Method[Any]:
    """Look a method up by the name that policies use."""
    if name not in REGISTRY:
        known = ", ".join(REGISTRY)
        guess = did_you_mean(name, REGISTRY)
        raise InputError(f"No method named '{name}'.{guess} The methods are: {known}.")
    return REGISTRY[name]


__all__ = ["REGISTRY", "Method", "Parameters", "Setting", "find"]
