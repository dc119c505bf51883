"""Classes of domains (seed 000 §2.3 wildcards, §3.3 classification)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.settings import Config, QualityEntry
from crawler.rules.lists import Classifier, DomainClass, PatternList, Verdict, matches


def config(quality: tuple[str, ...] = (), blacklist: tuple[str, ...] = (), stub: tuple[str, ...] = ()) -> Config:
    return Config(quality=tuple(QualityEntry(domain, ()) for domain in quality), blacklist=blacklist, stub=stub)


# -- §2.3 ----------------------------------------------------------------------------------------------------


def test_section_2_3_the_wildcard_matches_the_bare_domain() -> None:
    assert matches("*.example.com", "example.com")


def test_section_2_3_the_wildcard_matches_a_single_subdomain() -> None:
    assert matches("*.example.com", "blog.example.com")


def test_section_2_3_the_wildcard_matches_nested_subdomains() -> None:
    assert matches("*.example.com", "api.v2.example.com")


@pytest.mark.parametrize("domain", ["notexample.com", "example.com.evil.org", "example.org", "com", "xample.com", ""])
def test_section_2_3_the_wildcard_matches_nothing_else(domain: str) -> None:
    assert not matches("*.example.com", domain)


def test_section_2_3_a_pattern_without_wildcard_matches_only_itself() -> None:
    assert matches("example.com", "example.com")
    assert not matches("example.com", "blog.example.com")
    assert not matches("blog.example.com", "example.com")


def test_a_pattern_written_with_www_means_the_domain_that_keys_have() -> None:
    assert matches("www.example.com", "example.com")
    assert matches("example.com", "www.example.com")
    assert not matches("www.example.com", "blog.example.com")
    assert matches("*.www.example.com", "example.com")
    assert matches("*.www.example.com", "a.www.example.com")
    assert not matches("*.www.example.com", "a.example.com")
    assert matches("www.com", "www.com")
    assert not matches("www.com", "com")


# -- §3.3 ----------------------------------------------------------------------------------------------------


def test_section_3_3_rule_1_the_blacklist_is_checked_first() -> None:
    verdict = Classifier(config(("a.test",), ("a.test",), ("a.test",))).classify("a.test")
    assert verdict == Verdict(DomainClass.BLACKLISTED, (), "a.test")


def test_section_3_3_rule_2_the_stub_list_is_checked_next() -> None:
    verdict = Classifier(config(("a.test",), ("b.test",), ("*.a.test",))).classify("a.test")
    assert verdict == Verdict(DomainClass.STUBBED, (), "*.a.test")


def test_section_3_3_rule_3_the_quality_list_is_checked_last() -> None:
    verdict = Classifier(config(("*.a.test",), ("b.test",), ("c.test",))).classify("x.a.test")
    assert verdict == Verdict(DomainClass.QUALITY, (0,), "*.a.test")


def test_section_3_3_rule_4_everything_else_is_discovered() -> None:
    classifier = Classifier(config(("a.test",), ("b.test",), ("c.test",)))
    for domain in ("d.test", "x.a.test", "test", "127.0.0.1", "[::1]", "a.test.", ""):
        assert classifier.classify(domain) == Verdict(DomainClass.DISCOVERED, (), None)


def test_wildcards_count_in_every_list() -> None:
    classifier = Classifier(config(("*.q.test",), ("*.b.test",), ("*.s.test",)))
    for letter, klass in (("q", "quality"), ("b", "blacklisted"), ("s", "stubbed")):
        for domain in (f"{letter}.test", f"x.{letter}.test", f"y.x.{letter}.test"):
            assert classifier.classify(domain).klass == klass


def test_a_domain_has_all_the_quality_entries_that_contain_it_as_origins() -> None:
    classifier = Classifier(config(("b.test", "*.a.test", "x.a.test", "*.x.a.test", "*.test")))
    assert classifier.classify("x.a.test").origins == (1, 2, 3, 4)
    assert classifier.classify("a.test").origins == (1, 4)
    assert classifier.classify("b.test") == Verdict(DomainClass.QUALITY, (0, 4), "b.test")


def test_a_subdomain_can_be_cut_out_of_a_quality_wildcard() -> None:
    classifier = Classifier(config(("*.a.test",), ("ads.a.test",)))
    assert classifier.classify("ads.a.test").klass is DomainClass.BLACKLISTED
    assert classifier.classify("sub.ads.a.test").klass is DomainClass.QUALITY


def test_the_rule_is_the_first_pattern_of_the_list_that_matches() -> None:
    assert Classifier(config(blacklist=("*.test", "a.test"))).classify("a.test").rule == "*.test"
    assert Classifier(config(blacklist=("a.test", "*.test"))).classify("a.test").rule == "a.test"


def test_a_www_pattern_classifies_the_key_domain() -> None:
    verdict = Classifier(config(("www.a.test",))).classify("a.test")
    assert verdict == Verdict(DomainClass.QUALITY, (0,), "www.a.test")


def test_classes_are_the_words_of_the_database() -> None:
    assert [str(klass) for klass in DomainClass] == ["quality", "blacklisted", "stubbed", "discovered"]


_LABELS = st.sampled_from(["a", "b", "www", "test", "com"])
_DOMAINS = st.lists(_LABELS, min_size=1, max_size=4).map(".".join)
_PATTERNS = st.builds(lambda star, domain: star + domain, st.sampled_from(["", "*."]), _DOMAINS)


@given(st.lists(_PATTERNS, max_size=8), _DOMAINS)
@settings(max_examples=400, deadline=None)
def test_looking_up_suffixes_finds_what_trying_every_pattern_finds(patterns: list[str], domain: str) -> None:
    expected = tuple(index for index, pattern in enumerate(patterns) if matches(pattern, domain))
    assert PatternList(patterns).all_matches(domain) == expected


def test_the_memory_of_verdicts_is_bounded() -> None:
    assert Classifier(config()).classify.cache_info().maxsize is not None
