"""PURE. One visit as a row of `logs/pages-<run>.csv` and as a line of `metadata/crawl_metadata.jsonl`.

The columns are those of the second specification, in its order. `proxy_id` is always empty: there are no proxies here.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from crawler.model.content_types import charset_of, media_type
from crawler.model.records import PageResult

COLUMNS = (
    *("timestamp", "url", "page_type", "depth", "referrer", "http_status", "content_type", "encoding"),
    *("content_sha256", "content_bytes", "stored_path", "etag", "last_modified", "fetch_latency_ms", "retries"),
    *("proxy_id", "metadata"),
)


class LoggedVisit(NamedTuple):
    """A visit, with what the map knows of its page when the row is written."""

    result: PageResult
    url: str
    state: str
    error: str | None
    depth: int | None
    referrer: str | None
    page_type: str | None = None


def fields_of(visit: LoggedVisit) -> dict[str, object]:
    """The sixteen facts of a visit, by column."""
    result = visit.result
    encoding = charset_of(result.content_type)
    return {
        "timestamp": result.at,
        "url": visit.url,
        "page_type": visit.page_type,
        "depth": visit.depth,
        "referrer": visit.referrer,
        "http_status": result.last_status,
        "content_type": media_type(result.content_type),
        "encoding": encoding.lower() if encoding else None,
        "content_sha256": result.content_hash,
        "content_bytes": result.bytes,
        "stored_path": _stored_path(result),
        "etag": result.etag,
        "last_modified": result.last_modified,
        "fetch_latency_ms": result.ledger[-1].elapsed_ms if result.ledger else None,
        "retries": result.retries,
        "proxy_id": None,
    }


def _stored_path(result: PageResult) -> str | None:
    """Where the page is kept, from the workspace; a page that was packed since is in a pack of the store."""
    name = result.content_hash
    return f"store/html/{name[:2]}/{name[2:4]}/{name}.html.zst" if name and result.stored else None


def further_of(visit: LoggedVisit) -> dict[str, object]:
    """Facts without a column of their own; empty ones are left out."""
    result = visit.result
    found = {
        "run": result.run,
        "domain": result.domain,
        "wire_url": result.wire if result.wire != visit.url else None,
        "state": visit.state,
        "error": visit.error,
        "title": result.title,
        "links": len(result.hrefs),
        "redirect_to": result.redirect,
        "requests": len(result.ledger),
        "validation": result.validation,
        "rejection_reason": result.rejection_reason,
        "description": result.description,
        "language": result.language,
        "canonical": result.canonical,
        "heading": result.heading,
    }
    return {name: value for name, value in found.items() if value is not None}


def csv_header() -> bytes:
    return _csv([COLUMNS])


def csv_rows(visits: Iterable[LoggedVisit]) -> bytes:
    return _csv([*fields_of(visit).values(), orjson.dumps(further_of(visit)).decode()] for visit in visits)


def json_lines(visits: Iterable[LoggedVisit]) -> bytes:
    """One record a visit: the facts of crawl and request together."""
    return b"".join(orjson.dumps(fields_of(visit) | further_of(visit)) + b"\n" for visit in visits)


def _csv(rows: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(rows)
    return text.getvalue().encode("utf-8", "replace")
