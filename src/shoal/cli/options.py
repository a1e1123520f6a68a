"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="CSV, Parquet, Arrow, Excel, SPSS, Stata or SAS file, a folder of Parquet files, or - "
        "for what is piped in.",
    ),
]
PolicyFile = Annotated[
    Path, typer.Option("--policy", metavar="FILE", help="The policy, a TOML file.")
]
OriginalOrNone = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATA]",
        help="The original, to compare with anew. Without it, the report is made from the figures "
        "in the confidential folder.",
    ),
]
PolicyOrNone = Annotated[
    Path | None, typer.Option("--policy", metavar="FILE", help="The policy; needed with DATA.")
]
Delimiter = Annotated[
    str | None, typer.Option(help="Delimiter of a CSV file; by default, detected.")
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of a CSV file; by default, detected.")]
Sheet = Annotated[
    str | None, typer.Option(help="Sheet of an Excel workbook; needed where it has several.")
]
Budget = Annotated[Path | None, typer.Option(help="Budget file, instead of the policy's.")]
Source = Annotated[
    str | None, typer.Option(help="Population in the budget file, instead of the policy's.")
]
Audience = Annotated[
    str | None,
    typer.Option(
        help="Audience, instead of the policy's: public-use, scientific-use or secure-use."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Page = Annotated[Path | None, typer.Option(help="Where to write a confidential report page.")]
Passphrase = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file", metavar="FILE", help="File whose first line opens the private key."
    ),
]
ReplacePage = Annotated[bool, typer.Option("--force", help="Replace an existing report.")]
ReplaceRelease = Annotated[bool, typer.Option("--force", help="Replace an existing release.")]
ReleaseFolder = Annotated[
    Path, typer.Argument(metavar="DIR", help="The public folder of a release.")
]
BudgetFile = Annotated[Path, typer.Argument(metavar="FILE", help="The budget file.")]
Control = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="People of the same population who are not in DATA."),
]
Comparison = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="File with the JSON that `shoal compare` printed, for the report."
    ),
]


def _print_version(asked: bool) -> None:  # noqa: FBT001 (typer hands it over by position)
    if asked:
        from importlib.metadata import version

        typer.echo(f"shoal {version('shoal')}")
        raise typer.Exit


Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet",
        "-q",
        help="Print no progress and no notes: results, errors and what was done to the budget.",
    ),
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print each step to standard error, with its time.")
]
Version = Annotated[
    bool,
    typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version."),
]
