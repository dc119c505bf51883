"""Why is this URL as it is in the map, and what would have to change for it to be crawled?

    explain(config: Config, database: Path | None, url: str) -> Explanation
    Explanation.text() -> str       for people: fits a screen, ends with a newline
    Explanation.json() -> str       for machines: `"v": 1`, described in docs/outputs.md, ends with a newline

`database` may be None or not exist (yet): then it is said what the config alone would do. Raises
`crawler.model.urls.UrlError` for what is no http(s) URL and `reporter.queries.NotAMap` for a file that is no map.
"""

from __future__ import annotations

import itertools
import sqlite3
from dataclasses import asdict, dataclass
from pathlib import Path

from crawler.model.settings import Config
from crawler.model.urls import domain_of, normalize, wire_of
from crawler.rules.lists import Classifier
from crawler.rules.traps import family_of, shape_error
from crawler.visit import robots
from reporter import queries
from reporter.escape import counted, plain
from reporter.explain.config_lines import line_of
from reporter.explain.remedies import advise
from reporter.explain.shortest_path import shortest_path
from reporter.figures import is_listed, whole_seconds
from reporter.stats import json_text

VERSION = 1
_LINKS = 20  # pages that link here, in full
_LINKS_SHOWN = 6  # and on a screen
_PATHS = 50  # origins whose path is looked for
_WORDS = {queries.LINK_FOLLOWED: "link", queries.LINK_NOT_FOLLOWED: "nofollow", queries.LINK_REDIRECT: "redirect"}


@dataclass(frozen=True, slots=True)
class PathStep:
    url: str
    depth: int
    via: str  # start | link | redirect


@dataclass(frozen=True, slots=True)
class OriginDepth:
    """A page's depth for one quality entry. `path` is empty where the map no longer has a way."""

    origin: str
    depth: int
    path: tuple[PathStep, ...]


@dataclass(frozen=True, slots=True)
class Robots:
    """`outcome` is domain_states.robots_outcome (None: never asked); `rule` is the line that decides, if any does."""

    outcome: str | None
    fetched_at: str | None
    rule: str | None
    allowed: bool | None
    crawl_delay: float | None


