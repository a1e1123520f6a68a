"""The policy file: its shape, its sentences, its decimals and its digest."""

import json
import tomllib
from datetime import date
from decimal import Decimal

import polars as pl
import pytest

import shoal
from shoal import policy, sample
from shoal.core import Kind, Policy, Role
from shoal.errors import InputError
from shoal.io import text_files
from shoal.policy import spec

AGE = {"role": "quasi-identifier", "kind": "numeric"}


def mapping(**columns):
    return {
        "version": 1,
        "columns": columns or {"age": dict(AGE)},
        "protect": {"method": "mdav", "k": 3},
    }


def column(**keys):
    return policy.load(mapping(x=keys)).schema["x"]


def sentence_of(content):
    with pytest.raises(InputError) as caught:
        policy.load(content)
    return str(caught.value)


# Shape


def test_the_shipped_policy_loads():
    loaded = policy.load(sample.folder() / "people.toml")

    assert loaded.method == "mdav"
    assert loaded.parameters == {"k": 5}
    assert [str(one) for one in loaded.required] == [
        "5-anonymity of age + sex + region + education + marital"
    ]
    assert loaded.schema["name"].role is Role.IDENTIFIER
    assert loaded.schema["region"].hierarchy.root == "Maravel"
    assert loaded.schema["age"].bounds == (0, 110)
    assert loaded.schema.column_with_flag("privacy_unit") == "person"


def test_a_file_a_mapping_and_a_policy_mean_the_same():
    path = sample.folder() / "people.toml"
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    for name in ("region", "occupation", "condition"):
        content["columns"][name]["hierarchy"] = str(path.parent / f"{name}.csv")

    by_file, by_mapping = policy.load(path), policy.load(content)

    assert by_mapping.schema == by_file.schema
    assert by_mapping.parameters == by_file.parameters
    assert policy.load(by_file) is by_file


def test_a_role_alone_stands_for_a_column():
    short, long = column(role="other"), policy.load(mapping(x="other")).schema["x"]

    assert short == long
    assert short.kind is None


def test_columns_keep_the_order_of_the_file():
    loaded = policy.load(mapping(zebra="other", age=AGE, name="identifier"))

    assert loaded.schema.names == ("zebra", "age", "name")
    assert loaded.schema.released == ("zebra", "age")


def test_every_key_of_a_column_arrives():
    numeric = column(
        role="confidential", kind="numeric", bounds=[-1, 9], transform="log", step=2, top_code=8,
        bottom_code=0, missing=[-9, "n/a"], public=True, stratum=True,
    )  # fmt: skip
    day = column(
        role="confidential", kind="date", date_format="%d.%m.%Y", top_code=date(2020, 1, 1),
        date_step="month",
    )  # fmt: skip

    assert numeric.bounds == (-1, 9)
    assert (numeric.step, numeric.top_code, numeric.bottom_code) == (2, 8, 0)
    assert numeric.missing == ("-9", "n/a")
    assert numeric.public
    assert numeric.stratum
    assert day.date_format == "%d.%m.%Y"
    assert day.top_code == date(2020, 1, 1)
    assert day.date_step == "month"


def test_marks_of_missing_cells_may_stand_for_every_column():
    stated = mapping(age={**AGE, "missing": ["-9"]}, region="other")

    loaded = policy.load({**stated, "reading": {"missing": ["NA", -9]}})

    assert loaded.schema["age"].missing == ("-9", "NA")
    assert loaded.schema["region"].missing == ("NA", "-9")
    assert loaded.document["reading"] == {"missing": ["NA", "-9"]}


def test_days_may_be_given_as_texts():
    made = column(
        role="other", kind="date", bounds=["1915-01-01", date(2020, 1, 1)], date_format="d/m/yyyy"
    )

    assert made.bounds == (date(1915, 1, 1), date(2020, 1, 1))
    assert made.date_format == "%d/%m/%Y"


def test_categories_are_text_as_a_csv_file_would_hold_it():
    made = column(role="confidential", kind="nominal", categories=[1, True, "x", Decimal("2.50")])

    assert made.categories == ("1", "true", "x", "2.50")


# Decimals


def test_one_tenth_is_one_tenth_in_toml():
    text = 'version = 1\n[columns]\nx = {role = "other", kind = "numeric", step = 0.1}\n'
    loaded = policy.loads(text + '[protect]\nmethod = "mdav"\nk = 3\nt = 0.3')

    assert loaded.schema["x"].step == Decimal("0.1")
    assert loaded.parameters["t"] == Decimal("0.3")


