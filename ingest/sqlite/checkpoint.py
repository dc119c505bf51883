"""SQLite's log of committed pages goes back into the database file while the next batch is worked out.

By itself SQLite does that inside a commit: on a large map the ingest then stands still for a second, every few
batches, and most of that is waiting for the disk. Here a thread with a connection of its own does it beside the work
(SQLite lets others commit meanwhile). What has come in until it is done is little, so that a second go is done before
the next commit; then the log begins anew instead of growing.
"""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

LONG = 200 * 1024 * 1024  # bytes of log: what is written often goes to the file once
TOO_LONG = 4 * LONG  # then the work has to wait for it

_CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"


class Checkpoints:
    """For the one connection that writes. `look` after every commit, `finish` before it is closed."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._log = database.with_name(f"{database.name}-wal")
        self._thread: threading.Thread | None = None

    def look(self, db: sqlite3.Connection) -> None:
        """Begin a checkpoint, if it is time for one. `db` is the connection that writes."""
        length = self._length()
        if length > TOO_LONG:
            self.finish()
            db.execute(_CHECKPOINT).fetchone()
        elif length > LONG and (self._thread is None or not self._thread.is_alive()):
            self._thread = threading.Thread(target=self._work, name="checkpoint", daemon=True)
            self._thread.start()

    def finish(self) -> None:
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _length(self) -> int:
        try:
            return self._log.stat().st_size
        except OSError:
            return 0  # a map that is drawn anew has no log

    def _work(self) -> None:
        try:
            db = sqlite3.connect(self._database)
            try:
                db.execute(_CHECKPOINT).fetchone()
            finally:
                db.close()
        except sqlite3.Error:
            pass  # nothing is lost; the writer meets the same trouble, and says so
