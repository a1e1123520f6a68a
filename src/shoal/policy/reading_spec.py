"""The shape of `[reading]` and `[writing]`: how the data file and a CSV release are written."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Spec(BaseModel):
    """A table of keys: strict, and nothing in it that is unknown."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


_Mark = Annotated[str, Field(min_length=1, max_length=1)]
_Decimal = Annotated[str, Field(pattern=r"^[.,]$")]


class ReadingSpec(Spec):
    """How the data file is written, where that cannot be detected."""

    delimiter: _Mark | None = Field(None, description="Of a CSV file, between its cells.")
    encoding: str | None = Field(None, description="Of a CSV file, such as utf-8 or cp1252.")
    decimal: _Decimal | None = Field(None, description="Of numbers in text: a point or a comma.")
    sheet: str | None = Field(None, description="Of an Excel workbook with several sheets.")


class WritingSpec(Spec):
    """How a CSV release is written; what is left out is as `[reading]` states it."""

    delimiter: _Mark | None = Field(None, description="Between the cells.")
    encoding: Literal["utf-8", "utf-8-sig"] | None = Field(
        None, description="utf-8; utf-8-sig is for Excel."
    )
    decimal: _Decimal | None = Field(None, description="Of numbers: a point or a comma.")
