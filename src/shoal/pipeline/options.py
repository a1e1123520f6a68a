"""Options of a run that belong together, as the command, the studio and tests state them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shoal import io
from shoal.core import BudgetUse, Policy
from shoal.errors import InputError
from shoal.io.csv_files import PLAIN, Dialect
from shoal.policy.load import load

ENGINES = ("local", "spark")
SPREADSHEETS = ("csv", "xlsx")
"""Formats of releases that people open in a spreadsheet."""


@dataclass(frozen=True)
class ReadingOptions:
    """How a CSV file is written, and where the table is in a workbook, if not detected."""

    delimiter: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    header_row: str | None = None
    skip: str | None = None

    def marks(self, policy: Policy) -> dict[str, Any]:
        """Fill in the reading options with those of the policy."""
        return io.marks(policy, **vars(self))


@dataclass(frozen=True)
class BudgetOptions:
    """The budget file and the population in it, instead of the policy's."""

    file: Path | None = None
    source: str | None = None

    def apply_to(self, policy: Policy | Path) -> Policy:
        """Return the policy with these budget options."""
        policy = load(policy)
        if self.file is None and self.source is None:
            return policy
        used = policy.budget
        if used is not None:
            file, source = self.file or used.file, self.source or used.source
            return replace(policy, budget=replace(used, file=file, source=source))
        if self.file is None or self.source is None:
            key, option = ("source", "--source") if self.file else ("file", "--budget")
            raise InputError(f"Expected {option}, or '{key}' under [budget] in the policy.")
        return replace(policy, budget=BudgetUse(self.file, self.source))


@dataclass(frozen=True)
class OutputOptions:
    """What is written, and for whom.

    Attributes:
        file_format: parquet, csv, xlsx, sav, dta or xpt; by default that of the file that is
            protected, where a release can have it, and else Parquet.
        force: replace an existing release.
        keep_order: release row i in place of row i.
        guard_formulas: put an apostrophe before text that a spreadsheet would run, in a CSV file
            or a workbook; so it is unless false is given.
        audience: who will get the release, instead of the policy's: public-use, scientific-use or
            secure-use.
        dialect: of a CSV release; `protect_file` chooses it.
    """

    file_format: str | None = None
    force: bool = False
    keep_order: bool = False
    guard_formulas: bool | None = None
    audience: str | None = None
    dialect: Dialect = PLAIN

    @property
    def guarded(self) -> bool:
        """Whether text is guarded."""
        return self.file_format in SPREADSHEETS and self.guard_formulas is not False


@dataclass(frozen=True)
class EvaluationOptions:
    """What the officer's report compares.

    Attributes:
        evaluate: run attacks and measures of utility; by default wherever the memory for
            them is free.
        control: people of the same population who are not in the table, for the attacks.
        comparison: what `shoal compare --json` printed.
        names: what the report calls files that their user knows by another name, by path.
    """

    evaluate: bool | None = None
    control: Path | None = None
    comparison: Path | None = None
    names: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineOptions:
    """Where a release is made.

    Attributes:
        name: local, or spark: a Parquet file, a folder of them or a CSV file is read and
            protected on Spark, and written as a folder of Parquet files.
        settings: of Spark, by their own names.
    """

    name: str = "local"
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def distributed(self) -> bool:
        """Whether it is made on Spark."""
        return self.name == "spark"
