"""A row of the route table, a call and an answer.

A handler is a plain function `Call -> Answer | Response` and runs in a thread of a small pool: it may ask the map. What
it cannot do, it raises as a Problem.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.responses import Response

if TYPE_CHECKING:
    from reporter.web.face import Face
    from reporter.web.web_sessions import Visitor


class Role(IntEnum):
    """Who may call. Each may do all that the one before may."""

    ANONYMOUS = 0
    USER = 1
    ADMIN = 2

    @property
    def word(self) -> str:
        return self.name.lower()


class Bucket(StrEnum):
    """The limit that a call counts against (`call_limits`)."""

    CALLS = "calls"  # by role: 10, 100, 500 a minute
    SEEDS = "seeds"
    SIGN_IN = "sign-in"
    WATCH = "watch"  # health, figures for machines, the stream
    FILES = "files"  # pages and static files


@dataclass(frozen=True, slots=True)
class Call:
    """One call: who calls, and the parameters, checked against the shapes of the route."""

    face: Face
    visitor: Visitor
    path: Mapping[str, str]
    query: Any = None  # an instance of Route.query
    body: Any = None  # an instance of Route.body
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """JSON. `content` is put under the members `v` and `kind` of the route's shape."""

    content: Mapping[str, Any]
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Handler = Callable[[Call], Answer | Response]


@dataclass(frozen=True, slots=True)
class Route:
    """One row. `kind` and `version` name the shape of a JSON answer (`a|b`: one of two, and the handler says which);
    routes without a kind answer something else.
    """

    method: str
    path: str
    handler: Handler
    role: Role
    summary: str
    kind: str = ""
    version: int = 1
    bucket: Bucket = Bucket.CALLS
    query: type[msgspec.Struct] | None = None
    body: type[msgspec.Struct] | None = None
    status: int = 200  # of an answer that is no problem
    media_type: str = "application/json"
    problems: tuple[int, ...] = ()  # besides 400, 403, 408, 413, 415, 421, 422 and 429, which every call can get

    @property
    def is_write(self) -> bool:
        return self.method not in ("GET", "HEAD")


def is_among(known: str, tag: str) -> bool:
    """Does this If-None-Match name the ETag? Weak and strong ones are compared alike (RFC 9110, 13.1.2)."""
    named = [each.strip().removeprefix("W/") for each in known.split(",")]
    return "*" in named or tag.removeprefix("W/") in named
