"""Audits of any program: planted bugs, right programs, bounds that hold whenever one looks."""

import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tests.auditing.planted_bugs import BROKEN, POLICY, RIGHT, TOWNS, counts, laplace

import shoal
from shoal.auditing.program_cases import list_program_cases
from shoal.auditing.programs import RunLimits, command_program
from shoal.core import PrivacyMeasure
from shoal.errors import InputError
from shoal.metrics.epsilon_lower_bound import Event, PrivacyParameter, bound_event
from shoal.metrics.intervals import least_ever, most_ever
from shoal.policy import load

BUGS = Path(__file__).with_name("planted_bugs.py")
SURE = 1 - 1e-7
"""Confidence of the audits of right programs: fewer than one false alarm in ten million."""


def audit(run, **stated):
    return shoal.audit(POLICY, run=run, **{"epsilon": 1, **stated})


@pytest.mark.parametrize("name", BROKEN)
def test_a_planted_bug_is_refuted(name, capsys):
    """Of 30 tries, three of each bug with these trials, none was missed."""
    delta = 1e-5 if name == "wrong-delta" else 0

    found = audit(BROKEN[name], delta=delta, trials=4000)

    assert found.violated
    assert found.fails
    assert found.worst.low > 1
    capsys.readouterr()


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_program_is_not_refuted(name):
    """The false-alarm rate is 1e-7 for each, by the confidence of the bounds."""
    found = audit(RIGHT[name], trials=800, confidence=SURE)

    assert not found.violated
    assert str(found).startswith("no violation found")


def test_a_delta_that_is_declared_is_allowed():
    def show_records_at_times(frame):
        return frame if np.random.default_rng().random() < 0.08 else counts(frame, 1)

    honest = audit(show_records_at_times, delta=0.1, trials=800, confidence=SURE)

    assert not honest.violated
    assert "declared epsilon 1 at delta 0.1 (as its authors state)" in str(honest)


@pytest.mark.parametrize("declared", [{"rho": 0.1}, {"mu": 0.3}])
def test_a_rho_and_a_mu_are_refuted_by_noise_that_is_too_small(declared):
    """Noise of scale 0.7 has a rho near 1 and a mu above 1."""
    found = shoal.audit(POLICY, run=lambda frame: counts(frame, 0.7), trials=2000, **declared)

    assert found.violated
    assert found.worst.claim.measure in declared


def test_a_mu_refutes_no_claim_of_epsilon():
    """Two-sided geometric noise of scale 1 has events of mu 0.8, and an epsilon of 1."""
    found = audit(RIGHT["counts"], trials=2000, confidence=SURE)

    assert not found.violated
    assert found.worst.bound.mu.low > 0


@pytest.mark.parametrize(("rate", "other"), [(0.02, 0.3), (0.5, 0.4), (0.9, 0.97)])
def test_bounds_hold_whenever_one_looks(rate, other):
    """Of 10,000 sequences, at most 5% and what chance adds to it may ever exceed the truth.

    A binomial of 10,000 and 5% exceeds 618 with a probability below 1e-7.
    """
    rng = np.random.default_rng(3)
    hits = [np.zeros(10_000), np.zeros(10_000)]
    ever = np.zeros(10_000, dtype=bool)
    truth = abs(np.log(rate / other))
    high = int(other > rate)

    for runs in range(20, 1001, 20):
        for side, chance in enumerate((rate, other)):
            hits[side] += rng.binomial(20, chance, 10_000)
        low = least_ever(hits[high], runs, 0.025)
        most = most_ever(hits[1 - high], runs, 0.025)
        with np.errstate(divide="ignore"):
            ever |= np.log(low) - np.log(most) > truth

    assert np.count_nonzero(ever) <= 618


def test_bounds_at_all_times_are_wider_than_those_of_one_look():
    event = Event("rows", at_least=True, threshold=1, before=True)
    terms = {"trials": 500, "confidence": 0.95, "tried": 3, "target": PrivacyParameter()}

    once = bound_event(event, 300, 100, **terms)
    ever = bound_event(event, 300, 100, **terms, ever=True)

    assert 0 < ever.epsilon.low < once.epsilon.low < np.log(3)


