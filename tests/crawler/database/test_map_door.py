"""The contract of the map's reading door, over every implementation of a map."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

import pytest

from crawler.config.last_used import require_own_workspace
from crawler.database.digest import digest, parts
from crawler.database.format import OLDEST_READABLE, SCHEMA_VERSION
from crawler.database.frontier import Frontier
from crawler.database.ingest_progress import closed_domains, spool_positions
from crawler.database.live_map import LiveMap
from crawler.database.map_errors import MapAway, MapError, NoDatabase, NotAMap
from crawler.database.reader import open_map
from crawler.model.settings import Config, OutputSettings
from crawler.workspace.door import WorkspaceError
from crawler.workspace.log import Cursor
from ingest.sqlite.schema import TABLES

ODD_NAMES = ("a#b.db", "a?b.db", "a%20b.db", "a b.db", "ä&mode=rwc.db", "-x.db", "a;b'c\".db", "%.db")
NOBODY = 65534


class Maps(Protocol):
    """What a test needs of an implementation, from the writing side."""

    def make(self, path: Path, name: str = "first") -> None: ...
    def add_run(self, path: Path, run: int) -> None: ...
    def set_version(self, path: Path, version: str | None) -> None: ...
    def make_foreign(self, path: Path) -> None: ...


class SqliteMaps:
    def make(self, path: Path, name: str = "first") -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(TABLES)
            for key, value in (("schema_version", str(SCHEMA_VERSION)), ("map_id", name)):
                db.execute("INSERT INTO meta VALUES (?, ?)", (key, value))
            db.execute("INSERT INTO spool_positions VALUES ('fetcher-1', 2, 30)")
            db.execute(
                "INSERT INTO domain_states (domain, class, run, closed_reason) VALUES"
                " ('a.test', 'discovered', 1, 'rate-limited')"
            )
            db.commit()

    def add_run(self, path: Path, run: int) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("INSERT INTO runs VALUES (?, '', NULL, '', 'running')", (run,))
            db.commit()

    def set_version(self, path: Path, version: str | None) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("DELETE FROM meta WHERE name = 'schema_version'")
            if version is not None:
                db.execute("INSERT INTO meta VALUES ('schema_version', ?)", (version,))
            db.commit()

    def make_foreign(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE other (x)")
            db.commit()


@pytest.fixture(params=[SqliteMaps], ids=["sqlite"])
def maps(request: pytest.FixtureRequest) -> Maps:
    made: Maps = request.param()
    return made


@pytest.fixture
def path(tmp_path: Path, maps: Maps) -> Path:
    maps.make(tmp_path / "map.db")
    return tmp_path / "map.db"


def count_runs(path: Path) -> int:
    with open_map(path) as reader:
        return reader.number("SELECT count(*) FROM runs")


# -- one snapshot -----------------------------------------------------------------------------------


def test_all_answers_of_a_reader_are_of_one_moment(path: Path, maps: Maps) -> None:
    with open_map(path) as reader:
        before = reader.number("SELECT count(*) FROM runs")
        maps.add_run(path, 1)
        assert reader.number("SELECT count(*) FROM runs") == before == 0
    assert count_runs(path) == 1


def test_the_moment_is_that_of_opening_not_of_the_first_question(path: Path, maps: Maps) -> None:
    with open_map(path) as reader:
        maps.add_run(path, 1)
        assert reader.number("SELECT count(*) FROM runs") == 0


def test_a_live_map_sees_every_commit(path: Path, maps: Maps) -> None:
    live = Frontier(path)
    live.open()
    assert live.last_run() is None
    maps.add_run(path, 1)
    assert live.last_run() == (1, "running")
    live.close()


def test_nothing_can_be_written_through_the_door(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(MapError), open_map(path) as reader:
        reader.note("DELETE FROM domain_states")
    live = LiveMap(path)
    live.open()
    with pytest.raises(MapAway):
        live.ask("DELETE FROM domain_states")
    live.close()
    assert path.read_bytes() == before


def test_notes_of_a_reader_are_its_own(path: Path) -> None:
    with open_map(path) as reader, open_map(path) as other:
        reader.note("CREATE TEMP TABLE mine (x)")
        reader.note_many("INSERT INTO temp.mine VALUES (?)", [(1,), (2,)])
        assert reader.has_note("mine")
        assert not other.has_note("mine")
        assert not reader.has("mine")
        assert reader.all("SELECT x FROM mine") == [(1,), (2,)]


# -- files that are no map --------------------------------------------------------------------------


def test_a_missing_file_is_said_to_be_missing_and_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(NoDatabase, match=r"there is no database at .*nothing\.db"), open_map(tmp_path / "nothing.db"):
        pass
    with pytest.raises(MapAway):
        LiveMap(tmp_path / "nothing.db").open()
    assert spool_positions(tmp_path / "nothing.db") is None
    assert closed_domains(tmp_path / "nothing.db", 1) == (0, [])
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_map(tmp_path: Path) -> None:
    with pytest.raises(NotAMap, match="it is not a file"), open_map(tmp_path):
        pass


@pytest.mark.parametrize("content", [b"", b"notes\n", b"SQLite format 3\x00" + b"\xff" * 4096], ids=repr)
def test_a_file_of_something_else_is_no_map(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    for ask in (digest, parts, count_runs):
        with pytest.raises(NotAMap, match=r"notes\.db is not a Sumi-Ripple database"):
            ask(path)
    with pytest.raises(MapAway):
        LiveMap(path).open()
    assert spool_positions(path) is None


def test_a_database_of_another_program_is_no_map(tmp_path: Path, maps: Maps) -> None:
    maps.make_foreign(tmp_path / "other.db")
    with pytest.raises(NotAMap, match="none of the tables"):
        count_runs(tmp_path / "other.db")
    with pytest.raises(MapAway, match="none of the tables"):
        LiveMap(tmp_path / "other.db").open()


def test_a_map_that_breaks_while_it_is_read_is_no_map(path: Path) -> None:
    with pytest.raises(NotAMap), open_map(path) as reader:
        reader.all("SELECT * FROM no_such_table")


# -- versions ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(OLDEST_READABLE, SCHEMA_VERSION + 1))
def test_every_format_from_the_oldest_readable_one_is_read(path: Path, maps: Maps, version: int) -> None:
    maps.set_version(path, str(version))
    assert count_runs(path) == 0
    LiveMap(path).open()


@pytest.mark.parametrize(
    ("version", "advice"),
    [
        (str(SCHEMA_VERSION + 1), "use a newer Sumi-Ripple"),
        (str(OLDEST_READABLE - 1), "rebuild it from the spools"),
        ("soon", "its schema version is soon"),
        (None, "its schema version is missing"),
    ],
)
def test_another_format_is_refused_with_advice(path: Path, maps: Maps, version: str | None, advice: str) -> None:
    maps.set_version(path, version)
    for ask in (digest, count_runs):
        with pytest.raises(NotAMap, match=advice):
            ask(path)
    with pytest.raises(MapAway, match=advice):
        LiveMap(path).open()


# -- a live map that goes away ----------------------------------------------------------------------


def test_a_replaced_file_is_noticed(path: Path, tmp_path: Path, maps: Maps) -> None:
    live = LiveMap(path)
    live.open()
    assert live.map_id == "first"
    assert not live.has_been_replaced()
    maps.make(tmp_path / "rebuilt.db", "second")
    (tmp_path / "rebuilt.db").replace(path)
    assert live.has_been_replaced()
    live.open()
    assert live.map_id == "second"
    assert not live.has_been_replaced()
    live.close()


def test_a_file_that_vanished_has_been_replaced(path: Path) -> None:
    live = LiveMap(path)
    live.open()
    path.unlink()
    assert live.has_been_replaced()
    live.close()


def test_a_map_that_is_not_open_is_away(path: Path) -> None:
    live = LiveMap(path)
    assert not live.is_open
    with pytest.raises(MapAway):
        live.meta("map_id")
    live.open()
    assert live.is_open
    live.close()
    with pytest.raises(MapAway):
        live.meta("map_id")


def test_an_open_that_fails_leaves_nothing_open(path: Path, maps: Maps) -> None:
    maps.set_version(path, None)
    live = LiveMap(path)
    with pytest.raises(MapAway):
        live.open()
    assert not live.is_open


# -- names ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_map_may_have_any_file_name(tmp_path: Path, maps: Maps, name: str) -> None:
    maps.make(tmp_path / "plain.db")
    maps.make(tmp_path / name)
    assert digest(tmp_path / name) == digest(tmp_path / "plain.db")
    assert spool_positions(tmp_path / name) == {"fetcher-1": Cursor(2, 30)}
    assert closed_domains(tmp_path / name, 1) == (1, [("a.test", "rate-limited")])
    live = Frontier(tmp_path / name)
    live.open()
    assert live.map_id == "first"
    assert not live.has_been_replaced()
    live.close()
    config = Config(workspace=tmp_path / "workspace", output=OutputSettings(database_path=tmp_path / name))
    with pytest.raises(WorkspaceError):  # it has read on in a log that is not there
        require_own_workspace(config)
    assert {entry.name for entry in tmp_path.iterdir() if entry.suffix == ".db"} == {"plain.db", name}


# -- a read-only medium -----------------------------------------------------------------------------


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may enter: pytest's own are private."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_map_on_a_read_only_medium_is_read(open_folder: Path, maps: Maps) -> None:
    path = open_folder / "map.db"
    maps.make(path)
    expected = digest(path)
    for left in ("-wal", "-shm"):
        path.with_name(path.name + left).unlink(missing_ok=True)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    assert as_nobody(lambda: digest(path)) == expected
    assert as_nobody(lambda: str(spool_positions(path))) == str(spool_positions(path))


def test_a_log_that_cannot_be_read_is_not_passed_over(open_folder: Path, maps: Maps) -> None:
    path = open_folder / "map.db"
    maps.make(path)
    writer = sqlite3.connect(path)
    writer.execute("INSERT INTO runs VALUES (1, '', NULL, '', 'running')")
    writer.commit()  # in the log alone
    wal, shm = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    log = wal.read_bytes()
    writer.close()
    wal.write_bytes(log)
    shm.unlink(missing_ok=True)
    for file in (path, wal):
        file.chmod(0o400)
    open_folder.chmod(0o555)
    path.chmod(0o444)

    def ask() -> str:
        try:
            return str(count_runs(path))
        except NotAMap:
            return "refused"

    assert as_nobody(ask) in ("refused", "1")  # never 0: that would be the map without its newest commit


def as_nobody(ask: object) -> str:
    """The answer of a process without the right to write (root writes to read-only folders too)."""
    assert callable(ask)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            os.write(write, str(ask()).encode())
        except BaseException as problem:
            os.write(write, repr(problem).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        answer = stream.read().decode()
    os.waitpid(child, 0)
    return answer
