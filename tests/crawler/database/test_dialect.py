"""Statements are written once; what PostgreSQL says differently is translated word by word."""

from __future__ import annotations

import pytest

from crawler.database.dialect import for_postgres, tables_for_postgres
from crawler.database.ids import links_of
from ingest.writing.schema import TABLES


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT a FROM t WHERE b = ? AND c = ?", "SELECT a FROM t WHERE b = %s AND c = %s"),
        ("SELECT ?1 WHERE ?2 IS NULL OR x = ?2", "SELECT %(1)s WHERE %(2)s IS NULL OR x = %(2)s"),
        ("SELECT a FROM t WHERE b = :run", "SELECT a FROM t WHERE b = %(run)s"),
        ("SELECT '?1 :x %' LIKE 'a%'", "SELECT '?1 :x %%' LIKE 'a%%'"),
        ("SELECT a::text", "SELECT a::text"),
        ("FROM a CROSS JOIN b ON b.id = a.id", "FROM a JOIN b ON b.id = a.id"),
        ("FROM f INDEXED BY idx_f WHERE x", "FROM f  WHERE x"),
        ("INSERT OR IGNORE INTO t VALUES (?)", "INSERT INTO t VALUES (%s) ON CONFLICT DO NOTHING"),
        ("UPDATE OR ROLLBACK t SET a = 1", "UPDATE t SET a = 1"),
        ("WHERE a IS NOT ?1 AND b IS NOT NULL", "WHERE a IS DISTINCT FROM %(1)s AND b IS NOT NULL"),
        ("INSERT INTO temp.marked SELECT 1", "INSERT INTO pg_temp.marked SELECT 1"),
        ("SELECT value FROM json_each(?)", "SELECT value FROM numbers_in(%s)"),
        ("SELECT value FROM json_each(:texts) AS words", "SELECT value FROM texts_in(%(texts)s) AS words"),
        ("SELECT segment, offset FROM p", 'SELECT segment, "offset" FROM p'),
        ("SELECT 1 + depth, x -1", "SELECT 1 + depth, x -1"),
        ("instr(a || ':', ':') = ifnull(b, 0)", "strpos(a || ':', ':') = coalesce(b, 0)"),
        ("CREATE TEMP TABLE x (id INTEGER PRIMARY KEY, t TEXT)", "CREATE TEMP TABLE x (id bigint PRIMARY KEY, t text"),
    ],
)
def test_what_differs_is_said_in_postgresqls_words(sql: str, said: str) -> None:
    assert for_postgres(sql).sql.startswith(said)


def test_numbered_parameters_go_under_their_numbers() -> None:
    assert for_postgres("SELECT ?2, ?1, ?2").values((5, 6)) == {"1": 5, "2": 6}
    assert for_postgres("SELECT ?").values((5,)) == (5,)
    assert for_postgres("SELECT :a").values({"a": 1}) == {"a": 1}


def test_links_of_a_page_are_found_by_its_number_too() -> None:
    assert for_postgres(f"SELECT 1 FROM links l WHERE {links_of('l', 'p.id')}").sql.endswith(
        "AND l.from_page_id = p.id"
    )


def test_the_tables_have_no_words_of_sqlite_left() -> None:
    made = tables_for_postgres(TABLES)
    for word in ("INTEGER", "AUTOINCREMENT", "ROWID", "BLOB", "REFERENCES", "x''", "--", " TEXT"):
        assert word not in made, word
    assert made.count("CREATE TABLE") == TABLES.count("CREATE TABLE")
