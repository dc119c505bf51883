"""Links summed up by domain: the sums in `domain_links`, and the links too new to be counted there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter

from crawler.database.ids import pair_sql, pairs_of, split_pair
from crawler.database.reader import MapReader
from reporter.queries.rows import DomainRow


def mark_quality(reader: MapReader, rows: Iterable[DomainRow]) -> None:
    """Note the ids of quality domains, for the questions about links from or to them."""
    reader.note("DROP TABLE IF EXISTS temp.quality")
    reader.note("CREATE TEMP TABLE quality (id INTEGER PRIMARY KEY)")
    reader.note_many("INSERT INTO temp.quality VALUES (?)", [(row.id,) for row in rows if row.klass == "quality"])


def mark_all_quality(reader: MapReader) -> None:
    """The same, without reading the other domains."""
    reader.note("DROP TABLE IF EXISTS temp.quality")
    reader.note("CREATE TEMP TABLE quality (id INTEGER PRIMARY KEY)")
    reader.note("INSERT INTO temp.quality SELECT id FROM domain_states WHERE class = 'quality'")


def links_from_quality(reader: MapReader, domain_id: int) -> tuple[int, int]:
    """(different quality domains that link to this one, links). Needs `mark_quality`; one look for each of them."""
    _sum_recent_links(reader)
    pair = pair_sql("q.id", "?1")
    row = reader.first(
        "SELECT count(DISTINCT source), coalesce(sum(links), 0) FROM ("
        f"  SELECT q.id AS source, l.links FROM temp.quality q CROSS JOIN domain_links l ON l.id = {pair}"
        f"  UNION ALL SELECT q.id, l.links FROM temp.quality q CROSS JOIN temp.recent l ON l.id = {pair}) found"
        " WHERE source <> ?1",
        (domain_id,),
    )
    return (int(row[0]), int(row[1])) if row else (0, 0)


def linked_by_quality(reader: MapReader) -> list[tuple[int, int, int]]:
    """(domain id, different quality domains that link there, links), by the former. Needs `mark_quality`."""
    _sum_recent_links(reader)
    rows = reader.rows(
        "SELECT to_domain_id, count(DISTINCT from_domain_id), sum(links) FROM ("
        "  SELECT from_domain_id, to_domain_id, links FROM temp.quality q"
        f"  CROSS JOIN domain_links l ON l.id {pairs_of('q.id')}"
        "  UNION ALL SELECT from_domain_id, to_domain_id, links FROM temp.quality q"
        f"  CROSS JOIN temp.recent l ON l.id {pairs_of('q.id')}) found"
        " WHERE to_domain_id <> from_domain_id GROUP BY to_domain_id ORDER BY 2 DESC, 3 DESC, 1"
    )
    return [(domain, different, links) for domain, different, links in rows]


def links_to_quality(reader: MapReader) -> list[tuple[int, int, int]]:
    """(domain id, different quality domains it links to, links) for other domains. Needs `mark_quality`."""
    _sum_recent_links(reader)
    of_interest = (
        "WHERE to_domain_id IN (SELECT id FROM temp.quality) AND from_domain_id NOT IN (SELECT id FROM temp.quality)"
    )
    rows = reader.rows(
        "SELECT from_domain_id, count(DISTINCT to_domain_id), sum(links) FROM ("
        f"  SELECT from_domain_id, to_domain_id, links FROM domain_links {of_interest}"
        f"  UNION ALL SELECT from_domain_id, to_domain_id, links FROM temp.recent {of_interest}) found"
        " GROUP BY from_domain_id ORDER BY 2 DESC, 3 DESC, 1"
    )
    return [(domain, different, links) for domain, different, links in rows]


def domain_links(reader: MapReader) -> Iterator[tuple[int, int, int]]:
    """(from domain, to domain, links), in the order of the numbers. One row is held at a time."""
    _sum_recent_links(reader)
    rows = reader.rows("SELECT id, links FROM domain_links UNION ALL SELECT id, links FROM temp.recent ORDER BY 1")
    for pair, same in groupby(rows, key=itemgetter(0)):
        yield (*split_pair(pair), sum(links for _, links in same))


def linking_domains(reader: MapReader, domain_id: int) -> list[int]:
    """The other domains with links to this one."""
    _sum_recent_links(reader)
    rows = reader.rows(
        "SELECT from_domain_id FROM domain_links WHERE to_domain_id = ?1 AND from_domain_id <> ?1"
        " UNION SELECT from_domain_id FROM temp.recent WHERE to_domain_id = ?1 AND from_domain_id <> ?1 ORDER BY 1",
        (domain_id,),
    )
    return [source for (source,) in rows]


def domains_around(reader: MapReader, domain: str, steps: int) -> set[int]:
    """The domain of this name and those at most so many steps away from it, along links in either direction.

    Empty if the map has no such domain. The links are read once a step: there is no index by their target.
    """
    row = reader.first("SELECT id FROM domain_states WHERE domain = ?", (domain,))
    near: set[int] = {row[0]} if row else set()
    for _ in range(steps if near else 0):
        beyond = {
            target if source in near else source
            for source, target, _ in domain_links(reader)
            if (source in near) is not (target in near)
        }
        if not beyond:
            break
        near |= beyond
    return near


def domain_names(reader: MapReader) -> Iterator[str]:
    """The names of all domains of the map."""
    return (name for (name,) in reader.rows("SELECT domain FROM domain_states"))


def _sum_recent_links(reader: MapReader) -> None:
    """Note, once for a reader, the sums of those links that are too new to be in `domain_links`."""
    if reader.has_note("recent"):
        return
    reader.note(
        "CREATE TEMP TABLE recent (id INTEGER PRIMARY KEY, from_domain_id INTEGER, to_domain_id INTEGER, links INTEGER)"
    )
    if not reader.has("unsummed_links"):
        return  # a map of format 2, which has summed up everything
    reader.note(
        f"INSERT INTO temp.recent SELECT {pair_sql('from_domain_id', 'to_domain_id')}, from_domain_id, to_domain_id,"
        " count(*) FROM unsummed_links GROUP BY from_domain_id, to_domain_id"
    )
