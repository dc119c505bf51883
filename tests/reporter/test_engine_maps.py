"""What the reporter says of a map in the engine is what it says of the same map in a file, word for word."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from crawler.database import known_lists
from crawler.database.carried_pages import carried_results, not_due
from crawler.database.frontier import Frontier
from crawler.database.known_answers import validators_of
from crawler.database.map_handle import Map
from crawler.database.missing_prints import MissingPrints
from crawler.database.reader import open_map
from crawler.model.map_place import EngineMap, MapPlace
from ingest.map_transfer import copy_whole_map
from ingest.postgres.map_schemas import remove
from reporter.atlas.behind_links import behind_link
from reporter.atlas.page_level import pages_of_domain, paths, surroundings
from reporter.candidates import candidates
from reporter.explain.domain_explanation import explain_domain
from reporter.explain.explanation import explain
from reporter.export.graph import export
from reporter.map.map_data import map_data
from reporter.queries.discovery_rows import archives_of, count_by_origin, lists_of, sitemaps_of
from reporter.queries.export_rows import Filters
from reporter.queries.frontier_list import waiting_domains, waiting_pages
from reporter.queries.page_list import PageFilters, list_pages
from reporter.queries.page_rule_rows import closed_caps, scope_counts, type_counts
from reporter.queries.rejections import rejected_pages, rejections
from reporter.queries.search_index import build_index, candidate_pages, words_of
from reporter.queries.unlinked_pages import guessed_forms, unlinked_pages
from reporter.queries.visit_totals import visit_totals, waiting_of_domain
from reporter.stats import stats
from reporter.summary.write import render
from tests.postgres_server import own_database
from tests.reporter.terrain import config_for

RULES = config_for(("q.test", "*.wild.test"))
HOME = "https://q.test/"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with own_database() as made:
        yield made


@pytest.fixture(scope="module", params=[True, False], ids=["between-runs", "under-way"])
def both(request: pytest.FixtureRequest, url: str, database: Path) -> Iterator[tuple[MapPlace, MapPlace]]:
    """The map in a file, and in the engine: with the indexes that are there between two runs, or without."""
    with closing(sqlite3.connect(database)) as db, db:
        db.execute("INSERT OR IGNORE INTO meta VALUES ('map_id', 'rich')")
    place = EngineMap(url, files=database)
    copy_whole_map(database, place)
    if not request.param:
        from ingest.writing.engines import engine_of

        engine = engine_of(place)
        engine.begin()
        engine.drop_reading_aids()
        engine.db.execute("COMMIT")
        engine.close()
    yield database, place
    remove(place)


def columns_of_file(file: Path) -> dict[str, set[str]]:
    """Table or view → its columns."""
    with closing(sqlite3.connect(file)) as db:
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        names.remove("sqlite_sequence")
        return {name: {row[1] for row in db.execute(f"PRAGMA table_info({name})")} for name in names}


def columns_of_engine(place: EngineMap) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    with psycopg.connect(place.url) as connection:
        rows = connection.execute(
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = %s", (place.schema,)
        )
        for table, column in rows:
            found.setdefault(table, set()).add(column)
    return found


def exported(place: MapPlace, target: Path, **filters: Any) -> bytes:
    export(place, target, format="jsonl", level=filters.pop("level", "page"), filters=Filters(**filters))
    return target.read_bytes()


def test_every_table_view_and_column_of_a_map_in_a_file_is_there(both: tuple[MapPlace, MapPlace]) -> None:
    """Seed 000, §8.1, and all that was added: who asks the one can ask the other."""
    file, engine = both
    assert isinstance(file, Path)
    assert isinstance(engine, EngineMap)
    known = columns_of_engine(engine)
    wanted = columns_of_file(file)
    assert {"runs", "pages", "links", "domain_states"} <= wanted.keys()
    missing = {name: columns - known.get(name, set()) for name, columns in wanted.items()}
    assert {name: columns for name, columns in missing.items() if columns} == {}


def test_reports_are_the_same(both: tuple[MapPlace, MapPlace], tmp_path: Path) -> None:
    file, engine = both
    assert stats(engine, as_json=True) == stats(file, as_json=True)
    assert stats(engine, by="domain", name="map") == stats(file, by="domain", name="map")
    assert render(engine).replace("sumi_map", "map.db") == render(file)
    assert candidates(engine, 50) == candidates(file, 50)
    assert map_data(engine) == map_data(file)


def test_explanations_and_surroundings_are_the_same(both: tuple[MapPlace, MapPlace]) -> None:
    file, engine = both
    for key in (HOME, "https://q.test/gone", "https://friend.test/deep", "https://later.test/", "https://no.test/"):
        assert explain(RULES, engine, key, is_uncut=True) == explain(RULES, file, key, is_uncut=True)
    for domain in ("q.test", "friend.test", "slow.test", "no.test"):
        assert explain_domain(RULES, engine, domain) == explain_domain(RULES, file, domain)
    assert pages_of_domain(engine, "q.test") == pages_of_domain(file, "q.test")
    assert surroundings(engine, HOME) == surroundings(file, HOME)
    assert paths(engine, "https://friend.test/deep") == paths(file, "https://friend.test/deep")
    assert behind_link(engine, "q.test", "friend.test") == behind_link(file, "q.test", "friend.test")


@pytest.mark.parametrize(
    "filters",
    [
        {},
        {"level": "domain"},
        {"classes": ("quality",), "depth": 1},
        {"domain": "*.wild.test", "states": ("processed",)},
        {"around": "friend.test", "self_loops": False},
        {"run": 1},
    ],
    ids=str,
)
def test_exports_are_the_same(both: tuple[MapPlace, MapPlace], tmp_path: Path, filters: dict[str, Any]) -> None:
    file, engine = both
    assert exported(engine, tmp_path / "b.jsonl", **filters) == exported(file, tmp_path / "a.jsonl", **filters)


def test_lists_and_counts_are_the_same(both: tuple[MapPlace, MapPlace], tmp_path: Path) -> None:
    def answers(place: MapPlace) -> list[object]:
        with open_map(place) as reader:
            found: list[object] = [
                list_pages(reader, 1, filters, 0, 7)
                for filters in (
                    PageFilters(),
                    PageFilters("errors"),
                    PageFilters("processed", klass="quality"),
                    PageFilters(domain_id=1, depth=0),
                    PageFilters(error="http-404", status=404, origin="linked"),
                )
            ]
            found += [waiting_domains(reader), waiting_pages(reader, None, 0, 5), waiting_pages(reader, 1, 0, 5)]
            found += [closed_caps(reader, 1), scope_counts(reader, 1), type_counts(reader, 1), rejections(reader, 1)]
            found += [rejected_pages(reader, 1, None), unlinked_pages(reader, 1), guessed_forms(reader, 1)]
            found += [lists_of(reader, 1), archives_of(reader, 1), sitemaps_of(reader, "q.test")]
            found += [count_by_origin(reader), count_by_origin(reader, 1), visit_totals(reader, 1, "status")]
            found.append(waiting_of_domain(reader, "later.test"))
        build_index(place, tmp_path / "search.db", "stamp")
        found.append(list(candidate_pages(tmp_path / "search.db", words_of("friend")[0], 0)))
        handle = Map(place)
        return [*found, handle.run(), handle.states(), list(handle.pages(state="dead_link")), handle.digest()]

    assert answers(both[1]) == answers(both[0])


def test_the_scheduler_hears_the_same(both: tuple[MapPlace, MapPlace]) -> None:
    assert _scheduler_answers(both[1]) == _scheduler_answers(both[0])


def _scheduler_answers(place: MapPlace) -> list[object]:
    live = Frontier(place)
    live.open()
    try:
        found: list[object] = [
            live.last_run(),
            live.positions(),
            live.visited_pages(1),
            sorted(live.visited_domains(1)),
        ]
        found += [live.count(), live.domains(), live.window(live.domain_id("later.test") or 0, 5), live.next_sitemap(1)]
        found += [live.still_waiting([1, 2, 3]), live.waiting_pages([-1, 1, 2]), live.was_cut_short(1, 2)]
        found += [live.visited_in_family(1, 1), live.visited_under_cap(1, 1), live.is_family_closed(1, 1)]
        found += [known_lists.open_lists(live, 1), known_lists.open_lists(live, 1, is_elsewhere=True)]
        found += [
            known_lists.members_of(live, 1, 1),
            known_lists.firsts_of(live, 1, 1),
            known_lists.tried_of(live, 1, 1),
        ]
        found += [known_lists.open_archives(live, 1), known_lists.next_archive(live, 1, 1)]
        found += [known_lists.unvisited_entries(live, 1, 2, 5), MissingPrints(live, 1).of("q.test")]
        found += [not_due(live, 1, 5), carried_results(live, 2, "", [1, 2]), validators_of(live, [1, 2])]
        return found
    finally:
        live.close()
