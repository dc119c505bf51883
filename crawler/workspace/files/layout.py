"""PURE. Every path of a workspace on disk: the one place that knows where things are.

workspace/
  pause stop pause.<stage> stop.<stage>     flag files: touch them, remove them
  spool/jobs/<domain>/NNN.jsonl             scheduler → fetchers, one folder a domain, with bookmark.json
  spool/releases/NNN.jsonl                  scheduler → fetchers: "domain D has new jobs"
  spool/results/<writer>/NNN.jsonl          fetchers (and the scheduler's decisions) → ingest; kept
  spool/feed/NNN.jsonl                      ingest → scheduler: hints
  spool/orders/NNN.jsonl                    web face → scheduler: what people ask for
  state/                                    small files: run.json, scheduler.json, gates/, robots/
  locks/                                    roles, domain leases, slots; released by the kernel
  bells/                                    named pipes that wake a stage early
  status/<stage>.json                       heartbeats
  quarantine/                               broken spool lines
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from urllib.parse import quote, unquote


def safe_name(domain: str) -> str:
    """A file name for any host. Nearly all hosts are plain; odd characters are escaped, endless names are cut."""
    name = quote(domain, safe="-_.")
    if name.startswith("."):
        name = "%2E" + name[1:]
    if len(name) > 200:
        name = name[:180] + "~" + hashlib.sha256(domain.encode()).hexdigest()[:16]
    return name


def domain_of(name: str) -> str | None:
    """The host of a `safe_name`; None for a name that was cut (its jobs name the host)."""
    return None if "~" in name else unquote(name)


class Layout:
    """Paths below one root. Touches nothing."""

    def __init__(self, root: Path) -> None:
        self.root = Path(root)
        self.spool = self.root / "spool"
        self.jobs = self.spool / "jobs"
        self.releases = self.spool / "releases"
        self.results = self.spool / "results"
        self.feed = self.spool / "feed"
        self.orders = self.spool / "orders"
        self.state = self.root / "state"
        self.gates = self.state / "gates"
        self.robots = self.state / "robots"
        self.locks = self.root / "locks"
        self.leases = self.locks / "leases"
        self.slots = self.locks / "slots"
        self.activity = self.root / "activity"
        self.bells = self.root / "bells"
        self.status = self.root / "status"
        self.quarantine = self.root / "quarantine"
        self.run_file = self.state / "run.json"
        self.scheduler_file = self.state / "scheduler.json"
        self.format_file = self.spool / "format"

    def folders(self) -> tuple[Path, ...]:
        """Every folder that stages write to."""
        return (
            *(self.jobs, self.releases, self.results, self.feed, self.orders, self.gates, self.robots),
            *(self.leases, self.slots, self.activity, self.bells, self.status, self.quarantine),
        )

    def outputs(self) -> tuple[Path, ...]:
        """Folders for what people read; each is made with its first file, or by `configure` and `reset`."""
        return (self.root / "logs", self.root / "metadata", self.root / "store" / "html", self.root / "summaries")

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

    def role_of(self, role: str) -> Path:
        return self.locks / f"{role}.lock"

    def status_of(self, name: str) -> Path:
        return self.status / f"{name}.json"

    def document(self, name: str) -> Path:
        return self.state / f"{name}.json"

    def flag(self, word: str, stage: str | None = None) -> Path:
        """The flag file for `pause` or `stop`, of one stage or of all."""
        return self.root / (f"{word}.{stage}" if stage else word)
