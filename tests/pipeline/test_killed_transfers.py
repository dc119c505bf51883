"""`engine import` and `engine export`, killed at any moment, are simply repeated. docs/scale.md promises it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.config.last_used import read_last_used, require_own_workspace, write_last_used
from crawler.config.load import load
from crawler.engine.engine_connection import connect
from crawler.engine.schemas import upgrade
from crawler.model.map_place import EngineMap
from crawler.model.records import PageResult
from crawler.pace.decisions import EntryRequest
from crawler.workspace.clock import read_clock
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from ingest.whole_maps import made_here, remove_left
from tests.crawler.cli.calling import Call, calls_told
from tests.ingest.terrains import AT
from tests.ingest.test_loop import begun, drain, write
from tests.pipeline.crawling import eventually, run
from tests.places import ROOT
from tests.postgres_server import own_database

SEED = "https://example.com/"
QUALITY = '[[quality]]\ndomain = "example.com"\nseeds = ["https://example.com/"]\n'
OWN = {"sumi_workspace", "sumi_map"}


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return calls_told(capsys)


@pytest.fixture
def url() -> Iterator[str]:
    """Commands in this process keep their leases, so each test has a database of its own."""
    with own_database() as made:
        with connect(made, "test") as admin:
            upgrade(admin, WORKSPACE)
        yield made


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """The config of a crawl in files, with its map."""
    path = tmp_path / "plain.toml"
    path.write_text(QUALITY)
    loaded = load(path)
    page = PageResult(1, SEED, SEED, "example.com", AT, "processed", status=200, base=SEED, hrefs=("/a", "/b"))
    write(loaded, "scheduler", begun())
    write(loaded, "fetcher-01", [page])
    drain(loaded)
    write_last_used(loaded)
    workspace = FileWorkspace(loaded.workspace)
    workspace.keep_robots("example.com", b'{"x":1}')
    gate = workspace.gate("example.com", read_clock)
    gate.try_enter(EntryRequest(run=1, delay_ms=0, limit=9))
    gate.finish()
    gate.close()
    return path


@pytest.fixture
def config(plain: Path, url: str) -> Path:
    """The config of the same crawl with an engine, in the same folder."""
    path = plain.with_name("my.toml")
    path.write_text(f'{QUALITY}[engine]\nurl = "{url}"\n')
    return path


def schemas(url: str) -> set[str]:
    with connect(url, "test") as admin:
        return {name for (name,) in admin.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'sumi%'")}


def content(folder: Path) -> dict[str, bytes]:
    """Every file of a crawl in files, but for locks and what a killed reader of SQLite leaves."""
    paths = [path for path in folder.rglob("*") if path.is_file() and "locks" not in path.parts]
    other = (".toml", ".db-wal", ".db-shm")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.suffix not in other}


def die(moment: str, nth: int, *words: str | Path) -> None:
    """Give a command that kills itself before a statement."""
    command = [sys.executable, "-m", "tests.pipeline.dying", moment, str(nth), *map(str, words)]
    died = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True
    )
    assert died.returncode == -signal.SIGKILL, died.stdout + died.stderr


def nobody_is_connected(url: str) -> bool:
    """Has the engine noticed that whoever imported is dead?"""
    with connect(url, "test") as admin:
        return not admin.execute(
            "SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            " AND application_name IN ('sumi-ripple import', 'sumi-ripple maps', 'sumi-ripple ingest')"
        ).fetchall()


BEFORE_THE_NOTE = "before its note"
AT_THE_END = "when all is done"
MOMENTS = {
    BEFORE_THE_NOTE: ("INSERT INTO documents", 1),
    "before the map is begun": ("CREATE SCHEMA", 1),
    "with a part of the map": ("COPY page_links", 1),
    "with a whole map": ("ANALYZE", 1),
    "with a part of the results": ("COPY records", 2),
    "before the gates": ("INSERT INTO gates", 1),
    "before the note goes": ("DELETE FROM documents", 1),
    "before the map takes its place": ("ALTER SCHEMA", 1),
    AT_THE_END: (r"FROM pg_namespace WHERE nspname ~", 3),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_import_has_changed_nothing_or_all_and_is_simply_repeated(
    call: Call, plain: Path, config: Path, url: str, moment: str
) -> None:
    before, files = call("digest", plain).output, content(plain.parent)
    die(*MOMENTS[moment], "engine", "import", config)
    eventually(lambda: nobody_is_connected(url), "the engine has noticed that its client is dead")
    workspace = EngineWorkspace(plain.parent / "workspace", url)
    is_done = moment == AT_THE_END
    assert (workspace.holds_crawl(), "sumi_map" in schemas(url)) == (is_done, is_done)
    assert workspace.results.writers() == (["fetcher-01", "scheduler"] if is_done else [])
    workspace.close()
    if moment not in (BEFORE_THE_NOTE, AT_THE_END):
        for command in ("crawl", "schedule", "fetch", "ingest"):
            refused = call(command, config)
            assert refused.exit_code == 1, command
            assert f"the import of {plain.parent / 'workspace'} into the engine" in refused.output, command
            assert "was cut off; finish it with: sumi-ripple engine import CONFIG" in refused.output, command
        exported = call("engine", "export", config, "--into", plain.parent / "out")
        assert exported.exit_code == 1 and "was cut off" in exported.output
    again = call("engine", "import", config)
    assert again.exit_code == 0, again.output
    assert call("digest", config).output == before == call("digest", plain).output
    assert schemas(url) == OWN, "nothing is left of the killed one"
    workspace = EngineWorkspace(plain.parent / "workspace", url)
    assert workspace.robots("example.com") == b'{"x":1}'
    assert workspace.gate("example.com", read_clock).read().sent == 1
    assert workspace.document("import") is None
    workspace.close()
    assert content(plain.parent) == files, "the source is as it was"


def test_no_stage_begins_during_an_import_and_one_that_is_killed_there_is_repeated(
    call: Call, plain: Path, config: Path, url: str
) -> None:
    before = call("digest", plain).output
    command = [sys.executable, "-m", "crawler", "engine", "import", str(config)]
    with connect(url, "lock", autocommit=False) as lock:
        lock.execute("LOCK TABLE sumi_workspace.robots IN ACCESS EXCLUSIVE MODE")
        importing = subprocess.Popen(command, cwd=plain.parent, env={**os.environ, "PYTHONPATH": str(ROOT)})

        def waits() -> bool:
            with connect(url, "test") as admin:
                waiting = "SELECT FROM pg_locks WHERE relation = 'sumi_workspace.robots'::regclass AND NOT granted"
                return bool(admin.execute(waiting).fetchall())

        try:
            eventually(waits, "all but robots.txt and the map's place is in the transaction")
            for word in ("crawl", "schedule"):
                assert "is under way; wait until it has ended" in call(word, config).output, word
            second = call("engine", "import", config)
            assert second.exit_code == 1 and "is under way; wait until it has ended" in second.output
            given_up = call("reset", config, "--yes")
            assert given_up.exit_code == 1 and "is under way; wait until it has ended" in given_up.output
        finally:
            importing.kill()
            importing.wait()
        lock.rollback()
    eventually(lambda: nobody_is_connected(url), "the engine has noticed that its client is dead")
    assert call("engine", "import", config).exit_code == 0
    assert call("digest", config).output == before


def test_an_unfinished_import_can_be_given_up(call: Call, plain: Path, config: Path, url: str) -> None:
    files = content(plain.parent)
    die(*MOMENTS["with a whole map"], "engine", "import", config)
    eventually(lambda: nobody_is_connected(url), "the engine has noticed that its client is dead")
    assert "sumi_map_replay_" in "".join(schemas(url))
    done = call("reset", config, "--yes")
    assert done.exit_code == 0 and "The unfinished import was given up" in done.output
    assert schemas(url) == {"sumi_workspace"} and content(plain.parent) == files
    workspace = EngineWorkspace(plain.parent / "workspace", url)
    assert workspace.document("import") is None and not workspace.holds_crawl()
    workspace.close()
    empty = call("engine", "export", config, "--into", plain.parent / "out")
    assert empty.exit_code == 2 and "there is nothing to export" in empty.output
    assert not (plain.parent / "out").exists()


def test_a_map_that_somebody_makes_stays_and_goes_when_its_maker_is_gone(
    call: Call, plain: Path, config: Path, url: str
) -> None:
    place = EngineMap(url).beside("replay_1_ab")
    with connect(url, "test") as admin, made_here(place):
        admin.execute(f"CREATE SCHEMA {place.schema} CREATE TABLE pages (id bigint)")
        admin.execute("CREATE SCHEMA sumi_map_replay_77 CREATE TABLE pages (id bigint)")
        admin.execute("CREATE SCHEMA sumi_map_old_20260101_000000")
        assert call("engine", "import", config).exit_code == 0
        kept = {"sumi_map_old_20260101_000000"}
        assert schemas(url) == OWN | {place.schema} | kept
    remove_left(EngineMap(url))
    assert schemas(url) == OWN | kept


@pytest.mark.parametrize("purge", [(), ("--purge",)], ids=["aside", "purged"])
def test_the_advice_where_an_engine_holds_a_crawl_leaves_the_files_alone(
    call: Call, plain: Path, config: Path, url: str, purge: tuple[str, ...]
) -> None:
    assert call("engine", "import", config).exit_code == 0
    write(
        load(plain), "fetcher-02", [PageResult(1, f"{SEED}a", f"{SEED}a", "example.com", AT, "processed", status=200)]
    )
    drain(load(plain))
    before, files = call("digest", plain).output, content(plain.parent)
    refused = call("engine", "import", config)
    assert refused.exit_code == 1 and "holds a crawl already" in refused.output
    assert "in the engine alone, with: sumi-ripple reset CONFIG" in refused.output
    done = run("reset", config, "--yes", *purge, cwd=plain.parent)
    assert done.returncode == 0 and "The crawl in files" in done.stdout and "stays as it is" in done.stdout
    assert content(plain.parent) == files
    assert len([name for name in schemas(url) if "_old_" in name]) == (0 if purge else 2)
    assert call("engine", "import", config).exit_code == 0
    assert call("digest", config).output == before
    assert content(plain.parent) == files


def test_a_crawl_that_came_without_a_map_is_the_one_of_its_config(
    call: Call, plain: Path, config: Path, url: str, tmp_path: Path
) -> None:
    (tmp_path / "sumi-ripple.db").unlink()
    moved = call("engine", "import", config)
    assert moved.exit_code == 0 and "There is no map to take along" in moved.output
    require_own_workspace(load(config))
    found = read_last_used(open_workspace(load(config)))
    assert found is not None and found["database"] == "sumi_map in the engine"
    workspace = EngineWorkspace(tmp_path / "workspace", url)  # as an earlier version brought the document here
    workspace.write_document("config", FileWorkspace(tmp_path / "workspace").document("config") or b"")
    workspace.close()
    require_own_workspace(load(config))
    assert call("ingest", config, "--drain", "--quiet").exit_code == 0
    assert call("engine", "export", config, "--into", tmp_path / "back").exit_code == 0
    found = read_last_used(FileWorkspace(tmp_path / "back"))
    assert found is not None and found["engine"] is None
    assert found["database"] == str(tmp_path / "back" / "sumi-ripple.db")


@pytest.mark.parametrize("moment", ["SELECT domain FROM gates", "SELECT .* FROM links"])
def test_a_killed_export_leaves_no_half_folder_and_is_simply_repeated(
    call: Call, plain: Path, config: Path, url: str, tmp_path: Path, moment: str
) -> None:
    before = call("digest", plain).output
    call("engine", "import", config)
    place, left = tmp_path / "back", tmp_path / ".back.exporting"
    place.mkdir()
    die(moment, 1, "engine", "export", config, "--into", place)
    assert list(place.iterdir()) == [] and left.is_dir()
    (left / "of the killed one").touch()
    again = call("engine", "export", config, "--into", place)
    assert again.exit_code == 0, again.output
    assert call("digest", place / "sumi-ripple.db").output == before
    assert not left.exists() and not (place / "of the killed one").exists()
    third = call("engine", "export", config, "--into", place)
    assert third.exit_code == 1 and "is not an empty folder" in third.output
    assert call("digest", place / "sumi-ripple.db").output == before


def test_an_export_that_fails_leaves_nothing(call: Call, plain: Path, config: Path, url: str, tmp_path: Path) -> None:
    call("engine", "import", config)
    with connect(url, "test") as admin:
        admin.execute("UPDATE sumi_map.meta SET value = '1' WHERE name = 'schema_version'")
    failed = call("engine", "export", config, "--into", tmp_path / "back")
    assert failed.exit_code == 1 and "its schema version is 1" in failed.output
    assert not (tmp_path / "back").exists() and not (tmp_path / ".back.exporting").exists()
