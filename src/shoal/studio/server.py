"""The HTTP server: bind, print an address that works once, open the browser, serve, tidy up.

It is as quiet as can be, and patient with nobody who does not finish a request. Uvicorn waits for
the head of a request for ever. A browser page, or another user of the machine, could open
connections and send half a head on each until the studio has no more to give. So a connection on
which no whole head has come in time is closed. A body may take as long as it takes: an upload is
slow for good reasons, and needs a session.
"""

import asyncio
import os
import secrets
import select
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from ipaddress import ip_address
from pathlib import Path
from threading import Event, Thread, Timer
from time import sleep
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from shoal.errors import InputError
from shoal.methods import REGISTRY
from shoal.studio import way_back
from shoal.studio.app import create_app
from shoal.studio.private_files import alone_in
from shoal.studio.settings import LOOPBACK, Settings

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
    """Serve until somebody ends it.

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
        say("The address works once. Press Enter for a new one, and Ctrl-C to end the studio.")
        app = create_app(settings)
        serving = server(app, settings)
        # Methods load when they are first asked for, which takes seconds: before somebody asks.
        Thread(target=lambda: [*REGISTRY.values()], daemon=True).start()

        def again() -> None:
            say(f"Shoal studio: {settings.address}/?token={app.state.sessions.renew()}")

        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, lambda *_: setattr(serving, "should_exit", True))
        with (
            way_back.announced(home, settings.address),
            _opened(address, home, wanted=browser),
            _on_enter(again),
        ):
            try:
                serving.run(sockets=[listening])
            except KeyboardInterrupt:
                say("The studio has ended.")
                raise


def reconnect(*, home: Path, browser: bool, say: Callable[[str], None]) -> None:
    """Print a new address of the studio that runs with a data folder, and open it.

    Raises:
        InputError: none runs there.
    """
    address = way_back.new_address(home)
    say(f"Shoal studio: {address}")
    say(f"The address works once, within {way_back.VALID // 60} minutes.")
    if browser:
        with _leading(address, home / "reconnect.html") as file:
            webbrowser.open(file.absolute().as_uri())
            sleep(SOON)  # until the browser has read it


@contextmanager
def _on_enter(do: Callable[[], None]) -> Iterator[None]:
    """Do something whenever somebody presses Enter in the terminal, if there is one."""
    ended = Event()

    def listen(terminal: int) -> None:
        while not ended.is_set():
            ready, _, _ = select.select([terminal], [], [], SOON)
            if ready and _may_read(terminal):
                if not os.read(terminal, 4096):
                    return
                do()
            elif ready:
                ended.wait(SOON)

    with suppress(OSError, ValueError, AttributeError):  # no terminal, or a closed one
        if sys.stdin.isatty():
            Thread(target=listen, args=(sys.stdin.fileno(),), daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _may_read(terminal: int) -> bool:
    """Whether a program in the foreground reads; one in the background would be stopped by it."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return True  # a terminal that does not control this process


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    """Bind before anything is made, so a port that is taken is reported at once."""
    if not 0 <= port <= 65535:  # The system would take another one instead.
        raise InputError(f"Expected a --port from 0 to 65535, found {port}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, place = found[0]
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
def _opened(address: str, home: Path, *, wanted: bool) -> Iterator[None]:
    """Open the browser, soon."""
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
    """A file that leads the browser to the address.

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


class Impatient(H11Protocol):
    """Connections that send a whole head in time, or are closed."""

    patience: float = Settings.header_seconds
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait."""
        super().connection_made(transport)
        self._begin()

    def data_received(self, data: bytes) -> None:
        """Wait on, or have done with it."""
        super().data_received(data)
        # Idle until a head is whole; a byte now and then does not begin the time anew.
        if self.conn.their_state is h11.IDLE:
            self._begin()
        else:
            self._end()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._end()
        super().connection_lost(exc)

    def _begin(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.patience, self._drop)

    def _end(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _drop(self) -> None:
        self._deadline = None
        if self.conn.their_state is h11.IDLE:
            self.transport.abort()


def server(app: Any, settings: Settings) -> uvicorn.Server:
    """The server of an application; run it on sockets that are bound already."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=type("Impatient", (Impatient,), {"patience": settings.header_seconds}),
            access_log=False,  # The first address has the token in it.
            log_level="error",
            lifespan="on",
            ws="none",
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=PATIENCE,
        )
    )
