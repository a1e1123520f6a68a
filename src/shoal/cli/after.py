"""Commands after a release: analyse it, and recode another table as it was recoded."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.console import Command, Panel, running, say, say_published
from shoal.cli.options import (
    AsJson,
    Audience,
    Data,
    FileFormat,
    ReleaseFolder,
    ReplaceRelease,
    spell_out,
)

if TYPE_CHECKING:
    from shoal.pipeline.options import ReadingOptions

after = typer.Typer()
command = partial(after.command, cls=Command)


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


@command(rich_help_panel=Panel.PROTECT)
@spell_out
def apply(
    *,
    scheme: Annotated[
        Path, typer.Argument(metavar="SCHEME", help="The scheme.toml of an earlier release.")
    ],
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder for what may be published.")],
    policy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A policy that recodes the same way and may ask for another k."
        ),
    ] = None,
    previous: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="The earlier release; by default, the folder beside the scheme's."
        ),
    ] = None,
    record_suppression: Annotated[
        float | None,
        typer.Option(help="Largest share of the rows that may be left out, such as 0.01."),
    ] = None,
    coarsen: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Release a column one level higher than the scheme."),
    ] = None,
    file_format: FileFormat = None,
    force: ReplaceRelease = False,
    audience: Audience = None,
    measured: Annotated[
        bool | None,
        typer.Option("--evaluate/--no-evaluate", help="Evaluate the release; see `protect`."),
    ] = None,
    reading: "ReadingOptions",
    as_json: AsJson = False,
) -> None:
    """Recode another table as an earlier release was recoded, and check every promise again."""
    from shoal.pipeline import options
    from shoal.publish import apply_scheme

    with running() as progress:
        published = apply_scheme.apply_file(
            scheme,
            data,
            out,
            policy=policy,
            previous=previous,
            record_suppression=record_suppression,
            coarsen=coarsen or (),
            reading=reading,
            output=options.OutputOptions(file_format, force, audience=audience),
            evaluation=options.EvaluationOptions(measured),
            progress=progress,
        )
    say_published(published, as_json=as_json)
