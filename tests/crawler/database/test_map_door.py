"""The contract of the map's reading door, over every implementation of a map."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import pytest

from crawler.config.last_used import require_own_workspace
from crawler.database.digest import digest, parts
from crawler.database.format import OLDEST_READABLE, SCHEMA_VERSION
from crawler.database.frontier import Frontier
from crawler.database.ingest_progress import closed_domains, spool_positions
from crawler.database.live_map import LiveMap
from crawler.database.map_errors import MapAway, MapError, MapMoved, NoDatabase, NotAMap
from crawler.database.map_session import MapSession
from crawler.database.presence import is_there
from crawler.database.reader import open_map
from crawler.model.map_place import EngineMap, MapPlace
from crawler.model.settings import Config, OutputSettings
from crawler.workspace.door import WorkspaceError
from crawler.workspace.log import Cursor
from ingest.postgres.map_tables import all_tables
from ingest.writing.schema import TABLES
from tests.postgres_server import own_database

ODD_NAMES = ("a#b.db", "a?b.db", "a%20b.db", "a b.db", "ä&mode=rwc.db", "-x.db", "a;b'c\".db", "%.db")
NOBODY = 65534
_NUMBERS = count(1)


class Maps(Protocol):
    """What a test needs of an implementation, from the writing side."""

    def place(self, folder: Path) -> MapPlace: ...
    def make(self, path: Any, name: str = "first") -> None: ...
    def add_run(self, path: Any, run: int) -> None: ...
    def apply_results(self, path: Any) -> None: ...
    def set_version(self, path: Any, version: str | None) -> None: ...
    def make_foreign(self, path: Any) -> None: ...
    def content(self, path: Any) -> object: ...


class SqliteMaps:
    def place(self, folder: Path) -> MapPlace:
        return folder / "map.db"

    def content(self, path: Path) -> object:
        return path.read_bytes()

    def make(self, path: Path, name: str = "first") -> None:
        path.unlink(missing_ok=True)
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

    def apply_results(self, path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("UPDATE spool_positions SET offset = offset + 10")
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


class PostgresMaps:
    """Each map is a schema of one database."""

    def __init__(self, url: str) -> None:
        self.url = url

    def place(self, folder: Path) -> MapPlace:
        return EngineMap(self.url, f"map_{next(_NUMBERS)}")

    def content(self, path: EngineMap) -> object:
        return self._do(path, "SELECT id, domain, class FROM domain_states").fetchall()

    def make(self, path: EngineMap, name: str = "first") -> None:
        self._do(path, f"DROP SCHEMA IF EXISTS {path.schema} CASCADE; CREATE SCHEMA {path.schema}; {all_tables()}")
        self._do(path, f"INSERT INTO meta VALUES ('schema_version', '{SCHEMA_VERSION}'), ('map_id', '{name}')")
        self._do(path, "INSERT INTO spool_positions VALUES ('fetcher-1', 2, 30)")
        sql = "INSERT INTO domain_states (domain, class, run, closed_reason) VALUES"
        self._do(path, f"{sql} ('a.test', 'discovered', 1, 'rate-limited')")

    def add_run(self, path: EngineMap, run: int) -> None:
        self._do(path, f"INSERT INTO runs VALUES ({run}, '', NULL, '', 'running')")

    def apply_results(self, path: EngineMap) -> None:
        self._do(path, 'UPDATE spool_positions SET "offset" = "offset" + 10')

    def set_version(self, path: EngineMap, version: str | None) -> None:
        self._do(path, "DELETE FROM meta WHERE name = 'schema_version'")
        if version is not None:
            self._do(path, f"INSERT INTO meta VALUES ('schema_version', '{version}')")

    def make_foreign(self, path: EngineMap) -> None:
        self._do(path, f"CREATE SCHEMA {path.schema}; CREATE TABLE {path.schema}.other (x int)")

    def _do(self, path: EngineMap, sql: str) -> Any:
        session = MapSession(path, "test")
        try:
            return session.plain(sql)
        finally:
            session.close()


@pytest.fixture(scope="module")
def engine_url() -> Iterator[str]:
    with own_database() as url:
        yield url


@pytest.fixture
def maps() -> Maps:
    """Of files: for tests that are about files."""
    return SqliteMaps()


@pytest.fixture
def path(tmp_path: Path, maps: Maps) -> Path:
    maps.make(tmp_path / "map.db")
    return tmp_path / "map.db"


@pytest.fixture(params=["sqlite", "postgresql"])
def every(request: pytest.FixtureRequest) -> Maps:
    """Every implementation."""
    return SqliteMaps() if request.param == "sqlite" else PostgresMaps(request.getfixturevalue("engine_url"))


@pytest.fixture
def place(tmp_path: Path, every: Maps) -> MapPlace:
    made = every.place(tmp_path)
    every.make(made)
    return made


def count_runs(path: MapPlace) -> int:
    with open_map(path) as reader:
        return reader.number("SELECT count(*) FROM runs")


# -- one snapshot -----------------------------------------------------------------------------------


def test_all_answers_of_a_reader_are_of_one_moment(place: MapPlace, every: Maps) -> None:
    with open_map(place) as reader:
        before = reader.number("SELECT count(*) FROM runs")
        every.add_run(place, 1)
        assert reader.number("SELECT count(*) FROM runs") == before == 0
    assert count_runs(place) == 1


def test_the_moment_is_that_of_opening_not_of_the_first_question(place: MapPlace, every: Maps) -> None:
    with open_map(place) as reader:
        every.add_run(place, 1)
        assert reader.number("SELECT count(*) FROM runs") == 0


def test_a_live_map_sees_every_commit(place: MapPlace, every: Maps) -> None:
    live = Frontier(place)
    live.open()
    assert live.last_run() is None
    every.add_run(place, 1)
    assert live.last_run() == (1, "running")
    live.close()


def test_nothing_can_be_written_through_the_door(place: MapPlace, every: Maps) -> None:
    before = every.content(place)
    with pytest.raises(MapError), open_map(place) as reader:
        reader.note("DELETE FROM domain_states")
    live = LiveMap(place)
    live.open()
    with pytest.raises(MapAway):
        live.ask("DELETE FROM domain_states")
    live.close()
    assert every.content(place) == before


def test_notes_of_a_reader_are_its_own(place: MapPlace) -> None:
    with open_map(place) as reader, open_map(place) as other:
        reader.note("CREATE TEMP TABLE mine (x INTEGER)")
        reader.note_many("INSERT INTO temp.mine VALUES (?)", [(1,), (2,)])
        assert reader.has_note("mine")
        assert not other.has_note("mine")
        assert not reader.has("mine")
        assert reader.all("SELECT x FROM mine") == [(1,), (2,)]


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_reader_of_a_settled_map_lets_the_log_go_back_between_two_questions(tmp_path: Path, is_settled: bool) -> None:
    path = SqliteMaps().place(tmp_path)
    SqliteMaps().make(path)
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        db.execute("UPDATE meta SET value = value")  # something is in the log
        with open_map(path, is_settled=is_settled) as reader:
            reader.note("CREATE TEMP TABLE mine (x INTEGER)")
            assert db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[0] == 0
            db.execute("CREATE INDEX idx_links_to ON links(to_page_id)")
            assert not reader.has("idx_links_to"), "one snapshot until it goes on"
            reader.go_on()
            assert reader.has("idx_links_to") is is_settled
            assert reader.has_note("mine")
            _, in_log, in_file = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            assert (in_log == in_file) is is_settled


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_map_that_moves_though_it_was_settled_is_no_answer(place: MapPlace, every: Maps, is_settled: bool) -> None:
    with open_map(place, is_settled=is_settled) as reader:
        every.add_run(place, 1)
        every.apply_results(place)
        if is_settled and not isinstance(place, EngineMap):  # the engine's log waits for nobody
            with pytest.raises(MapMoved):
                reader.go_on()
        else:
            reader.go_on()
            assert reader.number("SELECT count(*) FROM runs") == 0


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


def test_a_database_of_another_program_is_no_map(tmp_path: Path, every: Maps) -> None:
    other = every.place(tmp_path)
    every.make_foreign(other)
    with pytest.raises(NotAMap, match="none of the tables"):
        count_runs(other)
    with pytest.raises(MapAway, match="none of the tables"):
        LiveMap(other).open()


def test_a_map_that_is_not_there_is_said_to_be_missing(tmp_path: Path, every: Maps) -> None:
    nothing = every.place(tmp_path)
    with pytest.raises(NoDatabase, match="there is no"):
        count_runs(nothing)
    with pytest.raises(MapAway):
        LiveMap(nothing).open()
    assert spool_positions(nothing) is None
    assert not is_there(nothing)


def test_questions_that_need_no_snapshot_are_answered(place: MapPlace, every: Maps) -> None:
    assert spool_positions(place) == {"fetcher-1": Cursor(2, 30)}
    assert closed_domains(place, 1) == (1, [("a.test", "rate-limited")])
    live = Frontier(place)
    live.open()
    assert not live.has_been_replaced()
    assert (live.is_empty(), live.domains(), live.taken_orders()) == (True, [], set())
    every.make(place, "second")
    assert live.has_been_replaced()
    live.close()


def test_a_long_answer_is_read_while_other_questions_are_asked(place: MapPlace, every: Maps) -> None:
    for run in range(1, 4):
        every.add_run(place, run)
    with open_map(place) as reader:
        rows = reader.rows("SELECT id FROM runs ORDER BY id")
        assert next(rows) == (1,)
        assert reader.number("SELECT count(*) FROM runs WHERE id > ?", (1,)) == 2
        assert list(rows) == [(2,), (3,)]
        names, found = reader.named_rows("SELECT id AS number, status FROM runs WHERE id = :id", {"id": 2})
        assert (names, list(found)) == (("number", "status"), [(2, "running")])
        assert reader.has_column("runs", "status") and not reader.has_column("runs", "colour")


def test_a_map_that_breaks_while_it_is_read_is_no_map(place: MapPlace) -> None:
    with pytest.raises(NotAMap), open_map(place) as reader:
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
def test_another_format_is_refused_with_advice(place: MapPlace, every: Maps, version: str | None, advice: str) -> None:
    every.set_version(place, version)
    for ask in (digest, count_runs):
        with pytest.raises(NotAMap, match=advice):
            ask(place)
    with pytest.raises(MapAway, match=advice):
        LiveMap(place).open()


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


def test_a_map_that_is_not_open_is_away(place: MapPlace) -> None:
    live = LiveMap(place)
    assert not live.is_open
    with pytest.raises(MapAway):
        live.meta("map_id")
    live.open()
    assert live.is_open
    live.close()
    with pytest.raises(MapAway):
        live.meta("map_id")


def test_an_open_that_fails_leaves_nothing_open(place: MapPlace, every: Maps) -> None:
    every.set_version(place, None)
    live = LiveMap(place)
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
