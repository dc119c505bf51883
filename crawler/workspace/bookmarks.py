"""PURE. The bookmark of a domain's jobs, and its one format."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from crawler.workspace.log import BEGINNING, Cursor


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All jobs before `jobs` are done, and their results are durable.

    `holder` is the fetcher that has worked on the domain since; its results start at `results` of its log. None: the
    last fetcher released the domain with everything durable and counted.
    """

    jobs: Cursor = BEGINNING
    holder: str | None = None
    results: Cursor = BEGINNING


def dump_bookmark(bookmark: Bookmark) -> bytes:
    return orjson.dumps(
        {
            "v": 1,
            "segment": bookmark.jobs.segment,
            "offset": bookmark.jobs.offset,
            "holder": bookmark.holder,
            "results": [bookmark.results.segment, bookmark.results.offset],
        }
    )


def parse_bookmark(content: bytes) -> Bookmark | None:
    """The bookmark that these bytes hold; None if they hold none."""
    try:
        fields = orjson.loads(content)
        results = fields.get("results") or (0, 0)
        return Bookmark(
            Cursor(int(fields["segment"]), int(fields["offset"])),
            fields.get("holder") or None,
            Cursor(int(results[0]), int(results[1])),
        )
    except (ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None
