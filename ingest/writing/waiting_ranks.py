"""The ranks of pages that wait, made anew where `[crawler] order` is another than they were written under."""

from __future__ import annotations

from crawler.model.origins import Origin
from crawler.model.settings import Config
from crawler.rules.lists import Classifier
from crawler.rules.page_priority import kind_of
from ingest.rules.page_state import priority
from ingest.writing.engine import MapConnection
from ingest.writing.setup import meta, set_meta

_NAME = "waiting_order"
_ROWS = 20_000
_WAITING = (
    "SELECT pages.id, url, domain, depth, origin FROM frontier CROSS JOIN pages ON pages.id = frontier.id"
    " WHERE frontier.id > ? AND depth IS NOT NULL ORDER BY frontier.id LIMIT ?"
)


def rank_waiting(db: MapConnection, config: Config, classifier: Classifier) -> None:
    """A map without the note is older than these ranks: its waiting pages are ranked too."""
    if meta(db, _NAME) == config.crawler.order:
        return
    by_level = config.crawler.order == "priority"
    db.execute("BEGIN")
    last = 0
    while chunk := db.execute(_WAITING, (last, _ROWS)).fetchall():
        ranks: list[tuple[int, int]] = []
        for number, key, domain, depth, word in chunk:
            origin = Origin(word)
            kind = kind_of(key, domain, is_seed=origin is Origin.SEED)
            klass = classifier.classify(domain).class_of(key)
            ranks.append((priority(depth, klass, origin.is_linked, kind, by_level=by_level), number))
        last = chunk[-1][0]
        db.executemany("UPDATE frontier SET priority = ? WHERE id = ?", ranks)
    set_meta(db, _NAME, config.crawler.order)
    db.execute("COMMIT")
