"""Public constraints from the policy to the release: none is broken, and none costs epsilon."""

from collections import Counter
from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from shoal import policy, sample
from shoal.cli.commands import app
from shoal.core import ConstraintChoices, DifferentialPrivacy, KAnonymity, Schema, Status
from shoal.core.constraint_language import parse
from shoal.core.exits import for_method
from shoal.engine.interface import Adoption
from shoal.engine.local import LocalSource
from shoal.errors import InputError
from shoal.io import from_native
from shoal.io.repair import plain_columns
from shoal.pipeline.options import EvaluationOptions
from shoal.pipeline.planning import plan
from shoal.pipeline.protect_table import run
from shoal.publish import protect_file
from shoal.publish.confidential_folder import _describe_repairs
from shoal.report.terminal import checks_text

RULES = [
    "tax <= income",
    "size = adults + children",
    "adults >= 1",
    "discharge >= admission",
    "age < 15 implies marital = 'single' and income = 0",
]
COLUMNS = """
version = 1
one_row_per_person = true
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110], step = 1 }
marital = { role = "quasi-identifier", kind = "nominal", categories = ["single", "married"] }
income = { role = "quasi-identifier", kind = "numeric", bounds = [0, 500000] }
tax = { role = "quasi-identifier", kind = "numeric", bounds = [0, 500000] }
adults = { role = "quasi-identifier", kind = "numeric", bounds = [0, 6], step = 1 }
children = { role = "quasi-identifier", kind = "numeric", bounds = [0, 6], step = 1 }
size = { role = "quasi-identifier", kind = "numeric", bounds = [0, 12], step = 1 }
admission = { role = "quasi-identifier", kind = "date", bounds = [2020-01-01, 2021-12-31] }
discharge = { role = "quasi-identifier", kind = "date", bounds = [2020-01-01, 2021-12-31] }
"""


def stays(rows=600):
    people = sample.load().head(rows)
    rng = np.random.default_rng(5)
    age = people["age"].to_numpy()
    adults, children = rng.integers(1, 4, rows), rng.integers(0, 4, rows)
    came = rng.integers(0, 700, rows)
    days = [date(2020, 1, 1) + timedelta(int(day)) for day in came]
    left = [
        day + timedelta(int(stay))
        for day, stay in zip(days, rng.geometric(0.2, rows) - 1, strict=True)
    ]
    income = np.where(age < 15, 0.0, people["income"].fill_null(0).to_numpy())
    return pl.DataFrame(
        {
            "age": age,
            "marital": ["married" if a >= 15 and m == "married" else "single"
                        for a, m in zip(age, people["marital"], strict=True)],
            "income": income,
            "tax": np.minimum(people["tax"].fill_null(0).to_numpy(), income),
            "adults": adults,
            "children": children,
            "size": adults + children,
            "admission": days,
            "discharge": left,
        }
    )  # fmt: skip


def text(method, rules=RULES, extra=""):
    listed = ", ".join(f'"{rule}"' for rule in rules)
    stated = f"[constraints]\nrules = [{listed}]\n{extra}" if rules else ""
    return f"{COLUMNS}\n[protect]\n{method}\n{stated}"


def violations(frame, stated):
    loaded = policy.loads(stated)
    columns = plain_columns(frame, loaded.schema, frame.columns)
    return {rule.text: int((~rule.holds(columns)).sum()) for rule in loaded.constraints.rules}


