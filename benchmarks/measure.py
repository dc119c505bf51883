"""What both benchmarks need: CPU and memory of processes from /proc, the machine's description, tables and bars."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
_TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid: int) -> float:
    """CPU that a process (without its children) has used; 0.0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICK


def reaped_seconds(pid: int) -> float:
    """CPU that the ended children of a process had used; 0.0 if it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (OSError, IndexError):
        return 0.0
    return (int(fields[13]) + int(fields[14])) / _TICK


def memory_mb(pid: int) -> float:
    """The most resident memory that a process has had, in MB; 0.0 if it is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0


def children(pid: int) -> list[int]:
    """A process's descendants that are alive, itself first."""
    found = [pid]
    for parent in found:
        try:
            for task in Path(f"/proc/{parent}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def family_seconds(pid: int) -> float:
    """CPU of a process and its descendants, the ended children of each that is alive included."""
    return sum(cpu_seconds(each) + reaped_seconds(each) for each in children(pid))


class StageWatch(threading.Thread):
    """Looks at the stages' heartbeats and at /proc a few times a second, and keeps what it saw last of each."""

    def __init__(self, workspace: Path, supervisor: int, every: float = 0.2) -> None:
        super().__init__(daemon=True)
        self._status, self._supervisor, self._every = workspace / "status", supervisor, every
        self._over = threading.Event()
        self.cpu: dict[int, float] = {}
        self.memory: dict[int, float] = {}
        self.names: dict[int, str] = {supervisor: "supervisor"}
        self.most_unread = 0  # bytes of results that waited for the ingest, as its heartbeat tells once a second
        self._reaped: dict[int, float] = {}

    def run(self) -> None:
        while not self._over.wait(self._every):
            self.look()

    def look(self) -> None:
        for path in self._status.glob("*.json"):
            try:
                fields = json.loads(path.read_bytes())
            except (OSError, ValueError):
                continue
            if fields["pid"] != self._supervisor:
                self.names[fields["pid"]] = fields["name"]
                self.most_unread = max(self.most_unread, (fields.get("facts") or {}).get("backlog", 0))
        for pid in {*children(self._supervisor), *self.names}:
            self.cpu[pid] = max(cpu_seconds(pid), self.cpu.get(pid, 0.0))
            self.memory[pid] = max(memory_mb(pid), self.memory.get(pid, 0.0))
            self._reaped[pid] = max(reaped_seconds(pid), self._reaped.get(pid, 0.0))

    def stop(self) -> None:
        self._over.set()
        self.join()

    def reaped(self) -> float:
        """All CPU of processes that others than the supervisor waited for: of the stages, by their fork server."""
        return sum(seconds for pid, seconds in self._reaped.items() if pid != self._supervisor)

    def by_stage(self, figures: dict[int, float]) -> dict[str, float]:
        """Sums by stage: `fetchers` together, helpers of multiprocessing as `other`."""
        sums: dict[str, float] = {}
        for pid, figure in figures.items():
            name = self.names.get(pid, "other")
            stage = "fetchers" if name.startswith("fetcher") else name
            sums[stage] = sums.get(stage, 0.0) + figure
        return sums

    def worst(self, figures: dict[int, float]) -> dict[str, float]:
        """The largest figure of one process, by stage."""
        most: dict[str, float] = {}
        for pid, figure in figures.items():
            name = self.names.get(pid, "other")
            stage = "fetcher" if name.startswith("fetcher") else name
            most[stage] = max(most.get(stage, 0.0), figure)
        return most


def machine() -> dict[str, Any]:
    model = "unknown"
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load_before": round(os.getloadavg()[0], 2),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def write_result(name: str, figures: dict[str, Any]) -> Path:
    """Keep the figures for later comparison."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
    path.write_text(json.dumps(figures, indent=2) + "\n")
    return path


@contextmanager
def reporting(
    name: str, figures: dict[str, Any], report: Callable[[dict[str, Any]], None], keep: Path | None
) -> Iterator[Path]:
    """A folder to measure in, moved to `keep` or removed afterwards; then the figures are told and kept."""
    folder = Path(tempfile.mkdtemp(prefix=f"sumi-{name}-"))
    try:
        yield folder
    finally:
        if keep is not None:
            shutil.move(folder, keep)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    report(figures)
    print(f"\nFigures: {write_result(name, figures).relative_to(ROOT)}")


def bars(figures: dict[str, float], unit: str, width: int = 40) -> str:
    """A small picture: one bar for each figure."""
    most = max(figures.values(), default=0.0) or 1.0
    lines = []
    for name, figure in figures.items():
        eighths = round(figure / most * width * 8)
        bar = "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]
        lines.append(f"  {name:<12} {bar or '▏':<{width}} {figure:8.3f} {unit}")
    return "\n".join(lines)


def table(rows: list[tuple[str, str, str, str]]) -> str:
    """Four columns: what, measured, target, verdict."""
    rows = [("what", "measured", "target", ""), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(cell.ljust(widths[column]) for column, cell in enumerate(row)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths[:3]))
    return "\n".join("  " + line for line in lines)


def verdict(holds: bool) -> str:
    return "met" if holds else "NOT MET"


class Steps:
    """Says what is being done and how long it took, so that a long benchmark is not a silent one."""

    def __init__(self) -> None:
        self._started = time.monotonic()

    def say(self, words: str) -> None:
        print(f"[{time.monotonic() - self._started:6.1f} s] {words}", flush=True)
