"""PURE. The bookmark of a domain's jobs, and its one format.

A bookmark is one JSON object with its checksum. It is stored together with the one before it: a reader takes the newest
that verifies, so that a damaged bookmark costs a few visits at most.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from crawler.workspace.log import BEGINNING, Cursor
from crawler.workspace.seals import sealed, unsealed

_LARGEST = 2**62
_OBJECT = re.compile(rb"\{[^{}]*\}")


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All jobs before `jobs` are done, and their results are durable.

    `holder` is the fetcher that has worked on the domain since; its results start at `results` of its log. None: the
    last fetcher released the domain with everything durable and counted.
    """

    jobs: Cursor = BEGINNING
    holder: str | None = None
    results: Cursor = BEGINNING


class BookmarkMove(NamedTuple):
    """A domain's new bookmark. `is_first`: the first one of a claim, which names the log to read after a power cut."""

    domain: str
    bookmark: Bookmark
    is_first: bool = True


def dump_bookmark(bookmark: Bookmark, before: Bookmark | None = None) -> bytes:
    """The bookmark, and the one that it replaces."""
    return b"\n".join([_dump(each) for each in (bookmark, before) if each is not None])


def _dump(bookmark: Bookmark) -> bytes:
    return sealed(
        orjson.dumps(
            {
                "v": 1,
                "segment": bookmark.jobs.segment,
                "offset": bookmark.jobs.offset,
                "holder": bookmark.holder,
                "results": [bookmark.results.segment, bookmark.results.offset],
            }
        )
    )


def parse_bookmark(content: bytes) -> Bookmark | None:
    """The newest whole bookmark in these bytes; None if they hold none."""
    found = parse_bookmarks(content)
    return found[0] if found else None


def parse_bookmarks(content: bytes) -> list[Bookmark]:
    """The whole bookmarks in these bytes, the newest first."""
    found = [_parse(match[0]) for match in _OBJECT.finditer(content)]
    return [each for each in found if each is not None]


def is_whole(content: bytes) -> bool:
    """Do these bytes begin with a whole bookmark? If not, the newest one was damaged."""
    first = _OBJECT.match(content)
    return first is not None and _parse(first[0]) is not None


def _parse(content: bytes) -> Bookmark | None:
    try:
        fields = orjson.loads(unsealed(content) or b"")
        results = fields.get("results") or (0, 0)
        numbers = [int(fields["segment"]), int(fields["offset"]), int(results[0]), int(results[1])]
        holder = fields.get("holder") or None
        if not all(0 <= number < _LARGEST for number in numbers) or not isinstance(holder, str | None):
            return None
        return Bookmark(Cursor(*numbers[:2]), holder, Cursor(*numbers[2:]))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
