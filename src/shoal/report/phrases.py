"""Plain sentences for readers outside the field: promises, advice, a glossary.

Each function takes parts of a manifest, which is public. Nothing here reads data.
"""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import exp
from typing import Any

from shoal.core import ReleaseForm, RiskMeasure
from shoal.core.concentrated import epsilon_of
from shoal.core.constraint_language import find_columns
from shoal.core.manifest import Manifest
from shoal.errors import count_noun
from shoal.methods import find

STATUS_WORDS = {
    "proved": "proved",
    "conditional": "conditional: true if the assumptions below hold",
    "unproven": "unproven: we know no proof",
    "refuted": "refuted: a counterexample exists",
}

FORM_WORDS = {
    "row-aligned": "Row i of the release is about row i of the original.",
    "linked-shuffled": "Each row stands for one row of the original; the rows are shuffled.",
    "canonical": "Groups of rows stand in a public order, which does not show whose row is whose.",
    "column-shuffled": "Each column is shuffled by itself: no row is a person.",
    "synthetic": "Rows are drawn from a model: no row is a person.",
    "tree": "A row is a box: ranges of the quasi-identifiers, with counts of people.",
}

ROLE_WORDS = {
    "identifier": "The column names a person, and is dropped from every release.",
    "quasi-identifier": "Others may know a person's value. Together, such columns may single "
    "somebody out, so they are protected.",
    "confidential": "Nobody should learn a person's value. The column is released as it is, "
    "unless the method protects it, too.",
    "other": "The column is neither known to others nor secret. It is released as it is.",
}

KIND_WORDS = {
    "numeric": "Numbers on a scale on which averages have a meaning.",
    "ordinal": "Categories with an order: that of the list of categories.",
    "nominal": "Categories without an order.",
    "date": "Dates or times.",
    "discover": "Found with noise, with limits or categories, for a share of epsilon. For methods "
    "that draw rows, with a delta.",
}

WHY_BOUNDS = (
    "State what can occur at all, from public knowledge, and not what occurs in the table: limits "
    "read off the data disclose the person at the end, and no epsilon can be proved with them."
)

WHY_FOUND = (
    "Find them with noise, for a share of epsilon: nothing has to be known beforehand, and what "
    "few people have is not found. For methods that draw rows."
)

WHY_CATEGORIES = (
    "State every value that can occur at all. A list copied from the data discloses which "
    "values somebody has, so a claim of differential privacy becomes conditional."
)

REMARK_WORDS = {
    "classes": "Number of equivalence classes",
    "failing_classes": "Equivalence classes that fail the check",
    "homogeneous_classes": "Equivalence classes in which all share a value",
    "counted": "Unit that is counted",
    "k_if_missing_matches_anything": "k, if a missing cell is taken to match any value",
    "k_if_missing_is_a_value": "k, if a missing cell is a value of its own",
    "patterns_of_missing_cells": "Number of patterns of missing cells; matching them takes long",
}

JUDGEMENT = (
    (
        "Whether the roles are right: which columns others may know, and what nobody should learn. "
        "Everything above rests on them."
    ),
    "Whether the assumptions of each promise hold for your recipients and your people.",
    "Whether the remaining gain of an attacker is acceptable for this purpose and this recipient.",
    "Whether the losses, and whom they hit, are acceptable for the analyses that are planned.",
    (
        "Whether the release discloses more together with earlier or planned releases of the same "
        "people."
    ),
    "Whether law, contracts and promises to the people in the table allow the release.",
)

LIMITS = (
    "A promise is about the attacker whom its assumptions describe, and about no other.",
    (
        "An attack that finds little shows that this attacker finds little. Another, with other "
        "knowledge or a better method, may find more: an attack shows harm, and never excludes it."
    ),
    "Intervals cover the choice of the people who were attacked, not the choice of the attack.",
    (
        "A check is exact and is about the released table alone. It counts rows unless it says "
        "that it counted persons."
    ),
    "Bounds, categories, hierarchies and roles are the steward's word; nothing can verify them.",
)

