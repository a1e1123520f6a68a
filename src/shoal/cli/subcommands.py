"""The families of commands: `shoal budget ...` and `shoal keys ...`."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.console import Command, Group, say
from shoal.cli.options import AsJson, BudgetFile, Passphrase

budget = typer.Typer(
    cls=Group, help="Grant and show the privacy budgets of populations.", no_args_is_help=True
)
keys = typer.Typer(cls=Group, help="Make keys for signing releases.", no_args_is_help=True)


@budget.command("init", cls=Command)
def budget_init(
    file: BudgetFile,
    source: Annotated[
        str, typer.Option(help="Name of the population, shared by all its extracts.")
    ],
    epsilon: Annotated[
        str, typer.Option(help="Epsilon that may be spent in total, such as 1 or 0.5.")
    ],
    delta: Annotated[
        str | None,
        typer.Option(
            help="Delta at which it is counted, such as 1e-9, for releases in rho; none is pure."
        ),
    ] = None,
) -> None:
    """Grant a population a privacy budget; create the file if there is none."""
    from shoal.pipeline import booking

    say(booking.open_budget(file, source, epsilon, delta))


@budget.command("show", cls=Command)
def budget_show(file: BudgetFile, as_json: AsJson = False) -> None:
    """Show the epsilon granted, spent and left for each population."""
    import json

    from shoal.pipeline import booking

    if as_json:
        say(json.dumps(booking.budget_facts(file), indent=2))
        return
    say(booking.show_budget(file))


@keys.command("new", cls=Command)
def keys_new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the private key.")],
    passphrase: Passphrase = None,
) -> None:
    """Make a private key, readable by you alone, and its public key FILE.pub; replace neither."""
    from shoal.publish.verify_folder import signing

    public = signing().new_keys(file, passphrase=passphrase)
    say(f"Private key: {file}  Public key, to give away: {public}")