def test_one_tenth_is_one_tenth_in_a_mapping():
    content = mapping(x={"role": "other", "kind": "numeric", "bounds": (0.1, 0.3)})
    content["protect"]["t"] = 0.2

    loaded = policy.load(content)

    assert loaded.schema["x"].bounds == (Decimal("0.1"), Decimal("0.3"))
    assert loaded.parameters["t"] == Decimal("0.2")


# Sentences


KEYS = [
    ({"role": "idntifier"}, ("columns.x.role: expected one of identifier, quasi-identifier, "
     "confidential, other, found 'idntifier'. Did you mean 'identifier'?")),
    ({"kind": "numeric"}, "columns.x.role: expected a value for 'role', found none."),
    ({"role": "confidential"}, ("expected a kind (numeric, ordinal, nominal, date) for a "
     "confidential column, found none.")),
    ({"role": "other", "sampling_weight": True},
     'expected kind = "numeric" for a sampling weight, found none.'),
    ({**AGE, "kind": "number"},
     "expected one of numeric, ordinal, nominal, date, discover, found 'number'."),
    ({**AGE, "bounds": [9, 0]}, "expected bounds from low to high, found ['9', '0']."),
    ({**AGE, "bounds": [0]}, "columns.x.bounds.1: expected two values, found none."),
    ({**AGE, "bounds": 5}, "columns.x.bounds: expected a list of two values, found '5'."),
    ({**AGE, "bounds": [0, "x"]}, "columns.x.bounds.1: expected a number, found 'x'."),
    ({**AGE, "bounds": [0, float("inf")]}, "expected a finite number, found 'Infinity'."),
    ({**AGE, "bounds": [date(2020, 1, 1), date(2021, 1, 1)]},
     "expected numbers as bounds, top_code, bottom_code and missing_as, found '2020-01-01'."),
    ({**AGE, "top_code": 1, "bottom_code": 2},
     "expected 'bottom_code' below 'top_code', found ['2', '1']."),
    ({**AGE, "step": 0}, "columns.x.step: expected greater than 0, found '0'."),
    ({**AGE, "privacy_unit": "yes"},
     "columns.x.privacy_unit: expected true or false, found 'yes'."),
    ({**AGE, "missing": 9}, "columns.x.missing: expected a list, found '9'."),
    ({**AGE, "categories": ["a"]},
     "expected 'categories' only on a nominal or ordinal column, found it on a numeric column."),
    ({**AGE, "kind": "nominal", "bottom_code": 0},
     "expected 'bottom_code' only on a date or numeric or ordinal column, found it on a nominal"),
    ({**AGE, "date_format": "%Y"},
     "expected 'date_format' only on a date column, found it on a numeric column."),
    ({**AGE, "kind": "date", "date_format": "tt.mm.jjjj"},
     "expected a date_format with year, month and day, such as '%d.%m.%Y' or 'dd.mm.yyyy'"),
    ({**AGE, "kind": "date", "bounds": ["01.01.1915", "31.12.2020"]},
     "columns.x.bounds.0: expected a number, found '01.01.1915'. Write days as 2023-09-17."),
    ({**AGE, "kind": "date", "bounds": [1915, 2020]},
     "expected dates such as 2023-09-17 as bounds, top_code, bottom_code and missing_as, found"),
    ({**AGE, "transform": "exp"}, "expected one of log, sqrt, found 'exp'."),
    ({**AGE, "kind": "ordinal"}, "expected 'categories', in order, for an ordinal column"),
    ({**AGE, "kind": "ordinal", "categories": ["a", "b"], "top_code": "c"},
     "expected 'top_code' to be one of the categories, found 'c'."),
    ({**AGE, "kind": "ordinal", "categories": ["a", "b"], "top_code": "a", "bottom_code": "b"},
     "expected 'bottom_code' below 'top_code' in the order of the categories."),
    ({**AGE, "kind": "nominal", "categories": []},
     "columns.x.categories: expected at least one entry, found a list."),
    ({**AGE, "kind": "nominal", "categories": [1, "1"]},
     "expected each category once, found one twice."),
    ({**AGE, "kind": "nominal", "categories": ["a"], "hierarchy": "a.csv"},
     "expected 'categories' or 'hierarchy', found both."),
    ({**AGE, "kind": "nominal", "observed": True},
     "expected 'observed' beside 'categories' or 'hierarchy', found neither."),
    (5, "columns.x: expected a table of keys, found '5'."),
    ({**AGE, "{text}": 1}, "columns.x: unknown key '{text}'."),
]  # fmt: skip


