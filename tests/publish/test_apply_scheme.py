import re
import shutil
import tomllib
from fractions import Fraction

import numpy as np
import polars as pl
import pytest

import shoal
from shoal import sample
from shoal.budget import budget_file
from shoal.core import Scheme
from shoal.partition import cell_of, mondrian_tree
from shoal.pipeline.options import EvaluationOptions
from shoal.pipeline.scheme_files import together
from shoal.publish import apply_scheme, confidential_folder, protect_file

FULL_DOMAIN = {
    "method": "full-domain", "k": 5, "record_suppression": 0.2,
    "columns": ["age", "sex", "region"],
    "intervals": {"age": [20, 40]}, "levels": {"age": 1, "sex": 0, "region": 1},
}  # fmt: skip
RELEASES = {
    "full-domain": FULL_DOMAIN,
    "mondrian": {"method": "mondrian", "k": 5, "output": "intervals"},
    "bucketization": {"method": "bucketization", "k": 5, "t": 2},
}
UNEVALUATED = EvaluationOptions(evaluate=False)


@pytest.fixture
def policy(tmp_path):
    """The sample's policy with another method, in a folder with the hierarchies it names."""
    for name in ("region.csv", "occupation.csv", "condition.csv"):
        shutil.copy(sample.folder() / name, tmp_path)
    head = (sample.folder() / "people.toml").read_text().partition("[protect]")[0]

    def write(protect, more="", columns=head):
        values = "\n".join(f"{key} = {_toml(value)}" for key, value in protect.items())
        path = tmp_path / "policy.toml"
        path.write_text(f"{columns}\n[protect]\n{values}\n{more}")
        return path

    return write


def _toml(value):
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.mark.parametrize("method", RELEASES)
def test_a_scheme_recodes_its_own_table_to_the_same_release(method, policy, tmp_path):
    stated, table = policy(RELEASES[method]), sample.people(600, seed=1)
    release = shoal.protect(table, stated)
    file = tmp_path / "kept.toml"
    release.scheme.write(file)

    again = shoal.apply(file, table)

    public = method == "full-domain"
    assert release.scheme.public is public
    assert file.stat().st_mode & 0o077 == (file.stat().st_mode & 0o077 if public else 0)
    assert "recoding=<confidential>" in repr(release.scheme)
    assert again.data.sort(pl.all()).equals(release.data.sort(pl.all()))
    assert again.manifest.policy_digest == release.manifest.policy_digest
    assert [claim.guarantee for claim in again.claims] == [c.guarantee for c in release.claims]
    assert "recoded by the scheme of an earlier release" in again.manifest.notes[-1]


def test_a_second_draw_is_recoded_checked_and_compared_with_the_first(policy, tmp_path):
    stated = policy(FULL_DOMAIN)
    first, second = tmp_path / "first.parquet", tmp_path / "second.parquet"
    sample.people(1000, seed=1).write_parquet(first)
    sample.people(1000, seed=2).write_parquet(second)
    out, new = tmp_path / "release", tmp_path / "next"
    protect_file.protect(first, stated, out, evaluation=UNEVALUATED)
    scheme = tmp_path / "release.internal" / "scheme.toml"
    confidential_folder.report(out, first, stated, evaluation=UNEVALUATED)  # made anew

    done = apply_scheme.apply_file(
        scheme, second, new, record_suppression=0.2, evaluation=UNEVALUATED
    )

    assert shoal.verify(new).holds
    assert all(check.holds for check in done.release.checks)
    assert done.release.manifest.suppressed <= 200
    labels = [pl.read_parquet(one / "release.parquet")["age"] for one in (out, new)]
    assert set(labels[1]) <= {f"{low}-{low + 19}" for low in range(0, 110, 20)}
    assert set(labels[0]) & set(labels[1])
    said = " ".join(done.notes)
    assert "the number of classes with the same labels in both is" in said
    assert "value of condition" in said
    with pytest.raises(shoal.ClaimViolationError) as refused:
        shoal.apply(scheme, second, record_suppression=0)
    assert "5-anonymity no longer holds" in str(refused.value)
    assert "left to suppress would be" in str(refused.value)
    assert "with 'region'" in str(refused.value)
    coarser = shoal.apply(scheme, second, coarsen=["region", "age", "age"], record_suppression=0.9)
    assert set(coarser.data["age"]) == {"*"}
    assert coarser.manifest.suppressed < done.release.manifest.suppressed


