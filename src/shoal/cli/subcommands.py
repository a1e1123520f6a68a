"""The families of commands: `shoal hierarchy ...`, `shoal budget ...` and `shoal keys ...`.

A hierarchy is the CSV file that a policy's `hierarchy` names.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.console import Command, Group, say
from shoal.cli.options import AsJson, BudgetFile, Passphrase, spell_out

if TYPE_CHECKING:
    import polars as pl

    from shoal.core import Hierarchy
    from shoal.pipeline.options import ReadingOptions

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


hierarchy = typer.Typer(
    cls=Group,
    help="Build the hierarchy of a column, so nobody writes it by hand.",
    no_args_is_help=True,
)

Out = Annotated[Path, typer.Option(metavar="FILE", help="CSV file to write.")]
Replace = Annotated[bool, typer.Option("--force", help="Replace an existing file.")]
Root = Annotated[str, typer.Option(help="Label of the last level, which covers all.")]
Step = Annotated[str, typer.Option(help="Distance of two numbers of the column.")]
Values = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Text file with all values that can occur, one per line."),
]
DataFile = Annotated[
    Path | None,
    typer.Option("--data", metavar="DATA", help="Read the values off this table; marked as such."),
]
ColumnName = Annotated[str | None, typer.Option(help="Column of the table, beside --data.")]


@hierarchy.command("intervals", cls=Command)
def of_intervals(
    low: Annotated[str, typer.Option(help="Least number that can occur, publicly known.")],
    high: Annotated[str, typer.Option(help="Largest number that can occur.")],
    widths: Annotated[
        str, typer.Option(help="Widths level by level, such as 5,10,20; each a multiple.")
    ],
    out: Out,
    step: Step = "1",
    root: Root = "*",
    force: Replace = False,
) -> None:
    """Build intervals of equal width with readable ends, such as 0-4 and 5-9."""
    from shoal import hierarchy as build

    _write(build.intervals(low, high, _split_list(widths), step=step, root=root), out, force=force)


@hierarchy.command("quantiles", cls=Command)
@spell_out
def of_quantiles(
    *,
    out: Out,
    ends: Annotated[
        str | None, typer.Option(help="Public ends of the intervals, such as 0,18,40,65,120.")
    ] = None,
    groups: Annotated[
        int, typer.Option(help="Beside --data: intervals that hold nearly equally many rows.")
    ] = 8,
    join: Annotated[int, typer.Option(help="Neighbours that each further level joins.")] = 2,
    step: Step = "1",
    root: Root = "*",
    data: DataFile = None,
    column: ColumnName = None,
    reading: "ReadingOptions",
    force: Replace = False,
) -> None:
    """Build intervals of equal frequency: between stated ends, or by quantiles of a table."""
    from shoal import hierarchy as build
    from shoal.errors import InputError

    if (ends is None) is (data is None):
        raise InputError("Expected either --ends, or --data and --column.")
    if ends is not None:
        made = build.quantiles(_split_list(ends), step=step, join=join, root=root)
    else:
        import polars as pl

        numbers = _cells(data, column, reading).cast(pl.Float64, strict=False)
        made = build.quantiles_of(
            numbers.drop_nulls().to_numpy(), groups, step=step, join=join, root=root
        )
    _write(made, out, force=force)


@hierarchy.command("dates", cls=Command)
def of_dates(
    first: Annotated[str, typer.Option(help="First day that can occur, such as 1920-01-01.")],
    last: Annotated[str, typer.Option(help="Last day that can occur.")],
    out: Out,
    levels: Annotated[
        str, typer.Option(help="Among week, or month, quarter, year and decade.")
    ] = "month,year,decade",
    root: Root = "*",
    force: Replace = False,
) -> None:
    """Join days into weeks, or into months, quarters, years and decades."""
    from shoal import hierarchy as build
    from shoal.hierarchy.files import read_day

    made = build.dates(read_day(first), read_day(last), _split_list(levels), root=root)
    _write(made, out, force=force)


@hierarchy.command("codes", cls=Command)
@spell_out
def of_codes(
    *,
    out: Out,
    scheme: Annotated[
        str | None, typer.Option(help="Published classification: icd-10, nace or isco.")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(help="Instead: lengths of prefixes, level by level, such as 3,2."),
    ] = None,
    values: Values = None,
    data: DataFile = None,
    column: ColumnName = None,
    root: Root = "*",
    reading: "ReadingOptions",
    force: Replace = False,
) -> None:
    """Group codes by their prefixes or by a published classification."""
    from shoal import hierarchy as build
    from shoal.errors import InputError
    from shoal.hierarchy.files import read_integers

    if (scheme is None) is (lengths is None):
        raise InputError("Expected either --scheme or --lengths.")
    given, observed = _read_values(values, data, column, reading)
    if scheme is not None:
        made = build.codes(given, scheme, root=root, observed=observed)
    else:
        each = read_integers(_split_list(str(lengths)))
        made = build.prefixes(given, each, root=root, observed=observed)
    _write(made, out, force=force)


@hierarchy.command("mask", cls=Command)
@spell_out
def of_masks(
    *,
    out: Out,
    side: Annotated[str, typer.Option(help="From which end: right or left.")] = "right",
    by: Annotated[int, typer.Option(help="Characters that each level masks.")] = 1,
    values: Values = None,
    data: DataFile = None,
    column: ColumnName = None,
    root: Root = "*",
    reading: "ReadingOptions",
    force: Replace = False,
) -> None:
    """Mask codes by stars from one end, more of them with each level."""
    from shoal import hierarchy as build

    given, observed = _read_values(values, data, column, reading)
    _write(
        build.mask_codes(given, side=side, by=by, root=root, observed=observed), out, force=force
    )


@hierarchy.command("ordered", cls=Command)
def of_ordered(
    out: Out,
    values: Annotated[
        Path, typer.Option(metavar="FILE", help="Text file with all categories in their order.")
    ],
    join: Annotated[int, typer.Option(help="Neighbours that each level joins.")] = 2,
    root: Root = "*",
    force: Replace = False,
) -> None:
    """Join neighbours of ordered categories."""
    from shoal import hierarchy as build

    _write(build.join_ordered(_public(values), join=join, root=root), out, force=force)


@hierarchy.command("mapping", cls=Command)
def of_mapping(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV file: a value and its parent in each row.")
    ],
    out: Out,
    root: Annotated[
        str | None, typer.Option(help="Label above the uppermost ones, if they are several.")
    ] = None,
    force: Replace = False,
) -> None:
    """Build a hierarchy from the parent of each value."""
    from shoal import hierarchy as build
    from shoal.hierarchy.files import read_parents
    from shoal.io import text_files

    parents = read_parents(text_files.read_bytes(file, f"'{file}'"), f"'{file}'")
    _write(build.mapping(parents, root=root), out, force=force)


@hierarchy.command("check", cls=Command)
def check_hierarchy(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Hierarchy as CSV, for example from ARX.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check that a file is a tree with nested levels, as ARX writes them."""
    import json

    from shoal import hierarchy as build

    made = build.read(file)
    facts = {"file": str(file), "leaves": len(made.paths), "levels": len(made.levels())}
    say(json.dumps(facts) if as_json else f"{file}: {_size(made)}.")


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _read_values(
    values: Path | None, data: Path | None, column: str | None, reading: "ReadingOptions"
) -> tuple[list[str], bool]:
    """Read values from a public list or a table; also return whether they were observed."""
    from shoal.errors import InputError
    from shoal.io import validate
    from shoal.io.cells import compose

    if (values is None) is (data is None):
        raise InputError("Expected either --values, or --data and --column.")
    if values is not None:
        return _public(values), False
    cells = validate.as_text(_cells(data, column, reading))
    return compose(cells).drop_nulls().unique().to_list(), True


