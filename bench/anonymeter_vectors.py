"""Write anonymeter's risks on two fixed tables, as TOML for `tests/vectors/anonymeter.toml`.

Run it in an environment of its own that has anonymeter 1.1.0, which wants numpy below 1.27:

    python bench/anonymeter_vectors.py > tests/vectors/anonymeter.toml
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from anonymeter import evaluators

sys.path.append(str(Path(__file__).parents[1] / "tests" / "vectors"))
import anonymeter_tables as t


def main() -> None:
    """Print the vectors."""
    warnings.simplefilter("ignore")
    print('# Written by bench/anonymeter_vectors.py.\nversion = "1.1.0"\nconfidence = 0.95')
    print(f"attacks = {t.ATTACKS}")
    for table, make in t.TABLES.items():
        *arrays, kinds = make()
        print(f"\n[{table}]\nchecksum = {sum(float(array.sum()) for array in arrays)!r}")
        inside, outside, released = (frame(array, kinds) for array in arrays)
        modes = (("one", "univariate"), ("three", "multivariate"))
        for (name, mode), wanted in zip(modes, t.PREDICATES[table], strict=True):
            evaluator = evaluators.SinglingOutEvaluator(
                inside, released, n_attacks=wanted, n_cols=3, control=outside, seed=1
            )
            show(table, f"singling_out_{name}", evaluator.evaluate(mode=mode))
        np.random.seed(1)  # noqa: NPY002  # what anonymeter draws from
        first, second = ([f"c{j}" for j in part] for part in t.PARTS[table])
        for k in (1, 5):
            evaluator = evaluators.LinkabilityEvaluator(
                inside, released, (first, second), t.ATTACKS, n_neighbors=k, control=outside
            )
            show(table, f"linkability_{k}", evaluator.evaluate(n_jobs=1))
        for secret, tolerance in t.SECRETS[table].items():
            aux = [c for c in inside.columns if c != f"c{secret}"]
            evaluator = evaluators.InferenceEvaluator(
                inside, released, aux, f"c{secret}", tolerance is not None, t.ATTACKS, outside
            )
            show(table, f"inference_{secret}", evaluator.evaluate(n_jobs=1))


def frame(array: Any, kinds: list[bool]) -> Any:
    """Categories as texts, numbers as they are."""
    columns = {
        f"c{j}": [f"v{int(x)}" for x in array[:, j]] if kind else array[:, j]
        for j, kind in enumerate(kinds)
    }
    return pd.DataFrame(columns)


def show(table: str, name: str, evaluator: Any) -> None:
    """One section of the file."""
    results, risk = evaluator.results(), evaluator.risk()
    print(f"\n[{table}.{name}]")
    for rate in ("attack", "baseline", "control"):
        found = getattr(results, f"{rate}_rate")
        low, high = found.value - found.error, found.value + found.error
        print(f"{rate} = [{found.value:.6f}, {low:.6f}, {high:.6f}]")
    print(f"residual = [{risk.value:.6f}, {risk.ci[0]:.6f}, {risk.ci[1]:.6f}]")
    print(f"trials = {results.n_attacks_ori}")
    counts = (results.n_success, results.n_baseline, results.n_control)
    print("successes = [" + ", ".join(f"{float(n):.3f}" for n in counts) + "]")


if __name__ == "__main__":
    main()
