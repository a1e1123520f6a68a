"""On Spark too what leaves is the same for neighbouring tables; see `tests/test_boundary.py`."""

import polars as pl
import pytest
from tests import leaving

import shoal
from shoal.core import ReleaseForm
from shoal.methods import REGISTRY
from shoal.pipeline import protect_table

FORMS = dict(reversed(leaving.PROVED))
DISTRIBUTED = [
    (name, form) for name, form in FORMS.items() if REGISTRY[name].distributed is not None
]
"""Every method that runs on Spark, in its first form with a proved epsilon."""


def on_spark(spark, cells):
    """A DataFrame of texts, as Spark reads a CSV file."""
    texts = {
        name: [None if cell is None or cell is leaving.pd.NaT else str(cell) for cell in values]
        for name, values in cells.items()
    }
    frame = pl.DataFrame(texts, schema=dict.fromkeys(texts, pl.String))
    return spark.createDataFrame(frame.to_arrow())


@pytest.mark.parametrize(
    ("name", "form"), DISTRIBUTED, ids=[f"{name}-{form.value}" for name, form in DISTRIBUTED]
)
def test_what_spark_returns_is_the_same_for_neighbours(name, form, spark, monkeypatch):
    noise = leaving.Replay()

    def built():
        noise.begin()
        return noise

    monkeypatch.setattr(protect_table, "OpenDPNoise", built)
    rules, changeable = leaving.policy(name, form)
    rules["columns"]["batch"] = "identifier" if name != "public-laplace" else {
        "role": "other", "kind": "nominal", "categories": ["0", "1"], "public": True
    }  # fmt: skip
    seen = []
    for number in (None, 4):
        cells = leaving.people() if number is None else leaving.neighbour(number, changeable)
        made = shoal.protect(on_spark(spark, cells), rules)
        # Keys of the shuffle go with blocks: where a row lands is random, and not replayed.
        rows = [tuple(map(repr, row)) for row in made.data.collect()]
        columns = [sorted(column) for column in zip(*rows, strict=True)]
        rows = columns if form is ReleaseForm.COLUMN_SHUFFLED else sorted(rows)
        manifest = {**made.manifest.as_values(), "created": ""}
        seen.append((made.data.schema, rows, repr(manifest), repr(made.claims)))

    assert seen[0] == seen[1]
