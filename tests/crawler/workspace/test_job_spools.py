"""The bookmark files beside the job segments. (The windows: test_contract.py.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.files.job_spools import BOOKMARK, read_bookmark, write_bookmark
from crawler.workspace.log import Cursor


@pytest.mark.parametrize("holder", [None, "fetcher-03"])
def test_a_bookmark_is_read_as_it_was_written(tmp_path: Path, holder: str | None) -> None:
    bookmark = Bookmark(Cursor(7_000_001, 42), holder, Cursor(3, 99))
    write_bookmark(tmp_path, bookmark)
    assert read_bookmark(tmp_path) == bookmark


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"v":1}', b'{"segment":"x","offset":0}', b"\xff"])
def test_an_unreadable_bookmark_is_the_beginning(tmp_path: Path, content: bytes) -> None:
    (tmp_path / BOOKMARK).write_bytes(content)
    assert read_bookmark(tmp_path) == Bookmark()


def test_a_bookmark_for_a_folder_that_is_gone_is_not_needed(tmp_path: Path) -> None:
    write_bookmark(tmp_path / "gone", Bookmark(Cursor(1, 1)))
    assert not (tmp_path / "gone").exists()
