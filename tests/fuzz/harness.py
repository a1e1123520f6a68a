"""Fuzz every parser and the whole command: `make fuzz-parsers`.

Bytes of the kept corpus are mutated and handed to a parser. Whatever they are, the exit code is 0,
2 or 3; nothing else is raised, nothing hangs, no process ends, and no cell is quoted. An input that
shows otherwise is written to `tests/fuzz/corpus/found`, where the suite runs it for ever.

Each target runs in processes of its own, with a limit on memory. Where atheris is installed,
`--guided` lets it choose the inputs by coverage instead.
"""

import argparse
import hashlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FOUND = CORPUS / "found"
MEMORY = 8 << 30
SECONDS = 60
CANARY = "Wilhelmina"
ALLOWED = {0, 2, 3}
GUIDED = (
    "shoal.budget.budget_file", "shoal.cli.commands", "shoal.evaluation.comparison.grid",
    "shoal.io.clamp", "shoal.io.decoded_size", "shoal.io.files", "shoal.io.text_files",
    "shoal.io.validate", "shoal.engine.check_table", "shoal.policy.load",
    "shoal.policy.misfits", "shoal.policy.spec", "shoal.policy.values",
    "shoal.publish.evidence",
)  # fmt: skip
"""Modules whose coverage guides atheris."""
NAMES = ("name", "age", "region", "income")
TOKENS = [
    b"nan", b"inf", b"-1", b"1e999999999", b"9" * 40, b"0x", b"[[", b"]]", b"{", b"}", b"'''",
    b'"""', b'"', b"'", b",", b";", b"\t", b"\n", b"\r\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"=",
    b"null", b"true", b"1979-05-27T07:32:00Z", b"..", b"/", b"%s", b"\\u0000", b"\xed\xa0\x80",
    b"PAR1", b"ARROW1", b"SELECT", b"version = 1", b"[columns]", b"kind", b"numeric", b"-0", b"1_0",
]  # fmt: skip


def mutated(rng: random.Random, seeds: list[bytes]) -> bytes:
    """One input: a seed with a few of its bytes changed, moved, doubled or left out."""
    data = bytearray(rng.choice(seeds))
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5, 9))):
        place = rng.randrange(len(data) + 1)
        end = min(len(data), place + rng.choice((1, 1, 2, 4, 16, 64, 400)))
        kind = rng.randrange(8)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1 and place < len(data):
            data[place] = rng.choice((0, 1, 10, 34, 44, 127, 128, 255, rng.randrange(256)))
        elif kind == 2:
            del data[place:end]
        elif kind == 3:
            data[place:place] = rng.choice(TOKENS)
        elif kind == 4:
            data[place:place] = data[place:end] * rng.choice((1, 2, 50))
        elif kind == 5:
            other = rng.choice(seeds)
            start = rng.randrange(len(other) + 1)
            data[place:end] = other[start : start + rng.choice((1, 8, 64, 400))]
        elif kind == 6:
            data[place:end] = rng.choice(TOKENS)
        else:
            del data[place:]
    return bytes(data[: 1 << 16])


# The targets: what a parser makes of a file, in the way the command reaches it


def _read(path: Path) -> None:
    from shoal import io, policy
    from shoal.io import validate

    frame = io.read(path).frame
    validate.validate(frame, policy.load(CORPUS / "policy" / "plain.toml").schema)


def _policy(path: Path) -> None:
    from shoal import policy
    from shoal.pipeline import planning

    planning.plan(policy.load(path))


def _named(key: str) -> str:
    text = (CORPUS / "policy" / "plain.toml").read_text("utf-8")
    old = (
        'region = { role = "quasi-identifier", kind = "nominal", categories = ["north", "south"] }'
    )
    new = f'region = {{ role = "quasi-identifier", kind = "nominal", {key} = "file.csv" }}'
    return text.replace(old, new)


def _hierarchy(path: Path) -> None:
    from shoal import policy

    policy.loads(_named("hierarchy").replace("file.csv", path.name), folder=path.parent)


def _recode(path: Path) -> None:
    from shoal import policy

    policy.loads(_named("recode").replace("file.csv", path.name), folder=path.parent)


def _grid(path: Path) -> None:
    from shoal.evaluation.comparison import grid

    grid.read(path)


