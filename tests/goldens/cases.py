"""The cases: every method in every release form, and many keys of policies and parameters."""

from typing import Any

from tests.goldens.running import BUDGET, SOURCE, defaults, forms

SEED = 19

QUASI, SECRET = "quasi-identifier", "confidential"
AGE = {"role": QUASI, "kind": "numeric", "bounds": [0, 110]}
SEX = {"role": QUASI, "kind": "nominal", "categories": ["male", "female"]}
REGION = {"role": QUASI, "kind": "nominal", "hierarchy": "region.csv"}
SCHOOL = {"role": QUASI, "kind": "ordinal", "categories": ["none", "primary", "secondary",
          "tertiary"]}  # fmt: skip
MARITAL = {"role": QUASI, "kind": "nominal", "categories": ["single", "cohabiting", "married",
           "divorced", "widowed"]}  # fmt: skip
HOURS = {"role": SECRET, "kind": "numeric", "bounds": [0, 80]}
INCOME = {"role": SECRET, "kind": "numeric", "bounds": [0, 500000]}
CONDITION = {"role": SECRET, "kind": "nominal", "hierarchy": "condition.csv", "missing": ["NA"]}
BATCH = {"role": "other", "kind": "nominal",
         "categories": ["wave 1", "wave 2", "wave 3", "wave 4"]}  # fmt: skip
PUBLIC = BATCH | {"public": True}
BORN = {"role": QUASI, "kind": "date", "bounds": ["@1900-01-01", "@2030-12-31"]}
YEAR = {"role": "other", "kind": "ordinal", "categories": ["2023", "2024", "2025"], "public": True}
PERSON = {"role": "identifier", "privacy_unit": True}
HOUSE = {"role": "identifier", "household": True}
WEIGHT = {"role": "other", "kind": "numeric", "sampling_weight": True}

GROUPED = {"name": "identifier", "age": AGE, "sex": SEX, "region": REGION, "education": SCHOOL,
           "income": INCOME}  # fmt: skip
NOISY = {"name": "identifier", "age": AGE, "sex": SEX, "education": SCHOOL, "income": INCOME}
FEW = {"age": AGE, "sex": SEX, "income": INCOME}
VISITS = {"person": PERSON, "age": AGE, "sex": SEX, "hours": HOURS | {"keep_missing": True}}

SMALL = ("people", 80)
K = {"k": 5}
EPSILON = {"epsilon": 2}
BOTH = {"k": 5, "epsilon": 2}
PLAIN: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "individual-ranking": (GROUPED, K),
    "optimal-univariate": (GROUPED, K),
    "mdav": (GROUPED, K),
    "vmdav": (GROUPED, K | {"gamma": 0.2}),
    "mu-approx": (GROUPED, K),
    "mondrian": (GROUPED, K),
    "bucketization": (GROUPED, K | {"t": 2}),
    "insensitive": (GROUPED, K),
    "stable": (GROUPED, K),
    "laplace": (NOISY | {"batch": PUBLIC}, EPSILON),
    "ir-laplace": (NOISY, BOTH),
    "mdav-laplace": (NOISY, BOTH),
    "ir-mdav-laplace": (NOISY, BOTH),
    "insensitive-laplace": (NOISY, BOTH),
    "stable-laplace": (NOISY, BOTH),
    "public-laplace": (NOISY | {"batch": PUBLIC}, BOTH),
    "dp-kdtree": (NOISY, EPSILON),
    "dp-quadtree": (NOISY, EPSILON),
    "kanon-dp": (NOISY, BOTH),
    "pram": ({"age": AGE, "sex": SEX, "condition": CONDITION}, BOTH),
    "privtree": (NOISY, EPSILON),
    "copula": (NOISY, EPSILON),
    "maxent": (FEW, EPSILON),
    "auto": (FEW, EPSILON),
    "full-domain": (GROUPED, K),
    "local-suppression": (GROUPED, K),
    "record-swapping": (GROUPED, {"rate": [0.1, 0.2], "columns": ["region"]}),
}
"""For each method columns and parameters, released in every form that it has."""


FURTHER: dict[str, dict[str, Any]] = {
    "auto": {"min_cell": 2},
    "mondrian": {"halt_beyond": 0.5, "output": "centroids"},
}
"""Parameters without a default."""


