"""Search over titles and URLs: the index beside the map, made in a thread when the map of a run is complete.

One statement of SQLite at a time does the work, without the interpreter's lock, so viewers hardly notice.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path

from crawler.model.map_place import MapPlace
from reporter.map.layout_file import face_folder
from reporter.queries.search_index import SHORTEST, build_index, candidate_pages, stamp_of, words_of
from reporter.web.problems import Problem

log = logging.getLogger("sumi.web")


class PageSearch:
    """The index of one database. A question that comes too early is told to come again."""

    def __init__(self, database: MapPlace) -> None:
        self._folder = face_folder(database)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_wanted = True
        self._failed: str | None = None  # the stamp that no index could be made for

    @property
    def path(self) -> Path:
        return self._folder / "search.db"

    def prepare(self, map_path: MapPlace, stamp: str) -> bool:
        """Is there an index under this stamp? If not, begin to make it, unless one is being made."""
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                return False
            if stamp_of(self.path) == stamp:
                return True
            if self._failed != stamp:
                self._thread = threading.Thread(target=self._make, args=(map_path, stamp), name="search", daemon=True)
                self._thread.start()
            return False

    def has_failed(self, stamp: str) -> bool:
        """Could no index be made under this stamp?"""
        return self._failed == stamp

    def candidates(self, map_path: MapPlace, stamp: str, text: str, after: int = 0) -> tuple[list[str], Iterator[int]]:
        """The words of a question, and the pages that may have them all. Raises Problem.

        The caller asks each page by `search_index.has_words`.
        """
        words, short = words_of(text)
        if short or not words:
            shown = f": {', '.join(short)}" if short else ""
            raise Problem(422, "short-word", f"give words of {SHORTEST} letters or more{shown}")
        if not self.prepare(map_path, stamp):
            if self._failed == stamp:
                raise Problem(503, "no-index", f"{self._folder} cannot be written, so there is no search")
            raise Problem(503, "index-being-made", "the search index of this run is being made", retry_after=2)
        return words, candidate_pages(self.path, words, after)

    def close(self) -> None:
        """Stop making an index; the next server begins anew."""
        self._is_wanted = False
        self.wait()

    def wait(self, seconds: float | None = None) -> None:
        """Until the index that is being made is there, or could not be made; at most so long."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _make(self, map_path: MapPlace, stamp: str) -> None:
        new = self._folder / "search.new.db"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if build_index(map_path, new, stamp, is_wanted=lambda: self._is_wanted):
                new.replace(self.path)
        except Exception:
            self._failed = stamp
            log.warning("The search index of %s cannot be made", map_path, exc_info=True)
