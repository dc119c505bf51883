"""Checkpoints in a thread: SQLite's log goes back into the database file while the next batch is worked out.

By itself SQLite does that inside a commit: on a large map the ingest then stops for a second, every few
batches, mostly waiting for the disk. Here a thread with a connection of its own does it beside the work (SQLite lets
others commit meanwhile). Little is added to the log until it is done, so a second checkpoint ends before the next
commit; then the log is restarted instead of growing.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path

LONG = 200 * 1024 * 1024  # bytes of log: pages that are written often go to the file once
TOO_LONG = 4 * LONG  # then the work has to wait for it
SOME = 8 * 1024 * 1024  # bytes of log that are worth it once no page waits: the end of the run must not wait for them

_CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"
_EMPTY = "PRAGMA wal_checkpoint(TRUNCATE)"
_PATIENCE = 30.0  # seconds for readers, who keep what they read in the log
_LOOK_MS = 8  # then SQLite looks again; by itself only every tenth of a second, and the end of a crawl waits for that


class Checkpoints:
    """For the one connection that writes. `begin_if_due` after every commit, `finish` before it is closed."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(f"{database.name}-wal")
        self._thread: threading.Thread | None = None

    def begin_if_due(self, db: sqlite3.Connection, *, is_last: bool = False) -> None:
        """Begin a checkpoint if the log is long; `is_last`: or if it is not, for there may be nothing more to write.

        `db` is the connection that writes.
        """
        length = self._length()
        if length > TOO_LONG:
            self.finish()
            db.execute(_CHECKPOINT).fetchone()
        elif length > (SOME if is_last else LONG) and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._work, name="checkpoint", daemon=True)
            self._thread.start()

    def empty_log(self, db: sqlite3.Connection) -> None:
        """Put all of the log into the file, unless a reader is in the way for long. `db` is about to be closed."""
        db.execute(f"PRAGMA busy_timeout = {_LOOK_MS}")
        until = time.monotonic() + _PATIENCE
        while db.execute(_EMPTY).fetchone()[0] and time.monotonic() < until:
            pass  # it has waited

    def finish(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _length(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0  # a map that is being rebuilt has no log

    def _work(self) -> None:
        try:
            db = sqlite3.connect(self._database)
            try:
                db.execute(_CHECKPOINT).fetchone()
            finally:
                db.close()
        except sqlite3.Error:
            pass  # nothing is lost; the writer meets the same problem, and reports it