def test_another_policy_may_ask_for_another_k_and_recodes_alike(policy):
    table = sample.people(1000, seed=1)
    scheme = shoal.protect(table, policy(FULL_DOMAIN)).scheme

    done = shoal.apply(
        scheme, table, policy=policy(FULL_DOMAIN | {"k": 10}), record_suppression=0.9
    )

    assert done.claims[0].guarantee.k == 10
    assert done.data.group_by("age", "sex", "region").len()["len"].min() >= 10
    with pytest.raises(shoal.InputError, match=r"differs from .* \[protect\]"):
        shoal.apply(scheme, table, policy=policy(RELEASES["mondrian"]))


def test_rows_that_reach_beyond_a_group_widen_its_label(policy):
    head = """version = 1
        [columns]
        x = { role = "quasi-identifier", kind = "numeric" }
        where = { role = "quasi-identifier", kind = "nominal" }
    """
    stated = policy(RELEASES["mondrian"] | {"k": 2}, columns=head)
    table = pl.DataFrame({"x": [1, 2, 8, 9, *[None] * 4], "where": [*"aabbbbbb"]})
    release = shoal.protect(table, stated)

    new = table.with_columns(pl.Series("x", [0, 2, 8, 30, *[None] * 4]))
    made = shoal.apply(release, new, keep_order=True)

    assert release.data["x"].unique().sort().to_list() == [None, "[1, 2]", "[8, 9]"]
    assert made.data["x"].to_list() == ["[0, 2]"] * 2 + ["[8, 30]"] * 2 + [None] * 4
    with pytest.raises(shoal.InputError, match="expected categories that the scheme knows"):
        shoal.apply(release, new.with_columns(where=pl.lit("c")))
    with pytest.raises(shoal.InputError, match="no levels, so it cannot be coarsened"):
        shoal.apply(release, new, coarsen=["x"])
    relaxed = policy(RELEASES["mondrian"] | {"k": 2, "relaxed": "x"}, columns=head)
    relaxed.write_text(relaxed.read_text().replace('relaxed = "x"', "relaxed = true"))
    with pytest.raises(shoal.InputError, match="has no scheme"):
        shoal.apply(shoal.protect(table, relaxed), table)
    broken = relaxed.with_name("scheme.toml")
    broken.write_text("scheme = 2\n")
    with pytest.raises(shoal.InputError, match="is not a scheme of this version"):
        shoal.apply(broken, table)
    with pytest.raises(shoal.InputError, match="on one machine"):
        shoal.apply(release, type("F", (), {"__module__": "pyspark.sql.dataframe"})())


def test_values_that_both_releases_leave_are_counted():
    policy = shoal.load_policy(
        {
            "version": 1,
            "columns": {
                "a": {"role": "quasi-identifier", "kind": "numeric"},
                "s": {"role": "confidential", "kind": "nominal"},
            },
            "protect": {"method": "mdav", "k": 2},
        }
    )
    before = pl.DataFrame({"a": [1, 1, 2, 2, 3], "s": ["x", "y", "x", "x", "z"]})
    after = pl.DataFrame({"a": [1, 1, 2, 2, 2], "s": ["x", "z", "x", "x", "y"]})

    classes, values = together(before, after, ["a"], policy, k=2)

    # Class 1 shares x alone; class 2 was disclosed by the first release already, and grew by one.
    assert "in both is 2; in 1 of them the two sizes differ by fewer than k = 2" in classes
    assert values.startswith("In 1 class the two releases have one value of s in common")
    assert together(before, after, ["a", "s"], policy, k=2) == (classes, values)