@pytest.mark.parametrize(
    "method",
    [
        'method = "mdav"\nk = 5',
        'method = "mdav"\nk = 5\nintegers = true',
        'method = "mdav"\nk = 5\naggregate = "median"',
        'method = "vmdav"\nk = 5\naggregate = "medoid"',
        'method = "mondrian"\nk = 5\noutput = "centroids"',
        'method = "ir-laplace"\nk = 5\nepsilon = 10\nrelease_form = "linked-shuffled"',
        'method = "mdav-laplace"\nk = 20\nepsilon = 10',
        'method = "laplace"\nepsilon = 10',
        'method = "copula"\nepsilon = 10',
    ],
)
def test_no_released_row_breaks_a_rule_and_claims_stay(method):
    table = stays()
    stated, bare = text(method), text(method, rules=())
    release, without = shoal.protect(table, stated), plan(bare)

    assert set(violations(release.data, stated).values()) == {0}
    assert [
        (c.guarantee, c.status) for c in release.claims if isinstance(c.guarantee, KAnonymity)
    ] == [(c.guarantee, c.status) for c in without.claims if isinstance(c.guarantee, KAnonymity)]
    assert all(check.holds for check in release.checks)
    for claim in release.claims:
        declared = "the rules under [constraints] are public, as the policy declares"
        private = isinstance(claim.guarantee, DifferentialPrivacy)
        assert (declared in claim.assumes) == (private and claim.status is not Status.REFUTED)


def broken(table, share=0.05):
    """The table with a share of records that break several rules."""
    rows = np.random.default_rng(1).random(table.height) < share
    return table.with_columns(
        tax=pl.when(pl.Series(rows)).then(pl.col("income") + 5000).otherwise("tax"),
        size=pl.when(pl.Series(rows)).then(0).otherwise("size"),
        marital=pl.when(pl.Series(rows)).then(pl.lit("married")).otherwise("marital"),
        age=pl.when(pl.Series(rows)).then(7).otherwise("age"),
    )


def test_with_noise_records_that_break_rules_are_repaired_and_only_the_officer_learns_it(tmp_path):
    stated = text('method = "laplace"\nepsilon = 50')
    (tmp_path / "policy.toml").write_text(stated)
    made = {}
    for name, table in {"true": stays(), "false": broken(stays())}.items():
        table.write_parquet(tmp_path / f"{name}.parquet")
        done = run(plan(stated), from_native(table))
        made[name] = (done.release, done.evidence.map(lambda one: one.repaired))
    release, repaired = made["false"]

    assert set(violations(release.data, stated).values()) == {0}
    counts = for_method(repaired)
    assert counts["tax <= income"] > 10
    assert for_method(made["true"][1]) == dict.fromkeys(RULES, 0)
    public = [
        {key: value for key, value in one.manifest.as_values().items() if key != "created"}
        for one, _ in made.values()
    ]
    assert public[0] == public[1]
    assert str(release.data.schema) == str(made["true"][0].data.schema)


def test_without_noise_the_steward_chooses_whether_records_are_repaired():
    table, stated = broken(stays()), 'method = "mdav"\nk = 5'
    with pytest.raises(InputError) as error:
        shoal.protect(table, text(stated))
    assert "rows break 'tax <= income'" in str(error.value)
    assert "repair = true under [constraints]" in str(error.value)

    release = shoal.protect(table, text(stated, extra="repair = true"))
    assert set(violations(release.data, text(stated)).values()) == {0}


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(0, 9), st.integers(0, 9)), min_size=1),
    st.tuples(st.integers(0, 90), st.integers(0, 9), st.integers(0, 9)),
)
def test_neighbours_stay_neighbours_when_a_record_breaks_a_rule(rows, other):
    schema = policy.loads(text('method = "laplace"\nepsilon = 1')).schema
    names = ("age", "income", "tax")
    some = Schema(tuple(schema[name] for name in names))
    stated = (parse("tax <= income", some), parse("age < 15 implies income = 0", some))
    how = Adoption(schema=some, clamped=names, decimal=None, key=0,
                   constraints=ConstraintChoices(stated))  # fmt: skip

    def adopted(records):
        frame = pl.DataFrame(records, schema=names, orient="row")
        typed = LocalSource.of(from_native(frame)).adopt(how).typed
        return Counter(for_method(typed).table.frame.rows())

    before = adopted(rows)
    changed, added = adopted([*rows[1:], other]), adopted([*rows, other])
    assert sum((before - changed).values()) <= 1  # change-one: at most one record is another
    assert sum((changed - before).values()) <= 1
    assert sum((added - before).values()) == 1  # add-remove: exactly one record more
    assert not before - added
    assert all(tax <= income and (age >= 15 or income == 0) for age, income, tax in added)


