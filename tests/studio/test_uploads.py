"""Files that come in: counted, named by the server, refused where they would burst."""

import gzip
import io
import os
import socket
import stat
import time
import zipfile
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc, parquet
from tests import workbook

from shoal.errors import InputError
from shoal.io import decoded_size
from shoal.studio import uploads
from shoal.studio.workspace import DataFile

LIMIT = 1 << 20  # of the studio that these tests share


def files_of(served, workspace=""):
    """Temporary files, those of one workspace or all: jobs of other tests may still write."""
    found = served.studio.temporary.rglob("*")
    return [path for path in found if path.is_file() and workspace in str(path)]


def raw_request(served, client, workspace, head, body, *, hang_up=False):
    """Send bytes as they are, and give the status of the answer."""
    cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    lines = [
        f"POST /w/{workspace}/data?label=a.csv HTTP/1.1",
        f"Host: {served.address.removeprefix('http://')}", f"Origin: {served.address}",
        f"Cookie: {cookie}", "Content-Type: application/octet-stream", *head, "", "",
    ]  # fmt: skip
    with socket.create_connection(("127.0.0.1", served.settings.port), timeout=20) as line:
        line.sendall("\r\n".join(lines).encode())
        try:
            for part in body:
                line.sendall(part)
            if hang_up:
                line.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # The server has hung up already, which is an answer too.
        answer = b""
        try:
            while part := line.recv(65536):
                answer += part
        except ConnectionResetError:
            pass
    return int(answer.split(b" ", 2)[1]) if answer else 0


def test_an_upload_is_kept_in_a_folder_of_the_servers_choice_under_a_name_without_tricks(
    served, client, workspace, tools
):
    label = "../../etc/<b>pass\x00wd</b>.csv"
    tools.with_table(client, workspace, tools.people(), label)
    shown = tools.loaded(client, workspace).data
    folder = served.studio.temporary / workspace / shown.id
    path = uploads.path_of(DataFile(shown.id, shown.label, ".csv", 1), folder.parent)

    assert path.read_bytes() == tools.people()
    assert path.parent == folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for tricky in ("..", ".csv", "-rf", "x" * 300, "ä" * 150, "../a", "DATA.CSV"):
        made = uploads.path_of(DataFile("0" * 16, uploads._label(tricky), ".csv", 1), folder)
        assert made.parent == folder / ("0" * 16)
        assert made.name[0] not in ".-"
        assert made.name.endswith(".csv")
        assert len(made.name.encode()) <= 200
    assert "/" not in shown.label
    assert "\x00" not in shown.label
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent, served.settings.home):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("where", ["data", "others"])
def test_an_upload_over_the_limit_is_413_and_leaves_nothing(
    served, client, workspace, tools, where
):
    answer = tools.upload(client, workspace, b"a,b\n" + b"1,2\n" * LIMIT, where=where)

    assert answer.status_code == 413
    assert "limit" in answer.json()["error"]
    assert files_of(served, workspace) == []


def test_a_file_just_over_the_limit_is_413_and_one_at_the_limit_is_taken(client, workspace, tools):
    head = b"age,sex\n"
    content = head + b"1,2\n" * ((LIMIT - len(head)) // 4)
    content += b" " * (LIMIT - len(content))

    assert tools.upload(client, workspace, content + b" ").status_code == 413
    taken = tools.upload(client, workspace, content)
    assert taken.status_code == 202
    client.served.studio.jobs.cancel(taken.json()["job"])  # that it was taken is enough


def test_a_chunked_upload_over_the_limit_is_413_and_leaves_nothing(served, client, workspace):
    part = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    head = ["Transfer-Encoding: chunked", "Connection: close"]

    status = raw_request(served, client, workspace, head, [part] * 17)

    assert status == 413
    assert files_of(served, workspace) == []


def test_a_length_that_lies_low_does_not_let_more_bytes_in(served, client, workspace):
    head = ["Content-Length: 8", "Connection: close"]
    raw_request(served, client, workspace, head, [b"a,b\n1,2\n", b"x" * (2 * LIMIT)])

    assert all(path.stat().st_size <= LIMIT for path in files_of(served))


def test_a_length_that_lies_high_and_breaks_off_leaves_nothing(served, client, workspace):
    head = [f"Content-Length: {LIMIT}"]
    status = raw_request(served, client, workspace, head, [b"a,b\n1,2\n"], hang_up=True)

    assert status in {0, 400, 422}
    # The server notices that nobody is there after the test does.
    deadline = time.monotonic() + 20
    while files_of(served, workspace) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert files_of(served, workspace) == []


def test_a_length_over_the_limit_is_413_before_a_byte_comes(served, client, workspace):
    head = [f"Content-Length: {LIMIT + 1}", "Connection: close"]

    assert raw_request(served, client, workspace, head, []) == 413


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "application/octet-stream"),
        (b"a,b\n1,2\n", "text/csv"),
        (b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\na\r\n--x--\r\n',
         "multipart/form-data; boundary=x"),
    ],
)  # fmt: skip
def test_what_a_page_does_not_send_is_refused_in_a_sentence_and_leaves_nothing(
    served, client, workspace, content, kind
):
    answer = client.post(f"/w/{workspace}/data", content=content, headers={"content-type": kind})

    assert answer.status_code == 422
    assert answer.json()["error"].endswith(".")
    assert files_of(served, workspace) == []


