"""PURE. Which user-defined fields ([[extract]]) are looked for on a page: by its domain and its type."""

from __future__ import annotations

from crawler.model.settings import Config, ExtractRule
from crawler.rules.lists import matches
from crawler.rules.page_rules import PageRules


class FieldRules:
    """The fields of one config."""

    def __init__(self, config: Config) -> None:
        self._rules = config.extract
        self._pages = PageRules(config)
        self._has_types = any(rule.page_type for rule in self._rules)

    def of(self, domain: str, key: str) -> tuple[ExtractRule, ...]:
        """Those that concern this page; of most pages, none: then no tree is made of it."""
        if not self._rules:
            return ()
        page_type = self._pages.type_of(key) if self._has_types else None
        return tuple(
            rule
            for rule in self._rules
            if (not rule.domain or matches(rule.domain, domain)) and (not rule.page_type or rule.page_type == page_type)
        )
