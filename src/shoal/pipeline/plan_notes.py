"""Notes of a plan: keys of the policy that a method does not use, and what happens silently."""

from typing import Any

from shoal.core import Kind, Policy, ReleaseForm, Role
from shoal.errors import count_noun
from shoal.io import clamp
from shoal.methods import Method, Setting

NO_PERSON = "Rows were drawn from a noisy model: no row is a person."
"""What the manifest, and the file itself where its format has room, say of drawn rows."""


DRAFTED = "The policy was drafted by program, and nobody has reviewed it."


def notes(policy: Policy, method: Method[Any], setting: Setting[Any]) -> tuple[str, ...]:
    """Say which keys of the policy this method carries along without using them."""
    schema = policy.schema
    lines = [DRAFTED] if policy.drafted else []
    weight = schema.column_with_flag("sampling_weight")
    boxes = setting.release_form is ReleaseForm.TREE
    if weight in schema.released and weight not in setting.columns and not boxes:
        unused = "centres of groups are unweighted" if method.has_centres(setting) else "not used"
        lines.append(f"The sampling weight in column '{weight}' is released as it is; {unused}.")
    stratum = schema.column_with_flag("stratum")
    if stratum:
        spans = ": groups may span strata" if method.has_groups else ""
        lines.append(f"The sampling stratum in column '{stratum}' is not used{spans}.")
    household = schema.column_with_flag("household")
    if household:
        several = ": a group may hold several members of one household" if method.has_groups else ""
        lines.append(f"Column '{household}', which numbers the households, is not used{several}.")
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
        if column.role is Role.OTHER and column.name not in setting.columns
    ]
    if untouched and not boxes:
        lines.append(
            f"Columns released unchanged, because their role is 'other': {', '.join(untouched)}."
        )
    return tuple(lines)


def _persons_note(setting: Setting[Any]) -> tuple[str, ...]:
    """Say how many rows of a person count, where it is not one."""
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
    """Say what happens silently to cells outside their public domains."""
    columns, scaled = method.clamps(setting), method.input.scaled
    notes = ["Cells outside their bounds are clamped silently, record by record."]
    for name in columns:
        column = setting.schema[name]
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
            constant = clamp.constant(column)
            integral = isinstance(constant, float) and constant.is_integer()
            notes.append(
                f"'{name}': missing cells count as {int(constant) if integral else constant}."
            )
    unused = [name for name in columns if setting.schema[name].transform and not scaled]
    if unused:
        notes.append(f"This method does not use the transform of {', '.join(unused)}.")
    if setting.release_form is ReleaseForm.COLUMN_SHUFFLED:
        notes.append(
            "Columns are permuted independently: the table holds no joint information, and no "
            "row is a person."
        )
    return notes
