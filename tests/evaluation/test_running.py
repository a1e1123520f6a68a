"""What a comparison keeps of its work."""

import pytest

from shoal.evaluation.comparison import running

RESULT = {"figures": [], "claims": [], "checks": [], "unmet": None, "suppressed": 0, "seconds": 1.0}


@pytest.fixture
def kept(tmp_path):
    job = running.Job(None, None, 0, 0, "key")
    running._keep(tmp_path / "key.json", RESULT)
    return tmp_path / "key.json", lambda: running._read_kept(tmp_path, job)


def test_a_result_is_read_as_it_was_kept(kept):
    _, read = kept

    assert read() == RESULT


@pytest.mark.parametrize(
    "damage",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[: len(raw) // 2],
        lambda _raw: b"",
        lambda _raw: b"{}",
        lambda _raw: b"[" * 100_000,
        lambda raw: raw.replace(b"figures", b"figurez"),
        lambda raw: raw.partition(b"\n")[2],
        lambda _raw: b"\xff\xfe",
    ],
)
def test_a_damaged_result_is_done_again(kept, damage):
    path, read = kept
    path.write_bytes(damage(path.read_bytes()))

    assert read() is None