GLOSSARY = {
    "Attack": "An attempt to learn something about a person from the release, run here to see "
    "how often it succeeds.",
    "Baseline": "How often somebody succeeds who does not use the release, or uses it blindly.",
    "Check": "A promise recomputed on the finished table, exactly.",
    "Claim": "A promise with its status, its reason, its assumptions and its source.",
    "Class, group": "All rows with the same values of the quasi-identifiers: an equivalence class.",
    "Confidential": "What nobody should learn about a person, such as an income.",
    "Control": "People of the same population who are not in the table. What an attack learns "
    "about them is not due to their being in it.",
    "Differential privacy": "One person's row changes the probability of any outcome by a factor "
    "of at most exp(epsilon), whatever the attacker knows.",
    "Digest (SHA-256)": "A fingerprint of a file: a changed file has, in practice, another digest.",
    "Epsilon": "The privacy loss that differential privacy allows: the smaller, the more is "
    "hidden. The epsilons of several releases add up.",
    "Estimate": "A measured figure with an interval. It promises nothing.",
    "Identifier": "What names a person. Identifiers are dropped from every release.",
    "Interval": "A range that holds the true figure in 95 of 100 such measurements.",
    "k-anonymity": "Every combination of quasi-identifiers is shared by at least k rows.",
    "l-diversity": "Every class has diverse confidential values: at least l, as counted.",
    "Quasi-identifier": "What others may know about a person, such as age or region; together, "
    "such columns may single somebody out.",
    "t-closeness": "In every class, confidential values are distributed nearly as in the table.",
    "Total variation": "The largest difference in the share of any set of values; numbers are put "
    "into ranges first.",
    "Variance": "The mean squared deviation from the mean. SSE / SST is the squared error as a "
    "share of it: 0 means no error, 1 is as much as publishing only the mean.",
    "Witness": "The group of released rows that decides a check, by its row numbers.",
}

PUBLIC_GLOSSARY = {
    name: text
    for name, text in GLOSSARY.items()
    if name
    not in {"Attack", "Baseline", "Control", "Estimate", "Interval", "Total variation", "Variance"}
}
"""What a public report needs: it holds no measurement."""


def list_names(names: Sequence[str], *, joint: str = "and") -> str:
    """Write names as a sentence does.

    >>> list_names(["a", "b", "c"])
    'a, b and c'
    """
    names = [str(name) for name in names] or ["nothing"]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {joint} {names[-1]}"


def number(value: float) -> str:
    """Write a number with three digits, large ones as whole numbers.

    >>> number(0.123456), number(12345.6)
    ('0.123', '12,346')
    """
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """Write a share as a percentage with three digits.

    >>> percent(0.123456), percent(0.0012345), percent(0.00001), percent(1)
    ('12.3%', '0.123%', 'under 0.01%', '100%')
    """
    return "under 0.01%" if 0 < share < 1e-4 else f"{number(100 * share)}%"


def title(guarantee: Mapping[str, Any]) -> str:
    """Name a guarantee with its parameters.

    >>> title({"name": "k-anonymity", "k": 5, "columns": ["age", "sex"]})
    'k-anonymity with k = 5 of age, sex'
    """
    name = guarantee["name"]
    if name == "differential-privacy":
        delta = f", delta = {guarantee['delta']}" if guarantee.get("delta") else ""
        price = f"epsilon = {guarantee['epsilon']}{delta}"
        if guarantee["epsilon"] is None:
            name, price = f"zero-concentrated {name}", f"rho = {guarantee['rho']}"
        return (
            f"{name} with {price} ({guarantee['neighbours']} "
            f"neighbours) of {', '.join(guarantee['protects'])}"
        )
    of = f"of {', '.join(guarantee['columns'])}"
    if "measure" in guarantee:
        return f"{guarantee['measure']} {_risk_bound(guarantee)} {of}"
    if name == "k-anonymity":
        return f"{name} with k = {guarantee['k']} {of}"
    given = f"given {', '.join(guarantee['keys'])}"
    if name == "l-diversity":
        return f"{name} ({guarantee['kind']}) with l = {guarantee['l']} {of} {given}"
    if name == "t-closeness":
        return f"{name} ({guarantee['distance']}) with t = {guarantee['t']} {of} {given}"
    return f"stochastic t-closeness with t = {float(guarantee['t']):.4g} {of} {given}"


