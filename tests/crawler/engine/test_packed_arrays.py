"""Arrays of parameters: what the engine reads is what was packed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.engine.engine_connection import connect
from crawler.engine.packed_arrays import bools, byteas, int8s, texts
from tests.postgres_server import clean_database

numbers = st.integers(-(2**63), 2**63 - 1)
words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@pytest.fixture(scope="module")
def connection() -> Any:
    with clean_database() as url, connect(url, "test") as made:
        yield made


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.none() | numbers), st.lists(st.booleans()), st.lists(words), st.lists(st.binary()))
def test_the_engine_reads_what_was_packed(
    connection: Any, some: list[int | None], flags: list[bool], names: list[str], bodies: list[bytes]
) -> None:
    row = connection.execute(
        "SELECT %s::bigint[], %s::boolean[], %s::text[], %s::bytea[]",
        (int8s(some), bools(flags), texts(names), byteas(bodies)),
        binary=True,
    ).fetchone()
    assert row == (some, flags, names, bodies)
