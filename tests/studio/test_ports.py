"""Another user of the machine serves a page at another port: it gets no session and moves nothing.

Browsers do not separate ports: a cookie of 127.0.0.1 goes to every server at 127.0.0.1, and a
page at one port is the same site as a page at another.
"""

from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

NAMES = ("127.0.0.1", "localhost", "other.localhost")


class Neighbour(BaseHTTPRequestHandler):
    """Sends the browser round to itself, so that the last request is one of its own site."""

    def do_GET(self):
        server = self.server
        server.seen.append((self.headers["Host"], self.path, self.headers.get("Cookie", "")))
        path, _, name = self.path.partition("?")
        if path == "/":  # any web page, which leads to a port of this machine
            self.answer(302, location=f"http://{name}:{server.server_port}/in")
        elif path == "/in":
            self.answer(200, "<script>location = '/theft'</script>")
        elif path == "/lead":
            self.answer(302, location=server.studio)
        elif path == "/act":
            form = f"<form method=post action='{server.studio}/new'></form>"
            self.answer(200, f"{form}<script>document.forms[0].submit()</script>")
        else:
            self.answer(200, "<title>done</title>")

    def answer(self, status, text="", **headers):
        self.send_response(status)
        self.send_header("content-type", "text/html")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_words):
        pass


@contextmanager
def neighbour(studio):
    with ThreadingHTTPServer(("127.0.0.1", 0), Neighbour) as server:
        server.seen, server.studio = [], studio
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def attacker(context):
    """A server at another port that knows where the studio is, though nobody told it."""
    with neighbour(context.root) as server:
        yield server


@pytest.mark.parametrize("name", NAMES)
def test_another_port_neither_gets_the_session_nor_makes_the_browser_act_on_the_studio(
    desk, attacker, name
):
    root, port = desk.context.root, attacker.server_port
    desk.goto(root)  # the steward's own way in
    opened = "This browser has no session" not in desk.inner_text("body")
    desk.goto(f"http://other.localhost:{port}/?{name}")
    desk.wait_for_url("**/theft")
    led_to = desk.url

    desk.evaluate("() => { location = '/lead'; }")
    desk.wait_for_url(f"{root}/**")
    shown = desk.inner_text("body")
    desk.goto(f"http://{name}:{port}/act")
    desk.wait_for_url(f"{root}/new")
    refused = desk.inner_text("body")

    visits = [cookie for _, path, cookie in attacker.seen if path == "/theft"]
    assert visits
    assert not any("shoal-studio" in cookie for cookie in visits), visits
    assert opened
    assert led_to == f"http://{name}:{port}/theft"
    assert "This browser has no session" in shown
    assert "does not come from a page of the studio" in refused
