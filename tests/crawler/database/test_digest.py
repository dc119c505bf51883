"""The digest says whether two maps say the same, and nothing else."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from crawler.database.digest import digest, parts
from tests.older_maps import TO_FORMAT_4
from tests.reporter.terrain import MapBuilder

PAGES = ("https://q.test/", "https://a.test/", "https://b.test/")


def build(path: Path, pages: tuple[str, ...] = PAGES) -> Path:
    builder = MapBuilder(path)
    for url in pages:
        builder.page(url)
    builder.link(PAGES[0], PAGES[1])
    builder.link(PAGES[1], PAGES[2])
    return builder.save()


def change(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(sql)
        db.commit()


def test_other_numbers_and_clocks_make_no_difference(tmp_path: Path) -> None:
    one, other = build(tmp_path / "one.db"), build(tmp_path / "other.db", PAGES[::-1])
    change(other, "UPDATE pages SET discovered_at = '', visited_at = 'later', wire_url = url || '/'")
    change(other, "UPDATE domain_states SET request_count = 99")
    assert digest(one) == digest(other)
    assert parts(one) == parts(other)


@pytest.mark.parametrize(
    ("sql", "part"),
    [
        ("UPDATE pages SET state = 'failed' WHERE id = 2", "page"),
        ("UPDATE pages SET title = 'x' WHERE id = 2", "page"),
        ("UPDATE pages SET error_message = 'timeout: 3 s' WHERE id = 2", "page"),
        ("UPDATE page_depths SET depth = depth + 1 WHERE page_id = 2", "depth"),
        ("DELETE FROM links WHERE to_page_id = 3", "link"),
        ("UPDATE links SET kind = 2 WHERE to_page_id = 3", "link"),
        ("UPDATE domain_states SET closed_reason = 'rate-limited' WHERE id = 1", "domain"),
        ("UPDATE pages SET validation = 'soft', rejection_reason = 'empty: x' WHERE id = 2", "rejected"),
        ("INSERT INTO stubbed_urls VALUES (2, 'https://a.test/', 'a.test', 1, 1)", "stubbed"),
    ],
)
def test_a_difference_shows_in_its_part_alone(tmp_path: Path, sql: str, part: str) -> None:
    one, other = build(tmp_path / "one.db"), build(tmp_path / "other.db")
    change(other, sql)
    assert digest(one) != digest(other)
    differing = {name for name, _ in parts(one).items() ^ parts(other).items()}
    assert differing == {part}


def test_a_map_without_rejected_pages_has_the_digest_that_it_had_before_there_were_any(tmp_path: Path) -> None:
    old, new = build(tmp_path / "old.db"), build(tmp_path / "new.db")
    with closing(sqlite3.connect(old)) as db:
        db.executescript(TO_FORMAT_4)
    change(new, "UPDATE pages SET validation = 'ok', text_print = 5")
    assert digest(old) == digest(new)
    assert "rejected" not in parts(new)


def test_the_words_after_an_errors_slug_make_no_difference(tmp_path: Path) -> None:
    one, other = build(tmp_path / "one.db"), build(tmp_path / "other.db")
    change(one, "UPDATE pages SET error_message = 'timeout: 3 s'")
    change(other, "UPDATE pages SET error_message = 'timeout: after 4 s'")
    assert digest(one) == digest(other)
