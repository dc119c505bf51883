"""Asks the database and works out the figures: the one place where `queries` and `figures` meet."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from reporter import figures, queries
from reporter.figures import TOP, Figures, MendableLink

MENDABLE_PER_DOMAIN = 10
MENDABLE_DOMAINS = 20
CUT_PAGES = 10


def survey(database: Path, run: int | None = None, *, in_full: bool = True) -> Figures:
    """The figures of the run that the map shows. Without `in_full`, only what counting pages yields.

    Raises queries.NoDatabase, queries.NotAMap, and queries.NoSuchRun if `run` is given and is not that run.
    """
    with queries.open_map(database) as connection:
        return survey_of(connection, Path(database), run, in_full=in_full)


def survey_of(connection: sqlite3.Connection, database: Path, run: int | None, *, in_full: bool = True) -> Figures:
    row, is_only_run = queries.shown_run(connection, database, run)
    domains = queries.domains(connection)
    pages = figures.page_figures(queries.page_counts(connection, row.id), domains, row.id)
    links = queries.links_in_run(connection, row.id, is_only_run)
    answer = Figures(
        run=figures.run_figures(row),
        overall=figures.overall(pages, links, queries.pages_in_all(connection)),
        states=pages.states,
        depths=pages.depths,
        domains=pages.domains,
        errors=pages.errors,
        error_slugs=pages.error_slugs,
        rate_limited=figures.rate_limited(domains.values(), row.id),
        closed=figures.closed_domains(domains.values(), pages, row.id),
        traps=figures.trap_figures(queries.closed_families(connection, row.id), pages),
    )
    return _with_lists(answer, connection, domains, is_only_run) if in_full else answer


def _with_lists(
    plain: Figures, connection: sqlite3.Connection, domains: Mapping[int, queries.DomainRow], is_only_run: bool
) -> Figures:
    """The same figures with the lists that need more than counting."""
    run = plain.run.id
    queries.mark_quality(connection, domains.values())
    queries.mark_broken(connection, run)
    blacklisted, stubbed = (
        [
            figures.Reference(url, count)
            for url, count in queries.most_referenced(connection, table, run, is_only_run, TOP)
        ]
        for table in ("blacklisted_urls", "stubbed_urls")
    )
    linked = queries.linked_by_quality(connection)
    from_quality = {domain: links for domain, _, links in linked}
    back = [row for row in queries.links_to_quality(connection) if row[0] in from_quality]
    dead, moved = queries.broken_links(connection, run)
    cut = queries.cut_pages(connection)
    cut_urls = queries.urls_of(connection, (page for page, _ in cut[:CUT_PAGES]))
    changes: dict[str, object] = {
        "top_blacklisted": blacklisted,
        "top_stubbed": stubbed,
        "top_linked": [
            figures.LinkedDomain(domains[number].domain, domains[number].klass, different, links)
            for number, different, links in linked[:TOP]
        ],
        "linked_total": len(linked),
        "top_linking_back": [
            figures.LinkBack(domains[number].domain, domains[number].klass, links, from_quality[number])
            for number, _, links in back[:TOP]
        ],
        "linking_back_total": len(back),
        "dead_links": _mendable(connection, _some_of_each(dead), domains, {}),
        "dead_links_total": _by_domain(dead, domains),
        "moved_links": _moved(connection, moved, domains),
        "moved_links_total": len(moved),
        "quarantined": [figures.Quarantined(*row) for row in queries.quarantined(connection)],
        "cut_pages": [figures.CutPage(cut_urls[page][0], links) for page, links in cut[:CUT_PAGES]],
        "cut_pages_total": len(cut),
        "links_cut": sum(links for _, links in cut),
    }
    fields = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    return Figures(**{**fields, **changes})


def _by_domain(links: list[queries.BrokenLink], domains: Mapping[int, queries.DomainRow]) -> dict[str, int]:
    """How many different broken targets each quality domain links to, most first."""
    counts = Counter(domains[link.domain_id].domain for link in links)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _some_of_each(links: list[queries.BrokenLink]) -> list[queries.BrokenLink]:
    """The first few of each of the domains with the most."""
    counts = Counter(link.domain_id for link in links)
    worst = {domain for domain, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:MENDABLE_DOMAINS]}
    kept = []
    taken: Counter[int] = Counter()
    for link in links:
        if link.domain_id in worst and taken[link.domain_id] < MENDABLE_PER_DOMAIN:
            taken[link.domain_id] += 1
            kept.append(link)
    return kept


def _moved(
    connection: sqlite3.Connection, links: list[queries.BrokenLink], domains: Mapping[int, queries.DomainRow]
) -> list[MendableLink]:
    most = sorted(links, key=lambda link: (-link.pages, domains[link.domain_id].domain, link.target))[:TOP]
    return _mendable(connection, most, domains, queries.moved_to(connection, {link.target for link in most}))


def _mendable(
    connection: sqlite3.Connection,
    links: list[queries.BrokenLink],
    domains: Mapping[int, queries.DomainRow],
    targets: Mapping[int, int],
) -> list[MendableLink]:
    wanted = {page for link in links for page in (link.target, *link.examples)} | set(targets.values())
    urls = queries.urls_of(connection, wanted)
    return [
        MendableLink(
            domain=domains[link.domain_id].domain,
            url=urls[link.target][0],
            status=urls[link.target][2],
            target=urls[targets[link.target]][0] if link.target in targets else None,
            pages=link.pages,
            examples=tuple(urls[page][0] for page in link.examples),
        )
        for link in links
    ]
