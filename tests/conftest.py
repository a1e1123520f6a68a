"""Shared by all tests: what is slow, the reference data, small tables, a browser, and profiles."""
# ruff: noqa: E402 (how many threads libraries have is said before they are loaded)

import gc
import os
import shutil
import tempfile
from functools import cache
from pathlib import Path

# Tables of tests are small, and as many processes as cores run them: more threads would wait for
# work, and be paid for it. Libraries read this once, so it stands before they are loaded.
for _threads in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(_threads, "1")

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, is_hypothesis_test, settings

# `make test` draws the same examples every time, so that a landing never hangs on luck; `make fuzz`
# draws new ones, and what it finds is kept as an @example. A test states how many examples it is
# worth (100 if it does not say): `make fuzz` draws five times as many, the others two fifths.
SHARES = {"test": 0.4, "mutants": 0.4, "fuzz": 5}
PROFILE = os.environ.get("SHOAL_EXAMPLES", "test")
settings.register_profile(
    "test",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=True,
)
settings.register_profile("fuzz", settings.get_profile("test"), derandomize=False)
# `make mutants` wants to know that a test fails, and not on how small an example.
settings.register_profile(
    "mutants", settings.get_profile("test"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(PROFILE)

# Every release waits for the disk, and a test has no reason to: its folders lie in memory.
MEMORY = Path("/dev/shm")  # noqa: S108
if "TMPDIR" not in os.environ and os.access(MEMORY, os.W_OK):
    os.environ["TMPDIR"] = str(MEMORY)
    tempfile.tempdir = None  # asked for before
    # A disk notes what a release reserves on it, and memory fills all of it with zeros: a third of
    # what a small release takes. Commands that run as processes of their own reserve it in full.
    reserve = os.posix_fallocate
    os.posix_fallocate = lambda file, at, size: reserve(file, at, min(size, 1 << 16))

ROOT = Path(__file__).parent.parent
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
DATA = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))


SLOW = frozenset(
    """
    auditing/test_audit.py auditing/test_neighbouring_tables.py auditing/test_prices.py
    auditing/test_privacy_losses.py budget/test_budget_file.py canaries cli/test_commands.py
    cli/test_console.py engine/test_checks_and_metrics.py engine/test_losses.py engine/test_rows.py
    evaluation/test_compare.py evaluation/test_domains.py evaluation/test_evaluate.py
    evaluation/test_frontier.py evaluation/test_private_selection.py evaluation/test_running.py
    faults fuzz hazmat/test_noise.py io/test_decomposition_table.py io/test_external.py
    io/test_headerless.py mechanism/test_consistent_counts.py mechanism/test_randomised_response.py
    mechanism/test_spatial_trees.py
    methods/drawn_rows/test_strata.py methods/drawn_rows/test_synthesis.py
    methods/grouping/test_recode.py methods/grouping/test_whole_persons.py
    methods/noise/test_contributions.py methods/noise/test_recordwise.py
    methods/test_beyond_one_machine.py methods/test_bucketization.py methods/test_methods.py
    methods/test_mondrian.py methods/trees/test_spatial_trees.py metrics/test_attacks.py
    metrics/test_epsilon_lower_bound.py metrics/test_naive_bayes.py metrics/test_propensity.py
    metrics/test_record_linkage.py metrics/test_uniqueness.py mutants package
    partition/test_bucketization.py partition/test_kernels.py partition/test_mondrian_tree.py
    partition/test_noise_aware.py partition/test_univariate.py pipeline/test_booking.py
    pipeline/test_epsilon_release.py policy/test_draft.py privacy_models/test_privacy_models.py
    publish/test_evidence.py publish/test_protect_file.py publish/test_verify_folder.py
    report/test_degenerate.py report/test_pages.py sample studio/test_compare_page.py
    studio/test_downloads.py studio/test_history.py studio/test_invalid_input.py
    studio/test_jobs.py studio/test_launch.py studio/test_policy_document.py studio/test_ports.py
    studio/test_profile.py studio/test_screens.py studio/test_security.py studio/test_serving.py
    studio/test_unseen.py studio/test_uploads.py studio/test_way.py studio/test_whose_rows.py
    studio/test_workspace.py synthesis/test_adaptive_tree.py synthesis/test_auto.py
    synthesis/test_fit.py synthesis/test_lbfgs.py synthesis/test_fine_pairs.py
    synthesis/test_maxent.py synthesis/test_posterior.py synthesis/test_three_way.py
    test_bad_input.py test_bench.py test_bench_tables.py test_boundary.py test_docs.py
    test_goldens.py test_papers.py
    """.split()  # noqa: SIM905 (paths read better without their quotes)
)
"""Folders and files that `make test-fast` leaves out: each takes more than about a CPU-second,
starts servers, or runs the whole command."""

