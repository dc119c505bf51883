"""The scheduler's questions to a live map."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.database.format import NOT_DUE_TURN, SCHEMA_VERSION
from crawler.database.frontier import _DOMAINS, _WINDOW, Frontier, Waiting
from crawler.model.records import Job
from crawler.model.urls import hash64
from crawler.workspace.log import Cursor
from ingest.writing.schema import TABLES


class WrittenMap:
    """A map on disk, written row by row."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.executescript(TABLES)
        for name, value in (("schema_version", str(SCHEMA_VERSION)), ("map_id", "first")):
            self.db.execute("INSERT INTO meta VALUES (?, ?)", (name, value))

    def add(self, url: str, priority: int, family: int | None = None, visited: int | None = None) -> int:
        """A page; it waits unless it was visited."""
        name = url.split("/")[2]
        self.db.execute("INSERT OR IGNORE INTO domain_states (domain, class) VALUES (?, 'discovered')", (name,))
        (domain,) = self.db.execute("SELECT id FROM domain_states WHERE domain = ?", (name,)).fetchone()
        page = self.db.execute(
            "INSERT INTO pages (url, domain, state, discovered_at, discovered_run, url_hash, domain_id, seen_run,"
            " family, visited_run) VALUES (?, ?, 'queued', '', 1, ?, ?, 1, ?, ?)",
            (url, name, hash64(url), domain, family, visited),
        ).lastrowid
        assert page is not None
        if visited is None:
            self.db.execute("INSERT INTO frontier VALUES (?1, ?1, ?2, '', ?3, 0)", (page, priority, domain))
        return page


@pytest.fixture
def written(tmp_path: Path) -> Iterator[WrittenMap]:
    made = WrittenMap(tmp_path / "map.db")
    yield made
    made.db.close()


@pytest.fixture
def frontier(tmp_path: Path, written: WrittenMap) -> Iterator[Frontier]:
    found = Frontier(tmp_path / "map.db")
    found.open()
    yield found
    found.close()


def test_the_domains_of_a_large_frontier_cost_one_seek_each(written: WrittenMap) -> None:
    """Not a clock but SQLite's own plan: no scan of the frontier, no sorting."""
    for sql, parameters in ((_DOMAINS, ()), (_WINDOW, (1, NOT_DUE_TURN, 4))):
        plan = [row[3] for row in written.db.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        assert not any("TEMP B-TREE" in line for line in plan), plan
        assert not any(line.startswith(("SCAN frontier", "SCAN f ")) for line in plan), plan


def test_domains_are_listed_with_their_best_row(written: WrittenMap, frontier: Frontier) -> None:
    assert frontier.is_empty()
    written.add("https://b.test/1", 5)
    written.add("https://a.test/1", 7)
    written.add("https://a.test/2", 2)
    assert [(found.name, found.priority, found.row) for found in frontier.domains()] == [
        ("a.test", 2, 3),
        ("b.test", 5, 1),
    ]
    assert (frontier.count(), frontier.is_empty()) == (3, False)


def test_a_window_is_the_first_pages_of_a_domain_in_their_order(written: WrittenMap, frontier: Frontier) -> None:
    for number, priority in enumerate((5, 3, 3, 1)):
        written.add(f"https://a.test/{number}", priority)
    domain = frontier.domain_id("a.test")
    assert domain is not None
    assert [found.key[-1] for found in frontier.window(domain, 3)] == ["3", "1", "2"]
    assert frontier.domain_id("none.test") is None
    assert frontier.waiting_pages([2, 4, 99]) == [
        Waiting(4, 1, "https://a.test/3", None, None),
        Waiting(2, 3, "https://a.test/1", None, None),
    ]


def test_pages_that_were_never_visited_go_before_nearer_ones_of_earlier_runs(
    written: WrittenMap, frontier: Frontier
) -> None:
    for number, (priority, turn) in enumerate(((0, 3), (2, 2), (2, 0), (4, 0), (0, 1))):
        page = written.add(f"https://a.test/{number}", priority)
        written.db.execute("UPDATE frontier SET turn = ? WHERE id = ?", (turn, page))
    domain = frontier.domain_id("a.test")
    assert domain is not None
    assert [found.key[-1] for found in frontier.window(domain, 5)] == ["2", "3", "4", "1", "0"]
    assert [(found.priority, found.row) for found in frontier.domains()] == [(2, 3)]
    assert not frontier.was_cut_short(domain, 2)
    written.db.execute("UPDATE domain_states SET cut_run = 1")
    assert frontier.was_cut_short(domain, 2) and not frontier.was_cut_short(domain, 3)


def test_pages_that_still_wait_are_asked_for_in_any_number(written: WrittenMap, frontier: Frontier) -> None:
    pages = {written.add(f"https://a.test/{number}", 1) for number in range(1000)}
    assert frontier.still_waiting(pages | {5000}) == pages


def test_a_job_of_a_map_with_other_numbers_is_found_by_its_key(written: WrittenMap, frontier: Frontier) -> None:
    written.add("https://a.test/other", 1)
    page = written.add("https://a.test/x", 1, family=7)
    job = Job(1, "https://a.test/x", "https://a.test/x", "a.test", page)
    assert frontier.waiting_page(job) == (page, 7)
    assert frontier.waiting_page(Job(1, "https://a.test/x", "https://a.test/x", "a.test", 1)) == (page, 7)
    written.db.execute("DELETE FROM frontier")
    assert frontier.waiting_page(job) is None


def test_families_positions_and_runs_are_those_of_the_newest_commit(written: WrittenMap, frontier: Frontier) -> None:
    assert frontier.last_run() is None
    visited = written.add("https://a.test/x", 1, family=7, visited=1)
    written.add("https://a.test/y", 1, family=7)
    written.db.execute("INSERT INTO closed_families VALUES (7, 1, '', '', '', '[]')")
    written.db.execute("INSERT INTO spool_positions VALUES ('fetcher-01', 2, 30)")
    written.db.execute("INSERT INTO runs VALUES (1, '', NULL, '', 'running')")
    assert frontier.visited_in_family(7, 1) == {visited}
    assert frontier.is_family_closed(7, 1) and not frontier.is_family_closed(7, 2)
    assert frontier.positions() == {"fetcher-01": Cursor(2, 30)}
    assert frontier.last_run() == (1, "running")