def test_a_zip_bomb_is_refused_unopened(client, workspace, tools):
    bomb = io.BytesIO()
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", b"0" * (64 << 20))

    for name in ("people.zip", "people.csv", "people.xlsx", "people.sav"):
        answer = tools.upload(client, workspace, bomb.getvalue(), name=name)
        assert answer.status_code == 422
        assert "archive" in answer.json()["error"]


def parquet_bomb(rows):
    """Few bytes, and many rows of one value."""
    out = io.BytesIO()
    pl.DataFrame({"a": pl.repeat("x" * 100, rows, eager=True)}).write_parquet(
        out, compression="zstd", statistics=False
    )
    return out.getvalue()


@pytest.mark.usefixtures("own_temp")
def test_a_parquet_bomb_is_refused_by_what_it_decodes_to(tmp_path, tools):
    content = parquet_bomb(1_000_000)
    with tools.serving(tmp_path / "home", decoded_limit=1 << 20) as small, small.client() as client:
        workspace = tools.new(client)
        answer = tools.upload(client, workspace, content, name="people.parquet")

        assert len(content) < 1 << 16
        assert answer.status_code == 413
        assert "decoded" in answer.json()["error"]
        assert not files_of(small)[1:]  # the lock alone
        assert tools.loaded(client, workspace).data is None


@pytest.mark.parametrize("rows", [0, 1, 200_000])
def test_the_cells_of_a_parquet_file_are_counted_without_decoding_them(tmp_path, rows):
    nested = {"x": 1, "y": [2]}
    frame = pl.DataFrame({"a": pl.repeat("x" * 40, rows, eager=True), "b": range(rows),
                          "c": pl.repeat(nested, rows, eager=True)})  # fmt: skip
    frame.write_parquet(tmp_path / "a.parquet")

    assert decoded_size.read_stated_size(tmp_path / "a.parquet") == rows * 4 * decoded_size.CELL


def test_a_parquet_file_of_another_writer_is_measured_too(tmp_path):
    table = pa.table({"a": ["x"] * 5000, "b": pa.array(range(5000), pa.int32())})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=700, compression="gzip")

    assert decoded_size.read_stated_size(tmp_path / "a.parquet") == 5000 * 2 * decoded_size.CELL


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_the_decoded_size_of_an_arrow_file_is_not_below_what_polars_takes(tmp_path, compression):
    frame = pl.DataFrame({"a": ["x" * 40] * 100_000, "b": range(100_000)})
    frame.write_ipc(tmp_path / "a.arrow", compression=compression)

    found = decoded_size.read_stated_size(tmp_path / "a.arrow")

    assert found >= frame.estimated_size() * 0.9
    assert found < 10 * frame.estimated_size() + 100_000


def test_an_arrow_file_of_another_writer_with_a_dictionary_is_measured_too(tmp_path):
    words = pa.array(["a" * 1000, "b"] * 500).dictionary_encode()
    table = pa.table({"w": words, "n": range(1000)})
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_file(str(tmp_path / "a.feather"), table.schema, options=options) as writer:
        writer.write_table(table)

    assert (
        decoded_size.read_stated_size(tmp_path / "a.feather") >= 2 * 1000 * decoded_size.CELL + 1001
    )


@given(cut=st.integers(0, 400), flip=st.lists(st.tuples(st.integers(1, 300), st.integers(0, 255))))
@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_damaged_footer_is_refused_or_measured_and_never_a_crash(
    tmp_path_factory, kind, cut, flip
):
    path = tmp_path_factory.mktemp("damaged") / f"a.{kind}"
    frame = pl.DataFrame({"a": ["x"] * 50, "b": range(50)})
    out = io.BytesIO()
    if kind == "parquet":
        frame.write_parquet(out)
    else:
        frame.write_ipc(out, compression="zstd")
    content = bytearray(out.getvalue())
    for place, byte in flip:
        content[-min(place, len(content))] = byte
    path.write_bytes(bytes(content[: len(content) - cut]))
    try:
        found = decoded_size.read_stated_size(path)
        assert found is None or found >= 0
    except InputError:
        pass
    finally:
        os.remove(path)  # noqa: PTH107 (many examples)