def _queries(path: Path) -> None:
    from shoal.evaluation import utility
    from shoal.metrics import count_queries

    axes = [
        count_queries.QueryColumn("age"),
        count_queries.QueryColumn("region", ("north", "south")),
    ]
    count_queries.parse(utility._read_queries(path), axes)


def _budget(path: Path) -> None:
    from shoal.budget import budget_file, event_log

    event_log.PATIENCE = 0.5
    print(*budget_file.show(path))


def _comparison(path: Path) -> None:
    from shoal.publish import evidence

    evidence.read_comparison(path)


def _metadata(path: Path) -> None:
    from shoal.io import metadata

    metadata.parse(path.read_bytes(), NAMES, "The file")


def _kept(path: Path) -> None:
    from shoal.evaluation.comparison import running

    running._read_kept(path.parent, running.Job(None, None, 0, 0, path.stem))


def _foreign(path: Path) -> None:
    from shoal import io, policy
    from shoal.io.external import read

    plain = policy.load(CORPUS / "policy" / "plain.toml")
    read.read_external_release(
        io.read(CORPUS / "csv" / "plain.csv").frame, io.read(path).frame, plain
    )


def _command(*words: str):
    def run(path: Path) -> int:
        import shutil

        from typer.testing import CliRunner

        from shoal.cli.commands import app

        out = path.parent / "out"
        known = {"{}": path, "{out}": out, "{data}": CORPUS / "csv" / "plain.csv",
                 "{policy}": CORPUS / "policy" / "plain.toml"}  # fmt: skip
        done = CliRunner().invoke(app, [str(known.get(word, word)) for word in words])
        for folder in (out, out.with_name("out.internal")):
            shutil.rmtree(folder, ignore_errors=True)
        print(done.output)
        return done.exit_code

    return run


TARGETS = {
    "csv": ("csv", _read),
    "parquet": ("parquet", _read),
    "arrow": ("arrow", _read),
    "sav": ("sav", _read),
    "dta": ("dta", _read),
    "policy": ("toml", _policy),
    "hierarchy": ("csv", _hierarchy),
    "recode": ("csv", _recode),
    "grid": ("toml", _grid),
    "queries": ("toml", _queries),
    "budget": ("db", _budget),
    "comparison": ("json", _comparison),
    "codebook": ("xml", _metadata),
    "package": ("json", _metadata),
    "kept": ("json", _kept),
    "release": ("csv", _foreign),
    "command protect, data": (
        "csv", _command("protect", "{}", "--policy", "{policy}", "--out", "{out}", "--no-evaluate"),
    ),
    "command protect, policy": (
        "toml", _command("protect", "{data}", "--policy", "{}", "--out", "{out}", "--no-evaluate"),
    ),
    "command check": ("csv", _command("check", "{}", "--policy", "{policy}")),
}  # fmt: skip
"""Suffix of the file, and what reads it; seeds lie in the corpus under the first word or two."""
SEEDS = {
    "release": "csv", "command protect, data": "csv", "command protect, policy": "policy",
    "command check": "csv",
}  # fmt: skip


def word(target: str) -> str:
    """The name of a target in the names of files."""
    return target.replace(", ", "-").replace(" ", "-")


def seeds_of(target: str) -> list[bytes]:
    """The kept seeds of a target."""
    folder = CORPUS / SEEDS.get(target, target)
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def outcome(target: str, path: Path) -> tuple[int, str]:
    """Exit code of one input, and what was said; 70 with the place for any other exception."""
    import contextlib
    import io

    from shoal.errors import ShoalError, lacks_memory, withheld

    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            code = TARGETS[target][1](path)
    except ShoalError as error:
        return error.exit_code, str(error)
    except BaseException as error:
        if lacks_memory(error):
            return 2, "memory"
        return 70, f"{withheld(error)} {error!r}"[:400]
    return code or 0, said.getvalue()


def quotes(data: bytes, said: str) -> bool:
    """Whether a cell was quoted; a canary that a mutation made a name among others is none."""
    if CANARY not in said:
        return False
    first = data.decode("utf-8", "replace").lstrip().partition("\n")[0]
    known = sum(name in first for name in NAMES)
    return CANARY not in first or 2 * known < len(NAMES)