def meaning(guarantee: Mapping[str, Any]) -> str:
    """Say what a guarantee means for a person in the table."""
    name = guarantee["name"]
    if "measure" in guarantee:
        keys, bound = list_names(guarantee["columns"]), _risk_bound(guarantee)
        return _RISKS[RiskMeasure(guarantee["measure"])].format(**guarantee, keys=keys, bound=bound)
    if name == "k-anonymity":
        k = guarantee["k"]
        return (
            f"Every combination of {list_names(guarantee['columns'])} in the released table is "
            f"shared by at least {k} people. An attacker who knows nothing else about somebody "
            f"cannot narrow that person down to fewer than {k} people."
        )
    if name == "differential-privacy":
        return _epsilon_meaning(guarantee)
    what, keys = list_names(guarantee["columns"]), list_names(guarantee["keys"])
    where = f"Among the rows that share {keys},"
    if name == "l-diversity":
        return f"{where} {_DIVERSE[guarantee['kind']].format(**guarantee, what=what)}"
    if name == "t-closeness":
        how = (
            f"no share differs by more than a factor of {guarantee['t']}"
            if guarantee["distance"] == "ratio"
            else f"the distance is at most {guarantee['t']}"
        )
        return f"{where} {what} is distributed nearly as in the whole table: {how}."
    return (
        f"{where} what was drawn for {what} is distributed nearly as for everybody: probabilities "
        f"differ by a factor of at most {float(guarantee['t']):.4g}."
    )


_DIVERSE = {
    "distinct": "there are at least {l} different values of {what}.",
    "entropy": "{what} is at least as uncertain as {l} equally frequent values.",
    "recursive": "the most frequent value of {what} is rarer than {c} times all values from "
    "the {l}-th most frequent on, together.",
    "frequency": "no value of {what} has a share above 1 / {l}.",
}


_RISKS = {
    RiskMeasure.INDIVIDUAL: "For every row, the estimated probability that a match on {keys} is "
    "right is {bound}.",
    RiskMeasure.HOUSEHOLD: "For every row, the estimated probability that a member of its "
    "household is matched on {keys} is {bound}.",
    RiskMeasure.K_MAP: "The people of the population who agree with a row in {keys} are {bound}.",
    RiskMeasure.HOUSEHOLD_K: "The households that share a row's combination of {keys} are {bound}.",
    RiskMeasure.SUDA: "The DIS-SUDA score of every row, which says how special it is in small sets "
    "of {keys}, is {bound}.",
}


def _risk_bound(guarantee: Mapping[str, Any]) -> str:
    counts = RiskMeasure(guarantee["measure"]).counts
    return f"{'at least' if counts else 'at most'} {guarantee['limit']}"


_SMALL = 1e-9
"""The delta at which a rho is put into words."""


def group_size(size: int, remarks: Mapping[str, Any]) -> str:
    """Write the size of the group that decides a check, in the counted units.

    >>> group_size(4, {"counted": "persons"}), group_size(1, {})
    ('4 persons', '1 record')
    """
    return count_noun(size, "person" if remarks.get("counted") == "persons" else "record")


def _epsilon_meaning(guarantee: Mapping[str, Any]) -> str:
    delta = guarantee.get("delta")
    if guarantee["epsilon"] is None:
        rho, delta = float(Fraction(str(guarantee["rho"]))), _SMALL
        epsilon = epsilon_of(rho, delta)
    else:
        epsilon = float(Fraction(str(guarantee["epsilon"])))
    factor = f"{exp(epsilon):.3g}" if epsilon < 700 else "an astronomical number"
    row = guarantee.get("privacy_unit", "row") == "row"
    records = "one row" if row else "the rows of one person"
    change = (
        f"whether {records if row else 'one person'} is in the table or not"
        if guarantee["neighbours"] == "add-remove"
        else f"whatever {records} may hold"
    )
    whom = "a person who has one row" if row else "one person"
    weak = " Such a factor hides little." if epsilon > 5 else ""
    if delta:
        weak = (
            f"{weak} Delta is a probability: of {delta} at most, over the whole "
            "release, that more becomes known than this factor says."
        )
    if guarantee["epsilon"] is None:
        weak = f"{weak} A rho has such a factor for every delta; a smaller delta has a larger one."
    return (
        f"For {list_names(guarantee['protects'])}: {change}, no outcome of this release becomes "
        f"more than {factor} times as likely. So an attacker's odds for any guess about {whom} "
        f"change by a factor of at most {factor}, whatever else the attacker knows.{weak}"
    )


