"""Health, the live figures, and the pages of the face."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from sse_starlette import EventSourceResponse
from starlette.responses import HTMLResponse, Response

from reporter.web.live_figures import MOST_STREAMS
from reporter.web.page_files import page_text, static_file
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

_TELL_ALIVE = 15  # seconds between comments that keep a quiet stream open


def health(call: Call) -> Answer:
    """Is the server up, and does it reach the workspace and the map?"""
    is_map_there = call.face.database.is_file()
    return Answer(
        {
            "status": "ok",
            "version": call.face.version,
            "workspace": call.face.workspace.exists(),
            "map": is_map_there,
        }
    )


def metrics(call: Call) -> Response:
    """The same text as `sumi-ripple metrics`. Prometheus signs in with a bearer token."""
    from reporter.metrics.collector import TEXT, metrics_text

    text = metrics_text(call.face.workspace, call.face.database, call.face.version)
    return Response(text, headers={"Content-Type": TEXT, "Cache-Control": "no-store"})


def live(call: Call) -> Answer:
    """The newest sample of the live figures: for those who cannot hold a stream open."""
    return Answer(call.face.live.newest())


def stream(call: Call) -> Response:
    """The same as server-sent events, one a second. It ends with the session."""
    face, visitor = call.face, call.visitor
    if face.live.watchers >= MOST_STREAMS:
        raise Problem(503, "too-many-streams", "too many streams are open; ask for /api/live instead", retry_after=30)

    async def events() -> AsyncIterator[dict[str, str]]:
        async for sample in face.live.samples():
            if visitor.by_cookie and not face.sessions.is_valid(visitor.session):
                yield {"event": "signed-out", "data": "{}"}
                return
            yield {"event": "live", "data": msgspec.json.encode(sample).decode()}

    return EventSourceResponse(events(), ping=_TELL_ALIVE, headers={"Cache-Control": "no-store"})


def front_page(call: Call) -> Response:
    return HTMLResponse(page_text("", call.face.version))


def page(call: Call) -> Response:
    return HTMLResponse(page_text(call.path["page"], call.face.version))


def static(call: Call) -> Response:
    return static_file(call.path["path"], call.headers.get("if-none-match"))
