"""The most linked domains and the links between them, with places that stay from run to run."""

from __future__ import annotations

from typing import Any

from crawler.database.completed_map import live_database
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace
from crawler.model.settings import Config
from crawler.rules.lists import EntryNotes
from reporter.map.layout_file import keep_places, kept_places
from reporter.map.map_data import DEFAULT_DOMAINS, MOST_DOMAINS, map_data
from reporter.queries.domain_links import domain_names

__all__ = ["DEFAULT_DOMAINS", "MOST_DOMAINS", "domain_level", "known_domains"]


def domain_level(config: Config, database: MapPlace, most: int = DEFAULT_DOMAINS) -> dict[str, Any]:
    """The level of domains of the run that a map shows. `most` is at most MOST_DOMAINS.

    The places of a live map are kept for the next one. Raises NoDatabase, NotAMap, NoSuchRun.
    """
    live = live_database(database)
    found = map_data(database, min(most, MOST_DOMAINS), kept_places(live))
    if live == database:
        keep_places(live, found.places())
    notes = EntryNotes(config)
    level = found.content
    of_domains = [notes.of(name) for name in level["nodes"]["name"]]
    level["nodes"]["tags"] = [list(note.tags) if note else [] for note in of_domains]
    level["nodes"]["note"] = [note.note if note else "" for note in of_domains]
    counts = level["counts"]
    level["counts"] = {
        "shown": counts["domains"],
        "known": counts["domains_known"],
        "links": counts["links"],
        "links_known": counts["links_known"],
    }
    return {**level, "kind": "graph", "level": "domains"}


def known_domains(database: MapPlace) -> set[str]:
    """The names of all domains of a map."""
    with open_map(database) as reader:
        return set(domain_names(reader))
