"""Local suppression from a policy to a release."""

import polars as pl
import pytest

import shoal
from shoal.core import KAnonymity, MissingMeaning, Status
from shoal.errors import ClaimViolationError, InputError

AGE = {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 99]}
SEX = {"role": "quasi-identifier", "kind": "nominal", "categories": ["f", "m"]}
TABLE = pl.DataFrame({"age": [21, 21, 21, 34, 34, 34, 34], "sex": list("fffmmmf")})


def policy(require=None, **protect):
    return {
        "version": 1,
        "one_row_per_person": True,
        "columns": {"age": AGE, "sex": SEX},
        "protect": {"method": "local-suppression", "k": 2, **protect},
        "require": require or {},
    }


def test_only_rare_cells_are_blanked_and_the_claim_says_what_missing_means(tmp_path):
    own = shoal.protect(TABLE, policy({"k-anonymity": 2}), keep_order=True)
    loose = shoal.protect(TABLE, policy(missing="matches-anything"), keep_order=True)

    assert own.data.null_count().row(0) in {(2, 0), (0, 2)}
    assert own.data["age"].dtype == pl.Int64
    assert sum(loose.data.null_count().row(0)) == 1
    assert own.claims[0].guarantee == KAnonymity(2, ("age", "sex"))
    (claim,) = loose.claims
    assert (claim.status, claim.guarantee.missing) == (Status.PROVED, MissingMeaning.MATCHES)
    assert str(claim.guarantee).endswith("if a missing cell matches anything")
    assert loose.checks[0].achieved >= 2
    assert loose.checks[0].remarks["k_if_missing_is_a_value"] == 1
    assert (
        "They cost 1; no solution that blanks a cell of every rare record costs less."
        in (loose.manifest.notes[-1])
    )
    assert "finds combinations that are rarer than k" in str(loose.manifest.not_claimed)
    assert shoal.verify(loose.write(tmp_path / "release")).holds
    with pytest.raises(ClaimViolationError, match="2-anonymity of age"):
        shoal.plan(policy({"k-anonymity": 2}, missing="matches-anything"))


def test_columns_are_recoded_before_cells_are_blanked():
    ages = TABLE.with_columns(age=pl.Series([21, 23, 24, 31, 33, 35, 39]))

    release = shoal.protect(
        ages, policy(intervals={"age": [10]}, levels={"age": 1}, importance={"age": 5})
    )

    assert set(release.data["age"]) == {"20-29", "30-39"}
    assert release.data["sex"].null_count() == 2


def test_each_set_of_columns_has_its_claim():
    table = TABLE.with_columns(job=pl.Series(list("aabbabz")))
    described = policy(subsets=2)
    described["columns"]["job"] = {"role": "quasi-identifier", "kind": "nominal"}

    release = shoal.protect(table, described)

    pairs = [claim.guarantee.columns for claim in release.claims]
    assert pairs == [("age", "sex"), ("age", "job"), ("sex", "job")]
    assert all(check.achieved >= 2 for check in release.checks)
    assert "all protected columns together is not promised" in str(release.manifest.not_claimed)
    named = described | {"protect": policy(sets=[["age", "job"], ["sex"]])["protect"]}
    sets = [claim.guarantee.columns for claim in shoal.plan(named).claims]
    assert sets == [("age", "job"), ("sex",)]


def test_classes_hold_k_persons_under_either_meaning():
    table = pl.DataFrame({"who": [1, 1, 2, 3, 4, 5], "age": [1, 1, 2, 2, 2, 3], "sex": ["f"] * 6})
    for missing in MissingMeaning:
        described = policy(missing=missing.value)
        described["columns"]["who"] = {"role": "identifier", "privacy_unit": True}
        del described["one_row_per_person"]

        release = shoal.protect(table, described)

        assert release.checks[0].achieved >= 2
        assert "k counts persons" in release.manifest.notes[-1]
    with pytest.raises(InputError, match="k=6 persons from 5"):
        shoal.protect(table, described | {"protect": policy(k=6)["protect"]})


@pytest.mark.parametrize(
    ("protect", "said"),
    [
        ({"importance": {"agee": 2}}, "no protected column named 'agee'. Did you mean 'age'?"),
        ({"subsets": 2, "sets": [["age"]]}, "expected subsets or sets, found both"),
        ({"subsets": 3}, "expected at most 2, the number of protected columns"),
        ({"levels": {"age": 2}}, "expected levels from 0 to 1, found 2"),
        ({"intervals": {"sex": [5]}}, "expected a number or a date"),
    ],
)
def test_what_cannot_work_is_refused_before_the_data_is_read(protect, said):
    with pytest.raises(InputError) as refused:
        shoal.plan(policy(**protect))

    assert said in str(refused.value)


def test_the_least_cost_is_stated_with_its_condition_where_missing_matches_anything():
    """Blanking two whole records costs less, and leaves six rare ones visible."""
    rows = pl.DataFrame({"age": range(8), "sex": ["f"] * 8})
    blank = [n < 2 for n in range(8)]
    cheaper = rows.with_columns(
        pl.when(pl.Series(blank)).then(None).otherwise(pl.col(name)).alias(name)
        for name in rows.columns
    )

    released = shoal.protect(rows, policy(missing="matches-anything", k=3))

    agreeing = [
        sum(all(a is None or b is None or a == b for a, b in zip(one, two, strict=True))
            for two in cheaper.rows())
        for one in cheaper.rows()
    ]  # fmt: skip
    assert min(agreeing) >= 3
    assert sum(cheaper.null_count().row(0)) < sum(released.data.null_count().row(0))
    assert (
        "no solution that blanks a cell of every rare record costs less"
        in (released.manifest.notes[-1])
    )
