"""The common part of methods that learn a noisy model of all columns and draw rows from it.

Every released column becomes whole codes on a public axis
(`shoal.methods.trees.spatial_encoding`): a category, a day, a multiple of the declared `step`, or
one of 2^20 steps between the bounds, on the scale that the policy's `transform` names. A mechanism
(`privtree`, `copula`, `maxent`) measures the codes with noise and draws as many rows as there are
records; the proof stands beside each of them. What follows is post-processing: codes become values
again, rare combinations are merged on request (`min_cell`), and the noisy answers are published
beside the rows, since they are paid for.

For change-one neighbours the number of rows is public, and used throughout. For add-remove
neighbours it is measured first, for a hundredth of epsilon. `maxent` and `privtree` have a proof of
their own for an added or removed record, and take the noisy number where they need one. `copula`
has none: its table is brought to the noisy number, which is measured again for a twentieth, and so
is every table where a person may have several rows and changes them (`contributions`). Public
strata are learnt one by one (`strata`).
A missing cell is a value of its own, unless the policy states
a public constant for it or the mechanism has no place for it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import comb
from typing import Any, cast

import numpy as np

from shoal.core import (
    Claim,
    Kind,
    Neighbours,
    Noise,
    Price,
    PrivacyLoss,
    ReleaseForm,
    Role,
    Status,
)
from shoal.core._arrays import Floats, Ints
from shoal.errors import InputError, InternalError
from shoal.io.table import Table
from shoal.mechanism.records import TOTAL_SHARE, Columns, HeldColumns, RecordTotal, measure_total
from shoal.methods import discovery
from shoal.methods.distributed_rows import Coded, CountableRows, Distributed
from shoal.methods.drawn_rows import strata
from shoal.methods.drawn_rows.constrained_space import ConstrainedSpace
from shoal.methods.drawn_rows.measurements import stack_strata, tabulate
from shoal.methods.drawn_rows.merge_rare import merge_rare_rows
from shoal.methods.drawn_rows.strata import Stratum
from shoal.methods.drawn_rows.synthesis_prices import (
    PureAlone,
    SynthesisParameters,
    constrain_columns,
    domain_of,
    find_stated_rho,
    refuse_prices,
    row_price,
)
from shoal.methods.method import (
    ContributionProof,
    CostModel,
    DistributedRun,
    Example,
    Expectation,
    Masked,
    Method,
    Promises,
    ReleaseForms,
    Setting,
    Tools,
)
from shoal.methods.noise import contributions, epsilon_claims, noisy_microaggregation
from shoal.methods.trees.spatial_encoding import SpatialEncoding, redrawn, spatial_encoding
from shoal.synthesis.auto import AS_MUCH, groups_text, warnings
from shoal.synthesis.domain import Domain, SyntheticRows
from shoal.synthesis.maxent.plan import WORTH, MaxentPlan, foresee_errors, worth
from shoal.synthesis.maxent.structural_zeros import Component

COMBINATION = "the combination and its proof are ours, unreviewed"
PRIVTREE = (
    "Zhang, Xiao and Xie, PrivTree: a differentially private algorithm for hierarchical "
    "decompositions, SIGMOD (2016), doi:10.1145/2882903.2882928"
)
COPULA = (
    "Li, Xiong and Jiang, Differentially private synthesization of multi-dimensional data using "
    "copula functions (DPCopula), EDBT (2014), doi:10.5441/002/edbt.2014.43"
)
MARGINALS = (
    "McKenna, Miklau and Sheldon, Winning the NIST contest (PGM and MST), Journal of Privacy and "
    "Confidentiality 11 (2021), doi:10.29012/jpc.778, and McKenna, Mullins, Sheldon and Miklau, "
    "AIM, PVLDB 15 (2022), doi:10.14778/3551793.3551817"
)
HIDDEN = (
    "the number of rows is measured first with noise, and records are left out or added until "
    "there are as many; adding or removing a row then changes at most one of the records that "
    "the mechanism sees"
)
COVERS = (
    "Qardaji, Yang and Li, PriView: practical differentially private release of marginal "
    "contingency tables, SIGMOD (2014), doi:10.1145/2588555.2588575"
)
NOT_A_PERSON = "k-anonymity: rows are synthetic, and one may happen to have a person's values."
TAILS = "Tails: extreme values, and combinations that few people have, are mostly noise."


@dataclass(frozen=True)
class SynthesisTask:
    """The input of a synthesizer.

    Attributes:
        codes: the records.
        domains: of their columns.
        price: privacy parameter of the mechanism.
        total: the number of records as far as it is public.
        measured: the privacy loss of measuring it, if it is not public.
        zeros: combinations of codes that constraints do not allow.
    """

    codes: Columns
    domains: Sequence[Domain]
    price: Price
    total: RecordTotal
    measured: tuple[PrivacyLoss, ...] = ()
    zeros: tuple[Component, ...] = ()


@dataclass(frozen=True)
class Synthesizer:
    """A mechanism with its parameters, and facts about its run.

    Attributes:
        generate: the mechanism.
        notes: sentences for the report.
        plan: which marginals are measured, where it is marginals.
        padded: it is proved for change-one neighbours alone, so a table whose number of rows
            is not public is brought to a noisy number first.
    """

    generate: Callable[..., SyntheticRows]
    notes: Callable[[Mapping[str, Any]], tuple[str, ...]] = lambda _facts: ()
    plan: MaxentPlan | None = None
    padded: bool = False


Choose = Callable[[SynthesisTask, Setting[Any]], Synthesizer]
"""The synthesizer of a method, by public facts alone."""


def synthetic_method(
    name: str,
    summary: str,
    choose: Choose,
    *,
    parameters: type[SynthesisParameters],
    basis: str,
    added: str | None = None,
    source: str,
    unsupported: Sequence[str],
    refuse: Callable[[Setting[Any]], None] = lambda _setting: None,
    refuse_distributed: Callable[[Setting[Any]], None] | None = None,
    pure: PureAlone = lambda _setting: False,
    missing: Callable[[Any], bool] = lambda _parameters: True,
    cost: CostModel | Callable[[Setting[Any]], CostModel],
) -> Method[Any]:
    """Make a method that draws rows from a noisy model of all released columns.

    Args:
        name: as written in the policy.
        summary: one line.
        choose: the mechanism, with its parameters.
        parameters: of the method.
        basis: of its proof, in a sentence.
        added: of its proof for an added or removed record; without one, the table is brought to a
            noisy number of rows, and `basis` holds for it.
        source: whose idea it is.
        unsupported: sentences on uses for which the rows are not suited.
        refuse: what this method refuses beside what all do.
        refuse_distributed: what it refuses on Spark; none where the mechanism must see the records.
        pure: whether the choice may fall on a mechanism that has pure noise alone, so an epsilon
            with a delta is paid purely.
        missing: whether a missing cell can be a value of its own, by the parameters.
        cost: what a run takes.
    """

    def claims(setting: Setting[SynthesisParameters]) -> tuple[Claim, ...]:
        credit = f"{source}; {COMBINATION}"
        divided = setting.parameters.strata
        comes = contributions.adds(setting)
        empty = (contributions.NOT_EMPTY,) if comes else ()
        hidden = basis if contributions.rows_are_public(setting) else f"{HIDDEN}; {basis}"
        proof = added if added and comes else hidden
        found = discovery.open_columns(setting)
        claim = epsilon_claims.privacy_claim(
            setting,
            Status.PROVED,
            basis=f"{discovery.BASIS}; {proof}" if found else proof,
            source=credit,
            assumes=(
                *empty,
                *strata.assumes(divided),
                *([discovery.STATED] if found else ()),
            ),
            invariants=strata.invariants(setting, divided),
            rho=find_stated_rho(setting, pure),
        )
        return (claim,)

    run = partial(_run, choose=choose, native=added is not None, pure=pure)

    def refuse_setting(setting: Setting[SynthesisParameters]) -> None:
        _refuse(setting)
        refuse(setting)

    def refuse_in_blocks(setting: Setting[SynthesisParameters]) -> None:
        _refuse_distributed(setting)
        if refuse_distributed is not None:
            refuse_distributed(setting)

    return Method(
        name=name,
        summary=summary,
        reference=source,
        parameters=parameters,
        example=Example({"epsilon": 1}),
        forms=ReleaseForms((ReleaseForm.SYNTHETIC,)),
        promises=Promises(
            claims,
            lambda setting: (*_not_claimed(setting), *unsupported, TAILS),
            ContributionProof.ANY,
        ),
        run=run,
        expect=partial(_foresee, choose=choose, native=added is not None, pure=pure),
        refuse=refuse_setting,
        input=replace(noisy_microaggregation.UNSORTED, scaled=True, missing=missing),
        cost=cost,
        discovers=True,
        distributed=None
        if refuse_distributed is None
        else DistributedRun(
            lambda rows, setting, tools: _to_distributed(run(rows, setting, tools)),
            refuse_in_blocks,
        ),
    )


def anywhere(_setting: Setting[Any]) -> None:
    """Refuse nothing: the mechanism only counts."""


def _not_claimed(setting: Setting[SynthesisParameters]) -> tuple[str, ...]:
    least = setting.parameters.min_cell
    if least is None:
        return (NOT_A_PERSON,)
    text = (
        f"k-anonymity: each combination of the quasi-identifiers occurs at least {least} times, "
        "but among synthetic rows, which are not persons."
    )
    return (text,)


def _refuse(setting: Setting[SynthesisParameters]) -> None:
    refuse_prices(setting)
    discovery.refuse_discovery(setting)
    least, divided = setting.parameters.min_cell, setting.parameters.strata
    if divided is not None:
        strata.refuse(setting, divided)
    noisy_microaggregation.refuse_bare(setting)
    contributions.refuse_many_rows(setting)
    noisy_microaggregation.nobody_beside(setting)
    constrain_columns(setting)
    if least is not None:
        if setting.constraints.rules:
            raise InputError(
                "[protect], min_cell: merging rare combinations may break a rule of [constraints]. "
                "Remove min_cell or the rules."
            )
        if divided is not None:
            raise InputError(
                "[protect], min_cell: rows of different strata are not merged, so min_cell and "
                "strata cannot be combined. Remove one of them."
            )
        if not setting.schema.with_role(Role.QUASI_IDENTIFIER):
            raise InputError("[protect], min_cell: expected a quasi-identifier, found none.")
        if setting.rows is not None and setting.rows < least:
            raise InputError(
                f"[protect], min_cell: expected at most the number of rows, {setting.rows:,}, "
                f"found {least:,}."
            )


def _refuse_distributed(setting: Setting[SynthesisParameters]) -> None:
    """Refuse what needs the records themselves, because they lie on Spark."""
    if setting.parameters.strata is not None:
        raise InputError(
            "[protect], strata: not available on Spark. Remove strata, or run on one machine."
        )
    if not contributions.rows_are_public(setting):
        raise InputError(
            "[protect], neighbours: on Spark, methods that draw synthetic rows take the number "
            "of rows as public. Expected change-one, and exact_contributions in place of "
            "max_contributions; or use dp-kdtree or dp-quadtree, or run on one machine."
        )


@dataclass(frozen=True, eq=False)
class _Learnt:
    """The result of a mechanism on one table, or on one stratum."""

    stratum: Stratum | None
    drawn: SyntheticRows
    privacy_losses: tuple[PrivacyLoss, ...]
    notes: tuple[str, ...]


def _run(
    rows: Table | CountableRows,
    setting: Setting[SynthesisParameters],
    tools: Tools,
    *,
    choose: Choose,
    native: bool,
    pure: PureAlone,
) -> Masked:
    """Model the table, or each stratum, and draw rows."""
    price = row_price(setting, pure)
    space = constrain_columns(setting)
    domains = [domain_of(axis) for axis in space.modelled]
    learnt: list[_Learnt] = []
    for stratum, codes in _parts(rows, setting, space):
        task = _task(codes, domains, setting, tools.noise, price=price, native=native)
        task = replace(task, zeros=space.zeros)
        synthesizer = choose(task, setting)
        if synthesizer.padded and contributions.adds(setting):
            task = _pad(task, setting, tools.noise, least=2)
        known = {"total": task.total} if task.price.neighbours is Neighbours.ADD_REMOVE else {}
        drawn = synthesizer.generate(
            task.codes,
            domains,
            price=task.price,
            noise=tools.noise,
            rng=tools.rng,
            progress=tools.progress,
            **known,
        )
        losses = (*task.measured, *drawn.privacy_losses)
        notes = _notes(task, drawn.facts, synthesizer.notes(drawn.facts))
        learnt.append(_Learnt(stratum, drawn, losses, notes))
    template = rows if isinstance(rows, Table) else rows.template
    columns = zip(*(part.drawn.rows for part in learnt), strict=True)
    cells = [
        _settle_cells(*pair)
        for pair in zip(space.space, space.decode(list(map(np.concatenate, columns))), strict=True)
    ]
    if setting.parameters.strata is not None:
        return _stack(template, learnt, cells, setting, space)
    if setting.parameters.min_cell is not None:
        tools.progress("merging rare combinations", 0, 1)
        cells = _without_rare(space.space, cells, setting.parameters.min_cell)
    (only,) = learnt
    return Masked(
        data=redrawn(template, list(zip(space.space, cells, strict=True))),
        privacy_losses=only.privacy_losses,
        notes=only.notes,
        extras=_publish_answers(setting, tabulate(only.drawn.measurements, space.modelled)),
    )


def _foresee(
    setting: Setting[SynthesisParameters],
    *,
    choose: Choose,
    native: bool,
    pure: PureAlone,
) -> tuple[Expectation, ...]:
    """Predict the noise of marginals; None for strata, whose sizes are unknown."""
    n = setting.rows or 0
    if not n or setting.parameters.strata is not None or discovery.open_columns(setting):
        return ()
    space = constrain_columns(setting)
    names = [axis.column.name for axis in space.modelled]
    domains = [domain_of(axis) for axis in space.modelled]
    price = row_price(setting, pure)
    if not contributions.rows_are_public(setting):
        drawn = native and contributions.adds(setting)
        price *= 1 - (TOTAL_SHARE if drawn else contributions.SHARE)
        if not drawn:
            price = replace(price, neighbours=Neighbours.CHANGE_ONE)
    pairs = max(comb(len(names), 2), 1)
    per = "pair of columns" if len(names) > 1 else "column"
    strength = float(n * worth(domains, price) / WORTH[price.neighbours] / pairs)
    number = f"{float(f'{strength:.3g}'):,g}"
    as_much = "" if price.rho is None else f" ({AS_MUCH})"
    expectations = [
        Expectation(
            "n_epsilon",
            strength,
            f"The number of rows n times epsilon{as_much} is {number} for each {per}.",
        )
    ]
    expectations += [
        Expectation("warning", strength, text) for text in warnings(domains, n=n, price=price)
    ]
    nobody = HeldColumns([np.broadcast_to(np.int64(0), n) for _ in domains])
    public = RecordTotal(float(n))
    task = SynthesisTask(nobody, domains, price, public, zeros=space.zeros)
    plan = choose(task, setting).plan
    if plan is None:
        return tuple(expectations)
    one_way, two_way = foresee_errors(domains, plan, n=n, price=price)
    for axis, error in zip(space.modelled, one_way, strict=True):
        name = axis.column.name
        text = f"Noise moves a share of '{name}' by {100 * error:.2g} percentage points."
        expectations.append(Expectation(f"one_way.{name}", error, text))
        if axis.column.kind is Kind.NUMERIC and axis.column.bounds is not None:
            low, high = (float(cast("Any", bound)) for bound in axis.column.bounds)
            off = error * (high - low) / 2
            amount = f"{off:,.0f}" if off >= 10 else f"{off:.2g}"
            text = f"Noise moves the mean of '{name}' by about {amount}, given its bounds."
            expectations.append(Expectation(f"mean.{name}", off, text))
    if two_way:
        mean = sum(two_way.values()) / len(two_way)
        (a, b), worst = max(two_way.items(), key=lambda pair: pair[1])
        most = f"most for '{names[a]}' and '{names[b]}', by {100 * worst:.2g}%"
        text = f"Noise moves two-way marginals by {100 * mean:.2g}% on average (total variation)"
        expectations.append(Expectation("two_way", mean, f"{text}, {most}."))
        expectations.append(Expectation("groups", plan.groups, groups_text(plan, space.zeros)))
    return tuple(expectations)


def _to_distributed(done: Masked) -> Distributed:
    """Wrap the result of counts as that of a run on Spark."""
    return Distributed(
        data=done.data, privacy_losses=done.privacy_losses, notes=done.notes, extras=done.extras
    )


def _parts(
    rows: Table | CountableRows,
    setting: Setting[SynthesisParameters],
    space: ConstrainedSpace,
) -> list[tuple[Stratum | None, Columns]]:
    """Encode each stratum, or the whole table."""
    if not isinstance(rows, Table):
        return [(None, Coded(rows, partial(_encode, space=space)))]
    codes, name = _encode(rows, space), setting.parameters.strata
    if name is None:
        return [(None, HeldColumns(codes))]
    return [
        (stratum, HeldColumns([column[stratum.members] for column in codes]))
        for stratum in strata.divide(rows, setting, name)
    ]


def _task(
    codes: Columns,
    domains: Sequence[Domain],
    setting: Setting[SynthesisParameters],
    noise: Noise,
    *,
    price: Price,
    native: bool,
) -> SynthesisTask:
    """Measure the number of rows if it is not public.

    A mechanism without a proof for added records gets a table padded or cut to that number. So does
    one where a person may change several rows, because a changed row costs less than a removal and
    an addition.
    """
    if contributions.rows_are_public(setting):
        return SynthesisTask(codes, domains, price, RecordTotal(float(len(codes))))
    least = setting.parameters.min_cell or 1
    if not native or not contributions.adds(setting):
        task = SynthesisTask(codes, domains, price, RecordTotal(0.0))
        return _pad(task, setting, noise, least=least if native else max(least, 2))
    total_budget = price * TOTAL_SHARE
    total, number = measure_total(len(codes), price=total_budget, noise=noise, least=least)
    return SynthesisTask(codes, domains, price - total_budget, total, (number,))


def _pad(
    task: SynthesisTask, setting: Setting[SynthesisParameters], noise: Noise, *, least: int
) -> SynthesisTask:
    """Measure the number of rows, and pad or cut the table to it; see `contributions`.

    It is averaged with an earlier measurement, if there is one.
    """
    total_budget = task.price * contributions.SHARE
    least = max(least, setting.parameters.min_cell or 1)
    total, number = measure_total(len(task.codes), price=total_budget, noise=noise, least=least)
    if task.measured:
        total = total.refine([(task.total.estimate, task.total.variance)])
    if not isinstance(task.codes, HeldColumns):
        raise InternalError("Records in blocks cannot be brought to a noisy number.")
    shown = contributions.fit_rows(task.codes.columns, task.domains, total=total.rows, noise=noise)
    rest = replace(task.price - total_budget, neighbours=Neighbours.CHANGE_ONE)
    public = RecordTotal(float(total.rows))
    measured = (*task.measured, number)
    return SynthesisTask(HeldColumns(shown), task.domains, rest, public, measured, task.zeros)


def _notes(
    task: SynthesisTask, facts: Mapping[str, Any], notes: tuple[str, ...]
) -> tuple[str, ...]:
    """Collect the notes on a run."""
    sizes = [
        f"The number of rows was measured with noise of scale {_write_value(number.scale)}."
        for number in task.measured
    ]
    ran = "; ".join(f"{name}: {_write_value(value)}" for name, value in facts.items())
    warned = warnings(task.domains, n=task.total.rows, price=task.price)
    return (
        *sizes,
        *notes,
        f"Settings and diagnostics: {ran}.",
        *(text for text in warned if text not in notes),
    )


def _stack(
    table: Table,
    learnt: Sequence[_Learnt],
    cells: Sequence[Ints | Floats],
    setting: Setting[SynthesisParameters],
    space: ConstrainedSpace,
) -> Masked:
    """Concatenate the rows of all strata into the release."""
    name = cast("str", setting.parameters.strata)
    parts = [(cast("Stratum", part.stratum), part) for part in learnt]
    privacy_losses: list[PrivacyLoss] = []
    for stratum, part in parts:
        privacy_losses += strata.side_by_side(part.privacy_losses, name, stratum.name)
    sizes = {stratum.name: len(part.drawn.rows[0]) for stratum, part in parts}
    axis = spatial_encoding(setting.schema[name])
    where = np.repeat([stratum.code for stratum, _ in parts], list(sizes.values()))
    column = np.argsort(cast("Ints", axis.order))[where] - axis.first
    notes = [f"{stratum.name}: {note}" for stratum, part in parts for note in part.notes]
    measured = {s.name: tabulate(part.drawn.measurements, space.modelled) for s, part in parts}
    return Masked(
        data=redrawn(table, [*zip(space.space, cells, strict=True), (axis, column)]),
        privacy_losses=tuple(privacy_losses),
        notes=(*strata.notes(setting.schema, name, sizes), *notes),
        extras=_publish_answers(setting, stack_strata(measured, name)),
    )


def _publish_answers(
    setting: Setting[SynthesisParameters], measurements: Mapping[str, Any]
) -> dict[str, Mapping[str, Any]]:
    """Return the noisy answers, unless they would show constraints copied from the data."""
    return {} if setting.constraints.observed else {"measurements": measurements}


def _encode(table: Table, space: ConstrainedSpace) -> list[Ints]:
    return space.encode([axis.cells(table) for axis in space.space])


def _settle_cells(axis: SpatialEncoding, cells: Ints | Floats) -> Ints | Floats:
    """Round codes, except on a grid, where a mean of codes is a value."""
    return cells if axis.grid is not None else np.rint(cells).astype(np.int64)


def _without_rare(
    space: Sequence[SpatialEncoding], rows: list[Ints | Floats], least: int
) -> list[Ints | Floats]:
    """Merge rows with rare combinations of the quasi-identifiers; see `merge_rare`."""
    keys = [j for j, axis in enumerate(space) if axis.column.role is Role.QUASI_IDENTIFIER]
    unit = np.column_stack([rows[j] / max(space[j].count - 1, 1) for j in keys])
    nominal = np.array([space[j].column.kind is Kind.NOMINAL for j in keys])
    source = merge_rare_rows(unit, nominal, least)
    return [cells[source] if j in keys else cells for j, cells in enumerate(rows)]


def _write_value(value: Any) -> str:
    if isinstance(value, float | Fraction):
        return f"{float(value):.3g}"
    if isinstance(value, list):
        return ", ".join(map(_write_value, value))
    return str(value)
