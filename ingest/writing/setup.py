"""A map before its first batch: tables made or upgraded, origins numbered, figures counted, the index filled."""

from __future__ import annotations

import uuid
from itertools import islice

from crawler.database.format import SCHEMA_VERSION
from crawler.database.map_errors import StoreError, other_place
from crawler.model import recorded_settings
from crawler.model.settings import Config
from crawler.workspace.clock import now_text
from ingest.memory.page_index import (
    BLACKLISTED,
    BY_DEPTH,
    BY_ROW,
    FIXED,
    OTHER,
    QUEUED,
    STUBBED,
    UNSEEN,
    VISITED,
    PageIndex,
)
from ingest.writing.engine import MapConnection, MapEngine
from ingest.writing.run_rows import count_figures, last_run
from ingest.writing.schema import (
    ERROR_STATES,
    FROM_FORMAT_4,
    FROM_FORMAT_5,
    FROM_FORMAT_7,
    READING_VIEWS,
    SINCE_FORMAT_2,
    SINCE_FORMAT_3,
    SINCE_FORMAT_4,
    SINCE_FORMAT_5,
    SINCE_FORMAT_6,
)

_ROWS = 20_000  # of the index, at a time
_FROM_6 = SINCE_FORMAT_6 + FROM_FORMAT_7
_FROM_5 = SINCE_FORMAT_5 + FROM_FORMAT_5 + _FROM_6
_FROM_4 = SINCE_FORMAT_4 + FROM_FORMAT_4 + _FROM_5
_FROM_3 = SINCE_FORMAT_3 + _FROM_4
_UPGRADES = {
    "2": SINCE_FORMAT_2 + _FROM_3,
    "3": _FROM_3,
    "4": _FROM_4,
    "5": _FROM_5,
    "6": _FROM_6,
    "7": FROM_FORMAT_7,
}
_WITHOUT_FIGURES = ("2", "3")  # formats
_INDEX = f"""
SELECT url_hash, reach, (domain_id << 6) | CASE WHEN origin IN ('linked', 'seed') THEN 0 ELSE 8 END |
       CASE WHEN visited_run IS NOT NULL OR origin NOT IN ('linked', 'seed') THEN {BY_ROW}
            WHEN state = 'depth_exceeded' THEN {BY_DEPTH << 4}
            WHEN state = 'discovered' THEN CASE WHEN error_message IS NULL THEN {BY_DEPTH << 4} ELSE {FIXED << 4} END
            WHEN state IN ('blacklisted', 'stubbed') THEN {FIXED << 4} ELSE {BY_ROW} END |
       CASE WHEN seen_run <> ?1 THEN {UNSEEN} WHEN visited_run = ?1 THEN {VISITED}
            WHEN state = 'queued' AND origin IN ('linked', 'seed') THEN {QUEUED}
            WHEN state = 'stubbed' THEN {STUBBED} WHEN state = 'blacklisted' THEN {BLACKLISTED} ELSE {OTHER} END
FROM pages ORDER BY id
"""  # few columns: each costs more than reading the row


def prepare_tables(engine: MapEngine, config: Config) -> bool:
    """Make the tables where there are none, upgrade those of an older format, refuse others. True: the map is new."""
    db, tables = engine.db, engine.tables()
    if not tables:
        # One transaction: tables without their version could not be recognised.
        engine.begin()
        engine.make_tables()
        engine.make_reading_aids(is_complete=True)
        for name, value in (
            ("schema_version", str(SCHEMA_VERSION)),
            ("map_id", uuid.uuid4().hex),
            ("made_at", now_text()),
        ):
            set_meta(db, name, value)
        note_rules(db, config)
        db.execute("COMMIT")
        return True
    if "meta" not in tables or "spool_positions" not in tables:
        raise StoreError(f"{engine.place} was made by another program; {other_place(engine.place)}")
    version = meta(db, "schema_version")
    if version in _UPGRADES:
        _upgrade(engine, version)
    elif version != str(SCHEMA_VERSION):
        raise StoreError(
            f"{engine.place} has map format {version}, this program reads {SCHEMA_VERSION}; "
            f"rebuild it from the spools with: sumi-ripple replay CONFIG --into new.db"
        )
    return False


