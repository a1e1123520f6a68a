"""The HTTP server: as quiet as can be, and patient with nobody who does not finish a request.

Uvicorn waits for the head of a request for ever. A browser page, or another user of the machine,
could open connections and send half a head on each until the studio has no more to give. So a
connection on which no whole head has come in time is closed. A body may take as long as it
takes: an upload is slow for good reasons, and needs a session.
"""

import asyncio
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from shoal.studio.settings import Settings

PATIENCE = 2
"""Seconds that open requests have once the studio is to end."""


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
