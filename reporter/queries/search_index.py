"""Full-text search over titles and URLs: an index of trigrams (SQLite FTS5) in a file of its own, beside the map.

The map has one writer, so the index is not in it. It is made of the map of a completed run (`build_index`), as a new
file that replaces the old one when it is whole, under a stamp that names the run.

The index holds which pages have a trigram, not where (`detail=none`): a third of the size. So a question asks for pages
with all trigrams of a word, and the pages themselves decide whether they have the word.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from crawler.database.map_errors import NotAMap
from crawler.database.reader import MapReader, connect, open_map
from crawler.model.map_place import MapPlace

SHORTEST = 3  # letters of a word that can be searched for
_FORMAT = 1
_WORDS_OF = "SELECT id, title, substr(url, 9)"
_CHUNK = 20_000  # pages that are indexed in one statement
_MOST_WORDS = 12


def build_index(map_path: MapPlace, target: Path, stamp: str, *, is_wanted: Callable[[], bool] = lambda: True) -> bool:
    """Index the pages of a map in a new file, under a stamp that names the map's state.

    `is_wanted` is asked now and then. False: it was not, and there is no file.
    """
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target, isolation_level=None)) as db:
        for setting in ("journal_mode = OFF", "synchronous = OFF", "cache_size = -65536", "temp_store = MEMORY"):
            db.execute(f"PRAGMA {setting}")
        db.execute("CREATE TABLE made (format INTEGER, stamp TEXT)")
        db.execute(
            "CREATE VIRTUAL TABLE page_words USING fts5"
            "(title, url, tokenize = 'trigram', content = '', detail = none, columnsize = 0)"
        )
        add = _add_from_file if isinstance(map_path, Path) else _add_from_engine
        if add(db, map_path, is_wanted):
            db.execute("INSERT INTO made VALUES (?, ?)", (_FORMAT, stamp))
            db.execute("COMMIT")
            return True
    target.unlink(missing_ok=True)
    return False


def _add_from_file(db: sqlite3.Connection, map_path: MapPlace, is_wanted: Callable[[], bool]) -> bool:
    """Statement by statement, without a row in the interpreter. False: it is wanted no more."""
    assert isinstance(map_path, Path)
    db.execute("ATTACH ? AS map", (f"{map_path.absolute().as_uri()}?mode=ro",))
    highest = db.execute("SELECT coalesce(max(id), 0) FROM map.pages").fetchone()[0]
    db.execute("BEGIN")
    for start in range(0, highest, _CHUNK):
        if not is_wanted():
            return False
        db.execute(  # every key begins with https://
            f"INSERT INTO page_words (rowid, title, url) {_WORDS_OF} FROM map.pages WHERE id > ? AND id <= ?",
            (start, start + _CHUNK),
        )
    return True


def _add_from_engine(db: sqlite3.Connection, place: MapPlace, is_wanted: Callable[[], bool]) -> bool:
    """The same from a map that SQLite cannot read itself."""
    db.execute("BEGIN")
    with open_map(place) as reader:
        rows = reader.rows(f"{_WORDS_OF} FROM pages ORDER BY id")
        while chunk := list(islice(rows, _CHUNK)):
            if not is_wanted():
                return False
            db.executemany("INSERT INTO page_words (rowid, title, url) VALUES (?, ?, ?)", chunk)
    return True


def stamp_of(index: Path) -> str | None:
    """The stamp under which an index was made; None: there is none, or it is not whole."""
    if not index.is_file():
        return None
    try:
        with closing(connect(index, 5)) as db:
            row = db.execute("SELECT stamp FROM made WHERE format = ?", (_FORMAT,)).fetchone()
            return str(row[0]) if row else None
    except sqlite3.DatabaseError:
        return None


def words_of(text: str) -> tuple[list[str], list[str]]:
    """The words of a question that can be searched for, in lower case, and those that are too short."""
    words = list(dict.fromkeys(text.lower().removeprefix("https://").split()))[:_MOST_WORDS]
    return [word for word in words if len(word) >= SHORTEST], [word for word in words if len(word) < SHORTEST]


def candidate_pages(index: Path, words: list[str], after: int) -> Iterator[int]:
    """Pages that may have all these words, by number, from after this one. Raises NotAMap."""
    trigrams = dict.fromkeys(word[at : at + SHORTEST] for word in words for at in range(len(word) - SHORTEST + 1))
    question = " AND ".join('"{}"'.format(trigram.replace('"', '""')) for trigram in trigrams)
    try:
        with closing(connect(index, 5)) as db:
            sql = "SELECT rowid FROM page_words WHERE page_words MATCH ? AND rowid > ? ORDER BY rowid"
            for (page,) in db.execute(sql, (question, after)):
                yield page
    except sqlite3.DatabaseError as problem:
        raise NotAMap(index, str(problem)) from problem


def has_words(words: list[str], url: str, title: str | None) -> bool:
    """Does a page have every word in its title or its URL?"""
    text = f"{title or ''}\n{url.removeprefix('https://')}".lower()
    return all(word in text for word in words)


def map_stamp(reader: MapReader) -> str:
    """Names the state of a map: its newest run, whether that is over, and the rules that the map is built under."""
    row = reader.first(
        "SELECT id, started_at, status, coalesce(finished_at, ''),"
        " coalesce((SELECT value FROM meta WHERE name = 'map_hash'), '') FROM runs ORDER BY id DESC LIMIT 1"
    )
    return " ".join(str(value) for value in row) if row else ""
