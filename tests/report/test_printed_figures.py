"""Every figure that a report or the terminal prints, computed again from the files alone.

Pages are read line by line. Each line with a digit must be one of `LINES` of `printed_lines`, whose
figures are compared with a computation from the original, the released table, the policy and the
manifest, or be the same for every release (`STATIC`), or a text of the manifest. A figure in no
list fails, and so does a figure of the data model that is neither computed nor in `NOT_COMPUTED`.
"""

import json
import tomllib

import numpy as np
import pytest
from tests.report import printed, recompute
from tests.report.printed_lines import explain
from tests.report.recomputed_figures import Printed

from shoal.publish import protect_file
from shoal.report import terminal

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # columns of stars: 0 / 0
IN_ORDER = '\nrelease_form = "row-aligned"'
METHODS = recompute.METHODS | {
    "mdav in order": recompute.METHODS["mdav"] + IN_ORDER,
    "laplace in order": recompute.METHODS["laplace"] + IN_ORDER,
}
NOT_COMPUTED = {
    "singling out": "conditions are drawn; its definition is tested on small tables, where all "
    "conditions can be listed",
    "linkability": "ties among nearest rows are drawn",
    "gradient boosting": "learnt by a library",
    "learning": "learnt by a library",
    "propensity": "learnt by a library, against permutations that are drawn",
}
"""Metrics whose printed figures are compared with `figures.json` alone, and why.

Checked of each: it is the same wherever it is printed, and lies in its interval.
"""
SAMPLED = {
    "inference": "ties among nearest rows are drawn: between the least and the most that they give",
    "COUNT queries": "queries are drawn: compared with as many of ours",
}
"""Metrics that are computed with draws of our own, and how they are compared."""
CUT = {"naive Bayes", "breach increase", "surest guesses"}
"""Not computed where numbers of so many places are cut at quantiles, as noise makes them."""


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """Each release once, with what its files say."""
    made = {}

    def of(table, method, reference):
        if (table, method) not in made:
            folder = tmp_path_factory.mktemp("release")
            data, stated = table(folder, reference)
            data.write_parquet(folder / "data.parquet")
            keys = [n for n, c in tomllib.loads(stated)["columns"].items() if "quasi" in str(c)]
            more = f"[release]\naccept_constant = {json.dumps(keys)}\n" if "full" in method else ""
            (folder / "policy.toml").write_text(
                f"version = 1\none_row_per_person = true\n{stated}\n[protect]\n{METHODS[method]}\n"
                f"{more}",
                "utf-8",
            )
            published = protect_file.protect(
                folder / "data.parquet", folder / "policy.toml", folder / "out"
            )
            made[table, method] = Printed(folder, folder / "out", data, method), published
        return made[table, method]

    return of


TABLES = [
    recompute.sample, recompute.made,
    pytest.param(recompute.adult, marks=pytest.mark.data),
]  # fmt: skip
STATIC = {
    "Digest (SHA-256)", "Of 100 tries, how many succeed; lines are 95% intervals.",
    "How many of 100 tries succeed, with 95% intervals in brackets.",
    "About 95 of 100 such lines cover the count in the table that the noise was added to.",
    "0 means no error, 1 is as much as publishing only the mean, more is worse than that.",
    "0 means no error, 1 is as much as publishing only the mean.",
    "0 is no row, 1 is every row.",
    "0 if all shares are the same, 1 if no value is in common.",
    "0 is not at all, 1 is as far as publishing only the mean.",
    "What this decision is about, by digest (SHA-256).",
    "Cells that became a range or a group of categories: 0 is no row, 1 is every row.",
    ("Categories, by their shares, with the sampling weights where both tables have them and were "
    "evaluated: 0 if all shares are the same, 1 if no value is in common."),
    "A range that holds the true figure in 95 of 100 such measurements.",
}  # fmt: skip
"""Sentences with a digit that are the same for every release."""


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_every_printed_figure_is_what_the_files_say(table, method, releases, reference):
    own, published = releases(table, method, reference)
    quoted = STATIC | own.quoted()
    texts = {
        "confidential": printed.Page((own.out.with_name("out.internal") / "report.html").read_text(
            "utf-8")).lines,
        "public": printed.Page((own.out / "report.html").read_text("utf-8")).lines,
        "terminal": terminal.release_text(published.release, published.notes).splitlines(),
    }  # fmt: skip
    wrong = {}
    for page, lines in texts.items():
        for line in (" ".join(line.split()) for line in lines):
            if line.startswith("| Column | "):
                heads = line.split(" | ")[1:]
                own.heads = heads if own.are_groups(heads) else own.heads
            if why := explain(own, line, quoted):
                wrong[page, line] = why

    assert not wrong, "\n".join(f"{page}: {line} ~ {why}" for (page, line), why in wrong.items())


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("method", METHODS)
def test_every_figure_of_the_data_model_is_computed_or_listed(table, method, releases, reference):
    """False alarm: samples of ours and theirs lie further apart than five times both intervals
    with probability below 1e-6.
    """
    own, _ = releases(table, method, reference)

    for (metric, subject), row in own.rows.items():
        value = row["value"]
        if row["low"] is not None:
            assert row["low"] <= value <= row["high"]
        if (metric, subject) in own.own:
            expected = own.own[metric, subject]
            assert value == (
                expected if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-9)
            )
        elif metric == "inference":
            least, most = own.inferred(own.by_name[subject])
            assert least - 0.5 < value * len(own.original) < most + 0.5
        elif metric == "COUNT queries":
            errors, _ = own.workload(3 if "3" in subject else None)
            low, middle, high = (np.quantile(errors, at) for at in (0.478, 0.5, 0.522))
            assert abs(value - middle) <= 5 * (high - low + row["high"] - row["low"]) / 2 + 1e-9
        elif value is None:
            assert "cannot be computed" in row["sentence"]
        else:
            assert metric in NOT_COMPUTED or (metric in CUT and own.cuts_numbers())


def test_a_figure_that_is_in_no_list_is_found(releases, reference):
    own, _ = releases(recompute.made, "mdav", reference)

    assert explain(own, "The report has a new figure: 12.", set()) == "in no list"
    assert explain(own, "The mean of 'age' moves by +0.5 standard deviations.", set())
    assert not explain(own, "The report has a new sentence.", set())