@pytest.mark.parametrize(("keys", "sentence"), KEYS)
def test_a_wrong_column_is_refused_in_a_sentence(keys, sentence):
    said = sentence_of(mapping(x=keys))

    assert said.startswith("policy, columns.x")
    assert sentence in said


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"version": 2}, "policy, version: expected 1, found '2'."),
        ({"version": "1"}, "policy, version: expected 1, found the text '1'."),
        ({"columns": {}}, "policy, columns: expected at least one entry, found a table."),
        ({"columns": [1]}, "policy, columns: expected a table of keys, found a list."),
        ({"protect": {"k": 3}}, "policy, protect.method: expected a value for 'method'"),
        ({"protect": {"method": "mdav", "columns": ["agge"]}},
         "expected [protect] columns that [columns] names, found 'agge'. Did you mean 'age'?"),
        ({"protect": {"method": "mdav", "release_form": "shuffled"}},
         "expected one of row-aligned, linked-shuffled, canonical, column-shuffled, synthetic"),
        ({"require": {"k-anonymity": 1}},
         "policy, require.k-anonymity: expected greater than or equal to 2, found '1'."),
        ({"reading": {"decimal": ";"}}, "policy, reading.decimal: expected"),
        ({"reading": {"delimiter": "ab"}}, "policy, reading.delimiter: expected"),
        ({"protection": {}}, "policy, protection: unknown key 'protection'. Did you mean"),
        ({"context": {"purpose": 5}}, "policy, context.purpose: expected text, found '5'."),
    ],
)  # fmt: skip
def test_a_wrong_section_is_refused_in_a_sentence(change, sentence):
    assert sentence in sentence_of({**mapping(), **change})


def test_further_mistakes_are_counted_by_place():
    said = sentence_of(mapping(x={**AGE, "bounds": ["a", "b"]}, y={**AGE, "privacy_unit": 1}))

    assert "columns.x.bounds.0: expected a number, found 'a'." in said
    assert said.endswith("(2 more errors.)")


def test_a_flag_belongs_to_one_column():
    unit = {"role": "identifier", "privacy_unit": True}

    said = sentence_of(mapping(x=unit, y=unit))

    assert "expected at most one column with 'privacy_unit', found x, y." in said


def test_an_identifier_cannot_be_protected():
    content = mapping(age=AGE, name="identifier", batch="other")

    content["protect"]["columns"] = ["name"]
    assert "expected columns that are released, found the identifier" in sentence_of(content)
    content["protect"]["columns"] = ["batch"]
    assert "expected a kind for the protected column 'batch', found none." in sentence_of(content)


@pytest.mark.parametrize("source", [None, 5, ["a"], b"policy.toml"])
def test_what_is_no_policy_is_refused(source):
    assert "Expected a policy as a path, a mapping or a Policy, found " in sentence_of(source)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), date(2020, 1, 1), [1, {"a": b"x"}]])
def test_any_parameter_can_be_written_down_so_that_the_method_can_refuse_it(value):
    content = mapping()
    content["protect"]["k"] = value

    json.dumps(policy.load(content).document, allow_nan=False)


# Document and digest


def test_the_digest_does_not_depend_on_the_order_of_keys():
    keys = {"role": "confidential", "kind": "numeric", "bounds": [0, 9], "step": 0.1}
    first = mapping(x=keys)
    second = dict(reversed(mapping(x=dict(reversed(keys.items()))).items()))

    assert policy.load(first).digest == policy.load(second).digest


def test_the_digest_does_not_depend_on_how_a_number_is_written():
    whole, point = (mapping(x={**AGE, "top_code": top}) for top in (5, 5.0))

    assert policy.load(whole).digest == policy.load(point).digest


def test_every_value_changes_the_digest():
    plain = mapping(x=AGE)
    protect = {"method": "mdav", "k": 3}
    changed = [
        plain,
        mapping(y=AGE),
        mapping(x={**AGE, "role": "confidential"}),
        mapping(x={**AGE, "bounds": [0, 1]}),
        mapping(x={**AGE, "bounds": [0, 1.5]}),
        mapping(x={**AGE, "step": 0.1}),
        mapping(x={**AGE, "missing": ["-9"]}),
        mapping(x={**AGE, "bottom_code": 0}),
        {**plain, "protect": {**protect, "k": 4}},
        {**plain, "protect": {**protect, "aggregate": "mode"}},
        {**plain, "protect": {**protect, "columns": ["x"]}},
        {**plain, "protect": {**protect, "release_form": "row-aligned"}},
        {**plain, "require": {"k-anonymity": 3}},
        {**plain, "reading": {"decimal": ","}},
    ]

    assert len({policy.load(content).digest for content in changed}) == len(changed)


