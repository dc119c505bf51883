"""Texts and rels of links: kept with their links, the same in every order and in a replay."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.database.digest import digest, parts
from crawler.model.records import UNSET, PageResult, Result, RunEvent, changed, dump, parse
from crawler.model.settings import Config
from ingest.replay import replay
from tests.ingest.terrains import AT, Terrain, config, ingest_all, read_plainly, results_of, terrains
from tests.ingest.test_loop import LATER, ONE, QA, QB, begun, drain, results, write
from tests.older_maps import TO_FORMAT_4


def texts_in(database: Path) -> dict[tuple[str, str], tuple[str | None, str | None]]:
    with closing(sqlite3.connect(database)) as db:
        assert not db.execute("SELECT 1 FROM link_texts WHERE id NOT IN (SELECT id FROM links)").fetchall()
        rows = db.execute("SELECT from_url, to_url, text, rel FROM v_links WHERE text IS NOT NULL OR rel IS NOT NULL")
        return {(source, target): (text, rel) for source, target, text, rel in rows}


def with_texts(found: list[Result]) -> list[Result]:
    return [
        changed(each, texts=tuple(f"to {href}" for href in each.hrefs), rels=("me",) if each.hrefs else UNSET)
        if isinstance(each, PageResult) and each.hrefs
        else each
        for each in found
    ]


def page(run: int, at: str, hrefs: tuple[str, ...], **members: object) -> PageResult:
    return changed(PageResult(run, QA, QA, "qa.test", at, "processed", status=200, base=QA, hrefs=hrefs), **members)


def crawl(rules: Config, *visits: PageResult) -> Path:
    for visit in visits:
        write(rules, "scheduler", begun(visit.run, visit.at))
        write(rules, "fetcher-01", [visit])
        write(rules, "scheduler", [RunEvent(visit.run, visit.at, "finished")])
    drain(rules)
    return rules.output.database_path


def test_a_line_without_texts_is_as_it_always_was() -> None:
    plain = page(1, AT, (QB,))
    assert b"texts" not in dump(plain) and b"rels" not in dump(plain)
    told = changed(plain, texts=("b",))
    assert parse(dump(told)) == told and parse(dump(plain)) == plain


def test_hrefs_that_lead_to_one_page_are_one_link_with_the_first_text_and_the_rels_of_all(rules: Config) -> None:
    hrefs = ("https://qb.test/0?utm_source=x", QB, "https://www.qb.test/0#f", ONE, "mailto:x", "https://new.test/")
    visit = page(1, AT, hrefs, texts=("", "Quality B", "later", "one"), rels=("nofollow me", "nofollow", "nofollow"))
    found = texts_in(crawl(rules, visit))
    assert found == {(QA, QB): ("Quality B", "nofollow me"), (QA, ONE): ("one", None)}


def test_the_last_visit_that_asked_for_texts_counts_for_the_links_that_it_found(rules: Config) -> None:
    first = page(1, AT, (QB, ONE, "https://two.test/"), texts=("b", "one", "two"))
    second = page(2, LATER, (QB, ONE), texts=("", "another one"))
    silent = page(3, LATER, (QB, ONE))
    database = crawl(rules, first, second, silent)
    assert texts_in(database) == {(QA, ONE): ("another one", None), (QA, "https://two.test/"): ("two", None)}


def test_a_map_without_texts_keeps_its_digest_and_a_replay_has_that_of_its_crawl(rules: Config, tmp_path: Path) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", with_texts(results()))
    drain(rules)
    silent = ingest_all(config(tmp_path / "silent"), list(results()))
    assert "link-text" in parts(rules.output.database_path) and "link-text" not in parts(silent)
    replay(rules, tmp_path / "again.db")
    assert digest(tmp_path / "again.db") == digest(rules.output.database_path) != digest(silent)
    both = parts(rules.output.database_path)
    del both["link-text"]
    assert both == parts(silent)


@settings(max_examples=40, deadline=None)
@given(terrains(), st.randoms(use_true_random=False))
def test_the_order_of_results_changes_no_text(terrain: Terrain, order: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = with_texts(results_of(terrain, read_plainly(terrain, 2)))
        calm = ingest_all(config(Path(folder) / "calm"), found)
        order.shuffle(found)  # type: ignore[attr-defined]
        mixed = ingest_all(config(Path(folder) / "mixed"), found, forgetful=True)
        assert parts(calm) == parts(mixed)


def test_a_map_of_format_4_shows_the_texts_that_come_after_its_upgrade(rules: Config) -> None:
    database = crawl(rules, page(1, AT, (QB,)))
    with closing(sqlite3.connect(database)) as db:
        db.executescript(f"{TO_FORMAT_4} CREATE VIEW v_links AS SELECT id FROM links;")
    drain(rules)
    assert texts_in(database) == {}
    assert texts_in(crawl(rules, page(2, LATER, (QB,), texts=("b",)))) == {(QA, QB): ("b", None)}
