"""Who may speak to the studio: a guard around the whole application.

The threats are other pages in the same browser, other users of the machine, and hostile files; not
the steward. In the order in which a request meets them:

1. Host. A page of an attacker can make its own name point to 127.0.0.1 (DNS rebinding). Only
   our own name is answered; anything else is 403. At a loopback address that name is a random one
   under `.localhost`: a cookie of 127.0.0.1 would be sent to every port of 127.0.0.1, also to
   the server of another user, to which any web page can send the browser.
2. Origin. A request that may change something comes from one of our own pages. A foreign, an
   opaque (`null`) or no Origin is 403. A request that the browser itself says comes from another
   site, or from another port of this one, has no session. `Referrer-Policy: same-origin` and not
   `no-referrer`, because Chromium sends `Origin: null` with a form under the latter.
3. Session. A one-time token in the first address is exchanged for a cookie by a redirect to an
   address without it. No session, a wrong token or a used one is 401. Tokens are compared in
   constant time, by their digests, and are never logged. `shoal.studio.way_back` makes further ones
   for whoever may read the data folder. Without a session nothing is served but what the page
   that says so is drawn with.
4. Size. A request is counted as it comes; see `shoal.studio.uploads`.

Every answer has headers that keep scripts, styles and requests to our own files. An error that we
did not foresee becomes one sentence without its message, which may quote a cell.
"""

import hashlib
import hmac
import ipaddress
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.errors import withheld
from shoal.studio import way_back
from shoal.studio.settings import LOCAL, Settings
from shoal.studio.uploads import UPLOADS

