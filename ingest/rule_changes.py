"""Rules that changed since a map was built: their names, and whether anything in the map can differ under them.

`can_differ` says no only where that is certain. A blacklist entry for a domain that no page is on changes nothing; a
longer Crawl-delay allowance changes nothing where no domain was closed for its delay. `max-depth` always counts: the
map stores distances in a form that depends on it.
"""

from __future__ import annotations

from crawler.model import recorded_settings
from crawler.model.recorded_settings import Values
from crawler.model.settings import Config
from crawler.model.urls import domain_of
from crawler.rules.lists import Classifier, Part
from crawler.rules.page_rules import PageRules
from crawler.rules.traps import family_of, shape_error
from ingest.writing.store import Store

# Names of the settings that `Config.map_hash` covers, traps.* aside.
_MAP_RULES = {
    *("crawler.max-depth", "crawler.max-domain-requests", "crawler.max-crawl-delay", "crawler.obey-nofollow"),
    *("crawler.tracking-parameters", "crawler.discovered-domain-requests", "quality", "blacklist", "stub"),
    *("validation.follow-rejected", "discovery.elsewhere"),
    *("scope.allow", "scope.deny", "page-type", "cap"),
}
_PAGE_RULES = {"scope.allow", "scope.deny", "page-type"}
_CLOSURES = {
    "crawler.max-domain-requests": "request-limit",
    "crawler.max-crawl-delay": "crawl-delay",
}


def changed_rules(before: Values, config: Config) -> list[str]:
    """One line for each changed setting that decides the map: `crawler.max-depth: 2 → 3`."""
    now = recorded_settings.flat(config)
    return recorded_settings.changes(*({name: values[name] for name in _map_rules(values)} for values in (before, now)))


def can_differ(store: Store, before: Values, config: Config) -> bool:
    """May a map built of the same results under `config` differ from this one, which was built under `before`?"""
    now = recorded_settings.flat(config)
    changed = {name for name in _map_rules(before) | _map_rules(now) if before.get(name) != now.get(name)}
    was = recorded_settings.restored(before, config)
    if changed & {"blacklist", "stub"} and _classes_differ(store, was, config):
        return True
    for name in changed & _CLOSURES.keys():
        # A lower limit may put an old closure into force again, of which the map has no trace.
        if now[name] < before.get(name, 0) or store.has_closure(_CLOSURES[name]):
            return True
    if any(name.startswith("traps.") for name in changed) and (store.has_traps() or _shapes_differ(store, was, config)):
        return True
    if changed & _PAGE_RULES and _page_rules_differ(store, was, config):
        return True
    decided = {"blacklist", "stub", *_CLOSURES, *_PAGE_RULES}
    return any(name not in decided and not name.startswith("traps.") for name in changed)


def _map_rules(values: Values) -> set[str]:
    return {name for name in values if name in _MAP_RULES or name.startswith("traps.")}


def _classes_differ(store: Store, was: Config, now: Config) -> bool:
    before, after = Classifier(was), Classifier(now)
    return any(_class(before, name) != _class(after, name) for name in store.domain_names())


def _class(classifier: Classifier, domain: str) -> tuple[str, tuple[int, ...], tuple[Part, ...]]:
    verdict = classifier.classify(domain)
    return verdict.klass, verdict.origins, verdict.parts


def _page_rules_differ(store: Store, was: Config, now: Config) -> bool:
    """Is a page of the map in scope under one of them alone, or of another type?"""
    before, after = PageRules(was), PageRules(now)
    for key in store.page_keys():
        domain = domain_of(key)
        if before.scope_error(key, domain) != after.scope_error(key, domain):
            return True
        if before.type_of(key) != after.type_of(key):
            return True
    return False


def _shapes_differ(store: Store, was: Config, now: Config) -> bool:
    for key in store.page_keys():
        if shape_error(key, was.traps) != shape_error(key, now.traps):
            return True
        before, after = family_of(key, was.traps), family_of(key, now.traps)
        if (before and before.name) != (after and after.name):
            return True
    return False
