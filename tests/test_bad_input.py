"""Bad input at the command line: the exit code, the sentence, and that nothing was written.

Every cell of the tables below starts with or holds a canary, and no canary may reach the
screen.
"""

import contextlib
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from shoal.cli.commands import app

CANARIES = ("Wilhelmina", "8841", "7731", "Atlantis")
HEADER = "name,age,region,income\n"
ROWS = "".join(
    f"Wilhelmina {i},{20 + 5 * i},{('north', 'south')[i % 2]},8841{i}\n" for i in range(8)
)
COLUMNS = {
    "name": '"identifier"',
    "age": '{ role = "quasi-identifier", kind = "numeric", bounds = [0, 110] }',
    "region": '{ role = "quasi-identifier", kind = "nominal", categories = ["north", "south"] }',
    "income": '{ role = "confidential", kind = "numeric" }',
}


class Desk:
    """A folder with a table and a policy, and what the command line makes of them."""

    def __init__(self, folder):
        self.folder = folder
        self.data = folder / "people.csv"
        self.policy = folder / "policy.toml"
        self.out = folder / "release"
        self.write(HEADER + ROWS)
        self.state()

    def write(self, content, name="people.csv"):
        self.data = self.folder / name
        if isinstance(content, pl.DataFrame):
            content.write_parquet(self.data)
        else:
            self.data.write_bytes(content.encode() if isinstance(content, str) else content)

    def state(self, protect='method = "mdav"\nk = 3', more="", **columns):
        named = {name: line for name, line in {**COLUMNS, **columns}.items() if line}
        lines = [f"{name} = {line}" for name, line in named.items()]
        text = "\n".join(["version = 1", "[columns]", *lines, "[protect]", protect, more])
        self.policy.write_text(text, encoding="utf-8")

    def arguments(self, *options):
        return ["protect", str(self.data), "--policy", str(self.policy),
                "--out", str(self.out), *options]  # fmt: skip

    def run(self, *options):
        return CliRunner().invoke(app, self.arguments(*options))

    def listing(self):
        return {path: path.stat().st_mtime_ns for path in self.folder.rglob("*")}

    def refuses(self, sentence, *options, code=2):
        before = self.listing()

        result = self.run(*options)

        assert sentence in result.stderr
        assert result.exit_code == code
        assert result.stderr.startswith("shoal: ")
        assert not result.stdout
        assert not [canary for canary in CANARIES if canary in result.output]
        assert self.listing() == before

    def accepts(self, *options):
        result = self.run(*options)

        assert result.exit_code == 0, result.output
        assert not [canary for canary in CANARIES if canary in result.output]
        return pl.read_csv(self.out / "release.csv")


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)


# The file


