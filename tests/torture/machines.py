"""`make torture ENGINE=postgresql`: a crawl of the demo terrain on three "machines" that share an engine.

A machine is a group of processes with a workspace folder of its own, which reaches the engine through a door that can
be shut. The first has the scheduler and two ingests, of which one is the stand-by; each has fetchers. Meanwhile a
stage, a machine or everything is killed; the engine crashes; a machine is cut off and back; a fetcher is stopped
(SIGSTOP) for longer than its lease; the engine's clock is set forward. What ends too early is started again.

In the end the map must have the digest of a calm crawl with files and SQLite, the audit must be clean, and the web
server's own log must show no two requests too close together.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from crawler.config.load import load
from crawler.demo.demo_config import DemoLimits, write_demo_config
from crawler.demo.server import Served, serve_terrain
from crawler.demo.terrain import demo_terrain
from crawler.engine.engine_connection import connect
from crawler.observe.audit import audit
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.runs import RunStatus, read_run
from tests.places import ROOT
from tests.postgres_server import PostgresServer, own_server
from tests.torture.run import children_of, kill, stages_of, too_close

LIMITS = DemoLimits(max_domain_requests=2000)
GIVE_UP_AFTER = 300.0  # seconds
BETWEEN = 15_000  # bytes of results before each misfortune; a whole crawl has some 130,000
LEASE = 32.0  # seconds, and a little more
DEEDS = ("stage", "stage", "machine", "everything", "engine", "cut", "clock")


class EngineDoor:
    """A machine's way to the engine: a port of its own, which can be shut."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self._is_shut = False
        self._pairs: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def shut(self) -> None:
        """From now on nothing passes, and nobody is told: packets are lost."""
        self._is_shut = True

    def open(self) -> None:
        """What was lost is lost: connections of before are reset."""
        for end in self._pairs:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._pairs.clear()
        self._is_shut = False

    def close(self) -> None:
        self.open()
        self._server.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._server.accept()[0]
                try:
                    engine = socket.create_connection(("127.0.0.1", self._target), 5)
                except OSError:
                    client.close()
                    continue
                self._pairs += [client, engine]
                for source, sink in ((client, engine), (engine, client)):
                    threading.Thread(target=self._carry, args=[source, sink], daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                while self._is_shut and source in self._pairs:
                    time.sleep(0.05)
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@dataclass
class Process:
    """A command of a machine, in a process group of its own, started again until the run is over."""

    words: tuple[str, ...]
    folder: Path
    running: subprocess.Popen[bytes] | None = None
    starts: int = 0
    again_at: float = 0.0

    def keep_up(self, chance: random.Random, is_over: bool) -> None:
        if self.running is not None and self.running.poll() is not None:
            self.running = None
            self.again_at = time.monotonic() + chance.uniform(0, 1)
        if self.running is None and not is_over and time.monotonic() >= self.again_at:
            self.starts += 1
            self.running = subprocess.Popen(
                [sys.executable, "-m", "crawler", *self.words],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=(self.folder / "stderr.txt").open("ab"),
                start_new_session=True,
            )

    def end(self, number: int = signal.SIGKILL) -> None:
        if self.running is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.running.pid, number)

    def stages(self) -> list[int]:
        if self.running is None:
            return []
        return [pid for pid in stages_of(self.running.pid) if not children_of(pid)] or [self.running.pid]


