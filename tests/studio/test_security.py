"""Who may speak to the studio, line by line."""

import re
from types import SimpleNamespace

import pytest

from shoal.report import pictures
from shoal.studio.security import HEADERS, POLICY, Guard, Session
from shoal.studio.settings import Settings

END = {"value": 0.1, "low": 0.0, "high": 0.2}
FACTS = {
    "candidates": [{"label": "a", "standing": "frontier", "risk": END, "error": END}],
    "baselines": [],
    "recommended": "a",
    "ties": [],
}
UNSAFE = [
    ("POST", "/new"),
    ("PATCH", "/w/0123456789abcdef/data"),
    ("DELETE", "/w/0123456789abcdef/data"),
    ("POST", "/w/0123456789abcdef/roles/policy"),
    ("PUT", "/w/0123456789abcdef/data"),
    ("POST", "/"),
]


@pytest.mark.parametrize(
    "path", ["/", "/w/0123456789abcdef/data", "/jobs/bar", "/static/studio.js"]
)
def test_without_a_session_every_address_is_401(served, path):
    with served.client(session=False) as stranger:
        answer = stranger.get(path)

    assert answer.status_code == 401
    assert "Open the address that <code>shoal studio</code> printed" in answer.text


def test_without_a_session_only_the_look_of_one_page_is_served(served):
    with served.client(session=False) as stranger:
        found = {name: stranger.get(f"/static/{name}").status_code
                 for name in ("studio.css", "work.css", "theme.js", "icon.svg", "studio.js",
                              "vendor/htmx.min.js", "work.css/../studio.js", "%2e%2e/app.py")
                 }  # fmt: skip
        sent = stranger.post("/static/studio.css").status_code

    assert [name for name, code in found.items() if code != 401] == [
        "studio.css", "work.css", "theme.js", "icon.svg"
    ]  # fmt: skip
    assert sent == 401


@pytest.mark.parametrize("token", ["", "wrong", "a-token-of-the-test", "ä\N{SNOWMAN}", "x" * 5000])
def test_a_wrong_token_is_401_and_sets_no_cookie(served, token):
    with served.client(session=False) as stranger:
        answer = stranger.get("/", params={"token": token})

    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


def test_a_wrong_cookie_is_401(served):
    with served.client(session=False) as stranger:
        name = f"shoal-studio-{served.settings.port}"
        answer = stranger.get("/jobs/bar", headers={"cookie": f"{name}=guess"})

    assert answer.status_code == 401


def test_a_token_is_exchanged_for_a_cookie_at_an_address_without_it(served):
    with served.client(session=False) as browser:
        answer = browser.get("/", params={"token": served.settings.token}, follow_redirects=False)

        assert answer.status_code == 303
        assert answer.headers["location"] == "/"
        assert served.settings.token not in answer.headers["set-cookie"]
        assert browser.get("/jobs/bar").status_code == 200


def test_a_session_that_opens_the_first_address_again_is_led_on(client):
    answer = client.get("/", params={"token": "used"}, follow_redirects=False)

    assert (answer.status_code, answer.headers["location"]) == (303, "/")


def test_a_token_from_another_sites_page_is_exchanged_by_a_page_that_leads_on(served):
    with served.client(session=False) as browser:
        answer = browser.get(
            "/", params={"token": served.settings.token}, headers={"sec-fetch-site": "cross-site"}
        )

    assert answer.status_code == 200
    assert 'content="0; url=/"' in answer.text
    assert served.settings.token not in answer.text


def test_secrets_are_compared_by_digests_in_constant_time(monkeypatch):
    session, compared = Session(1, "right"), []
    # In this module alone: other threads of this process compare digests too.
    recording = SimpleNamespace(
        compare_digest=lambda a, b: compared.append((len(a), len(b))) or a == b
    )
    monkeypatch.setitem(Session.is_opened_by.__globals__, "hmac", recording)

    assert not session.is_opened_by("r")
    assert session.is_opened_by("right")
    assert session.is_kept_by(session.secret)
    assert compared == [(32, 32)] * 3


def test_the_token_opens_the_session_in_every_browser_until_the_studio_ends(served):
    for _ in range(2):
        with served.client(session=False) as browser:
            answer = browser.get(
                "/", params={"token": served.settings.token}, follow_redirects=False
            )
            assert answer.status_code == 303
            assert browser.get("/jobs/bar").status_code == 200


def test_a_studio_without_a_token_lets_nobody_in():
    assert not Session(1, "").is_opened_by("")


