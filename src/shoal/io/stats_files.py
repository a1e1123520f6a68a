"""SPSS, Stata and SAS files, with their labels, through pyreadstat."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import polars as pl

from shoal.errors import InputError
from shoal.io.raw import Raw

STATS = {".sav": "read_sav", ".zsav": "read_sav", ".por": "read_por", ".dta": "read_dta",
         ".sas7bdat": "read_sas7bdat", ".xpt": "read_xport"}  # fmt: skip
STATS_NAMES = {"sav": r"[^\W\d_][\w.$#@]{0,63}", "dta": r"[^\W\d]\w{0,31}"}
"""Which column names SPSS and Stata take."""
STATS_LABEL = {"sav": 255, "dta": 80}
"""How long the label of a column may be there."""
MEASURES = ("nominal", "ordinal", "scale")
"""How a column is measured, in the words of SPSS."""


def _library() -> Any:
    try:
        import pyreadstat  # noqa: PLC0415 (optional)
    except ImportError:
        raise InputError(
            "SPSS, Stata and SAS files need the extra 'stats': pip install 'shoal[stats]'."
        ) from None
    return pyreadstat


def read_stats(path: Path, suffix: str) -> Raw:
    """Read a file with the labels and the measures of its columns."""
    library = _library()
    try:
        frame, meta = getattr(library, STATS[suffix])(str(path), output_format="polars")
    except (library.ReadstatError, library.PyreadstatError, LookupError, TypeError, ValueError):
        raise InputError(
            f"Cannot read '{path}': the file is damaged or of another format."
        ) from None
    # These formats have no missing text but the empty one.
    frame = frame.with_columns(pl.col(pl.String).replace("", None))
    columns = {name: label for name, label in meta.column_names_to_labels.items() if label}
    values = {
        name: {
            # As the text that categories have.
            str(int(v)) if isinstance(v, float) and v.is_integer() else str(v): label
            for v, label in labels.items()
        }
        for name, labels in meta.variable_value_labels.items()
    }
    measures = {
        name: measure
        for name, measure in (getattr(meta, "variable_measure", None) or {}).items()
        if measure in MEASURES and suffix in {".sav", ".zsav", ".por"}
    }
    return Raw(frame, labels=values, column_labels=columns, measures=measures)


def check_stats_names(form: str, names: Sequence[str]) -> None:
    """Refuse names of columns that a format does not take."""
    _library()
    program = "SPSS" if form == "sav" else "Stata"
    for name in names:
        if not re.fullmatch(STATS_NAMES[form], name):
            raise InputError(
                f"Cannot write the release for {program}: it takes no column named '{name}'. "
                "Rename the column, or choose --file-format parquet or csv."
            )


def write_stats(
    frame: pl.DataFrame, path: Path, kind: str, labels: Mapping[str, Any], about: str | None
) -> None:
    """Write a file with labels, as far as the format has room for them."""
    library = _library()
    check_stats_names(kind, frame.columns)
    program = "SPSS" if kind == "sav" else "Stata"
    write = library.write_sav if kind == "sav" else library.write_dta
    values = {
        name: dict(_codes(mapping, frame.schema[name], kind))
        for name, mapping in labels.get("values", {}).items()
    }
    try:
        write(
            frame.with_columns(pl.col(pl.Decimal).cast(pl.Float64)),
            str(path),
            file_label=about or "",
            column_labels={
                name: label[: STATS_LABEL[kind]]
                for name, label in labels.get("columns", {}).items()
            },
            variable_value_labels={name: codes for name, codes in values.items() if codes},
        )
    except (library.ReadstatError, library.PyreadstatError):
        raise InputError(
            f"Cannot write the release for {program}: a name or a text does not fit the format, or "
            "the disk is full. Choose --file-format parquet or csv."
        ) from None


def _codes(
    labels: Mapping[str, str], dtype: pl.DataType, kind: str
) -> Iterator[tuple[str | float, str]]:
    """Write labelled values in the type of their column; Stata labels whole numbers alone."""
    for code, label in labels.items():
        if dtype == pl.String:
            if kind == "sav":
                yield code, label
        else:
            with suppress(ValueError):
                if kind == "sav" or float(code).is_integer():
                    yield float(code), label
