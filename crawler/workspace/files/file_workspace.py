"""The workspace as a folder of files: `FileWorkspace` is what `crawler.workspace.door.Workspace` describes."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from crawler.model.errors import sentence
from crawler.model.moments import Moment
from crawler.model.records import Job
from crawler.workspace.atomic import OWNER_ONLY_FOLDER, free_bytes, read_own, write_atomically
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.door import LONGEST_REQUEST_MS, STAGES, BusyWork, Claim, RoleTaken, WorkspaceError
from crawler.workspace.files.activity_file import ActivityFile, read_activity
from crawler.workspace.files.appended_file import LogFolder
from crawler.workspace.files.aside import move_content
from crawler.workspace.files.bell_pipes import BellPipe, ring
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.hint_spools import HintSpool
from crawler.workspace.files.job_spools import JobSpools, newest_number, read_bookmark, write_bookmark
from crawler.workspace.files.layout import Layout, domain_of
from crawler.workspace.files.leases import Lease, remove_lease, try_lease
from crawler.workspace.files.result_spools import ResultSpools
from crawler.workspace.files.slot_files import SlotFiles
from crawler.workspace.files.spool import Reader, bytes_after
from crawler.workspace.log import BEGINNING, Cursor
from crawler.workspace.reading import read_records
from crawler.workspace.seals import sealed, unsealed

FORMAT = 1  # of everything in a workspace; `spool/format` says which one is there
_BOOKMARK_WRITERS = 16  # threads, which do nothing but wait for the disk
_MOVED_ASIDE = ("spool", "state", "status", "quarantine", "logs", "metadata")
_KEPT_BY_FRESH = ("store", "summaries", "rolled-up")  # a fresh crawl goes on with them; a reset moves them too


class FileWorkspace:
    """A workspace below one folder. Making one touches nothing; `prepare` makes the folders."""

    def __init__(self, root: Path) -> None:
        self.layout = Layout(root)
        self.results = ResultSpools(self.layout)
        self.releases = HintSpool(self.layout.releases)
        self.feed = HintSpool(self.layout.feed)
        self.orders = HintSpool(self.layout.orders)
        self.logs = LogFolder(self.layout.root)

    @property
    def name(self) -> str:
        return str(self.layout.root)

    # -- the workspace itself ------------------------------------------------------------------------

    def endure(self, is_over: Callable[[], bool]) -> None:
        """A disk is there, or fails."""

    def wait_in(self, waiter: Any) -> None:
        """Nothing here takes long."""

    def exists(self) -> bool:
        return self.layout.root.is_dir()

    def check_format(self) -> None:
        try:
            found = self.layout.format_file.read_text("utf-8", "replace").strip()[:20]
        except OSError:
            return  # nothing is here yet, or the first stage that uses it reports what is wrong
        if found != str(FORMAT):
            raise WorkspaceError(
                f"the workspace {self.name} has format {found!r}, this program reads {FORMAT}; use the version that "
                "made it, start from nothing with --fresh, or give another --workspace"
            )

    def prepare(self, *, is_to_be_cleared: bool = False) -> None:
        if not is_to_be_cleared:
            self.check_format()
        try:
            for folder in self.layout.folders():
                for each in (*reversed(folder.parents[: len(folder.relative_to(self.layout.root).parts)]), folder):
                    each.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
            if not self.layout.format_file.exists():
                write_atomically(self.layout.format_file, b"%d\n" % FORMAT)
        except OSError as problem:
            raise WorkspaceError(f"cannot use {self.name} as a workspace: {sentence(problem)}") from None

    def free_bytes(self) -> int | None:
        return free_bytes(self.layout.root)

    def is_open_to_others(self) -> bool:
        try:
            folders = (self.layout.root, *self.layout.folders())
            return any(folder.stat().st_mode & stat.S_IWOTH for folder in folders if folder.is_dir())
        except OSError:
            return False

    def prepare_outputs(self) -> None:
        for folder in self.layout.outputs():
            folder.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)

    def move_aside(self, stamp: str, recent_seconds: float, *, is_whole: bool = False) -> list[str]:
        layout = self.layout
        kept = layout.root / f"old-{stamp}"
        for name in (*_MOVED_ASIDE, *(_KEPT_BY_FRESH if is_whole else ())):
            source = layout.root / name
            if source.exists() and any(path.is_file() and path != layout.format_file for path in source.rglob("*")):
                kept.mkdir(OWNER_ONLY_FOLDER, parents=True, exist_ok=True)
                if source.is_symlink():
                    move_content(source, kept / name)
                else:
                    source.rename(kept / name)
        layout.format_file.unlink(missing_ok=True)
        self.prepare()
        if not kept.exists():
            return []
        self._keep_gates(kept / "state" / "gates", time.time() - recent_seconds)
        return [str(kept)]

    def is_aside(self, stamp: str) -> bool:
        """Is there something under this stamp already?"""
        return (self.layout.root / f"old-{stamp}").exists()

    def _keep_gates(self, gates: Path, since: float) -> None:
        """Copy the gates of domains asked since then, with budgets and closures begun anew."""
        try:
            found = [path for path in gates.iterdir() if path.stat().st_mtime >= since]
        except FileNotFoundError:
            return
        for path in found:
            shutil.copy2(path, self.layout.gates / path.name)
            gate = GateFile(self.layout.gates / path.name)
            try:
                gate.update(0, lambda record: record)  # of no run: the first run finds it new
            finally:
                gate.close()

    # -- roles ---------------------------------------------------------------------------------------

    def take_role(self, role: str) -> FileLock:
        lock = FileLock(self.layout.role_of(role))
        try:
            lock.acquire(timeout=0.05, poll_interval=0.01)  # long enough to outlast a probe by `is_role_taken`
        except Timeout:
            raise RoleTaken(role, self.name) from None
        return lock

    def is_role_taken(self, role: str) -> bool:
        path = self.layout.role_of(role)
        try:  # for reading: a status may be asked for where nothing can be written
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def who_has(self, role: str) -> str:
        return ""  # a lock does not tell

    def roles(self) -> list[str]:
        try:
            return [entry.name.removesuffix(".lock") for entry in os.scandir(self.layout.locks) if entry.is_file()]
        except OSError:
            return []

    # -- domains -------------------------------------------------------------------------------------

    def claim(self, domain: str) -> Lease | None:
        return try_lease(self.layout.lease_of(domain))

    def claim_all(self, domains: Collection[str]) -> Mapping[str, Lease]:
        claims = {domain: self.claim(domain) for domain in domains}
        return {domain: claim for domain, claim in claims.items() if claim is not None}

    def release_all(self, claims: Collection[Claim]) -> None:
        for claim in claims:
            claim.release()

    def bookmarks(self, domains: Collection[str]) -> Mapping[str, Bookmark]:
        return {domain: self.bookmark(domain) for domain in domains}

    def bookmark(self, domain: str) -> Bookmark:
        return read_bookmark(self.layout.jobs_of(domain), newest_number(self.layout), reports_damage=True)

    def save_bookmarks(self, moves: Collection[BookmarkMove], *, after: Callable[[], None] | None = None) -> None:
        if after is not None:
            after()
        if len(moves) == 1:
            for move in moves:
                self._save_bookmark(move)
        elif moves:
            # Each has to be made durable by itself, and under load a disk takes ten milliseconds for that, or thirty.
            # But it makes many durable in the same time as one.
            with ThreadPoolExecutor(min(_BOOKMARK_WRITERS, len(moves)), "bookmark") as writing:
                under_way = [writing.submit(self._save_bookmark, move) for move in moves]
            for one in under_way:
                one.result()

    def _save_bookmark(self, move: BookmarkMove) -> None:
        write_bookmark(self.layout.jobs_of(move.domain), move.bookmark, is_first=move.is_first)

    @property
    def bookmarks_go_with_results(self) -> bool:
        return False

    def job_writer(self) -> JobSpools:
        return JobSpools(self.layout)

    def jobs(self, domain: str, start: Cursor = BEGINNING) -> Reader:
        return Reader(self.layout.jobs_of(domain), start)

    def domains_with_jobs(self) -> list[str]:
        found = []
        for folder in self._job_folders():
            domain = domain_of(folder.name)
            if domain is None:
                reader = Reader(folder)
                domain = next((job.domain for job, _ in read_records(reader, Job, limit=1)), None)
                reader.close()
            if domain is not None:
                found.append(domain)
        return found

    def waiting_job_bytes(self) -> Mapping[str, int]:
        waiting: dict[str, int] = {}
        for folder in self._job_folders():
            size = bytes_after(folder, read_bookmark(folder).jobs)
            if size:
                waiting[domain_of(folder.name) or folder.name] = size
        return waiting

    def _job_folders(self) -> list[Path]:
        try:
            return [Path(entry.path) for entry in os.scandir(self.layout.jobs) if entry.is_dir()]
        except OSError:
            return []

    def gate(self, domain: str, clock: Callable[[], Moment], longest_ms: int = LONGEST_REQUEST_MS) -> GateFile:
        return GateFile(self.layout.gate_of(domain), clock)

    def slots(self, limit: int) -> SlotFiles:
        return SlotFiles(self.layout.slots, limit)

    def activity(self, name: str) -> ActivityFile:
        return ActivityFile(self.layout.activity / name)

    def busy_work(self) -> list[BusyWork]:
        try:
            paths = sorted(Path(entry.path) for entry in os.scandir(self.layout.activity))
        except OSError:
            return []
        return [work for path in paths for work in read_activity(path)]

    # -- robots.txt ----------------------------------------------------------------------------------

    def robots(self, host: str) -> bytes | None:
        return _read_sealed(self.layout.robots_of(host))

    def keep_robots(self, host: str, content: bytes) -> None:
        _write_if_possible(self.layout.robots_of(host), sealed(content))

    def forget_idle(self, seconds: float) -> int:
        since, removed = time.time() - seconds, 0
        for path in _old_files(self.layout.robots, since):
            path.unlink(missing_ok=True)
            removed += 1
        for path in _old_files(self.layout.leases, since):
            if path.suffix == ".lock" and (lease := try_lease(path)) is not None:
                remove_lease(path, lease)
                removed += 1
        for path in _old_files(self.layout.gates, since):
            gate = GateFile(path)
            removed += gate.remove_if_idle(since)
            gate.close()
        return removed

    # -- flags, bells, heartbeats --------------------------------------------------------------------

    def is_flagged(self, word: str, stage: str | None = None) -> bool:
        return self.layout.flag(word).exists() or (stage is not None and self.layout.flag(word, stage).exists())

    def flags(self) -> list[str]:
        flags = [self.layout.flag(word, stage) for word in ("pause", "stop") for stage in (None, *STAGES)]
        return [path.name for path in flags if path.exists()]

    def set_flag(self, word: str, stage: str | None = None) -> None:
        path = self.layout.flag(word, stage)
        try:
            path.touch()
        except OSError as problem:
            raise WorkspaceError(f"cannot write the flag file {path}: {problem.strerror}") from None

    def clear_flag(self, word: str, stage: str | None = None) -> bool:
        path = self.layout.flag(word, stage)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as problem:
            raise WorkspaceError(f"cannot remove the flag file {path}: {problem.strerror}") from None
        return True

    def bell(self, name: str) -> BellPipe:
        return BellPipe(self.layout.bells / name)

    def ring(self, name: str) -> None:
        ring(self.layout.bells / name)

    def bells(self) -> list[str]:
        try:
            return [entry.name for entry in os.scandir(self.layout.bells)]
        except OSError:
            return []

    def beat(self, name: str, content: bytes) -> None:
        # Not worth dying for: the work itself meets the same disk.
        _write_if_possible(self.layout.status_of(name), sealed(content))

    def heartbeat(self, name: str) -> bytes | None:
        return _read_sealed(self.layout.status_of(name))

    def heartbeats(self) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        try:
            paths = sorted(self.layout.status.glob("*.json"))
        except OSError:
            return found
        for path in paths:
            if (content := _read_sealed(path)) is not None:
                found[path.stem] = content
        return found

    def record_crash(self, name: str, text: str) -> str:
        path = self.layout.status / f"{name}.crash.txt"
        try:
            write_atomically(path, text.encode("utf-8", "replace"), durable=False)
        except OSError:
            pass  # the error line names the exception anyway
        return str(path)

    # -- small documents -----------------------------------------------------------------------------

    def document(self, name: str) -> bytes | None:
        return _read_sealed(self.layout.document(name))

    def glance(self, name: str) -> bytes | None:
        return self.document(name)

    def look_again(self) -> None:
        """Every look is at what is."""

    def write_document(self, name: str, content: bytes) -> None:
        write_atomically(self.layout.document(name), sealed(content))


def _read(path: Path) -> bytes | None:
    try:
        return read_own(path)
    except OSError:
        return None


def _read_sealed(path: Path) -> bytes | None:
    """A whole document; None for one that is damaged."""
    content = _read(path)
    return None if content is None else unsealed(content)


def _old_files(folder: Path, since: float) -> list[Path]:
    """The files of a folder that were last written before then."""
    try:
        entries = [entry for entry in os.scandir(folder) if entry.is_file(follow_symlinks=False)]
        return [Path(entry.path) for entry in entries if entry.stat(follow_symlinks=False).st_mtime < since]
    except OSError:
        return []


def _write_if_possible(path: Path, content: bytes) -> None:
    try:
        write_atomically(path, content, durable=False)
    except OSError:
        pass