def test_the_cookie_is_httponly_strict_and_has_the_port_in_its_name(served):
    with served.client(session=False) as browser:
        stated = browser.get("/", params={"token": served.settings.token}, follow_redirects=False)
    cookie = stated.headers["set-cookie"].lower()

    assert cookie.startswith(f"shoal-studio-{served.settings.port}=")
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert "domain" not in cookie


def test_cookies_of_other_programs_on_the_machine_do_no_harm(client):
    own = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    given = f'bad[name]="a;b; {{}}; {own}; other=1'

    assert client.get("/jobs/bar", headers={"cookie": given}).status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example", "",
     "[::1", "10.0.0.7", "127.0.0.1@evil.example:1@2", "studio.local", "127.0.0.1", "localhost",
     "[::1]", "0123456789abcdef0123456789abcdef.localhost"],
)  # fmt: skip
def test_a_foreign_host_is_403_also_with_a_session(client, host):
    answer = client.get("/jobs/bar", headers={"host": host})

    assert answer.status_code == 403


def test_our_own_name_is_answered_also_through_a_tunnel_with_another_port(served, client):
    for name in (served.settings.name, served.settings.name.upper()):
        for port in ("", ":9999"):
            answer = client.get("/jobs/bar", headers={"host": name + port})
            assert answer.status_code == 200


def test_each_studio_has_a_name_of_its_own_that_nobody_guesses(tmp_path):
    names = {Settings(home=tmp_path).name for _ in range(20)}

    assert len(names) == 20
    assert all(re.fullmatch(r"[0-9a-f]{32}\.localhost", name) for name in names)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "10.0.0.7"])
def test_under_another_host_addresses_in_digits_are_answered(tmp_path, host):
    settings = Settings(home=tmp_path, host="0.0.0.0")  # noqa: S104 (compared, not bound)
    guard = Guard(None, settings, Session(1, "right"), str)

    assert guard._is_ours(f"{host}:8642")
    assert not guard._is_ours(settings.name)
    assert settings.address == "http://0.0.0.0:8642"


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
def test_a_request_from_another_port_or_site_has_no_session(client, site):
    assert client.get("/jobs/bar", headers={"sec-fetch-site": site}).status_code == 401
    for own in ("none", "same-origin"):
        assert client.get("/jobs/bar", headers={"sec-fetch-site": own}).status_code == 200


@pytest.mark.parametrize(("method", "path"), UNSAFE)
@pytest.mark.parametrize(
    "origin", [None, "null", "http://evil.example", "https://127.0.0.1:1", "http://127.0.0.1:1", ""]
)
def test_a_foreign_null_or_missing_origin_is_403_on_every_unsafe_method(
    served, client, tools, method, path, origin
):
    headers = {} if origin is None else {"origin": origin}
    with tools.browsing(served.address, cookies=client.cookies, headers={}) as page:
        answer = page.request(method, path, headers=headers)

    assert answer.status_code == 403


def test_an_origin_of_the_right_host_and_another_scheme_is_403(served, client):
    origin = served.address.replace("http:", "https:")

    assert client.post("/new", headers={"origin": origin}).status_code == 403


def test_two_origins_are_403(served, client, tools):
    headers = [("origin", served.address), ("origin", served.address)]
    with tools.browsing(served.address, cookies=client.cookies, headers={}) as page:
        assert page.post("/new", headers=headers).status_code == 403


def test_our_own_origin_may_post(client):
    assert client.post("/new").status_code == 303


@pytest.mark.parametrize("path", ["/", "/jobs/bar", "/nowhere", "/static/work.css"])
def test_every_answer_carries_the_headers_refusals_too(served, client, path):
    with served.client(session=False) as stranger:
        answers = [client.get(path), stranger.get(path)]

    for answer in answers:
        for name, value in HEADERS.items():
            assert answer.headers[name] == value


def test_a_browser_keeps_our_own_files_by_what_is_in_them_and_nothing_else(client):
    page = client.get("/", follow_redirects=True)
    named = sorted(set(re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)))

    assert len(named) >= 6
    for address in named:
        answer = client.get(address)
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        for other in ("", "?", "?0123456789abcdef"):
            stale = client.get(address.partition("?")[0] + other)
            assert stale.headers["cache-control"] == "no-store"
    assert page.headers["cache-control"] == "no-store"


def test_the_content_policy_allows_our_own_files_and_no_inline_code():
    assert "unsafe" not in POLICY
    assert "*" not in POLICY
    assert "default-src 'none'" in POLICY
    assert "frame-ancestors 'none'" in POLICY
    assert not re.search(r"https?:", POLICY)


@pytest.mark.parametrize("path", ["/docs", "/redoc", "/openapi.json"])
def test_the_documentation_of_the_api_is_off(client, path):
    assert client.get(path).status_code == 404