def wrong(target: str, data: bytes, folder: Path) -> tuple[int, str]:
    """Run one input; its exit code, and what is wrong with it if anything is."""
    path = folder / f"input.{TARGETS[target][0]}"
    path.write_bytes(data)
    started = time.process_time()
    signal.alarm(SECONDS)
    code, said = outcome(target, path)
    signal.alarm(0)
    if code not in ALLOWED:
        return code, f"exit code {code}: {said[-300:]}"
    if TARGETS[target][0] == "csv" and target not in {"hierarchy", "recode"} and quotes(data, said):
        return code, f"a cell is quoted: {said[-300:]}"
    if time.process_time() - started > SECONDS / 2:
        return code, "slow"
    return code, ""


def _work(target: str, numbers: range, seed: int, folder: Path, pipe: int) -> None:
    """Run inputs in a process of their own, one line for each to the parent."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # ends the process: a hang
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 2)
    seeds = seeds_of(target)
    with os.fdopen(pipe, "w") as told:
        for number in numbers:
            data = mutated(random.Random(f"{seed} {target} {number}"), seeds)
            code, what = wrong(target, data, folder)
            told.write(f"{number} {code} {what.encode('unicode_escape').decode()}\n")
            told.flush()
    os._exit(0)


def run(target: str, count: int, seed: int) -> tuple[Counter, dict[str, bytes]]:
    """Fuzz one target: exit codes, and what is wrong by its sort, one input each."""
    codes, found = Counter(), {}
    seeds, number = seeds_of(target), 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as name:
        while number < count:
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(reader)
                _work(target, range(number, count), seed, Path(name), writer)
            os.close(writer)
            with os.fdopen(reader) as told:
                for line in told:
                    number, code, what = line.rstrip("\n").split(" ", 2)
                    codes[code] += 1
                    if what:
                        data = mutated(random.Random(f"{seed} {target} {number}"), seeds)
                        found.setdefault(what.partition(" Please")[0][:120], data)
                    number = int(number) + 1
            _, status = os.waitpid(child, 0)
            if number < count:
                ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "ended"
                codes[ended] += 1
                data = mutated(random.Random(f"{seed} {target} {number}"), seeds)
                found.setdefault(f"the process: {ended}", data)
                number += 1
    return codes, found


def guided(target: str, inputs: int) -> None:
    """Let atheris choose so many inputs by coverage, or until it finds something.

    What reaches new code is kept in a folder of its own, for this run alone.
    """
    import atheris

    with atheris.instrument_imports(include=["shoal"]):
        for name in GUIDED:
            import_module(name)
    folder, reached = Path(tempfile.mkdtemp()), tempfile.mkdtemp()

    def one(data: bytes) -> None:
        _, what = wrong(target, data, folder)
        if what:
            raise AssertionError(what)

    seeds = str(CORPUS / SEEDS.get(target, target))
    atheris.Setup([sys.argv[0], f"-runs={inputs}", reached, seeds], one)
    atheris.Fuzz()


def main() -> None:
    """Fuzz all targets, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one target")
    parser.add_argument("--guided", action="store_true", help="with atheris; needs --only")
    given = parser.parse_args()
    if given.guided:
        guided(given.only, given.inputs)
        return
    targets = [given.only] if given.only else list(TARGETS)
    # A run of the whole command costs more than a parser; a tenth of them is theirs.
    slow = [target for target in targets if target.startswith("command")]
    share = {target: 1 if target in slow else 6 for target in targets}
    print("| parser | inputs | exit codes | found |\n|---|---|---|---|")
    failed = False
    for target in targets:
        count = -(-given.inputs * share[target] // sum(share.values()))
        codes, found = run(target, count, given.seed)
        shown = ", ".join(f"{code}: {number:,}" for code, number in sorted(codes.items()))
        print(f"| {target} | {count:,} | {shown} | {'; '.join(found) or 'nothing'} |", flush=True)
        for data in found.values():
            failed = True
            FOUND.mkdir(exist_ok=True)
            place = (
                FOUND
                / f"{word(target)}.{hashlib.sha256(data).hexdigest()[:12]}.{TARGETS[target][0]}"
            )
            place.write_bytes(data)
    sys.exit(failed)


if __name__ == "__main__":
    main()
