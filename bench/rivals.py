"""Draw rows by a rival as its authors ship it, in the environment that has it.

    PYTHON bench/rivals.py JOB.json

This program knows nothing of Shoal, and Shoal nothing of these libraries; `_peers.py` starts it,
and bench/README.md says how to install them. A job names a CSV of codes and how many codes each
column has; rows come back as a CSV, and what they took as JSON on the last line of the output.

    aim, mst               the authors' mechanisms, of the repository of mbi, on mbi 2.0.0
    swift, dpsynth-aim,
    dpsynth-mst,
    independent            google/dpsynth of its repository, `DiscreteConfig` around each
    dpmm-aim, dpmm-mst     dpmm, without its preprocessing of numbers: there are codes alone

All run with their default settings, and count (epsilon, delta) for a row added or removed; none is
pure. The domain is public to all of them, the number of rows to none; dpmm alone is told how many
to draw. None can use that codes have an order. Of the budget `mst` spends a third on one-way
marginals, a third on selecting and a third on pairs, dpsynth a tenth on one-way marginals.

A job's keys: `folder`, with checkouts `mbi` and `dpsynth`; `table` and `out`, paths; `sizes`, codes
per column in order; `algorithm`; `epsilon`; `delta`; `rows`; `seed`; `limit`, CPU seconds after
which the run dies. What comes back: CPU `seconds` and the `clock`, of which `compiling` by stage.
"""

import contextlib
import json
import os
import resource
import sys
import time
from importlib import import_module
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

# One thread: CPU seconds of idle workers would count against the rival.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np


def main() -> None:
    """Run one job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # The harder limit comes later, so that the signal tells who ended the run.
    resource.setrlimit(resource.RLIMIT_CPU, (job["limit"], job["limit"] + 60))
    names = list(job["sizes"])
    codes = np.loadtxt(job["table"], dtype=np.int64, delimiter=",", skiprows=1, ndmin=2)
    columns = dict(zip(names, codes.T, strict=True))
    family = job["algorithm"].split("-")[0]
    draw, packages = {
        "aim": (_authors, ("mbi", "jax")),
        "mst": (_authors, ("mbi", "jax")),
        "dpmm": (_dpmm, ("dpmm",)),
    }.get(family, (_dpsynth, ("mbi", "jax", "dp-accounting")))
    compiling = _listen() if family != "dpmm" else {}
    np.random.seed(job["seed"])  # noqa: NPY002 - the libraries draw from the global generator
    clock, begin = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(sys.stderr):
        drawn = draw(job, columns)
    seconds, clock = time.process_time() - begin, time.perf_counter() - clock
    rows = np.column_stack([np.asarray(drawn[name]) for name in names]).astype(np.int64)
    header = ",".join(names)
    np.savetxt(job["out"], rows, fmt="%d", delimiter=",", header=header, comments="")
    versions = {name: version(name) for name in packages}
    told = {"seconds": seconds, "clock": clock, "compiling": compiling, "versions": versions}
    print(json.dumps(told | {"rows": len(rows)}))


def _listen() -> dict[str, float]:
    monitoring = import_module("jax.monitoring")
    compiling: dict[str, float] = {}

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile"):
            stage = event.rsplit("/", maxsplit=1)[-1]
            compiling[stage] = compiling.get(stage, 0.0) + seconds

    monitoring.register_event_duration_secs_listener(listen)
    return compiling


def _authors(job: dict[str, Any], columns: dict[str, Any]) -> Any:
    """AIM or MST as the `main` of their authors' programs runs them."""
    sys.path.insert(0, str(Path(job["folder"]) / "mbi" / "mechanisms"))
    mbi, program = import_module("mbi"), import_module(job["algorithm"])
    if not hasattr(mbi.Domain, "attrs"):  # as mst.py calls what mbi 2.0.0 renamed
        mbi.Domain.attrs = property(lambda domain: domain.attributes)
    data = mbi.Dataset(columns, mbi.Domain.fromdict(job["sizes"]))
    if job["algorithm"] == "mst":
        return program.MST(data, job["epsilon"], job["delta"]).to_dict()
    usual = program.default_params()
    workload = combinations(data.domain, usual["degree"])
    workload = [(pair, 1.0) for pair in workload if data.domain.size(pair) <= usual["max_cells"]]
    workload += [((name,), 1.0) for name in data.domain] if not workload else []
    limits = {name: usual[name] for name in ("max_model_size", "max_iters")}
    return program.AIM(job["epsilon"], job["delta"], **limits).run(data, workload)[1].to_dict()


def _dpsynth(job: dict[str, Any], columns: dict[str, Any]) -> Any:
    sys.path.insert(0, str(Path(job["folder"]) / "dpsynth"))
    mbi, mechanisms = import_module("mbi"), import_module("dpsynth.discrete_mechanisms")
    inner = {
        "swift": mechanisms.SWIFTConfig,
        "independent": mechanisms.IndependentConfig,
        "dpsynth-aim": mechanisms.AIMConfig,
        "dpsynth-mst": mechanisms.MSTConfig,
    }[job["algorithm"]]()
    ready = mechanisms.DiscreteConfig(mechanism=inner).calibrate(
        epsilon=job["epsilon"], delta=job["delta"]
    )
    data = mbi.Dataset(columns, mbi.Domain.fromdict(job["sizes"]))
    return ready(np.random.default_rng(job["seed"]), data).synthetic_data.to_dict()


def _dpmm(job: dict[str, Any], columns: dict[str, Any]) -> Any:
    frame = import_module("pandas").DataFrame(columns)
    pipelines = import_module("dpmm.pipelines")
    kind = {"dpmm-aim": pipelines.AIMPipeline, "dpmm-mst": pipelines.MSTPipeline}[job["algorithm"]]
    made = kind(epsilon=job["epsilon"], delta=job["delta"], disable_processing=True, n_jobs=1)
    made.fit(frame, domain=job["sizes"], random_state=job["seed"])
    return made.generate(n_records=job["rows"], random_state=job["seed"] + 1)


if __name__ == "__main__":
    main()