@pytest.mark.parametrize("content", [b"", b"\n\n\r\n", b"  \n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_an_empty_file_is_refused(desk, content):
    desk.write(content)

    desk.refuses("people.csv' is empty; expected a header and one row per person.")


@pytest.mark.parametrize("content", [HEADER, HEADER.strip(), HEADER + "\n\n"])
def test_a_header_without_rows_is_refused(desk, content):
    desk.write(content)

    desk.refuses("The table has a header but no rows; expected one row per person.")


def test_a_parquet_file_without_rows_is_refused(desk):
    desk.write(pl.read_csv(desk.data).clear(), "people.parquet")

    desk.refuses("The table has a header but no rows")


def test_fewer_rows_than_k_are_refused(desk):
    desk.state('method = "mdav"\nk = 9')

    desk.refuses("Cannot form one group of k=9 from 8 rows.")


@pytest.mark.parametrize("header", ["name,age,region,age", '"name","age","region","age"'])
def test_duplicate_column_names_are_refused(desk, header):
    desk.write(f"{header}\n{ROWS}")

    desk.refuses("people.csv': columns 2 and 4 have the same name; expected each name once.")


def test_duplicate_column_names_in_a_parquet_file_are_refused(desk):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table([arrow.array([1]), arrow.array([2])], names=["age", "age"])
    desk.data = desk.folder / "people.parquet"
    parquet.write_table(table, desk.data)

    desk.refuses("people.parquet' has two columns of the same name; expected each name once.")


def test_a_header_with_a_trailing_delimiter_is_refused(desk):
    desk.write("name,age,region,income,\n" + ROWS.replace("\n", ",\n"))

    desk.refuses("people.csv': column 5 has no name; expected one for each column.")


def test_a_row_with_too_few_cells_is_refused(desk):
    desk.write(HEADER + ROWS + "Wilhelmina 9,33\n")

    desk.refuses("line 10 has another number of cells than the header, 4")


def test_a_row_with_too_many_cells_is_refused(desk):
    desk.write(HEADER + ROWS + "Wilhelmina 9,33,north,88419,Atlantis\n")

    desk.refuses("line 10 has another number of cells than the header, 4")


def test_a_quote_that_is_never_closed_is_refused(desk):
    desk.write(HEADER + '"' + ROWS)

    desk.refuses("line 2 has another number of cells than the header, 4")


@pytest.mark.parametrize(
    "content", [b"name,age\nWilhelmina \x81\x8d,\x90\n", b"name\0,age\nWilhelmina,7731\n"]
)
def test_an_encoding_that_cannot_be_found_is_refused(desk, content):
    desk.write(content)

    desk.refuses("it is neither UTF-8 nor Windows-1252. State it with --encoding")


@pytest.mark.parametrize("name", ["ascii", "klingon"])
def test_a_stated_encoding_that_does_not_fit_is_refused(desk, name):
    desk.write(HEADER + ROWS.replace("north", "nörth"))

    desk.refuses(f"with the encoding '{name}'. State another one.", "--encoding", name)


@pytest.mark.parametrize("mark", ["ab", '"', "é"])
def test_a_stated_delimiter_that_is_none_is_refused(desk, mark):
    desk.refuses(
        "Expected one ASCII character other than a quote as delimiter", "--delimiter", mark
    )


def test_a_folder_instead_of_a_file_is_refused(desk):
    desk.data = desk.folder / "folder"
    desk.data.mkdir()

    desk.refuses("Expected a file or a folder of Parquet files, found")


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "none.arrow", "none.sav"])
def test_a_file_that_is_not_there_is_refused(desk, name):
    desk.data = desk.folder / name

    desk.refuses(f"{name}': no such file or directory.")


def test_a_file_below_a_file_is_refused(desk):
    desk.data = desk.data / "people.csv"

    desk.refuses("not a directory.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads files of mode 0")
def test_a_file_that_may_not_be_read_is_refused(desk):
    desk.data.chmod(0)

    desk.refuses("people.csv': permission denied.")


@pytest.mark.parametrize("name", ["p.parquet", "p.arrow", "p.sav", "p.dta", "p.xpt", "p.sas7bdat"])
def test_a_file_of_another_format_is_refused(desk, name):
    desk.write(HEADER + ROWS, name)

    desk.refuses("the file is damaged or of another format.")


def test_a_truncated_parquet_file_is_refused(desk):
    desk.write(pl.read_csv(desk.data), "people.parquet")
    desk.data.write_bytes(desk.data.read_bytes()[:-100])

    desk.refuses("people.parquet' as PARQUET: the file is damaged or of another format.")


# The values


@pytest.mark.parametrize("cell", ["NaN", "nan", "inf", "-Infinity"])
def test_nan_and_infinities_in_csv_are_refused(desk, cell):
    desk.write(HEADER + ROWS + f"Wilhelmina 9,{cell},north,1\n" * 2)

    desk.refuses("Column 'age': found NaN or infinite numbers in 2 rows (9, 10). Leave")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_nan_and_infinities_in_parquet_are_refused(desk, value):
    table = pl.read_csv(desk.data).with_columns(
        pl.Series("age", [value, *map(float, range(7))]),
    )
    desk.write(table, "people.parquet")

    desk.refuses("Column 'age': found NaN or infinite numbers in 1 row (1). Leave missing cells")


def test_nan_as_a_category_is_refused(desk):
    desk.write(pl.DataFrame({"code": [1.0, float("nan")] * 4}), "people.parquet")
    desk.state(**dict.fromkeys(COLUMNS), code='{ role = "quasi-identifier", kind = "nominal" }')

    desk.refuses("Column 'code': found NaN or infinite numbers in 4 rows (2, 4, 6, 8).")


