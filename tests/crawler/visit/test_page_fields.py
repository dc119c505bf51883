"""User-defined fields: CSS and XPath, per domain or page type, of pages as they are."""

from __future__ import annotations

import pytest

from crawler.model.settings import Config, ExtractRule, PageTypeRule
from crawler.rules.field_rules import FieldRules
from crawler.visit.page_fields import LONGEST_FIELD, MOST_VALUES, field_fault, fields_of

PAGE = b"""<!doctype html><title>Green</title><article><span class=author>Jo  <b>Leaf</b></span>
<span class=author>Ann Stem</span><span class=author>Jo Leaf</span>
<time datetime=2024-05-01>May</time><p>One</p><p>Two</p>"""


def found(selector: str, body: bytes = PAGE) -> tuple[str, ...] | None:
    return fields_of(body, "text/html; charset=utf-8", [ExtractRule("it", selector)]).get("it")


@pytest.mark.parametrize(
    ("selector", "values"),
    [
        ("span.author", ("Jo Leaf", "Ann Stem")),  # the text of elements, each once
        ("time::attr(datetime)", ("2024-05-01",)),
        ("span.author::text", ("Jo", "Ann Stem", "Jo Leaf")),
        ("//article/p[1]", ("One",)),
        ("//time/@datetime", ("2024-05-01",)),
        ("(//p)[last()]", ("Two",)),
        ("string(//title)", None),  # no XPath of ours: it begins with a name, and is no CSS that matches either
        ("div.none", None),
    ],
)
def test_a_selector_gives_what_it_says(selector: str, values: tuple[str, ...] | None) -> None:
    if selector.startswith("string"):
        assert field_fault(selector)
    else:
        assert found(selector) == values


def test_the_first_rule_of_a_name_that_finds_something_counts() -> None:
    rules = [ExtractRule("author", "div.none"), ExtractRule("author", "span.author"), ExtractRule("author", "p")]
    assert fields_of(PAGE, None, rules) == {"author": ("Jo Leaf", "Ann Stem")}


def test_values_are_few_and_short_whatever_the_page_holds() -> None:
    values = found("p", b"".join(b"<p>%d %b</p>" % (number, b"x" * 5000) for number in range(500))) or ()
    assert len(values) == MOST_VALUES
    assert all(len(value) <= LONGEST_FIELD for value in values)


@pytest.mark.parametrize("body", [b"", b"\0\0", b"\xff\xfe<", b"<p", b"<p>" * 5000])
def test_a_page_never_fails_for_a_field(body: bytes) -> None:
    assert found("p.none", body) is None


@pytest.mark.parametrize("selector", ["span[", "//p[", "p::attr(", "..", "//p[foo()]"])
def test_a_faulty_selector_is_told(selector: str) -> None:
    assert field_fault(selector)


def test_rules_concern_pages_by_domain_and_type() -> None:
    rules = FieldRules(
        Config(
            page_types=(PageTypeRule("post", r"/blog/"),),
            extract=(
                ExtractRule("everywhere", "h1"),
                ExtractRule("tea", "h1", domain="*.tea.test"),
                ExtractRule("post", "h1", page_type="post"),
                ExtractRule("tea-post", "h1", domain="tea.test", page_type="post"),
            ),
        )
    )

    def names(domain: str, key: str) -> list[str]:
        return [rule.name for rule in rules.of(domain, key)]

    assert names("tea.test", "https://tea.test/blog/1") == ["everywhere", "tea", "post", "tea-post"]
    assert names("www2.tea.test", "https://www2.tea.test/x") == ["everywhere", "tea"]
    assert names("a.test", "https://a.test/blog/1") == ["everywhere", "post"]
    assert FieldRules(Config()).of("a.test", "https://a.test/") == ()
