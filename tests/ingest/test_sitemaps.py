"""Pages that only a sitemap knows: their origin, their depth, and the sitemaps that are to be read."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from crawler.database.digest import digest
from crawler.database.format import SITEMAP_PRIORITY, UNLINKED_PRIORITY
from crawler.model.records import SITEMAP_KEY, Closure, PageResult, Result, RunEvent, SitemapResult, changed
from crawler.model.settings import Config, DiscoverySettings
from crawler.rules.page_priority import PageKind
from ingest.sitemaps import MAX_LEVEL, MAX_SITEMAPS
from tests.ingest.terrains import AT, ingest_all
from tests.ingest.test_loop import drain, write

ROBOTS, INDEX, LEAF = "https://qa.test/robots.txt", "https://qa.test/sitemap.xml", "https://qa.test/posts.xml"
SEED, ORPHAN, OTHER = "https://qa.test/0", "https://qa.test/orphan", "https://cdn.test/file"


@pytest.fixture
def rules(rules: Config) -> Config:
    return replace(rules, discovery=DiscoverySettings())


def page(key: str, *hrefs: str, run: int = 1, **members: Any) -> PageResult:
    return PageResult(run, key, key, key.split("/")[2], AT, "processed", hrefs=hrefs, **members)


def sitemap(url: str, level: int, **members: Any) -> SitemapResult:
    run, form = members.pop("run", 1), members.pop("form", "urlset")
    return SitemapResult(run, SITEMAP_KEY + url, url, url.split("/")[2], AT, "qa.test", level, form, **members)


def read() -> list[Result]:
    return [
        page(SEED, "https://qa.test/a"),
        page("https://qa.test/a"),
        sitemap(ROBOTS, 0, form="robots", sitemaps=(INDEX,), entries=1),
        sitemap(INDEX, 1, form="index", sitemaps=(LEAF,), entries=1),
        sitemap(LEAF, 2, urls=(ORPHAN, "https://qa.test/a", OTHER), dates=("2024", "2024-05-06", ""), entries=3),
        page(ORPHAN, "https://qa.test/b"),
    ]


def ask(path: Path, sql: str) -> list[Any]:
    with sqlite3.connect(path) as db:
        found = db.execute(sql).fetchall()
    db.close()
    return found


def origins(path: Path) -> dict[str, tuple[str, str, int | None]]:
    return {url: rest for url, *rest in map(tuple, ask(path, "SELECT url, origin, state, depth FROM pages"))}


def test_a_page_of_a_sitemap_has_no_link_and_depth_0_inside_a_quality_domain(rules: Config) -> None:
    path = ingest_all(rules, [RunEvent(1, AT, "started"), *read()])
    found = origins(path)
    assert found[SEED] == ["seed", "processed", 0]
    assert found["https://qa.test/a"] == ["linked", "processed", 0]
    assert found[ORPHAN] == ["sitemap", "processed", 0]
    assert found["https://qa.test/b"] == ["linked", "queued", 0]
    assert found[OTHER] == ["sitemap", "discovered", None]
    assert ask(path, f"SELECT count(*) FROM links JOIN pages ON pages.id = to_page_id WHERE url = '{ORPHAN}'") == [(0,)]
    entries = ask(path, "SELECT url, lastmod FROM sitemap_entries JOIN pages USING (id) ORDER BY url")
    assert entries == [(OTHER, None), ("https://qa.test/a", "2024-05-06"), (ORPHAN, "2024")]
    assert ask(path, f"SELECT state, form, entries FROM sitemaps WHERE url = '{LEAF}'") == [("read", "urlset", 3)]


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_any_order_gives_the_same_map(rules: Config, tmp_path: Path, batch: int) -> None:
    found = set()
    for number, order in enumerate(list(permutations(read()))[::47]):
        there = replace(rules, output=replace(rules.output, database_path=tmp_path / f"{number}.db"))
        path = ingest_all(there, [RunEvent(1, AT, "started"), *order, order[0]], batch)
        found.add((digest(path), tuple(sorted((url, *rest) for url, rest in origins(path).items()))))
    assert len(found) == 1


@pytest.mark.parametrize("is_first", [True, False])
def test_a_page_becomes_linked_when_a_link_turns_up(rules: Config, is_first: bool) -> None:
    link = page("https://qa.test/a", ORPHAN)
    rest = [result for result in read() if result.key != link.key]
    results = [link, *rest] if is_first else [*rest, link]
    assert origins(ingest_all(rules, [RunEvent(1, AT, "started"), *results], 1))[ORPHAN][0] == "linked"


def test_a_link_from_the_page_itself_makes_it_no_better_known(rules: Config) -> None:
    results = [*read()[:-1], page(ORPHAN, ORPHAN)]
    assert origins(ingest_all(rules, [RunEvent(1, AT, "started"), *results], 1))[ORPHAN][0] == "sitemap"


def test_pages_without_a_link_wait_after_all_that_have_one_and_sitemaps_after_those(rules: Config) -> None:
    results = [result for result in read() if result.key not in (ORPHAN, "https://qa.test/a")]
    path = ingest_all(rules, [RunEvent(1, AT, "started"), *results], 2)
    ranks = dict(ask(path, "SELECT url, priority FROM frontier JOIN pages USING (id)"))
    assert ranks["https://qa.test/a"] == PageKind.CONTENT
    assert ranks[ORPHAN] == UNLINKED_PRIORITY + PageKind.CONTENT
    # qb.test was met too, and nobody has read its sitemaps.
    waiting = ask(path, "SELECT s.url, priority FROM frontier f JOIN sitemaps s ON s.id = -f.id")
    assert waiting == [("https://qb.test/robots.txt", SITEMAP_PRIORITY)]
    again = ingest_all(rules, [RunEvent(1, AT, "started"), *results, page("https://qa.test/a", ORPHAN)], 1)
    assert dict(ask(again, "SELECT url, priority FROM frontier JOIN pages USING (id)"))[ORPHAN] == PageKind.CONTENT


def test_sitemaps_are_bounded_in_number_and_depth(rules: Config) -> None:
    many = tuple(f"https://qa.test/{n}.xml" for n in range(MAX_SITEMAPS + 50))
    path = ingest_all(rules, [RunEvent(1, AT, "started"), sitemap(ROBOTS, 0, form="robots", sitemaps=many)])
    assert ask(path, "SELECT count(*) FROM sitemaps WHERE announced_by = 'qa.test'") == [(MAX_SITEMAPS,)]
    deep = sitemap("https://qa.test/5.xml", MAX_LEVEL, form="index", sitemaps=("https://qa.test/deeper.xml",))
    path = ingest_all(rules, [RunEvent(1, AT, "started"), deep])
    assert ask(path, "SELECT 1 FROM sitemaps WHERE url LIKE '%deeper%'") == []


def test_a_closed_domain_reads_no_more_sitemaps(rules: Config) -> None:
    closing = page(SEED, closes=Closure("rate-limited", 3))
    for number, results in enumerate(([closing, *read()[2:3]], [*read()[2:3], closing])):
        there = replace(rules, output=replace(rules.output, database_path=rules.workspace.parent / f"{number}.db"))
        path = ingest_all(there, [RunEvent(1, AT, "started"), *results], 1)
        assert ask(path, "SELECT count(*) FROM frontier WHERE id < 0 AND domain_id = 1") == [(0,)]


def test_the_next_run_reads_them_again_and_a_page_keeps_its_origin(rules: Config) -> None:
    results = [RunEvent(1, AT, "started"), *read(), RunEvent(1, AT, "finished"), RunEvent(2, AT, "started")]
    path = ingest_all(rules, results, 1)
    waiting = {url for (url,) in ask(path, "SELECT s.url FROM frontier f JOIN sitemaps s ON s.id = -f.id")}
    assert ROBOTS in waiting and LEAF not in waiting
    again = [changed(result, run=2) for result in read()]
    assert origins(ingest_all(rules, [*results, *again], 3))[ORPHAN] == ["sitemap", "processed", 0]


def test_without_the_switch_nothing_waits(rules: Config) -> None:
    write(rules, "scheduler", [RunEvent(1, AT, "started")])
    drain(rules)
    assert ask(rules.output.database_path, "SELECT count(*) FROM frontier WHERE id < 0") == [(2,)]
    drain(replace(rules, discovery=DiscoverySettings(sitemaps=False)))
    assert ask(rules.output.database_path, "SELECT count(*) FROM frontier WHERE id < 0") == [(0,)]


def test_the_next_page_of_a_list_is_labelled_and_its_form_learned(rules: Config) -> None:
    two, three = "https://qa.test/list/page/2", "https://qa.test/list/page/3"
    results = [
        page(SEED, two, next_page=two, next_by="address"),
        page(two, three, next_page=three, next_by="rel"),
        page(three, two),
    ]
    path = ingest_all(rules, results, 1)
    sql = "SELECT p.url, q.url, evidence FROM next_pages n JOIN pages p USING (id) JOIN pages q ON q.id = n.next_id"
    assert set(ask(path, sql)) == {(SEED, two, "address"), (two, three, "rel")}
    form = "https://qa.test/list/page/{n}"
    assert ask(path, "SELECT form, last_number, first_run, last_run FROM pagination_rules") == [(form, 3, 1, 1)]
    later = [RunEvent(1, AT, "finished"), RunEvent(2, AT, "started"), page(SEED, two, run=2)]
    path = ingest_all(rules, [*results, *later], 1)
    assert set(ask(path, sql)) == {(two, three, "rel")}
