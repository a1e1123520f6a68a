"""The application: guard, pages, downloads and static files, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.types import Scope

from shoal.errors import ShoalError
from shoal.studio import context, downloads, pages
from shoal.studio.pages import rendering
from shoal.studio.security import Guard, Session
from shoal.studio.settings import Settings
from shoal.studio.uploads import UPLOADS, TooLargeError

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
    app.include_router(downloads.router)
    app.include_router(pages.router)
    for kind in (ShoalError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _refuse)
    return app


class _OwnFiles(StaticFiles):
    """Files that hold nothing of a table: a browser keeps one as long as it has its digest."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        answer = await super().get_response(path, scope)
        if rendering.address(path).endswith(f"?{scope['query_string'].decode('latin-1')}"):
            answer.headers["cache-control"] = KEPT
        return answer


def _outside(status: int, sentence: str) -> str:
    """The page for who has no session, or does not get further."""
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