def uses(manifest: Manifest) -> tuple[list[str], list[str]]:
    """Advise how to use a released table, and how not to, by its form and treatment."""
    form, kinds = manifest.release_form, _kinds(manifest)
    protected = [name for name in list_protected(manifest) if name in manifest.columns]
    ranges = [n for n in protected if kinds[n] in _MEASURED and manifest.columns[n] == "String"]
    plain = [n for n in protected if kinds[n] in _MEASURED and n not in ranges]
    cells = find(manifest.method).cells
    do, dont = [], []
    if form is ReleaseForm.TREE:
        do.append("Add up the counts of the boxes that a question covers; where it covers part "
                  "of a box, take that part of its count.")  # fmt: skip
        dont.append("Do not read a box as a person. Counts may be fractions or below 0.")
    elif form is ReleaseForm.SYNTHETIC:
        do.append("Use the rows as a sample of a model of the people: for counts, shares, means "
                  "and relations between columns.")  # fmt: skip
        dont.append("Do not read a row as a person: no row is one, even if it looks like one.")
        dont.append("Do not rely on what is rare: a model is worst at small groups.")
    elif form is ReleaseForm.COLUMN_SHUFFLED:
        do.append("Use each column by itself: its mean, its quantiles, its shares.")
        dont.append("Do not cross, correlate or regress columns: each column was shuffled by "
                    "itself, so any relation in the table is chance.")  # fmt: skip
    else:
        do.append("Use the table for counts, means and relations of many rows.")
        dont.append(
            "Do not take a row for the truth about a person."
            if not protected
            else f"Do not take missing cells of {list_names(protected)} for missing at random: "
            "cells may have been blanked where combinations are rare."
            if cells.blanks
            else "Do not take a protected cell for the truth about a person: "
            f"{list_names(protected)} may have been changed."
        )
    if ranges:
        do.append(
            f"Treat {list_names(ranges)} as ranges: the value lies somewhere between the ends."
        )
        dont.append("Do not replace a range by its middle where exactness matters; try both "
                    "ends.")  # fmt: skip
    if manifest.privacy_losses:
        do.append("Allow for noise: average over many rows, and give intervals that account for "
                  "it, as below.")  # fmt: skip
        dont.append(
            "Do not use standard errors from software as they are: noise inflates variances and "
            "weakens relations between noisy columns, and the usual formula allows for neither."
        )
    elif (
        plain and form not in {ReleaseForm.TREE, ReleaseForm.SYNTHETIC} and not cells.keeps_numbers
    ):
        dont.append(
            f"Do not use {list_names(plain)} for extremes or for variances: similar people share "
            "one value, so variances tend to be too small, and extremes to be lost."
        )
    weights = [n for n, spec in manifest.policy["columns"].items() if spec.get("sampling_weight")]
    if weights and weights[0] in manifest.columns:
        do.append(f"Weight rows by '{weights[0]}' in statements about the population.")
    do.append("State the method and its parameters when you publish results.")
    dont += [
        (
            "Do not try to find out who is in the table, and do not link it to other files about "
            "people."
        ),
        (
            "Do not read a promise as more than it says: its assumptions and the list of "
            "what is not promised belong to it."
        ),
    ]
    return do, dont


_MEASURED = ("numeric", "date")

_LOADED = {
    "csv": (
        'pl.read_csv(folder / "{0}", separator="{1}", decimal_comma={3}, infer_schema_length=None)',
        'read.csv(file.path(folder, "{0}"), sep = "{1}", dec = "{2}", check.names = FALSE)',
    ),
    "parquet": (
        'pl.read_parquet(folder / "{0}")',
        'arrow::read_parquet(file.path(folder, "{0}"))',
    ),
    "xlsx": ('shoal.read(folder / "{0}").frame', 'readxl::read_excel(file.path(folder, "{0}"))'),
    "sav": ('shoal.read(folder / "{0}").frame', 'haven::read_sav(file.path(folder, "{0}"))'),
    "dta": ('shoal.read(folder / "{0}").frame', 'haven::read_dta(file.path(folder, "{0}"))'),
    "xpt": ('shoal.read(folder / "{0}").frame', 'haven::read_xpt(file.path(folder, "{0}"))'),
}
"""The table of a folder in Python and R, by name, delimiter, decimal and whether it is a comma."""


