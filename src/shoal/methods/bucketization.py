"""Bucketization: classes in which every bucket of the confidential values has nearly its share.

Confidential values are replaced by buckets of neighbouring values, and records grouped into classes
of k or more such that in no class a bucket's share differs from that in the whole table by more
than a factor of t, either way (`shoal.partition.bucketization`). The quasi-identifiers of a class
are then recoded to one value.

Claims, proved: k-anonymity of the protected columns together, and t-closeness of the released
buckets by the largest ratio of shares. Classes are verified in fractions when they are made and
again on the released table; two classes that are released with the same values are one, and a
union of t-close classes is t-close.

With l, the number of classes that emphasise each bucket, classes are as large as section 6.2 of
the paper has them: k = N / ((t + 1) l), b standing for t + 1, and their sizes differ by at most one
where such classes can be t-close. So k need not be stated. Once N is known k-anonymity is promised
with that k, rounded down; before, with b, since a class in which no ratio of shares is infinite
holds every bucket.

What the ratio gives an attacker's view is conditional and stated in words alone: epsilon = 2 ln t
if the prior is one public distribution, all that is seen of a person is a draw from the class's
distribution, and both tables are t-close. It is not differential privacy of the release.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Annotated, Any, Self

import numpy as np
from pydantic import Field, model_validator

from shoal.core import (
    Claim,
    Column,
    Distance,
    KAnonymity,
    Kind,
    Partition,
    Role,
    TCloseness,
    write_fraction,
)
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError
from shoal.io.table import Table
from shoal.methods.grouping import microaggregation
from shoal.methods.grouping.fixed_recoding import (
    RECODED_AS_BEFORE,
    beside,
    describe_cells,
    describe_places,
    same_places,
)
from shoal.methods.grouping.microaggregation import MicroaggregationParameters
from shoal.methods.grouping.partition_encoding import encoding_of
from shoal.methods.grouping.recode import name_buckets
from shoal.methods.method import (
    TWO_NUMBERS,
    CellFacts,
    CostModel,
    Example,
    Masked,
    Method,
    Promises,
    Setting,
    Tools,
)
from shoal.partition import Requirement, bucketization, joint_buckets
from shoal.policy.values import Number, Size, fail
from shoal.privacy_models import epsilon_from_t

SOURCE = (
    "Domingo-Ferrer and Soria-Comas, From t-closeness to differential privacy and vice versa in "
    "data anonymization, Knowledge-Based Systems 74 (2015)"
)
LARGEST = 10**9
TRIVIAL = (
    "The release is trivial: the whole table became one class, so the released "
    "quasi-identifiers carry no "
    "information."
)


class BucketizationParameters(MicroaggregationParameters):
    """Parameters of bucketization."""

    k: Size = Field(
        default_factory=lambda: 2,  # the least that a class may have at all
        title="Smallest group (k)",
        description="The smallest number of records that a group may have. Required, unless l is "
        "stated: then n / (b l), rounded down.",
    )
    t: Annotated[Number, Field(ge=1, le=LARGEST)] = Field(
        title="Largest ratio (t)",
        description="Largest ratio of a bucket's share in a class and in the table, either way.",
    )
    b: Size | None = Field(
        None,
        title="Number of buckets (b)",
        description="Number of buckets. By default floor(t) + 1, or with several confidential "
        "columns at least 2 for each, multiplied; without l never more than k.",
    )
    l: Annotated[int, Field(ge=1, le=LARGEST)] | None = Field(  # noqa: E741 (as in the paper)
        None,
        title="Classes for each bucket (l)",
        description="How many classes emphasise each bucket: at most b l classes form, of n / (b "
        "l) records, which must be k or more. By default as many classes as possible.",
    )

    @model_validator(mode="after")
    def _check_size(self) -> Self:
        if self.l is None and "k" not in self.model_fields_set:
            fail("expected k, or l, from which k follows, found neither.", "k")
        return self


def _confidential(setting: Setting[BucketizationParameters]) -> tuple[str, ...]:
    return setting.schema.with_role(Role.CONFIDENTIAL)


def _number(setting: Setting[BucketizationParameters]) -> int:
    parameters = setting.parameters
    if parameters.b is not None:
        return parameters.b
    several: int = 2 ** min(len(_confidential(setting)), 30)
    wanted = max(int(parameters.t) + 1, several)
    return wanted if parameters.l is not None else min(wanted, parameters.k)


def _least(setting: Setting[BucketizationParameters]) -> int:
    """Return the least size of a class for any number of rows: every class holds every bucket."""
    return max(setting.parameters.k, _number(setting) if setting.parameters.l else 0)


def _size(setting: Setting[BucketizationParameters]) -> int:
    """Return the least size of a class: k, or what l implies for the number of rows."""
    parameters = setting.parameters
    if parameters.l is None or setting.rows is None:
        return _least(setting)
    return max(_least(setting), setting.rows // (_number(setting) * parameters.l))


def _claims(setting: Setting[BucketizationParameters]) -> tuple[Claim, ...]:
    (promised,) = microaggregation.joint_claims(SOURCE)(setting)
    # If persons may have several rows, groups of k persons are made afterwards.
    k = _size(setting) if setting.schema.persons is None else setting.parameters.k
    k_anonymity = replace(promised, guarantee=KAnonymity(k, setting.columns))
    close = Claim(
        guarantee=_closeness(setting),
        status=k_anonymity.status,
        basis="by construction: a class of e records holds ceil(e p / t) to floor(e p t) "
        "records of a bucket whose share in the table is p",
        assumes=k_anonymity.assumes,
        source=f"{SOURCE}, section 6",
        release_form=setting.release_form,
    )
    return (k_anonymity, close)


def _closeness(setting: Setting[BucketizationParameters]) -> TCloseness:
    return TCloseness(
        Fraction(setting.parameters.t),
        Distance.RATIO,
        _confidential(setting),
        setting.schema.with_role(Role.QUASI_IDENTIFIER),
    )


def _not_claimed(setting: Setting[BucketizationParameters]) -> tuple[str, ...]:
    t = setting.parameters.t
    names = ", ".join(_confidential(setting))
    within = (
        f"{names}: t-closeness holds for the buckets that are released in place of the values. "
        "How values are distributed within a bucket of a class is neither released nor bounded."
    )
    view = (
        f"Not differential privacy. {write_fraction(Fraction(t))}-closeness bounds what an "
        f"attacker learns by a factor of exp({epsilon_from_t(float(t)):.4g}) if the prior is the "
        "same public distribution for both tables, if the attacker sees of a person only a draw "
        "from the distribution of the class and knows nothing else about its members, and if both "
        "tables are t-close."
    )
    ends = (
        "The ends of the intervals are values of persons in the table, including its smallest "
        "and its largest value."
    )
    return (within, ends, view)


def _refuse(setting: Setting[BucketizationParameters]) -> None:
    parameters, confidential = setting.parameters, _confidential(setting)
    keys = setting.schema.with_role(Role.QUASI_IDENTIFIER)
    if not confidential:
        raise InputError("Method 'bucketization' needs a confidential column; found none.")
    if not keys:
        raise InputError("Method 'bucketization' needs a quasi-identifier; found none.")
    both = [name for name in setting.columns if name in confidential]
    if both:
        raise InputError(
            f"[protect], columns: must not list '{both[0]}', because confidential columns are "
            "always released as buckets."
        )
    if not set(setting.columns) >= set(keys):
        raise InputError(
            "[protect], columns: must list every quasi-identifier, because t-closeness is about "
            "classes of equal quasi-identifiers."
        )
    if parameters.l is None and parameters.b is not None and parameters.b > parameters.k:
        raise InputError(
            f"[protect], b: expected at most k = {parameters.k}, because every class holds every "
            f"bucket, found {parameters.b}."
        )
    b, k, rows = _number(setting), _least(setting), setting.rows
    if parameters.l is not None and rows is not None and rows < b * parameters.l * k:
        most = rows // (b * k)
        move = f"Lower l to at most {most}." if most else "Lower k, or remove l."
        raise InputError(
            f"[protect], l: {b} buckets with {parameters.l} classes each leave "
            f"{rows // (b * parameters.l):,} of {rows:,} rows per class, fewer than k = "
            f"{k:,}. {move}"
        )


def _run(table: Table, setting: Setting[BucketizationParameters], tools: Tools) -> Masked:
    confidential = _confidential(setting)
    kept = tools.recoding
    if kept is None:
        placed = [encoding_of(table, name) for name in confidential]
        steps = joint_buckets(
            [place for place, _ in placed],
            _number(setting),
            heights={j: height for j, (_, height) in enumerate(placed) if height is not None},
        )
        X = np.column_stack([place for place, _ in placed])
        kept = {
            "places": describe_places(table, confidential),
            "borders": [_borders(X[:, j], steps, j) for j in range(len(confidential))],
            "cells": {
                name: describe_cells(table, [name], bucket)[name]
                for name, bucket in zip(confidential, steps.T, strict=True)
            },
        }
    else:
        steps = _as_before(same_places(table, confidential, kept["places"]), kept["borders"])
    last = np.unique(steps[:, -1], return_inverse=True)[1].ravel()
    classes = bucketization(
        table.records(setting.columns),
        last,
        _size(setting),
        Fraction(setting.parameters.t),
        most=None if setting.parameters.l is None else _number(setting) * setting.parameters.l,
        progress=tools.progress,
    )
    original = table
    for name, bucket in zip(confidential, steps.T, strict=True):
        dense = Partition(np.unique(bucket, return_inverse=True)[1].ravel())
        held = partial(beside, original, kept=kept["cells"], labels=bucket)
        table = name_buckets(table, name, dense, held)
    close = Requirement(_closeness(setting), last)
    masked = microaggregation.mask_groups(table, setting, classes.partition, require=[close])
    notes = [TRIVIAL] if classes.trivial else []
    if tools.recoding is not None:
        notes.append(RECODED_AS_BEFORE)
    return Masked(masked.data, notes=tuple(notes), recoding=kept)


def _borders(places: Floats, steps: Ints, step: int) -> dict[str, list[Any]]:
    """Return for each bucket of a step the bucket that was cut, and its largest value."""
    buckets = steps[:, step]
    number = int(buckets.max()) + 1
    upto, parent = np.full(number, -np.inf), np.zeros(number, np.int64)
    np.maximum.at(upto, buckets, places)
    if step:
        parent[buckets] = steps[:, step - 1]
    # The last bucket of each that was cut has no end.
    open_ended = np.append(parent[1:] != parent[:-1], True)
    return {"parent": parent.tolist(), "upto": np.where(open_ended, np.inf, upto).tolist()}


def _as_before(places: Floats, borders: Sequence[Mapping[str, Any]]) -> Ints:
    """Assign values to the buckets of an earlier table, column by column."""
    bucket, steps = np.zeros(len(places), np.int64), []
    for place, step in zip(places.T, borders, strict=True):
        parent, upto = np.asarray(step["parent"]), np.asarray(step["upto"], np.float64)
        inner = np.empty(len(place), np.int64)
        for cut in np.unique(bucket):
            children, members = np.flatnonzero(parent == cut), bucket == cut
            inner[members] = children[np.searchsorted(upto[children], place[members])]
        bucket = inner
        steps.append(bucket)
    return np.column_stack(steps)


METHOD = Method(
    name="bucketization",
    summary="Form groups with similar shares of each bucket of confidential values (t-closeness).",
    reference=SOURCE,
    parameters=BucketizationParameters,
    example=Example({"k": 5, "t": 2}, (*TWO_NUMBERS, Column("s", Role.CONFIDENTIAL, Kind.NUMERIC))),
    forms=microaggregation.FORMS,
    promises=Promises(_claims, _not_claimed),
    run=_run,
    refuse=_refuse,
    cost=CostModel(1.0, 0.5, 1.0, 95),
    cells=CellFacts(classes_by_confidential=True),
)
