"""The terrain made like documentation: the same everywhere, and near the figures that its docstring gives."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.census import PageCount, count_page, links_within, resolve, summarise
from benchmarks.docs_terrain import FAMILIES, Family, draw_site, write_sites

PAGES = 121
pytestmark = pytest.mark.xdist_group("docs-terrain")  # every family is drawn and counted once
BY_NAME = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


@cache
def counted(family: Family) -> list[PageCount]:
    return [count_page(path, body) for path, body in draw_site(family, PAGES)]


def test_the_same_seed_draws_the_same_bytes() -> None:
    family = FAMILIES[0]
    assert list(draw_site(family, 20)) == list(draw_site(family, 20))
    assert list(draw_site(family, 20)) != list(draw_site(family, 20, seed=1))


def test_sites_are_written_as_they_are_drawn(tmp_path: Path) -> None:
    roots = write_sites(tmp_path, 12)
    assert [root.name for root in roots] == [family.name for family in FAMILIES]
    for root, family in zip(roots, FAMILIES, strict=True):
        for path, body in draw_site(family, 12):
            assert (root / path).read_bytes() == body


@BY_NAME
def test_a_family_has_the_fragments_titles_and_sizes_that_were_measured(family: Family) -> None:
    facts = summarise(counted(family))
    assert facts["fragment_share"] == pytest.approx(family.fragments, abs=0.05)
    assert facts["in_page_share"] == pytest.approx(family.in_page, abs=0.05)
    assert facts["title"]["mean"] == pytest.approx(family.title, abs=4)
    assert 0.7 * family.size <= facts["size"]["median"] <= 2 * family.size
    assert 0.5 * family.targets <= facts["targets"]["median"] <= 1.5 * family.targets
    assert facts["size"]["most"] == pytest.approx(max(giant.size for giant in family.giants), rel=0.15)


@BY_NAME
def test_giants_have_very_many_links_to_few_targets(family: Family) -> None:
    for giant in family.giants:
        near = [
            count
            for count in counted(family)
            if count.hrefs == giant.hrefs and abs(count.targets - giant.targets) <= 0.05 * giant.targets + 10
        ]
        assert near, giant


def test_all_families_together_are_like_the_pages_that_a_crawl_of_documentation_meets() -> None:
    facts = summarise([count for family in FAMILIES for count in counted(family)])
    assert 50_000 <= facts["size"]["mean"] <= 75_000
    assert 22_000 <= facts["size"]["median"] <= 36_000
    assert 180 <= facts["hrefs"]["mean"] <= 270
    assert 55 <= facts["hrefs"]["median"] <= 90
    assert 33 <= facts["targets"]["mean"] <= 60
    assert facts["giants"] >= 9
    assert facts["size"]["most"] > 1_000_000


@BY_NAME
def test_every_page_can_be_reached_from_the_start_page(family: Family) -> None:
    pages = dict(draw_site(family, 40))
    found, waiting = {"index.html"}, ["index.html"]
    for path in waiting:
        for link in links_within(path, pages[path]):
            if link in pages and link not in found:
                found.add(link)
                waiting.append(link)
    assert found == set(pages)


def test_links_within_a_site_lead_to_its_pages_and_the_menu_is_shared() -> None:
    family = FAMILIES[-1]
    pages = dict(draw_site(family, 40))
    menu = list(pages)[: family.menu]
    for path, body in pages.items():
        links = links_within(path, body)
        assert set(links) <= set(pages)
        assert set(menu) <= set(links)


def test_an_address_is_resolved_without_its_fragment() -> None:
    assert resolve("a/b.html", "../c.html#x") == "https://site.test/c.html"
    assert resolve("a/b.html", "#x") == "https://site.test/a/b.html"
    assert resolve("a/b.html", "https://[broken") is None


def test_an_empty_page_counts_nothing() -> None:
    assert count_page("a.html", b"  ").hrefs == 0
    assert links_within("a.html", b"") == []
    assert summarise([]) == {"pages": 0}
