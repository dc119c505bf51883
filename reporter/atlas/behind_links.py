"""The page links behind a link between two domains."""

from __future__ import annotations

from typing import Any

from crawler.database.map_errors import NotOnMap
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace
from crawler.model.shown_text import plain, url_words
from reporter.queries import one_page, page_network

MOST_LINKS = 100


def behind_link(database: MapPlace, source: str, target: str, most: int = MOST_LINKS) -> dict[str, Any]:
    """At most so many page links from one domain to another. Raises NotOnMap, NoDatabase, NotAMap."""
    with open_map(database) as reader:
        numbers = []
        for name in (source, target):
            found = one_page.domain_by_name(reader, name)
            if found is None:
                raise NotOnMap(database, name)
            numbers.append(found[0].id)
        links = page_network.links_between(reader, numbers[0], numbers[1], most)
        total = page_network.links_between_count(reader, numbers[0], numbers[1])
    rows = [
        {
            "from": link.source,
            "from_shown": url_words(link.source),
            "to": link.target,
            "to_shown": url_words(link.target),
            "text": plain(link.text, 120),
        }
        for link in links
    ]
    return {"from": source, "to": target, "links": max(total, len(rows)), "shown": len(rows), "rows": rows}
