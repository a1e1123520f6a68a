"""The command `shoal closeness`: t-closeness in terms of epsilon, and back."""

from typing import Annotated

import typer

from shoal.cli.console import say
from shoal.cli.options import AsJson


def closeness(
    t: Annotated[
        float | None, typer.Option("--t", help="t of the ratio distance, at least 1.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Epsilon of one record, instead of t.")
    ] = None,
    k: Annotated[int, typer.Option("--k", help="Smallest size of a class.")] = 2,
    rows: Annotated[
        int | None, typer.Option(help="Rows of the table; by default, any number.")
    ] = None,
    columns: Annotated[int, typer.Option(help="Number of confidential columns.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Convert the t of t-closeness to epsilon and back; no data is read."""
    import json

    from shoal.report import terminal

    facts = terminal.closeness(t=t, epsilon=epsilon, k=k, rows=rows, columns=columns)
    say(json.dumps(facts) if as_json else terminal.closeness_text(facts, columns=columns))