def test_a_changed_file_changes_the_digest(tmp_path):
    nominal = '{ role = "quasi-identifier", kind = "nominal", '
    (tmp_path / "deep").mkdir()
    path = tmp_path / "policy.toml"
    path.write_text(
        f'version = 1\n[columns]\na = {nominal} hierarchy = "a.csv" }}\n'
        f'b = {nominal} hierarchy = "deep/a.csv" }}\nc = {nominal} recode = "c.csv" }}\n'
        '[protect]\nmethod = "mdav"\nk = 3\n',
        encoding="utf-8",
    )
    for name in ("a.csv", "deep/a.csv", "c.csv"):
        (tmp_path / name).write_text("x,all\n", encoding="utf-8")
    digests = [policy.load(path).digest]

    for name in ("a.csv", "deep/a.csv", "c.csv"):
        (tmp_path / name).write_text("y,all\n", encoding="utf-8")
        digests.append(policy.load(path).digest)

    assert len(set(digests)) == 4
    assert set(policy.load(path).document["files"]) == {"a.csv", "deep/a.csv", "c.csv"}


def test_the_context_is_kept_and_not_published():
    content = {**mapping(), "context": {"recipient": "Ministry of Silly Walks"}}

    loaded = policy.load(content)

    assert loaded.context["recipient"] == "Ministry of Silly Walks"
    assert [*loaded.context.values()].count(None) == 5
    assert "Silly" not in json.dumps(loaded.document)
    assert loaded.digest == policy.load(mapping()).digest


def test_observed_categories_are_used_and_not_published():
    keys = {"role": "quasi-identifier", "kind": "nominal", "categories": ["rare", "common"]}

    stated = policy.load(mapping(x=keys))
    observed = policy.load(mapping(x={**keys, "observed": True}))

    assert observed.schema["x"].categories == ("rare", "common")
    assert "rare" in json.dumps(stated.document)
    assert "rare" not in json.dumps(observed.document)


def test_the_document_is_plain_json():
    content = mapping(
        x={**AGE, "bounds": [0.5, 9], "step": 0.1},
        y={"role": "other", "kind": "date", "bounds": [date(1900, 1, 1), date(2030, 1, 1)]},
    )

    columns = policy.load(content).document["columns"]

    assert columns["x"]["bounds"] == [0.5, 9]
    assert columns["x"]["step"] == 0.1
    assert columns["y"]["bounds"] == ["1900-01-01", "2030-01-01"]


# Files that the policy names


def hierarchy(tmp_path, text):
    (tmp_path / "tree.csv").write_bytes(text.encode() if isinstance(text, str) else text)
    keys = '{ role = "other", kind = "nominal", hierarchy = "tree.csv" }'
    text = f'version = 1\n[columns]\nx = {keys}\n[protect]\nmethod = "mdav"\nk = 3\n'
    return policy.loads(text, folder=tmp_path).schema["x"].hierarchy


@pytest.mark.parametrize(
    "text",
    [
        "Lyon,South,all\nLille,North,all\n",
        "Lyon;South;all\r\nLille;North;all",
        "\ufeffLyon, South, all\n\n Lille,North ,all\n\n",
        '"Lyon";"South";"all"\n"Lille";"North";"all"\n',
    ],
)
def test_hierarchies_are_read_with_commas_or_as_arx_writes_them(tmp_path, text):
    tree = hierarchy(tmp_path, text)

    assert tree.paths == (("Lyon", "South", "all"), ("Lille", "North", "all"))


def test_a_cell_of_a_hierarchy_may_hold_a_delimiter(tmp_path):
    assert hierarchy(tmp_path, '"Lyon, Rhône",all\n"Nord\nLille",all\n').leaves == (
        "Lyon, Rhône",
        "Nord\nLille",
    )


@pytest.mark.parametrize("text", ["Paris;all;all\nLyon;South;all\n", "Paris,all\nLyon,South,all\n"])
def test_short_branches_of_a_hierarchy_may_be_padded_or_not(tmp_path, text):
    tree = hierarchy(tmp_path, text)

    assert tree.leaves == ("Paris", "Lyon")
    assert (tree.edges() >= 0).sum(axis=1).tolist() == [1, 2]


