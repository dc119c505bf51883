"""What may be wrong on this machine: network, name servers, clock, disk, database, file handles, memory.

Each check looks and changes nothing. The network is asked by connecting; no request is sent.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

from crawler.database.ingest_progress import map_fault
from crawler.model.settings import Config, NetworkSettings
from crawler.observe.processes import STALE, StageProcess
from crawler.resilience import findings
from crawler.resilience.findings import Finding
from crawler.supervise.fork_server import start_fork_server
from crawler.workspace.clock import now_text

if TYPE_CHECKING:  # only an outage needs it: connections, TLS, name servers
    from crawler.net.probe import Probed

MOST_TARGETS = 6
LEAST_DISK = 64 * 1024 * 1024  # bytes
LEAST_MEMORY = 64 * 1024 * 1024
MOST_OPEN_FILES = 0.95
CLOCK_SET = 60.0  # seconds


def probe_all(targets: Sequence[str], network: NetworkSettings) -> list[Probed]:
    """Ask these targets at the same time, until one is reached.

    In a process of its own, which ends with this one: a thread that is inside OpenSSL or c-ares when the interpreter
    shuts down crashes it, and a crawl that ends does not wait for a probe.
    """
    from crawler.net.probe import Probed

    start_fork_server()
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_probe_and_tell, args=(tuple(targets), network, theirs), name="probe", daemon=True)
    process.start()
    theirs.close()
    try:
        results: list[Probed] = ours.recv()
        return results
    except (EOFError, OSError):
        return [Probed(target, "internal-error", "the probe was killed") for target in targets]
    finally:
        ours.close()
        process.kill()
        process.join()


def _probe_and_tell(targets: Sequence[str], network: NetworkSettings, results: Connection) -> None:
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # the fork server has blocked it
    results.send(until_reached(targets, network))


def until_reached(targets: Sequence[str], network: NetworkSettings) -> list[Probed]:
    answers: SimpleQueue[Probed] = SimpleQueue()
    for target in targets:  # threads that nobody waits for: the process ends without them
        threading.Thread(target=lambda name: answers.put(_probed(name, network)), args=(target,), daemon=True).start()
    results: list[Probed] = []
    while len(results) < len(targets) and not any(result.is_reached for result in results):
        results.append(answers.get())
    return results


def _probed(target: str, network: NetworkSettings) -> Probed:
    from crawler.net.probe import Probed, probe

    try:
        return probe(target, network)
    except Exception as problem:  # promised not to happen; whoever waits for the answer must get one
        return Probed(target, "internal-error", type(problem).__name__)


def network_findings(results: Sequence[Probed]) -> list[Finding]:
    """Why none of these was reached."""
    if not results or any(result.is_reached for result in results):
        return []
    if all(result.is_clock for result in results):
        return [findings.clock_of_certificates(now_text())]
    words = "; ".join(sorted({f"{result.slug}: {result.words}" for result in results})[:2])
    if all((result.slug or "").startswith("dns") for result in results):
        return [findings.name_servers(words)]
    return [findings.network(len(results), words)]


def machine_findings(config: Config, stages: Iterable[StageProcess], clock_drift: float) -> list[Finding]:
    """Everything but the network."""
    found = [*_disk(config.workspace), *_disk(config.output.database_path.parent), *_memory()]
    if (fault := map_fault(config.map_place)) is not None:
        found.append(findings.database_is_silent(str(config.map_place), fault))
    for stage in stages:
        if stage.stage == "ingest" and stage.is_running and stage.age is not None and stage.age > STALE:
            found.append(findings.ingest_is_silent(stage.age))
        if stage.stage == "fetcher" and stage.is_running and stage.pid is not None:
            found += _file_handles(stage)
    if abs(clock_drift) > CLOCK_SET:
        found.append(findings.clock_was_set(clock_drift))
    return list(dict.fromkeys(found))


def _disk(place: Path) -> list[Finding]:
    try:
        facts = os.statvfs(place)
    except OSError:
        return []
    if facts.f_flag & os.ST_RDONLY:
        return [findings.disk_is_read_only(str(place))]
    free = facts.f_bavail * facts.f_frsize
    return [findings.disk_is_full(str(place), free)] if free < LEAST_DISK else []


def _memory() -> list[Finding]:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, ValueError, IndexError, StopIteration):
        return []
    return [findings.little_memory(free)] if free < LEAST_MEMORY else []


def _file_handles(stage: StageProcess) -> list[Finding]:
    limit = stage.facts.get("open_files")
    try:
        used = len(list(Path(f"/proc/{stage.pid}/fd").iterdir()))
    except OSError:
        return []
    if not isinstance(limit, int) or used < limit * MOST_OPEN_FILES:
        return []
    return [findings.few_file_handles(stage.name, used, limit)]


class ClockDrift:
    """By how many seconds the wall clock was set since this was made."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()

    def seconds(self) -> float:
        return time.time() - time.monotonic() - self._offset
