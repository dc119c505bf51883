"""Candidates for the quality list: discovered domains, ranked by how many different quality domains link to them.

candidates(database: MapPlace, limit: int) -> Candidates       raises NoDatabase, NotAMap, NoSuchRun
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.shown_text import counted
from crawler.model.states import ERRORS, WAITING, PageState
from reporter.figures import Candidate, Referrer
from reporter.queries import candidate_rows, domain_links, overview
from reporter.queries.link_texts import link_contexts
from reporter.queries.one_page import urls_of
from reporter.queries.rows import DomainRow

REFERRERS = 3  # sample pages that link there, each of another quality domain

_HELD_BACK = {
    PageState.DEPTH_EXCEEDED: "beyond the depth limit",
    PageState.REQUEST_LIMIT_HIT: "over the request budget",
    PageState.DISCOVERED: "found only by links that are not followed",
    PageState.RATE_LIMITED: "held back after a 429",
}


@dataclass(frozen=True, slots=True)
class Candidates:
    """The first candidates of the run that the map shows, and the number of all."""

    run: int
    rows: list[Candidate]
    total: int


def candidates(database: MapPlace, limit: int) -> Candidates:
    """At most `limit` candidates, the most promising first."""
    with open_map(database) as reader:
        run = overview.shown_run(reader, None)[0].id
        domains = overview.domains(reader)
        domain_links.mark_quality(reader, domains.values())
        rows, total = ranked(reader, run, domains, domain_links.linked_by_quality(reader), limit)
        return Candidates(run, rows, total)


def ranked(
    reader: MapReader,
    run: int,
    domains: Mapping[int, DomainRow],
    linked: list[tuple[int, int, int]],
    limit: int,
) -> tuple[list[Candidate], int]:
    """The first `limit` candidates and the number of all. `linked` is the answer of `linked_by_quality`.

    Needs `mark_quality`. Ranked by different quality domains, then links, then depth, then name.
    """
    open_ = [row for row in linked if domains[row[0]].klass == "discovered" and domains[row[0]].run == run]
    candidate_rows.mark_candidates(reader, (number for number, _, _ in open_))
    depths = candidate_rows.least_depths(reader, run)
    nowhere = max(depths.values(), default=0) + 1
    open_.sort(key=lambda row: (-row[1], -row[2], depths.get(row[0], nowhere), domains[row[0]].domain))
    first = open_[:limit]
    candidate_rows.mark_candidates(reader, (number for number, _, _ in first))
    states = candidate_rows.counted_states(candidate_rows.page_states(reader, run))
    titles = candidate_rows.front_titles(reader)
    samples = candidate_rows.referrers(reader, run, REFERRERS)
    referrers = sample_referrers(reader, samples)
    found = [
        Candidate(
            domain=domains[number].domain,
            klass=domains[number].klass,
            quality_domains=different,
            links=links,
            depth=depths.get(number),
            title=titles.get(number),
            crawled=sum(n for (state, _), n in states[number].items() if state == PageState.PROCESSED),
            known=sum(states[number].values()),
            referrers=referrers.get(number, ()),
            why=reasons(states[number]),
        )
        for number, different, links in first
    ]
    return found, len(open_)


def sample_referrers(
    reader: MapReader, samples: Mapping[int, list[tuple[int, int]]]
) -> dict[int, tuple[Referrer, ...]]:
    """The answer of `candidate_rows.referrers` with URLs, and with the links' texts where the map has them."""
    pairs = {pair for found in samples.values() for pair in found}
    urls = urls_of(reader, {page for pair in pairs for page in pair})
    contexts = link_contexts(reader, pairs)
    return {
        domain: tuple(Referrer(urls[a][0], urls[b][0], *contexts.get((a, b), ())) for a, b in found)
        for domain, found in samples.items()
    }


def reasons(states: Mapping[tuple[str, str | None], int]) -> tuple[str, ...]:
    """Why pages of a domain were not crawled, most pages first; empty if all were."""
    why: Counter[str] = Counter()
    for (state, slug), count in states.items():
        if state in _HELD_BACK:
            why[_HELD_BACK[PageState(state)]] += count
        elif state in WAITING:
            why["waiting"] += count
        elif state in ERRORS:
            why[f"failed ({slug or state.replace('_', '-')})"] += count
    ordered = sorted(why.items(), key=lambda item: (-item[1], item[0]))
    return tuple(f"{counted(count, 'page')} {words}" for words, count in ordered)
