"""Commands about Shoal itself: its methods, its schemas, its kernels."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.console import Command, Panel, running, say, showing_progress, tell
from shoal.cli.options import AsJson, spell_out
from shoal.errors import ClaimViolationError, InputError

if TYPE_CHECKING:
    from shoal.pipeline.options import BudgetOptions, ReadingOptions

about = typer.Typer()
command = partial(about.command, cls=Command)


@command(rich_help_panel=Panel.START)
def methods(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One method, with all it says of claims.")
    ] = None,
    as_json: AsJson = False,
    test: Annotated[
        bool,
        typer.Option("--test", help="Run the contract of methods; exit 3 if it fails."),
    ] = False,
) -> None:
    """List every method in one line, or one with its parameters, promises and reference.

    A method may be named as one of the five papers names it, such as S-MDAV.
    """
    import json

    from shoal.report import terminal

    if test:
        if name is None:
            raise InputError("--test takes a method, as in `shoal methods mdav --test`.")
        from shoal.testing import check_method

        results = check_method(name)
        say("\n".join(map(str, results)))
        if not all(result.holds for result in results):
            raise ClaimViolationError(f"The method '{name}' does not meet the contract of methods.")
        return

    if as_json:
        say(json.dumps(terminal.methods_facts(name), indent=2))
        return
    say(terminal.methods_text() if name is None else terminal.method_text(name))


@command(rich_help_panel=Panel.MORE)
@spell_out
def papers(
    key: Annotated[
        str | None, typer.Argument(metavar="KEY", help="One paper, such as soriacomas2017.")
    ] = None,
    *,
    data: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Table to repeat a figure of the paper on.")
    ] = None,
    policy: Annotated[
        Path | None,
        typer.Option(help="Policy of DATA; else bounds and categories are read off it."),
    ] = None,
    confidential: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="The confidential column.")
    ] = None,
    repeats: Annotated[int, typer.Option(help="Number of releases per point with noise.")] = 3,
    seed: Annotated[int, typer.Option(help="Seed of the sample of more than 20,000 rows.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Confidential SVG file to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    as_json: AsJson = False,
    reading: "ReadingOptions",
    budget: "BudgetOptions",
) -> None:
    """List the five papers, describe one, or repeat a figure of it on a table.

    Repeating a figure inspects the table, and what it prints is confidential.
    """
    import json

    from shoal.report.papers import describe_paper, list_papers, list_papers_as_facts

    if key is None or data is None:
        if data is not None:
            raise InputError(
                "Which paper's figure? Name one, as in `shoal papers soriacomas2017 --data FILE`."
            )
        if as_json:
            say(json.dumps(list_papers_as_facts(key), indent=2, ensure_ascii=False))
        else:
            say(list_papers() if key is None else describe_paper(key))
        return
    from shoal.publish import evaluate_files

    with running() as progress:
        figure = evaluate_files.repeat_figure(
            key, data, policy, out, force=force, confidential=confidential, runs=repeats,
            seed=seed, reading=reading, budget=budget, tell=tell, progress=progress,
        )  # fmt: skip
    say(json.dumps(figure.facts(), indent=2) if as_json else figure)


@command(rich_help_panel=Panel.MORE)
def cite(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A method or a paper; by default all five.")
    ] = None,
) -> None:
    """Print Shoal and the five papers, or those of one method, for BibTeX."""
    from shoal.report.papers import write_bibliography

    say(write_bibliography(name))


@command(rich_help_panel=Panel.MORE)
def schema(
    of_manifest: Annotated[
        bool, typer.Option("--manifest", help="The schema of manifest.json instead.")
    ] = False,
) -> None:
    """Print a JSON schema of the policy file, for editors."""
    import json

    from shoal import policy
    from shoal.core import manifest

    room = manifest if of_manifest else policy
    say(json.dumps(room.json_schema(), indent=2))


@command(rich_help_panel=Panel.MORE)
def warmup() -> None:
    """Compile all kernels once on this machine, so no later run has to wait."""
    from shoal.cli.warmup import compile_metrics, compile_synthesis
    from shoal.partition import warmup as compile_groupings

    with showing_progress() as progress:
        rooms = (compile_groupings, compile_synthesis, compile_metrics)
        for done, compile_room in enumerate(rooms):
            progress("compiling kernels", done, len(rooms))
            compile_room()
    say("The kernels are compiled.")