def test_numbers_whose_squares_overflow_are_refused(desk):
    desk.write(HEADER + ROWS + "Wilhelmina 9,33,north,7731e200\n")

    desk.refuses("Column 'income': found numbers beyond 1e+150 in 1 row (9).")


def test_text_in_a_numeric_column_is_refused(desk):
    desk.write(HEADER + ROWS + "Wilhelmina 9,Atlantis,north,1\nWilhelmina 10,7731x,north,1\n")

    desk.refuses(
        "Column 'age': expected numbers, found something else in 2 rows (9, 10). Correct the cells"
    )


@pytest.mark.parametrize("age", ["7731", "-7731", "110.5"])
def test_values_outside_the_bounds_are_counted(desk, age):
    desk.write(HEADER + ROWS + f"Wilhelmina 9,{age},north,1\n" * 3)

    desk.refuses(
        "'age': expected values within the bounds [0, 110], found others in 3 rows (9, 10, 11)."
    )


def test_values_outside_the_categories_are_counted(desk):
    desk.write(HEADER + ROWS + "Wilhelmina 9,33,Atlantis,1\n" * 2)

    desk.refuses(
        "Column 'region': expected values of its categories, found others in 2 rows (9, 10)."
    )


def test_dates_of_another_form_are_counted(desk):
    desk.write("born\n" + "7731/01/31\n" * 5)
    desk.state(**dict.fromkeys(COLUMNS), born='{ role = "quasi-identifier", kind = "date" }')

    desk.refuses(
        "Column 'born': expected dates of the form %Y-%m-%d, found something else in 5 rows (1, 2"
    )


def test_two_rows_of_one_person_are_refused(desk):
    desk.write(HEADER + ROWS + "Wilhelmina 1,33,north,1\n")
    desk.state(name='{ role = "identifier", privacy_unit = true, exact_contributions = 1 }')

    desk.refuses("Column 'name' numbers the persons: expected one row per person, found 1 more row")


def test_a_column_of_lists_is_refused(desk):
    desk.write(pl.read_csv(desk.data).with_columns(age=pl.lit([7731])), "people.parquet")

    desk.refuses("Column 'age' holds List values; expected one number, text or date per cell.")


def test_constant_columns_work(desk):
    desk.write(HEADER + "Wilhelmina,41,north,8841\n" * 6)

    released = desk.accepts()

    assert released.unique().rows() == [(41.0, "north", 8841)]
    assert released.height == 6


def test_one_column_works(desk):
    desk.write("age\n" + "".join(f"{age}\n" for age in (20, 21, 22, 60, 61, 62)))
    desk.state(**dict.fromkeys(("name", "region", "income")))

    released = desk.accepts()

    assert sorted(released["age"]) == [21.0] * 3 + [61.0] * 3


def test_columns_without_a_value_work(desk):
    desk.write("age,region,income\n" + "20,,\n30,,\n40,,\n")
    desk.state(name=None, more='[release]\naccept_constant = ["age"]')

    released = desk.accepts()

    assert released["age"].to_list() == [30.0] * 3
    assert released["region"].null_count() == released["income"].null_count() == 3


def test_columns_that_become_constant_stop_the_run_unless_they_are_accepted(desk):
    desk.state('method = "mdav"\nk = 8')

    desk.refuses(
        "Columns 'age', 'region' have one value in the release and several in the table. Lower k "
        "or protect fewer columns; or accept it under [release]: accept_constant = "
        '["age", "region"]. Nothing was written.'
    )

    desk.state('method = "mdav"\nk = 8', '[release]\naccept_constant = ["age", "region"]')
    desk.accepts()


@pytest.mark.parametrize("role", ['"other"', '{ role = "confidential", kind = "nominal" }'])
def test_a_code_of_its_own_in_every_row_stops_the_run_unless_it_is_accepted(desk, role):
    desk.state(name=role)

    desk.refuses("whoever knows the value finds the row. Use the role identifier; or accept it")

    desk.state(more='[release]\naccept_distinct = ["name"]', name=role)
    desk.accepts()


