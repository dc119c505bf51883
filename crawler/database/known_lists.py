"""Lists over several pages, and archives, as the scheduler sees them. Each question raises MapAway."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.live_map import LiveMap
from crawler.model.list_member import ListMember

MEMBERS = 50  # of a list, that are looked at: its last ones
_FIRSTS = 5


class KnownList(NamedTuple):
    """A list that is open for guesses in a run."""

    rule: int
    form: str
    domain: str
    guesses: int  # made in that run


def open_lists(lists: LiveMap, run: int, *, is_elsewhere: bool = False) -> list[KnownList]:
    """Domain by domain; a closed domain has none. `is_elsewhere`: of other domains than quality ones, too."""
    rows = lists.ask(
        "SELECT r.id, r.form, d.domain, (SELECT count(*) FROM guesses g WHERE g.rule_id = r.id AND g.run = ?1)"
        " FROM pagination_rules r JOIN domain_states d ON d.id = r.domain_id"
        " WHERE (d.class = 'quality' OR (?2 = 1 AND d.class = 'discovered'))"
        " AND d.run = ?1 AND d.closed_reason IS NULL AND r.last_run = ?1"
        " AND coalesce(r.ended_run, 0) < ?1 ORDER BY d.domain, r.form",
        (run, is_elsewhere),
    )
    return [KnownList(*row) for row in rows]


def members_of(lists: LiveMap, rule: int, run: int) -> list[ListMember]:
    """The last members of a list that the run has seen."""
    rows = lists.ask(
        "SELECT m.number, p.url, coalesce(p.wire_url, p.url), p.origin IN ('linked', 'seed'), g.id IS NOT NULL,"
        " p.state, p.redirect_to IS NOT NULL, p.rejection_reason, p.text_print, g.found, n.id IS NOT NULL"
        " FROM list_pages m CROSS JOIN pages p ON p.id = m.id"
        " LEFT JOIN guesses g ON g.id = p.id AND g.run = ?2 AND g.way <> 'sitemap'"
        " LEFT JOIN next_pages n ON n.id = p.id"
        " WHERE m.rule_id = ?1 AND p.seen_run = ?2 ORDER BY m.number DESC LIMIT ?3",
        (rule, run, MEMBERS),
    )
    return [
        ListMember(
            *(number, key, wire, bool(is_linked), bool(is_guess), state, bool(is_redirected)),
            *(rejection, text_print, found, bool(has_next)),
        )
        for number, key, wire, is_linked, is_guess, state, is_redirected, rejection, text_print, found, has_next in rows
    ]


def firsts_of(lists: LiveMap, rule: int, run: int) -> list[str]:
    """Pages without a number that name a page of this list as their next: the first of them is its beginning."""
    rows = lists.ask(
        "SELECT p.url FROM next_pages n JOIN pages p ON p.id = n.id WHERE n.rule_id = ?1 AND p.seen_run = ?2"
        " AND p.id NOT IN (SELECT id FROM list_pages) ORDER BY p.id LIMIT ?3",
        (rule, run, _FIRSTS),
    )
    return [row[0] for row in rows]


def open_archives(lists: LiveMap, run: int) -> list[KnownList]:
    """Forms of archives that are open for guesses, domain by domain; `guesses` are those of the whole domain."""
    rows = lists.ask(
        "SELECT r.id, r.form, d.domain, (SELECT count(*) FROM archive_rules o JOIN guesses g ON g.rule_id = o.id"
        "  WHERE o.domain_id = r.domain_id AND g.run = ?1)"
        " FROM archive_rules r JOIN domain_states d ON d.id = r.domain_id"
        " WHERE d.class = 'quality' AND d.run = ?1 AND d.closed_reason IS NULL AND r.last_run = ?1"
        " AND coalesce(r.ended_run, 0) < ?1 ORDER BY d.domain, r.form",
        (run,),
    )
    return [KnownList(*row) for row in rows]


def tried_of(lists: LiveMap, rule: int, run: int) -> list[ListMember]:
    """The archives of a form that were tried in a run."""
    rows = lists.ask(
        "SELECT p.url, p.state, p.redirect_to IS NOT NULL, p.rejection_reason, p.text_print"
        " FROM guesses g JOIN pages p USING (id) WHERE g.rule_id = ?1 AND g.run = ?2 ORDER BY p.url DESC LIMIT ?3",
        (rule, run, MEMBERS),
    )
    return [
        ListMember(0, url, url, False, True, state, bool(is_redirected), rejection, text_print, None, False)
        for url, state, is_redirected, rejection, text_print in rows
    ]


def next_archive(lists: LiveMap, rule: int, run: int) -> str | None:
    """The address of the latest archive of a form that the run does not know; None: it knows all that links show."""
    rows = lists.ask(
        "SELECT a.url FROM archive_pages a LEFT JOIN pages p ON p.id = a.page_id AND p.seen_run = ?2"
        " WHERE a.rule_id = ?1 AND a.run = ?2 AND p.id IS NULL ORDER BY a.url DESC LIMIT 1",
        (rule, run),
    )
    return str(rows[0][0]) if rows else None


def unvisited_entries(lists: LiveMap, run: int, max_depth: int, most: int) -> list[tuple[str, str]]:
    """(domain, address) of pages that a sitemap names, that no followed path leads to, on hosts within reach.

    A host is within reach if a followed path leads to a page of it within `max_depth`. At most so many of each domain,
    the latest by their dates first; none of closed domains, out of scope, or that the run has tried already.
    """
    return lists.ask(
        "SELECT domain, url FROM (SELECT d.domain, coalesce(p.wire_url, p.url) AS url, row_number() OVER"
        "  (PARTITION BY d.id ORDER BY coalesce(e.lastmod, '') DESC, p.url) AS place"
        "  FROM sitemap_entries e CROSS JOIN pages p ON p.id = e.id CROSS JOIN domain_states d ON d.id = p.domain_id"
        "  WHERE e.run = ?1 AND p.seen_run = ?1 AND p.state = 'discovered' AND p.error_message IS NULL"
        "  AND p.depth IS NULL AND d.run = ?1 AND d.closed_reason IS NULL"
        "  AND NOT EXISTS (SELECT 1 FROM guesses g WHERE g.id = p.id AND g.run = ?1)"
        "  AND p.domain_id IN (SELECT domain_id FROM pages WHERE seen_run = ?1 AND depth <= ?2)) AS found"
        " WHERE place <= ?3 ORDER BY domain, place",
        (run, max_depth, most),
    )