def _public(values: Path) -> list[str]:
    """The lines of a public list."""
    from shoal.io import text_files

    text = text_files.read_text(values, f"'{values}'")
    return [line.strip() for line in text.splitlines() if line.strip()]


def _cells(data: Path | None, column: str | None, reading: "ReadingOptions") -> "pl.Series":
    """A column of a table, as it came."""
    from shoal import io
    from shoal.errors import InputError, did_you_mean

    if data is None or column is None:
        raise InputError("Expected --data and --column together.")
    frame = io.read(data, **vars(reading)).frame
    if column not in frame.columns:
        raise InputError(f"No column named '{column}'.{did_you_mean(column, frame.columns)}")
    return frame[column]


def _size(made: "Hierarchy") -> str:
    from shoal.errors import count_noun

    leaves = count_noun(len(made.paths), "leaf", "leaves")
    return f"{leaves}, {count_noun(len(made.levels()), 'level')}"


def _write(made: "Hierarchy", out: Path, *, force: bool) -> None:
    from shoal import hierarchy as build

    keys = build.write(made, out, force=force)
    mark = ", observed = true" if made.observed else ""
    say(f"Wrote {out}: {_size(made)}. In the policy: "
        f'hierarchy = "{keys["hierarchy"]}"{mark}')  # fmt: skip
    if made.observed:
        say("It was read off the data: with it, a claim of differential privacy is conditional.")