def case(
    name: str,
    method: str,
    columns: dict[str, Any],
    parameters: dict[str, Any],
    *,
    table: tuple[str, int] = ("people", 200),
    seeded: bool = True,
    granted: str | None = None,
    file: bool = False,
    **sections: Any,
) -> dict[str, Any]:
    """A case: all that a release needs but for the table, which is named.

    Args:
        name: of the case, behind the method's.
        method: that releases it.
        columns: of the policy.
        parameters: of the method, and other keys of `[protect]`.
        table: see `running.table`.
        seeded: with noise that a seed repeats, which carries no claim of differential privacy;
            else with the real one, and the cells are not held.
        granted: a budget for the population, in a file of its own.
        file: from a CSV file to a public folder.
        sections: other keys of the policy.
    """
    policy = {"version": 1, **sections, "columns": columns,
              "protect": {"method": method, **parameters}}  # fmt: skip
    made = {"name": f"{method}, {name}", "method": method, "table": list(table),
            "columns": list(columns), "seed": SEED if seeded else None}  # fmt: skip
    if granted:
        made["granted"] = granted
    if file:
        made["file"] = True
    return made | {"policy": policy}


def plain_cases() -> list[dict[str, Any]]:
    """Every method in every form, with parameters as they are mostly used."""
    found = []
    for method, offered in forms().items():
        columns, parameters = PLAIN[method]
        for form in offered:
            more = {"release_form": form} | ({"output": "tree"} if form == "tree" else {})
            made = case(form, method, columns, parameters | more, one_row_per_person=True)
            found.append(made | {"evaluated": form == offered[0]})
        said = defaults(method, parameters) | {"release_form": offered[0]}
        said |= FURTHER.get(method, {})
        found.append(case("every parameter", method, columns, said, table=SMALL))
    return found


SURVEY = {
    "name": "identifier",
    "person": PERSON,
    "household": HOUSE,
    "born": BORN | {"bottom_code": "@1935-01-01", "top_code": "@2015-01-01"},
    "age": AGE | {"top_code": 90, "bottom_code": 5, "step": 5},
    "education": SCHOOL | {"bottom_code": "primary", "top_code": "tertiary"},
    "marital": MARITAL | {"categories": ["single", "married"], "recode": "marital.csv"},
    "income": INCOME | {"transform": "log", "top_code": 200000, "step": 100, "missing": [-9]},
    "condition": CONDITION,
    "weight": WEIGHT,
    "batch": BATCH | {"stratum": True, "public": True},
    "hours": "other",
}
SECRETS = {"age": AGE, "sex": SEX, "education": SCHOOL, "condition": CONDITION}
TEXTS = {
    "born": BORN | {"date_format": "%d/%m/%Y", "missing_as": "@1970-01-01"},
    "age": AGE,
    "sex": SEX | {"categories": ["male", "female", "unknown"], "other": "unknown",
                  "missing_as": "unknown"},
    "income": INCOME | {"missing": ["-9"], "missing_as": 0},
}  # fmt: skip
OBSERVED = FEW | {"sex": SEX | {"observed": True}}
PAIRS = {"person": PERSON | {"exact_contributions": 2}, "age": AGE, "sex": SEX}
AT_MOST = VISITS | {"person": PERSON | {"max_contributions": 2}}
CONTEXT = {
    "recipient": "Students",
    "environment": "Download",
    "purpose": "Exercises",
    "legal_basis": "None needed",
    "earlier_releases": "None",
    "approver": "The steward",
}
MEASURE = {
    "rules": ["income >= 0"],
    "groups": "education",
    "learn": "income",
    "secret": "condition",
    "regression": "income ~ age",
    "queries": "queries.toml",
}
LEDGER = {"file": BUDGET, "source": SOURCE}
RULE = {"extract": "age >= 15", "extract_by": "row"}
ONE = {"one_row_per_person": True}

