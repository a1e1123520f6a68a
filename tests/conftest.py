"""Shared by all tests: the reference data, small tables, a browser, and hypothesis' profile."""

import os
import shutil
from pathlib import Path

import polars as pl
import pytest
from hypothesis import HealthCheck, Phase, settings

# `make test` draws the same examples every time, so that a landing never hangs on luck; `make fuzz`
# draws new ones, and what it finds is kept as an @example.
settings.register_profile(
    "test",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize=True,
)
settings.register_profile("fuzz", settings.get_profile("test"), derandomize=False, max_examples=500)
# `make mutants` wants to know that a test fails, and not on how small an example.
settings.register_profile(
    "mutants", settings.get_profile("test"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile(os.environ.get("SHOAL_EXAMPLES", "test"))

ROOT = Path(__file__).parent.parent
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
DATA = Path(os.environ.get("SHOAL_DATA", ROOT.parent / "shared" / "data"))


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
