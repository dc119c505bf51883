"""Health, the live figures, and the pages of the face."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from sse_starlette import EventSourceResponse
from starlette.responses import HTMLResponse, Response

from crawler.database.map_errors import MapError, NoDatabase
from crawler.database.reader import open_map
from reporter.queries.search_index import map_stamp
from reporter.web.face import Face
from reporter.web.live_figures import MOST_STREAMS
from reporter.web.page_files import page_text, static_file
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call
from reporter.web.web_sessions import Visitor

_HEALTH_PATIENCE = 2  # seconds to wait for a lock of the map
_TELL_ALIVE = 15  # seconds between comments that keep a quiet stream open


def health(call: Call) -> Answer:
    """Is the server up, and can it read the workspace and the map? 503: there is a map that cannot be read."""
    is_map_there = True
    try:
        with open_map(call.face.database, patience=_HEALTH_PATIENCE) as reader:
            map_stamp(reader)
    except NoDatabase:
        is_map_there = False
    except MapError:  # its words name files of this machine, and anybody may ask
        raise Problem(503, "map-away", "the map cannot be read now", retry_after=5) from None
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
    """The same as server-sent events, one a second. It ends with the session, or when the token is removed."""
    face, visitor = call.face, call.visitor
    if face.live.watchers >= MOST_STREAMS:
        raise Problem(503, "too-many-streams", "too many streams are open; ask for /api/live instead", retry_after=30)

    async def events() -> AsyncIterator[dict[str, str]]:
        async for sample in face.live.samples():
            if not _is_signed_in(face, visitor):
                yield {"event": "signed-out", "data": "{}"}
                return
            yield {"event": "live", "data": msgspec.json.encode(sample).decode()}

    return EventSourceResponse(events(), ping=_TELL_ALIVE, headers={"Cache-Control": "no-store"})


def _is_signed_in(face: Face, visitor: Visitor) -> bool:
    """Is the session, or the bearer token, that began a stream still valid?"""
    if visitor.by_cookie:
        return face.sessions.is_valid(visitor.session)
    return face.accounts.has_token(visitor.session)


def front_page(call: Call) -> Response:
    return HTMLResponse(page_text("", call.face.version))


def page(call: Call) -> Response:
    return HTMLResponse(page_text(call.path["page"], call.face.version))


def static(call: Call) -> Response:
    return static_file(call.path["path"])
