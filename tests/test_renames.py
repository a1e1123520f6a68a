"""A rename changes words, and nothing else: tables keep their bytes, manifests their meaning.

`tests/renames/before.json` holds what was released before anything was renamed, and
`tests/renames/renames.toml` every rename since.
"""

import json
import re
from contextlib import chdir
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.renames import capture, running, translation

import shoal
from shoal.core.serialise import plain
from shoal.errors import InputError
from shoal.methods import REGISTRY

BEFORE = json.loads(capture.BEFORE.read_text(encoding="utf-8"))
REPRICED = {
    "privtree, most rows, add-remove",
    "maxent, most rows, add-remove",
    "auto, add-remove",
}
"""Cases whose noise is smaller than before: a record that comes or goes moves a count by 1."""
FITTED = {"maxent", "auto"}
ROUNDED = {"mdav, a folder", "mondrian, a folder"}
"""What changed the bytes of tables on purpose since: rows that are drawn nearer to the fit, and
means of ten digits (the other cases with means have new digests)."""
TIED = {
    f"{method}, row-aligned"
    for method in ("ir-laplace", "mdav-laplace", "ir-mdav-laplace", "insensitive-laplace",
                   "stable-laplace")
}  # fmt: skip
"""Rows that are alike in all columns got their noise in no stated order; so did witnesses."""
CASES = {case["name"]: case for case in BEFORE["cases"] if case["name"] not in REPRICED}
RENAMES = translation.load()
RULES = RENAMES.rules()
SAME_MACHINE = running.machine() == BEFORE["machine"]
DRAWN = {"copula", "maxent", "auto", "privtree", "dp-kdtree", "dp-quadtree"}
"""Methods whose rows are drawn from a model, and may differ in the last bits of another machine."""


def compared(manifest, *, drawn):
    """A manifest to be compared: the order of draws follows their names and says nothing."""
    found = dict(manifest)
    for key in {"draws", "checks"} & found.keys():
        found[key] = sorted(found[key], key=lambda one: json.dumps(one, sort_keys=True))
    if drawn and not SAME_MACHINE:
        found = {key: value for key, value in found.items() if key not in {"checks", "columns"}}
    return found


def of_before(manifest, known):
    """A manifest without the parameters that came later and have their default."""
    fields = REGISTRY[manifest["method"]].parameters.model_fields
    kept = {
        name: value
        for name, value in manifest["parameters"].items()
        if name in known or value != json.loads(json.dumps(plain(fields[name].default)))
    }
    since = {"dialect"}  # of a CSV release, which has been that of its file since
    manifest = {key: value for key, value in manifest.items() if key not in since}
    for column in manifest["policy"]["columns"].values():
        if isinstance(column, dict) and column.get("keep_missing") is False:
            del column["keep_missing"]
    if "budget" in manifest:  # prices in rho and budgets at a delta came later
        manifest["budget"] = [_pure(source) for source in manifest["budget"]]
    return {**manifest, "parameters": kept}


def _pure(source):
    """What a budget file says of a source without a delta, in the words of before."""
    assert source["delta"] is None
    assert all(entry["rho"] is None for entry in source["entries"])
    entries = [
        {key: one for key, one in entry.items() if key != "rho"} for entry in source["entries"]
    ]
    return {key: one for key, one in source.items() if key != "delta"} | {"entries": entries}


def but_closeness(manifest):
    """A manifest without claims of stochastic t-closeness.

    Row-aligned ones were too strong before: a row in its place is one person's draw.
    """
    planned = manifest["planned"] | {"claims": _others(manifest["planned"]["claims"])}
    return {**manifest, "claims": _others(manifest["claims"]), "planned": planned}


def unwitnessed(manifest):
    """A manifest whose checks do not say which rows they saw."""
    checks = [{key: one for key, one in check.items() if key != "witness"}
              for check in manifest["checks"]]  # fmt: skip
    return {**manifest, "checks": checks}


def _others(claims):
    return [one for one in claims if "stochastic" not in one["guarantee"]["name"]]


def without(tables, left):
    """Facts of tables, but for some; a header whatever its delimiter."""
    return {
        table: {
            key: re.sub("[;\t]", ",", fact) if key == "header" else fact
            for key, fact in facts.items()
            if key not in left
        }
        for table, facts in tables.items()
    }