@pytest.mark.parametrize(
    ("method", "rules", "message"),
    [
        ('method = "mdav"\nk = 5', ["age > 120"], "No record within the bounds and categories"),
        ('method = "mdav"\nk = 5', ["tax > income", "tax <= income"],
         "No record keeps 'tax > income' and 'tax <= income' together"),
        ('method = "auto"\nepsilon = 1',
         ["age < 15 implies marital = 'single'", "age < 5", "age > 9"],
         "No record keeps 'age < 5' and 'age > 9' together"),
        ('method = "mdav"\nk = 5', ["size = adults + children", "size > 11", "adults < 4"],
         "size = adults + children, size > 11, adults < 4"),
        ('method = "mdav"\nk = 5', ["tax * income > 3"], "is not linear"),
        ('method = "mdav"\nk = 5', ["tax <= incme"], "character 8: no column named 'incme'"),
        ('method = "mdav"\nk = 5', ["marital = 'wed'"], "is not a category of 'marital'"),
        ('method = "mdav"\nk = 5\ncolumns = ["age", "tax"]', ["tax <= income"],
         "which 5 records must share, with income, which those records need not share"),
        ('method = "mdav"\nk = 5\ncolumns = ["age", "tax"]',
         ["tax >= 1", "tax <= income", "income <= 100 * adults"],
         ("Rule 'tax <= income' joins tax, which 5 records must share, with income, which those "
         "records need not share: to keep it, rows that are alike would have to differ. List all "
         "its columns under [protect], columns, or remove the rule.")),
        ('method = "individual-ranking"\nk = 5', ["tax <= income"],
         "Choose a method that groups columns together, such as mdav, or remove the rule."),
        ('method = "ir-laplace"\nk = 5\nepsilon = 1\nrelease_form = "column-shuffled"',
         ["tax >= 1", "tax <= income"], "Rule 'tax <= income' joins columns"),
        ('method = "ir-laplace"\nk = 5\nepsilon = 1\nrelease_form = "column-shuffled"',
         ["tax <= income"], "'column-shuffled' joins none"),
    ],
)  # fmt: skip
def test_rules_that_cannot_be_kept_are_refused_at_planning(method, rules, message):
    with pytest.raises(InputError) as error:
        plan(text(method, rules))
    assert message in str(error.value)
    assert "[constraints]" in str(error.value)


def test_a_rule_on_columns_that_are_grouped_without_noise_is_refused_as_that():
    stated = text('method = "kanon-dp"\nk = 5\nepsilon = 1', ["tax <= income"]).replace(
        "[protect]", 'ill = { role = "confidential", kind = "numeric", bounds = [0, 1] }\n[protect]'
    )

    with pytest.raises(InputError, match="names 'tax', which kanon-dp gives no noise: it keeps"):
        plan(stated)


@pytest.mark.parametrize(
    ("rules", "extra", "message"),
    [
        (["age >= 1"], "[constraints.lookups.marital.kind]\nsingle = 'a'\nmarried = 'b'",
         (r"\[constraints.lookups.marital.kind\] is used by no rule. State 'marital determines "
          r"kind'\.")),
        (["age >= 1", "`number` = 3"], "",
         "character 2: 'number' is an identifier, which no release holds"),
    ],
)  # fmt: skip
def test_lookups_without_a_rule_and_rules_on_identifiers_are_refused(rules, extra, message):
    columns = """number = { role = "identifier" }
    kind = { role = "quasi-identifier", kind = "nominal", categories = ["a", "b"] }
    """
    stated = text('method = "mdav"\nk = 5', rules, extra)

    with pytest.raises(InputError, match=message):
        plan(stated.replace("[protect]", f"{columns}\n[protect]"))