@dataclass
class Terrain:
    """The machines, the engine and the web server."""

    base: Path
    served: Served
    server: PostgresServer
    chance: random.Random
    database: str = "terrain"
    size: int = 3  # machines
    workers: int = 2  # on each
    doors: list[EngineDoor] = field(default_factory=list)
    machines: list[list[Process]] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)

    def set_up(self) -> None:
        with connect(self.server.url(), "test") as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {self.database}")
        for number in range(1, self.size + 1):
            door = EngineDoor(self.server.port)
            self.doors.append(door)
            folder = self.base / f"machine-{number}"
            config = write_demo_config(folder, self.served, LIMITS)
            url = self.server.url(self.database).replace(f":{self.server.port}/", f":{door.port}/")
            short = "[network]\nconnect-timeout = 3000\nread-timeout = 3000\ntotal-timeout = 6000\n"
            config.write_text(config.read_text().replace("[network]\n", short) + f'\n[engine]\nurl = "{url}"\n')
            stages = [("fetch", "demo.toml", "--workers", str(self.workers))]
            if number == 1:
                stages += [("schedule", "demo.toml"), ("ingest", "demo.toml"), ("ingest", "demo.toml")]
            self.machines.append([Process(words, folder) for words in stages])
        sumi("engine", "init", "demo.toml", cwd=self.base / "machine-1")

    @property
    def all(self) -> list[Process]:
        return [process for machine in self.machines for process in machine]

    def is_over(self, workspace: EngineWorkspace) -> bool:
        run = read_run(workspace)
        return run is not None and run.status is RunStatus.COMPLETED

    def do(self, deed: str) -> None:
        """One misfortune."""
        self.done[deed] += 1
        if deed == "stage":
            pids = [pid for process in self.all for pid in process.stages()]
            if pids:
                kill(self.chance.choice(pids))
        elif deed == "machine":
            for process in self.chance.choice(self.machines):
                process.end()
        elif deed == "everything":
            for process in self.all:
                process.end()
        elif deed == "engine":
            self.server.crash()
            time.sleep(self.chance.uniform(0, 2))
            self.server.start()
        elif deed == "cut":
            door = self.chance.choice(self.doors)
            door.shut()
            threading.Timer(self.chance.uniform(0.5, 8), door.open).start()
        elif deed == "clock":
            with connect(self.server.url(self.database), "test") as admin:
                ahead = self.chance.choice([1, 40, 4000]) * 1_000_000 + self.done["clock"] * 10_000_000_000
                admin.execute(
                    "CREATE OR REPLACE FUNCTION sumi_workspace.clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS"
                    f" $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + {ahead} $$"
                )
        elif deed == "stop":
            pids = [pid for process in self.all if process.words[0] == "fetch" for pid in process.stages()]
            if pids:
                threading.Thread(target=_stop_for, args=[self.chance.choice(pids), LEASE], daemon=True).start()

    def result_bytes(self, workspace: EngineWorkspace) -> int:
        return sum(workspace.results.reader(name).unread_bytes() for name in workspace.results.writers())

    def crawl(self, deeds: list[str], every: float) -> None:
        """One crawl to its end, through all misfortunes: each after some more results, so that it meets work."""
        workspace = EngineWorkspace(self.base / "watch", self.server.url(self.database))
        workspace.endure(lambda: False)
        give_up = time.monotonic() + GIVE_UP_AFTER
        next_at, enough = 0.0, BETWEEN
        try:
            while not (is_over := self.is_over(workspace)) or any(each.running for each in self.all):
                assert time.monotonic() < give_up, f"the crawl in {self.base} did not end; see stderr.txt there"
                for process in self.all:
                    process.keep_up(self.chance, is_over)
                if deeds and not is_over and time.monotonic() >= next_at and self.result_bytes(workspace) >= enough:
                    self.do(deeds.pop(0))
                    enough += BETWEEN
                    next_at = time.monotonic() + self.chance.uniform(0.3, 2) * every
                if is_over:  # the stand-by has nothing left to wait for
                    workspace.set_flag("stop")
                time.sleep(0.1)
        finally:
            for process in self.all:
                process.end()
                if process.running is not None:
                    process.running.wait()
            for door in self.doors:
                door.close()
            workspace.close()


def _stop_for(pid: int, seconds: float) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)


def sumi(*words: str, cwd: Path) -> str:
    """A command that must succeed; what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "crawler", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def calm_digest(base: Path, served: Served) -> str:
    """The digest of an undisturbed crawl with files and SQLite."""
    config = write_demo_config(base / "calm", served, LIMITS)
    sumi("crawl", config.name, "-q", cwd=config.parent)
    return sumi("digest", config.name, cwd=config.parent).strip()


def check(terrain: Terrain, expected: str, before: int) -> None:
    """The map, the audit, the server's own log. Raises AssertionError."""
    folder = terrain.base / "machine-1"
    text = (folder / "demo.toml").read_text()
    url = terrain.server.url(terrain.database)  # the doors are closed by now
    (folder / "after.toml").write_text(text[: text.index("[engine]")] + f'[engine]\nurl = "{url}"\n')
    assert sumi("digest", "after.toml", cwd=folder).strip() == expected, "the map differs"
    report = audit(load(folder / "after.toml"))
    assert not (close := too_close(terrain.served, before)), close
    assert report.is_clean, "\n".join(report.lines())


def play(terrain: Terrain, deeds: list[str], every: float, expected: str) -> None:
    """One crawl through these misfortunes, about `every` seconds apart, and its judgement."""
    terrain.set_up()
    before = len(terrain.served.requests())
    terrain.crawl(deeds, every)
    check(terrain, expected, before)


def torture_machines(
    rounds: int, seed: int, *, deeds: int = 6, every: float = 3.0, say: Callable[[str], None] = print
) -> int:
    """All rounds; returns the number of misfortunes. Raises AssertionError at the first map that differs."""
    chance = random.Random(seed)
    total: Counter[str] = Counter()
    base = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        with serve_terrain(demo_terrain(), base / "server", log=True) as served, own_server() as server:
            expected = calm_digest(base, served)
            say(f"calm: {expected[:16]}…")
            for number in range(1, rounds + 1):
                terrain = Terrain(base / f"round-{number}", served, server, chance, f"terrain_{number}")
                chosen = ["stop", *(chance.choice(DEEDS) for _ in range(deeds))]
                play(terrain, chosen, every, expected)
                total += terrain.done
                starts = sum(process.starts for process in terrain.all)
                say(f"round {number}: {dict(terrain.done)}, {starts} starts, audit clean, the same map")
    except BaseException:
        say(f"left for inspection: {base}")
        raise
    shutil.rmtree(base, ignore_errors=True)
    say(f"{rounds} rounds, {sum(total.values())} misfortunes {dict(total)}: every map the same")
    return sum(total.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--deeds", type=int, default=6)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    torture_machines(chosen.rounds, chosen.seed, deeds=chosen.deeds)


if __name__ == "__main__":
    main()
