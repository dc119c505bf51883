"""The most that one page can claim: a URL, a base, and all links together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from crawler.model.page_claims import (
    LONGEST_KEY,
    MOST_CHARACTERS,
    cut_key,
    links_within,
    longest_key,
    weight_of,
    whole_length,
)
from crawler.model.settings import TrapSettings
from crawler.model.urls import LinkResolver, hash64, normalize
from crawler.rules.traps import shape_error


def test_a_url_over_the_limit_becomes_one_short_key_that_tells_its_length() -> None:
    resolver = LinkResolver(longest=2000)
    long, other = "https://a.test/" + "x" * 60_000, "https://a.test/" + "x" * 60_001
    link = resolver.link("", long)
    assert link is not None and resolver.link("", long) == link and link.domain == "a.test"
    assert len(link.key) < 250 and link.wire == link.key and link.hash == hash64(link.key)
    assert whole_length(link.key) == len(long)
    assert resolver.link("", other) != link, "another URL is another page"
    assert shape_error(link.key, TrapSettings()) == "trap-url-length: the URL has 60,015 characters, more than 2,000"
    assert str(shape_error(link.key, TrapSettings(max_url_length=0))).endswith("more than 16,384")


def test_no_url_has_the_text_of_a_cut_key() -> None:
    cut = cut_key("https://a.test/" + "x" * 3000, 1)
    assert normalize(cut) != cut and whole_length(normalize(cut)) is None
    assert whole_length("https://a.test/…") is None


def test_a_host_of_sixty_thousand_characters_is_a_short_domain() -> None:
    resolver = LinkResolver(longest=2000)
    one, other = (resolver.link("", f"https://{'y' * 60_000}.test/{page}") for page in "ab")
    assert one is not None and other is not None and one.key != other.key
    assert one.domain == other.domain and len(one.domain) < 250


def test_a_long_wire_url_of_a_short_key_is_the_key() -> None:
    link = LinkResolver(longest=2000).link("", "https://www.a.test/p/?utm_source=" + "x" * 60_000)
    assert link is not None and (link.key, link.wire) == ("https://a.test/p", "https://a.test/p")
    short = LinkResolver(longest=2000).link("", "https://www.a.test/p/?utm_source=x")
    assert short is not None and short.wire == "https://www.a.test/p/?utm_source=x"


def test_the_limit_of_the_setting_counts_and_turned_off_there_still_is_one() -> None:
    assert longest_key(2000) == 2000
    assert longest_key(0) == LONGEST_KEY


@given(st.integers(0, 20_000), st.lists(st.sampled_from(["x", "/" + "y" * 900, "https://b.test/" + "z" * 3000])))
def test_the_links_that_are_kept_stay_within_the_claim_and_one_more_would_not(base: int, pattern: list[str]) -> None:
    url = "https://a.test/" + "b" * base
    hrefs = pattern * 300
    kept = links_within(url, hrefs)
    lengths = [len(href) if href.startswith("https://") else len(url) + len(href) for href in hrefs]
    assert sum(lengths[:kept]) <= MOST_CHARACTERS
    assert kept == len(hrefs) or sum(lengths[: kept + 1]) > MOST_CHARACTERS
    assert weight_of(url, hrefs, LONGEST_KEY) <= MOST_CHARACTERS