def test_an_unforeseen_error_is_one_sentence_without_its_message(served, client, capfd):
    def fail():
        raise ValueError("cell: Anna Smith")

    served.app.add_api_route("/fails", fail)
    answer = client.get("/fails")

    assert answer.status_code == 500
    assert "Anna" not in answer.text
    assert "ValueError" in answer.text
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "Traceback" not in "".join(capfd.readouterr())
    assert "Anna" not in "".join(capfd.readouterr())


def test_a_request_that_is_too_large_is_413_by_its_length_and_by_its_bytes(
    served, client, workspace
):
    def endless():
        for _ in range(64):
            yield b" " * 65536

    path, form = f"/w/{workspace}/roles/policy", "application/x-www-form-urlencoded"
    stated = client.post(path, content=b" " * (2 << 20), headers={"content-type": form})
    chunked = client.post(path, content=endless(), headers={"content-type": form})

    assert served.settings.body_limit == 1 << 20
    assert stated.status_code == 413
    assert chunked.status_code == 413


def test_a_foreign_page_may_not_open_a_socket(served):
    with served.client() as client:
        headers = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13",
                   "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}  # fmt: skip
        assert client.get("/jobs/bar", headers=headers).status_code != 101


def test_the_token_is_in_no_text_of_the_settings(tmp_path):
    assert "secret" not in repr(Settings(home=tmp_path, token="secret"))  # noqa: S106 (invented)


def test_a_browsers_form_and_plot_work_under_the_policy_and_ask_nobody_else(
    served, chromium, tmp_path
):
    """A form's post carries its Origin, and a picture needs no style of its own."""
    from fastapi.responses import HTMLResponse  # noqa: PLC0415 (with the extra only)

    page_text = """<!doctype html><html lang="en"><head><title>t</title>
<link rel="stylesheet" href="/static/work.css"><script src="/static/pointing.js"></script></head>
<body><form method="post" action="/new"><button>go</button></form>
<div class="frontier">PICTURE</div></body></html>""".replace(
        "PICTURE", str(pictures.frontier(FACTS))
    )
    served.app.add_api_route("/plot-of-the-tests", lambda: HTMLResponse(page_text))
    routes = served.app.router.routes
    routes.insert(0, routes.pop())
    context = chromium.new_context()
    page = context.new_page()
    asked, said = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(message.text))
    opener = tmp_path / "open.html"
    way_in = f"{served.address}/?token={served.settings.token}"
    opener.write_text(f'<meta http-equiv="refresh" content="0; url={way_in}">')

    page.goto(opener.as_uri())
    page.wait_for_url("**/data")
    assert served.settings.token not in page.url
    page.goto(f"{served.address}/plot-of-the-tests")
    page.evaluate(
        """() => { window.found = [];
        document.addEventListener('securitypolicyviolation', e => found.push(e.violatedDirective));
        }"""
    )
    page.hover("circle[data-place]")
    page.wait_for_selector("circle.pointed")
    violations = page.evaluate("window.found")
    with page.expect_navigation():
        page.click("button")
    body = page.text_content("body")
    context.close()

    assert violations == []
    assert not [text for text in said if "Content Security Policy" in text]
    assert "Choose" in body
    assert all(url.startswith((served.address, "file:", "data:")) for url in asked)


def scope_of(*headers, method="GET", path="/jobs/bar"):
    return {
        "type": "http", "method": method, "path": path, "query_string": b"", "scheme": "http",
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }  # fmt: skip


@pytest.mark.parametrize("second", ["evil.example", ""])
def test_two_hosts_or_none_are_403(tmp_path, second):
    """A proxy may go by the first and we by the last; so neither is believed."""
    settings = Settings(home=tmp_path)
    guard = Guard(None, settings, Session(1, "right"), lambda status, text: f"{status} {text}")
    ours = ("host", settings.name)

    for headers in ((ours, ("host", second)), (("host", second), ours), (ours, ours), ()):
        assert guard._refusal(scope_of(*headers)).status_code == 403
    assert guard._refusal(scope_of(ours)).status_code == 401


def test_a_token_is_taken_at_the_first_address_alone_and_by_reading(tmp_path):
    settings = Settings(home=tmp_path)
    guard = Guard(None, settings, Session(1, "right"), lambda status, text: f"{status} {text}")
    ours, own = ("host", settings.name), ("origin", f"http://{settings.name}")

    for method, path in (("POST", "/"), ("GET", "/jobs/bar")):
        scope = scope_of(ours, own, method=method, path=path)
        scope["query_string"] = b"token=right"
        assert guard._refusal(scope).status_code == 401
    scope = {**scope_of(ours, path="/"), "query_string": b"token=right"}
    assert guard._refusal(scope).status_code == 303
