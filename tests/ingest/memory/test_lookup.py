"""The compiled look-up and the one in Python give equal answers, in every order, and leave the same behind."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.urls import LinkResolver, hash64
from ingest.links import LinkFinder
from ingest.memory import lookup
from ingest.memory.page_index import PageIndex
from ingest.rules.depth import Distances

pytestmark = pytest.mark.skipif(lookup.compiled is None, reason="ingest/memory/_lookup.c was not compiled here")

HOSTS = ["one.test", "www.one.test", "two.test", "one.test:8443", "xn--4ca.test", "one.test.", "ONE.test", "mül.test"]
PIECES = [
    *(
        "/",
        "a",
        "b",
        "c.html",
        ".",
        "..",
        "../",
        "./",
        "//",
        "\\",
        "~",
        "-",
        "_",
        "%41",
        "%zz",
        "?",
        "q=1",
        "&",
        "utm_x=1",
    ),
    *(":", ";", "=", "+", "@", "#", "\xe4", "\u20ac", "\ud800", "\0", "\t", "\n", " ", "x" * 40, "A0"),
]
PATHS = st.lists(st.sampled_from(PIECES), max_size=7).map("".join)
SITES = st.sampled_from([scheme + host for host in HOSTS for scheme in ("https://", "http://", "HTTPS://")])
PLAIN = st.lists(st.sampled_from(["a", "b", "c.html", "../", "./", "/", "/", "x" * 40]), max_size=5).map("".join)
HREFS = st.one_of(
    PLAIN,
    st.builds("{}/{}".format, st.sampled_from(["https://one.test", "https://www.one.test", "http://two.test"]), PLAIN),
    PATHS,
    PATHS.map("/{}".format),
    st.builds("{}/{}".format, SITES, PATHS),
    SITES,
    st.just("mailto:x@y"),
)
BASES = st.one_of(st.builds("{}/{}".format, SITES, PATHS), st.sampled_from(["", "nonsense", "https://one.test"]))
BATCHES = st.lists(st.lists(st.tuples(BASES, st.lists(HREFS, max_size=8)), max_size=4), max_size=5)


@contextmanager
def using(implementation: Any) -> Iterator[None]:
    kept, lookup.compiled = lookup.compiled, implementation
    try:
        yield
    finally:
        lookup.compiled = kept


def follow(batches: list[list[tuple[str, list[str]]]], size: int, longest: int, is_crowded: bool) -> list[Any]:
    """Everything that can be seen of these batches, each of whose new pages is made."""
    index = PageIndex(Distances(3, 1))
    finder = LinkFinder(LinkResolver((*("utm_*",), "sid"), longest), index, size)
    if is_crowded:  # the hashes of keys to come are taken, by pages of another domain
        index.add_domain(1, "crowd.test")
        for host in ("one.test", "two.test"):
            for path in ("", "a", "b", "c.html", "a/b"):
                index.add(hash64(f"https://{host}/{path}"), 1)
    seen: list[Any] = []
    for batch in batches:
        for base, hrefs in batch:
            targets = finder.find_targets(base, hrefs)
            seen.append((targets.numbers, [new.link for new in targets.new]))
            for new in targets.new:
                number, hash_ = index.find(new.link)
                if not number:
                    if new.link.domain not in index.domain_numbers:
                        index.add_domain(len(index.domain_names), new.link.domain)
                    number = index.add(hash_, index.domain_numbers[new.link.domain])
                new.number = number
        finder.end_batch()
        seen.append((dict(finder._memory.young), dict(finder._memory.old)))
    return [*seen, list(index.hashes), list(index.domains)]


@settings(max_examples=400, deadline=None)
@given(BATCHES, st.sampled_from([1, 8, 1000]), st.sampled_from([24, 60, 2000]), st.booleans())
def test_both_find_the_same_pages(batches: Any, size: int, longest: int, is_crowded: bool) -> None:
    compiled = follow(batches, size, longest, is_crowded)
    with using(None):
        assert compiled == follow(batches, size, longest, is_crowded)


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8"), max_size=400))
def test_the_compiled_hash_is_that_of_keys(text: str) -> None:
    assert lookup.compiled.hash64(text) == hash64(text)


@pytest.mark.parametrize("length", [0, 1, 127, 128, 129, 255, 256, 257, 100_000])
def test_the_compiled_hash_agrees_at_the_edges_of_a_block(length: int) -> None:
    assert lookup.compiled.hash64("x" * length) == hash64("x" * length)


def test_plain_addresses_are_not_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    index = PageIndex(Distances(3, 1))
    finder = LinkFinder(LinkResolver(), index, 100)
    finder.find_targets("https://one.test/d/", ["https://www.one.test/", "https://one.test/"])
    monkeypatch.delattr(LinkFinder, "_find")
    hrefs = ["a/", "../b", "/c.html", "https://www.one.test/d", "https://one.test/d"]
    found = finder.find_targets("https://one.test/d/", hrefs).new
    assert [new.link.wire for new in found] == [
        *("https://one.test/d/a/", "https://one.test/b", "https://one.test/c.html"),
        *("https://www.one.test/d", "https://one.test/d"),
    ]


def test_the_environment_can_ask_for_the_one_in_python() -> None:
    code = "from ingest.memory.lookup import IMPLEMENTATION; print(IMPLEMENTATION)"
    found = [
        subprocess.run(
            [sys.executable, "-c", code], env=each, capture_output=True, text=True, check=True
        ).stdout.strip()
        for each in (
            {name: value for name, value in os.environ.items() if name != "SUMI_RIPPLE_PURE"},
            {**os.environ, "SUMI_RIPPLE_PURE": "1"},
        )
    ]
    assert found == ["c", "python"]
