"""Rows of `list_pages`, `archive_pages` and `guesses`, and the ends in `pagination_rules` and `archive_rules`."""

from __future__ import annotations

from crawler.model.urls import hash64
from ingest.memory.changes import Changes
from ingest.writing.engine import MapConnection

_RULE = (
    "INSERT INTO pagination_rules (id, form, domain_id, last_number, first_run, last_run)"
    " VALUES (?1, ?2, ?3, 0, ?4, ?4) ON CONFLICT(id) DO UPDATE SET last_run = excluded.last_run"
)
_ARCHIVE_RULE = (
    "INSERT INTO archive_rules (id, form, domain_id, first_run, last_run) VALUES (?1, ?2, ?3, ?4, ?4)"
    " ON CONFLICT(id) DO UPDATE SET last_run = excluded.last_run"
)


def write_guesses(db: MapConnection, done: Changes, run: int) -> None:
    """Inside the store's transaction."""
    if done.list_pages:
        pages = [(number, page, hash64(page.form)) for number, page in sorted(done.list_pages.items())]
        rules = {rule: (page.form, page.domain) for _, page, rule in pages}
        db.executemany(_RULE, [(rule, *rest, run) for rule, rest in rules.items()])
        db.executemany(
            "INSERT OR REPLACE INTO list_pages VALUES (?, ?, ?)", [(n, rule, page.number) for n, page, rule in pages]
        )
    _write_archives(db, done, run)
    if done.guesses:
        db.executemany(
            "INSERT OR REPLACE INTO guesses (id, run, way, rule_id) VALUES (?, ?, ?, ?)",
            [(number, run, guess.way, hash64(guess.form)) for number, guess in sorted(done.guesses.items())],
        )
    if done.guess_finds:
        db.executemany(
            "UPDATE guesses SET found = ? WHERE id = ? AND run = ?",
            [(found, number, run) for number, found in done.guess_finds.items()],
        )
    for end in done.ended_guesses:
        is_archive = end.way == "archive"
        number = hash64(end.form)
        db.execute(_ARCHIVE_RULE if is_archive else _RULE, (number, end.form, end.domain, run))
        table = "archive_rules" if is_archive else "pagination_rules"
        db.execute(f"UPDATE {table} SET ended_by = ?, ended_run = ? WHERE id = ?", (end.reason, run, number))


def _write_archives(db: MapConnection, done: Changes, run: int) -> None:
    if done.archive_pages:
        pages = [(key, page, hash64(page.form)) for key, page in sorted(done.archive_pages.items())]
        rules = {rule: (page.form, page.domain) for _, page, rule in pages}
        db.executemany(_ARCHIVE_RULE, [(rule, *rest, run) for rule, rest in rules.items()])
        db.executemany(
            # The same address whichever page showed it first: the shortest, then the first by its letters.
            "INSERT INTO archive_pages VALUES (?, ?, ?, ?, nullif(?, 0)) ON CONFLICT(id) DO UPDATE SET"
            " run = excluded.run, page_id = coalesce(excluded.page_id, archive_pages.page_id),"
            " url = CASE WHEN (length(excluded.url), excluded.url) < (length(archive_pages.url), archive_pages.url)"
            " THEN excluded.url ELSE archive_pages.url END",
            [(key, rule, page.url, run, page.page) for key, page, rule in pages],
        )
    if done.known_archives:
        db.executemany(
            "UPDATE archive_pages SET page_id = ? WHERE id = ?",
            [(page, key) for key, page in done.known_archives.items()],
        )