READING = frozenset({"GET", "HEAD"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
ONWARD = (
    '<!doctype html><html lang="en"><meta charset="utf-8"><title>Shoal studio</title>'
    '<meta http-equiv="refresh" content="0; url=/"><p><a href="/">To the studio</a></p></html>'
)
OUTSIDE = frozenset(
    f"/static/{name}" for name in ("studio.css", "work.css", "theme.js", "icon.svg")
)
"""What the page looks like that is shown without a session."""
HOW = (
    "For a new address, press Enter in the terminal in which the studio runs, or run `shoal studio "
    "--reconnect` there. Work under way continues meanwhile."
)
NO_SESSION = f"This browser has no session. {HOW}"
USED = f"This address was used before, or it is too old or wrong. {HOW}"


@dataclass
class Sessions:
    """Tokens that are not used yet, and sessions that are open; digests of both, in memory only.

    Attributes:
        port: of the server.
        home: the data folder, in which its user may ask for a further token.
    """

    port: int
    home: Path | None = None

    def __post_init__(self) -> None:
        self._tokens: dict[bytes, str] = {}
        self._open: dict[bytes, str] = {}
        self._steward = secrets.token_hex(8)

    @property
    def cookie(self) -> str:
        """The cookie's name. Cookies do not know ports, so the name distinguishes servers."""
        return f"shoal-studio-{self.port}"

    def admit(self, token: str) -> None:
        """Let a token open the steward's session, once."""
        self._tokens[_digest(token)] = self._steward

    def renew(self) -> str:
        """Make a token that leads back into the steward's session; unused ones do so no more."""
        self._tokens = {key: name for key, name in self._tokens.items() if name != self._steward}
        token = secrets.token_urlsafe(32)
        self.admit(token)
        return token

    def invite(self) -> str:
        """Make a token that opens a session of its own."""
        token = secrets.token_urlsafe(32)
        self._tokens[_digest(token)] = secrets.token_hex(8)
        return token

    def exchange(self, token: str) -> str | None:
        """Use a token up, and give the secret of a new session; none for a wrong or used one."""
        given = _digest(token)
        # All are compared, so the time does not show which one it was nearest to.
        matches = [known for known in list(self._tokens) if hmac.compare_digest(known, given)]
        name = self._tokens.pop(matches[0], None) if matches else None
        if name is None and self.home is not None and way_back.taken(self.home, token):
            name = self._steward
        if name is None:
            return None
        secret = secrets.token_urlsafe(32)
        self._open[_digest(secret)] = name
        return secret

    def find(self, secret: str) -> str | None:
        """The public name of the session of a secret, or none."""
        given = _digest(secret)
        names = [
            name for known, name in list(self._open.items()) if hmac.compare_digest(known, given)
        ]
        return names[0] if names else None

    def is_open(self, name: str) -> bool:
        """Whether a session of that public name is open on this server."""
        return name in list(self._open.values())


class Guard:
    """The middleware. Pure ASGI, so uploads stream through it."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        sessions: Sessions,
        page: Callable[[int, str], str],
    ) -> None:
        self._app, self._settings, self._sessions, self._page = app, settings, sessions, page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def answer(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, answer)
            return
        try:
            await self._app(scope, self._counted(scope, receive), answer)
        except Exception as error:  # noqa: BLE001 (its message may quote a cell)
            sentence = withheld(error)
            sys.stderr.write(f"shoal: {sentence}\n")
            if not started:
                text = sentence[0].upper() + sentence[1:]
                await self._sentence(scope, 500, text)(scope, receive, answer)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return self._sentence(scope, 403, "This address is not one of the studio's.")
        method = scope["method"]
        if method not in READING and origins != [f"{scope.get('scheme', 'http')}://{hosts[0]}"]:
            return self._sentence(
                scope, 403, "The request does not come from a page of the studio."
            )
        apart = headers.get("sec-fetch-site", "none") in {"cross-site", "same-site"}
        session = None if apart else self._session(headers)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given and scope["path"] == "/" and method in READING:
            return self._opened(scope, given[0], session)
        if session is None and method in READING and scope["path"] in OUTSIDE:
            return None
        if session is None:
            return self._sentence(scope, 401, NO_SESSION)
        scope.setdefault("state", {})["session"] = session
        return None

    def _opened(self, scope: Scope, token: str, session: str | None) -> Response:
        """Exchange a token, and lead to the address without it."""
        if session is None:
            secret = self._sessions.exchange(token)
            if secret is None:
                return self._sentence(scope, 401, USED)
            # Led here by another site, or by the file that opens the browser, a redirect would not
            # bring the strict cookie along; a page of ours that goes on by itself does.
            foreign = Headers(scope=scope).get("sec-fetch-site", "none") not in {
                "none",
                "same-origin",
            }
            clean: Response = (
                HTMLResponse(ONWARD) if foreign else RedirectResponse("/", status_code=303)
            )
            clean.set_cookie(
                self._sessions.cookie, secret, httponly=True, samesite="strict", path="/"
            )
            return clean
        return RedirectResponse("/", status_code=303)

    def _sentence(self, scope: Scope, status: int, text: str) -> Response:
        """Answer with one sentence, as JSON or as a page."""
        if scope["path"].startswith("/api"):
            return JSONResponse({"error": text}, status_code=status)
        return HTMLResponse(self._page(status, text), status_code=status)

    def _session(self, headers: Headers) -> str | None:
        # Cookies of other programs on this machine come along, well formed or not.
        secret = cookie_parser("; ".join(headers.getlist("cookie"))).get(self._sessions.cookie)
        return None if secret is None else self._sessions.find(secret)

    def _is_ours(self, host: str) -> bool:
        """Whether a Host header names this studio.

        The port is not compared, because an ssh tunnel may change it; the Origin has to have the
        same one. An address in digits cannot be rebound: only names can.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if self._settings.host in LOCAL:
            return name == self._settings.name
        if name in LOCAL or name == self._settings.host.lower():
            return True
        if self._settings.host not in {"0.0.0.0", "::"}:  # noqa: S104 (compared, not bound)
            return False
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True

    def _counted(self, scope: Scope, receive: Receive) -> Receive:
        if UPLOADS.match(scope["path"]):
            return receive  # counted where it is written
        limit, seen = self._settings.body_limit, 0
        stated = Headers(scope=scope).get("content-length", "")

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit or (stated.isdigit() and int(stated) > limit):
                raise HTTPException(413, "The request is too large.")
            return message

        return counted


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()
