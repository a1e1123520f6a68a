"""Claims of the methods that spend epsilon, weakened where the policy uses the data."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from shoal.core import (
    KNOWN_COLUMNS,
    Claim,
    DifferentialPrivacy,
    KAnonymity,
    Kind,
    Neighbours,
    ReleaseForm,
    Schema,
    Status,
    write_fraction,
)
from shoal.methods.grouping.microaggregation import of_persons, one_row
from shoal.methods.method import (
    Setting,
)
from shoal.methods.noise import contributions
from shoal.methods.noise.noisy_microaggregation import EpsilonParameters, NoisyParameters, Origin

FIXED_GROUPS = (
    "both tables have the same groups (the data set to be protected is the microaggregated one, "
    "not the original)"
)
MICROAGGREGATED = "the microaggregated table"
RECORDS = "the original records"
FILE_ORDER = "the order of the rows in the file reveals nothing about the protected columns"
OURS = "ours, unreviewed"
STATED_BOUNDS = (
    "state bounds that are known without the table (bounds = [low, high] for each column): the "
    "claim is kept, with noise in proportion to their width"
)
LIST_BASIS = (
    "Lemma 1 of sanchez2014: a changed record moves the sorted block means of a column by at "
    "most width / k in total; the output does not show which row is in which block"
)


def privacy_claim(
    setting: Setting[EpsilonParameters],
    status: Status,
    *,
    basis: str,
    source: str,
    assumes: Sequence[str] = (),
    invariants: Sequence[str] = (),
    epsilon: Fraction | None = None,
    rho: Fraction | None = None,
    about: str = "",
    instead: str = "",
) -> Claim:
    """Claim differential privacy, weakened by what the policy reads off the data.

    A refuted claim says in `instead` what keeps its aim.

    Bounds from the data refute any proof; categories that were copied from the data make
    it conditional on their being public. Columns that are released beside the protected ones
    are public, and named as invariants. The epsilon is the whole release's unless given. Where
    prices are counted in rho, the claim is of that rho, or of the epsilon that it has at a delta.
    """
    schema, parameters = setting.schema, setting.parameters
    assumptions = [*one_row(schema), *assumes]
    if setting.release_form is ReleaseForm.ROW_ALIGNED:
        assumptions.append(FILE_ORDER)
    strata = getattr(parameters, "strata", None)
    # The list of strata is released too: under add-remove, each of them must have rows.
    listed = (*setting.columns, *([strata] if strata else []))
    observed = [name for name in listed if schema[name].observed]
    measured = any(schema[name].kind in {Kind.NUMERIC, Kind.DATE} for name in setting.columns)
    from_data = (
        isinstance(parameters, NoisyParameters)
        and parameters.bounds is Origin.FROM_DATA
        and measured
    )
    known = []
    if parameters.neighbours is Neighbours.CHANGE_ONE:
        counted = "rows" if contributions.rows_are_public(setting) else "persons"
        known = [f"the number of {counted}"]
    if status is not Status.REFUTED:
        basis = explain_rows(basis, schema)
    public = [name for name in schema.released if name not in {*setting.columns, strata}]
    if public:
        invariants = (f"the public columns {', '.join(public)}", *invariants)
    if from_data and status is not Status.REFUTED:
        status, source, instead = Status.REFUTED, OURS, STATED_BOUNDS
        basis = (
            "counterexample: bounds were read off the data. If the largest value is lowered, "
            "the bound falls with it: values above the new bound have positive probability "
            "under one table and are impossible under the other"
        )
    elif observed and status is not Status.REFUTED:
        status = Status.CONDITIONAL
        assumptions.append(
            f"the categories of {', '.join(observed)}, which were copied from the data, are public"
        )
    wanted, delta = epsilon, Fraction(0)
    if wanted is None and parameters.epsilon is not None:
        wanted = Fraction(parameters.epsilon)
    if rho is not None:
        delta = Fraction(getattr(parameters, "delta", None) or 0)
        basis = f"{basis}; {_in_rho(rho, delta)}"
    return Claim(
        guarantee=DifferentialPrivacy(
            epsilon=wanted,
            neighbours=parameters.neighbours,
            protects=setting.columns,
            invariants=(*known, *invariants),
            privacy_unit="row" if schema.persons is None else "person",
            rows=contributions.most(schema),
            delta=delta,
            rho=rho,
            about=RECORDS if status is Status.REFUTED else about,
        ),
        status=status,
        basis=basis,
        assumes=tuple(assumptions),
        source=source,
        release_form=setting.release_form,
        instead=instead if status is Status.REFUTED else "",
    )


def explain_rows(basis: str, schema: Schema) -> str:
    """Add to the basis of an epsilon what a person's rows cost, if there are several."""
    most = contributions.most(schema)
    if most == 1:
        return basis
    how = "exactly" if schema.persons and schema.persons.exact else "at most"
    return f"{basis}; a person has {how} {most:,} rows, and each row costs epsilon / {most:,}"


