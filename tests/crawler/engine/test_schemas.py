"""The schemas in the engine: made, upgraded, refused."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from crawler.engine.engine_connection import EngineError, connect
from crawler.engine.schemas import Schema, require, upgrade, version_of
from tests.postgres_server import own_database

ONE = Schema("sumi_example", ("CREATE TABLE things (name text)",))
TWO = Schema("sumi_example", (*ONE.steps, "ALTER TABLE things ADD COLUMN size integer"))


@pytest.fixture
def url() -> Iterator[str]:
    with own_database() as made:
        yield made


@pytest.fixture
def connection(url: str) -> Iterator[psycopg.Connection[Any]]:
    with connect(url, "test") as made:
        yield made


def test_a_schema_is_made_once_and_then_brought_up_to_date(connection: psycopg.Connection[Any]) -> None:
    with pytest.raises(EngineError, match=r"has no schema sumi_example yet; make it with: sumi-ripple engine init"):
        require(connection, ONE)
    assert upgrade(connection, ONE) == 1
    require(connection, ONE)
    connection.execute("INSERT INTO sumi_example.things VALUES ('kept')")
    with pytest.raises(EngineError, match=r"has version 1, this program needs 2; bring it up to date"):
        require(connection, TWO)
    assert upgrade(connection, TWO) == 1
    assert upgrade(connection, TWO) == 0
    require(connection, TWO)
    assert connection.execute("SELECT * FROM sumi_example.things").fetchall() == [("kept", None)]


def test_a_newer_schema_is_refused(connection: psycopg.Connection[Any]) -> None:
    upgrade(connection, TWO)
    for refused in (require, upgrade):
        with pytest.raises(EngineError, match=r"has version 2, newer than this program, which reads 1"):
            refused(connection, ONE)
    assert version_of(connection, ONE) == 2


@pytest.mark.parametrize("with_table", [False, True])
def test_somebody_elses_schema_is_refused_and_left_alone(connection: psycopg.Connection[Any], with_table: bool) -> None:
    connection.execute("CREATE SCHEMA sumi_example CREATE TABLE others (x integer)")
    if with_table:
        connection.execute("CREATE TABLE sumi_example.schema_version (program text, version integer)")
        connection.execute("INSERT INTO sumi_example.schema_version VALUES ('another', 1)")
    for refused in (require, upgrade):
        with pytest.raises(EngineError, match="was not made by this program"):
            refused(connection, ONE)
    assert connection.execute("SELECT count(*) FROM sumi_example.others").fetchone() == (0,)


def test_a_step_that_fails_leaves_nothing_behind(connection: psycopg.Connection[Any]) -> None:
    broken = Schema("sumi_example", ("CREATE TABLE things (name text); SELECT 1/0",))
    with pytest.raises(psycopg.errors.DivisionByZero):
        upgrade(connection, broken)
    assert version_of(connection, broken) == 0


def test_programs_that_start_at_the_same_time_take_each_step_once(url: str) -> None:
    def start(_: int) -> int:
        with connect(url, "test") as mine:
            return upgrade(mine, TWO)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(start, range(4))) == 2
