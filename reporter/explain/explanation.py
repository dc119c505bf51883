"""The reasons for a URL's state in the map, and the changes that would make it crawled.

    explain(config: Config, database: MapPlace | None, url: str) -> Explanation
    Explanation.text() -> str       for people: fits a screen, ends with a newline
    Explanation.json() -> str       for machines: `"v": 1`, described in docs/outputs.md, ends with a newline

`database` may be None or not exist (yet): then the explanation is that of the config alone. Raises UrlError
(`crawler.model.urls`) for a text that is no http(s) URL, and NotAMap (`crawler.database.map_errors`) for a file that is
no map.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from crawler.database.presence import is_there
from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.settings import Config
from crawler.model.states import PageState
from crawler.model.urls import domain_of, normalize, wire_of
from crawler.rules.lists import Classifier, DomainClass
from crawler.rules.page_rules import PageRules
from crawler.rules.traps import family_of, shape_error
from crawler.visit import robots
from reporter.explain.config_lines import ruling
from reporter.explain.facts import Cap, Explanation, LinkHere, OriginDepth, PageFacts, PathStep, Revisit, Robots
from reporter.explain.remedies import advise
from reporter.explain.shortest_path import shortest_path
from reporter.explain.turn import Turn, turn_of
from reporter.near_duplicates import is_near
from reporter.queries import discovery_rows, fact_rows, one_page, overview, page_rule_rows, waiting_line
from reporter.queries.link_texts import link_contexts
from reporter.queries.referrers import LINK_WORDS
from reporter.queries.rows import DomainRow, PageRow

_LINKS = 20  # pages that link here, named at most
_PATHS = 50  # origins whose path is searched


def explain(config: Config, database: MapPlace | None, url: str, *, is_uncut: bool = False) -> Explanation:
    """Everything about one URL; with `is_uncut` all pages that link there."""
    key = normalize(url, config.crawler.tracking_parameters)
    if database is None or not is_there(database):
        return _explain(config, None, url, key, is_uncut)
    with open_map(database) as reader:
        return _explain(config, reader, url, key, is_uncut)


def _explain(config: Config, reader: MapReader | None, url: str, key: str, is_uncut: bool) -> Explanation:
    domain = domain_of(key)
    page = one_page.page_by_key(reader, key) if reader else None
    row = one_page.domain_by_name(reader, domain) if reader else None
    runs = overview.runs(reader) if reader else []
    wire = (page.wire_url or key) if page else wire_of(url)
    family = family_of(key, config.traps)
    verdict = Classifier(config).classify(domain)
    rules = PageRules(config)
    links, total = _links_here(reader, page, None if is_uncut else _LINKS)
    following = discovery_rows.next_page_of(reader, page.id) if reader and page else None
    entry = discovery_rows.sitemap_entry(reader, page.id) if reader and page else None
    facts = Explanation(
        url=url,
        key=key,
        wire=wire,
        **ruling(config, domain, key),
        class_in_map=(page.klass if page and page.klass else row[0].klass) if row else None,
        is_known=page is not None,
        newest_run=runs[-1].id if runs else None,
        state=page.state if page else None,
        status=page.status_code if page else None,
        error=page.error_message if page else None,
        validation=page.validation if page else None,
        rejection_reason=page.rejection_reason if page else None,
        title=page.title if page else None,
        content_type=page.content_type if page else None,
        truncated=bool(page and page.truncated),
        visited_at=page.visited_at if page else None,
        visited_run=page.visited_run if page else None,
        discovered_at=page.discovered_at if page else None,
        first_run=page.discovered_run if page else None,
        last_run=page.seen_run if page else None,
        redirect_to=_url_of(reader, page.redirect_to) if page else None,
        redirects_from_here=_redirects(reader, page),
        depths=_depths(reader, page),
        max_depth=config.crawler.max_depth,
        robots=_robots(config, row, wire),
        trap=shape_error(key, config.traps),
        family=family.name if family else None,
        family_closed=one_page.closed_family(reader, runs[-1].id, domain, family.name)
        if reader and runs and family
        else None,
        closed=row[0].closed_reason if row and runs and row[0].run == runs[-1].id else None,
        requests=row[0].request_count if row and runs and row[0].run == runs[-1].id else None,
        linked_from=links,
        linked_from_total=total,
        to_be_crawled=(),
        turn=_turn(config, reader, page, row[0] if row else None, runs[-1].id if runs else 0),
        origin=discovery_rows.origin_of(reader, page.id) if reader and page else None,
        in_sitemap=entry[0] if entry else None,
        lastmod=entry[1] if entry else None,
        next_page=following[0] if following else None,
        next_by=following[1] if following else None,
        page_type=page.page_type if page else rules.type_of(key),
        scope=str(scope) if (scope := rules.scope_rule(key, domain)) is not None else None,
        caps=_caps(reader, rules, key, runs[-1].id if runs else 0),
        facts=_page_facts(reader, page, key) if reader and page else None,
        revisit=Revisit(*plan) if reader and page and (plan := one_page.revisit_of(reader, page)) else None,
        is_outside_parts=verdict.klass is DomainClass.QUALITY and verdict.class_of(key) is not verdict.klass,
    )
    return replace(facts, to_be_crawled=tuple(advise(config, facts)))


def _page_facts(reader: MapReader, page: PageRow, key: str) -> PageFacts | None:
    row = fact_rows.facts_of(reader, page.id)
    if row is None:
        return None
    same = fact_rows.same_text(reader, row.run, row.text_hash, _LINKS + 1) if row.text_hash else []
    near: list[int] = []
    if row.simhash is not None:
        number = int(row.simhash, 16)
        others = fact_rows.simhashes(reader, row.run)
        near = [other for other, text, known in others if text != row.text_hash and is_near(number, known)][:_LINKS]
    urls = one_page.urls_of(reader, near)
    return PageFacts(
        *(row.run, row.content_hash, row.stored, row.noarchive, row.bytes, row.description, row.language),
        *(row.canonical, row.heading, row.link_count),
        same_text=tuple(url for url in same if url != key)[:_LINKS],
        near_text=tuple(sorted(urls[other][0] for other in near)),
        fields=fact_rows.fields_of_page(reader, page.id),
    )


def _caps(reader: MapReader | None, rules: PageRules, key: str, run: int) -> tuple[Cap, ...]:
    return tuple(
        Cap(
            *(unit.rule.name, unit.rule.per, unit.value, unit.rule.max_pages),
            page_rule_rows.cap_visits(reader, unit.number, run) if reader else 0,
        )
        for unit in rules.caps_of(key)
    )


def _turn(
    config: Config, reader: MapReader | None, page: PageRow | None, domain: DomainRow | None, run: int
) -> Turn | None:
    """When a page that waits may be visited; None for any other."""
    if reader is None or page is None or domain is None or page.seen_run != run or domain.run != run:
        return None
    if page.state not in (PageState.QUEUED, PageState.REQUEST_LIMIT_HIT):
        return None
    return turn_of(
        run,
        is_open=page.state == PageState.QUEUED,
        before=waiting_line.pages_before(reader, page),
        steps=waiting_line.steps_inside(reader, page),
        budget=config.crawler.budget(is_quality=domain.klass == "quality"),
        requests=domain.request_count,
        visited=waiting_line.pages_visited(reader, page.domain_id, run),
    )


def _url_of(reader: MapReader | None, page: int | None) -> str | None:
    if reader is None or page is None:
        return None
    found = one_page.page_by_id(reader, page)
    return found.url if found else None


def _redirects(reader: MapReader | None, page: PageRow | None) -> tuple[str, ...]:
    """The recorded redirects from here, one after the other; a loop ends with the page it returns to."""
    chain: list[str] = []
    passed: set[int] = set()
    while reader and page and page.redirect_to is not None and page.id not in passed and len(chain) < 20:
        passed.add(page.id)
        page = one_page.page_by_id(reader, page.redirect_to)
        if page is not None:
            chain.append(page.url)
    return tuple(chain)


def _depths(reader: MapReader | None, page: PageRow | None) -> tuple[OriginDepth, ...]:
    if reader is None or page is None:
        return ()
    answer: list[OriginDepth] = []
    for number, pattern, depth in one_page.depths_of(reader, page.id):
        steps = shortest_path(reader, page, number, pattern, depth) if len(answer) < _PATHS else None
        urls = one_page.urls_of(reader, (step.page for step in steps or ()))
        path = tuple(PathStep(urls[step.page][0], step.depth, step.via) for step in steps or ())
        answer.append(OriginDepth(pattern, depth, path))
    return tuple(answer)


def _links_here(reader: MapReader | None, page: PageRow | None, most: int | None) -> tuple[tuple[LinkHere, ...], int]:
    if reader is None or page is None:
        return (), 0
    rows = one_page.linking_pages(reader, page.id, page.domain_id, page.seen_run)
    first = list(itertools.islice(rows, most))
    total = len(first) + sum(1 for _ in rows)
    urls = one_page.urls_of(reader, (number for number, _ in first))
    contexts = link_contexts(reader, ((number, page.id) for number, _ in first))
    here = [(urls[n][0], LINK_WORDS.get(kind, "link"), *contexts.get((n, page.id), ())) for n, kind in first]
    return tuple(LinkHere(*facts) for facts in here), total


def _robots(config: Config, row: tuple[DomainRow, str | None, str | None] | None, wire: str) -> Robots:
    if row is None or row[0].robots_outcome is None:
        return Robots(None, None, None, None, None)
    domain, text, fetched = row
    if domain.robots_outcome == "unreachable":
        return Robots("unreachable", fetched, None, config.crawler.robots_unreachable == "allow", None)
    agent = config.user_agent.crawler_name
    rules = robots.parse(text or "", agent) if domain.robots_outcome == "parsed" else robots.ALLOW_ALL
    return Robots(
        domain.robots_outcome, fetched, rules.rule_for(wire, agent), rules.allows(wire, agent), domain.crawl_delay
    )