def test_a_target_bounds_what_is_declared():
    high, low = 0.5, 0.1

    assert PrivacyParameter().bound(high, low) == pytest.approx(np.log(5))
    assert PrivacyParameter(delta=0.1).bound(high, low) == pytest.approx(np.log(4))
    assert PrivacyParameter(delta=0.6).bound(high, low) == -np.inf
    in_rho, in_mu = (
        PrivacyParameter(measure=m).bound([high], [low]) for m in (PrivacyMeasure.RHO, None)
    )
    assert 0 < in_rho[0] < 2
    assert in_mu[0] == pytest.approx(1.2816, abs=1e-3)


@pytest.mark.parametrize("adds", [True, False])
def test_tables_differ_in_one_person_and_follow_from_the_policy_alone(adds):
    schema = load(POLICY).schema

    pairs, again = (list_program_cases(schema, adds=adds) for _ in range(2))

    assert len({pair.name for pair in pairs}) == len(pairs) == 6
    for pair, same in zip(pairs, again, strict=True):
        assert pair.before.equals(same.before)
        rest = pair.after if adds else pair.after[1:]
        assert pair.before[1:].equals(rest, null_equal=True)
        assert pair.before.height == pair.after.height + adds


@pytest.mark.parametrize("adds", [True, False])
def test_a_whole_person_comes_with_all_rows(adds):
    policy = json.loads(json.dumps(POLICY))
    del policy["one_row_per_person"]
    policy["columns"]["who"] = {"role": "identifier", "privacy_unit": True, "max_contributions": 5}

    pairs = list_program_cases(load(policy).schema, adds=adds)

    (wide,) = [p for p in pairs if p.name.endswith("bounds, with 5 rows")]
    owned = wide.before.filter(pl.col("who") == "p0")
    assert owned.height == 5
    assert owned.select(pl.exclude("who")).n_unique() == 1
    assert wide.after.filter(pl.col("who") == "p0").height == (0 if adds else 5)
    assert wide.before["who"].n_unique() == 41


def test_a_command_is_audited_in_a_fresh_home_with_limits(tmp_path):
    frame = pl.DataFrame({"age": [1.0], "sex": ["f"], "town": ["A"]})
    code = (
        "import os, sys, pathlib; home = pathlib.Path.home(); print(len(os.listdir(home)));"
        "(home / 'kept').write_text('x'); print(os.environ['TMPDIR'] != '/tmp', sys.argv[1]);"
        "pathlib.Path(sys.argv[2]).write_bytes(pathlib.Path(sys.argv[1]).read_bytes())"
    )
    script = tmp_path / "copy.py"
    script.write_text(code)
    run = command_program(f"{sys.executable} {script} {{in}} {{out}}", RunLimits())

    first, second = run(frame), run(frame)

    assert first.text == second.text == "0\nTrue \n"
    assert first.frames["out.csv"].equals(frame)
    assert first.code == 0
    assert first.sizes == {"out.csv": frame.write_csv().encode().__len__()}


def test_a_run_that_takes_too_long_or_too_much_is_ended():
    frame = pl.DataFrame({"age": [1.0]})
    slow = command_program(
        f"{sys.executable} -c 'import time; time.sleep(60)' {{in}}", RunLimits(seconds=0.5)
    )
    large = command_program(
        f"{sys.executable} -c 'x = bytearray(10**9); print(len(x))' {{in}}", RunLimits(memory=0.5)
    )

    assert slow(frame).code == 124
    assert "MemoryError" in large(frame).text


def test_what_a_command_prints_is_its_table_where_it_writes_none():
    frame = pl.DataFrame({"age": [1.5, 2.5]})
    run = command_program(f"{sys.executable} -c 'print(open({{in!r}}).read())'".replace(
        "{in!r}", '"{in}"'), RunLimits())  # fmt: skip

    assert run(frame).frames["output"].equals(frame)