@pytest.mark.parametrize("name", CASES)
def test_a_rename_changes_no_released_table_and_of_the_manifest_only_the_words(name, tmp_path):
    case = CASES[name]
    found = running.run(case, RENAMES, tmp_path)

    before = {RENAMES.tables.get(table, table): facts for table, facts in case["tables"].items()}
    # Elsewhere cells may differ in their last bits.
    same = SAME_MACHINE and case["method"] not in FITTED and name not in ROUNDED | TIED
    left = () if same else ("sha256",)
    assert without(found["tables"], left) == without(before, left)
    drawn = case["method"] in DRAWN
    told = RENAMES.manifest_of(case["manifest"])
    now = of_before(found["manifest"], told["parameters"])
    if now["release_form"] == "row-aligned":
        now, told = but_closeness(now), but_closeness(told)
    if name in TIED:
        now, told = unwitnessed(now), unwitnessed(told)
    assert compared(now, drawn=drawn) == compared(told, drawn=drawn)


def test_the_bytes_of_tables_are_compared():
    if not SAME_MACHINE:
        pytest.skip(f"digests are of {BEFORE['machine']}, this is {running.machine()}")
    seeded = [case for case in CASES.values() if case["seed"] is not None]
    assert len(seeded) > 100
    assert all(table["sha256"] for case in seeded for table in case["tables"].values())


def test_every_method_of_before_is_held_in_every_release_form():
    held = {(case["method"], case["manifest"]["release_form"]) for case in CASES.values()}
    offered = {(name, form) for name, forms in BEFORE["forms"].items() for form in forms}
    assert held == offered
    assert len(BEFORE["forms"]) == 24
    today = {RENAMES.methods.get(name, name) for name in BEFORE["forms"]}
    assert today <= running.forms().keys()


def test_the_rename_map_names_words_of_before_only():
    said = set().union(*(capture.said(case["policy"]) for case in CASES.values()))
    assert set(BEFORE["words"]) <= said
    keys = {word for word in BEFORE["words"] if ":" not in word and " = " not in word}
    for path in {*RENAMES.policy.keys, *RENAMES.policy.values}:
        assert path in keys, f"no key of a policy: {path}"
    own = {word for word in BEFORE["words"] if ":" in word and " = " not in word}
    for key in {*RENAMES.parameters.keys, *RENAMES.parameters.values}:
        method, _, name = key.rpartition(".")
        fits = [word for word in own if word == f"{method}:{name}" or word.endswith(f":{key}")]
        assert fits, f"no parameter: {key}"
    assert RENAMES.methods.keys() <= BEFORE["forms"].keys()
    tables = {name for case in CASES.values() for name in case["tables"]}
    assert RENAMES.tables.keys() <= tables
    paths = {path for case in CASES.values() for path in translation.paths(case["manifest"])}
    for pattern in {*RENAMES.manifest.keys, *RENAMES.manifest.values}:
        assert any(translation.fits(pattern, path) for path in paths), f"no field: {pattern}"


@cache
def today():
    """The policies of all cases in the words of today."""
    return [(case["policy"], RENAMES.policy_of(case["policy"])) for case in CASES.values()]


@pytest.mark.parametrize(
    ("table", "old", "new"),
    [pytest.param(*rule, id=f"{rule[0]}: {rule[1]}") for rule in RULES]
    or [pytest.param("", "", "", id="nothing is renamed")],
)
def test_an_old_word_of_a_policy_is_refused_and_the_new_one_named(table, old, new, tmp_path):
    if not RULES:
        assert translation.from_text(translation.EMPTY) == RENAMES
        return
    rest = RENAMES.without(table, old)
    said = ((rest.policy_of(before), renamed) for before, renamed in today())
    policy = next((one for one, renamed in said if one != renamed), None)
    assert policy is not None, "no case says the old word"
    running.place(tmp_path)
    with chdir(tmp_path), pytest.raises(InputError) as refused:
        shoal.plan(running.dated(policy))
    told, named = str(refused.value), re.escape(new.rpartition(".")[2])
    if table.endswith(".values"):  # a list of the choices will do
        assert re.search(rf"\b{named}\b", told), told
    else:
        assert re.search(rf"'(\S+\.)?{named}'", told), f"{told} It should say '{new}', in quotes."