def test_a_plan_names_the_rules_and_observed_ones_make_an_epsilon_conditional():
    stated = text('method = "laplace"\nepsilon = 1', ["tax <= income"])
    planned = plan(stated)
    assert "No released row breaks: tax <= income." in planned.notes
    assert planned.claims[0].status is Status.PROVED

    observed = plan(text('method = "laplace"\nepsilon = 1', ["tax <= income"], "observed = true"))
    assert observed.claims[0].status is Status.CONDITIONAL
    assert "which were copied from the data, are public" in observed.claims[0].assumes[-1]
    assert observed.policy.document["constraints"] == {"observed": True}
    assert not any("tax" in note and "income" in note for note in observed.notes[-1:])


def test_check_counts_the_rows_of_any_table_that_break_a_rule(tmp_path):
    table, stated = broken(stays()), text('method = "mdav"\nk = 5')
    table.write_csv(tmp_path / "table.csv")
    (tmp_path / "policy.toml").write_text(stated)
    found = {str(one.guarantee): one for one in shoal.check(tmp_path / "table.csv", stated)}
    expected = violations(table, stated)

    assert {rule: found[f"every row keeps {rule}"].achieved for rule in RULES} == expected
    assert not found["every row keeps tax <= income"].holds
    assert found["every row keeps discharge >= admission"].holds
    shown = CliRunner().invoke(
        app, ["check", str(tmp_path / "table.csv"), "--policy", str(tmp_path / "policy.toml")]
    )
    assert shown.exit_code == 3
    count = expected["tax <= income"]
    assert f"FAILS: every row keeps tax <= income\n  {count} rows break it, of 600" in shown.output
    intervals = shoal.protect(stays(), text('method = "mondrian"\nk = 5'))
    assert all(one.holds for one in shoal.check(intervals.data, stated))


@pytest.mark.parametrize("rule", ["sex = 'f' or child = 'no'", "sex = 'm' implies child = 'no'"])
def test_check_leaves_undecided_what_a_coarser_cell_hides(rule):
    kinds = {"sex": ["f", "m"], "child": ["no", "yes"]}
    columns = {
        name: {"role": "quasi-identifier", "kind": "nominal", "categories": own}
        for name, own in kinds.items()
    }
    stated = {"version": 1, "columns": columns, "protect": {"method": "mdav", "k": 2},
              "constraints": {"rules": [rule]}}  # fmt: skip
    released = pl.DataFrame(
        {"sex": ["*", "*", "m", "m"], "child": ["{no, yes}", "yes", "no", "yes"]}
    )

    *_, kept = shoal.check(released, stated)
    *_, undecided = shoal.check(released.head(2), stated)

    assert (kept.achieved, kept.witness["rows"], kept.remarks["rows_that_decide"]) == (1, [4], 2)
    assert undecided.holds
    assert checks_text([kept]).endswith("1 row breaks it, of 2, for example row 4")
    assert checks_text([undecided]).endswith("not decided: no row has single values in its columns")


def test_an_inspection_counts_broken_rules_and_suggests_others():
    table = stays().with_columns(
        place=pl.Series([f"p{i % 6}" for i in range(600)]),
        land=pl.Series([f"l{i % 2}" for i in range(600)]),
    )
    stated = text('method = "mdav"\nk = 5', ["tax <= income"]).replace(
        "[protect]",
        'place = { role = "other", kind = "nominal" }\n'
        'land = { role = "other", kind = "nominal" }\n[protect]',
    )
    found = shoal.inspect(broken(table), stated)

    assert found.broken == {"tax <= income": violations(broken(table), stated)["tax <= income"]}
    assert "place determines land" in found.suggested
    assert "land determines place" not in found.suggested
    assert "admission <= discharge" in found.suggested
    assert "tax <= income" not in found.suggested
    assert "rules: every row keeps" in str(found)


