"""Pages that are not due, as results: everything that a visit would have found, read from the map.

Such a result is as whole as that of a visit, so a replay needs no earlier line for it. A page with a link whose address
the map does not have whole cannot be told that way: it is visited.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson
from msgspec import UNSET

from crawler.database.format import LINK_REDIRECT, NOT_DUE_TURN
from crawler.database.frontier import Waiting
from crawler.database.ids import links_of
from crawler.database.live_map import LiveMap
from crawler.model.page_claims import whole_length
from crawler.model.records import Carried, PageResult, Revalidation

_NOT_DUE = """
SELECT f.page_id, f.priority, p.url, p.wire_url, p.family, f.turn, r.visited_at, e.lastmod
FROM frontier f INDEXED BY idx_frontier_domain CROSS JOIN pages p ON p.id = f.page_id
CROSS JOIN revisits r ON r.id = f.page_id LEFT JOIN sitemap_entries e ON e.id = f.page_id
WHERE f.domain_id = ? AND f.turn = ? ORDER BY f.priority, f.id LIMIT ?
"""
_PAGES = """
SELECT p.id, p.url, p.wire_url, p.domain, p.status_code, p.content_type, p.last_modified, p.title, p.nofollow,
       p.links_cut, p.retry_count, p.bytes, p.validation, p.text_print,
       r.outcome, r.error, r.visited_at, r.next_crawl_at, r.interval,
       coalesce(next.wire_url, next.url), n.evidence,
       f.content_hash, f.stored, f.noarchive, f.etag, f.description, f.language, f.canonical, f.heading, f.text_hash,
       f.link_count, f.simhash, a.url, a.asked_as, a.headers, a.is_etag_vain
FROM json_each(?) AS wanted CROSS JOIN pages p ON p.id = wanted.value CROSS JOIN revisits r ON r.id = p.id
LEFT JOIN page_facts f ON f.id = p.id AND f.run = p.visited_run
LEFT JOIN page_answers a ON a.id = f.id AND a.run = f.run
LEFT JOIN next_pages n ON n.id = p.id LEFT JOIN pages next ON next.id = n.next_id
"""
_LINKS = f"""
SELECT p.id, l.kind, target.url, target.wire_url, t.text, t.rel
FROM json_each(?) AS wanted CROSS JOIN pages p ON p.id = wanted.value
CROSS JOIN links l ON {links_of("l", "p.id")} CROSS JOIN pages target ON target.id = l.to_page_id
LEFT JOIN link_texts t ON t.id = l.id
WHERE l.last_run = p.visited_run ORDER BY l.id
"""
_FIELDS = """
SELECT f.id, f.name, f.value FROM json_each(?) AS wanted CROSS JOIN page_fields f ON f.id = wanted.value
ORDER BY f.id, f.name, f.position
"""


class NotDue(NamedTuple):
    """A page that waits though it was not due when the run started."""

    row: Waiting
    visited_at: str
    lastmod: str | None


def not_due(map_: LiveMap, domain_id: int, limit: int) -> list[NotDue]:
    """The first of a domain's pages that are not due."""
    rows = map_.ask(_NOT_DUE, (domain_id, NOT_DUE_TURN, limit))
    return [NotDue(Waiting(*row[:6]), row[6], row[7]) for row in rows]


def carried_results(map_: LiveMap, run: int, at: str, pages: Iterable[int]) -> dict[int, PageResult]:
    """The results that carry these pages into a run; a page that has to be visited is not among them."""
    wanted = orjson.dumps(list(pages)).decode()
    links: dict[int, list[tuple[Any, ...]]] = {}
    for number, *link in map_.ask(_LINKS, (wanted,)):
        links.setdefault(number, []).append(tuple(link))
    fields: dict[int, dict[str, tuple[str, ...]]] = {}
    for number, name, value in map_.ask(_FIELDS, (wanted,)):
        own = fields.setdefault(number, {})
        own[name] = (*own.get(name, ()), value)
    found: dict[int, PageResult] = {}
    for row in map_.ask(_PAGES, (wanted,)):
        result = _result(run, at, row, links.get(row[0], []), fields.get(row[0]))
        if result is not None:
            found[row[0]] = result
    return found


def _result(
    run: int,
    at: str,
    row: tuple[Any, ...],
    links: list[tuple[Any, ...]],
    fields: dict[str, tuple[str, ...]] | None,
) -> PageResult | None:
    (_, key, wire, domain, status, content_type, last_modified, title, nofollow, links_cut, retries, size) = row[:12]
    validation, text_print, outcome, error, visited_at, due, interval, following, evidence = row[12:21]
    content_hash, stored, noarchive, etag, description, language, canonical, heading, text_hash, count, simhash = row[
        21:32
    ]
    answered_by, asked_as, answer_headers, is_etag_vain = row[32:]
    if any(whole_length(target) is not None for _, target, *_ in links):
        return None
    targets = [wire_url or url for _, url, wire_url, _, _ in links]
    redirects = [target for (kind, *_), target in zip(links, targets, strict=True) if kind == LINK_REDIRECT]
    texts, rels = [text or "" for *_, text, _ in links], [rel or "" for *_, rel in links]
    return PageResult(
        run,
        key,
        wire or key,
        domain,
        at,
        outcome,
        error,
        status,
        content_type,
        last_modified,
        title,
        hrefs=() if redirects else tuple(targets),
        nofollow=bool(nofollow),
        links_cut=links_cut,
        redirect=redirects[0] if redirects else None,
        retries=retries or 0,
        bytes=size or 0,
        validation=validation,
        text_print=text_print,
        texts=tuple(texts) if any(texts) or any(rels) else UNSET,
        rels=tuple(rels) if any(rels) else UNSET,
        next_page=following,
        next_by=evidence or "",
        content_hash=content_hash,
        stored=bool(stored),
        noarchive=bool(noarchive),
        etag=etag,
        description=description,
        language=language,
        canonical=canonical,
        heading=heading,
        text_hash=text_hash,
        simhash=simhash,
        fields=fields if fields is not None and content_hash is not None else UNSET,
        carried=Carried(visited_at, due, interval, count or 0),
        answered_by=answered_by if answered_by != (wire or key) else None,
        revalidation=(
            UNSET if asked_as is None else Revalidation(asked_as, orjson.loads(answer_headers), bool(is_etag_vain))
        ),
    )
