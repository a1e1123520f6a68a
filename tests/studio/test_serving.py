"""Connections that never finish the head of a request are closed."""

import socket
import time

import pytest

HEAD = b"GET /api/history HTTP/1.1\r\nHost: %b\r\n"


@pytest.fixture(scope="module")
def impatient(tools, tmp_path_factory, own_temp):
    assert own_temp.is_dir()
    with tools.serving(tmp_path_factory.mktemp("home") / "studio", header_seconds=0.5) as running:
        yield running


def closed_after(line, *, most=10.0, drip=b""):
    """Seconds until the other side hangs up, sending a byte now and then."""
    begun = time.monotonic()
    line.settimeout(0.1)
    while (spent := time.monotonic() - begun) < most:
        try:
            if drip:
                line.sendall(drip)
            if not line.recv(4096):
                return spent
        except TimeoutError:
            continue
        except OSError:
            return spent
    return most


@pytest.mark.parametrize("sent", [b"", b"G", b"half", b"after"])
@pytest.mark.parametrize("drip", [b"", b"x"], ids=["silent", "drip"])
def test_half_a_head_is_dropped_in_time_also_if_bytes_keep_coming(impatient, sent, drip):
    head = HEAD % impatient.settings.name.encode()
    start = {b"half": head + b"X-Slow: ", b"after": head + b"\r\n"}.get(sent, sent)
    with socket.create_connection(("127.0.0.1", impatient.settings.port), timeout=5) as line:
        line.sendall(start)
        if sent == b"after":  # a whole request, and then half of another one
            assert line.recv(65536)
            line.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        spent = closed_after(line, drip=drip)

    assert 0.3 < spent < 5


def test_a_slow_body_and_a_slow_answer_are_waited_for(impatient, tools):
    content = tools.people()

    def slowly():
        yield content[:100]
        time.sleep(0.8)  # longer than the head may take
        yield content[100:]

    with impatient.client() as client:
        workspace = client.post("/api/workspaces").json()["id"]
        answer = client.post(
            f"/api/workspaces/{workspace}/data?label=a.csv",
            content=slowly(),
            headers={"content-type": "application/octet-stream"},
        )

    assert answer.status_code == 202, answer.text
