"""`sumi-ripple explain example.org`: a whole domain: its class, its pages, who links there, and what would change it.

    explain_domain(config: Config, database: MapPlace | None, domain: str) -> DomainExplanation

`domain` is a host as keys write it. The database need not exist (yet).
"""

from __future__ import annotations

from collections import Counter

from crawler.database.presence import is_there
from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.settings import Config
from crawler.model.shown_text import counted
from crawler.model.states import PageState
from crawler.rules.lists import EntryNotes
from reporter.candidates import REFERRERS, reasons, sample_referrers
from reporter.explain.config_lines import ruling
from reporter.explain.domain_facts import DomainExplanation
from reporter.guess_ends import GUESSES_ENDED
from reporter.queries import candidate_rows, discovery_rows, domain_links, one_page, overview


def explain_domain(config: Config, database: MapPlace | None, domain: str) -> DomainExplanation:
    """Everything about one domain."""
    note = EntryNotes(config).of(domain)
    facts = DomainExplanation(
        **ruling(config, domain),
        note=note.note if note else "",
        tags=note.tags if note else (),
    )
    if database is None or not is_there(database):
        return facts
    with open_map(database) as reader:
        return _with_map(reader, facts)


def _with_map(reader: MapReader, facts: DomainExplanation) -> DomainExplanation:
    runs = overview.runs(reader)
    found = one_page.domain_by_name(reader, facts.domain)
    run = runs[-1].id if runs else None
    if found is None or run is None:
        return facts.known(newest_run=run)
    row, _, robots_at = found
    candidate_rows.mark_candidates(reader, [row.id])
    pages = candidate_rows.page_states(reader, run)
    domain_links.mark_all_quality(reader)
    quality_domains, links = domain_links.links_from_quality(reader, row.id)
    samples = candidate_rows.referrers(reader, run, REFERRERS).get(row.id, [])
    is_current = row.run == run
    states = candidate_rows.counted_states(pages).get(row.id, Counter())
    return facts.known(
        newest_run=run,
        is_known=True,
        class_in_map=row.klass,
        last_run=row.run,
        title=candidate_rows.front_titles(reader).get(row.id),
        depth=candidate_rows.least_depths(reader, run).get(row.id),
        crawled=sum(count for (state, _), count in states.items() if state == PageState.PROCESSED),
        pages=sum(states.values()),
        why=reasons(states),
        requests=row.request_count if is_current else 0,
        closed=row.closed_reason if is_current else None,
        robots=row.robots_outcome,
        robots_at=robots_at,
        crawl_delay=row.crawl_delay,
        quality_domains=quality_domains,
        links=links,
        referrers=sample_referrers(reader, {row.id: samples}).get(row.id, ()),
        sitemaps=_sitemaps(reader, facts.domain),
        lists=tuple(_list_words(known) for known in discovery_rows.lists_of(reader, row.id)),
        archives=tuple(_archive_words(known) for known in discovery_rows.archives_of(reader, row.id)),
        unlinked=discovery_rows.count_by_origin(reader, row.id).get("sitemap", 0),
        breaker=_breaker_words(overview.breakers(reader, run).get(row.id)),
    )


def _breaker_words(known: tuple[str, int, str] | None) -> str | None:
    if known is None:
        return None
    state, changes, detail = known
    return f"{state} after {counted(changes, 'change')}: {detail}"


def _list_words(known: discovery_rows.ListRow) -> str:
    words = f"{known.form}, up to {known.last:,}"
    if known.guesses:
        words += f"; {counted(known.guesses, 'page')} tried beyond the linked ones"
    return words + _end_words(known)


def _archive_words(known: discovery_rows.ListRow) -> str:
    words = f"{known.form}: links show {known.last:,}"
    if known.guesses:
        words += f"; {known.guesses:,} tried without a link"
    return words + _end_words(known)


def _end_words(known: discovery_rows.ListRow) -> str:
    return f", until {GUESSES_ENDED.get(known.ended_by, known.ended_by)}" if known.ended_by else ""


def _sitemaps(reader: MapReader, domain: str) -> tuple[str, ...]:
    """The domain's sitemaps in words, those that could be read in front."""
    rows = sorted(discovery_rows.sitemaps_of(reader, domain), key=lambda row: row.error is not None)
    return tuple(f"{row.url}: {_outcome(row)}" for row in rows)


def _outcome(row: discovery_rows.SitemapRow) -> str:
    if row.error is not None:
        return row.error
    if row.state == "waiting":
        return "not read yet"
    words = [counted(row.entries, "address", "addresses")]
    if row.left_out:
        words.append(f"{row.left_out:,} of them of other hosts, which do not count")
    if row.is_cut:
        words.append("longer than is read")
    return ", ".join(words)