def test_a_command_is_refuted_and_the_log_goes_on(tmp_path):
    policy = tmp_path / "policy.toml"
    policy.write_text(
        "version = 1\none_row_per_person = true\n[columns]\n"
        'age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 100] }\n'
        '[protect]\nmethod = "auto"\nepsilon = 1\n'
    )
    script = tmp_path / "rows.py"
    script.write_text(
        "import sys; rows = open(sys.argv[1]).read().count('\\n') - 1\n"
        "open(sys.argv[2], 'w').write(f'rows\\n{rows}\\n')"
    )
    log = tmp_path / "audit.log"
    stated = {"run": f"{sys.executable} {script} {{in}} {{out}}", "epsilon": 1, "log": log}

    first = shoal.audit(policy, **stated, trials=200)
    lines = log.read_text().splitlines()
    log.write_text("\n".join(lines[: len(lines) // 2]) + '\n{"run": ["count')
    second = shoal.audit(policy, **stated, trials=200)

    assert first.violated
    assert log.stat().st_mode & 0o777 == 0o600
    assert first.worst.bound == second.worst.bound
    runs = [json.loads(line).get("run") for line in lines]
    assert [json.loads(line).get("run") for line in log.read_text().splitlines()] == runs
    with pytest.raises(InputError, match="is not the log of this audit"):
        shoal.audit(policy, **{**stated, "epsilon": 2}, trials=200)


def test_a_log_that_cannot_be_written_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"Cannot write .*audit\.log"):
        audit(RIGHT["counts"], log=tmp_path / "no folder" / "audit.log")


def test_two_tables_of_ones_own_may_be_given():
    full = pl.DataFrame({"age": [1.0, 2, 90], "sex": ["f", "m", "f"], "town": ["A", "A", "E"]})

    found = audit(BROKEN["domain-from-data"], pair=(full, full[:2]), trials=400)

    assert found.violated
    assert found.worst.pair.row == 2
    with pytest.raises(InputError, match="exactly one row more"):
        audit(RIGHT["counts"], pair=(full, full[:1]))


@pytest.mark.parametrize(
    ("stated", "message"),
    [
        ({"epsilon": None}, "one of epsilon .* rho and mu; found none"),
        ({"rho": 1}, "found epsilon and rho"),
        ({"epsilon": -1}, "Expected a positive epsilon of at most 1,000,000,000"),
        ({"delta": 1.5}, "a delta from 0 to 1"),
        ({"epsilon": None, "mu": 1, "delta": 0.1}, "beside epsilon alone"),
        ({"neighbours": "both"}, "Expected neighbours to be change-one or add-remove"),
        ({"trials": 10}, "number of trials must be at least 160"),
        ({"table": pl.DataFrame({"age": [1]})}, "takes no table"),
        ({"run": "python x.py"}, "expected {in} where the program is told its input"),
        ({"run": "no-such-program {in}"}, "no program 'no-such-program' on the path"),
    ],
)
def test_what_is_stated_wrongly_is_refused(stated, message):
    with pytest.raises(InputError, match=message):
        audit(**{"run": RIGHT["counts"], **stated})


def test_what_belongs_to_programs_is_refused_beside_a_policys_own_method():
    with pytest.raises(InputError, match="'epsilon' belongs to an audit of a program"):
        shoal.audit(POLICY, epsilon=1)


def test_a_program_that_fails_on_every_table_is_refused():
    def fail(_frame):
        raise ValueError("no column 'postcode'")

    with pytest.raises(InputError, match=r"exit code 1 .* no column 'postcode'"):
        audit(fail)


def test_a_program_that_fails_on_one_of_the_tables_shows_that():
    def fail_beyond(frame):
        if frame["age"].cast(pl.Float64).max() > 100:
            raise ValueError("age beyond 100")
        return counts(frame, 1)

    found = audit(fail_beyond, trials=400)

    assert found.violated
    assert found.worst.pair.name == "somebody with numbers far beyond the bounds"


def test_a_number_is_an_output():
    exact = audit(lambda frame: float((frame["town"] == "E").sum()), trials=400)
    noisy = audit(
        lambda frame: float((frame["town"] == "E").sum() + laplace(1)),
        trials=400,
        confidence=SURE,
    )

    assert exact.violated
    assert not noisy.violated
    assert TOWNS[-1] == "E"


def test_an_audit_of_a_program_has_the_facts_of_a_report():
    facts = audit(RIGHT["counts"], trials=200).facts()

    assert facts["status"] is None
    assert facts["measure"] == "epsilon"
    assert json.loads(json.dumps(facts))["verdict"] == "no violation found"
