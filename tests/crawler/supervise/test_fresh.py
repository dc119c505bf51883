"""`--fresh`: everything moves aside, nothing is deleted, and no site is requested too early."""

from __future__ import annotations

from pathlib import Path

from crawler.model.settings import Config
from crawler.pace.decisions import EntryRequest, Open
from crawler.supervise.fresh import move_aside
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.spool import Writer


def test_a_fresh_start_moves_everything_aside_and_deletes_nothing(config: Config, root: Path, tmp_path: Path) -> None:
    workspace = FileWorkspace(root)
    config.output.database_path.write_text("map")
    (tmp_path / "my.map.db-wal").write_text("log")
    (tmp_path / "my.map.db.runs").mkdir()
    (tmp_path / "my.map.db.runs" / "completed.db").write_text("copy")
    Writer(workspace.layout.results_of("fetcher-01")).append(b'{"a":1}')
    (workspace.layout.state / "run.json").write_text("{}")
    moved = move_aside(config)
    assert not config.output.database_path.exists() and not (tmp_path / "my.map.db-wal").exists()
    database, kept = map(Path, moved)
    assert database.read_text() == "map" and database.name.startswith("my.map.2")
    assert database.with_name(database.name + "-wal").read_text() == "log"
    assert (database.with_name(database.name + ".runs") / "completed.db").read_text() == "copy"
    assert not (tmp_path / "my.map.db.runs").exists()
    assert list((kept / "spool" / "results" / "fetcher-01").iterdir())
    assert (kept / "state" / "run.json").exists()
    assert workspace.layout.results.is_dir() and list(workspace.layout.results.iterdir()) == []


def test_two_fresh_starts_in_one_second_do_not_meet(config: Config, root: Path) -> None:
    config.output.database_path.write_text("one")
    (first,) = [path for path in map(Path, move_aside(config)) if path.suffix == ".db"]
    config.output.database_path.write_text("two")
    (second,) = [path for path in map(Path, move_aside(config)) if path.suffix == ".db"]
    assert (first.read_text(), second.read_text()) == ("one", "two")


def test_nothing_to_move_is_fine(config: Config, root: Path) -> None:
    assert move_aside(config) == []


def test_a_fresh_start_does_not_ask_a_site_again_at_once(config: Config, root: Path) -> None:
    workspace = FileWorkspace(root)
    gate = GateFile(workspace.layout.gate_of("a.test"))
    assert isinstance(gate.try_enter(EntryRequest(run=1, delay_ms=60_000, limit=5)).admission, Open)
    gate.finish()
    gate.close()
    move_aside(config)
    gate = GateFile(workspace.layout.gate_of("a.test"))
    assert not isinstance(gate.try_enter(EntryRequest(run=1, delay_ms=60_000, limit=5)).admission, Open), (
        "the clock runs on"
    )
    assert gate.read().sent == 0, "but the budget starts again"
    gate.close()
