"""The application, and the HTTP server that runs it: bind, open the browser, serve, tidy up."""

import os
import secrets
import signal
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from html import escape
from importlib.resources import files
from ipaddress import ip_address
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import Scope

from shoal.errors import InputError, ShoalError
from shoal.methods import REGISTRY
from shoal.studio import context, pages
from shoal.studio.pages import rendering
from shoal.studio.private_files import alone_in
from shoal.studio.security import Guard, Session
from shoal.studio.settings import LOOPBACK, Settings
from shoal.studio.uploads import UPLOADS, TooLargeError

SOON = 0.7
"""Seconds until the browser is opened."""
PATIENCE = 2
"""Seconds that open requests have once the studio is to end."""

EXPOSED = (
    "other machines can reach this studio at {host}, and the connection is not encrypted: whoever "
    "reads the network reads the table. Better leave --host out, and reach this machine through "
    "an ssh tunnel: ssh -L {port}:127.0.0.1:{port} this-machine."
)


def launch(
    *,
    home: Path,
    host: str = LOOPBACK,
    port: int,
    browser: bool,
    say: Callable[[str], None],
    warn: Callable[[str], None],
) -> None:
    """Serve until it is stopped.

    Args:
        home: folder of workspaces, history and budget; made if need be.
        host: address to bind; any but a loopback address is warned of.
        port: to bind; 0 for any that is free.
        browser: open the browser too.
        say: called with the address, once.
        warn: called with what is dangerous.

    Raises:
        InputError: the address cannot be bound, or another studio works in the home.
    """
    with alone_in(home):
        pass  # Said here in a sentence; the application locks it for good.
    with _bound(host, port) as listening:
        port = listening.getsockname()[1]
        if not _is_loopback(host):
            warn(EXPOSED.format(host=host, port=port))
        settings = Settings(
            home=home.absolute(), host=host, port=port, token=secrets.token_urlsafe(32)
        )
        address = f"{settings.address}/?token={settings.token}"
        say(f"Shoal studio: {address}")
        say("Keep the address: it opens the studio until you end it with Ctrl-C.")
        app = create_app(settings)
        serving = server(app)
        # Methods load when they are first asked for, which takes seconds: before somebody asks.
        Thread(target=lambda: [*REGISTRY.values()], daemon=True).start()

        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, lambda *_: setattr(serving, "should_exit", True))
        with _open_browser(address, home, wanted=browser):
            try:
                serving.run(sockets=[listening])
            except KeyboardInterrupt:
                say("The studio has ended.")
                raise


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Bind first, so an occupied port is reported at once."""
    if not 0 <= port <= 65535:  # The system would take another one instead.
        raise InputError(f"Expected a --port from 0 to 65535, found {port}.")
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = addresses[0]
    except (OSError, UnicodeError):
        raise InputError(
            f"Expected for --host a network address that this machine has, found '{host}'."
        ) from None
    with socket.socket(family, kind, protocol) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind(place)
            made.listen()
        except PermissionError:
            raise InputError(f"Port {port} may not be used here. Choose another --port.") from None
        except OSError as error:
            reason = (error.strerror or "it is refused").lower()
            raise InputError(
                f"Cannot listen on {host}, port {port}: {reason}. Choose another --port, or 0 "
                "for any free port."
            ) from None
        yield made


@contextmanager
def _open_browser(address: str, home: Path, *, wanted: bool) -> Iterator[None]:
    """Open the browser after a moment."""
    if not wanted:
        yield
        return
    with _leading(address, home / "open.html") as file:
        timer = Timer(SOON, webbrowser.open, [file.absolute().as_uri()])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()


@contextmanager
def _leading(address: str, file: Path) -> Iterator[Path]:
    """Make a file that redirects the browser to the address.

    The address as an argument of the browser could be read by every user of the machine.
    """
    file.unlink(missing_ok=True)
    page = f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(address)}">'
    try:
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as out:
            out.write(page)
        yield file
    finally:
        file.unlink(missing_ok=True)


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def server(app: Any) -> uvicorn.Server:
    """Make the server of an application, to run on bound sockets."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            access_log=False,  # The first address has the token in it.
            log_level="error",
            lifespan="on",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
        )
    )


KEPT = "private, max-age=31536000, immutable"
PLAIN = {
    400: "The request is not well formed.",
    404: "There is nothing at this address.",
    405: "This address does not take that HTTP method.",
}


def create_app(settings: Settings) -> FastAPI:
    """Make the application of one server.

    It opens its home when it starts and tidies up when it ends: run it under a server, or in tests
    inside `with TestClient(app)`. `app.state.studio` is the running `Studio`.

    Documentation pages and the schema's address are off.
    """
    session = Session(settings.port, settings.token)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with context.studio(settings) as studio:
            app.state.studio = studio
            yield

    app = FastAPI(
        title="Shoal studio",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        middleware=[Middleware(Guard, settings=settings, session=session, page=_outside)],
    )
    app.mount("/static", _OwnFiles(directory=Path(str(files("shoal.studio"))) / "static"))
    app.include_router(pages.router)
    for kind in (ShoalError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _refuse)
    return app


class _OwnFiles(StaticFiles):
    """Static files without any data of a table, which browsers may cache by digest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        if rendering.address(path).endswith(f"?{scope['query_string'].decode('latin-1')}"):
            answer.headers["cache-control"] = KEPT
        return answer


def _outside(status: int, sentence: str) -> str:
    """Render the page for visitors without a session."""
    return rendering.page("outside.html", sentence=sentence, code=status)


async def _refuse(request: Request, error: Exception) -> Response:
    """Answer with a sentence of ours, the user's move or a promise that cannot be kept."""
    status, sentence, kept = 422, str(error), None
    if isinstance(error, TooLargeError):
        status = 413
    elif isinstance(error, HTTPException):
        status, sentence, kept = error.status_code, str(error.detail), error.headers
        if not sentence.endswith("."):  # Those of the libraries are words.
            sentence = PLAIN.get(status, f"{sentence}.")
    elif isinstance(error, RequestValidationError):  # Without what was found in the field.
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        sentence = f"The request does not fit at {place}: {first['msg']}."
    if UPLOADS.match(request.url.path):  # asked for by a script of the page
        return JSONResponse({"error": sentence}, status_code=status, headers=kept)
    page = rendering.page("error.html", request=request, sentence=sentence, code=status)
    return HTMLResponse(page, status_code=status, headers=kept)
