"""The programs that repeat the papers' figures run, and leave no sentence without a verdict."""

import csv
import importlib
import re
import runpy
import sys
import xml.etree.ElementTree as ET
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

import shoal
from shoal.errors import InputError

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "docs" / "papers"
PEOPLE = 600
VERDICT = re.compile(r"holds|does not hold|cannot be tested|holds for .+ only")
PLOTS = {
    "sanchez2014": ["sse", "nominal"],
    "soriacomas2017": ["sse", "sae", "adaptive", "categories"],
    "iftikhar2019": ["fig2", "fig4", "fig5"],
    "domingoferrer2015": ["fig34", "loss", "formula", "open"],
    "domingoferrer2015-pram": ["pairs", "local", "qi"],
}
POINTS = {
    # ks x epsilons of the noisy method, plain noise, plain ranking
    "sanchez2014": 3 * 3 + 3 + 3,
    # ks x (2 plain + 3 noisy x 2 epsilons), and INS at eight values of k and three epsilons
    "soriacomas2017": 3 * (2 + 6) + 3 * (3 + 5),
    # ks x (MDAV, 4 orders), then 8 epsilons clamped and not clamped, each plain, and 2 a k
    "iftikhar2019": 3 * 5 + (8 + 8) * (1 + 2 * 3),
    # two confidential columns x ks x (6 values of t, 3 of them with two buckets too, and MDAV)
    "domingoferrer2015": 2 * 3 * (6 + 3 + 1),
    # cases x ks x (6 methods x 6 values of t, and k-anonymity alone)
    "domingoferrer2015-pram": 2 * 3 * (6 * 6 + 1),
}


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Run a program of papers/ as a script, in this process and on few people of the sample."""
    sample = shoal.sample.load()

    def run_program(name, *options, people=PEOPLE):
        monkeypatch.setattr(shoal.sample, "load", lambda: sample.head(people or sample.height))
        monkeypatch.syspath_prepend(str(ROOT / "papers"))
        monkeypatch.setattr(
            sys, "argv", [name, "--sample", "--runs", "1", *options, "--out", str(tmp_path)]
        )
        runpy.run_path(str(ROOT / "papers" / f"{name}.py"), run_name="__main__")

    return run_program


@pytest.mark.slow
@pytest.mark.parametrize("paper", PLOTS)
def test_a_paper_is_run_again_on_the_sample(paper, run, tmp_path):
    people = 1300 if paper == "soriacomas2017" else PEOPLE  # which has large groups
    run(paper.replace("-", "_"), "--ks", "2", "10", "100", people=people)

    page = (tmp_path / f"{paper}.md").read_text("utf-8")
    assert page.splitlines()[0].endswith(", on the shipped sample")
    assert "reference table" not in page.split("## ")[0]
    for plot in PLOTS[paper]:
        drawn = ET.parse(tmp_path / f"{paper}-{plot}.svg").getroot()  # noqa: S314 (our own file)
        assert len(drawn.findall(".//{*}g[@id='axes_1']//{*}path")) > 4
        assert f"({paper}-{plot}.svg)" in page
    points = rows_of(tmp_path / f"{paper}.csv")
    assert len(points) == POINTS[paper]
    assert all(float(point["sse"]) >= 0 for point in points)
    sentences = rows_of(tmp_path / f"{paper}-sentences.csv")
    assert len(sentences) >= 6
    for sentence in sentences:
        assert VERDICT.fullmatch(sentence["verdict"])
        row = f"| {sentence['sentence']} | {sentence['test']} | **{sentence['verdict']}** | "
        assert row + sentence["numbers"] + " |" in page


@pytest.mark.parametrize("paper", PLOTS)
def test_the_pages_that_we_publish_are_of_the_papers_own_tables(paper):
    page = (PAGES / f"{paper}.md").read_text("utf-8")

    assert "shipped sample" not in page
    shown = re.findall(rf"\(({paper}[\w.-]*\.(?:svg|csv))\)", page)
    assert len(shown) >= 2
    assert all((PAGES / name).is_file() for name in shown)
    verdicts = [sentence["verdict"] for sentence in rows_of(PAGES / f"{paper}-sentences.csv")]
    assert page.count("| **") == len(verdicts)
    assert 10 * verdicts.count("cannot be tested") <= len(verdicts)


@pytest.fixture
def trees(monkeypatch):
    """The releases of cormode2013."""
    monkeypatch.syspath_prepend(str(ROOT / "papers"))
    return importlib.import_module("_trees")


@pytest.mark.slow
def test_cormode2013_is_run_again_on_the_sample(run, tmp_path, monkeypatch):
    monkeypatch.delenv("SHOAL_IPUMS", raising=False)

    run("cormode2013", "--rows", "1030", people=None)

    page = (tmp_path / "cormode2013.md").read_text("utf-8")
    assert page.splitlines()[0].endswith(", on the shipped sample")
    for number in range(1, 7):
        drawn = ET.parse(tmp_path / f"cormode2013-fig{number}.svg").getroot()  # noqa: S314 (ours)
        assert len(drawn.findall(".//{*}g[@id='axes_1']//{*}path")) > 4
        assert f"(cormode2013-fig{number}.svg)" in page
    marks = rows_of(tmp_path / "cormode2013.csv")
    assert {mark["table"] for mark in marks} == {
        "the shipped sample",
        "the shipped sample, salaries",
    }
    assert all(0 <= float(mark["accuracy"]) <= 1 and float(mark["error"]) >= 0 for mark in marks)
    sentences = rows_of(tmp_path / "cormode2013-sentences.csv")
    assert len({sentence["sentence"] for sentence in sentences}) >= 40
    for sentence in sentences:
        assert VERDICT.fullmatch(sentence["verdict"])
        row = f"| {sentence['sentence']} | {sentence['test']} | **{sentence['verdict']}** | "
        assert row + sentence["numbers"] + " |" in page


def test_the_page_of_cormode2013_is_of_adult_and_of_census_microdata():
    page = (PAGES / "cormode2013.md").read_text("utf-8")

    assert "shipped sample" not in page.splitlines()[0]
    assert "Adult (30,162 rows, occupation confidential" in page
    assert "ACS (23,006 rows, salary confidential" in page
    assert "We looked at this table" in " ".join(page.split())
    shown = re.findall(r"\((cormode2013[\w.-]*\.(?:svg|csv))\)", page)
    assert len(shown) == 9
    assert all((PAGES / name).is_file() for name in shown)
    verdicts = [sentence["verdict"] for sentence in rows_of(PAGES / "cormode2013-sentences.csv")]
    assert page.count("| **") == len(verdicts)
    assert 10 * verdicts.count("cannot be tested") <= len(verdicts)
    noisy = [m for m in rows_of(PAGES / "cormode2013.csv") if "private" in m["model"]]
    assert noisy
    assert {mark["runs"] for mark in noisy} == {"8"}


def test_the_trees_of_cormode2013_achieve_what_is_asked(trees, tmp_path):
    study = trees.sample(2000)
    points = [point for number in (1, 2, 3) for point in trees.figure(study, number)]

    first, again = (list(trees.made(study, points, cache=tmp_path)) for _ in range(2))

    assert len(first) == len(list(tmp_path.glob("mondrian-*.parquet"))) == 10 + 7 + 30
    for tree, same in zip(first, again, strict=True):
        assert tree.achieved == same.achieved
        value, model = tree.point.value, tree.point.model
        if model == trees.K:
            assert tree.achieved["k"] >= value
        if model == trees.L:
            assert (tree.achieved["l"] >= value) is ("not met" not in tree.point.parameter)
        if "not met" in tree.point.parameter:
            assert len(tree.boxes) == 1


def test_every_figure_of_cormode2013_has_its_releases(trees):
    study = trees.sample(500)
    numbers = {n: len(trees.figure(study, n, runs=2)) for n in range(1, 7)}

    # Heights stop at 12, since 27 occupations and 2^14 boxes are more than 300,000 counts.
    own = 5 + 2 * 5 * 2 + 6
    noisy = 4 * (9 + 9 + 5)
    assert numbers == {1: 10, 2: 7, 3: 30, 4: noisy, 5: own, 6: 10 * (1 + 4 * 2)}
    points = trees.figure(study, 6)
    small = [p for p in points if p.model == trees.K and p.percent in {10, 100}]
    made = list(trees.made(study, small))
    assert [int(tree.boxes.counts.sum()) for tree in made] == [500] * 6 + [50, 500]
    assert made[0].boxes.column == "occupation"
    assert set(study.part(10).rows()) <= set(study.part(20).rows())


def test_what_cormode2013_says_of_adult_tells_which_models_it_means(trees):
    """The root alone from l = 6 on, and no effect of t beyond 0.35."""
    if not (trees.DATA / "adult.csv").is_file():
        pytest.skip("needs the reference table adult.csv in SHOAL_DATA")
    study = trees.adult()
    t = Decimal("0.35")
    points = [
        trees.k_anonymous(study, 1, 8),
        trees.halted(study, 3, t, "ordered"),
        trees.halted(study, 3, t, "equal"),
        trees.diverse(study, 2, 5),
        trees.diverse(study, 2, 6),
    ]

    free, ordered, equal, five, six = trees.made(study, points)

    assert len(free.boxes) == len(ordered.boxes) > 5 * len(equal.boxes)
    assert ordered.achieved["t (ordered)"] > 0.35
    assert equal.achieved["t (equal)"] > 0.7
    assert len(five.boxes) > len(six.boxes) == 1
    assert study.rho == 0.11
    assert round(study.frequent, 3) == 0.134


def test_private_trees_of_cormode2013_are_made_by_policy(trees):
    study = trees.sample(500)
    every = (*trees.PRIVATE, *trees.CUT_TO_THE_END)
    points = [trees.private(study, 4, tree, Decimal(1), 1)[0] for tree in every]

    made, again = (list(trees.made(study, points)) for _ in range(2))

    assert len(made) == 6
    for tree, same in zip(made, again, strict=True):
        assert tree.boxes.values == tuple(study.columns["occupation"]["categories"])
        assert not tree.achieved
        assert np.array_equal(tree.boxes.counts, same.boxes.counts)  # noise has a seed here
        assert (tree.boxes.counts < 0).any() == (tree.point.model in trees.CUT_TO_THE_END)
    for point in points:  # the full epsilon, for people who are present or absent
        assert point.policy["protect"]["neighbours"] == "add-remove"
    claim, *_ = shoal.protect(study.frame, points[0].policy).claims
    assert "1-differential privacy" in claim.guarantee.name or claim.guarantee.epsilon == 1
    assert claim.guarantee.neighbours == "add-remove"


def test_rows_of_our_own_methods_become_boxes_that_count_everybody(trees):
    study = trees.workers(600)
    points = [trees.own(study, method, 1)[0] for method in trees.OWN]

    for tree in trees.made(study, points):
        assert tree.boxes.counts.sum() == pytest.approx(600)
        assert (tree.boxes.upper - tree.boxes.lower == 1).all()
        whole = (tree.boxes.counts == tree.boxes.counts.round()).all()
        # A bucket holds several salaries, and counts for each of them in part.
        assert whole == (tree.point.model != "bucketization")


def test_both_measures_of_cormode2013_are_those_of_their_definitions(trees):
    """One box for all: answers are shares of its volume, and the most frequent value is guessed."""
    attacked = importlib.import_module("_attacked")
    study = trees.workers(400)
    asked = attacked.Asked.of(study, queries=50)
    root = next(iter(trees.made(study, [trees.diverse(study, 2, 8)])))

    error, _ = asked.errors(root.boxes)

    queries, true = asked.first
    low, high = (np.clip(end, asked.lows, asked.highs) for end in (queries.lower, queries.upper))
    values = np.arange(len(root.boxes.values))
    inside = (low[:, -1, None] <= values) & (values < high[:, -1, None])
    shares = ((high - low) / (asked.highs - asked.lows))[:, :-1].prod(axis=1)
    answers = shares * (inside * root.boxes.counts[0]).sum(axis=1)
    exact = [
        ((asked.places >= a) & (asked.places < b)).all(axis=1).sum()
        for a, b in zip(low, high, strict=True)
    ]
    assert true.tolist() == exact
    assert error == pytest.approx(np.median(np.abs(answers - true) / true))
    assert asked.accuracy(root.boxes)[0] == pytest.approx(study.frequent)
    for kernel in ("middle", "wide"):
        assert asked.accuracy(root.boxes, kernel=kernel)[0] == pytest.approx(study.frequent)
    assert asked.classifiers(root.boxes, boost=False)["the person's own box"] == pytest.approx(
        study.frequent
    )


def test_the_second_workload_of_cormode2013_leaves_columns_with_two_values_alone(trees):
    attacked = importlib.import_module("_attacked")
    asked = attacked.Asked.of(trees.workers(400), queries=50)

    queries, true = asked.second

    cells = (asked.highs - asked.lows).astype(int)
    taken = queries.upper - queries.lower
    assert np.isinf(taken[:, cells == 2]).all()
    assert (taken[:, cells > 2] == (cells // 2)[cells > 2]).all()
    inside = (asked.places[:, None] >= queries.lower) & (asked.places[:, None] < queries.upper)
    assert true.tolist() == inside.all(axis=2).sum(axis=0).tolist()


def test_a_sentence_that_fails_is_tried_under_every_reading(trees):
    """Made of one that needs the second workload, and one that needs it and the kd-tree."""
    said, common = importlib.import_module("_said"), importlib.import_module("_common")
    one = said.Evidence(trees.workers(50), [], {}, {}, {})

    def tests(tables):
        (seen,) = tables
        alone = dict.fromkeys(seen.trees, seen.swapped)
        both = {tree: seen.swapped and tree == trees.KD for tree in seen.trees}
        return [common.Sentence(quote, "", case, "") for quote, case in (("a", alone), ("b", both))]

    rows = said.judged([one], tests)

    assert [(row.quote, row.holds) for row in rows] == [
        ("a", False), ("a", True), ("b", False), ("b", True),
    ]  # fmt: skip
    assert rows[1].reading == "queries have the paper's selectivity (the second workload)"
    assert rows[3].reading.endswith(f", and differential privacy is the {trees.KD}")


@pytest.mark.usefixtures("trees")
def test_a_sentence_about_two_tables_counts_by_the_one_that_is_the_papers_own():
    said, common = importlib.import_module("_said"), importlib.import_module("_common")
    rows = said.by_table(
        common.Sentence("a", "test", {"k (Adult)": True, "l (Adult)": True, "k (ACS)": False}, ""),
        {"Adult": False, "ACS": True},
    )

    assert [(row.test, row.outcome, row.beside) for row in rows] == [
        ("Adult: test", {"k": True, "l": True}, False),
        (f"{said.STAND_IN}ACS: test", {"k": False}, True),
    ]
    assert common.standing(rows) == "hold"


def test_a_sentence_about_a_table_that_we_lack_is_not_refuted_by_another(trees):
    """It holds under a reading, or cannot be tested; what came out is beside."""
    said, common = importlib.import_module("_said"), importlib.import_module("_common")
    one = said.Evidence(trees.workers(50), [], {}, {}, {})

    def tests(tables):
        outcomes = {"never": False, "once swapped": tables[0].swapped}
        return said.on_stand_in(
            tables[0],
            *(common.Sentence(q, "", common.once(held), "1%") for q, held in outcomes.items()),
        )

    never, plain, swapped = said.judged([one], tests)

    assert (never.verdict, never.numbers) == (
        "cannot be tested", "on the stand-in: does not hold; 1%"
    )  # fmt: skip
    assert (plain.verdict, swapped.verdict) == ("does not hold", "holds")


def test_census_microdata_stand_where_the_paper_has_its_census(trees, monkeypatch):
    monkeypatch.delenv("SHOAL_IPUMS", raising=False)
    if not (trees.DATA / "acs.csv").is_file():
        assert trees.census().shipped
        pytest.skip("needs the ACS excerpt acs.csv in SHOAL_DATA")

    study = trees.census()

    assert study.name == "ACS"
    assert study.frame.height == 23_006
    assert list(study.columns) == ["age", "walking", "education", "industry", "salary"]
    assert round(study.rho, 3) == round(study.frequent, 3) == 0.144
    assert "We looked at" in study.about


def test_an_extract_of_ipums_takes_the_place_of_the_sample(trees, tmp_path, monkeypatch):
    path = tmp_path / "extract.csv"
    lines = [
        f"2009,{20 + i % 50},{1 + i % 2},{i % 12},{10 * (i % 9)},{700 * i}" for i in range(300)
    ]
    absent = "2009,5,1,0,0,999999"
    head = "YEAR,AGE,HCOVANY,EDUC,OCC1990,INCWAGE"
    path.write_text("\n".join([head, *lines, absent]), "utf-8")
    monkeypatch.setenv("SHOAL_IPUMS", str(path))

    study = trees.census()

    assert study.name == "an IPUMS extract"
    assert not study.shipped
    assert study.frame.shape == (300, 5)
    assert study.frame["salary"][:8].to_list() == ["from 0"] * 8
    assert study.frame["salary"][8] == "from 5,000"
    assert study.columns["education"]["categories"][:3] == ["0", "1", "2"]
    tree = next(iter(trees.made(study, [trees.k_anonymous(study, 1, 8)])))
    assert tree.achieved["k"] >= 8
    path.write_text("AGE,EDUC\n1,2\n", "utf-8")
    with pytest.raises(InputError, match="no column HCOVANY, OCC1990, INCWAGE"):
        trees.census()


def test_groups_of_any_size_lose_no_more_than_those_of_each_k_in_soriacomas2017(monkeypatch):
    """Whole records against every k; each column against both, for a joint grouping is one each."""
    monkeypatch.syspath_prepend(str(ROOT / "papers"))
    common, groupings = map(importlib.import_module, ("_common", "_groupings"))
    study = common.shipped(["age", "hours", "income"], rows=200)
    sizes = groupings.OneSize.of(study)

    for eps in ("1", "10"):
        found = groupings.adaptive(common.Runs(study), sizes, eps, 1)

        assert found.fixed.cost == min(found.joint.values())
        assert found.optimum.cost <= found.search.cost <= found.fixed.cost
        assert found.optimum.cost <= found.fixed_single.cost
        assert found.sizes.sum() == 3 * 200


def test_no_program_reaches_past_the_public_interface():
    for program in (ROOT / "papers").glob("*.py"):
        text = program.read_text("utf-8")
        assert not re.search(r"\bopendp\b|shoal\.hazmat(?!\.fakes)|import .*\b_kernels", text), (
            program.name
        )


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ([("", {"": True}), ("", {"": True})], "hold"),
        (
            [("", {"a": True, "b": False}), ("noise alone", {"": True})],
            "hold under a stated reading",
        ),
        ([("", {"": True}), ("", {"": False})], "do not hold"),
        ([("one", {"": True}), ("one", {"": False})], "do not hold"),
        ([("", {})], "cannot be tested"),
        ([("", {}), ("one", {"": True})], "hold under a stated reading"),
    ],
)
def test_a_sentence_is_counted_once_whatever_its_tests(monkeypatch, rows, where):
    monkeypatch.syspath_prepend(str(ROOT / "papers"))
    common = importlib.import_module("_common")
    sentences = [common.Sentence("words", "test", out, "", reading) for reading, out in rows]

    assert common.standings(sentences) == {n: int(n == where) for n in common.STANDINGS}


@pytest.fixture
def closeness(monkeypatch):
    """The programs of domingoferrer2015, by name."""
    monkeypatch.syspath_prepend(str(ROOT / "papers"))
    return importlib.import_module


def test_domingoferrer2015_counts_both_of_its_pages_together(closeness):
    program, common = closeness("domingoferrer2015"), closeness("_common")
    page = (PAGES / "domingoferrer2015.md").read_text("utf-8")

    rows = [
        common.Sentence(
            row["sentence"], "", {"": row["verdict"] == "holds"}, row["numbers"], row["reading"]
        )
        for row in rows_of(PAGES / "domingoferrer2015-sentences.csv")
    ]
    others = program.of_section_8(PAGES)

    assert len(others) >= 7
    assert f"The whole paper: {common.tally([*rows, *others])}" in page
    assert common.standings([*rows, *others])["cannot be tested"] == 0
    # A pipe in a cell would be a column more.
    verdicts = page.partition("## In the paper")[0].splitlines()
    cells = [line.count("|") for line in verdicts if line.startswith("| “")]
    assert set(cells) == {5}


def test_every_line_of_domingoferrer2015_has_its_place_in_shoal(closeness):
    page = (PAGES / "domingoferrer2015.md").read_text("utf-8")
    covered = closeness("_closeness").COVERED

    assert closeness("_common").coverage_table(covered) in page
    links = set(re.findall(r"\]\(([^)#]+)", " ".join(where for _, _, where in covered)))
    assert all((PAGES / link).resolve().is_file() for link in links)


def test_two_buckets_of_figure_3_are_identical_and_three_are_not(closeness):
    found = {s.quote[:14]: s for s in closeness("_bucket_sentences").figures()}

    assert found["Fig. 4, top: w"].holds
    assert found["Fig. 4, bottom"].holds
    assert found["Fig. 4, bottom"].numbers.startswith("distance 1;")


def test_the_question_of_domingoferrer2015_has_its_counterexample_and_its_converse(closeness):
    sentences = closeness("_closeness_sentences")
    before, after = sentences.neighbours(10)
    lying = sentences.lying(1e-9)

    assert sentences.stochastic_t(before, lying) == pytest.approx(1)
    assert sentences.stochastic_t(after, lying) <= 9 / 8
    assert sentences.converse()[0] < 1e-9


def test_the_papers_own_construction_is_among_the_ways_that_are_compared():
    points = {
        (p["case"], p["method"], p["t"]): p for p in rows_of(PAGES / "domingoferrer2015-pram.csv")
    }

    own = points["Adult, occupation", "bucketization", "3"]
    assert int(own["classes"]) == 1955
    assert float(own["qi"]) == pytest.approx(0.0025, abs=5e-5)
    assert int(points["Adult, occupation", "Mondrian by ratio", "3"]["classes"]) == 5


def test_the_first_page_counts_the_sentences_of_every_paper(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "papers"))
    tallies = importlib.import_module("tallies")

    page = (PAGES / "index.md").read_text("utf-8")

    assert tallies.table(PAGES) in page
    assert {f"{paper}.md" for paper in tallies.PAPERS} == {
        path.name.replace("-sentences.csv", ".md") for path in PAGES.glob("*-sentences.csv")
    }
    for paper in tallies.PAPERS:
        counts = tallies.standings(tallies.read(PAGES / f"{paper}-sentences.csv"))
        assert 10 * counts["cannot be tested"] <= sum(counts.values())
        if paper != "domingoferrer2015-pram":  # its table is that of the whole paper
            assert "| in the paper | in Shoal | where |" in (PAGES / f"{paper}.md").read_text(
                "utf-8"
            )