@pytest.mark.parametrize("extra", ["", "observed = true\n"])
def test_a_release_with_rules_verifies_and_the_officer_reads_what_was_repaired(tmp_path, extra):
    lookups = '[constraints.lookups.marital.kind]\nsingle = "a"\nmarried = "b"\n'
    stated = text(
        'method = "laplace"\nepsilon = 50', [*RULES, "marital determines kind"], extra + lookups
    ).replace(
        "[protect]",
        'kind = { role = "confidential", kind = "nominal", categories = ["a", "b"] }\n[protect]',
    )
    (tmp_path / "policy.toml").write_text(stated)
    table = broken(stays(200)).with_columns(kind=pl.lit("a"))
    table.write_parquet(tmp_path / "table.parquet")
    done = CliRunner().invoke(app, [
        "protect", str(tmp_path / "table.parquet"), "--policy", str(tmp_path / "policy.toml"),
        "--out", str(tmp_path / "out"), "--no-evaluate",
    ])  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "broke" not in done.output
    assert "repair" not in done.output

    shown = CliRunner().invoke(app, ["verify", str(tmp_path / "out")])
    assert shown.exit_code == 0, shown.output
    public = "".join(path.read_text() for path in (tmp_path / "out").rglob("*.json"))
    assert ("tax <= income" in public) is not bool(extra)
    officer = "".join(
        path.read_text() for path in tmp_path.rglob("*") if path.suffix in {".html", ".json"}
    )
    assert "of the original broke the rule" in officer
    assert "of the original broke the rule" not in public


WHOLE = """
version = 1
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }
a = { role = "confidential", kind = "numeric", bounds = [0, 1000] }
b = { role = "confidential", kind = "numeric", bounds = [0, 1000] }
total = { role = "confidential", kind = "numeric", bounds = [0, 2000] }
"""


def sums(rows=40):
    """Whole numbers, of which one row breaks its sum."""
    rng = np.random.default_rng(3)
    a, b = rng.integers(1, 50, (2, rows))
    total = a + b
    total[7] += 100
    return pl.DataFrame({"age": rng.integers(20, 80, rows), "a": a, "b": b, "total": total})


@pytest.mark.parametrize("rule", ["total = a + b", "b <= 0.5 * a", "3 * b < a"])
@pytest.mark.parametrize("method", ["mdav", "mondrian", "local-suppression"])
def test_whole_numbers_without_a_step_are_repaired_on_whole_numbers(method, rule):
    stated = f'{WHOLE}[protect]\nmethod = "{method}"\nk = 2\n[constraints]\nrules = ["{rule}"]\n'

    data = shoal.protect(sums(), f"{stated}repair = true").data

    assert data.select("a", "b", "total").dtypes == [pl.Int64] * 3
    assert violations(data.select("a", "b", "total"), stated) == {rule: 0}


def test_a_rule_that_no_whole_numbers_keep_is_the_users_move():
    stated = f'{WHOLE}[protect]\nmethod = "mdav"\nk = 2\n[constraints]\nrules = ["b = a + 0.5"]\n'

    with pytest.raises(InputError, match=r"keeps 'b = a \+ 0.5'. Columns of whole numbers stay"):
        shoal.protect(sums(), f"{stated}repair = true")


@pytest.mark.parametrize("repair", ["true", "false"])
def test_an_inspection_counts_broken_rules_and_has_no_other_complaint(repair):
    stated = (
        f'{WHOLE}[protect]\nmethod = "mdav"\nk = 2\n'
        f'[constraints]\nrules = ["total = a + b"]\nrepair = {repair}'
    )

    found = shoal.inspect(sums(), stated, public=True)

    assert found.refused == ()
    assert found.broken == {"total = a + b": 1}


