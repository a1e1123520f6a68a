"""The models of `[reading]` and `[writing]`: how the data file and a CSV release are written."""

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from shoal.errors import InputError
from shoal.io.dates import is_format, strptime_format
from shoal.io.sheet_rows import numbers_of
from shoal.policy.values import Category


class Spec(BaseModel):
    """A strict table of keys, which refuses unknown ones."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


_Mark = Annotated[str, Field(min_length=1, max_length=1)]
_Decimal = Annotated[str, Field(pattern=r"^[.,]$")]


def _date_format(pattern: str) -> str:
    form = strptime_format(pattern)
    if not is_format(form):
        raise PydanticCustomError(
            "date_format", "expected year, month and day, such as '%d.%m.%Y' or 'dd.mm.yyyy'."
        )
    return form


def _rows(stated: str) -> str:
    try:
        numbers_of(stated)
    except InputError as error:
        raise PydanticCustomError("rows", "{why}", {"why": str(error)}) from None
    return stated


_Rows = Annotated[
    str,
    BeforeValidator(lambda rows: str(rows) if type(rows) is int else rows),
    AfterValidator(_rows),
]


class ReadingSpec(Spec):
    """How the data file is written. An epsilon release of a text file detects nothing of it."""

    delimiter: _Mark | None = Field(
        None,
        description="The character between cells of a CSV file. Comma, semicolon, tab and bar are "
        "detected.",
    )
    encoding: str | None = Field(
        None,
        description="The encoding of a CSV file. UTF-8, UTF-16 with a byte order mark and "
        "Windows-1252 are detected. Beside an epsilon it is UTF-8, or a stated one that reads each "
        "line by itself: not UTF-16, UTF-7, HZ or ISO 2022.",
    )
    decimal: _Decimal | None = Field(
        None,
        description="The decimal mark of numbers in text. A comma is detected unless it could "
        "separate thousands. If stated, marks between thousands, currencies and percent signs are "
        "left out: $1,234.50 is 1234.5.",
    )
    date_format: Annotated[str, AfterValidator(_date_format)] | None = Field(
        None,
        description="How dates are written, unless a column says.",
    )
    sheet: str | None = Field(None, description="The sheet of an Excel workbook.")
    header_row: _Rows | None = Field(
        None,
        description="The row of an Excel sheet that names the columns, such as 3, or the rows, "
        "'3-4'. By default the first that has a cell.",
    )
    skip: _Rows | None = Field(
        None,
        description="Rows of an Excel sheet that are not records, such as 105 or '105-107'.",
    )
    rows: Annotated[int, Field(ge=1)] | None = Field(
        None,
        description="Records of an Excel sheet, empty ones too. Without it an epsilon is "
        "conditional.",
    )
    multiline: bool = Field(
        default=False,
        description="Cells of a CSV file may have several lines. An epsilon is then conditional.",
    )
    missing: list[Category] = Field(
        default_factory=list,
        description="Cells that mean missing in every column, beside its own.",
    )


class WritingSpec(Spec):
    """How a CSV release is written; what is left out is as `[reading]` states it."""

    delimiter: _Mark | None = Field(
        None,
        description="The character between two cells of a CSV release. By default that of reading.",
    )
    encoding: Literal["utf-8", "utf-8-sig"] | None = Field(
        None, description="The character encoding of a CSV release. Excel reads utf-8-sig."
    )
    decimal: _Decimal | None = Field(
        None, description="The decimal mark of a CSV release. By default that of reading."
    )
