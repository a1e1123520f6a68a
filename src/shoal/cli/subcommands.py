"""The families of commands: `shoal budget ...` and `shoal keys ...`."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.console import Command, say
from shoal.cli.options import BudgetFile, Passphrase

budget = typer.Typer(help="Keep the privacy budget of a population.", no_args_is_help=True)
keys = typer.Typer(help="Make keys that sign releases.", no_args_is_help=True)


@budget.command("init", cls=Command)
def budget_init(
    file: BudgetFile,
    source: Annotated[str, typer.Option(help="The population, shared by all its extracts.")],
    epsilon: Annotated[str, typer.Option(help="What may be spent in all, such as 1 or 0.5.")],
) -> None:
    """Grant a population a privacy budget; the file is made if it is not there."""
    from shoal.pipeline import booking

    say(booking.open_budget(file, source, epsilon))


@budget.command("show", cls=Command)
def budget_show(file: BudgetFile) -> None:
    """Show what was granted, spent and left for each population."""
    from shoal.pipeline import booking

    say(booking.show_budget(file))


@keys.command("new", cls=Command)
def keys_new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The private key to write.")],
    passphrase: Passphrase = None,
) -> None:
    """Make a private key, readable by you alone, and its public key FILE.pub; replace nothing."""
    from shoal.pipeline.verify_folder import signing

    public = signing().new_keys(file, passphrase=passphrase)
    say(f"Private key: {file}  To give away: {public}")
