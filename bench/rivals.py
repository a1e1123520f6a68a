"""Draw rows by AIM or MST, in the environment that has them; `tables.py` starts this program.

    $SHOAL_RIVALS bench/rivals.py JOB.json

OpenDP's `opendp.extras.mbi` on top of the mbi library; bench/README.md says how to install them.
A job names a CSV of codes and how many codes each column has; rows come back as a CSV, and what
they took as JSON on the last line of the output. This program knows nothing of Shoal, and Shoal
nothing of these libraries.

A job's keys: `table` and `out`, paths; `sizes`, codes per column in order; `algorithm`, aim or mst;
`epsilon`, for one row added or removed; `delta`, absent for pure differential privacy; `rows`, how
many to draw; `total`, whether the fit may know that number; `seed`, of the sampling; `limit`, CPU
seconds after which the run dies. The noise is OpenDP's and has no seed.

What comes back: CPU `seconds` and the `clock`, of which `compiling` by stage, on the clock; the
model's `total` and its `cliques`.

Codes are declared by cut points, not as keys: for keys OpenDP adds a category for missing cells, of
which there are none.
"""

import json
import math
import os
import resource
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

# One thread: CPU seconds of idle workers would count against the rival.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import jax.monitoring
import numpy as np
import opendp.extras.mbi._aim as steps
import opendp.prelude as dp
import polars as pl
from mbi import estimation
from opendp.mod import OpenDPException

_SELECT = steps._make_aim_select  # noqa: SLF001

_SHAVES = (0.0, 1e-9, 1e-6, 1e-5, 3e-5, 1e-4)
"""Shares of epsilon left unspent in turn, where a rounding error refuses the budget."""
_TOO_LITTLE = "must not be finite and non-negative"
"""What AIM's search for a noise scale says where none fits what is left of epsilon."""


def main() -> None:
    """Run one job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # The harder limit comes later, so that the signal tells who ended the run.
    resource.setrlimit(resource.RLIMIT_CPU, (job["limit"], job["limit"] + 60))
    dp.enable_features("contrib")
    compiling: dict[str, float] = {}

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile"):
            stage = event.rsplit("/", maxsplit=1)[-1]
            compiling[stage] = compiling.get(stage, 0.0) + seconds

    jax.monitoring.register_event_duration_secs_listener(listen)
    names = list(job["sizes"])
    codes = pl.read_csv(job["table"], schema=dict.fromkeys(names, pl.Int32))
    np.random.seed(job["seed"])  # noqa: NPY002 - mbi samples with the global generator
    clock, begin = time.perf_counter(), time.process_time()
    model = fit(job, codes)
    drawn = model.synthetic_data(job["rows"], "sample").df
    rows = np.column_stack([np.asarray(drawn[name]) for name in names])
    seconds, clock = time.process_time() - begin, time.perf_counter() - clock
    header = ",".join(names)
    np.savetxt(job["out"], rows, fmt="%d", delimiter=",", header=header, comments="")
    cliques = sorted(set(model.cliques), key=len)
    told = {
        "seconds": seconds,
        "clock": clock,
        "compiling": compiling,
        "total": float(model.total),
        "cliques": ["+".join(clique) for clique in cliques],
        "versions": {name: version(name) for name in ("opendp", "mbi", "jax")},
    }
    print(json.dumps(told))


def fit(job: dict[str, Any], codes: pl.DataFrame) -> Any:
    """The fitted model, at the price that the job states."""
    known = job["rows"] if job["total"] else None

    def estimator(domain: Any, losses: Any, *, potentials: Any = None) -> Any:
        return estimation.mirror_descent(domain, losses, known_total=known, potentials=potentials)

    steps._make_aim_select = _select_or_stop  # noqa: SLF001
    algorithm = {"aim": dp.mbi.AIM, "mst": dp.mbi.MST}[job["algorithm"]](estimator=estimator)
    cuts = {name: list(range(size - 1)) for name, size in job["sizes"].items()}
    for shave in _SHAVES:
        spent = job["epsilon"] * (1 - shave)
        loss = {"rho": rho(spent, job["delta"])} if job.get("delta") else {"epsilon": spent}
        context = dp.Context.compositor(
            data=codes.lazy(),
            privacy_unit=dp.unit_of(contributions=1),
            privacy_loss=dp.loss_of(**loss),
        )
        try:
            query = context.query(**loss).contingency_table(cuts=cuts, algorithm=algorithm)
            return query.release().model
        except Exception as error:
            if shave == _SHAVES[-1] or "budget" not in str(error):
                raise
    raise AssertionError


def _select_or_stop(*args: Any, **named: Any) -> Any:
    """AIM's choice of the next table, or None if too little of epsilon is left for a choice.

    That is what the library means to do: it catches a ValueError there, but the search of this
    version raises another error, and the run would be lost at its very last step.
    """
    try:
        return _SELECT(*args, **named)
    except OpenDPException as error:
        if _TOO_LITTLE in str(error):
            return None
        raise


def rho(epsilon: float, delta: float) -> float:
    """The largest rho whose zero-concentrated privacy implies (epsilon, delta).

        delta = min over a > 1 of exp((a - 1) (a rho - epsilon) + a ln(1 - 1/a)) / (a - 1)

    References:
        Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy", NeurIPS
        (2020), Corollary 13.
    """
    orders = 1 + np.logspace(-3, 5, 4000)

    def enough(rho: float) -> bool:
        exponents = (orders - 1) * (orders * rho - epsilon) + orders * np.log1p(-1 / orders)
        return bool(np.min(exponents - np.log(orders - 1)) <= math.log(delta))

    low, high = 0.0, epsilon + 1
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


if __name__ == "__main__":
    main()