def _in_rho(rho: Fraction, delta: Fraction) -> str:
    """Say in words how a claim in rho was derived."""
    added = (
        f"in zero-concentrated differential privacy, losses add up to rho = {write_fraction(rho)}"
    )
    if not delta:
        return added
    return (
        f"{added}, which is epsilon at delta; delta is a probability, {write_fraction(delta)} at "
        "most over the whole release, with which more than epsilon may become known"
    )


def has_fixed_blocks(rows: int, k: int) -> bool:
    """Whether MDAV on one column cuts at ranks that depend on k and the number of rows alone.

    It takes k values from the lower and the upper end in turn. If k divides the number of rows,
    or floor(rows / k) is odd, what is left in the middle is one group, or two of k; otherwise
    the larger of the last two lies on the side that the data decides.
    """
    return rows % k == 0 or (rows // k) % 2 == 1


def keep_links(error: str) -> str:
    """Say what keeps epsilon and the links between columns, beside the error of this method.

    Figures are those of docs/papers/sanchez2014-beside.csv, which a test compares with these.
    """
    return (
        "'auto' and 'maxent' draw new rows, which are nobody's: they keep epsilon and the links "
        "between columns. In a test on age and hours of Adult (epsilon 1, k = 100), counts over "
        "half of each range were off by 1.9% with 'auto', by 0.49% with 'maxent', and by "
        f"{error} with this method"
    )


def list_claim(setting: Setting[NoisyParameters], k: int, *, refutation: str) -> Claim:
    """Claim differential privacy for lists of block means that MDAV forms on single columns.

    The number of rows is unknown at planning, so the claim is conditional on it.
    """
    if setting.rows is None:
        given = f"k = {k} divides the number of rows n, or floor(n / k) is odd"
        return privacy_claim(
            setting, Status.CONDITIONAL, basis=LIST_BASIS, source=OURS, assumes=[given]
        )
    if has_fixed_blocks(setting.rows, k):
        return privacy_claim(setting, Status.PROVED, basis=LIST_BASIS, source=OURS)
    return privacy_claim(
        setting,
        Status.REFUTED,
        basis=refutation,
        source=OURS,
        instead="'ir-laplace' cuts at ranks that depend on k and the number of rows alone, so its "
        "lists are proved, at the same noise; here, too, for a k that divides the number of rows",
    )


def one_list(setting: Setting[NoisyParameters], *, ranked: bool = False) -> bool:
    """Whether the release is an unordered list of one column's block means.

    A nominal's groups have no means, unless it is ranked: Lemma 1 is about sums, and does not apply
    to categories chosen for groups that depend on the data.
    """
    if len(setting.columns) > 1 or setting.release_form is not ReleaseForm.LINKED_SHUFFLED:
        return False
    return ranked or setting.schema[setting.columns[0]].kind is not Kind.NOMINAL


def claim_shared_rows(
    setting: Setting[Any],
    k: int,
    source: str,
    columns: tuple[str, ...] = (),
    basis: str = "by construction: all records of a group are released with the same noisy centre",
) -> Claim:
    """Claim k-anonymity: noise is drawn once per group, so its records stay equal.

    It covers all protected columns together, unless groups are of some columns. Groups are not
    merged by persons, which would move them. Of r rows per person, a group of k rows holds those of
    at least k / r persons.
    """
    rows = contributions.most(setting.schema)
    persons = -(-k // rows)
    if rows > 1:
        basis = f"{basis}; of {k:,} records, no more than {rows:,} are one person's"
    return Claim(
        guarantee=KAnonymity(persons, columns or setting.columns),
        status=of_persons(setting.schema),
        basis=basis,
        assumes=(KNOWN_COLUMNS, *one_row(setting.schema)),
        source=source,
        release_form=setting.release_form,
    )
