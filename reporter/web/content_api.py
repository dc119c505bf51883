"""A stored page as text. Its own HTML is never sent from this origin."""

from __future__ import annotations

import msgspec

from crawler.database.reader import open_map
from crawler.store.blobs import BlobDamaged
from crawler.store.file_store import open_store
from crawler.visit.encoding import decode, find_encoding
from reporter.queries.one_page import page_by_key
from reporter.queries.stored_page import StoredPage, stored_page
from reporter.readable_text import readable_text
from reporter.web.face import Face
from reporter.web.map_api import Run, Text, url_key
from reporter.web.map_choice import chosen
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

MOST_TEXT = 100_000  # characters


class ContentQuery(msgspec.Struct, forbid_unknown_fields=True):
    url: Text
    run: Run | None = None


def content(call: Call) -> Answer:
    """The text of a page as the store has it; without one, the reason."""
    face, query = call.face, call.query
    key = url_key(face, query.url)
    with open_map(chosen(face, query.run).path) as reader:
        page = page_by_key(reader, key)
        if page is None:
            raise Problem(404, "not-on-map", "this page is not on the map")
        found = stored_page(reader, page.id)
    why = _why_not(face, found)
    if found is None or why:
        return Answer({"url": key, "is_stored": False, "why": why})
    try:
        body = open_store(face.config).get(found.content_hash)
    except BlobDamaged as problem:
        return Answer({"url": key, "is_stored": False, "why": str(problem)})
    if body is None:
        return Answer({"url": key, "is_stored": False, "why": "its content is not in the store any more"})
    text, is_cut = readable_text(decode(body, find_encoding(body, found.content_type)), MOST_TEXT)
    facts = {"run": found.run, "bytes": found.size, "hash": found.content_hash}
    return Answer({"url": key, "is_stored": True, "text": text, "is_cut": is_cut, **facts})


def _why_not(face: Face, found: StoredPage | None) -> str:
    if found is None:
        return "no visit of this page brought content"
    if found.is_stored:
        return ""
    if found.is_noarchive:
        return "the page asks that no copy of it is kept"
    return "the crawl did not keep pages then ([store] html)"