def test_a_column_that_was_constant_before_stops_nothing(desk):
    desk.write(HEADER + ROWS.replace("south", "north"))

    desk.accepts()


# The policy


@pytest.mark.parametrize("k", [1, 0, -3])
def test_k_below_two_is_refused(desk, k):
    desk.state(f'method = "mdav"\nk = {k}')

    desk.refuses(f"[protect], k: expected greater than or equal to 2, found '{k}'.")


@pytest.mark.parametrize("k", ["2.5", "true", '"3"', "inf", "nan", "[3]", "01:00:00"])
def test_a_k_that_is_no_whole_number_is_refused(desk, k):
    desk.state(f'method = "mdav"\nk = {k}')

    desk.refuses("[protect], k: expected a whole number, found ")


def test_a_missing_parameter_is_refused(desk):
    desk.state('method = "mdav"')

    desk.refuses("[protect], k: expected a value for 'k', found none.")


def test_an_unknown_method_is_refused(desk):
    desk.state('method = "mdva"\nk = 3')

    desk.refuses("No method named 'mdva'. Did you mean 'mdav'? The methods are: ")


def test_an_unknown_parameter_is_refused(desk):
    desk.state('method = "mdav"\nk = 3\nagregate = "mean"')

    desk.refuses("has no parameter 'agregate'. Did you mean 'aggregate'? It takes: k, ")


def test_an_unknown_key_of_a_column_is_refused(desk):
    desk.state(age='{ role = "quasi-identifier", kind = "numeric", bound = [0, 110] }')

    desk.refuses("policy.toml, columns.age: unknown key 'bound'. Did you mean 'bounds'?")


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ("[requires]", "unknown key 'requires'. Did you mean 'require'?"),
        ("[require]\nk_anonymity = 3\nm-diversity = 2", "unknown key 'm-diversity'."),
        (
            "[release]\npurpose = 'open'",
            "unknown key 'purpose'. Known here: audience, accept_constant",
        ),
        (
            "[require]\nl-diversity = { l = 2, column = 'income', order = 1 }",
            "unknown key 'order'. Known here: l, column, kind, c.",
        ),
        ("[columns.x]\nrole = 'other'\nquux = 1", "unknown key 'quux'. Known here: role, kind, "),
        (
            "[quux]",
            "unknown key 'quux'. Known here: version, one_row_per_person, columns, protect, ",
        ),
        ("[reading]\ndelimeter = ';'", "unknown key 'delimeter'. Did you mean 'delimiter'?"),
        ("[context]\nporpose = 'x'", "unknown key 'porpose'. Did you mean 'purpose'?"),
    ],
)
def test_unknown_keys_and_sections_are_refused(desk, more, sentence):
    desk.state(more=more)

    desk.refuses(sentence)


def test_a_policy_that_is_no_toml_is_refused(desk):
    desk.policy.write_text("version = ", encoding="utf-8")

    desk.refuses("policy.toml is not valid TOML: ")


def test_a_policy_that_is_no_text_is_refused(desk):
    desk.policy.write_bytes(b"\xff\xfe\x00")

    desk.refuses("policy.toml': it must be UTF-8 text.")


def test_a_policy_that_is_not_there_is_refused(desk):
    desk.policy = desk.folder / "none.toml"

    desk.refuses("none.toml': no such file or directory.")


def test_a_column_that_the_policy_does_not_name_comes_with_the_line_to_add(desk):
    desk.state(income=None)

    desk.refuses(
        "The data has a column 'income' that the policy does not name. Add a line under "
        '[columns], for example: "income" = "identifier"'
    )


def test_the_line_to_add_is_toml_whatever_the_name(desk):
    desk.write(HEADER.replace("income", '"in""co\\me"') + ROWS)
    desk.state(income=None)

    desk.refuses(r'for example: "in\"co\\me" = "identifier"')


def test_a_column_that_the_data_lacks_comes_with_a_guess(desk):
    desk.write(HEADER.replace("income", "incme") + ROWS)
    desk.state(incme='"other"')

    desk.refuses("The policy names a column 'income' that the data lacks.")


def test_a_misspelt_column_comes_with_a_guess(desk):
    desk.write(HEADER.replace("income", "incme") + ROWS)

    desk.refuses("a column 'incme' that the policy does not name. Did you mean 'income'?")


