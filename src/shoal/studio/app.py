"""The application: guard, pages, JSON API and static files, put together."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from shoal.errors import ShoalError
from shoal.studio import api, context, pages
from shoal.studio.security import Guard, Sessions
from shoal.studio.settings import Settings
from shoal.studio.uploads import TooLargeError

PLAIN = {
    400: "The request is not well formed.",
    404: "There is nothing at this address.",
    405: "This address does not answer to that method.",
}


def create_app(settings: Settings) -> FastAPI:
    """Make the application of one server.

    It opens its home when it starts and tidies up when it ends: run it under a server, or in tests
    inside `with TestClient(app)`. `app.state.studio` is the running `Studio`, and
    `app.state.sessions` its sessions.

    Documentation pages and the schema's address are off; `app.openapi()` gives the schema.
    """
    sessions = Sessions(settings.port)
    if settings.token:
        sessions.admit(settings.token)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        with context.studio(settings, sessions) as studio:
            app.state.studio = studio
            yield

    app = FastAPI(
        title="Shoal studio",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        middleware=[Middleware(Guard, settings=settings, sessions=sessions)],
    )
    app.state.sessions = sessions
    app.mount("/static", StaticFiles(directory=Path(str(files("shoal.studio"))) / "static"))
    vendor = Path(str(files("shoal.report"))) / "vendor"
    app.mount("/vendor", StaticFiles(directory=vendor))
    app.include_router(api.router)
    app.include_router(pages.router)
    app.add_exception_handler(ShoalError, _refused)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    return app


async def _refused(request: Request, error: Exception) -> Response:
    """A sentence of ours: the user's move, or a promise that cannot be kept."""
    status = 413 if isinstance(error, TooLargeError) else 422
    return _answer(request, status, str(error))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 (registered for it)
    said = PLAIN.get(error.status_code)
    detail = str(error.detail)
    # Those of the libraries are words; ours end in a full stop.
    sentence = detail if detail.endswith(".") else said or f"{detail}."
    return _answer(request, error.status_code, sentence, error.headers)


async def _invalid(request: Request, error: Exception) -> Response:
    """Say which field does not fit, without what was found in it."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 (registered for it)
    first = error.errors()[0]
    place = ".".join(str(part) for part in first["loc"])
    return _answer(request, 422, f"The request does not fit at {place}: {first['msg']}.")


def _answer(request: Request, status: int, sentence: str, headers: object = None) -> Response:
    kept = dict(headers) if isinstance(headers, dict) else None
    if request.url.path.startswith("/api"):
        return JSONResponse({"error": sentence}, status_code=status, headers=kept)
    page = context.render(request, "error.html", status=status, sentence=sentence, code=status)
    page.headers.update(kept or {})
    return page