def analysis(manifest: Manifest) -> dict[str, Any] | None:
    """Explain how to read changed cells, with lines of Python and R; empty for boxes."""
    tables = [name for name in manifest.files if name.startswith("release.")]
    if manifest.release_form is ReleaseForm.TREE or not tables:
        return None
    name = tables[0].split("/")[0]
    # Cells may be intervals, sets, ancestors and stars.
    output = manifest.parameters.get("output", "intervals")
    coarser = find(manifest.method).cells.generalises and output == "intervals"
    names = list_protected(manifest) if coarser else _list_bucketed(manifest)
    texts = [name for name in names if manifest.columns.get(name) == "String"]
    dialect = manifest.dialect or {"delimiter": ",", "decimal": "."}
    delimiter, decimal = repr(dialect["delimiter"])[1:-1], dialect["decimal"]
    lines = [
        text.replace("LOADED", loaded.format(name, delimiter, decimal, decimal == ","))
        for text, loaded in zip((_PYTHON, _R), _LOADED[name.split(".")[-1]], strict=True)
    ]
    return {"marks": texts, "python": lines[0].splitlines(), "r": lines[1].splitlines()}


_PYTHON = """\
import json
from pathlib import Path

import polars as pl
import shoal
from shoal import analysis

folder = Path(".")  # the folder of this report
columns = json.loads((folder / "manifest.json").read_text("utf-8"))["policy"]["columns"]
people = LOADED
for name in people.columns:
    labels = columns.get(name, {}).get("value_labels", {})
    people = people.with_columns(pl.col(name).cast(pl.String).replace(labels) if labels else name)
print(people.describe())
print(analysis.analyse(folder))  # every column, with intervals
# analysis.mean(folder, COLUMN), .total, .proportion, .quantile, .crosstab, .ols, .logit"""

_R = """\
library(jsonlite)
folder <- "."  # the folder of this report
columns <- fromJSON(file.path(folder, "manifest.json"))$policy$columns
people <- LOADED
for (name in names(people)) if (length(labels <- unlist(columns[[name]]$value_labels))) {
  cells <- as.character(people[[name]])
  people[[name]] <- ifelse(cells %in% names(labels), labels[cells], cells)
}
print(summary(people))
ask <- function(...) fromJSON(paste(collapse = "",
  system2("shoal", c("analyse", folder, shQuote(c(...)), "--json"), stdout = TRUE)))
print(ask()$results)  # every column, with intervals
# ask("mean", COLUMN), ask("ols", "OUTCOME ~ COLUMN + COLUMN")"""


def _kinds(manifest: Manifest) -> dict[str, str]:
    columns = manifest.policy["columns"]
    return {name: columns.get(name, {}).get("kind", "") for name in manifest.columns}


def with_role(manifest: Manifest, role: str) -> list[str]:
    """List the policy's columns with a role."""
    columns = manifest.policy["columns"].items()
    return [name for name, spec in columns if spec["role"] == role]


def codebook(manifest: Manifest) -> list[dict[str, Any]]:
    """Describe every released column by its public facts alone."""
    stated, changed = manifest.policy["columns"], _describe_changes(manifest)
    entries = []
    for name, dtype in manifest.columns.items():
        spec = stated.get(name, {}) if manifest.release_form is not ReleaseForm.TREE else {}
        paths = manifest.hierarchies.get(name, [])
        values = [str(value) for value in spec.get("categories", [])] or [path[0] for path in paths]
        labels = spec.get("value_labels", {})
        values = values or list(labels)
        entries.append(
            {
                "name": name,
                "role": spec.get("role", "of a box"),
                "kind": spec.get("kind", ""),
                "type": dtype,
                "changed": changed[name],
                "label": spec.get("label", ""),
                "values": [f"{v} = {labels[v]}" if v in labels else v for v in values],
                "levels": _levels(paths),
                "facts": _facts(spec),
            }
        )
    return entries


