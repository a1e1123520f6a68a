"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="CSV, Parquet, Arrow, SPSS, Stata or SAS file.")
]
PolicyFile = Annotated[
    Path, typer.Option("--policy", metavar="FILE", help="The policy, a TOML file.")
]
Delimiter = Annotated[str | None, typer.Option(help="Of a CSV file; found out if not given.")]
Encoding = Annotated[str | None, typer.Option(help="Of a CSV file; found out if not given.")]
Budget = Annotated[Path | None, typer.Option(help="Budget file, instead of the policy's.")]
Source = Annotated[
    str | None, typer.Option(help="Population in the budget file, instead of the policy's.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Page = Annotated[Path | None, typer.Option(help="Where to write a report page, confidential.")]
Passphrase = Annotated[
    Path | None,
    typer.Option("--passphrase-file", metavar="FILE", help="Its first line opens the private key."),
]
ReplacePage = Annotated[bool, typer.Option("--force", help="Replace an existing report.")]
ReplaceRelease = Annotated[bool, typer.Option("--force", help="Replace an existing release.")]
ReleaseFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The public folder of a release.")
]
BudgetFile = Annotated[Path, typer.Argument(metavar="FILE", help="The budget file.")]
Control = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="People of the same population, not in the table."),
]
Found = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What a comparison printed as JSON, for the report."),
]


def _print_version(asked: bool) -> None:  # noqa: FBT001 (typer hands it over by position)
    if asked:
        from importlib.metadata import version

        typer.echo(f"shoal {version('shoal')}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option("--version", callback=_print_version, is_eager=True, help="Say which this is."),
]
