"""`shoal analyse`: estimates with intervals, from a public folder alone."""

from functools import partial
from typing import Annotated

import typer

from shoal.cli.console import Command, Panel, say
from shoal.cli.options import AsJson, ReleaseFolder

analyses = typer.Typer()
command = partial(analyses.command, cls=Command)


@command(rich_help_panel=Panel.SHARE)
def analyse(
    folder: ReleaseFolder,
    statistic: Annotated[
        str | None,
        typer.Argument(
            metavar="[STATISTIC]",
            help="mean, total, proportion, quantile, crosstab, ols or logit; without it, every "
            "column at a glance.",
        ),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OF]...",
            help="A column (mean, total, quantile), a column and a category (proportion), two "
            "columns (crosstab), or a model such as 'income ~ age + hours' (ols, logit).",
        ),
    ] = None,
    at: Annotated[float, typer.Option(help="Which quantile; 0.5 is the median.")] = 0.5,
    category: Annotated[
        str | None, typer.Option(help="Category of the outcome of logit; by default its last.")
    ] = None,
    population: Annotated[
        float | None, typer.Option(help="Number of people in the population, for a total.")
    ] = None,
    estimand: Annotated[
        str,
        typer.Option(
            metavar="population|table",
            help="Whether intervals are about the population that the table was drawn from, or "
            "about the confidential table itself.",
        ),
    ] = "population",
    confidence: Annotated[float, typer.Option(help="Confidence of each interval.")] = 0.95,
    as_json: AsJson = False,
) -> None:
    """Estimate from a public folder, with intervals that account for the protection."""
    import json

    from shoal import analysis
    from shoal.core.serialise import plain

    result = analysis.analyse(
        folder,
        statistic,
        of or (),
        at=at,
        category=category,
        population_size=population,
        estimand=estimand,
        confidence=confidence,
    )
    say(json.dumps(plain(result.as_dict()), indent=2, allow_nan=False) if as_json else repr(result))
