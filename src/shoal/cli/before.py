"""Commands for before a release: what it will promise, and what is in its table."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.console import Command, Panel, running, say, tell
from shoal.cli.options import AsJson, Audience, Data, PolicyFile, spelled_out

if TYPE_CHECKING:
    from shoal.pipeline.options import BudgetOptions, ReadingOptions

before = typer.Typer()
command = partial(before.command, cls=Command)


@command(rich_help_panel=Panel.START)
def plan(
    policy: PolicyFile,
    rows: Annotated[
        int | None, typer.Option(help="How many rows the table has, or about how many.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="The table's file; only its name is used, to say what [reading] lacks."),
    ] = None,
    audience: Audience = None,
    as_json: AsJson = False,
) -> None:
    """Say what a policy promises, how accurate a release will be and how long it takes.

    No data is read.
    """
    import json

    from shoal.pipeline import forecast, planning

    planned = planning.plan(policy, rows=rows, audience=audience, data=data)
    say(json.dumps(forecast.plan_facts(planned), indent=2) if as_json else planned)


@command(rich_help_panel=Panel.START)
@spelled_out
def inspect(
    *,
    data: Data,
    policy: PolicyFile,
    public: Annotated[
        bool,
        typer.Option(
            "--public",
            help="State that the file is public or a sample, so the inspection is not recorded.",
        ),
    ] = False,
    as_json: AsJson = False,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
) -> None:
    """Say what a policy cannot read of a table, who is rare in it, and what becomes constant.

    This inspects the table, and what it prints is confidential.
    """
    import json

    from shoal.pipeline import inspect_table

    with running() as progress:
        found = inspect_table.inspect(
            data,
            budget.stated(policy),
            public=public,
            reading=reading,
            tell=tell,
            progress=progress,
            note=data.name,
        )
    say(json.dumps(found.facts(), indent=2) if as_json else found)


@command(rich_help_panel=Panel.MORE)
def closeness(
    t: Annotated[
        float | None,
        typer.Option("--t", help="t of t-closeness with the ratio distance, at least 1."),
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Epsilon of one record, instead of t.")
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Smallest size of an equivalence class.")] = 2,
    rows: Annotated[
        int | None, typer.Option(help="Number of rows of the table; by default, any.")
    ] = None,
    columns: Annotated[int, typer.Option(help="Number of confidential columns.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Convert the t of t-closeness to epsilon and back; no data is read."""
    import json

    from shoal.report import terminal

    facts = terminal.closeness(t=t, epsilon=epsilon, k=k, rows=rows, columns=columns)
    say(json.dumps(facts) if as_json else terminal.closeness_text(facts, columns=columns))
