"""The route table: every path with its method, handler, role, limit and shapes. A row works, or is not here.

Routing (`web_app`), rights and limits (`guard`) and /openapi.json (`openapi`) come from these rows; docs/api.md tells
them in words, and a test calls every row as every role.
"""

from __future__ import annotations

from starlette.responses import Response

from reporter.web import live_api, sign_in
from reporter.web.openapi import document
from reporter.web.routing import Bucket, Call, Role, Route

ANYBODY, USER, ADMIN = Role.ANONYMOUS, Role.USER, Role.ADMIN


def _openapi(call: Call) -> Response:
    return document(ROUTES, call.face.version)


ROUTES: tuple[Route, ...] = (
    # -- the server itself
    Route("GET", "/health", live_api.health, ANYBODY, "Is the server up?", "health", bucket=Bucket.WATCH),
    Route("GET", "/openapi.json", _openapi, ANYBODY, "This table as an OpenAPI document", bucket=Bucket.FILES),
    # -- sign-in
    Route(
        *("GET", "/enter", sign_in.enter, ANYBODY, "Sign the owner in by a single-use link"),
        bucket=Bucket.SIGN_IN,
        query=sign_in.EnterQuery,
        status=303,
        media_type="",
        problems=(401,),
    ),
    Route(
        *("POST", "/api/auth/login", sign_in.login, ANYBODY, "Sign in with an account", "me"),
        bucket=Bucket.SIGN_IN,
        body=sign_in.Login,
        problems=(401, 503),
    ),
    Route("POST", "/api/auth/logout", sign_in.logout, ANYBODY, "Sign out", status=204, media_type=""),
    Route("GET", "/api/auth/me", sign_in.me, ANYBODY, "Who am I?", "me", bucket=Bucket.FILES),
    # -- live figures
    Route("GET", "/api/live", live_api.live, USER, "The live figures, once", "live", bucket=Bucket.WATCH),
    Route(
        *("GET", "/api/stream", live_api.stream, USER, "The live figures as server-sent events"),
        bucket=Bucket.WATCH,
        media_type="text/event-stream",
        problems=(503,),
    ),
    # -- pages and static files; last, because a page's name matches much
    Route(
        *("GET", "/static/{path:path}", live_api.static, ANYBODY, "A static file"),
        bucket=Bucket.FILES,
        media_type="*/*",
        problems=(404,),
    ),
    Route("GET", "/", live_api.front_page, ANYBODY, "The dashboard", bucket=Bucket.FILES, media_type="text/html"),
    Route(
        *("GET", "/{page}", live_api.page, ANYBODY, "A page of the face"),
        bucket=Bucket.FILES,
        media_type="text/html",
        problems=(404,),
    ),
)
