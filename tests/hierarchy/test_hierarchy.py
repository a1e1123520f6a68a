"""Hierarchies that are built, and bad ones that are refused in a sentence."""

from datetime import date, timedelta
from decimal import Decimal
from itertools import pairwise

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal import hierarchy, policy
from shoal.cli.commands import app
from shoal.core import DifferentialPrivacy, Hierarchy, Status
from shoal.errors import InputError

POLICY = """
version = 1
[columns]
{name} = {{ role = "other", kind = "{kind}", hierarchy = "{file}" }}
[protect]
method = "mdav"
k = 2
"""


def is_nested(tree):
    """Leaves that share a label share all labels above it, by looking at every pair of levels."""
    levels = tree.levels()
    assert len({row[0] for row in tree.paths}) == len(tree.paths)
    assert len(set(levels[-1])) == 1
    for below, above in pairwise(levels):
        assert len(set(zip(below, above, strict=True))) == len(set(below))
    return True


@given(
    low=st.integers(-300, 300),
    size=st.integers(1, 200),
    factors=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    tenths=st.booleans(),
)
def test_intervals_hold_their_leaves_and_have_readable_ends(low, size, factors, tenths):
    step = Decimal("0.1") if tenths else Decimal(1)
    widths = [step * 2]
    for factor in factors:
        widths.append(widths[-1] * factor)

    tree = hierarchy.intervals(low * step, (low + size) * step, widths, step=step)

    assert is_nested(tree)
    for path in tree.paths:
        for label, width in zip(path[1:-1], widths, strict=True):
            mark = " to " if " to " in label else "-"
            first, _, last = label.partition(mark)
            assert Decimal(first) <= Decimal(path[0]) <= Decimal(last)
            assert Decimal(first) % width == 0
            assert Decimal(last) - Decimal(first) == width - step


def test_intervals_are_written_as_people_write_them():
    assert hierarchy.intervals(0, 99, [5, 10]).paths[7] == ("7", "5-9", "0-9", "*")
    assert hierarchy.intervals("0", "2", ["0.5"], step="0.25").paths[1] == ("0.25", "0-0.25", "*")
    assert hierarchy.intervals(-4, 4, [5]).paths[0] == ("-4", "-5 to -1", "*")


def test_stated_ends_make_intervals_and_neighbours_are_joined():
    tree = hierarchy.quantiles([0, 18, 40, 65, 99])

    assert is_nested(tree)
    assert tree.paths[17][1:] == ("0-17", "0-39", "*")
    assert tree.paths[18][1:] == ("18-39", "0-39", "*")
    assert tree.paths[99][1:] == ("65-99", "40-99", "*")
    assert not tree.observed


@given(st.lists(st.integers(-50, 50), min_size=8, max_size=60), st.integers(2, 9))
def test_quantiles_of_data_cover_it_and_are_marked_as_read_off_it(values, groups):
    if len(set(values)) < 2:
        return

    tree = hierarchy.quantiles_of(values, groups)

    assert tree.observed
    assert is_nested(tree)
    assert {str(value) for value in values} <= set(tree.leaves)
    assert len(set(tree.levels()[1])) <= groups


@given(st.dates(date(1900, 1, 1), date(2100, 1, 1)), st.integers(0, 900))
def test_dates_join_days_as_the_calendar_does(first, days):
    last = first + timedelta(days=days)

    tree = hierarchy.dates(first, last, ["month", "quarter", "year", "decade"])

    assert is_nested(tree)
    for day, month, quarter, year, decade, _ in tree.paths:
        assert day.startswith(month)
        assert quarter == f"{year}-Q{(int(day[5:7]) - 1) // 3 + 1}"
        assert decade[:3] == year[:3]
    weeks = hierarchy.dates(first, last, ["week"])
    assert is_nested(weeks)
    for day, week, _ in weeks.paths:
        assert date.fromisoformat(day).strftime("%G-W%V") == week


@pytest.mark.parametrize("side", ["right", "left"])
@given(values=st.sets(st.text("0123", min_size=1, max_size=5), min_size=1), by=st.integers(1, 3))
def test_masks_and_prefixes_are_trees_whatever_the_codes(side, values, by):
    assert is_nested(hierarchy.mask_codes(values, side=side, by=by))
    assert is_nested(hierarchy.prefixes(values, [3, 2, 1]))


