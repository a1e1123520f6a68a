"""The shape of `[reading]` and `[writing]`: how the data file and a CSV release are written."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from shoal.policy.values import Category


class Spec(BaseModel):
    """A table of keys: strict, and nothing in it that is unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


_Mark = Annotated[str, Field(min_length=1, max_length=1)]
_Decimal = Annotated[str, Field(pattern=r"^[.,]$")]


class ReadingSpec(Spec):
    """How the data file is written, where that cannot be detected."""

    delimiter: _Mark | None = Field(
        None,
        description="The character between two cells of a CSV file. Comma, semicolon, tab and bar "
        "are detected, in an epsilon release from the first line alone.",
    )
    encoding: str | None = Field(
        None,
        description="The character encoding of a CSV file. UTF-8, UTF-16 with a byte order mark "
        "and Windows-1252 are detected. An epsilon release does not detect Windows-1252: cells "
        "that are not UTF-8 count as unknown.",
    )
    decimal: _Decimal | None = Field(
        None,
        description="The decimal mark of numbers in text. A comma is detected unless it could "
        "separate thousands. In the protected columns of an epsilon release the mark is a point "
        "unless stated. Where it is stated, marks between thousands, currencies and percent signs "
        "are left out: $1,234.50 is 1234.5.",
    )
    sheet: str | None = Field(None, description="The sheet of an Excel workbook that has several.")
    missing: list[Category] = Field(
        default_factory=list,
        description="Cells that mean missing in every column. Those that a column states are "
        "added to them.",
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
