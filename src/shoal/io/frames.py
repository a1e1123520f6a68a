"""Convert frames of other libraries to Polars, and back."""

from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

import polars as pl
from polars.exceptions import PanicException

from shoal.errors import InputError
from shoal.io.dates import in_calendar
from shoal.io.raw import Raw, check_names


def from_native(data: Any, *, alone: bool = False) -> Raw:
    """Take a pandas, Polars or PyArrow table, lazy or not, or anything with an Arrow C stream.

    Args:
        data: the table.
        alone: cells are read each by itself: a pandas column of objects keeps them as they are, and
            no cell decides about the type of the others.
    """
    if isinstance(data, Raw):
        return data
    if isinstance(data, pl.DataFrame | pl.LazyFrame):
        frame = data if isinstance(data, pl.DataFrame) else data.collect()
        return Raw(in_calendar(frame, alone=alone))
    import narwhals as nw  # noqa: PLC0415 (loads adapters for every library of tables)

    try:
        native = nw.from_native(data, eager_only=True)
    except nw.exceptions.DuplicateError:
        raise InputError(
            "The table has two columns of the same name; expected each name once."
        ) from None
    except TypeError:
        return _from_stream(data, alone=alone)
    check_names(native.columns, "The table")
    if not native.implementation.is_pyarrow() and find_spec("pyarrow") is None:
        raise InputError(
            "Shoal needs pyarrow to read and write pandas tables: pip install pyarrow."
        )
    try:
        if native.implementation.is_pyarrow():
            types = {name: data.schema.field(name) for name in native.columns}
            ordered = {name: _in_order(data[name]) for name, field in types.items()
                       if getattr(field.type, "ordered", False)}  # fmt: skip
            frame = in_calendar(native.to_polars(), alone=alone)
            return Raw(frame, restore=_to_arrow, types=types, ordered=ordered)
        types = {name: data[name].dtype for name in native.columns}
        _refuse_complex(types)
        ordered = {name: tuple(map(str, dtype.categories)) for name, dtype in types.items()
                   if getattr(dtype, "ordered", False)}  # fmt: skip
        frame = pl.DataFrame(map(_cells, data.items())) if alone else native.to_polars()
        frame = in_calendar(frame, alone=alone)
    except InputError:
        raise
    except ImportError:
        raise InputError("Reading a pandas table needs pyarrow: pip install pyarrow.") from None
    except (Exception, PanicException):  # noqa: BLE001 (their own messages may quote cells)
        raise InputError(
            "Expected one plain type of value per column, found a column of mixed or unusual "
            "objects. Convert it to text or to numbers first."
        ) from None
    return Raw(frame, restore=_to_pandas, types=types, ordered=ordered)


def _from_stream(data: Any, *, alone: bool) -> Raw:
    """Take any object with an Arrow C stream; the release is a Polars frame.

    DuckDB's relations, ADBC's readers, and the frames of other libraries do. A stream is read once.
    """
    refusal = InputError(
        "Expected a pandas, Polars or PyArrow table, or a table with an Arrow C stream, found "
        f"{type(data).__name__}."
    )
    if not hasattr(data, "__arrow_c_stream__"):
        raise refusal
    try:
        frame = pl.from_arrow(data)
    except (Exception, PanicException):  # noqa: BLE001 (their own messages may quote cells)
        raise InputError(
            f"Cannot read the Arrow stream of {type(data).__name__}: it failed, was read before, "
            "has two columns of one name, or has a type that is not supported. Make it anew, with "
            "numbers, texts, dates and truth values alone."
        ) from None
    if isinstance(frame, pl.Series) and isinstance(frame.dtype, pl.Struct):
        frame = frame.struct.unnest()
    if not isinstance(frame, pl.DataFrame):
        raise refusal
    check_names(frame.columns, "The table")
    return Raw(in_calendar(frame, alone=alone))


def _in_order(column: Any) -> tuple[str, ...]:
    """Return the categories of an Arrow dictionary; its chunks are unified first."""
    chunks = column.unify_dictionaries().chunks
    return tuple(map(str, chunks[0].dictionary.to_pylist())) if chunks else ()


def _refuse_complex(types: Mapping[str, Any]) -> None:
    """Refuse complex numbers by type: a single one makes pandas store a whole column so."""
    for name, dtype in types.items():
        if getattr(dtype, "kind", "") == "c":
            raise InputError(
                f"Column '{name}' holds {dtype} values; expected one number, text or date per "
                "cell. Convert it to numbers or to text first."
            )


def _cells(named: tuple[str, Any]) -> pl.Series:
    """Convert a pandas column: numbers and times directly, all else as objects, uninspected."""
    name, column = named
    if getattr(column.dtype, "kind", "") in set("iufb") or str(column.dtype).startswith("datetime"):
        with suppress(Exception):  # a type that Polars does not know is read as objects
            return pl.Series(name, pl.from_pandas(column))
    return pl.Series(name, column.astype(object).tolist(), dtype=pl.Object)


def _to_pandas(released: pl.DataFrame, types: Mapping[str, tuple[pl.DataType, Any]]) -> Any:
    """Convert back to pandas; a column whose type here is unchanged gets its pandas type back.

    The original's index is not released, because it may identify rows.
    """
    result = released.to_pandas()
    for name, dtype in released.schema.items():
        values = result[name]
        if hasattr(values.dtype, "categories"):
            values = values.cat.remove_unused_categories()
        came, wanted = types.get(name, (None, None))
        if dtype.is_integer() and released[name].has_nulls():
            # As floats they would lose their type, and beyond 2^53 digits.
            with suppress(TypeError):
                whole = released[name].fill_null(0).to_pandas().astype(str(dtype))
                values = whole.mask(values.isna())
        if came == dtype and values.dtype != wanted:
            # NumPy's whole numbers, for example, cannot hold a cell that is missing now.
            with suppress(TypeError, ValueError):
                values = values.astype(_without_unused(wanted, values))
        result[name] = values
    return result


def _without_unused(dtype: Any, values: Any) -> Any:
    """Remove the categories from a pandas categorical that do not occur in the release."""
    if not hasattr(dtype, "categories"):
        return dtype
    present = set(values.dropna())
    kept = [category for category in dtype.categories if category in present]
    if len(kept) < len(present):
        return "category"
    return type(dtype)(kept, ordered=dtype.ordered)


def _to_arrow(released: pl.DataFrame, types: Mapping[str, tuple[pl.DataType, Any]]) -> Any:
    result = released.to_arrow()
    for place, (name, dtype) in enumerate(released.schema.items()):
        came, wanted = types.get(name, (None, None))
        if came == dtype and wanted is not None and result.schema.field(name).type != wanted.type:
            # Some types, such as a dictionary of numbers, can be read but not written.
            with suppress(TypeError, ValueError, NotImplementedError):
                result = result.set_column(place, wanted, result[name].cast(wanted.type))
    return result
