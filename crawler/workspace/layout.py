"""Every path, flag file and lock of a workspace: the one place that knows where things lie.

workspace/
  pause stop pause.<stage> stop.<stage>     flag files: touch them, remove them
  spool/jobs/<domain>/NNN.jsonl             scheduler → fetchers, one folder a domain, with bookmark.json
  spool/releases/NNN.jsonl                  scheduler → fetchers: "domain D has new jobs"
  spool/results/<writer>/NNN.jsonl          fetchers (and the scheduler's decisions) → ingest; kept
  spool/feed/NNN.jsonl                      ingest → scheduler: hints
  state/                                    small files: run.json, scheduler.json, gates/, robots/
  locks/                                    roles, domain leases, slots; released by the kernel
  bells/                                    named pipes that wake a stage early
  status/<stage>.json                       heartbeats
  quarantine/                               broken spool lines, set aside
"""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from urllib.parse import quote, unquote

from filelock import FileLock, Timeout

from crawler.model.errors import SumiError
from crawler.workspace.atomic import write_atomically

STAGES = ("scheduler", "fetcher", "ingest")
FORMAT = 1  # of everything in a workspace; `spool/format` says which one lies there


class WorkspaceError(SumiError):
    """The workspace cannot be used; the message says why and what to do."""


class RoleTaken(WorkspaceError):
    """Another live process already has this role in this workspace."""

    def __init__(self, role: str, root: Path) -> None:
        super().__init__(
            f"another {role} is already at work in {root}; stop it first, or give this one a --workspace of its own"
        )
        self.role = role


def safe_name(domain: str) -> str:
    """A file name for any host: hosts are nearly all plain, the odd ones are escaped, the endless ones cut."""
    name = quote(domain, safe="-_.")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > 200:
        name = name[:180] + "~" + hashlib.sha256(domain.encode()).hexdigest()[:16]
    return name


def domain_of(name: str) -> str | None:
    """The host behind a `safe_name`, or None for one that was cut (its jobs tell)."""
    return None if "~" in name else unquote(name)


class Workspace:
    """Paths below one root. Making one touches nothing; `prepare` makes the folders."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.spool = self.root / "spool"
        self.jobs = self.spool / "jobs"
        self.releases = self.spool / "releases"
        self.results = self.spool / "results"
        self.feed = self.spool / "feed"
        self.state = self.root / "state"
        self.gates = self.state / "gates"
        self.robots = self.state / "robots"
        self.locks = self.root / "locks"
        self.leases = self.locks / "leases"
        self.slots = self.locks / "slots"
        self.bells = self.root / "bells"
        self.status = self.root / "status"
        self.quarantine = self.root / "quarantine"
        self.run_file = self.state / "run.json"
        self.scheduler_file = self.state / "scheduler.json"
        self.format_file = self.spool / "format"

    def check_format(self) -> None:
        """Raise WorkspaceError if what lies here was written in a format that this program does not read."""
        try:
            found = self.format_file.read_text("utf-8", "replace").strip()[:20]
        except OSError:
            return  # nothing is here yet, or whoever uses it will say what is wrong with it
        if found != str(FORMAT):
            raise WorkspaceError(
                f"the workspace {self.root} has format {found!r}, this program reads {FORMAT}; use the version that "
                "made it, start from nothing with --fresh, or give another --workspace"
            )

    def prepare(self, *, is_to_be_cleared: bool = False) -> None:
        """Make the folders. Raises WorkspaceError where that cannot be done, or what is there is of old."""
        if not is_to_be_cleared:
            self.check_format()
        try:
            for folder in (
                self.jobs,
                self.releases,
                self.results,
                self.feed,
                self.gates,
                self.robots,
                self.leases,
                self.slots,
                self.bells,
                self.status,
                self.quarantine,
            ):
                folder.mkdir(parents=True, exist_ok=True)
            if not self.format_file.exists():
                write_atomically(self.format_file, b"%d\n" % FORMAT)
        except OSError as problem:
            raise WorkspaceError(
                f"cannot use {self.root} as a workspace: {problem.strerror}: {problem.filename}"
            ) from None

    # -- per domain, host, writer --------------------------------------------------------------------

    def jobs_of(self, domain: str) -> Path:
        return self.jobs / safe_name(domain)

    def gate_of(self, domain: str) -> Path:
        return self.gates / safe_name(domain)

    def robots_of(self, host: str) -> Path:
        return self.robots / (safe_name(host) + ".json")

    def lease_of(self, domain: str) -> Path:
        return self.leases / (safe_name(domain) + ".lock")

    def results_of(self, writer: str) -> Path:
        return self.results / writer

    def status_of(self, name: str) -> Path:
        return self.status / f"{name}.json"

    def result_writers(self) -> list[str]:
        """Names of everyone who has ever written results here, sorted."""
        try:
            return sorted(entry.name for entry in os.scandir(self.results) if entry.is_dir())
        except FileNotFoundError:
            return []

    # -- flags ---------------------------------------------------------------------------------------

    def flag(self, word: str, stage: str | None = None) -> Path:
        """The flag file for `pause` or `stop`, of one stage or of all."""
        return self.root / (f"{word}.{stage}" if stage else word)

    def is_flagged(self, word: str, stage: str) -> bool:
        return self.flag(word).exists() or self.flag(word, stage).exists()

    # -- locks ---------------------------------------------------------------------------------------

    def take_role(self, role: str) -> FileLock:
        """Become the one `role` of this workspace, until the process ends. Raises RoleTaken."""
        lock = FileLock(self.locks / f"{role}.lock")
        try:
            lock.acquire(timeout=0.05, poll_interval=0.01)  # long enough to outlast a look by `is_role_taken`
        except Timeout:
            raise RoleTaken(role, self.root) from None
        return lock

    def is_role_taken(self, role: str) -> bool:
        """Is some live process in this role now?"""
        path = self.locks / f"{role}.lock"
        if not path.exists():
            return False
        probe = FileLock(path)
        try:
            probe.acquire(timeout=0)
        except Timeout:
            return True
        probe.release()
        return False
