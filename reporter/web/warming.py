"""After a run: what takes a scan of its map is worked out before somebody asks. The figures, and the search index."""

from __future__ import annotations

import logging
import threading

from crawler.model.errors import SumiError
from reporter.web.face import Face
from reporter.web.map_api import prepared_survey
from reporter.web.map_choice import chosen

log = logging.getLogger("sumi.web")

EVERY = 30.0  # seconds between looks at the map, which take a millisecond


class Warmer:
    """Looks at the map now and then, in a thread, until it is closed."""

    def __init__(self, face: Face) -> None:
        self._face = face
        self._done = ""  # the stamp of the map that was prepared last
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="warming", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """What was begun is left to its own threads."""
        self._closing.set()
        self._thread.join(1)

    def look(self) -> None:
        """Prepare the map of a completed run, once."""
        try:
            about = chosen(self._face)
            if not about.is_completed or about.stamp == self._done:
                return
            is_indexed = self._face.search.prepare(about.path, about.stamp)
            prepared_survey(self._face, about)  # raises Problem as long as it is not there
        except SumiError:
            return  # there is no map yet, or it is being worked out: the next look finds it
        if is_indexed or self._face.search.has_failed(about.stamp):
            self._done = about.stamp

    def _run(self) -> None:
        while not self._closing.is_set():
            try:
                self.look()
            except Exception:  # nothing depends on it: who asks gets the same error, with its reason
                log.exception("The figures of the newest run cannot be prepared")
            self._closing.wait(EVERY)
