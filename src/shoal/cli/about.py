"""Commands about Shoal itself: its methods, its schemas, its kernels."""

from functools import partial
from typing import Annotated

import typer

from shoal.cli.console import Command, Panel, say, showing_progress
from shoal.cli.options import AsJson
from shoal.errors import ClaimViolationError, InputError

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
    """List every method in one line, or one with its parameters, promises and reference."""
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
    from shoal.io.warmup import warmup as files
    from shoal.metrics.warmup import warmup as measures
    from shoal.partition import warmup as partition
    from shoal.synthesis.warmup import warmup as mechanism

    with showing_progress() as progress:
        rooms = (partition, mechanism, measures, files)
        for done, compile_room in enumerate(rooms):
            progress("compiling kernels", done, len(rooms))
            compile_room()
    say("The kernels are compiled.")
