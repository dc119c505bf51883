"""A workspace of files as something to be kept: see `crawler.workspace.keeping`."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Set
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from crawler.model.errors import sentence
from crawler.model.messages import NO_RETRIES
from crawler.pace.gate_record import NO_MARK, GateRecord
from crawler.workspace.atomic import OWNER_ONLY, OWNER_ONLY_FOLDER, read_own, sync_folder
from crawler.workspace.clock import read_clock
from crawler.workspace.door import GateError, WorkspaceError
from crawler.workspace.files.aside import remove_aside
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.layout import Layout
from crawler.workspace.files.spool import end_of, segment_path, segments
from crawler.workspace.keeping import Kept, Part
from crawler.workspace.log import Cursor

# Folders that belong to a crawl as a whole; each file in them is copied as it is.
_COPIED = ("summaries", "logs", "metadata", "quarantine", "archive", "rolled-up", "web")
_STORE, _PAGES, _PACKS = "store", "html", "packs"
_SCRATCH = "tmp"  # where the store writes before a name appears
_PARTS = {
    "results": "spool/results",
    "jobs and hints": "spool",
    "stored pages": "store",
    "logs": "logs",
    "page records": "metadata",
    "summaries": "summaries",
    "quarantine": "quarantine",
    "archives": "archive",
    "rolled up": "rolled-up",
    "state": "state",
}
_OWN = {
    *(place.partition("/")[0] for place in _PARTS.values()),
    "locks",
    "activity",
    "bells",
    "status",
    "web",
    "rates.db",
}
_KINDS = {"logs": ("logs",), "quarantine": ("quarantine",), "summaries": ("summaries",)}
_RECORDS = "crawl_metadata.jsonl"
_TIME = re.compile(rb'\{"timestamp":"([0-9T:.-]+)')
_ASIDE = "old-"  # the crawls that --fresh moved aside
_DAY = 86_400


class KeptFiles:
    """See `crawler.workspace.keeping.Keeping`."""

    def __init__(self, root: Path) -> None:
        self._layout = Layout(root)

    # -- backups -------------------------------------------------------------------------------------

    def save(self, target: Path, ends: Mapping[str, Cursor], *, has_store: bool) -> None:
        layout, copy = self._layout, Layout(target)
        try:
            copy.gates.mkdir(OWNER_ONLY_FOLDER, parents=True)
            copy.results.mkdir(OWNER_ONLY_FOLDER, parents=True)
            if layout.format_file.exists():
                shutil.copyfile(layout.format_file, copy.format_file)
            for writer, end in ends.items():
                _save_log(layout.results_of(writer), copy.results_of(writer), end)
            _save_log(layout.orders, copy.orders, _last_line_end(layout.orders))  # the map knows which were taken up
            for path in _files(layout.gates):  # after the results: a gate never counts fewer requests than they do
                with suppress(FileNotFoundError):
                    shutil.copyfile(path, copy.gates / path.name, follow_symlinks=False)
            for name in _COPIED:
                _save_folder(layout.root / name, target / name, is_sealed=False)
            if has_store:
                _save_store(layout.root / _STORE, target / _STORE)
        except OSError as problem:
            raise WorkspaceError(
                f"the backup cannot be written: {sentence(problem)}; nothing else is touched"
            ) from None

    def settle(self, run: int, closed: Collection[str]) -> None:
        known = {self._layout.gate_of(domain).name for domain in closed}
        for path in _files(self._layout.gates):
            gate = GateFile(path)
            try:
                before = gate.read().run
                gate.update(before, partial(_settled, is_closed=before == run and path.name in known))
            except GateError as problem:
                raise WorkspaceError(sentence(problem)) from None
            finally:
                gate.close()

    # -- sizes ---------------------------------------------------------------------------------------

    def parts(self, now: float) -> list[Part]:
        places = {**_PARTS, "moved aside": "", "other": ""}
        found = {name: Part(name, place=str(self._layout.root / place)) for name, place in places.items()}
        try:
            tops = sorted(os.scandir(self._layout.root), key=lambda entry: entry.name)
        except FileNotFoundError:
            return []
        for top in tops:
            if top.name not in _OWN and not top.name.startswith(_ASIDE):
                continue  # the map may lie here too
            for path in _files_below(Path(top.path)):
                name = self._part_of(path)
                with suppress(FileNotFoundError):
                    found[name] += _measured(name, path, now)
        return [part for part in found.values() if part.files]

    def _part_of(self, path: Path) -> str:
        relative = path.relative_to(self._layout.root).as_posix()
        if relative.startswith(_ASIDE):
            return "moved aside"
        return next((name for name, place in _PARTS.items() if relative.startswith(f"{place}/")), "other")

    # -- what may be removed -------------------------------------------------------------------------

    def old(self, kind: str, before: float) -> list[Kept]:
        root = self._layout.root
        if kind == "aside":
            tops = [path for path in root.glob(f"{_ASIDE}*") if path.is_dir() and not path.is_symlink()]
        else:
            tops = [path for name in _KINDS[kind] for path in _files_below(root / name)]
        found = []
        for path in tops:
            with suppress(FileNotFoundError):
                at = path.lstat().st_mtime
                if at < before:
                    size = sum(each.lstat().st_size for each in _files_below(path)) if kind == "aside" else None
                    size = path.lstat().st_size if size is None else size
                    found.append(Kept(path.relative_to(root).as_posix(), size, at))
        return sorted(found, key=lambda kept: (kept.at, kept.name))

    def remove(self, kept: Kept) -> None:
        path = self._layout.root / kept.name
        with suppress(FileNotFoundError):
            if path.is_dir() and not path.is_symlink():
                remove_aside(path)
            else:
                path.unlink()

    def read(self, kept: Kept) -> bytes:
        return read_own(self._layout.root / kept.name)

    def append(self, name: str, header: bytes, content: bytes) -> None:
        path = self._layout.root / name
        path.parent.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, OWNER_ONLY)
        with os.fdopen(descriptor, "ab") as file:
            if not file.tell():
                file.write(header)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        sync_folder(path.parent)


def _settled(record: GateRecord, *, is_closed: bool) -> GateRecord:
    """The gate of a restored crawl. What was sent counts, but no log has the place that its mark names.

    The gate is younger than the map. So it may know of a closure, or of retries, whose result is not in the backup:
    that page is visited again, and from its first try.
    """
    return replace(
        record,
        ledgered=record.sent,
        unreported=0,
        mark=NO_MARK,
        is_in_flight=False,
        ended=read_clock(),
        closes=record.closes if is_closed else None,
        retry_counts=NO_RETRIES,
    )


def _save_log(source: Path, target: Path, end: Cursor) -> None:
    """The segments of a log up to a cursor: all but the last are sealed."""
    target.mkdir(OWNER_ONLY_FOLDER)
    for number in segments(source):
        if number < end.segment:
            _link_or_copy(segment_path(source, number), segment_path(target, number))
        elif number == end.segment and end.offset:
            _copy_start(segment_path(source, number), segment_path(target, number), end.offset)


def _last_line_end(folder: Path) -> Cursor:
    """The cursor after the last whole line of a log that somebody may be writing to."""
    end = end_of(folder)
    if not end.segment:
        return end
    content = segment_path(folder, end.segment).read_bytes()[: end.offset]
    return Cursor(end.segment, content.rfind(b"\n") + 1)


def _copy_start(source: Path, target: Path, size: int) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY)
    with source.open("rb") as reading, os.fdopen(descriptor, "wb") as writing:
        while size and (chunk := reading.read(min(size, 1 << 20))):
            writing.write(chunk)
            size -= len(chunk)


def _link_or_copy(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # another disk, or one without links
        shutil.copyfile(source, target, follow_symlinks=False)
        target.chmod(OWNER_ONLY)


def _save_folder(source: Path, target: Path, *, is_sealed: bool, left_out: Set[str] = frozenset()) -> None:
    """Every file below a folder, without folders of these names. `is_sealed`: they never change, so a link will do."""
    for path in _files_below(source):
        place = target / path.relative_to(source)
        if not left_out.isdisjoint(place.relative_to(target).parts):
            continue
        place.parent.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # removed meanwhile
            if is_sealed:
                _link_or_copy(path, place)
            else:
                shutil.copyfile(path, place, follow_symlinks=False)
                place.chmod(OWNER_ONLY)


def _save_store(source: Path, target: Path) -> None:
    """The stored pages, which never change; and the notes beside them, which grow: a link to one would grow with it.

    Packs come after single pages: a page that is packed meanwhile is in its pack before its own file goes.
    """
    _save_folder(source / _PAGES, target / _PAGES, is_sealed=True, left_out={_SCRATCH, _PACKS})
    _save_folder(source / _PAGES / _PACKS, target / _PAGES / _PACKS, is_sealed=True)
    for path in _files(source):
        _save_folder(path, target / path.name, is_sealed=False)


def _files(folder: Path) -> list[Path]:
    """The files in a folder, without symlinks."""
    try:
        return sorted(Path(entry.path) for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False))
    except FileNotFoundError:
        return []


def _files_below(top: Path) -> Iterator[Path]:
    """The files below a folder, or the file itself. Symlinks are neither followed nor named, nor are files that are
    being written (their names begin with a dot).
    """
    if top.is_file() and not top.is_symlink():
        yield top
    for folder, _, names in os.walk(top):
        for name in sorted(names):
            path = Path(folder, name)
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _measured(name: str, path: Path, now: float) -> Part:
    found = path.lstat()
    size = found.st_blocks * 512 or found.st_size
    if path.name == _RECORDS:  # one file over all runs: its time tells nothing of its growth
        day, week = (int(size * _share_since(path, found.st_size, now - age)) for age in (_DAY, 7 * _DAY))
        return Part(name, 1, size, day, week)
    age = now - found.st_mtime
    return Part(name, 1, size, size if age < _DAY else 0, size if age < 7 * _DAY else 0)


def _share_since(path: Path, size: int, since: float) -> float:
    """The share of a log's bytes in lines since then. They are in the order of their times, but for a few."""
    wanted = datetime.fromtimestamp(since, UTC).isoformat(timespec="milliseconds").encode()
    low, high = 0, size
    with path.open("rb") as file:
        while low < high:
            middle = (low + high) // 2
            file.seek(middle)
            if middle:
                file.readline()  # the rest of a line
            at = _TIME.match(file.readline(200))
            if at is None or at[1] >= wanted:
                high = middle
            else:
                low = middle + 1
    return (size - low) / size if size else 0.0