def _describe_changes(manifest: Manifest) -> dict[str, str]:
    """Describe what the method did to each released column."""
    if manifest.release_form is ReleaseForm.TREE:
        counts = "have noise" if manifest.privacy_losses else "are exact"
        return dict.fromkeys(manifest.columns, f"yes, made by the method; counts {counts}")
    words = dict.fromkeys(manifest.columns, "no, released as it was")
    for names, text in (
        (
            repairable(manifest),
            "no, released as it was, except in rows that were repaired to keep the rules, if any",
        ),
        (_list_bucketed(manifest), "yes, values became buckets"),
        (manifest.protected_columns, "yes, protected by the method"),
        (_list_with(manifest, "class_mean"), "yes, the mean weight of each class"),
        (_list_with(manifest, "pseudonym"), "yes, replaced by keyed pseudonyms"),
        (_list_with(manifest, "date_shift"), "yes, shifted with all dates of the person"),
    ):
        words |= {name: text for name in names if name in words}
    return words


def list_protected(manifest: Manifest) -> list[str]:
    """List the columns that the method protects, including those released as buckets."""
    changed = (*_list_bucketed(manifest), *_list_with(manifest, "class_mean"))
    return list(dict.fromkeys((*manifest.protected_columns, *changed)))


def _list_with(manifest: Manifest, key: str) -> list[str]:
    return [name for name, spec in manifest.policy["columns"].items() if spec.get(key)]


def _list_bucketed(manifest: Manifest) -> list[str]:
    by_buckets = find(manifest.method).cells.classes_by_confidential
    return with_role(manifest, "confidential") if by_buckets else []


def list_unprotected(manifest: Manifest) -> list[str]:
    """List the columns that are published unprotected: cell by cell, or counted in boxes."""
    protected = list_protected(manifest)
    names = [name for name in manifest.policy["columns"] if name not in protected]
    if manifest.release_form is ReleaseForm.TREE:
        return [n for n in names if any(c.startswith(f"{n}=") for c in manifest.columns)]
    return [name for name in names if name in manifest.columns]


def repairable(manifest: Manifest) -> set[str]:
    """List columns in which a row may have been repaired, by the policy; all, if rules are hidden.

    Whether a row was repaired is confidential.
    """
    names, stated = list(manifest.policy["columns"]), manifest.policy.get("constraints", {})
    if not stated.get("repair"):
        return set()
    if stated.get("observed"):
        return set(names)
    return {name for rule in stated.get("rules", ()) for name in find_columns(rule, names)}


def _levels(paths: Sequence[Sequence[str]]) -> list[list[str]]:
    """List what a generalised cell may contain: inner nodes of a hierarchy, lowest first."""
    depth = max(map(len, paths), default=0)
    leaves = {path[0] for path in paths}
    levels = [
        [node for node in dict.fromkeys(path[level] for path in paths if len(path) > level)
         if node not in leaves]
        for level in range(1, depth)
    ]  # fmt: skip
    return [level for level in levels if level]


def _facts(spec: Mapping[str, Any]) -> list[str]:
    facts = []
    if "bounds" in spec:
        facts.append(f"from {_limit(spec['bounds'][0])} to {_limit(spec['bounds'][1])}")
    words = {
        "step": "rounded to multiples of {}",
        "date_step": "dates were rounded down to the first day of their {}",
        "top_code": "values above {0} were set to {0}",
        "bottom_code": "values below {0} were set to {0}",
        "missing_as": "missing cells became {}",
        "other": "unknown categories became {}",
        "max_contributions": "rows per person that an epsilon release uses at most: {}",
        "exact_contributions": "rows that every person has: {}",
        "transform": "distances are taken on a {} scale",
    }
    facts += [text.format(spec[key]) for key, text in words.items() if spec.get(key) is not None]
    flags = {
        "sampling_weight": "sampling weight",
        "stratum": "sampling stratum",
        "public": "public knowledge",
        "privacy_unit": "numbers the persons",
        "household": "numbers the households",
        "keep_missing": "a missing cell is a value of its own",
        "observed": "categories as observed in the table, not stated",
    }
    return facts + [text for key, text in flags.items() if spec.get(key)]


def _limit(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
