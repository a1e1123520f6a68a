"""Notes of a plan: keys that a method does not use, what happens silently, what may stop a run.

A plan settles what follows from the policy. Whether the finished table is diverse enough, or a
column becomes constant, depends on the data, so a plan can only say that it may fail, and why. For
a method with an epsilon nothing of the table is used here: its choice must not depend on the table.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from shoal.core import (
    Column,
    Diversity,
    Kind,
    LDiversity,
    Policy,
    ReleaseForm,
    RiskLimit,
    Role,
    Schema,
    TCloseness,
    write_fraction,
)
from shoal.errors import count_noun
from shoal.io import clamp
from shoal.methods import Method, Setting

NO_PERSON = "Rows were drawn from a noisy model: no row is a person."
"""What the manifest, and the file itself where its format has room, say of drawn rows."""


DRAFTED = "The policy was drafted by program, and nobody has reviewed it."


def notes(policy: Policy, method: Method[Any], setting: Setting[Any]) -> tuple[str, ...]:
    """Name the policy keys that this method ignores."""
    schema = policy.schema
    lines = [DRAFTED] if policy.drafted else []
    weight = schema.column_with_flag("sampling_weight")
    boxes = setting.release_form is ReleaseForm.TREE
    if weight in schema.released and weight not in setting.columns and not boxes:
        unused = "centres of groups are unweighted" if method.has_centres(setting) else "not used"
        column = schema[weight]
        done = "released as it is" if not column.class_mean else (
            "the mean of each class, the rows that agree on the protected columns"
        )  # fmt: skip
        raked = f", raked to the totals of {', '.join(column.totals)}" if column.totals else ""
        lines.append(f"The sampling weight in column '{weight}' is {done}{raked}; {unused}.")
    stratum = schema.column_with_flag("stratum")
    if stratum:
        spans = ": groups may span strata" if method.has_groups else ""
        lines.append(f"The sampling stratum in column '{stratum}' is not used{spans}.")
    household = schema.column_with_flag("household")
    if household and not method.input.households:
        several = ": a group may hold several members of one household" if method.has_groups else ""
        limits = [g.name for g in policy.required if isinstance(g, RiskLimit) and g.household]
        beside = f" but for {' and '.join(limits)}" if limits else ""
        lines.append(
            f"Column '{household}', which numbers the households, is not used{beside}{several}."
        )
    observed = [column.name for column in schema.columns if column.observed]
    if observed:
        lines.append(
            f"Categories of {', '.join(observed)} were copied from the data and are not "
            "confirmed as public."
        )
    if setting.release_form is ReleaseForm.SYNTHETIC:
        lines.append(NO_PERSON)
    if boxes:
        lines.append(
            "A released row is a box, that is a range of each quasi-identifier, with counts."
        )
        lines += [] if method.noisy else map(_count_missing, _placed(setting))
    if method.noisy:
        persons_note = _persons_note(setting)
        return (*lines, *persons_note, *_clamping_notes(setting, method))
    public = [column.name for column in schema.columns if column.public]
    if public:
        lines.append(
            f"This method does not use that these columns are declared public: {', '.join(public)}."
        )
    untouched = [
        column.name
        for column in schema.columns
        if column.role is Role.OTHER
        and column.name not in setting.columns
        and not (column.class_mean or column.disguised)
    ]
    if untouched and not boxes:
        lines.append(
            f"Columns released unchanged, because their role is 'other': {', '.join(untouched)}."
        )
    return tuple(lines)


def _persons_note(setting: Setting[Any]) -> tuple[str, ...]:
    """Say how many rows of a person count, unless it is one."""
    stated = setting.schema.persons
    if stated is None or not stated.dropped:
        return ()
    used = count_noun(stated.most, "row of a person is", "rows of a person are")
    return (
        (
            f"Column '{stated.column}' numbers the persons: at most {used} used, and epsilon is "
            f"per person."
        ),
    )


def _clamping_notes(setting: Setting[Any], method: Method[Any]) -> list[str]:
    """Say what happens, without a report, to cells outside their public domains."""
    columns, scaled = method.clamps(setting), method.input.scaled
    notes = ["Cells outside their bounds are clamped silently, record by record."]
    for name in columns:
        column = setting.schema[name]
        if column.discover:
            continue
        if column.keep_missing:
            unknown = ""
            if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
                stated = "missing" if column.unlisted is None else f"'{column.unlisted}'"
                unknown = f" unknown values count as {stated},"
            notes.append(f"'{name}':{unknown} a missing cell is a value of its own.")
            continue
        if column.kind in {Kind.ORDINAL, Kind.NOMINAL}:
            other = column.unlisted
            missing = other if column.missing_as is None else column.missing_as
            notes.append(f"'{name}': unknown values count as '{other}', missing as '{missing}'.")
        else:
            notes.append(_count_missing(column))
    unused = [name for name in columns if setting.schema[name].transform and not scaled]
    if unused:
        notes.append(f"This method does not use the transform of {', '.join(unused)}.")
    if setting.release_form is ReleaseForm.COLUMN_SHUFFLED:
        notes.append(
            "Columns are permuted independently: the table holds no joint information, and no "
            "row is a person."
        )
    return notes


def _placed(setting: Setting[Any]) -> list[Column]:
    """List the columns of boxes whose missing numbers have a stated place."""
    columns = map(setting.schema.__getitem__, setting.columns)
    numbers = {Kind.NUMERIC, Kind.DATE}
    return [
        column for column in columns if column.missing_as is not None and column.kind in numbers
    ]


def _count_missing(column: Column) -> str:
    """Say as what a missing number or date counts."""
    constant = clamp.constant(column)
    integral = isinstance(constant, float) and constant.is_integer()
    return f"'{column.name}': missing cells count as {int(constant) if integral else constant}."


@dataclass(frozen=True)
class SeenColumn:
    """What an inspection found of a column.

    Attributes:
        distinct: how many different values.
        unique: the share of the rows whose value nobody else has.
        values: those that occur, where they are few.
    """

    distinct: int
    unique: float
    values: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeenTable:
    """What an inspection found of a table.

    Attributes:
        rows: the number of rows.
        columns: by name; empty if only the number of rows may be known.
    """

    rows: int
    columns: Mapping[str, SeenColumn]


def list_doubts(
    policy: Policy, method: Method[Any], setting: Setting[Any], seen: SeenTable | None
) -> tuple[list[str], list[str]]:
    """Say what will and what may stop a run of a method that a plan has no objection to."""
    if method.noisy:
        seen = None
    will: list[str] = []
    may: list[str] = []
    for guarantee in policy.required:
        if isinstance(guarantee, LDiversity) and (short := _too_few(guarantee, policy, seen)):
            will.append(short)
        elif isinstance(guarantee, LDiversity | TCloseness):
            may += _doubt_checks(guarantee, method, setting, seen)
    if seen is not None:
        will += _all_distinct(policy, setting, seen)
        may += [*_one_group(setting, seen), *_unknown_values(policy.schema, seen)]
    return will, may


def _too_few(guarantee: LDiversity, policy: Policy, seen: SeenTable | None) -> str:
    """Report fewer values than l: no grouping helps, whatever the kind of l-diversity."""
    if len(guarantee.columns) > 1:
        return ""
    (name,) = guarantee.columns
    stated = policy.schema[name].all_categories
    seen_column = seen.columns.get(name) if seen is not None else None
    if stated is not None and len(stated) < guarantee.l:
        where, many = "the policy states", len(stated)
    elif seen_column is not None and seen_column.distinct < guarantee.l:
        where, many = "the table has", seen_column.distinct
    else:
        return ""
    return (
        f"{write_fraction(guarantee.l)}-diversity of '{name}' cannot be met: {where} "
        f"{count_noun(many, 'value')} of it. Lower l."
    )


def _doubt_checks(
    guarantee: LDiversity | TCloseness,
    method: Method[Any],
    setting: Setting[Any],
    seen: SeenTable | None,
) -> Iterator[str]:
    claimed = any(claim.stands and claim.guarantee == guarantee
                  for claim in method.promises.claims(setting))  # fmt: skip
    what = ", ".join(guarantee.columns)
    if not claimed:
        spent = " Its epsilon counts as spent all the same." if method.noisy else ""
        yield (
            f"{guarantee.name} of {what} is checked on the finished table, and this method does "
            f"not look at {what} when it forms groups. If the check fails, nothing is "
            f"written.{spent}"
        )
    elif not _by_one_class(guarantee, seen) or getattr(setting.parameters, "levels", None):
        yield (
            f"If no grouping meets {guarantee.name} of {what}, not even the whole table as one "
            "group, nothing is written."
        )


def _by_one_class(guarantee: LDiversity | TCloseness, seen: SeenTable | None) -> bool:
    """Whether the whole table as one class is known to satisfy it, so some grouping does."""
    if isinstance(guarantee, TCloseness):
        return True  # its distance from itself is none
    if guarantee.kind is not Diversity.DISTINCT or seen is None or len(guarantee.columns) > 1:
        return False
    return guarantee.columns[0] in seen.columns  # that they are enough was seen before


def _one_group(setting: Setting[Any], seen: SeenTable) -> Iterator[str]:
    k = getattr(setting.parameters, "k", None)
    if k is not None and seen.rows < 2 * k and setting.release_form is not ReleaseForm.TREE:
        yield (
            f"{count_noun(seen.rows, 'row')} make one group of k = {k:,}: protected columns become "
            "constant, which stops the release until the policy accepts it. Lower k."
        )


def _all_distinct(policy: Policy, setting: Setting[Any], seen: SeenTable) -> Iterator[str]:
    """Report columns that stop a release: see `protect_table.unexpected`."""
    if setting.release_form in {ReleaseForm.TREE, ReleaseForm.SYNTHETIC}:
        return
    for name in policy.schema.released:
        column, facts = policy.schema[name], seen.columns.get(name)
        if facts is None or facts.unique < 1 or seen.rows < 2 or name in setting.columns:
            continue
        number = column.kind in {Kind.NUMERIC, Kind.DATE} and column.role is not Role.OTHER
        coded = column.top_code or column.bottom_code
        changed = column.recoded or column.step or column.date_step or coded
        if (
            not number
            and not changed
            and not column.sampling_weight
            and name not in policy.accept_distinct
        ):
            yield (
                f"Column '{name}' would be released unchanged with another value in every row. "
                "Give it the role identifier."
            )


def _unknown_values(schema: Schema, seen: SeenTable) -> Iterator[str]:
    unknown = [
        name
        for name in schema.released
        if name in seen.columns and _is_unknown(schema[name], seen.columns[name].values)
    ]
    if unknown:
        names = ", ".join(f"'{name}'" for name in unknown)
        yield (
            f"Some cells of {names} are not among the categories that the policy states. Cells "
            "that do not fit stop the run; add the categories, or a mark for missing cells."
        )


def _is_unknown(column: Column, values: tuple[str, ...]) -> bool:
    if (
        column.kind not in {Kind.NOMINAL, Kind.ORDINAL}
        or not column.all_categories
        or column.prefix
        or column.breaks
    ):
        return False
    return not {*values} <= {*column.all_categories, *column.missing, *(column.recode or {})}
