"""Arguments and options that several commands share, and a table that is piped in: `-` for a file.

A table is read more than once, and some formats from their end. So what is piped in is kept, while
the command runs, in a file that its owner alone may read. Its first bytes say what it is.
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from shoal.errors import InputError, ShoalError
from shoal.io import folders

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
HeaderRow = Annotated[
    str | None,
    typer.Option(
        metavar="ROWS",
        help="Row of the sheet that names the columns, such as 3, or rows, such as 3-4.",
    ),
]
Skip = Annotated[
    str | None,
    typer.Option(metavar="ROWS", help="Rows of the sheet that are not records, such as 105-107."),
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
FileFormat = Annotated[
    str | None,
    typer.Option(
        help="Table format: parquet, csv, xlsx, sav, dta or xpt; by default that of DATA, if it is "
        "one of these, and else parquet."
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
Evaluate = Annotated[
    bool | None,
    typer.Option(
        "--evaluate/--no-evaluate",
        help="Evaluate the release for the confidential report; the default where memory allows.",
    ),
]
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

GROUPS: dict[str, dict[str, Any]] = {
    "ReadingOptions": {
        "delimiter": Delimiter,
        "encoding": Encoding,
        "sheet": Sheet,
        "header_row": HeaderRow,
        "skip": Skip,
    },
    "BudgetOptions": {"budget": Budget, "source": Source},
    "EvaluationOptions": {"evaluate": Evaluate, "control": Control, "comparison": Comparison},
}
"""Options that several commands take together, by the noun of `pipeline.options` they make."""


def spell_out(function: Callable[..., None]) -> Callable[..., Callable[[], None]]:
    """Give a command the options of a group for a parameter that is annotated with its noun.

    The noun is named in quotes, and made when the command is called: loading it takes a second.
    The command comes back with its nouns in place, for `console.Command` to run.
    """
    groups: dict[str, str] = {}
    options: list[Parameter] = []
    for parameter in signature(function).parameters.values():
        if isinstance(parameter.annotation, str) and parameter.annotation in GROUPS:
            groups[parameter.name] = parameter.annotation
            options += [
                Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
                for name, kind in GROUPS[parameter.annotation].items()
            ]
        else:
            options.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(function)
    def prepare(**given: Any) -> Callable[[], None]:
        from shoal.pipeline import options as nouns

        for name, noun in groups.items():
            given[name] = getattr(nouns, noun)(*[given.pop(option) for option in GROUPS[noun]])
        return partial(function, **given)

    prepare.__annotations__ = {option.name: option.annotation for option in options}
    spelled = signature(function).replace(parameters=options)
    prepare.__signature__ = spelled  # type: ignore[attr-defined]
    return prepare


STDIN = Path("-")
TABLES = ("DATA", "ORIGINAL", "RELEASED")
"""Arguments that name a table."""
NAME, PREFIX = "stdin", "shoal-"
BEGINNINGS = {b"PAR1": ".parquet", b"ARROW1": ".arrow", b"\x1f\x8b": ".csv.gz",
              b"PK\x03\x04": ".xlsx", b"$FL2": ".sav", b"$FL3": ".zsav", b"<stata_dta>": ".dta",
              b"HEADER RECORD*******": ".xpt", bytes(12) + b"\xc2\xea": ".sas7bdat"}  # fmt: skip
"""How files of each format begin; anything else is CSV."""


@contextmanager
def replace_dashes(params: dict[str, Any], metavars: Mapping[str, str]) -> Iterator[None]:
    """Replace `-` among a command's tables by a temporary file."""
    asked = [name for name, shown in metavars.items()
             if shown in TABLES and params.get(name) == STDIN]  # fmt: skip
    if not asked:
        yield
        return
    if len(asked) > 1:
        raise InputError(
            "Expected - (what is piped in) for one table at most, found it twice. "
            "Name a file for the other."
        )
    with folders.temporary(PREFIX) as folder:
        path = _keep_input(folder)
        params[asked[0]] = path
        try:
            yield
        except ShoalError as error:
            error.args = (str(error).replace(str(path), str(STDIN)),)
            raise


def display_path(path: Path) -> str:
    """A path for a sentence: `-` for what was piped in."""
    folder = path.parent
    kept = folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith(PREFIX)
    return str(STDIN if kept else path)


def _keep_input(folder: Path) -> Path:
    kept = folder / NAME
    try:
        with kept.open("xb") as file:
            kept.chmod(0o600)
            shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        with kept.open("rb") as file:
            begins = file.read(32)
    except OSError as error:
        reason = (error.strerror or "unknown reason").lower()
        raise InputError(
            f"Cannot keep the table that is piped in, in the folder '{folder}': {reason}."
        ) from None
    ends = (suffix for mark, suffix in BEGINNINGS.items() if begins.startswith(mark))
    return kept.rename(kept.with_name(f"{NAME}{next(ends, '.csv')}"))
