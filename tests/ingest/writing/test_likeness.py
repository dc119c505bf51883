"""Soft 404s by likeness: decided when a run ends, from recorded prints, whatever the order of visits."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from itertools import permutations
from pathlib import Path

from crawler.database.digest import digest
from crawler.model.records import PageResult, Result, RunEvent
from tests.ingest.terrains import AT, config, ingest_all

HOME = "https://qa.test/0"


def page(key: str, print_: int | None, *hrefs: str, status: int = 200, run: int = 1, word: str | None = "ok") -> Result:
    state = "processed" if status == 200 else "dead_link"
    return PageResult(
        *(run, key, key, key.split("/")[2], AT, state),
        error=None if status == 200 else f"http-{status}",
        status=status,
        base=key,
        hrefs=hrefs,
        validation=word if status == 200 else None,
        text_print=print_,
    )


def verdicts(path: Path) -> dict[str, tuple[str | None, str | None]]:
    with closing(sqlite3.connect(path)) as db:
        rows = db.execute("SELECT url, validation, rejection_reason FROM pages")
        return {url: (word, reason and reason.partition(":")[0]) for url, word, reason in rows}


def test_a_page_that_shows_what_missing_pages_show_is_a_soft_404_in_any_order(tmp_path: Path) -> None:
    visits = [
        page(
            HOME, 7, "/lost", "/soft", "/good", "/plain", "https://qa.test/", "https://one.test/a", "https://one.test/b"
        ),
        page("https://qa.test/lost", 5, status=404),
        page("https://qa.test/soft", 5),
        page("https://qa.test/plain", None),
        page("https://one.test/a", 5),  # another domain's 404 tells nothing
    ]
    digests = set()
    for number, order in enumerate(permutations(visits)):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = ingest_all(config(folder), [*order, page("https://qa.test/good", 6), RunEvent(1, AT, "finished")], 2)
        digests.add(digest(path))
        if number:
            continue
        found = verdicts(path)
        assert found["https://qa.test/soft"] == ("soft", "soft-404")
        assert found["https://qa.test/lost"] == (None, None)
        assert {
            found[key] for key in (HOME, "https://qa.test/good", "https://qa.test/plain", "https://one.test/a")
        } == {("ok", None)}
    assert len(digests) == 1


def test_a_site_whose_404_is_its_front_page_loses_nothing(tmp_path: Path) -> None:
    results = [
        page(HOME, 7, "https://qa.test/", "/lost", "/index.html"),
        page("https://qa.test/", 5),
        page("https://qa.test/lost", 5, status=404),
        page("https://qa.test/index.html", 5),
        RunEvent(1, AT, "finished"),
    ]
    found = verdicts(ingest_all(config(tmp_path), results, 10))
    assert found["https://qa.test/"] == found["https://qa.test/index.html"] == ("ok", None)


def test_each_run_is_judged_by_its_own_missing_pages_and_again_when_it_ends_again(tmp_path: Path) -> None:
    first = [page(HOME, 7, "/lost", "/a"), page("https://qa.test/lost", 5, status=404), page("https://qa.test/a", 5)]
    again = [
        RunEvent(2, AT, "started"),
        page(HOME, 7, "/lost", "/a", run=2),
        page("https://qa.test/lost", 6, status=404, run=2),
        page("https://qa.test/a", 5, run=2),
    ]
    path = ingest_all(config(tmp_path), [*first, RunEvent(1, AT, "finished"), *again, RunEvent(2, AT, "finished")], 1)
    assert verdicts(path)["https://qa.test/a"] == ("ok", None)
