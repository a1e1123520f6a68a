"""Mark every cell of a table, release it in every way, and look for the marks in what leaves.

    python -m tests.canaries.run [--runs N]

Every identifier, dropped cell, cell outside its domain, label, file name and note of the policy is
a mark of its own, such as qzN0a1b2c3d, whose letter says where it stands. After each run of the
whole command every byte of the public folder (and what its tables hold, decoded), stdout and stderr
are searched. No mark may be there but those of columns that the method may release as they are.
Numbers of an epsilon release are marks too: none of them may come out as it went in. The last runs
are mistakes: what the command says of them may show no mark either. The exit code is 1 if one does.

Every step is a child of this process, which has loaded everything and computed nothing: threads of
Polars do not outlive a fork.
"""

import argparse
import itertools
import json
import os
import pickle
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pyreadstat
from tests.faults.run import Ended, forked

from shoal.methods import REGISTRY
from shoal.methods.method import protected

MARK = re.compile(r"qz([A-Z])[0-9a-f]{8}")
FORMATS = ("parquet", "csv", "sav", "dta")
INPUTS = ("csv", "parquet", "sav")
ROWS = 30
ALWAYS = "NDPC"
"""Marks of names, dropped cells, the path and the context may never come out."""
LEVELS = ["a", "b", "c"]
RECORD_WISE = {
    name for name, method in REGISTRY.items() if method.input.clamped not in {None, protected}
}


@dataclass(frozen=True)
class Case:
    """One way to a release."""

    method: str
    form: str
    input: str
    number: int

    @property
    def noisy(self) -> bool:
        """Whether all its cells become values of public domains."""
        method = REGISTRY[self.method]
        return method.noisy and self.method not in RECORD_WISE | {"public-laplace"}

    @property
    def forbidden(self) -> str:
        """Letters of marks that may not come out."""
        if self.noisy:
            return ALWAYS + "XFSL"
        return ALWAYS + ("S" if self.method in RECORD_WISE | {"public-laplace"} else "")


def cases(runs: int) -> list[Case]:
    """So many ways, every method with every format before one comes again."""
    ways = list(itertools.product(REGISTRY, FORMATS))
    random.Random(1).shuffle(ways)  # noqa: S311 (which come first does not matter)
    chosen = itertools.islice(itertools.cycle(ways), runs)
    return [Case(*way, INPUTS[i % 3], i) for i, way in enumerate(chosen)]