@dataclass(frozen=True, slots=True)
class LinkHere:
    url: str
    kind: str  # link | nofollow | redirect


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that is known. What only a page in the map has is None or empty for a URL never seen."""

    url: str
    key: str
    wire: str
    domain: str
    klass: str
    rule: str | None  # the pattern that decides the class
    rule_list: str | None  # quality | blacklist | stub
    rule_line: int | None
    config: str | None
    class_in_map: str | None
    is_known: bool
    newest_run: int | None
    state: str | None
    status: int | None
    error: str | None
    title: str | None
    content_type: str | None
    visited_at: str | None
    visited_run: int | None
    discovered_at: str | None
    first_run: int | None
    last_run: int | None
    redirect_to: str | None
    redirects_from_here: tuple[str, ...]
    depths: tuple[OriginDepth, ...]
    max_depth: int
    robots: Robots
    trap: str | None
    family: str | None
    family_closed: str | None  # the error that new pages of its family get
    closed: str | None
    requests: int | None
    linked_from: tuple[LinkHere, ...]
    linked_from_total: int
    to_be_crawled: tuple[str, ...]

    def json(self) -> str:
        fields = asdict(self)
        fields["class"] = fields.pop("klass")
        return json_text({"v": VERSION, "kind": "explanation", **fields})

    def text(self) -> str:
        return _text(self)


def explain(config: Config, database: Path | None, url: str) -> Explanation:
    """All about one URL."""
    key = normalize(url, config.crawler.tracking_parameters)
    if database is None or not Path(database).exists():
        return _explain(config, None, url, key)
    with queries.open_map(Path(database)) as connection:
        return _explain(config, connection, url, key)


def _explain(config: Config, connection: sqlite3.Connection | None, url: str, key: str) -> Explanation:
    domain = domain_of(key)
    verdict = Classifier(config).classify(domain)
    rule_list = {"quality": "quality", "blacklisted": "blacklist", "stubbed": "stub"}.get(verdict.klass)
    page = queries.page_by_key(connection, key) if connection else None
    row = queries.domain_by_name(connection, domain) if connection else None
    runs = queries.runs(connection) if connection else []
    wire = (page.wire_url or key) if page else wire_of(url)
    family = family_of(key, config.traps)
    links, total = _links_here(connection, page)
    facts = Explanation(
        url=url,
        key=key,
        wire=wire,
        domain=domain,
        klass=str(verdict.klass),
        rule=verdict.rule,
        rule_list=rule_list,
        rule_line=line_of(config.source, rule_list, verdict.rule) if rule_list and verdict.rule else None,
        config=str(config.source) if config.source else None,
        class_in_map=row[0].klass if row else None,
        is_known=page is not None,
        newest_run=runs[-1].id if runs else None,
        state=page.state if page else None,
        status=page.status_code if page else None,
        error=page.error_message if page else None,
        title=page.title if page else None,
        content_type=page.content_type if page else None,
        visited_at=page.visited_at if page else None,
        visited_run=page.visited_run if page else None,
        discovered_at=page.discovered_at if page else None,
        first_run=page.discovered_run if page else None,
        last_run=page.seen_run if page else None,
        redirect_to=_url_of(connection, page.redirect_to) if page else None,
        redirects_from_here=_redirects(connection, page),
        depths=_depths(connection, page),
        max_depth=config.crawler.max_depth,
        robots=_robots(config, row, wire),
        trap=shape_error(key, config.traps),
        family=family.name if family else None,
        family_closed=queries.closed_family(connection, runs[-1].id, domain, family.name)
        if connection and runs and family
        else None,
        closed=row[0].closed_reason if row and runs and row[0].run == runs[-1].id else None,
        requests=row[0].request_count if row and runs and row[0].run == runs[-1].id else None,
        linked_from=links,
        linked_from_total=total,
        to_be_crawled=(),
    )
    return _with_advice(facts, config)


def _with_advice(facts: Explanation, config: Config) -> Explanation:
    fields = {name: getattr(facts, name) for name in Explanation.__dataclass_fields__}
    fields["to_be_crawled"] = tuple(advise(config, facts))
    return Explanation(**fields)


def _url_of(connection: sqlite3.Connection | None, page: int | None) -> str | None:
    if connection is None or page is None:
        return None
    found = queries.page_by_id(connection, page)
    return found.url if found else None


def _redirects(connection: sqlite3.Connection | None, page: queries.PageRow | None) -> tuple[str, ...]:
    """Where the recorded redirects lead from here, one after the other; a loop ends with the page it returns to."""
    chain: list[str] = []
    passed: set[int] = set()
    while connection and page and page.redirect_to is not None and page.id not in passed and len(chain) < 20:
        passed.add(page.id)
        page = queries.page_by_id(connection, page.redirect_to)
        if page is not None:
            chain.append(page.url)
    return tuple(chain)


def _depths(connection: sqlite3.Connection | None, page: queries.PageRow | None) -> tuple[OriginDepth, ...]:
    if connection is None or page is None:
        return ()
    answer: list[OriginDepth] = []
    for number, pattern, depth in queries.depths_of(connection, page.id):
        steps = shortest_path(connection, page, number, pattern, depth) if len(answer) < _PATHS else None
        urls = queries.urls_of(connection, (step.page for step in steps or ()))
        path = tuple(PathStep(urls[step.page][0], step.depth, step.via) for step in steps or ())
        answer.append(OriginDepth(pattern, depth, path))
    return tuple(answer)


def _links_here(
    connection: sqlite3.Connection | None, page: queries.PageRow | None
) -> tuple[tuple[LinkHere, ...], int]:
    if connection is None or page is None:
        return (), 0
    rows = queries.linking_pages(connection, page.id, page.domain_id, page.seen_run)
    first = list(itertools.islice(rows, _LINKS))
    total = len(first) + sum(1 for _ in rows)
    urls = queries.urls_of(connection, (number for number, _ in first))
    return tuple(LinkHere(urls[number][0], _WORDS.get(kind, "link")) for number, kind in first), total


def _robots(config: Config, row: tuple[queries.DomainRow, str | None, str | None] | None, wire: str) -> Robots:
    if row is None or row[0].robots_outcome is None:
        return Robots(None, None, None, None, None)
    domain, text, fetched = row
    if domain.robots_outcome == "unreachable":
        return Robots("unreachable", fetched, None, config.crawler.robots_unreachable == "allow", None)
    rules = robots.parse(text or "") if domain.robots_outcome == "parsed" else robots.ALLOW_ALL
    agent = config.user_agent.crawler_name
    return Robots(
        domain.robots_outcome, fetched, rules.rule_for(wire, agent), rules.allows(wire, agent), domain.crawl_delay
    )


# -- for people -------------------------------------------------------------------------------------------------


def _text(facts: Explanation) -> str:
    rows: list[tuple[str, str]] = []
    if facts.wire != facts.key:
        rows.append(("asked for as", plain(facts.wire, 200)))
    rows.append(("class", _class_words(facts)))
    if facts.is_known:
        rows += _known_rows(facts)
    else:
        rows.append(("state", "never seen" if facts.newest_run else "never seen: nothing has been crawled yet"))
        if facts.trap:
            rows.append(("trap", plain(facts.trap)))
        elif facts.family_closed:
            rows.append(("trap", plain(facts.family_closed)))
    rows.append(("robots.txt", _robots_words(facts)))
    lines = [plain(facts.key)]
    for name, value in rows:
        first, *others = value.split("\n")
        lines.append(f"  {name:<14}{first}")
        lines += [f"  {'':<14}{other}" for other in others]
    lines.append("")
    lines += [f"  {line}" for line in facts.to_be_crawled]
    return "\n".join(lines) + "\n"


def _class_words(facts: Explanation) -> str:
    if facts.rule is None:
        words = f"{facts.klass}: {facts.domain} is in none of the lists"
    else:
        where = ""
        if facts.config:
            line = f":{facts.rule_line}" if facts.rule_line else ""
            where = f" ({Path(facts.config).name}{line})"
        words = f'{facts.klass}, by [[{facts.rule_list}]] domain = "{facts.rule}"{where}'
    if facts.class_in_map and facts.class_in_map != facts.klass:
        words += f"\nin the map it is {facts.class_in_map}: that was drawn under another config"
    return words


def _known_rows(facts: Explanation) -> list[tuple[str, str]]:
    rows = [("state", _state_words(facts))]
    if facts.error:
        rows.append(("error", plain(facts.error, 200)))
    if facts.title:
        rows.append(("title", plain(facts.title, 100)))
    if facts.redirects_from_here:
        rows.append(("redirects to", "\n".join(plain(url, 200) for url in facts.redirects_from_here[:3])))
    seen = f"first in run {facts.first_run}, last in run {facts.last_run}"
    if facts.last_run != facts.newest_run:
        seen += f"; run {facts.newest_run} has not met it"
    rows.append(("seen", seen))
    rows += _depth_rows(facts)
    rows.append(("linked from", _links_words(facts)))
    return rows


def _state_words(facts: Explanation) -> str:
    words = str(facts.state)
    if facts.visited_run is not None:
        words += f" since run {facts.visited_run}"
        if facts.visited_at:
            words += f" ({whole_seconds(plain(facts.visited_at))})"
        if facts.status is not None:
            words += f", HTTP {facts.status}"
    elif facts.discovered_at:
        words += f", found in run {facts.first_run} ({whole_seconds(plain(facts.discovered_at))})"
    return words


def _depth_rows(facts: Explanation) -> list[tuple[str, str]]:
    if not facts.depths:
        return [("depth", "none: no followed way leads here from a quality domain")]
    shown = [f"{entry.depth} from {entry.origin}" for entry in facts.depths[:4]]
    if len(facts.depths) > 4:
        shown.append(f"and from {counted(len(facts.depths) - 4, 'other')}")
    rows = [("depth", ", ".join(shown))]
    nearest = facts.depths[0]
    if nearest.path:
        arrows = {"start": "   ", "link": "-> ", "redirect": "=> "}
        steps = [f"{step.depth}  {arrows[step.via]}{plain(step.url, 200)}" for step in nearest.path]
        if len(steps) > 9:
            steps = [*steps[:4], f"   … {len(steps) - 8} more …", *steps[-4:]]
        rows.append(("shortest way", "\n".join(steps)))
    else:
        rows.append(("shortest way", "not in the map any more: pages on the way have been walked anew"))
    return rows


def _links_words(facts: Explanation) -> str:
    if not facts.linked_from_total:
        return "no page in the map (a seed, or its links are gone)"
    marks = {"link": "", "nofollow": "  (not followed)", "redirect": "  (redirect)"}
    lines = [counted(facts.linked_from_total, "page")]
    lines += [plain(link.url, 200) + marks[link.kind] for link in facts.linked_from[:_LINKS_SHOWN]]
    if facts.linked_from_total > _LINKS_SHOWN:
        lines.append(f"... and {counted(facts.linked_from_total - _LINKS_SHOWN, 'more page')}")
    return "\n".join(lines)


def _robots_words(facts: Explanation) -> str:
    known = facts.robots
    if known.outcome is None:
        return "never asked for: the domain is not visited" if is_listed(facts.klass) else "not asked for yet"
    fetched = f" (fetched {whole_seconds(plain(known.fetched_at))})" if known.fetched_at else ""
    if known.outcome == "unreachable":
        return f"could not be read{fetched}"
    if known.outcome == "allow-all":
        return f"there is none: everything is allowed{fetched}"
    word = "allowed" if known.allowed else "denied"
    by = f" by `{plain(known.rule, 120)}`" if known.rule else ", no rule speaks of it"
    delay = f"; Crawl-delay {known.crawl_delay:g} s" if known.crawl_delay else ""
    return f"{word}{by}{delay}{fetched}"
