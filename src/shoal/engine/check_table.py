"""Recompute guarantees on a finished table, whoever made it."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal import io
from shoal import policy as policies
from shoal.core import (
    Check,
    Checkable,
    Distance,
    KAnonymity,
    KeptRule,
    Kind,
    LDiversity,
    MissingMeaning,
    Policy,
    RiskLimit,
    Role,
    Schema,
    SpatialDecomposition,
    TCloseness,
    Testable,
)
from shoal.core._arrays import Ints
from shoal.core.claims import ONE_ROW
from shoal.core.row_order import row_keys
from shoal.engine.risk_limits import check_risk, refuse_risk
from shoal.errors import ClaimViolationError, InputError, did_you_mean, quotable, unlike
from shoal.io import clamp, decomposition_table, validate
from shoal.io.cells import compose
from shoal.io.column_counts import ROWS, ColumnCounts
from shoal.io.persons import spell_persons
from shoal.io.repair import plain_columns
from shoal.privacy_models import (
    Counts,
    Verdict,
    decide,
    k_when_missing_matches,
    persons_agreeing,
    verdict,
)

WITNESS_ROWS = 5
"""How many rows of a witness group are named."""

MOST_MATCHES = 4_000_000
"""Patterns of missing cells, squared, times classes: above this, matches are not counted."""

MOST_PERSON_MATCHES = 100_000_000
"""The same where persons are counted: rows times classes."""


def check(released: Any, policy: policies.PolicySource) -> tuple[Check, ...]:
    """Recompute what a policy requires on any released table, whoever made it.

    Cells are compared as they are released: intervals, ancestors and stars are values. Where
    the policy requires nothing, the k of its quasi-identifiers is reported against k = 2. If
    the table holds the policy's `privacy_unit` column, persons are counted, and rows otherwise,
    which a remark then says. Texts that differ in how accents are composed are equal. A table
    of boxes with counts, a release of the form `tree`, is known by its columns: each box is a
    class.

    Args:
        released: a pandas, Polars or PyArrow table, or the path of a file.
        policy: a path to a policy file, the same content as a mapping, or a `Policy`.

    Raises:
        InputError: the table has columns that the policy does not name, or lacks one that
            the guarantee is about.
        ClaimViolationError: an identifier column is present.
    """
    policy = policies.load(policy)
    frame = io.take(released, policy=policy).frame
    schema = policy.schema
    present = [name for name in schema.with_role(Role.IDENTIFIER) if name in frame.columns]
    if present:
        raise ClaimViolationError(
            f"The released table holds the identifier column '{present[0]}'; expected none."
        )
    boxes = None
    if decomposition_table.is_tree(frame, schema):
        boxes = decomposition_table.from_frame(frame, schema)
    strange = [name for name in frame.columns if name not in schema.names]
    if boxes is None and strange:
        name = strange[0]
        shown = f"'{name}' " if quotable(name) else f"(number {1 + frame.columns.index(name)}) "
        raise InputError(
            unlike("The table", frame.columns, schema.released)
            or f"The table has a column {shown}that the policy does not name."
            f"{did_you_mean(name, schema.names)}"
        )
    rules = () if boxes else check_rules(frame, policy)
    if policy.required and not any(isinstance(g, Checkable) for g in policy.required):
        if rules:
            return rules
        raise InputError(
            f"The policy requires only {' and '.join(sorted({g.name for g in policy.required}))}. "
            "Such a promise is about how a table was made; no table can be checked for it."
        )
    keys = schema.with_role(Role.QUASI_IDENTIFIER)
    wanted = [g for g in policy.required if isinstance(g, Checkable)] or [KAnonymity(2, keys)]
    for guarantee in wanted:
        _check_columns(
            frame.columns if boxes is None else (*boxes.columns, boxes.column), guarantee
        )
    if boxes is not None:
        refuse_risk(wanted, "a table of boxes")
        counted = [guarantee for guarantee in wanted if isinstance(guarantee, Testable)]
        return tuple(check_leaves(boxes, guarantee, schema) for guarantee in counted)
    if frame.height == 0:
        raise InputError("The table has no rows; there is nothing to check.")
    texts = frame.select(pl.col(pl.String, pl.Categorical, pl.Enum)).cast(pl.String)
    frame = frame.with_columns(compose(series) for series in texts)
    made = (recompute(frame, guarantee, policy) for guarantee in wanted)
    rows = _say_that_rows_are_counted(frame, schema)
    return (*(replace(c, remarks={**c.remarks, **rows}) for c in made), *rules)


def _say_that_rows_are_counted(frame: pl.DataFrame, schema: Schema) -> dict[str, str]:
    """Remark under which condition the counted rows are persons, unless the policy states it."""
    unit = schema.column_with_flag("privacy_unit")
    if unit is None and not schema.one_row_per_person:
        return {"counted": f"rows; they are persons if {ONE_ROW}, which the policy does not state"}
    if unit is not None and unit not in frame.columns:
        return {"counted": f"rows; '{unit}', which numbers the persons, is not in the table"}
    return {}


def check_rules(frame: pl.DataFrame, policy: Policy) -> tuple[Check, ...]:
    """Count the rows of a table that violate each constraint of a policy.

    A cell that cannot be read as a value of its column, such as an interval, a set or
    a name that covers others, counts as missing.
    """
    names = {name for rule in policy.constraints.rules for name in rule.columns}
    read = [_read(frame[name], policy) for name in frame.columns if name in names]
    columns = plain_columns(pl.DataFrame(read), policy.schema, [series.name for series in read])
    checks = []
    for rule in policy.constraints.rules:
        if any(name not in columns for name in rule.columns):
            continue
        true, false = rule.truth(columns)
        rows = np.flatnonzero(false)
        witness = {"size": int(false.sum()), "rows": [int(r) + 1 for r in rows[:WITNESS_ROWS]]}
        remarks = {"rows_that_decide": int((true | false).sum())}
        kept = KeptRule(rule.text, rule.columns)
        checks.append(Check(kept, not rows.size, int(false.sum()), witness, remarks))
    return tuple(checks)


def _read(series: pl.Series, policy: Policy) -> pl.Series:
    """Read a column by its kind; null where a cell cannot be read so."""
    column = policy.schema[series.name]
    if column.kind in {Kind.NUMERIC, Kind.DATE}:
        open_ended = replace(
            column, bounds=None, bottom_code=None, top_code=None, step=None, date_step=None
        )
        return clamp.readable(series, open_ended, policy.reading.decimal)
    texts = compose(validate.mark_missing(series, column).cast(pl.String))
    known = column.all_categories
    return texts if known is None else texts.set(~texts.is_in(known).fill_null(True), None)


def recompute(
    table: pl.DataFrame | ColumnCounts,
    guarantee: Checkable,
    policy: Policy,
    *,
    units: Ints | None = None,
    beside: pl.DataFrame | None = None,
) -> Check:
    """Recompute any guarantee on a table; see `check_frame` and `risk_limits.check_risk`."""
    if not isinstance(guarantee, RiskLimit):
        return check_frame(table, guarantee, policy.schema, units=units)
    frame = table.frame if isinstance(table, ColumnCounts) else table
    return check_risk(frame, guarantee, policy, beside=beside)


def check_frame(
    table: pl.DataFrame | ColumnCounts,
    guarantee: Testable,
    schema: Schema,
    *,
    units: Ints | None = None,
) -> Check:
    """Recompute a guarantee on a table; cells are equal if they are written the same.

    `units` identifies the person of each row where some persons have several; by default the
    table's own column does, if the policy names one and the table has it.
    """
    counts = table if isinstance(table, ColumnCounts) else ColumnCounts(table)
    frame = counts.frame
    units = _units(frame, schema) if units is None else units
    if isinstance(guarantee, LDiversity | TCloseness):
        return _check_counts(frame, guarantee, schema, units)
    keys = list(guarantee.columns)
    if guarantee.missing is MissingMeaning.MATCHES:
        return _check_matching(frame, guarantee, units)
    if len(keys) == 1 and frame.schema[keys[0]].is_float() and units is None:
        # Individual ranking promises k of a single numeric column, for which counting is quicker.
        quick = _check_column(frame[keys[0]], guarantee, counts.numbers(keys[0])[1])
        if quick.holds:
            return quick
    if len(keys) == 1 and units is None:
        classes = counts.cells(keys[0]).rename({ROWS: "\0persons"})
    else:
        classes = _classes(frame, keys, units)
    sizes = classes["\0persons"].cast(pl.Int64).to_numpy()
    achieved = int(sizes.min())
    smallest = classes.filter(pl.col("\0persons") == achieved).sort(keys, nulls_last=True)[:1]
    alike = (pl.col(name).eq_missing(pl.lit(smallest[name])) for name in keys)
    rows = frame.select(pl.all_horizontal(alike)).to_series().arg_true() + 1
    remarks: dict[str, Any] = {"classes": classes.height, **_persons(units)}
    if sum(frame.select(keys).null_count().row(0)):
        codes = _codes(classes, keys)
        patterns = len(np.unique(codes >= 0, axis=0))
        if units is None and patterns**2 * len(codes) <= MOST_MATCHES:
            remarks["k_if_missing_matches_anything"] = k_when_missing_matches(codes, sizes)
        elif units is not None and frame.height * len(codes) <= MOST_PERSON_MATCHES:
            # A person with rows in several matching classes counts once.
            remarks["k_if_missing_matches_anything"] = persons_agreeing(
                _codes(frame, keys), units, MissingMeaning.MATCHES
            )
        else:
            remarks["patterns_of_missing_cells"] = patterns
    return Check(
        guarantee,
        holds=achieved >= guarantee.k,
        achieved=achieved,
        witness={"size": achieved, "rows": rows.head(WITNESS_ROWS).to_list()},
        remarks=remarks,
    )


def _check_matching(frame: pl.DataFrame, guarantee: KAnonymity, units: Ints | None) -> Check:
    """Recompute k where a missing cell matches every value.

    Persons are counted where some have several rows.
    """
    keys = list(guarantee.columns)
    classes = _classes(frame, keys, units)
    held = classes["\0persons"].cast(pl.Int64).to_numpy()
    known_k = int(held.min())
    if units is None:
        achieved = k_when_missing_matches(_codes(classes, keys), held)
    else:
        achieved = persons_agreeing(_codes(frame, keys), units, MissingMeaning.MATCHES)
    return Check(
        guarantee,
        holds=achieved >= guarantee.k,
        achieved=achieved,
        witness={"size": achieved},
        remarks={"classes": classes.height, "k_if_missing_is_a_value": known_k, **_persons(units)},
    )


def _classes(frame: pl.DataFrame, keys: Sequence[str], units: Ints | None) -> pl.DataFrame:
    """Count the rows, or the persons, of each equivalence class of some columns."""
    source = frame if units is None else frame.with_columns(pl.Series("\0unit", units))
    counted = pl.len() if units is None else pl.col("\0unit").n_unique()
    return source.group_by(keys).agg(counted.alias("\0persons"))


def check_leaves(boxes: SpatialDecomposition, guarantee: Testable, schema: Schema) -> Check:
    """Recompute a guarantee on boxes with exact counts: each box is an equivalence class.

    Boxes without a record are not classes. If the guarantee is about fewer columns than the boxes
    have, its classes are unions of boxes and no worse: what is achieved is then a bound. Rows of
    the witness are boxes, numbered from 1. Refused are a guarantee about another column than the
    counted one, and noisy counts, since the table cannot be known from them.
    """
    columns = guarantee.columns
    if isinstance(guarantee, LDiversity | TCloseness) and columns != (boxes.column,):
        raise InputError(
            f"{guarantee.name} of {', '.join(columns)} cannot be checked on boxes that count "
            f"{boxes.column or 'only records'}."
        )
    if (boxes.counts != np.rint(boxes.counts)).any() or (boxes.counts < 0).any():
        raise InputError(
            f"{guarantee.name} cannot be checked on boxes with negative or fractional counts: "
            "they are noisy, and the true ones are not known."
        )
    held = boxes.counts.astype(np.int64)
    sizes = held.sum(axis=1)
    filled = int((sizes > 0).sum())
    if not filled:
        raise InputError("The boxes hold no records; there is nothing to check.")
    if isinstance(guarantee, KAnonymity):
        achieved = int(sizes[sizes > 0].min())
        rows = np.flatnonzero(sizes == achieved) + 1
        witness = {"size": achieved, "rows": rows[:WITNESS_ROWS].tolist()}
        return Check(guarantee, achieved >= guarantee.k, achieved, witness, {"classes": filled})
    counts = _leaf_counts(boxes, held, schema)
    edges = hierarchy_edges(guarantee, schema, counts.width)
    outcome = verdict(counts, guarantee, edges=edges)
    return _make_check(guarantee, outcome, counts, [int(outcome.witness) + 1])


def _make_check(
    guarantee: Testable, found: Verdict, counts: Counts, rows: Sequence[int], **more: Any
) -> Check:
    """Make the check of a guarantee from its verdict, with the rows of the witness."""
    remarks = {
        "classes": int((counts.persons > 0).sum()),
        "failing_classes": len(found.failing),
        "homogeneous_classes": len(counts.homogeneous),
        **more,
    }
    witness = {"size": int(counts.persons[found.witness]), "rows": rows}
    return Check(guarantee, found.holds, found.achieved, witness, remarks)


def _leaf_counts(boxes: SpatialDecomposition, held: Ints, schema: Schema) -> Counts:
    """Number the confidential values of boxes as `value_codes` does, and count them."""
    used = np.flatnonzero(held.any(axis=0))
    texts = pl.Series(str(boxes.column), [boxes.values[v] or None for v in used], dtype=pl.String)
    codes, width = value_codes(texts.to_frame(), [str(boxes.column)], schema)
    together = np.zeros((len(held), width), dtype=np.int64)
    for place, code in zip(used, codes, strict=True):
        together[:, code] += held[:, place]
    box, value = np.nonzero(together)
    return Counts(box, value, together[box, value], together.sum(axis=1), width)


def class_labels(frame: pl.DataFrame, keys: Sequence[str]) -> Ints:
    """Number the equivalence classes of some columns from 0; missing is a value."""
    return row_keys((_dense(frame[name]) + 1 for name in keys), frame.height)


def value_codes(frame: pl.DataFrame, columns: Sequence[str], schema: Schema) -> tuple[Ints, int]:
    """Number the combinations of confidential values from 0; return their number as well.

    One column keeps its order: that of its declared categories, or of its numbers. A missing
    cell comes last.
    """
    if len(columns) > 1:
        joint = class_labels(frame, columns)
        return joint, int(joint.max(initial=0)) + 1
    series, categories = frame[columns[0]], schema[columns[0]].all_categories
    text = series.cast(pl.String)
    if categories is not None and text.drop_nulls().is_in(categories).all():
        codes = text.cast(pl.Enum(categories)).to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
        width = len(categories)
    else:
        cells = series if series.dtype.is_numeric() else text
        numbers = cells.cast(pl.Float64, strict=False)
        ordered = numbers if numbers.null_count() == series.null_count() else text
        codes = _dense(ordered)
        width = int(codes.max(initial=-1)) + 1
    gone = codes < 0
    return np.where(gone, width, codes), width + int(gone.any())


def _check_counts(
    frame: pl.DataFrame,
    guarantee: LDiversity | TCloseness,
    schema: Schema,
    units: Ints | None,
) -> Check:
    labels = class_labels(frame, guarantee.keys)
    codes, width = value_codes(frame, guarantee.columns, schema)
    edges = hierarchy_edges(guarantee, schema, width)
    outcome, counts = decide(labels, codes, guarantee, units=units, width=width, edges=edges)
    rows = np.flatnonzero(labels == outcome.witness) + 1
    return _make_check(guarantee, outcome, counts, rows[:WITNESS_ROWS].tolist(), **_persons(units))


def _persons(units: Ints | None) -> dict[str, Any]:
    """Remark that persons were counted, if some have several rows."""
    return {} if units is None else {"counted": "persons"}


def hierarchy_edges(guarantee: LDiversity | TCloseness, schema: Schema, width: int) -> Ints | None:
    """Return the edges of a hierarchical distance, with one for missing cells; else None."""
    if not isinstance(guarantee, TCloseness) or guarantee.distance is not Distance.HIERARCHICAL:
        return None
    hierarchy = schema[guarantee.columns[0]].hierarchy
    if len(guarantee.columns) > 1 or hierarchy is None:
        raise InputError(
            f"{guarantee.name} with distance hierarchical needs one column with a hierarchy; found "
            f"{', '.join(guarantee.columns)}."
        )
    leaves = len(hierarchy.leaves)
    if width > leaves + 1:
        raise InputError(
            f"Column '{guarantee.columns[0]}' has values that its hierarchy lacks, so their "
            "distance is not known."
        )
    return hierarchy.edges(missing=width > leaves)


def _check_columns(present: Collection[str | None], guarantee: Checkable) -> None:
    keys = guarantee.columns if isinstance(guarantee, KAnonymity) else guarantee.keys
    if not keys:
        raise InputError(
            "The policy names no quasi-identifier, so there are no equivalence classes."
        )
    for name in dict.fromkeys((*keys, *guarantee.columns)):
        if name not in present:
            raise InputError(
                f"The table lacks the column '{name}', which {guarantee.name} is about. If it was "
                "dropped on purpose, remove it from the policy."
            )


def _units(frame: pl.DataFrame, schema: Schema) -> Ints | None:
    """Number the person of each row, if the table identifies persons and some have several rows."""
    name = schema.column_with_flag("privacy_unit")
    if name is None or name not in frame.columns:
        return None
    codes = _dense(spell_persons(frame[name], schema[name]))
    return codes if np.unique(codes).size < codes.size else None


def _check_column(series: pl.Series, guarantee: KAnonymity, counts: Ints) -> Check:
    """Recompute k of one float column, without naming the rows of the smallest class."""
    gone = series.null_count()
    rarest = int(counts.min()) if counts.size else gone
    achieved = min(rarest, gone) if gone else rarest
    remarks = {"classes": int(counts.size) + bool(gone)}
    if gone:
        remarks["k_if_missing_matches_anything"] = min(rarest + gone, series.len())
    return Check(guarantee, achieved >= guarantee.k, achieved, {"size": achieved}, remarks)


def _codes(frame: pl.DataFrame, keys: Sequence[str]) -> Ints:
    """Number the distinct values of each of some columns."""
    return np.column_stack([_dense(frame[name]) for name in keys])


def _dense(series: pl.Series) -> Ints:
    """Number the distinct values of a column from 0, -1 where missing."""
    return (series.rank("dense").cast(pl.Int64) - 1).fill_null(-1).to_numpy()