TOGETHER = (
    ("tests/engine/",),
    tuple(f"tests/studio/test_{name}.py" for name in ("ports", "schemes", "screens", "way")),
)
"""Files that one process runs, because they share what is dear to start."""

MARKS = {"chromium": "browser", "reference": "data", "spark": "spark"}
"""Marks by the fixtures that a test uses."""


@cache
def is_slow(path):
    """Whether a file of tests, or the folder that it lies in, is left out of `make test-fast`."""
    if not path.is_relative_to(ROOT / "tests"):
        return False
    place = path.relative_to(ROOT / "tests")
    return any(one.as_posix() in SLOW for one in (place, *place.parents))


def pytest_ignore_collect(collection_path, config):
    """Do not even load what is left out; `None` leaves the choice to others."""
    if "not slow" not in config.option.markexpr or collection_path.suffix != ".py":
        return None
    return is_slow(collection_path) or None


def draw_its_share(test):
    """Let a property draw the share of its stated examples that the profile sets, at least 3."""
    stated = test._hypothesis_internal_use_settings
    share = max(min(stated.max_examples, 3), round(stated.max_examples * SHARES[PROFILE]))
    test._hypothesis_internal_use_settings = settings(stated, max_examples=share)


def pytest_collection_modifyitems(items):
    """Mark tests by what they use and by where they lie, and share out the examples."""
    functions = {getattr(item, "function", None) for item in items}
    for property_test in filter(is_hypothesis_test, functions):
        draw_its_share(property_test)
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")
        for fixture, mark in MARKS.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(mark)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each process whole files, so what the tests of a file share is made once.

    Some share more than a file does: a session of Spark, or a studio and a browser at it.
    """
    if config.option.dist != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling  # noqa: PLC0415 (where it is installed)

    class ByFile(LoadFileScheduling):
        def _split_scope(self, nodeid):
            shared = (group for group in TOGETHER if nodeid.startswith(group))
            return str(next(shared, super()._split_scope(nodeid)))

    return ByFile(config, log)


def pytest_collection_finish():
    """Look for garbage in what tests make, not again and again in what was loaded for them."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    """Say what the run cost; of workers, only what those that ended have used."""
    used = sum(os.times()[:4])
    terminalreporter.write_line(f"{used:.0f} CPU-seconds")


@pytest.fixture
def reference():
    """Read a reference table by name, or skip by that name where the folder is absent."""

    def read(name):
        path = DATA / f"{name}.csv"
        if not path.exists():
            pytest.skip(f"needs the reference table {name}.csv in SHOAL_DATA")
        return pl.read_csv(path)

    return read


@pytest.fixture
def people():
    """Twelve invented people, with ties and a missing cell."""
    return pl.DataFrame(
        {
            "name": [f"person {i}" for i in range(12)],
            "age": [23, 25, 25, 31, 33, 38, 41, 47, 47, 52, 60, 71],
            "region": ["north", "south", "north", "south"] * 3,
            "income": [12, 18, 18, 25, 31, None, 40, 44, 52, 61, 75, 90],
        }
    )


@pytest.fixture
def policy():
    """A policy for `people`, as a mapping that a test may change."""
    return {
        "version": 1,
        "one_row_per_person": True,
        "columns": {
            "name": "identifier",
            "age": {"role": "quasi-identifier", "kind": "numeric", "bounds": [0, 110]},
            "region": {"role": "quasi-identifier", "kind": "nominal"},
            "income": {"role": "confidential", "kind": "numeric"},
        },
        "protect": {"method": "mdav", "k": 3},
    }


@pytest.fixture(scope="session")
def chromium():
    """Chromium: SHOAL_CHROMIUM, one on the path, or the one that Playwright brought."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    found = os.environ.get("SHOAL_CHROMIUM") or shutil.which("chromium")
    with playwright.sync_playwright() as driver:
        try:
            browser = driver.chromium.launch(executable_path=found, args=list(FLAGS))
        except playwright.Error:
            pytest.skip("needs a Chromium that starts")
        yield browser
        browser.close()
