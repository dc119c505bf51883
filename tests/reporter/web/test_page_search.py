"""The search index of a face: made once for a run, replaced for the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from reporter.web.page_search import PageSearch
from reporter.web.problems import Problem
from tests.reporter.terrain import rich_map


def pages(search: PageSearch, path: Path, stamp: str, text: str) -> list[int]:
    search.prepare(path, stamp)
    search.wait()
    return list(search.candidates(path, stamp, text)[1])


def test_an_index_is_made_when_it_is_asked_for_and_made_again_for_another_run(tmp_path: Path) -> None:
    path = rich_map(tmp_path / "map.db")
    search = PageSearch(path)
    with pytest.raises(Problem, match="is being made") as early:
        search.candidates(path, "run 1", "friend")
    assert early.value.retry_after
    assert len(pages(search, path, "run 1", "friend")) == 2
    made = search.path.stat().st_mtime_ns
    assert PageSearch(path).prepare(path, "run 1") and search.path.stat().st_mtime_ns == made, "it is kept"
    assert len(pages(search, path, "run 2", "friend")) == 2 and search.path.stat().st_mtime_ns != made
    search.close()


def test_words_that_are_too_short_are_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="3 letters or more: te"):
        PageSearch(tmp_path / "map.db").candidates(tmp_path / "map.db", "run 1", "te almanac")
    with pytest.raises(Problem, match="3 letters or more"):
        PageSearch(tmp_path / "map.db").candidates(tmp_path / "map.db", "run 1", "  ")


def test_a_folder_that_cannot_be_written_is_said_plainly(tmp_path: Path) -> None:
    path = rich_map(tmp_path / "map.db")
    (tmp_path / "map.db.face").write_text("a file is in the way")
    search = PageSearch(path)
    assert not search.prepare(path, "run 1")
    search.wait()
    with pytest.raises(Problem, match="cannot be written"):
        search.candidates(path, "run 1", "friend")
