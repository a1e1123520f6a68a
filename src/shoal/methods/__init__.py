"""The registry: every method that a policy can name, one line each."""

from typing import Any

from shoal.errors import InputError, did_you_mean
from shoal.methods import (
    auto,
    bucketization,
    copula,
    dp_kdtree,
    dp_quadtree,
    individual_ranking,
    insensitive,
    insensitive_laplace,
    ir_laplace,
    ir_mdav_laplace,
    kanon_dp,
    laplace,
    maxent,
    mdav,
    mdav_laplace,
    mondrian,
    mu_approx,
    optimal_univariate,
    pram,
    privtree,
    public_laplace,
    stable,
    stable_laplace,
    vmdav,
)
from shoal.methods.method import Masked, Method, Parameters, Setting, Tools

REGISTRY: dict[str, Method[Any]] = {
    method.name: method
    for method in (
        individual_ranking.METHOD,
        optimal_univariate.METHOD,
        mdav.METHOD,
        vmdav.METHOD,
        mu_approx.METHOD,
        mondrian.METHOD,
        bucketization.METHOD,
        insensitive.METHOD,
        stable.METHOD,
        laplace.METHOD,
        ir_laplace.METHOD,
        mdav_laplace.METHOD,
        ir_mdav_laplace.METHOD,
        insensitive_laplace.METHOD,
        stable_laplace.METHOD,
        public_laplace.METHOD,
        dp_kdtree.METHOD,
        dp_quadtree.METHOD,
        kanon_dp.METHOD,
        pram.METHOD,
        privtree.METHOD,
        copula.METHOD,
        maxent.METHOD,
        auto.METHOD,
    )
}


def find(name: str) -> Method[Any]:
    """Look a method up by the name that policies use."""
    if name not in REGISTRY:
        known = ", ".join(REGISTRY)
        guess = did_you_mean(name, REGISTRY)
        raise InputError(f"No method named '{name}'.{guess} The methods are: {known}.")
    return REGISTRY[name]


__all__ = ["REGISTRY", "Masked", "Method", "Parameters", "Setting", "Tools", "find"]
