"""The page logs: a row for each visit that counts, written with the commit that applies it.

Exact after any kill. A batch's rows are appended and made durable first; then its commit notes how long the files are.
The next start cuts a file to the length that was committed: rows of a batch that was not are written again with it.

The files lie on the machine where the ingest runs. A map in an engine may be written from one machine after another: it
notes the lengths of each machine's files by themselves.
"""

from __future__ import annotations

import logging

from crawler.model.map_place import EngineMap, MapPlace
from crawler.model.page_row import LoggedVisit, csv_header, csv_rows, json_lines
from crawler.model.settings import LogSettings
from crawler.workspace.door import AppendedFile, LogFolder
from ingest.writing.map_notes import read_note, write_notes
from ingest.writing.store import Store

log = logging.getLogger("sumi.ingest")

METADATA = "metadata/crawl_metadata.jsonl"
_PAGES = "logs/pages-"
_KNOWN = "logs_known"  # lengths are noted from the first row on: a file without one has no committed row
_SIZE = "log_size:"
_REDRAWN = "logs_redrawn"
_BEGUN = "logs_begun"  # some machine has files of this map in an engine


def _note(name: str, database: MapPlace, folder: LogFolder) -> str:
    """The name under which a map notes this of its files in this folder."""
    return f"{name}@{folder.place}" if isinstance(database, EngineMap) else name


def page_log_name(run: int) -> str:
    return f"{_PAGES}{run}.csv"


class PageLog:
    """The logs that the config asks for. `write` comes before the commit of the same changes.

    `is_bulk`: the map is being built as a whole, and what a crash leaves is thrown away. `is_redrawn`: map and logs
    will take the place of others, so the lengths are of use.
    """

    def __init__(
        self, settings: LogSettings, folder: LogFolder, store: Store, *, is_bulk: bool = False, is_redrawn: bool = False
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._store = store
        self._is_bulk = is_bulk
        self._notes_sizes = is_redrawn or not is_bulk
        self._files: dict[str, tuple[AppendedFile, int]] = {}
        store.keep_referrers()
        if is_bulk:
            return
        if store.meta(self._note(_REDRAWN)):  # the map was rebuilt, and so were these
            folder.take_from(folder.beside(_REDRAWN))
            store.set_meta(self._note(_REDRAWN), "")
        if not store.meta(self._note(_KNOWN)):
            self._begin(folder, store)
            store.set_meta(self._note(_KNOWN), "1")
        run, _ = store.last_run()
        for name in self._names(run):
            if folder.file(name).size():
                self._open(name)

    def _note(self, name: str) -> str:
        return _note(name, self._store.place, self._folder)

    def _begin(self, folder: LogFolder, store: Store) -> None:
        """This map knows of no log here. Whatever is there belongs to another map of the same results; none of it is
        lost.

        A map that a replay made goes on with the files, and so does one that was taken into an engine or out of it. A
        map without results will apply all of them again, and so write every row again: the files are set aside.
        """
        if not store.positions():
            for name in folder.names():
                if name == METADATA or name.startswith(_PAGES):
                    folder.set_aside(name)
        else:
            if store.meta(_BEGUN) and isinstance(store.place, EngineMap):
                log.warning(
                    "The page logs go on in %s; rows written before are on the machine where the ingest ran before",
                    folder.place,
                )
            for name in {*folder.names(), *self._names(store.last_run()[0])}:
                size = folder.file(name).size()
                store.set_meta(self._note(_SIZE + name), str(min(size, self._transferred(name, size))))
        if isinstance(store.place, EngineMap):
            store.set_meta(_BEGUN, "1")
            store.set_meta(_KNOWN, "")  # its files are another map's from now on
        elif store.meta(_BEGUN):
            store.set_meta(_BEGUN, "")
            store.set_meta(f"{_KNOWN}@{folder.place}", "")

    def _transferred(self, name: str, size: int) -> int:
        """The length of a log that was committed by the map in a file that this one in an engine was made of."""
        is_transferred = isinstance(self._store.place, EngineMap) and bool(self._store.meta(_KNOWN))
        committed = self._store.meta(_SIZE + name) if is_transferred else None
        return size if committed is None else int(committed)

    def write(self, run: int) -> None:
        """Append the rows of the visits that the next commit applies, and note the new lengths for it."""
        changes = self._store.changes
        if not changes.done:
            return
        referrers = self._store.referrers_of(changes.done)
        visits = [
            LoggedVisit(
                *(page.visit, page.key, page.state, page.error, page.depth, referrers.get(page.id)),
                page.page_type or None,
            )
            for page in changes.done
            if page.visit is not None and not page.visit.is_carried
        ]
        if not visits:
            return
        for name in self._names(run):
            content = csv_rows(visits) if name != METADATA else json_lines(visits)
            file, size = self._files.get(name) or self._open(name)
            if size == 0 and name != METADATA:
                content = csv_header() + content
            file.append(content)
            if not self._is_bulk:
                file.sync()
            self._files[name] = file, size + len(content)
            if self._notes_sizes:
                changes.meta[self._note(_SIZE + name)] = str(size + len(content))

    def finish(self) -> None:
        """All rows are written. Comes before the last commit; logs that are redrawn take their places after it."""
        for file, _ in self._files.values():
            file.sync()
        if self._is_bulk and self._notes_sizes:
            self._store.changes.meta |= {self._note(_REDRAWN): "1", self._note(_KNOWN): "1"}
            if isinstance(self._store.place, EngineMap):
                self._store.changes.meta[_BEGUN] = "1"
        self.close()

    def close(self) -> None:
        for file, _ in self._files.values():
            file.close()
        self._files.clear()

    def _names(self, run: int) -> list[str]:
        names = [page_log_name(run)] if self._settings.pages and run else []
        return names + ([METADATA] if self._settings.metadata else [])

    def _open(self, name: str) -> tuple[AppendedFile, int]:
        """A log, open after its last committed row. Those of earlier runs are closed: nothing is added to them."""
        for other in [each for each in self._files if each != METADATA and each != name and name != METADATA]:
            self._files.pop(other)[0].close()
        file = self._folder.file(name)
        committed = 0 if self._is_bulk else int(self._store.meta(self._note(_SIZE + name)) or 0)
        size = file.open_at(committed)
        if size < committed:
            log.warning("%s has lost rows; replay makes all of them again, in files of its own", name)
        self._files[name] = file, size
        return file, size


class ReplacedLog:
    """The records of all runs in a shorter file, which waits at `redrawn_folder`: for who holds the ingest's role.

    `note` commits its length, and that it is to take the old one's place; `finish` does that. Raises StoreError.
    """

    def __init__(self, database: MapPlace, folder: LogFolder) -> None:
        self._database = database
        self._folder = folder

    def note(self, size: int) -> None:
        write_notes(self._database, {self._note(_SIZE + METADATA): str(size), self._note(_REDRAWN): "1"})

    def finish(self) -> int:
        """Let a file that waits take its place; returns the length that is committed."""
        if read_note(self._database, self._note(_REDRAWN)):
            self._folder.take_from(self._folder.beside(_REDRAWN))
            write_notes(self._database, {self._note(_REDRAWN): ""})
        size = read_note(self._database, self._note(_SIZE + METADATA))
        return self._folder.file(METADATA).size() if size is None else int(size)

    def _note(self, name: str) -> str:
        return _note(name, self._database, self._folder)


def redrawn_folder(folder: LogFolder) -> LogFolder:
    """The place for the logs of a map that is being rebuilt, empty."""
    place = folder.beside(_REDRAWN)
    place.clear()
    return place