@pytest.mark.parametrize(
    "wrong",
    [
        '[policy.keys]\na = "c"\nb = "c"',
        '[policy.keys]\n"a.*" = "c"',
        '[policy.keys]\na = "a"',
        '[policy.keys]\n"a..b" = "c"',
        '[policy.values]\na = "b"',
        '[policy.values]\na = { x = "z", y = "z" }',
        '[methods]\nmdav = "mu"\nvmdav = "mu"',
        "[columns]",
    ],
)
def test_a_map_that_is_no_rename_is_refused(wrong):
    name = wrong.partition("\n")[0]
    with pytest.raises(AssertionError):
        translation.from_text(translation.EMPTY.replace(name + "\n", "") + wrong)


def made_up(policy_keys="", **tables):
    """A map of invented renames."""
    text = translation.EMPTY.replace("[policy.keys]", f"[policy.keys]\n{policy_keys}")
    for name, rules in tables.items():
        title = f"[{name.replace('_', '.')}]"
        text = text.replace(title, f"{title}\n{rules}")
    return translation.from_text(text)


def test_keys_move_values_and_methods_are_renamed_and_the_manifest_follows():
    renames = made_up(
        '"columns.*.unit" = "columns.*.person"\n"ledger" = "budget"\n'
        '"ledger.file" = "budget.path"\n"release.audience" = "context.audience"\n'
        '"require.l-diversity.kind" = "require.l-diversity.by"',
        policy_values='"columns.*.role" = { identifier = "direct" }\n'
        '"release.audience" = { open = "public-use" }\n"one_row_per_person" = { true = "row" }',
        parameters_keys='"mdav.k" = "size"\nepsilon = "price"',
        parameters_values='aggregate = { mean = "average" }',
        manifest_keys='"not_claimed" = "not_promised"\n"**.guarantee" = "**.promise"',
        manifest_values='"**.status" = { proved = "shown" }',
        methods='mdav = "groups"',
    )
    policy = {
        "one_row_per_person": True,
        "columns": {"a": "identifier", "b": {"role": "identifier", "unit": True}},
        "protect": {"method": "mdav", "k": 5, "aggregate": "mean", "columns": ["a"]},
        "require": {"l-diversity": [{"l": 2, "kind": "distinct"}]},
        "release": {"audience": "open"},
        "ledger": {"file": "x", "source": "y"},
    }
    assert renames.policy_of(policy) == {
        "one_row_per_person": "row",
        "columns": {"a": "direct", "b": {"role": "direct", "person": True}},
        "protect": {"method": "groups", "size": 5, "aggregate": "average", "columns": ["a"]},
        "require": {"l-diversity": [{"l": 2, "by": "distinct"}]},
        "context": {"audience": "public-use"},
        "budget": {"path": "x", "source": "y"},
    }
    claim = {"guarantee": {"name": "k-anonymity", "columns": ["a"]}, "status": "proved"}
    told = {"promise": {"name": "k-anonymity", "columns": ["a"]}, "status": "shown"}
    manifest = {
        "method": "mdav",
        "audience": "open",
        "policy": {"protect": {"method": "mdav", "k": 5}},
        "parameters": {"k": 5, "aggregate": "mean"},
        "not_claimed": "1 sentences",
        "claims": [claim],
        "planned": {"claims": [claim]},
        "budget": [{"entries": [{"method": "mdav"}]}],
        "draws": [],
    }
    assert renames.manifest_of(manifest) == {
        "method": "groups",
        "audience": "public-use",
        "policy": {"protect": {"method": "groups", "size": 5}},
        "parameters": {"size": 5, "aggregate": "average"},
        "not_promised": "1 sentences",
        "claims": [told],
        "planned": {"claims": [told]},
        "budget": [{"entries": [{"method": "groups"}]}],
        "draws": [],
    }


@given(st.sampled_from(sorted(CASES)), st.data())
def test_a_rename_and_its_inverse_give_a_policy_back(name, data):
    policy = CASES[name]["policy"]
    keys = sorted(word for word in BEFORE["words"] if ":" not in word and " = " not in word)
    keys = [key for key in keys if not key.startswith(("protect", "columns.*.role"))]
    chosen = data.draw(st.lists(st.sampled_from(keys), unique=True, max_size=6))
    leaves = [key for key in chosen if not any(one.startswith(f"{key}.") for one in keys)]
    there = made_up("\n".join(f'"{key}" = "{key}-new"' for key in leaves))
    back = made_up("\n".join(f'"{key}-new" = "{key}"' for key in leaves))
    assert back.policy_of(there.policy_of(policy)) == policy
