"""The bookmark of a domain: all jobs before it are settled, and their results are durable."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import orjson

from crawler.workspace.atomic import write_atomically
from crawler.workspace.spool import Cursor

BOOKMARK = "bookmark.json"
_START = Cursor()


@dataclass(frozen=True, slots=True)
class Bookmark:
    """All jobs before `jobs` are settled and durable. `holder` is who has been at work since, with results from
    `results` on; None: nobody, it was left in order.
    """

    jobs: Cursor = _START
    holder: str | None = None
    results: Cursor = _START


def read_bookmark(folder: Path) -> Bookmark:
    """The bookmark of a domain's job folder; a missing or unreadable one is the very start."""
    try:
        fields = orjson.loads((folder / BOOKMARK).read_bytes())
        results = fields.get("results") or (0, 0)
        return Bookmark(
            Cursor(int(fields["segment"]), int(fields["offset"])),
            fields.get("holder") or None,
            Cursor(int(results[0]), int(results[1])),
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return Bookmark()


def write_bookmark(folder: Path, bookmark: Bookmark, *, is_first: bool = True) -> None:
    """Replace the bookmark, durably. The results before it must be durable already.

    Only the first one of a lease must have replaced the one before when this returns: it tells whose results to look
    at. After a power cut any later one may be the one before it again, which only means that more is looked at.
    """
    fields = {
        "v": 1,
        "segment": bookmark.jobs.segment,
        "offset": bookmark.jobs.offset,
        "holder": bookmark.holder,
        "results": [bookmark.results.segment, bookmark.results.offset],
    }
    try:
        write_atomically(folder / BOOKMARK, orjson.dumps(fields), sync_name=is_first)
    except FileNotFoundError:
        pass  # the whole folder is gone: its jobs are all settled