@pytest.mark.parametrize("bad", [True, False])
def test_reports_say_where_rows_may_be_repaired_whether_or_not_one_was(bad, tmp_path):
    table = sums() if bad else sums().with_columns(total=pl.col("a") + pl.col("b"))
    table.write_csv(tmp_path / "sums.csv")
    stated = f'{WHOLE}[protect]\nmethod = "mdav"\nk = 2\n'
    rules = '[constraints]\nrules = ["total = a + b"]\nrepair = true'

    done = protect_file.protect(
        tmp_path / "sums.csv",
        policy.loads(stated + rules),
        tmp_path / "out",
        evaluation=EvaluationOptions(evaluate=False),
    )

    public = (tmp_path / "out" / "report.html").read_text()
    assert public.count("except in rows that were repaired to keep the rules, if any") == 3
    internal = (done.internal / "report.html").read_text()
    assert "were repaired first, which may have changed a, b and total." in internal


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(*[st.none() | st.integers(0, 9)] * 2), min_size=1))
def test_a_missing_cell_breaks_no_rule_before_a_constant_is_put_for_it(rows):
    schema = policy.loads(text('method = "laplace"\nepsilon = 1')).schema
    some = Schema((schema["income"], schema["tax"]))
    rule = parse("tax <= income", some)
    how = Adoption(schema=some, clamped=some.names, decimal=None, key=0,
                   constraints=ConstraintChoices((rule,)))  # fmt: skip
    frame = pl.DataFrame(rows, schema=dict.fromkeys(some.names, pl.Int64), orient="row")

    found = for_method(LocalSource.of(from_native(frame)).adopt(how).typed)

    assert found.repaired == {rule.text: sum(None not in row and row[1] > row[0] for row in rows)}
    assert all(tax <= income for income, tax in found.table.frame.rows())


def test_one_row_that_was_repaired_is_spoken_of_as_one():
    one, several = _describe_repairs({"a <= b": 1, "c": 0, "d": 2})

    assert one.startswith("1 row of the original broke the rule 'a <= b'; it was brought to")
    assert several.startswith("2 rows of the original broke the rule 'd'; each was brought to")


STEPPED = """
version = 1
one_row_per_person = true
[columns]
age = { role = "quasi-identifier", kind = "numeric", bounds = [0, 100], step = 1, top_code = 85 }
hours = { role = "quasi-identifier", kind = "numeric", bounds = [0, 80], step = 1 }
"""


@pytest.mark.parametrize(
    "method",
    [
        'method = "laplace"\nepsilon = 1',
        'method = "privtree"\nepsilon = 1',
        'method = "dp-kdtree"\nepsilon = 1',
        'method = "copula"\nepsilon = 1',
        'method = "mdav-laplace"\nk = 5\nepsilon = 1',
        'method = "insensitive-laplace"\nk = 5\nepsilon = 1',
        'method = "maxent"\nepsilon = 1',
    ],
)
@pytest.mark.parametrize("second", [(), ("hours <= age",)])
def test_rules_on_columns_with_a_step_hold_and_noise_does_not_pass_a_top_code(method, second):
    rules = ("age < 15 implies hours = 0", *second)
    rng = np.random.default_rng(3)
    age = rng.integers(0, 101, 200)
    frame = pl.DataFrame({"age": age, "hours": np.where(age < 15, 0, rng.integers(0, 81, 200))})
    listed = ", ".join(f'"{rule}"' for rule in rules)
    stated = f"{STEPPED}[protect]\n{method}\n[constraints]\nrules = [{listed}]\n"

    released = shoal.protect(frame, stated).data

    assert set(violations(released, stated).values()) == {0}
    assert released["age"].max() <= 85


@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_observed_rules_show_nowhere_and_their_release_can_be_written(delta, tmp_path):
    """A delta of 1e-3 is worth a rho for the columns alone, and not for those that rules leave."""
    texts = ["a", "b", "c", "d", "e", "f"]
    drawn = np.random.default_rng(0).choice(texts, (2, 60))
    frame = pl.DataFrame({"c0": drawn[0], "c1": drawn[0], "c2": drawn[1], "c3": drawn[1]})
    column = {"role": "quasi-identifier", "kind": "nominal", "categories": texts,
              "keep_missing": False}  # fmt: skip
    rules = [f"c{i} = '{one}' implies c{i + 1} = '{one}'" for i in (0, 2) for one in texts]
    stated = {
        "version": 1,
        "columns": dict.fromkeys(frame.columns, column),
        "protect": {"method": "maxent", "epsilon": 1, "delta": delta},
        "constraints": {"rules": rules, "observed": True},
    }

    release = shoal.protect(frame, stated)

    assert not release.extras
    assert release.manifest.policy["constraints"] == {"observed": True}
    assert shoal.verify(release.write(tmp_path / "out")).holds
