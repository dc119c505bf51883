"""The app for a config: `make_app(Face(config, binding, version))`, an ASGI app.

Every call goes the same way: Host, then one function in a thread (`_handled`): session, origin, limit, role, shapes,
handler. Answers are JSON with an ETag, or whatever Response the handler makes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route as StarletteRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from crawler.config.list_edit import EditError
from crawler.config.load import ConfigError
from crawler.database.map_errors import MapError, NoDatabase, NoSuchRun, NotOnMap
from crawler.model.errors import SumiError, UsageError, sentence
from crawler.workspace.door import Unreachable
from reporter.web.face import Face
from reporter.web.guard import HEADERS, admit, require_own_host, session_cookie, visitor_of
from reporter.web.problems import Problem
from reporter.web.route_table import ROUTES
from reporter.web.routing import Answer, Bucket, Call, Route, is_among
from reporter.web.web_sessions import Visitor

log = logging.getLogger("sumi.web")

MOST_BODY = 1024 * 1024  # bytes
BODY_SECONDS = 30
_OLD_ETAG = "if-none-match"


def make_app(face: Face) -> ASGIApp:
    """The app. Nothing is started or written before the first call."""
    rows: dict[str, list[Route]] = {}
    for route in ROUTES:
        rows.setdefault(route.path, []).append(route)
    inner = Starlette(
        routes=[
            StarletteRoute(path, partial(_endpoint, face, {row.method: row for row in found}), methods=_methods(found))
            for path, found in rows.items()
        ],
        exception_handlers={HTTPException: _not_routed, Exception: _failed},
    )
    return _Shield(face, inner)


def _methods(rows: list[Route]) -> list[str]:
    return [row.method for row in rows]


class _Shield:
    """Outermost: checks Host, adds the headers, answers a Problem that no endpoint answered."""

    def __init__(self, face: Face, inner: ASGIApp) -> None:
        self._face = face
        self._inner = inner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("Cache-Control", "no-store")
                if self._face.binding.is_tls:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        try:
            require_own_host(self._face.binding, Headers(scope=scope).get("host", ""))
        except Problem as problem:
            await _problem_response(problem)(scope, receive, send_with_headers)
            return
        await self._inner(scope, receive, send_with_headers)


@dataclass(frozen=True, slots=True)
class _Received:
    """A request as far as it concerns a handler."""

    headers: Mapping[str, str]
    cookies: Mapping[str, str]
    address: str
    path: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    body: bytes


async def _endpoint(face: Face, rows: Mapping[str, Route], request: Request) -> Response:
    route = rows["GET" if request.method == "HEAD" else request.method]
    try:
        body = await _body(request) if route.is_write else b""
    except Problem as problem:
        return _problem_response(problem)
    received = _Received(
        headers=request.headers,
        cookies=request.cookies,
        address=request.client.host if request.client else "",
        path=request.path_params,
        query=request.query_params.multi_items(),
        body=body,
    )
    return await run_in_threadpool(_handled, face, route, received)


async def _body(request: Request) -> bytes:
    content = bytearray()
    told = request.headers.get("content-length", "")
    try:
        async with asyncio.timeout(BODY_SECONDS):
            if not told.isdecimal() or int(told[:20]) <= MOST_BODY:  # else it need not even be sent
                async for chunk in request.stream():
                    content += chunk
                    if len(content) > MOST_BODY:
                        break
                else:
                    return bytes(content)
    except ClientDisconnect:
        raise Problem(400, "cut-off", "the call ended before its body did") from None
    except TimeoutError:
        raise Problem(408, "too-slow", f"the body did not come within {BODY_SECONDS} seconds") from None
    raise Problem(413, "too-large", f"at most {MOST_BODY:,} bytes are read")


def _handled(face: Face, route: Route, received: _Received) -> Response:
    visitor = Visitor()
    call = None
    try:
        visitor = visitor_of(face, received.headers, received.cookies, received.address)
        admit(face, route, visitor, received.headers)
        call = Call(face, visitor, received.path, _query(route, received), _parsed(route, received), received.headers)
        answer = route.handler(call)
        response = answer if isinstance(answer, Response) else _json_response(route, answer)
        if not route.is_write:
            response = _unless_known(response, received.headers.get(_OLD_ETAG, ""))
    except Exception as problem:
        response = _problem_response(_as_problem(problem))
    if call is not None and (route.is_write or route.bucket is Bucket.SIGN_IN):
        _note(face, route, call, response)
    if visitor.new_id is not None and "set-cookie" not in response.headers:
        response.headers.append("Set-Cookie", session_cookie(face.binding, visitor.new_id))
    return response


def _note(face: Face, route: Route, call: Call, response: Response) -> None:
    """Every write and every sign-in leaves an entry in the log, with all of its body but a password or token."""
    body = msgspec.to_builtins(call.body) if call.body is not None else {}
    query = msgspec.to_builtins(call.query) if call.query is not None else {}
    detail = {**call.path, **query, **body}
    detail = {name: value for name, value in detail.items() if name not in ("password", "token")}
    try:
        face.log.add(
            call.visitor.name, call.visitor.role.word, f"{route.method} {route.path}", response.status_code, detail
        )
    except OSError as problem:
        log.error("The log of changes cannot be written: %s", problem)


def _query(route: Route, received: _Received) -> Any:
    names = [name for name, _ in received.query]
    if route.query is None:
        if names and route.path.startswith("/api/"):
            raise Problem(422, "bad-query", f"there is no parameter {names[0][:100]!r} here")
        return None  # an address of a page has parameters that its module reads
    if len(set(names)) < len(names):
        raise Problem(422, "bad-query", "each parameter can be given once")
    try:
        return msgspec.convert(dict(received.query), route.query, strict=False)
    except msgspec.ValidationError as problem:
        raise Problem(422, "bad-query", f"the query cannot be used: {problem}") from None


def _parsed(route: Route, received: _Received) -> Any:
    if route.body is None:
        return None
    kind = received.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Problem(415, "not-json", "the body must be JSON, with the header Content-Type: application/json")
    try:
        return msgspec.json.decode(received.body, type=route.body)
    except msgspec.ValidationError as problem:
        raise Problem(422, "bad-body", f"the body cannot be used: {problem}") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise Problem(400, "broken-json", f"the body is not JSON: {problem}") from None


def _json_response(route: Route, answer: Answer) -> Response:
    content = msgspec.json.encode({"v": route.version, "kind": route.kind, **answer.content}, enc_hook=str)
    return Response(content, answer.status, dict(answer.headers), media_type="application/json")


def _unless_known(response: Response, known: str) -> Response:
    """A read with its ETag; empty, with 304, if the caller has it already. What is sent in parts has its own ETag."""
    if response.status_code != 200 or response.headers.get("Cache-Control") == "no-store":
        return response
    if "ETag" not in response.headers:
        if isinstance(response, StreamingResponse | FileResponse):
            return response
        response.headers["ETag"] = f'"{blake2b(bytes(response.body), digest_size=16).hexdigest()}"'
    response.headers.setdefault("Cache-Control", "private, no-cache")
    if not is_among(known, response.headers["ETag"]):
        return response
    kept = {name: response.headers[name] for name in ("ETag", "Cache-Control")}
    return Response(status_code=304, headers=kept)


# -- errors ----------------------------------------------------------------------------------------------------


def _as_problem(problem: Exception) -> Problem:
    if isinstance(problem, Problem):
        return problem
    if isinstance(problem, NoDatabase):
        return Problem(404, "no-map", "nothing has been crawled yet, so there is no map")
    if isinstance(problem, NoSuchRun):
        return Problem(404, "no-such-run", sentence(problem))
    if isinstance(problem, NotOnMap):
        return Problem(404, "not-on-map", sentence(problem))
    if isinstance(problem, MapError):
        return Problem(503, "map-away", sentence(problem), retry_after=5)
    if isinstance(problem, Unreachable):
        return Problem(503, "engine-away", sentence(problem), retry_after=5)
    if isinstance(problem, EditError | ConfigError):
        return Problem(409, "config", sentence(problem))
    if isinstance(problem, UsageError):
        return Problem(422, "cannot-be-used", sentence(problem))
    if isinstance(problem, SumiError):
        return Problem(409, "cannot-be-done", sentence(problem))
    log.error("A call failed", exc_info=problem)
    return Problem(500, "failed", "the call failed; the server's log says more")


def _problem_response(problem: Problem) -> Response:
    headers = problem.headers()
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if problem.status in (408, 413):  # the rest of the body is not read
        headers["Connection"] = "close"
    content = msgspec.json.encode(problem.body())
    return Response(content, problem.status, headers, media_type="application/problem+json")


async def _not_routed(request: Request, problem: Exception) -> Response:
    status = problem.status_code if isinstance(problem, HTTPException) else 404
    words = {404: "there is nothing at this address", 405: f"{request.method} is not for this address"}
    response = _problem_response(Problem(status, f"http-{status}", words.get(status, "the call cannot be answered")))
    if isinstance(problem, HTTPException) and problem.headers:
        response.headers.update(problem.headers)
    return response


async def _failed(request: Request, problem: Exception) -> Response:
    return _problem_response(_as_problem(problem))
