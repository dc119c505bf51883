"""The entry of a config file that decides about a domain, and its line, for `explain` to point at."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict

from crawler.config import checks
from crawler.model.settings import Config
from crawler.rules.lists import LIST_NAMES, Classifier

_TABLE = re.compile(r"\s*\[\[\s*[\"']?([A-Za-z-]+)[\"']?\s*\]\]")
_OTHER_TABLE = re.compile(r"\s*\[[^\[]")
_DOMAIN = re.compile(r"""\s*["']?domain["']?\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'([^']*)')""")


_PATH = re.compile(_DOMAIN.pattern.replace("domain", "path"))


class Ruling(TypedDict):
    """Members that the explanations of URLs and of domains share."""

    domain: str
    klass: str
    rule: str | None
    rule_list: str | None
    rule_line: int | None
    config: str | None


def ruling(config: Config, domain: str, key: str | None = None) -> Ruling:
    """The class of a domain, or of one of its pages, and the entry that gives it."""
    verdict = Classifier(config).classify(domain)
    klass, rule = verdict.klass, verdict.rule
    if key is not None and verdict.parts:
        inside = verdict.origins_of(key)
        klass, rule = verdict.class_of(key), config.quality[inside[0]].name if inside else None
    rule_list = LIST_NAMES.get(klass)
    return Ruling(
        domain=domain,
        klass=str(klass),
        rule=rule,
        rule_list=rule_list,
        rule_line=line_of(config.source, rule_list, rule) if rule_list and rule else None,
        config=str(config.source) if config.source else None,
    )


def line_of(source: Path | None, list_name: str, pattern: str) -> int | None:
    """The number (from 1) of the line that puts `pattern` into [[list_name]]; None if it cannot be told."""
    if source is None:
        return None
    try:
        text = source.read_text("utf-8-sig", errors="replace")
    except OSError:
        return None
    table, domain, place, path = None, None, None, ""
    for number, line in enumerate([*text.splitlines(), "[end]"], 1):
        if (header := _TABLE.match(line)) or _OTHER_TABLE.match(line):
            if place is not None and domain is not None and _entry_name(domain, path) == pattern:
                return place
            table, domain, place, path = header[1] if header else None, None, None, ""
        elif table == list_name and (found := _DOMAIN.match(line)):
            domain, place = _pattern(found[1] or found[2] or ""), number
        elif table == list_name and (found := _PATH.match(line)):
            path = found[1] or found[2] or ""
    return None


def _entry_name(domain: str, path: str) -> str:
    """The name of an entry, as depths have it."""
    try:
        return f"{domain}{checks.part_path(path)}/" if path else domain
    except checks.Bad:
        return domain


def _pattern(value: str) -> str | None:
    """The pattern as the config keeps it."""
    try:
        return checks.domain_pattern(value)
    except checks.Bad:
        return None