def test_a_misspelt_column_of_the_policy_comes_with_a_guess(desk):
    desk.write("name,age,region\n" + "Wilhelmina,30,north\n" * 5)
    desk.state(income=None, regoin='"other"')

    desk.refuses("The policy names a column 'regoin' that the data lacks.")


def test_a_policy_without_a_released_column_is_refused(desk):
    desk.state(**dict.fromkeys(COLUMNS, '"identifier"'))

    desk.refuses("finds no column to protect in the policy.")


TAXONOMIES = {
    "two parents": ("north,up,all\nsouth,up,all\neast,up,west,all\n", "'up' has two parents."),
    "two roots": ("north,all\nsouth,none\n", "must end in the same root"),
    "a leaf twice": ("north,up,all\nnorth,up,all\n", "must list each leaf once"),
    "an inner leaf": ("north,all\nup,all\nsouth,up,all\n", "a leaf is also an inner node."),
    "a root with a parent": ("north,all,up,all\nsouth,all\n", "must be a tree"),
    "leaves alone": ("north\nsouth\n", "needs rows of at least two cells"),
    "nothing": ("", "needs rows of at least two cells"),
}


@pytest.mark.parametrize("sort", TAXONOMIES)
def test_a_hierarchy_that_is_no_tree_is_refused(desk, sort):
    text, sentence = TAXONOMIES[sort]
    (desk.folder / "region.csv").write_text(text, encoding="utf-8")
    desk.state(region='{ role = "quasi-identifier", kind = "nominal", hierarchy = "region.csv" }')

    desk.refuses("Column 'region', hierarchy 'region.csv': A hierarchy ")
    desk.refuses(sentence)


def test_a_hierarchy_that_lacks_a_value_is_refused(desk):
    (desk.folder / "region.csv").write_text("north,all\nsouth,all\n", encoding="utf-8")
    desk.write(HEADER + ROWS + "Wilhelmina 9,33,Atlantis,1\n" * 2)
    desk.state(region='{ role = "quasi-identifier", kind = "nominal", hierarchy = "region.csv" }')

    desk.refuses(
        "Column 'region': expected leaves of its hierarchy, found others in 2 rows (9, 10)."
    )


@pytest.mark.parametrize("key", ["hierarchy", "recode"])
def test_a_file_named_by_the_policy_that_is_not_there_is_refused(desk, key):
    desk.state(region=f'{{ role = "quasi-identifier", kind = "nominal", {key} = "none.csv" }}')

    desk.refuses("Cannot read 'none.csv', named by the policy: no such file or directory.")


@pytest.mark.parametrize("content", [b"n\xf6rth,all\n", b'"north,all\n', b"x" * 200_000])
def test_a_file_named_by_the_policy_that_is_no_csv_is_refused(desk, content):
    (desk.folder / "region.csv").write_bytes(content)
    desk.state(region='{ role = "quasi-identifier", kind = "nominal", hierarchy = "region.csv" }')

    desk.refuses("'region.csv', named by the policy, must be CSV in UTF-8.")


def test_a_requirement_that_the_method_cannot_keep_exits_with_3(desk):
    desk.state(more="[require]\nk-anonymity = 5")

    desk.refuses("The policy requires 5-anonymity of age + region", code=3)


# The place to write


def test_an_existing_release_is_not_overwritten(desk):
    desk.accepts()

    desk.refuses(
        "release' exists already. Choose another place, or replace it with --force (in "
        "Python, force=True)."
    )


def test_an_existing_internal_folder_is_not_overwritten(desk):
    desk.accepts()
    desk.out.rename(desk.folder / "moved")

    desk.refuses("release.internal' exists already.")


def test_a_release_is_not_named_like_a_confidential_folder(desk):
    desk.out = desk.folder / "o.internal"

    desk.refuses("ends like a confidential folder; choose a name without .internal.")
    assert not desk.out.exists()


def test_force_replaces_a_release(desk):
    desk.accepts()
    desk.write(HEADER + ROWS * 2)

    assert desk.accepts("--force").height == 16


