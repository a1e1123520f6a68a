"""Access control: a guard around the whole application.

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
3. Session. One token per start, as in Jupyter: the printed address has it, and exchanges it for a
   cookie by a redirect to an address without it. Whoever has the token is the steward. No session
   or a wrong token is 401. Secrets are compared in constant time, by their digests, and are never
   logged. Without a session nothing is served but what the page that says so is drawn with.
4. Size. A request is counted as it comes; see `shoal.studio.uploads`.

Every answer has headers that keep scripts, styles and requests to our own files. An error that we
did not foresee becomes one sentence without its message, which may quote a cell.
"""

import hmac
import ipaddress
import secrets
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shoal.errors import withheld
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
HOW = "Open the address that `shoal studio` printed when it was started; work under way continues."
NO_SESSION = f"This browser has no session. {HOW}"
WRONG = f"This address is not that of the running studio. {HOW}"


@dataclass(frozen=True)
class Session:
    """The steward's session, opened by the token in the printed address, kept by a cookie.

    Attributes:
        port: of the server.
        token: in the address; without one nobody gets in.
        secret: in the cookie.
    """

    port: int
    token: str = field(repr=False)
    secret: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)

    @property
    def cookie(self) -> str:
        """The cookie's name. Cookies ignore ports, so the name distinguishes servers."""
        return f"shoal-studio-{self.port}"

    def is_opened_by(self, token: str) -> bool:
        """Whether a token is that of this server's start."""
        return bool(self.token) and _are_equal(self.token, token)

    def is_kept_by(self, secret: str) -> bool:
        """Whether a cookie's secret is that of this server's start."""
        return _are_equal(self.secret, secret)


class Guard:
    """The middleware. Pure ASGI, so uploads stream through it."""

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        session: Session,
        page: Callable[[int, str], str],
    ) -> None:
        self._app, self._settings, self._session, self._page = app, settings, session, page

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
            await self._app(scope, self._count(scope, receive), answer)
        except Exception as error:  # noqa: BLE001 (its message may quote a cell)
            sentence = withheld(error)
            sys.stderr.write(f"shoal: {sentence}\n")
            if not started:
                text = sentence[0].upper() + sentence[1:]
                await self._sentence(500, text)(scope, receive, answer)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or not self._is_ours(hosts[0]):
            return self._sentence(403, "This address is not one of the studio's.")
        method = scope["method"]
        if method not in READING and origins != [f"{scope.get('scheme', 'http')}://{hosts[0]}"]:
            return self._sentence(403, "The request does not come from a page of the studio.")
        apart = headers.get("sec-fetch-site", "none") in {"cross-site", "same-site"}
        inside = not apart and self._has_cookie(headers)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token")
        if given and scope["path"] == "/" and method in READING:
            return self._open(scope, given[0], inside=inside)
        if inside or (method in READING and scope["path"] in OUTSIDE):
            return None
        return self._sentence(401, NO_SESSION)

    def _open(self, scope: Scope, token: str, *, inside: bool) -> Response:
        """Exchange a token for a cookie, and redirect to the address without the token."""
        if inside:
            return RedirectResponse("/", status_code=303)
        if not self._session.is_opened_by(token):
            return self._sentence(401, WRONG)
        # Led here by another site, or by the file that opens the browser, a redirect would not
        # bring the strict cookie along; a page of ours that goes on by itself does.
        foreign = Headers(scope=scope).get("sec-fetch-site", "none") not in {"none", "same-origin"}
        clean: Response = (
            HTMLResponse(ONWARD) if foreign else RedirectResponse("/", status_code=303)
        )
        clean.set_cookie(
            self._session.cookie, self._session.secret, httponly=True, samesite="strict", path="/"
        )
        return clean

    def _sentence(self, status: int, text: str) -> Response:
        """Answer with a page of one sentence."""
        return HTMLResponse(self._page(status, text), status_code=status)

    def _has_cookie(self, headers: Headers) -> bool:
        # Cookies of other programs on this machine come along, well formed or not.
        secret = cookie_parser("; ".join(headers.getlist("cookie"))).get(self._session.cookie)
        return secret is not None and self._session.is_kept_by(secret)

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

    def _count(self, scope: Scope, receive: Receive) -> Receive:
        if UPLOADS.match(scope["path"]):
            return receive  # counted where it is written
        limit, seen = self._settings.body_limit, 0
        stated = Headers(scope=scope).get("content-length", "")

        async def count_message() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit or (stated.isdigit() and int(stated) > limit):
                raise HTTPException(413, "The request is too large.")
            return message

        return count_message


def _are_equal(known: str, given: str) -> bool:
    """Compare digests, which have one length, in constant time."""
    first, second = (sha256(text.encode("utf-8", "replace")).digest() for text in (known, given))
    return hmac.compare_digest(first, second)
