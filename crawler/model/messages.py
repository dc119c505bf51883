"""PURE. Messages between a visit and the HTTP client: plain values, no sockets.

A visit (see `crawler.visit`) yields a `Request` or a `Pause` and is sent a `Response`, a `Failure` or None.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class BodyWanted(StrEnum):
    """The part of an answer's body that is to be read."""

    NOTHING = "nothing"  # HEAD, or only the headers matter
    HTML = "html"  # the body, if the headers say HTML: of a 2xx all, of some errors the beginning (`ERROR_PAGES`)
    FILE = "file"  # the body, if the status is 2xx, whatever it is (sitemaps)
    ANYTHING = "anything"  # the body whatever it is (robots.txt)


# Errors whose pages tell more: a challenge, a block page, the site's own page for missing ones.
ERROR_PAGES = frozenset({401, 403, 404, 405, 406, 410, 429, 503})
ERROR_PAGE_SIZE = 64 * 1024  # bytes, decoded


@dataclass(frozen=True, slots=True)
class Request:
    """One request to put on the wire, as soon as its domain's gate opens. `url` is a https wire URL."""

    method: str
    url: str
    wanted: BodyWanted = BodyWanted.NOTHING
    limit: int = 10 * 1024 * 1024  # decoded bytes; a longer body is cut there and marked
    conditions: tuple[tuple[str, str], ...] = ()  # headers: answer only if the page has changed


@dataclass(frozen=True, slots=True)
class StoredPage:
    """A wish for the content of a page from the store. The reply is its bytes; None: it is not there, or damaged."""

    content_hash: str


@dataclass(frozen=True, slots=True)
class PageNote:
    """What is to be kept beside the page that this visit ends with: for the visit that finds it unchanged."""

    note: bytes


class RetryCounts(NamedTuple):
    """Retries of a visit so far. A visit that is repeated after a crash goes on counting from here.

    `job` and `robots_host` are hashes: they only distinguish visits, and hosts, of one domain.
    """

    job: int = 0  # the visit's number; 0: none
    retries: int = 0
    has_waited: bool = False  # the wait after a 429 has passed
    robots_host: int = 0  # the host whose robots.txt could not be read yet
    robots_tries: int = 0


NO_RETRIES = RetryCounts()
LOCAL_SHORTAGE = "local-shortage"  # the slug of a failure of this machine: out of memory, files or ports


@dataclass(frozen=True, slots=True)
class Pause:
    """A wait before the visit continues. The domain's pacing runs on meanwhile."""

    seconds: float
    why: str
    retry_counts: RetryCounts = NO_RETRIES


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, whatever its status. Header names are lower-case; repeated ones are joined with ", "."""

    status: int
    headers: dict[str, str]
    body: bytes = b""
    is_cut: bool = False  # the body was longer than the request's limit
    elapsed: float = 0.0
    is_truncated: bool = False  # the compressed body ended before its stream did
    received_at: float | None = None  # when it was complete, in seconds since 1970
    content_hash: str = ""  # of the body, where it is known already


@dataclass(frozen=True, slots=True)
class Failure:
    """No usable answer. `slug` is stable, `words` are for people.

    slugs: `timeout` `connection-refused` `connection-reset` `connection-failed` `dns` `dns-temporary` `tls`
    `address-blocked` `bad-response` `early-close` `too-large` `bad-encoding` `too-costly` `local-shortage`
    """

    slug: str
    words: str
    elapsed: float = 0.0

    @property
    def message(self) -> str:
        return f"{self.slug}: {self.words}"


Answer = Response | Failure
