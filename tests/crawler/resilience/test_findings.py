"""Every finding is one sentence with a word that docs/operations.md explains."""

from __future__ import annotations

import inspect

from crawler.resilience import findings
from crawler.resilience.findings import WORDS, Finding
from tests.places import ROOT


def test_every_finding_has_a_word_that_the_page_explains() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    made = []
    for _, function in inspect.getmembers(findings, inspect.isfunction):
        if function.__module__ != findings.__name__:
            continue
        parameters = inspect.signature(function).parameters.values()
        made.append(function(*[1 if each.annotation in ("int", "float") else "x" for each in parameters]))
    assert {finding.word for finding in made} == set(WORDS)
    for finding in made:
        assert isinstance(finding, Finding)
        assert "\n" not in str(finding) and not finding.sentence.endswith("."), "the log ends no line with a full stop"
        assert f"\n| `{finding.word}` |" in page, finding.word
