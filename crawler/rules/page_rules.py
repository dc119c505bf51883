"""PURE. Rules about single pages by their keys: the scope of the crawl, types of pages, caps.

A page is looked at once, when it becomes known. `has_…` say whether there are such rules at all; where there are none,
nothing is compiled and no page is looked at.

A cap is a family of pages (`crawler.rules.traps`): the scheduler counts the visits of each unit (one value of the
captured group), and closes the unit by a recorded decision. A page may be under several caps; each of them holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from crawler.model.records import FamilyEvent
from crawler.model.settings import CapRule, Config, ScopeSettings
from crawler.model.shown_text import counted, cut
from crawler.model.states import slug_of
from crawler.model.urls import hash64
from crawler.rules.lists import Classifier
from crawler.rules.patterns import key_pattern

OUT_OF_SCOPE = "out-of-scope"
CAP_REACHED = "cap-reached"


class ScopeRule(NamedTuple):
    """The rule that puts a page out of scope. `pattern` None: there is an `allow`, and nothing of it matches."""

    place: str  # [scope], or [[quality]] and its name
    pattern: str | None

    def __str__(self) -> str:
        if self.pattern is None:
            return f"no allow of {self.place} matches"
        return f'denied by {self.place} deny = "{self.pattern}"'


class CapUnit(NamedTuple):
    """What a cap counts together: one value of its group, or all that it matches. `number`: as closed families have."""

    rule: CapRule
    value: str

    @property
    def family(self) -> str:
        return f"cap {self.rule.name}\n{self.value}"

    @property
    def number(self) -> int:
        return hash64(f"\n{self.family}")

    @property
    def error(self) -> str:
        of = f" for {cut(self.value, 120)}" if self.rule.per else ""
        return f"{CAP_REACHED}: {counted(self.rule.max_pages, 'visit')} under the cap {self.rule.name}{of} in this run"


class PageRules:
    """The rules of one config."""

    def __init__(self, config: Config, classifier: Classifier | None = None) -> None:
        self._config = config
        self._classifier = classifier or Classifier(config)
        nothing = ScopeSettings()
        self.has_scope = config.scope != nothing or any(entry.scope != nothing for entry in config.quality)
        self.has_caps = bool(config.caps)
        self.has_types = bool(config.page_types)
        self.has_any = self.has_scope or self.has_caps or self.has_types

    def scope_rule(self, key: str, domain: str) -> ScopeRule | None:
        """The rule that puts this page out of scope; None: it is in scope. A `deny` beats every `allow`."""
        if not self.has_scope:
            return None
        scopes = [("[scope]", self._config.scope)]
        for index in self._classifier.classify(domain).origins_of(key):
            entry = self._config.quality[index]
            scopes.append((f"[[quality]] {entry.name}", entry.scope))
        for place, scope in scopes:
            for pattern in scope.deny:
                if key_pattern(pattern).matches(key):
                    return ScopeRule(place, pattern)
        for place, scope in scopes:
            if scope.allow and not any(key_pattern(pattern).matches(key) for pattern in scope.allow):
                return ScopeRule(place, None)
        return None

    def scope_error(self, key: str, domain: str) -> str | None:
        """The error message of a page that is out of scope, or None."""
        rule = self.scope_rule(key, domain)
        return f"{OUT_OF_SCOPE}: {rule}" if rule is not None else None

    def type_of(self, key: str) -> str | None:
        """The type of this page: that of the first pattern that matches."""
        for rule in self._config.page_types:
            if key_pattern(rule.pattern).matches(key):
                return rule.name
        return None

    def caps_of(self, key: str) -> tuple[CapUnit, ...]:
        """The units of caps that this page counts in."""
        found = []
        for rule in self._config.caps:
            value = key_pattern(rule.pattern).captured(key, rule.per)
            if value is not None:
                found.append(CapUnit(rule, value))
        return tuple(found)


def is_out_of_scope(error: str | None) -> bool:
    return error is not None and error.startswith(OUT_OF_SCOPE)


def rule_text(rule: CapRule) -> str:
    """A cap as its recorded decisions name it: what it matches and counts together."""
    return f"{rule.per} {rule.pattern}"


def is_cap(event: FamilyEvent) -> bool:
    return slug_of(event.error) == CAP_REACHED


def is_cap_in_force(event: FamilyEvent, caps: Iterable[CapRule]) -> bool:
    """Would one of these caps have closed the unit too?"""
    name = event.family.partition("\n")[0]
    return any(
        name == f"cap {rule.name}" and event.rule == rule_text(rule) and rule.max_pages <= event.limit for rule in caps
    )


__all__ = [
    "CAP_REACHED",
    "OUT_OF_SCOPE",
    "CapUnit",
    "PageRules",
    "ScopeRule",
    "is_cap",
    "is_cap_in_force",
    "is_out_of_scope",
    "rule_text",
]
