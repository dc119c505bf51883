"""A run with pages that are not due: its map is the one of a run that visits them and finds them unchanged."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.database.carried_pages import carried_results, not_due
from crawler.database.digest import digest
from crawler.database.frontier import Frontier
from crawler.database.reader import open_map
from crawler.model.records import PageResult, Result, RunEvent, SitemapResult, changed, dump
from crawler.model.settings import DAY, Config, RevisitSettings
from ingest.apply import MapUpdater
from ingest.writing.store import Store
from tests.ingest.terrains import AT, config, ingest_all, read_database, read_plainly, results_of, terrains

LATER = "2026-01-02T00:00:00.000Z"  # a day after AT: nothing is due
QA, QB = "https://qa.test/0", "https://qb.test/0"
A = "https://qa.test/a"


def planned(rules: Config, schedule: str | int = "adaptive") -> Config:
    return replace(rules, revisit=RevisitSettings(schedule))


@contextmanager
def frontier_of(rules: Config) -> Iterator[Frontier]:
    frontier = Frontier(rules.output.database_path)
    frontier.open()
    try:
        yield frontier
    finally:
        frontier.close()


def domains_of(frontier: Frontier) -> list[int]:
    return [number for (number,) in frontier.ask("SELECT DISTINCT domain_id FROM frontier WHERE id > 0")]


def carry_all(rules: Config, run: int, at: str = LATER, batch: int = 3) -> list[PageResult]:
    """Begin a run and carry every page that is not due, wave by wave, as the scheduler does. Returns the records."""
    records: list[PageResult] = []
    ingest_all(rules, [RunEvent(run, at, "started")], started=False)
    while True:
        with frontier_of(rules) as frontier:
            pages = [page.row.page for domain in domains_of(frontier) for page in not_due(frontier, domain, 1000)]
            found = list(carried_results(frontier, run, at, pages).values())
        if not found:
            return records
        records += found
        ingest_all(rules, list(found), batch, started=False)


def visits(terrain_results: list[Result], run: int) -> list[Result]:
    return [changed(result, run=run, at=LATER) for result in terrain_results]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(terrains(), st.data())
def test_the_map_of_carried_pages_is_the_map_of_visits_that_found_nothing_new(terrain, data: st.DataObject) -> None:
    terrain = replace(terrain, closed={}, closers={}, families={}, unvisited=set())
    reading = read_plainly(terrain, 2)
    first = results_of(terrain, reading)
    with tempfile.TemporaryDirectory() as folder:
        carrying, visiting = Path(folder, "carried"), Path(folder, "visited")
        carrying.mkdir()
        visiting.mkdir()
        rules, plain = planned(config(carrying)), config(visiting)
        ingest_all(rules, [*first, RunEvent(1, AT, "finished")])
        ingest_all(plain, [*first, RunEvent(1, AT, "finished")])
        again = visits(first, 2)
        ingest_all(plain, [RunEvent(2, LATER, "started"), *again, RunEvent(2, LATER, "finished")], started=False)
        carried = carry_all(rules, 2, batch=data.draw(st.integers(1, 5)))
        keys = {record.key for record in carried}
        rest = [result for result in again if isinstance(result, PageResult) and result.key not in keys]
        ingest_all(rules, [*rest, RunEvent(2, LATER, "finished")], started=False)
        assert read_database(rules.output.database_path) == read_database(plain.output.database_path)
        assert digest(rules.output.database_path) == digest(plain.output.database_path)
        answers = {r.key for r in first if isinstance(r, PageResult) and r.state in ("processed", "dead_link")}
        failed = {key for key, (state, _) in reading.pages.items() if state == "failed"}
        assert answers - failed - keys == set()


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(terrains(), st.data())
def test_carried_pages_are_replayed_in_any_order_without_the_runs_before(terrain, data: st.DataObject) -> None:
    """Each record is whole: the second run alone gives the map of the second run."""
    terrain = replace(terrain, closed={}, closers={}, families={}, unvisited=set())
    first = results_of(terrain, read_plainly(terrain, 2))
    with tempfile.TemporaryDirectory() as folder:
        both, alone = Path(folder, "both"), Path(folder, "alone")
        both.mkdir()
        alone.mkdir()
        rules = planned(config(both))
        ingest_all(rules, [*first, RunEvent(1, AT, "finished")])
        carried = carry_all(rules, 2)
        keys = {record.key for record in carried}
        rest = [r for r in visits(first, 2) if isinstance(r, PageResult) and r.key not in keys]
        everything = data.draw(st.permutations([*carried, *rest]))
        second = planned(config(alone))
        ingest_all(second, [RunEvent(2, LATER, "started"), *everything], started=False)
        visited = Path(folder, "visited")
        visited.mkdir()
        ingest_all(config(visited), [RunEvent(2, LATER, "started"), *visits(first, 2)], started=False)
        assert digest(second.output.database_path) == digest(config(visited).output.database_path)


def full_visit(key: str, *hrefs: str, at: str = AT, run: int = 1, text: str = "one") -> PageResult:
    return PageResult(
        *(run, key, key.replace("qa.test", "www.qa.test"), "qa.test", at, "processed"),
        status=200,
        content_type="text/html; charset=utf-8",
        last_modified="Thu, 01 Jan 2026 00:00:00 GMT",
        title="T",
        base=key,
        hrefs=hrefs,
        links_cut=2,
        bytes=77,
        validation="ok",
        text_print=5,
        texts=tuple("first" for _ in hrefs),
        content_hash="0" * 64,
        stored=True,
        etag='W/"x"',
        description="D",
        language="en",
        canonical=key,
        heading="H",
        text_hash=text,
    )


@pytest.fixture
def rules(tmp_path: Path) -> Config:
    return planned(config(tmp_path))


def row_of(rules: Config, key: str, columns: str) -> tuple[object, ...]:
    with open_map(rules.output.database_path) as reader:
        found = reader.first(
            f"SELECT {columns} FROM pages p LEFT JOIN revisits r ON r.id = p.id LEFT JOIN page_facts f ON f.id = p.id"
            " WHERE p.url = ?",
            (key,),
        )
    assert found is not None
    return tuple(found)


FACTS = (
    "p.state, p.title, p.status_code, p.content_type, p.last_modified, p.visited_at, p.bytes, p.links_cut,"
    " p.validation, p.text_print, f.content_hash, f.stored, f.etag, f.description, f.language, f.canonical, f.heading,"
    " f.text_hash, f.link_count, r.visited_at, r.interval, r.next_crawl_at, r.changed_at"
)


def test_everything_that_a_visit_found_stays_with_a_carried_page_and_so_does_the_time_of_that_visit(
    rules: Config,
) -> None:
    ingest_all(rules, [full_visit(QA, A, f"{A}#x", "https://one.test/"), RunEvent(1, AT, "finished")])
    before = row_of(rules, QA, FACTS)
    (record,) = [record for record in carry_all(rules, 2) if record.key == QA]
    assert record.wire == "https://www.qa.test/0" or record.wire == QA
    assert row_of(rules, QA, FACTS) == before
    assert row_of(rules, QA, "p.visited_run, r.carried_run, f.run") == (2, 2, 2)
    with open_map(rules.output.database_path) as reader:
        assert reader.all("SELECT DISTINCT text FROM link_texts") == [("first",)]
        assert reader.all("SELECT DISTINCT last_run FROM links") == [(2,)]


def test_a_page_is_not_due_until_its_interval_has_passed(rules: Config) -> None:
    ingest_all(rules, [full_visit(QA, A), RunEvent(1, AT, "finished")])
    assert row_of(rules, QA, "r.interval, r.next_crawl_at") == (7 * DAY, "2026-01-08T00:00:00.000Z")
    assert [record.key for record in carry_all(rules, 2, "2026-01-07T23:59:59.000Z")] == [QA]
    assert carry_all(rules, 3, "2026-01-08T00:00:00.000Z") == []


def test_a_page_that_could_not_be_read_or_was_rejected_is_due_with_the_next_run(rules: Config) -> None:
    failed = PageResult(1, A, A, "qa.test", AT, "failed", "http-503", status=503)
    soft = changed(full_visit(QB), domain="qb.test", validation="soft", rejection_reason="empty")
    ingest_all(rules, [full_visit(QA, A), failed, soft, RunEvent(1, AT, "finished")])
    assert row_of(rules, A, "r.next_crawl_at") == row_of(rules, QB, "r.next_crawl_at") == (None,)
    assert {record.key for record in carry_all(rules, 2)} == {QA}


def visit_again(rules: Config, run: int, at: str, result: PageResult) -> None:
    events = [RunEvent(run, at, "started"), changed(result, run=run, at=at), RunEvent(run, at, "finished")]
    ingest_all(rules, events, started=False)


@pytest.mark.parametrize(
    ("second", "interval"),
    [
        (full_visit(QA, A), 7 * 1.4),
        (changed(full_visit(QA, A), content_hash="1" * 64, etag='"other"', bytes=78), 7 * 1.4),
        (full_visit(QA, A, text="two"), 7 * 0.6),
        (full_visit(QA, A, "https://qa.test/b"), 7 * 0.6),
        (full_visit(QA, f"{A}?utm_source=x"), 7 * 1.4),
        (PageResult(1, QA, QA, "qa.test", AT, "dead_link", "http-404", status=404), 7 * 0.6),
    ],
    ids=["the same", "other bytes", "another text", "another link", "the same link written otherwise", "gone"],
)
def test_changed_means_other_links_or_another_text_and_not_other_bytes(
    rules: Config, second: PageResult, interval: float
) -> None:
    ingest_all(rules, [full_visit(QA, A), RunEvent(1, AT, "finished")])
    visit_again(rules, 2, "2026-01-10T00:00:00.000Z", second)
    assert row_of(rules, QA, "r.interval") == (round(interval * DAY),)


def test_a_schedule_that_was_given_up_leaves_no_plan_behind(rules: Config) -> None:
    ingest_all(rules, [full_visit(QA, A), RunEvent(1, AT, "finished")])
    always = replace(rules, revisit=RevisitSettings())
    visit_again(always, 2, "2026-01-10T00:00:00.000Z", full_visit(QA, A))
    assert carry_all(rules, 3, "2026-01-10T00:00:01.000Z") == []


def read_sitemap(run: int, at: str, *dates: tuple[str, str]) -> list[Result]:
    robots = SitemapResult(
        run, "sitemap:https://qa.test/robots.txt", "https://qa.test/robots.txt", "qa.test", at, "qa.test",
        form="robots", sitemaps=("https://qa.test/s.xml",),
    )  # fmt: skip
    urls, days = tuple(url for url, _ in dates), tuple(day for _, day in dates)
    listed = SitemapResult(
        run, "sitemap:https://qa.test/s.xml", "https://qa.test/s.xml", "qa.test", at, "qa.test", 1,
        form="urlset", urls=urls, dates=days, entries=len(urls),
    )  # fmt: skip
    return [robots, listed]


def test_the_date_of_a_sitemap_hurries_a_page_whichever_was_read_first(rules: Config, tmp_path: Path) -> None:
    dates = read_sitemap(1, AT, (QA, "2026-01-03"), (A, "2025-05-05"))
    pages: list[Result] = [full_visit(QA, A), full_visit(A)]
    for place, order in enumerate(([*dates, *pages], [*pages, *dates])):
        other = replace(rules, output=replace(rules.output, database_path=tmp_path / f"{place}.db"))
        ingest_all(other, [*order, RunEvent(1, AT, "finished")])
        assert row_of(other, QA, "r.next_crawl_at") == ("2026-01-03T00:00:00.000Z",)
        assert row_of(other, A, "r.next_crawl_at") == ("2026-01-08T00:00:00.000Z",)


def test_sitemaps_that_foretold_what_visits_found_delay_pages_and_one_missed_change_ends_that(rules: Config) -> None:
    keys = [QA, *(f"https://qa.test/{name}" for name in "abcd")]
    first = [full_visit(QA, *keys), *(full_visit(key) for key in keys[1:])]
    old = [(key, "2025-05-05") for key in keys]
    ingest_all(rules, [*first, *read_sitemap(1, AT, *old), RunEvent(1, AT, "finished")])
    second = "2026-01-10T00:00:00.000Z"
    again = [changed(result, run=2, at=second) for result in first]
    events = [RunEvent(2, second, "started"), *again, *read_sitemap(2, second, *old), RunEvent(2, second, "finished")]
    ingest_all(rules, events, started=False)
    assert row_of(rules, A, "r.next_crawl_at, r.interval") == ("2026-03-11T00:00:00.000Z", round(9.8 * DAY))
    third = "2026-03-12T00:00:00.000Z"
    again = [changed(result, run=3, at=third) for result in first]
    again[2] = changed(again[2], text_hash="changed in silence")
    events = [RunEvent(3, third, "started"), *again, *read_sitemap(3, third, *old), RunEvent(3, third, "finished")]
    ingest_all(rules, events, started=False)
    assert row_of(rules, A, "r.next_crawl_at") == ("2026-03-25T17:16:48.000Z",)


def test_a_page_whose_links_are_not_known_whole_is_not_carried(rules: Config) -> None:
    ingest_all(rules, [full_visit(QA, "https://one.test/" + "x" * 3000), RunEvent(1, AT, "finished")])
    with frontier_of(rules) as frontier:
        assert carried_results(frontier, 2, LATER, [1]) == {}


def test_a_carried_page_is_no_visit_in_the_figures_of_the_run(rules: Config) -> None:
    ingest_all(rules, [full_visit(QA, A), RunEvent(1, AT, "finished")])
    carry_all(rules, 2)
    store = Store(rules.output.database_path, rules)
    assert (store.counts["pages"], store.counts["crawled"]) == (0, 1)
    store.close()
    with frontier_of(rules) as frontier:
        assert frontier.visited_pages(2) == 0


def test_a_second_record_of_the_same_page_changes_nothing(rules: Config) -> None:
    ingest_all(rules, [full_visit(QA, A), RunEvent(1, AT, "finished")])
    (record,) = carry_all(rules, 2)
    before = digest(rules.output.database_path)
    store = Store(rules.output.database_path, rules)
    updater = MapUpdater(rules, store)
    visit = changed(full_visit(QA, run=2), title="another")
    updater.apply_batch([(record, dump(record)), (visit, dump(visit))])
    updater.commit()
    assert updater.duplicates == 2
    store.close()
    assert digest(rules.output.database_path) == before