def test_a_recode_file_maps_values(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(
        'version = 1\n[columns]\nx = { role = "other", kind = "nominal", recode = "r.csv" }\n'
        '[protect]\nmethod = "mdav"\nk = 3\n',
        encoding="utf-8",
    )

    (tmp_path / "r.csv").write_text("a,b\nc,\n", encoding="utf-8")
    assert policy.load(path).schema["x"].recode == {"a": "b", "c": ""}

    for text in ("a,b\na,c\n", "a,b,c\n", "a\n"):
        (tmp_path / "r.csv").write_text(text, encoding="utf-8")
        assert "Column 'x', recode 'r.csv': expected two cells per row" in sentence_of(path)


# The JSON schema


def test_the_json_schema_is_json_and_knows_every_key():
    schema = json.loads(json.dumps(policy.json_schema()))

    assert schema["$schema"].startswith("https://json-schema.org/")
    assert set(schema["properties"]) == {
        "version", "one_row_per_person", "columns", "protect", "require", "release", "reading",
        "writing", "budget", "constraints", "context", "evaluate", "review",
    }  # fmt: skip
    assert schema["required"] == ["version", "columns", "protect"]
    assert schema["additionalProperties"] is False
    assert set(schema["$defs"]["ColumnSpec"]["properties"]) == set(spec.ColumnSpec.model_fields)
    assert schema["$defs"]["Role"]["enum"] == [role.value for role in Role]
    assert schema["$defs"]["Kind"]["enum"] == [kind.value for kind in Kind]


def test_the_json_schema_accepts_the_shipped_policy():
    schema = policy.json_schema()
    shipped = tomllib.loads((sample.folder() / "people.toml").read_text(encoding="utf-8"))

    _accept(shipped, schema, schema["$defs"])
    with pytest.raises(AssertionError):
        _accept({**shipped, "version": "1"}, schema, schema["$defs"])


def _accept(value, schema, definitions):
    """Check a value against the part of JSON schema that ours uses."""
    if "$ref" in schema:
        schema = {**definitions[schema["$ref"].rsplit("/", 1)[1]], **schema}
    if "anyOf" in schema:
        assert any(_accepts(value, choice, definitions) for choice in schema["anyOf"]), value
    if "enum" in schema:
        assert value in schema["enum"]
    sorts = {"object": dict, "array": list, "string": str, "integer": int, "null": type(None),
             "boolean": bool, "number": int | float}  # fmt: skip
    if "type" in schema:
        assert isinstance(value, sorts[schema["type"]]), (value, schema["type"])
    for item in value if isinstance(value, list) and "items" in schema else ():
        _accept(item, schema["items"], definitions)
    if isinstance(value, dict):
        assert set(schema.get("required", ())) <= set(value)
        for key, item in value.items():
            further = schema.get("additionalProperties", True)
            part = schema.get("properties", {}).get(key, further)
            assert part is not False, key
            _accept(item, {} if part is True else part, definitions)


def _accepts(value, schema, definitions):
    try:
        _accept(value, schema, definitions)
    except AssertionError:
        return False
    return True


def test_quoted_text_is_toml():
    text = 'a "quoted" \\ name\n\twith \x00\x1f\x7f é \U0001f41f # = [x]'

    assert tomllib.loads(f"{text_files.quote(text)} = {text_files.quote(text)}") == {text: text}


def test_a_policy_is_a_value():
    assert isinstance(policy.load(mapping()), Policy)
    with pytest.raises(AttributeError):
        policy.load(mapping()).method = "other"


def test_codes_are_cut_to_a_prefix_and_recoded_in_the_policy_itself():
    table = pl.DataFrame({"code": ["75011", "75012", "36000", " 99x"] * 5, "n": [1, 2] * 10})
    stated = {
        "version": 1,
        "columns": {
            "code": {
                "role": "quasi-identifier", "kind": "nominal", "prefix": 2, "recode": {"36": "00"},
            },
            "n": {"role": "confidential", "kind": "numeric"},
        },
        "protect": {"method": "local-suppression", "k": 2},
    }  # fmt: skip

    release = shoal.protect(table, stated)

    assert set(release.data["code"]) == {"75", "00", "99"}
    assert release.manifest.policy["columns"]["code"]["recode"] == {"36": "00"}


def test_a_recoding_that_was_read_off_the_data_stays_out_of_the_manifest():
    column = {
        "role": "quasi-identifier", "kind": "nominal", "categories": ["a"], "observed": True,
        "recode": {"b": "a"},
    }  # fmt: skip
    stated = {"version": 1, "columns": {"x": column},
              "protect": {"method": "local-suppression", "k": 2}}  # fmt: skip

    release = shoal.protect(pl.DataFrame({"x": ["a", "b"] * 3}), stated)

    assert "recode" not in release.manifest.policy["columns"]["x"]