def _upgrade(engine: MapEngine, version: str) -> None:
    db = engine.db
    engine.begin()
    engine.run_script(_UPGRADES[version])
    run, status = last_run(db)
    if status == "completed" and version in _WITHOUT_FIGURES:  # they can be counted; those of earlier runs cannot
        count_figures(db, run)
    if status == "completed":  # the views as they are now
        for name in READING_VIEWS:
            db.execute(f"DROP VIEW IF EXISTS {name}")
        engine.make_reading_aids(is_complete=False)
    set_meta(db, "schema_version", str(SCHEMA_VERSION))
    db.execute("COMMIT")


def meta(db: MapConnection, name: str) -> str | None:
    row = db.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return None if row is None else str(row[0])


def set_meta(db: MapConnection, name: str, value: str) -> None:
    db.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
        (name, value),
    )


def remove_meta(db: MapConnection, name: str) -> None:
    db.execute("DELETE FROM meta WHERE name = ?", (name,))


def note_rules(db: MapConnection, config: Config) -> None:
    """Note the rules that the map is built under, so that a change can be seen, and named."""
    set_meta(db, "map_hash", config.map_hash)
    set_meta(db, "map_settings", recorded_settings.dump(config))


def number_origins(db: MapConnection, origins: list[str]) -> None:
    """Number the quality entries as the config lists them; another list makes another map (see `map_hash`)."""
    db.execute("BEGIN")
    db.execute("DELETE FROM origins")
    db.executemany("INSERT INTO origins VALUES (?, ?)", enumerate(origins))
    db.execute("COMMIT")


def count_rows(db: MapConnection) -> dict[str, int]:
    """Figures for the heartbeat, of the newest run; the store keeps them up from here on."""

    def first(sql: str) -> int:
        return int(db.execute(sql).fetchone()[0])

    run, _ = last_run(db)
    visited, crawled, failed, known = db.execute(
        "SELECT count(*) FILTER (WHERE visited_run = ?1),"
        " count(*) FILTER (WHERE seen_run = ?1 AND state = 'processed'),"
        f" count(*) FILTER (WHERE seen_run = ?1 AND state IN ({ERROR_STATES})),"
        " count(*) FILTER (WHERE seen_run = ?1) FROM pages",
        (run,),
    ).fetchone()
    if run <= 1:  # the links of all runs are those of this one, and there are sums of them
        links = first("SELECT coalesce(sum(links), 0) FROM domain_links")
        links += first("SELECT coalesce(sum(links), 0) FROM unsummed_visits")
    elif (kept := db.execute("SELECT links FROM run_figures WHERE id = ?", (run,)).fetchone()) is not None:
        links = int(kept[0])
    else:
        links = first(f"SELECT count(*) FROM links WHERE last_run = {run}")
    return {
        "pages": visited - first(f"SELECT count(*) FROM revisits WHERE carried_run = {run}"),
        "crawled": crawled,
        "known": known,
        "links": links,
        "frontier": first("SELECT count(*) FROM frontier"),
        "errors": failed,
    }


def fill_index(engine: MapEngine, index: PageIndex) -> None:
    """Read every page into the index, as it is in the newest run. Pages are numbered without a gap, so order tells."""
    db = engine.db
    for number, name in db.execute("SELECT id, domain FROM domain_states ORDER BY id"):
        index.add_domain(number, name)
    numbers: dict[bytes, int] = {}  # by the stored form, which saves parsing most of them
    rows = engine.stream(_INDEX, (last_run(db)[0],))
    while chunk := list(islice(rows, _ROWS)):
        hashes, stored, places = zip(*chunk, strict=True)
        for reach in set(stored) - numbers.keys():
            numbers[reach] = index.reach_number(index.parse_reach(reach))
        index.extend(
            hashes,
            [place >> 6 for place in places],
            [place & 7 for place in places],
            [numbers[reach] for reach in stored],
            [place >> 3 & 1 for place in places],
            [place >> 4 & 3 if numbers[r] or not r else BY_ROW for place, r in zip(places, stored, strict=True)],
        )
    index.finish_loading()