VARIANTS = [
    # What a policy may say of columns.
    case("every key of a survey", "mdav", SURVEY, K, context=CONTEXT, evaluate=MEASURE),
    case("with columns", "mdav", SURVEY, K | {"columns": ["age", "income"]}),
    case("without a word on persons", "mdav", GROUPED, K),
    case("persons with several rows", "mdav", VISITS, K, table=("visits", 90)),
    case("persons with several rows", "mondrian", VISITS, K, table=("visits", 90)),
    case("persons with several rows", "vmdav", VISITS, K, table=("visits", 60)),
    case("odd cells", "mdav-laplace", TEXTS, BOTH, table=("texts", 120), reading={"decimal": ","},
         **ONE),
    case("odd cells", "privtree", TEXTS, EPSILON, table=("texts", 120), reading={"decimal": ","}),
    case("observed categories", "laplace", OBSERVED, EPSILON, **ONE),
    case("exact rows", "laplace", PAIRS, EPSILON, table=("pairs", 60)),
    case("exact rows", "public-laplace", PAIRS | {"year": YEAR}, BOTH, table=("pairs", 60)),
    case("exact rows", "dp-quadtree", PAIRS | {"hours": HOURS}, EPSILON, table=("pairs", 60)),
    *(
        case(f"most rows, {neighbours}", method, AT_MOST,
             EPSILON | {"neighbours": neighbours} | more, table=("visits", 60))
        for method, more in (("dp-kdtree", {}), ("dp-quadtree", {}), ("privtree", {}),
                             ("copula", {"margins": "tree"}), ("maxent", {}))
        for neighbours in ("change-one", "add-remove")
    ),
    case("most rows", "auto", AT_MOST, EPSILON, table=("visits", 60)),
    # What it may require, and who gets the release.
    case("open", "mdav", GROUPED, K, require={"k-anonymity": 5}, release={"audience": "public-use"},
         **ONE),
    case("partner", "mdav", GROUPED, K, require={"k-anonymity": 3},
         release={"audience": "scientific-use"}),
    case("internal", "individual-ranking", GROUPED, K, release={"audience": "secure-use"}),
    case("distinct and equal", "mondrian", SECRETS, K, **ONE, require={
        "k-anonymity": 5,
        "l-diversity": {"l": 2, "column": "condition", "kind": "distinct"},
        "t-closeness": {"t": 0.6, "column": "condition", "distance": "equal"}}),
    case("recursive, frequency and hierarchical", "mondrian", SECRETS, K, **ONE, require={
        "l-diversity": [
            {"l": 2, "column": "condition", "kind": "recursive", "c": 4},
            {"l": 1.1, "column": ["condition"], "kind": "frequency"},
            {"l": 1.2, "column": "condition", "kind": "entropy"}],
        "t-closeness": [{"t": 0.6, "column": "condition", "distance": "hierarchical"},
                        {"t": 0.7, "column": "condition", "distance": "variation"}]}),
    case("ordered", "mondrian", FEW, K, **ONE,
         require={"t-closeness": {"t": 0.4, "column": "income", "distance": "ordered"}}),
    case("ratio", "bucketization", SECRETS, K | {"t": 2, "b": 2}, **ONE,
         require={"t-closeness": {"t": 2, "column": "condition", "distance": "ratio"}}),
    # Parameters of methods.
    case("median, whole numbers", "mdav", GROUPED, K | {"aggregate": "median", "integers": True}),
    case("mode, blocks by median", "mdav", GROUPED, K | {"aggregate": "mode", "blocks": "median"}),
    case("medoid, blocks by a column", "vmdav", GROUPED,
         K | {"aggregate": "medoid", "blocks": "sex", "gamma": 0.4}, table=SMALL),
    case("best gamma", "vmdav", FEW, K, table=SMALL),
    case("medoid", "individual-ranking", FEW, K | {"aggregate": "mode"}),
    case("whole numbers", "optimal-univariate", FEW, K | {"integers": True}),
    case("centroids, gain, left out", "mondrian", SECRETS, K | {
        "output": "centroids", "dimension": "gain", "target": "condition",
        "record_suppression": 0.1, "integers": True}),
    case("relaxed, entropy, height", "mondrian", GROUPED,
         K | {"dimension": "entropy", "relaxed": True, "max_height": 3}),
    case("halted tree", "mondrian", SECRETS, K | {
        "output": "tree", "count": "condition", "halt_beyond": 0.5,
        "halt_distance": "variation"}),
    *(
        case(f"halted by {distance}", "mondrian", FEW, K | {
            "halt_beyond": beyond, "halt_distance": distance}, table=SMALL)
        for distance, beyond in (("ordered", 0.3), ("ratio", 3))
    ),
    case("halted by hierarchical", "mondrian", SECRETS, K | {
        "halt_beyond": 0.4, "halt_distance": "hierarchical"}, table=SMALL),
    *(
        case(f"order {order}", method, GROUPED if method == "insensitive" else NOISY,
             parameters | {"order": order})
        for method, parameters in (("insensitive", K), ("insensitive-laplace", BOTH))
        for order in ("lexicographic", "hilbert")
    ),
    case("scale from data", "insensitive-laplace", NOISY, BOTH | {"scale": "from-data"}),
    case("bounds from data", "laplace", FEW, EPSILON | {"bounds": "from-data"}),
    case("isotonic", "ir-laplace", NOISY | {"batch": PUBLIC},
         BOTH | {"isotonic": True, "release_form": "column-shuffled"}),
    case("adaptive", "mdav-laplace", FEW, EPSILON | {"adaptive": True}, table=SMALL),
    case("groups", "mdav-laplace", FEW, BOTH | {
        "groups": [["age", "sex"], ["income"]], "epsilons": [1.5, 0.5], "scale": "public"}),
    case("proportional", "ir-mdav-laplace", FEW,
         BOTH | {"split": "proportional", "release_form": "column-shuffled"}),
    case("summed", "stable-laplace", FEW, BOTH | {"sensitivity": "summed"}),
    case("height, bins, structure", "dp-kdtree", NOISY, EPSILON | {
        "height": 3, "count": "income", "bins": 8, "structure": 0.4, "output": "tree"}),
    case("height, bins", "dp-quadtree", NOISY, EPSILON | {
        "height": 3, "count": "income", "bins": 8, "output": "tree", "neighbours": "add-remove"}),
    case("mondrian", "kanon-dp", NOISY, BOTH | {"partition": "mondrian"}),
    case("mondrian", "pram", SECRETS, BOTH | {"partition": "mondrian", "aggregate": "mode"}),
    case("strata", "privtree", NOISY | {"batch": PUBLIC}, EPSILON | {"strata": "batch"}),
    case("smallest cell", "privtree", NOISY, EPSILON | {"min_cell": 3}),
    case("centroids", "privtree", NOISY, EPSILON | {"fill": "centroid", "theta": 2}),
    case("trees, strata", "copula", FEW | {"batch": PUBLIC},
         EPSILON | {"margins": "tree", "strata": "batch"}),
    case("smallest cell", "copula", FEW, EPSILON | {"min_cell": 2}),
    case("strata", "maxent", FEW | {"batch": PUBLIC}, EPSILON | {"strata": "batch"}),
    case("smallest cell", "maxent", FEW, EPSILON | {"min_cell": 2}),
    case("more columns", "maxent", NOISY | {"region": REGION}, EPSILON),
    case("means", "auto", FEW | {"income": INCOME | {"transform": "sqrt"}},
         EPSILON | {"goal": "means"}),
    case("strata", "auto", FEW | {"batch": PUBLIC}, EPSILON | {"strata": "batch"}),
    case("add-remove", "auto", NOISY, EPSILON | {"neighbours": "add-remove", "min_cell": 2}),
    # With the real noise, whose claims hold, and with a budget file.
    case("open, paid", "laplace", FEW, EPSILON, seeded=False, granted="3", budget=LEDGER, **ONE,
         require={"differential-privacy": 2}, release={"audience": "public-use"}),
    case("an extract, paid", "mdav-laplace", FEW, BOTH, seeded=False, granted="3",
         budget=LEDGER | RULE, **ONE),
    case("an extract by public facts, paid", "insensitive-laplace", FEW, BOTH, seeded=False,
         granted="3", budget=LEDGER | {"extract": "wave 1", "extract_by": "public"}),
    case("several rows, paid", "laplace", PAIRS, EPSILON, table=("pairs", 60), seeded=False,
         granted="10", budget=LEDGER | {"max_contributions": 4}),
    case("public columns, paid", "public-laplace", FEW | {"batch": PUBLIC}, BOTH, seeded=False,
         granted="9/2", budget=LEDGER | {"extract": "by rank", "extract_by": "table"}),
    case("no epsilon, booked", "mdav", GROUPED, K, granted="1", budget=LEDGER),
    case("partner", "kanon-dp", SECRETS | {"condition": "identifier", "hours": HOURS}, BOTH,
         seeded=False, release={"audience": "scientific-use"}),
    case("epsilon required", "ir-laplace", FEW, BOTH | {"release_form": "column-shuffled"},
         seeded=False, require={"differential-privacy": 2.5}),
    # From a file to a folder.
    case("a folder", "mdav", GROUPED, K, file=True, evaluate=MEASURE | {"secret": "income"},
         reading={"delimiter": ";", "encoding": "utf-8", "decimal": "."}, context=CONTEXT),
    case("a folder", "maxent", FEW, EPSILON, file=True),
    case("a folder", "mondrian", GROUPED, K | {"output": "intervals"}, file=True),
]  # fmt: skip


def every() -> list[dict[str, Any]]:
    """Return all cases; each has its own name."""
    return [*plain_cases(), *VARIANTS]