def test_new_records_fall_into_the_cell_that_holds_them():
    rng = np.random.default_rng(5)
    X, new = rng.integers(0, 40, (300, 3)).astype(float), rng.uniform(-5, 45, (200, 3))

    tree = mondrian_tree(X, 4)

    assert (cell_of(X, tree.above, tree.upto) == tree.partition.labels).all()
    inside = (tree.above[None] < new[:, None]) & (new[:, None] <= tree.upto[None])
    assert (inside.all(axis=2).argmax(axis=1) == cell_of(new, tree.above, tree.upto)).all()
    with pytest.raises(shoal.InputError, match="recursive cuts"):
        cell_of(X, np.zeros((2, 3)), np.ones((2, 3)))


def test_adults_other_half_is_recoded_as_the_first_was(reference, tmp_path):
    names = ["age", "education", "sex", "race", "income"]
    table = reference("adult").select(names)
    half = table.height // 2
    stated = {
        "version": 1,
        "columns": {
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 100]},
            **{name: {"role": "quasi-identifier", "kind": "nominal"} for name in names[1:4]},
            "income": {"role": "confidential", "kind": "nominal"},
        },
        "protect": {
            "method": "full-domain", "k": 5, "record_suppression": 0.02,
            "intervals": {"age": [5, 10, 20]},
        },
    }  # fmt: skip
    release = shoal.protect(table[:half], stated)
    assert isinstance(release.scheme, Scheme)

    other = shoal.apply(release, table[half:])

    assert other.checks[0].achieved >= 5
    assert other.manifest.suppressed <= 0.02 * (table.height - half)
    shared = set(map(tuple, release.data.select(names[:4]).unique().rows()))
    mine = set(map(tuple, other.data.select(names[:4]).unique().rows()))
    assert len(mine & shared) > 0.8 * len(mine)
    release.scheme.write(tmp_path / "adult.toml")
    assert tomllib.loads((tmp_path / "adult.toml").read_text())["recoding"]["levels"]


def test_a_scheme_keeps_its_budget_and_apply_books_and_settles(policy, tmp_path):
    budget = tmp_path / "budget.db"
    budget_file.init(budget, "people", Fraction(5))
    used = f'[budget]\nfile = "{budget.name}"\nsource = "people"\n'
    stated = policy({"method": "full-domain", "k": 2, "record_suppression": 0.9}, used)
    table = sample.load().head(400)

    first = shoal.protect(table, stated)
    first.scheme.write(tmp_path / "scheme.toml")
    shoal.apply(tmp_path / "scheme.toml", table)
    shoal.apply(first, table, record_suppression=0.5)

    (account,) = budget_file.show(budget)
    assert [entry.status for entry in account.entries] == ["released"] * 3
    assert "Remove [policy.budget]" in (tmp_path / "scheme.toml").read_text()


def test_a_scheme_with_recoded_pairs_is_confidential(policy, tmp_path):
    """Pairs of a recoding may have been written with a look at the table's own spellings."""
    table = sample.people(600, seed=1)
    head = (sample.folder() / "people.toml").read_text().partition("[protect]")[0]
    (tmp_path / "pairs.csv").write_text("f,female\nm,male\n")
    recoded = re.sub(r"(?m)^sex *= \{", 'sex = { recode = "pairs.csv", ', head)
    assert recoded != head

    release = shoal.protect(table, policy(FULL_DOMAIN, columns=recoded))
    release.scheme.write(tmp_path / "kept.toml")

    assert not release.scheme.public
    assert (tmp_path / "kept.toml").stat().st_mode & 0o077 == 0
    assert "# Confidential:" in (tmp_path / "kept.toml").read_text()
