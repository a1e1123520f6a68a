import csv
import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def columns():
    """Read a reference table as lists of cells, or skip by name."""
    places = [os.environ.get("SHOAL_DATA", ""), Path(__file__).parents[3] / "shared" / "data"]

    def read(name):
        files = [Path(place) / name for place in places if place]
        found = next((file for file in files if file.is_file()), None)
        if found is None:
            pytest.skip(f"{name} is not here: set SHOAL_DATA to the folder that holds it")
        with found.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return {column: [row[column] for row in rows] for column in rows[0]}

    return read


@pytest.fixture(scope="session")
def reference(columns):
    """Read the named columns of a reference table as z-scores, or skip by name."""

    def read(name, wanted):
        table = columns(name)
        X = np.array([table[column] for column in wanted], float).T
        return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)

    return read