def test_published_classifications_follow_their_digits():
    paths = hierarchy.codes(["A00", "A00.1", "D48.9", "D50", "Z99.8"], "icd-10").paths
    assert paths[0][1:] == ("A00*", "chapter I (A00-B99)", "*")
    assert paths[1][1:] == ("A00*", "chapter I (A00-B99)", "*")
    assert [path[2].split()[1] for path in paths] == ["I", "I", "II", "III", "XXI"]
    paths = hierarchy.codes(["01.11", "01.19", "C10.1", "62"], "nace").paths
    assert paths[0] == ("01.11", "01.1*", "01*", "section A", "*")
    assert paths[2] == ("62", "62", "62", "section J", "*")
    assert paths[3] == ("C10.1", "10.1*", "10*", "section C", "*")
    assert hierarchy.codes(["2211", "2212"], "isco").paths[0] == ("2211", "221*", "22*", "2*", "*")


@given(st.integers(2, 40), st.integers(2, 5))
def test_ordered_categories_are_joined_with_their_neighbours(size, join):
    names = [f"c{number:02}" for number in range(size)]

    tree = hierarchy.join_ordered(names, join=join)

    assert is_nested(tree)
    assert tree.leaves == tuple(names)
    for below, above in pairwise(tree.levels()):
        assert len(set(above)) <= -(-len(set(below)) // join)
        # Labels stand in runs: only neighbours were joined.
        assert len(set(above)) == 1 + sum(a != b for a, b in pairwise(above))


def test_a_mapping_is_followed_up_and_short_branches_are_padded():
    tree = hierarchy.mapping({"Lyon": "South", "Nice": "South", "South": "all", "Lille": "all"})

    assert tree.paths == (
        ("Lyon", "South", "all"),
        ("Nice", "South", "all"),
        ("Lille", "Lille", "all"),
    )
    assert hierarchy.mapping({"a": "x", "b": "y"}, root="*").paths[0] == ("a", "x", "*")


@pytest.mark.parametrize(
    "labels", [("a;b", "x"), ("a,b", "x"), ('a"b', "x;y"), ("é", "x")], ids=str
)
def test_a_file_is_read_as_it_was_written_and_as_a_policy_reads_it(tmp_path, labels):
    leaf, inner = labels
    tree = Hierarchy(((leaf, inner, "*"), ("other", inner, "*")))

    keys = hierarchy.write(tree, tmp_path / "tree.csv")

    assert keys == {"hierarchy": "tree.csv"}
    assert hierarchy.read(tmp_path / "tree.csv") == tree
    text = (
        'version = 1\n[columns]\nx = { role = "other", kind = "nominal", hierarchy = "tree.csv" }'
    )
    loaded = policy.loads(text + '\n[protect]\nmethod = "mdav"\nk = 2', folder=tmp_path)
    assert loaded.schema["x"].hierarchy == tree


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: hierarchy.intervals(0, 9, [5, 12]), "a width of 12 is not a multiple of 5"),
        (lambda: hierarchy.intervals(9, 0, [5]), "low below high, found 9 and 0"),
        (lambda: hierarchy.intervals(0, "x", [5]), "a number as high, found 'x'"),
        (lambda: hierarchy.intervals(0, "inf", [5]), "a finite number as high"),
        (lambda: hierarchy.intervals(0, 9, []), "at least one width"),
        (lambda: hierarchy.intervals(0, 10**7, [5]), "10,000,001 leaves is too long"),
        (lambda: hierarchy.quantiles([0, 5, 3]), "ends that ascend"),
        (lambda: hierarchy.quantiles([0, 2.5, 4]), "whole numbers of steps apart"),
        (lambda: hierarchy.quantiles([0, 2, 4, 9], join=1), "two neighbours or more, found 1"),
        (lambda: hierarchy.quantiles_of([1, 2], 1), "two groups or more"),
        (lambda: hierarchy.quantiles_of([1, 1], 2), "two different numbers"),
        (lambda: hierarchy.quantiles_of([1, 2], 2, step=0), "a step above 0"),
        (
            lambda: hierarchy.dates(date(2020, 1, 1), date(2021, 1, 1), ["week", "year"]),
            "a week may lie in two years",
        ),
        (
            lambda: hierarchy.dates(date(2020, 1, 1), date(2021, 1, 1), ["year", "month"]),
            "in the order week, month",
        ),
        (
            lambda: hierarchy.dates(date(2020, 1, 1), date(2021, 1, 1), ["moon"]),
            "found 'moon'",
        ),
        (
            lambda: hierarchy.dates(date(2022, 1, 1), date(2021, 1, 1), ["year"]),
            "first day before the last",
        ),
        (lambda: hierarchy.prefixes(["a"], [2, 3]), "lengths of 1 or more that descend"),
        (lambda: hierarchy.prefixes([" "], [2]), "some values, found none"),
        (lambda: hierarchy.codes(["A00", "wrong"], "icd-10"), "found 1 value that is not one"),
        (lambda: hierarchy.codes(["04.1", "34"], "nace"), "found 2 values that are not one"),
        (lambda: hierarchy.codes(["x"], "isco"), "such as 2211"),
        (lambda: hierarchy.codes(["x"], "soc"), "among icd-10, nace, isco, found 'soc'"),
        (lambda: hierarchy.mask_codes(["a"], by=0), "one character or more"),
        (lambda: hierarchy.join_ordered(["a"]), "two categories or more"),
        (lambda: hierarchy.mapping({"a": "b", "b": "a"}), "goes round in a circle"),
        (lambda: hierarchy.mapping({"x": "a", "a": "b", "b": "a"}), "goes round in a circle"),
        (
            lambda: hierarchy.mapping({"a": "x", "b": "y"}),
            "the same root in every row; it has several",
        ),
    ],
)
def test_what_cannot_be_built_is_refused_in_a_sentence(build, message):
    with pytest.raises(InputError, match=message) as refused:
        build()

    assert str(refused.value).endswith(".")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,x,*\na,y,*\n", "each leaf once"),
        ("a,x,*\nb,x,y,*\n", "'x' has two parents"),
        ("a,x,x,*\nb,x,*,*\n", "'x' of level 1 has two parents at level 2"),
        ("a,x,*\nb,x,all\n", "same root"),
        ("a,b,*\nb,*\n", "leaf is also an inner node"),
    ],
)
def test_a_file_that_is_not_a_tree_with_nested_levels_is_refused(tmp_path, text, message):
    (tmp_path / "tree.csv").write_text(text, encoding="utf-8")

    with pytest.raises(InputError, match=message):
        hierarchy.read(tmp_path / "tree.csv")


