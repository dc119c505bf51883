"""PURE. What a config would do with a URL, and by which rule. No map and no request is needed: `explain` knows more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from crawler.model.settings import Config
from crawler.model.shown_text import counted, plain, text_words, url_words
from crawler.model.urls import domain_of, normalize, wire_of
from crawler.net.addresses import blocked_literal
from crawler.rules.lists import LIST_NAMES, Classifier
from crawler.rules.page_rules import PageRules
from crawler.rules.traps import family_of, shape_error
from reporter.escape import json_text
from reporter.explain.wording import entry_words

VERSION = 1


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that the page counts against: a [[cap]], or the visits of similar URLs."""

    rule: str
    value: str
    visits: int


@dataclass(frozen=True, slots=True)
class UrlCheck:
    """`is_visited`: it would be requested, if a followed link within max-depth leads there; `because` says why not."""

    url: str
    key: str
    wire: str
    domain: str
    klass: str
    rule: str | None
    origins: tuple[str, ...]  # quality entries that it is in: depth 0
    is_visited: bool
    because: str | None
    page_type: str | None
    limits: tuple[Limit, ...]


class UrlChecker:
    """Checks by one config."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._classifier = Classifier(config)
        self._rules = PageRules(config, self._classifier)

    def check(self, url: str) -> UrlCheck:
        """Raises UrlError for a text that is no http(s) URL."""
        key = normalize(url, self._config.crawler.tracking_parameters)
        domain = domain_of(key)
        verdict = self._classifier.classify(domain)
        origins = tuple(self._config.quality[index].name for index in verdict.origins_of(key))
        klass = verdict.class_of(key)
        rule = origins[0] if origins else verdict.rule if klass is verdict.klass else None
        because = self._obstacle(key, domain)
        return UrlCheck(
            *(url, key, wire_of(url), domain, str(klass), rule, origins),
            is_visited=because is None,
            because=because,
            page_type=self._rules.type_of(key),
            limits=self._limits(key) if because is None else (),
        )

    def _obstacle(self, key: str, domain: str) -> str | None:
        verdict = self._classifier.classify(domain)
        if verdict.klass.is_listed:
            return f"{verdict.klass} by [[{LIST_NAMES[verdict.klass]}]] {entry_words(verdict.rule or '')}"
        error = self._rules.scope_error(key, domain) or shape_error(key, self._config.traps)
        if error is None and (reason := blocked_literal(self._config.network, domain)):
            lets_in = "[network] allow-private-addresses or [network.resolve] lets it in"
            return f"address-blocked: {domain} is {reason}; {lets_in}"
        return error

    def _limits(self, key: str) -> tuple[Limit, ...]:
        found = [
            Limit(f"[[cap]] {unit.rule.name}", unit.value, unit.rule.max_pages) for unit in self._rules.caps_of(key)
        ]
        family = family_of(key, self._config.traps)
        return (*found, *([Limit("[traps]", family.name, family.limit)] if family else []))


def as_json(checks: Sequence[UrlCheck]) -> str:
    urls = [{"class" if name == "klass" else name: value for name, value in asdict(each).items()} for each in checks]
    return json_text({"v": VERSION, "kind": "url-check", "urls": urls})


def as_text(checks: Sequence[UrlCheck]) -> str:
    return "\n".join(_text(check) for check in checks)


def _text(check: UrlCheck) -> str:
    by = f", by {entry_words(check.rule)}" if check.rule else ": in none of the lists"
    rows = [
        ("", "would be visited" if check.is_visited else f"would not be visited: {text_words(check.because or '')}")
    ]
    if check.wire != check.key:
        rows.append(("asked for as", url_words(check.wire, 200)))
    rows.append(("class", check.klass + by))
    if check.origins:
        rows.append(("depth", "0 from " + ", ".join(check.origins)))
    if check.page_type:
        rows.append(("page type", check.page_type))
    for limit in check.limits:
        of = f" for {plain(limit.value, 100)}" if limit.value else ""
        rows.append(("limit", f"{limit.rule}: {counted(limit.visits, 'visit')} a run{of}"))
    lines = [url_words(check.key), *(f"  {name:<14}{value}" if name else f"  {value}" for name, value in rows)]
    return "\n".join(lines) + "\n"