@pytest.mark.parametrize("name", ["release", "release.internal"])
def test_force_does_not_replace_a_folder_that_is_no_release(desk, name):
    (desk.folder / name).mkdir()
    (desk.folder / name / "thesis.tex").write_text("years of work", encoding="utf-8")

    desk.refuses(f"{name}' is not a Shoal release, and is never replaced.", "--force")


@pytest.mark.parametrize("name", ["release", "release.internal"])
def test_a_file_in_the_place_of_the_release_is_refused(desk, name):
    (desk.folder / name).write_text("years of work", encoding="utf-8")

    desk.refuses(f"{name}': a file of that name exists.", "--force")


def test_a_release_below_a_file_is_refused(desk):
    (desk.folder / "file.txt").write_text("years of work", encoding="utf-8")
    desk.out = desk.folder / "file.txt" / "release"

    desk.refuses("file.txt/release': file exists. Nothing was written.")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes to folders of mode 0500")
def test_a_folder_that_may_not_be_written_is_refused(desk):
    (desk.folder / "closed").mkdir(mode=0o500)
    desk.out = desk.folder / "closed" / "release"

    desk.refuses(": permission denied. Nothing was written.")


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs /proc, where none may write")
def test_a_folder_that_nobody_may_write_is_refused(desk):
    desk.out = Path("/proc/shoal-release")

    desk.refuses("Cannot write '/proc/shoal-release")


@pytest.mark.parametrize("form", ["parquet", "csv", "sav", "dta"])
def test_a_full_disk_leaves_nothing_behind(desk, form):
    desk.write(HEADER + "".join(f"Wilhelmina,{i % 97},north,{i}\n" for i in range(9000)))
    desk.state('method = "individual-ranking"\nk = 3')
    before = desk.listing()

    with _full_disk():
        done = CliRunner().invoke(app, desk.arguments("--file-format", form))

    assert done.exit_code == 2
    *told, last = done.stderr.splitlines()
    assert last.startswith("shoal: Cannot write ")
    compiling = "shoal: Compiling what this method needs, once on this machine; about 10 s."
    assert told in ([], [compiling])
    assert not done.stdout
    assert not [canary for canary in CANARIES if canary in done.stderr]
    assert desk.listing() == before


@contextlib.contextmanager
def _full_disk():
    """Let every file end at 4 kB, which looks like a full disk to a program."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)


def test_an_unknown_format_is_refused(desk):
    desk.refuses(
        "Expected a format among parquet, csv, xlsx, sav, dta, xpt, found 'xls'.",
        "--file-format",
        "xls",
    )


@pytest.mark.parametrize("form", ["sav", "dta"])
def test_a_name_that_a_statistics_package_does_not_take_is_refused(desk, form):
    desk.write(HEADER.replace("age", "age-group") + ROWS)
    desk.state(age=None, **{'"age-group"': COLUMNS["age"]})

    desk.refuses("it cannot name a column 'age-group'. Rename the column", "--file-format", form)


# The other commands, and the program as a whole


def test_init_refuses_an_empty_file_and_writes_nothing(desk):
    desk.write("")
    before = desk.listing()

    result = CliRunner().invoke(
        app, ["init", str(desk.data), "--out", str(desk.folder / "new.toml")]
    )

    assert result.exit_code == 2
    assert "is empty; expected a header" in result.stderr
    assert desk.listing() == before


def test_check_refuses_a_table_without_rows(desk):
    desk.write("age,region,income\n")

    result = CliRunner().invoke(app, ["check", str(desk.data), "--policy", str(desk.policy)])

    assert result.exit_code == 2
    assert "The table has no rows; there is nothing to check." in result.stderr


@pytest.mark.parametrize("content", [HEADER, HEADER + ROWS + "Wilhelmina 9,7731,north,1\n"])
def test_the_program_shows_no_traceback_and_no_cell(desk, content):
    desk.write(content)
    before = desk.listing()

    done = subprocess.run(
        [sys.executable, "-m", "shoal", *desk.arguments()],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 2
    assert done.stderr.startswith("shoal: ")
    assert done.stderr.count("\n") == 1
    assert not [canary for canary in CANARIES if canary in done.stdout + done.stderr]
    assert desk.listing() == before