def test_numbers_dates_and_ordinals_may_name_a_hierarchy_which_other_methods_leave_alone(tmp_path):
    hierarchy.write(hierarchy.intervals(0, 99, [5, 10]), tmp_path / "age.csv")
    age = {"role": "quasi-identifier", "kind": "numeric"}
    stated = {
        "version": 1,
        "columns": {"age": age},
        "protect": {"method": "mdav", "k": 2},
    }
    frame = pl.DataFrame({"age": [1, 2, 40, 43]})
    with_file = stated | {"columns": {"age": age | {"hierarchy": str(tmp_path / "age.csv")}}}

    assert policy.load(with_file).schema["age"].level_hierarchy.leaves[7] == "7"
    assert policy.load(with_file).schema["age"].all_categories is None
    plain, named = (shoal.protect(frame, rules).data for rules in (stated, with_file))
    assert sorted(plain["age"]) == sorted(named["age"])


def test_a_hierarchy_of_a_number_whose_levels_are_not_nested_is_refused(tmp_path):
    (tmp_path / "age.csv").write_text("1,x,x,*\n2,x,*,*\n", encoding="utf-8")
    text = (
        'version = 1\n[columns]\nage = { role = "other", kind = "numeric", hierarchy = "age.csv" }'
    )

    with pytest.raises(InputError, match=r"'age', hierarchy 'age.csv': The levels .* nested"):
        policy.loads(text + '\n[protect]\nmethod = "mdav"\nk = 2', folder=tmp_path)


def test_a_hierarchy_that_was_read_off_the_data_weakens_an_epsilon_and_is_not_published(tmp_path):
    hierarchy.write(
        hierarchy.prefixes(["75011", "75012", "69001"], [2], observed=True), tmp_path / "code.csv"
    )

    def planned(**more):
        code = {"role": "quasi-identifier", "kind": "nominal", "hierarchy": "code.csv", **more}
        code["hierarchy"] = str(tmp_path / "code.csv")
        return shoal.plan({
            "version": 1,
            "columns": {"code": code},
            "protect": {"method": "auto", "epsilon": 1},
        })  # fmt: skip

    def epsilon(found):
        (claim,) = [c for c in found.claims if isinstance(c.guarantee, DifferentialPrivacy)]
        return claim.status

    assert epsilon(planned()) is Status.PROVED
    assert epsilon(planned(observed=True)) is Status.CONDITIONAL


