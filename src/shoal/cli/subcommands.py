"""Commands of two words: `shoal budget ...` and `shoal keys ...`."""

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli.console import door as _door
from shoal.cli.console import say as _say
from shoal.cli.options import Passphrase

budget = typer.Typer(help="Keep the privacy budget of a population.", no_args_is_help=True)
keys = typer.Typer(help="Make keys that sign releases.", no_args_is_help=True)


@budget.command("init")
def budget_init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The budget file.")],
    source: Annotated[str, typer.Option(help="The population, shared by all its extracts.")],
    epsilon: Annotated[str, typer.Option(help="What may be spent in all, such as 1 or 0.5.")],
) -> None:
    """Grant a population a privacy budget; the file is made if it is not there."""
    with _door():
        from shoal.pipeline import booking

        _say(booking.open_budget(file, source, epsilon))


@budget.command("show")
def budget_show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The budget file.")],
) -> None:
    """Show what was granted, spent and left for each population."""
    with _door():
        from shoal.pipeline import booking

        _say(booking.show_budget(file))


@keys.command("new")
def keys_new(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The private key to write.")],
    passphrase: Passphrase = None,
) -> None:
    """Make a private key, readable by you alone, and its public key FILE.pub; replace nothing."""
    with _door():
        from shoal.pipeline.verify_folder import signing

        public = signing().new_keys(file, passphrase=passphrase)
        _say(f"Private key: {file}  To give away: {public}")