def test_a_statistics_file_is_measured_by_its_own_header_in_the_worker(tmp_path):
    library = pytest.importorskip("pyreadstat", reason="needs the extra 'stats'")
    path = tmp_path / "a.sav"
    library.write_sav(pl.DataFrame({"a": [1.0] * 1000, "b": [2.0] * 1000}), str(path))

    uploads.refuse_bombs(path, limit=1000, library=False)
    with pytest.raises(uploads.TooLargeError, match="decoded"):
        uploads.refuse_bombs(path, limit=1000, library=True)


@given(st.text())
def test_a_label_is_one_printable_line_without_folders(name):
    label = uploads._label(name)

    assert label
    assert label.isprintable()
    assert len(label) <= uploads.LONGEST
    assert not {"/", "\\"} & set(label)


def test_a_file_that_is_no_table_fails_in_one_sentence_without_its_content(
    client, workspace, tools
):
    secret = b'Anna Smith,"\x81\x8d never closed'
    job = tools.upload(client, workspace, secret, name="people.parquet")
    assert job.status_code == 422
    job = tools.upload(client, workspace, b'a,b\n1,2\n"Anna,3\n', name="people.csv").json()
    status = tools.ended(client, job["job"])

    assert status["state"] == "failed"
    assert "Anna" not in str(status)
    assert "Traceback" not in status["error"]


@pytest.mark.usefixtures("own_temp")
def test_the_temporary_folder_goes_with_the_server(tmp_path, tools):
    with tools.serving(tmp_path / "home") as running, running.client() as client:
        workspace = tools.new(client)
        tools.upload(client, workspace, tools.people())
        folder = running.studio.temporary
        assert folder.is_dir()
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700

    assert not folder.exists()


def test_what_a_killed_server_left_is_removed_at_the_next_start(tmp_path, own_temp, tools):
    left = Path(own_temp) / "shoal-studio-left"
    left.mkdir(mode=0o700)
    (left / "people.csv").write_bytes(tools.people())
    mine = Path(own_temp) / "something-else"
    mine.mkdir()

    with tools.serving(tmp_path / "first"), tools.serving(tmp_path / "second") as second:
        others = list(Path(own_temp).glob("shoal-studio-*"))
        assert second.studio.temporary in others

    assert not left.exists()
    assert mine.exists()
    assert len(others) >= 2  # a server that lives keeps its folder


@pytest.mark.parametrize("name", ["People.XLSX", "people.csv.gz"])
def test_a_workbook_and_a_packed_csv_file_are_taken_by_their_names(
    client, workspace, tools, tmp_path, name
):
    if name.endswith("gz"):
        content = gzip.compress(b"age,region\n31,north\n45,south\n")
    else:
        pytest.importorskip("fastexcel")
        rows = [["age", "region"], [31, "north"], [45, "south"]]
        content = workbook.write(tmp_path / "x.xlsx", {"S": rows}).read_bytes()

    answer = tools.upload(client, workspace, content, name=name)

    assert answer.status_code < 300, answer.text
    assert client.served.do(answer.json()["job"]) == "done"
    assert tools.loaded(client, workspace).data.label == name


def test_titles_and_totals_of_a_workbook_are_recognised_and_can_be_corrected(
    client, workspace, tools, tmp_path
):
    pytest.importorskip("fastexcel")
    people = [[20 + i, "north"] for i in range(4)]
    rows = [["Report"], ["age", "region"], *people, [], ["Total", 86]]
    content = workbook.write(tmp_path / "x.xlsx", {"S": rows}).read_bytes()

    answer = tools.upload(client, workspace, content, name="x.xlsx")
    assert client.served.do(answer.json()["job"]) == "done"

    page = client.get(f"/w/{workspace}/data").text
    assert 'header_row = "2"' in tools.loaded(client, workspace).policy
    assert 'skip = "7,8"' in tools.loaded(client, workspace).policy
    assert 'name="header_row" value="2"' in page
    assert "Rows that are not records" in page

    client.post(f"/w/{workspace}/data/reading", data={"header_row": "2", "skip": "6-8"})
    client.served.do(tools.loaded(client, workspace).jobs["profile"])
    assert 'skip = "6-8"' in tools.loaded(client, workspace).policy


def test_a_workbook_that_unpacks_to_more_than_the_limit_is_refused_unopened(tmp_path):
    path = workbook.write(tmp_path / "x.xlsx", {"S": [["a"], [1]]})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(10 << 20))

    with pytest.raises(uploads.TooLargeError, match="GiB once it is decoded"):
        uploads.refuse_bombs(path, limit=1 << 20)