def test_a_release_by_an_observed_hierarchy_verifies_and_its_manifest_does_not_hold_it(tmp_path):
    hierarchy.write(
        hierarchy.prefixes(["75011", "75012", "69001"], [2], observed=True), tmp_path / "code.csv"
    )
    (tmp_path / "policy.toml").write_text(
        "version = 1\n[columns]\n"
        'code = { role = "quasi-identifier", kind = "nominal", hierarchy = "code.csv", '
        'observed = true }\n[protect]\nmethod = "mondrian"\nk = 3\n'
        '[release]\naccept_constant = ["code"]\n',
        encoding="utf-8",
    )
    (tmp_path / "data.csv").write_text("code\n75011\n75012\n75011\n", encoding="utf-8")
    given = ["protect", str(tmp_path / "data.csv"), "--policy", str(tmp_path / "policy.toml")]

    ended = CliRunner().invoke(app, [*given, "--out", str(tmp_path / "out"), "--no-evaluate"])

    assert ended.exit_code == 0, ended.output
    assert "69001" not in (tmp_path / "out" / "manifest.json").read_text("utf-8")
    assert shoal.verify(tmp_path / "out").holds


BUILDS = [
    ("intervals --low 0 --high 9 --widths 5", "10 leaves, 3 levels", False),
    ("quantiles --ends 0,5,9", "10 leaves, 3 levels", False),
    ("quantiles --data data.csv --column n --groups 2", "9 leaves, 3 levels", True),
    ("dates --first 2020-01-01 --last 2020-12-31 --levels month,year", "366 leaves", False),
    ("codes --scheme isco --values codes.txt", "2 leaves, 5 levels", False),
    ("codes --lengths 2 --data data.csv --column code", "3 leaves, 3 levels", True),
    ("mask --by 2 --side left --values codes.txt", "2 leaves, 3 levels", False),
    ("ordered --values codes.txt", "2 leaves, 2 levels", False),
    ("mapping parents.csv", "2 leaves, 2 levels", False),
]


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text("n,code\n1,7501\n4,7502\n9,6901\n", encoding="utf-8")
    (tmp_path / "codes.txt").write_text("2211\n2212\n", encoding="utf-8")
    (tmp_path / "parents.csv").write_text("a,all\nb,all\n", encoding="utf-8")
    return tmp_path


@pytest.mark.usefixtures("desk")
@pytest.mark.parametrize(("given", "said", "observed"), BUILDS)
def test_every_command_writes_a_file_and_says_what_the_policy_takes(given, said, observed):
    ended = CliRunner().invoke(app, ["hierarchy", *given.split(), "--out", "made.csv"])

    assert ended.exit_code == 0, ended.output
    assert said in ended.output
    assert 'hierarchy = "made.csv"' in ended.output
    assert ("observed = true" in ended.output) is observed
    assert ("read off the data" in ended.output) is observed
    checked = CliRunner().invoke(app, ["hierarchy", "check", "made.csv"])
    assert said in checked.output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("quantiles", "either --ends, or --data and --column"),
        ("codes --values codes.txt", "either --scheme or --lengths"),
        ("codes --lengths x --values codes.txt", "a whole number, found 'x'"),
        ("mask", "either --values, or --data and --column"),
        ("mask --data data.csv", "--data and --column together"),
        ("mask --data data.csv --column cod", "No column named 'cod'. Did you mean 'code'?"),
        ("dates --first 2020 --last 2021-01-01", "a day such as 2020-01-31, found '2020'"),
        ("mapping data.csv", "'1' has two parents"),
        ("mapping codes.txt", "two cells per row"),
    ],
)
def test_what_a_command_lacks_is_said(desk, given, message):
    (desk / "data.csv").write_text("n,code\n1,7501\n1,7502\n", encoding="utf-8")

    ended = CliRunner().invoke(app, ["hierarchy", *given.split(), "--out", "made.csv"])

    assert ended.exit_code == 2
    assert message in ended.output
    assert not (desk / "made.csv").exists()
