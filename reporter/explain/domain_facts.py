"""PURE. Everything that is known about one domain, as a record; text and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import PurePath
from typing import Any

from crawler.model.shown_text import counted, domain_words, plain, unicode_domain
from reporter.escape import json_text
from reporter.explain.wording import entry_words
from reporter.figures import Referrer, is_listed, whole_seconds

VERSION = 1
_SITEMAPS = 8  # of a domain, or its lists or archives, that are named

_COMMANDS = {
    "discovered": ("accept", "reject", "stub"),
    "stubbed": ("accept", "reject"),
    "blacklisted": ("accept", "stub"),
}


@dataclass(frozen=True, slots=True)
class DomainExplanation:
    """Everything that is known. What only a domain in the map has is None, 0 or empty for one that was never seen."""

    domain: str
    klass: str
    rule: str | None  # the pattern that decides the class
    rule_list: str | None  # quality | blacklist | stub
    rule_line: int | None
    config: str | None
    note: str
    tags: tuple[str, ...]
    newest_run: int | None = None
    is_known: bool = False
    class_in_map: str | None = None
    last_run: int | None = None
    title: str | None = None
    depth: int | None = None
    crawled: int = 0
    pages: int = 0
    why: tuple[str, ...] = ()
    requests: int = 0
    closed: str | None = None
    robots: str | None = None
    robots_at: str | None = None
    crawl_delay: float | None = None
    quality_domains: int = 0
    links: int = 0
    referrers: tuple[Referrer, ...] = ()
    sitemaps: tuple[str, ...] = ()  # in words, those that were read first
    unlinked: int = 0  # pages that only a sitemap names
    lists: tuple[str, ...] = ()  # lists over several pages, in words
    archives: tuple[str, ...] = ()  # forms of archives that its links show, in words
    breaker: str | None = None  # the state of its circuit breaker and why, if it opened in the newest run

    def known(self, **facts: Any) -> DomainExplanation:
        """The same with facts of the map."""
        return replace(self, **facts)

    def json(self) -> str:
        fields = asdict(self)
        fields["class"] = fields.pop("klass")
        shape = {"v": VERSION, "kind": "domain-explanation", "unicode": unicode_domain(self.domain), **fields}
        return json_text(shape)

    def text(self, *, is_uncut: bool = False) -> str:
        lines = [domain_words(self.domain)]
        for name, value in _rows(self, None if is_uncut else _SITEMAPS):
            first, *others = value.split("\n")
            lines += [f"  {name:<14}{first}", *(f"  {'':<14}{other}" for other in others)]
        config = PurePath(self.config).name if self.config else "my.toml"
        lines += ["", *(f"  {line}" for line in _next(self, config))]
        return "\n".join(lines) + "\n"


def _rows(facts: DomainExplanation, most: int | None) -> list[tuple[str, str]]:
    rows = [("class", _class_words(facts))]
    if facts.note or facts.tags:
        rows.append(("note", " ".join([plain(facts.note), *(f"[{tag}]" for tag in facts.tags)]).strip()))
    if not facts.is_known:
        return [*rows, ("pages", "never seen" if facts.newest_run else "never seen: nothing has been crawled yet")]
    if facts.title:
        rows.append(("title", plain(facts.title, 100)))
    if facts.last_run == facts.newest_run:
        crawled = f"{facts.crawled:,} of {counted(facts.pages, 'page')} crawled"
        rows.append(("pages", "; ".join([crawled, *facts.why])))
    else:
        rows.append(("pages", f"last seen in run {facts.last_run}; run {facts.newest_run} has not seen it"))
    rows.append(("depth", "none: no followed path leads there" if facts.depth is None else f"{facts.depth}"))
    if facts.requests or facts.closed:
        closed = f"; closed early: {plain(facts.closed)}" if facts.closed else ""
        rows.append(("requests", f"{facts.requests:,} in run {facts.newest_run}{closed}"))
    if facts.breaker:
        rows.append(("breaker", plain(facts.breaker, 200)))
    rows.append(("robots.txt", _robots_words(facts)))
    if facts.sitemaps:
        rows.append(("sitemaps", _sitemap_words(facts, most)))
    for name, lines in (("lists", facts.lists), ("archives", facts.archives)):
        if lines:
            rows.append((name, "\n".join(_some(lines, most))))
    rows.append(("linked from", _links_words(facts)))
    return rows


def _some(lines: Sequence[str], most: int | None) -> list[str]:
    shown = [plain(line, 200) for line in lines[:most]]
    rest = len(lines) - len(shown)
    return [*shown, f"... and {rest:,} more: explain --all"] if rest else shown


def _sitemap_words(facts: DomainExplanation, most: int | None) -> str:
    lines = _some(facts.sitemaps, most)
    if facts.unlinked:
        lines.append(f"{counted(facts.unlinked, 'page')} of the domain in no link, only there")
    return "\n".join(lines)


def _class_words(facts: DomainExplanation) -> str:
    if facts.rule is None:
        words = f"{facts.klass}: it is in none of the lists"
    else:
        line = f":{facts.rule_line}" if facts.rule_line else ""
        where = f" ({PurePath(facts.config).name}{line})" if facts.config else ""
        words = f"{facts.klass}, by [[{facts.rule_list}]] {entry_words(facts.rule)}{where}"
    if facts.class_in_map and facts.class_in_map != facts.klass:
        words += f"\nin the map it is {facts.class_in_map}: the map was built under another config"
    return words


def _robots_words(facts: DomainExplanation) -> str:
    if facts.robots is None:
        return "never requested: the domain is not visited" if is_listed(facts.klass) else "not requested yet"
    words = {"parsed": "read", "allow-all": "there is none: everything is allowed", "unreachable": "could not be read"}
    delay = f"; Crawl-delay {facts.crawl_delay:g} s" if facts.crawl_delay else ""
    at = f" (fetched {whole_seconds(plain(facts.robots_at))})" if facts.robots_at else ""
    return f"{words.get(facts.robots, plain(facts.robots))}{delay}{at}"


def _links_words(facts: DomainExplanation) -> str:
    if not facts.quality_domains:
        return "no other quality domain"
    lines = [f"{counted(facts.quality_domains, 'quality domain')}, {counted(facts.links, 'link')}"]
    lines += [each.words for each in facts.referrers]
    return "\n".join(lines)


def _next(facts: DomainExplanation, config: str) -> list[str]:
    commands = _COMMANDS.get(facts.klass)
    if commands is None:
        return ["It is crawled as far as its budget reaches. For one of its pages: sumi-ripple explain URL " + config]
    if facts.rule is not None and facts.rule != facts.domain:
        return [f'To decide otherwise, "{facts.rule}" must leave [[{facts.rule_list}]] first.']
    return [f"To decide: sumi-ripple {'|'.join(commands)} {facts.domain} {config}"]
