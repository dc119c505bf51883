"""The workspace: whole files or none, and no guessing at what another version left there."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.settings import Config
from crawler.supervise.fresh import move_aside
from crawler.workspace.atomic import write_atomically
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.job_spools import read_bookmark, write_bookmark
from crawler.workspace.files.spool import Writer
from crawler.workspace.log import Cursor
from ingest.replay import replay


def test_a_bookmark_is_written_beside_synced_put_in_place_and_its_folder_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 4: temp, fsync, rename, fsync of the folder, in that order."""
    steps: list[tuple[str, str]] = []
    fsync, rename = os.fsync, Path.replace

    def note_fsync(number: int) -> None:
        steps.append(("fsync", Path(f"/proc/self/fd/{number}").readlink().name))
        fsync(number)

    def note_replace(self: Path, target: Path) -> Path:
        steps.append(("replace", target.name))
        return rename(self, target)

    monkeypatch.setattr(os, "fsync", note_fsync)
    monkeypatch.setattr(Path, "replace", note_replace)
    write_bookmark(tmp_path, Bookmark(Cursor(3, 7), "fetcher-01", Cursor(1, 2)))
    (first, scratch), second, third = steps
    assert first == "fsync" and scratch != "bookmark.json"
    assert second == ("replace", "bookmark.json")
    assert third == ("fsync", tmp_path.name)
    assert read_bookmark(tmp_path) == Bookmark(Cursor(3, 7), "fetcher-01", Cursor(1, 2))


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_file_that_could_not_be_replaced_is_the_old_one_and_nothing_is_left_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "note.json"
    write_atomically(path, b"old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path if step == "replace" else os, step, fail)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    monkeypatch.undo()
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["note.json"]


def test_a_workspace_of_another_format_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    config = replace(Config(), workspace=tmp_path / "ws")
    workspace = FileWorkspace(config.workspace)
    workspace.prepare()
    workspace.prepare()  # its own format is no obstacle
    Writer(workspace.layout.results_of("fetcher-01")).append(b'{"v":0,"kind":"visit"}')
    workspace.layout.format_file.write_text("0\n")
    with pytest.raises(WorkspaceError, match=r"has format '0', this program reads 1; .*--fresh"):
        workspace.prepare()
    with pytest.raises(WorkspaceError, match="format '0'"):
        replay(config, tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()
    assert workspace.layout.format_file.read_text() == "0\n"


def test_a_fresh_start_moves_a_workspace_of_another_format_aside(tmp_path: Path) -> None:
    config = replace(Config(), workspace=tmp_path / "ws")
    config = replace(config, output=replace(config.output, database_path=tmp_path / "map.db"))
    workspace = FileWorkspace(config.workspace)
    workspace.prepare()
    workspace.layout.format_file.write_text("0\n")
    Writer(workspace.layout.results_of("fetcher-01")).append(b'{"v":0,"kind":"visit"}')
    workspace.prepare(is_to_be_cleared=True)
    (kept,) = map(Path, move_aside(config))
    assert (kept / "spool" / "format").read_text() == "0\n"
    workspace.prepare()
    assert workspace.layout.format_file.read_text() == "1\n"
    assert move_aside(config) == []
