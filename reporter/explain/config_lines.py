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


class Ruling(TypedDict):
    """Members that the explanations of URLs and of domains share."""

    domain: str
    klass: str
    rule: str | None
    rule_list: str | None
    rule_line: int | None
    config: str | None


def ruling(config: Config, domain: str) -> Ruling:
    """The class of a domain, and the entry that gives it."""
    verdict = Classifier(config).classify(domain)
    rule_list = LIST_NAMES.get(verdict.klass)
    return Ruling(
        domain=domain,
        klass=str(verdict.klass),
        rule=verdict.rule,
        rule_list=rule_list,
        rule_line=line_of(config.source, rule_list, verdict.rule) if rule_list and verdict.rule else None,
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
    table = None
    for number, line in enumerate(text.splitlines(), 1):
        if header := _TABLE.match(line):
            table = header[1]
        elif _OTHER_TABLE.match(line):
            table = None
        elif table == list_name and (found := _DOMAIN.match(line)) and _pattern(found[1] or found[2] or "") == pattern:
            return number
    return None


def _pattern(value: str) -> str | None:
    """The pattern as the config keeps it."""
    try:
        return checks.domain_pattern(value)
    except checks.Bad:
        return None
