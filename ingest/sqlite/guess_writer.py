"""Rows of `list_pages` and `guesses`, and the ends of lists in `pagination_rules`."""

from __future__ import annotations

import sqlite3

from crawler.model.urls import hash64
from ingest.memory.changes import Changes

_RULE = (
    "INSERT INTO pagination_rules (id, form, domain_id, last_number, first_run, last_run)"
    " VALUES (?1, ?2, ?3, 0, ?4, ?4) ON CONFLICT(id) DO UPDATE SET last_run = excluded.last_run"
)


def write_guesses(db: sqlite3.Connection, done: Changes, run: int) -> None:
    """Inside the store's transaction."""
    if done.list_pages:
        pages = [(number, page, hash64(page.form)) for number, page in sorted(done.list_pages.items())]
        rules = {rule: (page.form, page.domain) for _, page, rule in pages}
        db.executemany(_RULE, [(rule, *rest, run) for rule, rest in rules.items()])
        db.executemany(
            "INSERT OR REPLACE INTO list_pages VALUES (?, ?, ?)", [(n, rule, page.number) for n, page, rule in pages]
        )
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
    if done.ended_guesses:
        ended = [(hash64(end.form), end) for end in done.ended_guesses]
        db.executemany(_RULE, [(rule, end.form, end.domain, run) for rule, end in ended])
        db.executemany(
            "UPDATE pagination_rules SET ended_by = ?, ended_run = ? WHERE id = ?",
            [(end.reason, run, rule) for rule, end in ended],
        )