class Marks:
    """Marks that occur once."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)  # noqa: S311 (marks are no secrets)

    def __call__(self, letter: str) -> str:
        """The next mark of a letter."""
        return f"qz{letter}{self._rng.getrandbits(32):08x}"

    def number(self) -> float:
        """A number with digits that no grid has."""
        return round(self._rng.uniform(1, 99), 9)


def table(case: Case, mark: Marks) -> pl.DataFrame:
    """People of whom every cell is marked."""
    rows: dict[str, list[Any]] = {name: [] for name in ("name", "gone", "number", "flat", "secret")}
    for i in range(ROWS):
        odd = case.noisy and case.input != "sav" and i % 3 == 0
        rows["name"].append(mark("N"))
        rows["gone"].append(mark("D"))
        rows["number"].append(mark("X") if odd else str(mark.number()))
        rows["flat"].append(mark("F") if i % 2 else LEVELS[i % 3])
        rows["secret"].append(mark("S") if i % 2 else LEVELS[i % 3])
    frame = pl.DataFrame(rows, schema=dict.fromkeys(rows, pl.String))
    if not case.noisy:
        confidential = frame["secret"] if "S" in case.forbidden else pl.Series(LEVELS * (ROWS // 3))
        frame = frame.with_columns(pl.col("number").cast(pl.Float64), confidential.alias("secret"))
    elif case.input == "sav":
        frame = frame.with_columns(pl.col("number").cast(pl.Float64))
    return frame


def policy(case: Case, mark: Marks) -> dict[str, Any]:
    """What the steward states of them."""
    categories = {"kind": "nominal", "categories": LEVELS}
    public = {"public": True} if case.method == "public-laplace" else {}
    flat = categories if case.noisy else {"kind": "nominal"}
    secret = categories if REGISTRY[case.method].noisy else {"kind": "nominal"}
    role = "other" if public else "quasi-identifier"
    protect = {"method": case.method, **REGISTRY[case.method].example.parameters}
    if REGISTRY[case.method].forms.must_choose:
        protect["release_form"] = REGISTRY[case.method].forms.offered[0].value
    return {
        "version": 1,
        "columns": {
            "name": {"role": "identifier"},
            "gone": {"role": "identifier"},
            "number": {"role": role, "kind": "numeric", "bounds": [0, 100], **public},
            "flat": {"role": role, **flat, **public},
            "secret": {"role": "confidential", **secret},
        },
        "reading": {"delimiter": ",", "decimal": "."},
        "protect": protect,
        "context": {"approver": mark("C"), "purpose": mark("C")},
    }


def written(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{name} = {written(part)}" for name, part in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return json.dumps(value)


def write(frame: pl.DataFrame, path: Path, mark: Marks) -> None:
    """Write the table, with labels where the format has some."""
    if path.suffix == ".csv":
        frame.write_csv(path)
    elif path.suffix == ".parquet":
        frame.write_parquet(path, metadata={"note": mark("D")})
    else:
        # Labels of values that the policy declares are a codebook, and leave with them.
        labels = {
            name: {
                cell: f"label of {cell}" if cell in LEVELS else mark("L")
                for cell in frame[name].unique()
            }
            for name in ("flat", "secret")
        }
        pyreadstat.write_sav(
            frame.to_pandas(), str(path), variable_value_labels=labels, note=mark("D"),
            file_label=mark("D"), column_labels={"name": mark("D"), "gone": mark("D")},
        )  # fmt: skip


def shown(path: Path) -> tuple[str, set[float]]:
    """All that a file holds: its bytes, and what a reader makes of them; and its numbers."""
    texts = [path.read_bytes().decode("latin-1")]
    frame = None
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        texts.append(repr(pl.read_parquet_metadata(path)))
    elif path.suffix == ".csv":
        frame = pl.read_csv(path)
    elif path.suffix in {".sav", ".dta"}:
        read = pyreadstat.read_sav if path.suffix == ".sav" else pyreadstat.read_dta
        found, about = read(str(path))
        frame = pl.from_pandas(found)
        texts.append(repr(vars(about)))
    numbers: set[float] = set()
    if frame is not None:
        texts.append(repr((frame.schema, frame.rows())))
        numbers = {c for row in frame.rows() for c in row if isinstance(c, float)}
    return "\n".join(texts), numbers


def leaks(case: Case, folder: Path, frame: pl.DataFrame, ended: Ended) -> list[str]:
    """Marks where none may be."""
    texts, numbers = [ended.output], set[float]()
    public = folder / "out"
    for path in sorted(public.rglob("*")) if public.exists() else []:
        texts.append(path.name)
        if path.is_file():
            text, found = shown(path)
            texts.append(text)
            numbers |= found
    everything = "\n".join(texts)
    seen = {f"{m[1]}: {m[0]}" for m in MARK.finditer(everything) if m[1] in case.forbidden}
    if case.noisy:
        cells = frame["number"].cast(pl.Float64, strict=False).drop_nulls().to_list()
        seen |= {f"number: {cell}" for cell in cells if cell in numbers or str(cell) in everything}
    return sorted(seen)


def apart(work: Callable[[], Any]) -> Any:
    """Do something in a child, and bring back what it gives."""
    with tempfile.NamedTemporaryFile() as result:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                Path(result.name).write_bytes(pickle.dumps(work()))
                code = 0
            except Exception:  # noqa: BLE001 (the parent says that there was one)
                sys.excepthook(*sys.exc_info())
            finally:
                os._exit(code)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            raise RuntimeError("A step of the canaries failed.")
        return pickle.loads(result.read())  # noqa: S301 (our own child's)


def prepared(case: Case, folder: Path) -> str:
    """Write the table and its policy; the name of the table."""
    mark = Marks(case.number)
    frame, stated = table(case, mark), policy(case, mark)
    data = folder / f"{mark('P')}.{case.input}"
    write(frame, data, mark)
    (folder / "policy.toml").write_text(document(stated))
    return data.name


def document(stated: dict[str, Any]) -> str:
    """A policy as TOML."""
    return "\n".join(f"{name} = {written(part)}" for name, part in stated.items())


def released(case: Case, place: Path) -> tuple[Ended, list[str]]:
    """Run the whole command once, and look."""
    folder = place / Marks(-1 - case.number)("P")
    folder.mkdir()
    data = apart(lambda: prepared(case, folder))
    arguments = ("protect", data, "--policy", "policy.toml", "--out", "out", "--file-format",
                 case.form, "--no-evaluate")  # fmt: skip
    ended = forked(folder, arguments)
    frame = partial(table, case, Marks(case.number))
    return ended, apart(lambda: leaks(case, folder, frame(), ended))


MISTAKES = {
    "no header": lambda frame: frame[1:].write_csv(include_header=False),
    "text for numbers": lambda frame: frame.with_columns(number=pl.col("secret")).write_csv(),
    "unknown categories": lambda frame: frame.with_columns(secret=pl.col("flat")).write_csv(),
    "a column more": lambda frame: frame.with_columns(more=pl.col("gone")).write_csv(),
    "ragged": lambda frame: frame.write_csv().replace(",", ",,", 40),
    "nothing but cells": lambda frame: "\n".join(frame["name"]),
}
COMMANDS = {
    "protect": ("protect", "data.csv", "--policy", "policy.toml", "--out", "out"),
    "check": ("check", "data.csv", "--policy", "policy.toml"),
    "evaluate": ("evaluate", "data.csv", "data.csv", "--policy", "policy.toml"),
}


def mistaken(name: str, command: str, place: Path) -> list[str]:
    """Marks in what the command says of a table that does not fit."""
    folder = place / f"{name} {command}"
    folder.mkdir()

    def prepare() -> None:
        case, mark = Case("mdav", "csv", "csv", 0), Marks(1)
        stated = policy(case, mark)
        stated["columns"]["secret"] |= {"categories": LEVELS}
        (folder / "policy.toml").write_text(document(stated))
        (folder / "data.csv").write_text(MISTAKES[name](table(case, mark)))

    apart(prepare)
    ended = forked(folder, COMMANDS[command])
    return sorted({found[0] for found in MARK.finditer(ended.output)})


def main() -> int:
    """Release, make mistakes, and print what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    runs = parser.parse_args().runs
    start, ends, found = time.monotonic(), Counter[str](), []
    with tempfile.TemporaryDirectory(prefix="shoal-canaries-") as place:
        for case in cases(runs):
            ended, seen = released(case, Path(place))
            ends["released" if ended.code == 0 else f"refused ({case.method})"] += 1
            named = f"{case.method}, {case.input} to {case.form}"
            found += [f"{named}: {one}" for one in seen]
            if ended.code not in {0, 2}:
                found.append(f"{named}: exit {ended.code}: {ended.output[-300:]}")
        for name, command in itertools.product(MISTAKES, COMMANDS):
            ends["mistakes"] += 1
            marks = mistaken(name, command, Path(place))
            if marks:
                found.append(f"{command}, {name}: {len(marks)} cells in the error")
    told = ", ".join(f"{number} {end}" for end, number in sorted(ends.items()))
    print(f"{told}; {len(found)} leaks; {time.monotonic() - start:.0f} s.")
    for one in found:
        print(f"LEAK {one}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
