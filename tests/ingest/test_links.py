"""Hrefs lead where they would without a memory, whatever was followed before: compiled and in Python."""

from __future__ import annotations

import random

import pytest

from crawler.model.urls import Link, LinkResolver
from ingest.links import LinkFinder, Targets, without_fragments
from ingest.memory import lookup
from ingest.memory.page_index import PageIndex
from ingest.rules.depth import Distances

NEEDS_COMPILED = pytest.mark.skipif(lookup.compiled is None, reason="ingest/memory/_lookup.c was not compiled here")
_BASES = [
    "https://example.com/dir/page?x=1",
    "https://example.com/dir/other",
    "https://www.example.com/",
    "http://example.com/dir/a/b",
    "https://example.org/dir/page",
    "nonsense",
    "",
]
_HREFS = [
    "",
    "?q=2",
    "x",
    "x/",
    "./x",
    "../x",
    "/x",
    "/x?utm_source=1",
    "/dir/x",
    "//example.org/x",
    "\\x",
    "https:x",
    "https://example.org/dir/x",
    "https://www.example.com/x",
    "HTTPS://example.org/x",
    "http://",
    "mailto:a@b",
    "a:b",
    "ä",
    "#x",
    "#",
    "x#a",
    "x#b#c",
    "x #a",
    " #a",
    "/x?q=1#a",
    "https://example.org/dir/x#a",
    "mailto:a@b#c",
    "../../x#a",
    ".././x",
    "../?q#a",
]


@pytest.fixture(params=[pytest.param("c", marks=NEEDS_COMPILED), "python"], autouse=True)
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "python":
        monkeypatch.setattr(lookup, "compiled", None)


class Map:
    """A page index and a link finder over it; new pages are made as the updater makes them."""

    def __init__(self, size: int) -> None:
        self.index = PageIndex(Distances(3, 1))
        self.finder = LinkFinder(LinkResolver(), self.index, size)
        self.keys = [""]

    def numbers(self, targets: Targets) -> list[int]:
        for new in targets.new:
            if not new.number:
                number, hash_ = self.index.find(new.link)
                if not number:
                    domain = self.index.domain_numbers.get(new.link.domain)
                    if domain is None:
                        domain = len(self.index.domain_names)
                        self.index.add_domain(domain, new.link.domain)
                    number = self.index.add(hash_, domain)
                    self.keys.append(new.link.key)
                new.number = number
        return [*targets.numbers, *[new.number for new in targets.new]]

    def follow(self, base: str, *hrefs: str) -> list[str]:
        return [self.keys[number] for number in self.numbers(self.finder.find_targets(base, hrefs))]


@pytest.mark.parametrize("seed", range(20))
def test_the_memory_never_changes_an_answer(seed: int) -> None:
    rng = random.Random(seed)
    resolver, known = LinkResolver(), Map(rng.choice([1, 2, 8, 30, 1000]))
    for _ in range(100):
        batch = [(rng.choice(_BASES), rng.sample(_HREFS, rng.randrange(6))) for _ in range(rng.randrange(4))]
        followed = [known.finder.find_targets(base, hrefs) for base, hrefs in batch]
        for (base, hrefs), targets in zip(batch, followed, strict=True):
            if rng.random() < 0.7:  # the others are held, or had been applied already
                links = [resolver.link(base, href) for href in hrefs]
                found = {known.keys[number] for number in known.numbers(targets)}
                assert found == {link.key for link in links if link}, (base, hrefs)
        if rng.random() < 0.8:
            known.finder.end_batch()


def test_pages_come_once_and_new_ones_in_the_order_and_the_form_of_their_first_appearance() -> None:
    known = Map(100)
    hrefs = ["b/", "/a", "b", "mailto:x@y", "https://example.com/dir/b?utm_source=1", "/a#x", "//other.org", "/a"]
    targets = known.finder.find_targets("https://www.example.com/dir/", hrefs)
    assert not targets.numbers
    known.numbers(targets)
    assert known.keys[1:] == ["https://example.com/dir/b", "https://example.com/a", "https://other.org/"]
    assert [targets.new[index].link.wire for index in (0, 1)] == [
        "https://www.example.com/dir/b/",
        "https://www.example.com/a",
    ]
    known.finder.end_batch()
    again = known.finder.find_targets("https://www.example.com/dir/", hrefs)
    assert (again.numbers, again.new) == ([1, 2, 3], [])


def test_a_page_is_looked_for_once_however_many_fragments_its_address_comes_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    known = Map(100)
    asked: list[str] = []
    plainly = LinkResolver.link_at

    def link_at(self: LinkResolver, address: str, hash_: int) -> Link | None:
        asked.append(address)
        return plainly(self, address, hash_)

    monkeypatch.setattr(LinkResolver, "link_at", link_at)
    hrefs = [f"{page}#{number}" for number in range(50) for page in ("a.html", "../b.html", "a.html")]
    targets = known.finder.find_targets("https://example.com/dir/", hrefs)
    assert asked == ["https://example.com/dir/a.html", "https://example.com/b.html"]
    assert [new.link.key for new in targets.new] == asked


def test_without_fragments_hrefs_keep_their_order_and_their_spaces() -> None:
    hrefs = ["b#1", "a", "#x", "b", "a#2", "c #3", "#y", "c "]
    assert without_fragments(hrefs) == ["b", "a", "", "c #3", "c "]


def test_a_page_that_an_earlier_result_of_the_batch_brought_is_the_same_lead() -> None:
    known = Map(100)
    first = known.finder.find_targets("https://example.com/a", ["/x"])
    second = known.finder.find_targets("https://example.com/b", ["https://example.com/x"])
    assert first.new == second.new
    known.numbers(first)
    assert second.new[0].number == 1


def test_what_is_met_again_is_not_resolved_again(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Map(100)
    pages = [
        ("https://example.com/", ("/x", "https://example.org/", "mailto:a@b")),
        ("https://example.com/d/", ("/x",)),
    ]
    for base, hrefs in pages:
        known.follow(base, *hrefs)
        known.finder.end_batch()
    monkeypatch.delattr(LinkResolver, "link_to")
    monkeypatch.delattr(LinkResolver, "link_at")
    monkeypatch.delattr(PageIndex, "find_key")
    for base, hrefs in pages:
        known.follow(base, *hrefs)


def test_the_memory_is_bounded() -> None:
    known = Map(100)
    memory = known.finder._memory
    for page in range(50):
        known.follow("https://example.com/", *[f"/{page}/{number}" for number in range(40)])
        known.finder.end_batch()
        assert len(memory.young) + len(memory.old) <= 100 + 2 * 40
    known.follow("https://example.com/", "/" + "x" * 10_000, "?" + "x" * 10_000, "https://a.b/" + "x" * 10_000)
    known.finder.end_batch()
    assert not any(len("".join(text)) > 5000 for text in (*memory.young, *memory.old))


def test_a_link_that_is_met_often_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    known = Map(20)
    known.follow("https://example.com/", "/home")
    known.finder.end_batch()
    for number in range(200):
        known.follow("https://example.com/", f"/{number}", "/home")
        known.finder.end_batch()
    monkeypatch.delattr(LinkResolver, "link_to")
    monkeypatch.delattr(LinkResolver, "link_at")
    monkeypatch.delattr(PageIndex, "find_key")
    assert known.follow("https://example.com/", "/home") == ["https://example.com/home"]
