"""The figures of one run: the only place where `queries` and `counting` meet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.states import WAITING
from reporter import counting, figures
from reporter.candidates import ranked
from reporter.error_categories import reason_words
from reporter.figures import TOP, Figures, FixableLink
from reporter.near_duplicates import near_groups
from reporter.queries import broken_links, domain_links, fact_rows, overview, page_rule_rows
from reporter.queries.one_page import urls_of
from reporter.queries.rejections import Rejections, rejected_pages, rejections
from reporter.queries.rows import BrokenLink, DomainRow
from reporter.queries.seeds import seed_rows
from reporter.queries.unlinked_pages import guessed_forms, unlinked_pages

FIXABLE_PER_DOMAIN = 10
FIXABLE_DOMAINS = 20
CUT_PAGES = 10
TRUNCATED_PAGES = 1000


def survey(database: MapPlace, run: int | None = None, *, in_full: bool = True, is_uncut: bool = False) -> Figures:
    """The figures of the run that the map shows. Without `in_full`, only those that counting pages yields.

    With `is_uncut`, the lists of links, of pages with too many links and of rejected pages are complete.

    Raises NoDatabase, NotAMap, and NoSuchRun if `run` is given and is not that run.
    """
    with open_map(database) as reader:
        return survey_of(reader, run, in_full=in_full, is_uncut=is_uncut)


def survey_of(reader: MapReader, run: int | None, *, in_full: bool = True, is_uncut: bool = False) -> Figures:
    """The same through an open reader. Raises MapMoved, too, if that reads a settled map."""
    row, is_only_run = overview.shown_run(reader, run)
    domains = overview.domains(reader)
    pages = counting.page_figures(overview.page_counts(reader, row.id), domains, row.id)
    links = overview.links_in_run(reader, row.id, is_only_run)
    reader.go_on()
    reasons = rejections(reader, row.id)
    rejected = sum(reason.crawled for reason in reasons)
    seeds = seed_rows(reader)
    answer = Figures(
        run=counting.run_figures(row),
        overall=counting.overall(pages, links, overview.pages_in_all(reader), rejected),
        states=pages.states,
        depths=pages.depths,
        domains=pages.domains,
        errors=pages.errors,
        error_slugs=pages.error_slugs,
        rate_limited=counting.rate_limited(domains.values(), row.id),
        closed=counting.closed_domains(domains.values(), pages, row.id),
        breakers=sorted(
            (
                figures.BreakerFigures(domains[number].domain, *found)
                for number, found in overview.breakers(reader, row.id).items()
                if number in domains
            ),
            key=lambda figure: figure.domain,
        ),
        traps=counting.trap_figures(overview.closed_families(reader, row.id), pages),
        seeds=len(seeds),
        seeds_waiting=sum(seed.state in WAITING for seed in seeds),
        failed_seeds=counting.failed_seeds(seeds),
    )
    return _with_lists(answer, reader, domains, reasons, is_only_run, is_uncut) if in_full else answer


def _same_texts(reader: MapReader, run: int) -> dict[str, object]:
    """Groups of pages that show the same text, and, where SimHashes were asked for, nearly the same."""
    same, same_total = fact_rows.same_text_groups(reader, run, TOP)
    near = near_groups((page, number) for page, _, number in fact_rows.simhashes(reader, run))
    shown = [(len(group), group[:3]) for group in near[:TOP]]
    urls = urls_of(reader, [page for _, pages in (*same, *shown) for page in pages])

    def group(count: int, pages: list[int], *, is_near: bool) -> figures.SameText:
        return figures.SameText(count, [urls[page][0] for page in pages], is_near)

    return {
        "same_texts": [group(count, pages, is_near=False) for count, pages in same],
        "same_texts_total": same_total,
        "near_texts": [group(count, pages, is_near=True) for count, pages in shown],
        "near_texts_total": len(near),
    }


def _with_lists(
    plain: Figures,
    reader: MapReader,
    domains: Mapping[int, DomainRow],
    reasons: Sequence[Rejections],
    is_only_run: bool,
    is_uncut: bool,
) -> Figures:
    """The same figures with the lists that need more than counting."""
    run = plain.run.id
    reader.go_on()
    domain_links.mark_quality(reader, domains.values())
    broken_links.mark_broken(reader, run)
    blacklisted, stubbed = (
        [figures.Reference(url, count) for url, count in overview.most_referenced(reader, table, run, is_only_run, TOP)]
        for table in ("blacklisted_urls", "stubbed_urls")
    )
    linked = domain_links.linked_by_quality(reader)
    from_quality = {domain: links for domain, _, links in linked}
    back = [row for row in domain_links.links_to_quality(reader) if row[0] in from_quality]
    gone, unreachable, moved = broken_links.broken_links(reader, run)
    reader.go_on()
    cut = broken_links.cut_pages(reader)
    truncated, truncated_total = broken_links.truncated_pages(reader, TRUNCATED_PAGES)
    truncated_urls = urls_of(reader, truncated)
    candidates, candidates_total = ranked(reader, run, domains, linked, TOP)
    reader.go_on()
    cut_shown = cut if is_uncut else cut[:CUT_PAGES]
    cut_urls = urls_of(reader, (page for page, _ in cut_shown))
    rejected = rejected_pages(reader, run, None if is_uncut else TOP) if reasons else []  # a scan of all pages
    scopes = page_rule_rows.scope_counts(reader, run) if plain.overall.out_of_scope else []
    changes: dict[str, object] = {
        "top_blacklisted": blacklisted,
        "top_stubbed": stubbed,
        "top_linked": [
            figures.LinkedDomain(domains[number].domain, domains[number].klass, different, links)
            for number, different, links in linked[:TOP]
        ],
        "linked_total": len(linked),
        "candidates": candidates,
        "candidates_total": candidates_total,
        "top_linking_back": [
            figures.LinkBack(domains[number].domain, domains[number].klass, links, from_quality[number])
            for number, _, links in back[:TOP]
        ],
        "linking_back_total": len(back),
        "dead_links": _fixable(reader, gone if is_uncut else _some_of_each(gone), domains, {}),
        "dead_links_total": _by_domain(gone, domains),
        "unreachable_links": _fixable(reader, unreachable if is_uncut else _some_of_each(unreachable), domains, {}),
        "unreachable_links_total": _by_domain(unreachable, domains),
        "moved_links": _moved(reader, moved, domains, None if is_uncut else TOP),
        "moved_links_total": len(moved),
        "quarantined": [figures.Quarantined(*row) for row in overview.quarantined(reader)],
        "cut_pages": [figures.CutPage(cut_urls[page][0], links) for page, links in cut_shown],
        "cut_pages_total": len(cut),
        "links_cut": sum(links for _, links in cut),
        "truncated_pages": [truncated_urls[page][0] for page in truncated],
        "truncated_total": truncated_total,
        "scope": [figures.ScopeFigures(*row) for row in scopes],
        "page_types": [figures.PageTypeFigures(*row) for row in page_rule_rows.type_counts(reader, run)],
        "caps": [figures.CapFigures(*row) for row in page_rule_rows.closed_caps(reader, run)],
        **_same_texts(reader, run),
        "rejections": [figures.Rejection(reason.word, reason.slug, reason.pages) for reason in reasons],
        "rejected": [figures.RejectedPage(*row) for row in rejected],
        "unlinked": [figures.UnlinkedPages(*row) for row in unlinked_pages(reader, run)],
        "guessed": [figures.GuessedForm(*row) for row in guessed_forms(reader, run)],
    }
    fields = {name: getattr(plain, name) for name in plain.__dataclass_fields__}
    return Figures(**{**fields, **changes})


def _by_domain(links: list[BrokenLink], domains: Mapping[int, DomainRow]) -> dict[str, int]:
    """The number of different broken targets that each quality domain links to, most first."""
    counts = Counter(domains[link.domain_id].domain for link in links)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _some_of_each(links: list[BrokenLink]) -> list[BrokenLink]:
    """The first few links of each of the domains with the most."""
    counts = Counter(link.domain_id for link in links)
    worst = {domain for domain, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:FIXABLE_DOMAINS]}
    kept = []
    shown: Counter[int] = Counter()
    for link in links:
        if link.domain_id in worst and shown[link.domain_id] < FIXABLE_PER_DOMAIN:
            shown[link.domain_id] += 1
            kept.append(link)
    return kept


def _moved(
    reader: MapReader, links: list[BrokenLink], domains: Mapping[int, DomainRow], most_links: int | None
) -> list[FixableLink]:
    most = sorted(links, key=lambda link: (-link.pages, domains[link.domain_id].domain, link.target))[:most_links]
    return _fixable(reader, most, domains, broken_links.moved_to(reader, {link.target for link in most}))


def _fixable(
    reader: MapReader,
    links: list[BrokenLink],
    domains: Mapping[int, DomainRow],
    targets: Mapping[int, int],
) -> list[FixableLink]:
    wanted = {page for link in links for page in (link.target, *link.examples)} | set(targets.values())
    urls = urls_of(reader, wanted)
    return [
        FixableLink(
            domain=domains[link.domain_id].domain,
            url=urls[link.target][0],
            status=urls[link.target][2],
            target=urls[targets[link.target]][0] if link.target in targets else None,
            pages=link.pages,
            examples=tuple(urls[page][0] for page in link.examples),
            why=reason_words(urls[link.target][1], urls[link.target][3]),
        )
        for link in links
    ]
