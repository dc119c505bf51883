"""The rows of `runs`, and the state of the tables between runs.

`READING_INDEXES` and `READING_VIEWS` exist only while no run is under way: made when a run finishes (most indexes when
the ingest ends, a moment later), dropped when one starts or resumes. Some indexes may be there a little before the end
of a small map's run (`ingest/ahead.py`).
"""

from __future__ import annotations

from collections.abc import Iterable

from crawler.model.records import RunEvent
from ingest.writing.engine import MapConnection, MapEngine
from ingest.writing.likeness import reject_soft_404s
from ingest.writing.schema import ERROR_STATES


def last_run(db: MapConnection) -> tuple[int, str]:
    """The newest run's number and status; (0, "") before the first."""
    row = db.execute("SELECT id, status FROM runs ORDER BY id DESC LIMIT 1").fetchone()
    return (0, "") if row is None else (int(row[0]), str(row[1]))


def begin_run(engine: MapEngine, run: int, at: str, config_hash: str) -> None:
    """A new run: its row, and tables without the waiting pages, held results and closures of the run before."""
    db = engine.db
    db.execute(
        "INSERT INTO runs (id, started_at, config_hash, status) VALUES (?, ?, ?, 'running')", (run, at, config_hash)
    )
    db.execute("DELETE FROM frontier")
    db.execute("DELETE FROM held_results WHERE run < ?", (run,))
    db.execute("DELETE FROM closed_families WHERE run < ?", (run,))
    engine.drop_reading_aids()


def write_run_events(engine: MapEngine, events: Iterable[RunEvent]) -> None:
    """The events of a batch, last of all its changes: an index over pages is made when the pages are there."""
    db = engine.db
    for event in events:
        if event.settings:
            db.execute(
                "INSERT INTO run_settings (id, run, at, settings)"
                " SELECT coalesce(max(id), 0) + 1, ?, ?, ? FROM run_settings",
                (event.run, event.at, event.settings),
            )
        if event.event == "started":
            db.execute(
                "UPDATE runs SET started_at = ?, config_hash = ? WHERE id = ?",
                (event.at, event.config_hash, event.run),
            )
        elif event.event == "finished":
            db.execute("UPDATE runs SET status = 'completed', finished_at = ? WHERE id = ?", (event.at, event.run))
            reject_soft_404s(db, event.run)
            engine.make_reading_aids(is_complete=False)
            count_figures(db, event.run)
        elif event.event == "interrupted":
            _set_status(db, event.run, "interrupted", event.at)
        elif event.event == "resumed":
            engine.drop_reading_aids()  # a map rebuilt under other rules may have been complete
            _set_status(db, event.run, "running", None)


def complete_reading_aids(engine: MapEngine) -> None:
    """Make the rest of the indexes, if the newest run is completed.

    Not with its end: the summary needs none of them, and is written meanwhile.
    """
    if last_run(engine.db)[1] == "completed":
        engine.make_reading_aids(is_complete=True)


def count_figures(db: MapConnection, run: int) -> None:
    """Keep the figures of a finished run: the next run changes the rows that they are counted from."""
    db.execute(
        "INSERT OR REPLACE INTO run_figures"
        " SELECT ?1, count(*) FILTER (WHERE state = 'processed'), count(*),"
        "  CASE WHEN EXISTS (SELECT 1 FROM runs WHERE id <> ?1) THEN (SELECT count(*) FROM links WHERE last_run = ?1)"
        "  ELSE (SELECT count(*) FROM links) END,"  # which needs no look at each
        f"  count(*) FILTER (WHERE state IN ({ERROR_STATES})), count(DISTINCT domain_id)"
        " FROM pages WHERE seen_run = ?1",
        (run,),
    )


def reopen_run(db: MapConnection, run: int) -> None:
    """A rebuilt map has pages to visit, though its run was finished under the old rules: it can be resumed."""
    db.execute("UPDATE runs SET status = 'interrupted' WHERE id = ?", (run,))


def _set_status(db: MapConnection, run: int, status: str, finished_at: str | None) -> None:
    db.execute(
        "UPDATE runs SET status = ?, finished_at = ? WHERE id = ? AND status <> 'completed'", (status, finished_at, run)
    )
