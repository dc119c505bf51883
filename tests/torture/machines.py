"""`make torture ENGINE=postgresql`: a crawl of the demo terrain on three "machines" that share an engine.

A machine is a network namespace with processes of its own where that is permitted, else a group of processes that
reaches the engine through a door (`networks.py`); it has a workspace folder of its own, and speaks TLS with the engine.
The first has the scheduler and an ingest, the second a stand-by of the ingest; each has fetchers. Meanwhile a stage, a
machine or everything is killed; the engine crashes; a machine is cut off and back, or loses its power; a fetcher is
stopped (SIGSTOP) for longer than its lease; the engine's clock is set forward or back. What ends too early is started
again.

Every third round the engine dies for good, and a standby takes over: one that has all that was acknowledged
(synchronous replication) and, in the next of these rounds, one that lacks the last (asynchronous, and cut off before).
With FAILOVERS=1 that happens in every round, at some moment of it, and two of three standbys lack the last.

In the end the map must have the digest of a calm crawl with files and SQLite, the audit must be clean, and the web
server's own log must show no two requests too close together, and no budget exceeded.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import trustme

from crawler.config.load import load
from crawler.demo.demo_config import DemoLimits, write_demo_config
from crawler.demo.server import Served, serve_terrain
from crawler.demo.terrain import demo_terrain
from crawler.engine.engine_connection import connect
from crawler.observe.audit import audit
from crawler.observe.audit_report import AuditReport
from crawler.workspace.clock import boot_id
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.runs import RunStatus, read_run
from tests.places import ROOT
from tests.postgres_server import NoServer, PostgresServer, binaries, own_server, replicate, standby_of
from tests.torture.networks import Networks, best_networks
from tests.torture.run import children_of, kill, stages_of, too_close

LIMITS = DemoLimits(max_domain_requests=2000)
GIVE_UP_AFTER = 300.0  # seconds
BETWEEN = 15_000  # bytes of results before each misfortune; a whole crawl has some 130,000
LEASE = 10  # seconds
DEEDS = ("stage", "stage", "machine", "everything", "engine", "cut", "cut", "power", "clock")
MACHINES = ["machine-1", "machine-2", "machine-3"]
SERVERS = ["web", "engine", "standby"]
NAMES = {"engine": "engine.test", "standby": "standby.test"}  # in the certificate
TIMES = "[network]\nconnect-timeout = 3000\nread-timeout = 3000\ntotal-timeout = 6000\n"


@dataclass
class Process:
    """A command of a machine, in a process group of its own, started again until the run is over."""

    words: tuple[str, ...]
    folder: Path
    prefix: tuple[str, ...] = ()  # of a command that runs on the machine
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
                [*self.prefix, sys.executable, "-m", "crawler", *self.words],
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=(self.folder / "stderr.txt").open("ab"),
                start_new_session=True,
            )

    def end(self, number: int = signal.SIGKILL) -> None:
        if self.running is not None:
            for pid in self.stages():  # they are sessions of their own, and see only in a moment that they are alone
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
            with suppress(ProcessLookupError):
                os.killpg(self.running.pid, number)

    def stages(self) -> list[int]:
        if self.running is None:
            return []
        top = self.running.pid
        if self.prefix:  # what entered the namespace waits for it
            top = next(iter(children_of(top)), top)
        return [pid for pid in stages_of(top) if not children_of(pid)] or [top]


@dataclass
class Terrain:
    """The machines, the engine and the web server."""

    base: Path
    served: Served
    server: PostgresServer
    networks: Networks
    chance: random.Random
    authority: Path | None  # that signed the engine's certificate; None: the engine speaks no TLS
    database: str = "terrain"
    workers: int = 2  # on each machine
    lease: int = LEASE
    standby: PostgresServer | None = None
    machines: dict[str, list[Process]] = field(default_factory=dict)
    done: Counter[str] = field(default_factory=Counter)
    ahead: int = 0  # seconds by which the engine's clock is set forward
    watching: EngineWorkspace | None = None
    healing: list[threading.Timer] = field(default_factory=list)

    def set_up(
        self, *, fetching: list[str] = MACHINES, ingesting: list[str] = MACHINES[:2], only: tuple[str, ...] = ()
    ) -> None:
        """Make the database and the machines. `fetching`, `ingesting`: those with fetchers, with an ingest. `only`: the
        quality domains, where it is not all of the demo.
        """
        with connect(self.server.url(), "test") as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {self.database} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {self.database}")
        for name in MACHINES:
            folder = self.base / name
            config = write_demo_config(folder, self.served, LIMITS)
            engine = f'\n[engine]\nurl = "{self.url_on(name)}"\nlease = "{self.lease}s"\n'
            text = config.read_text().replace("[network]\n", TIMES)
            config.write_text((only_quality(text, only) if only else text) + engine)
            commands = [("fetch", "demo.toml", "--workers", str(self.workers))] if name in fetching else []
            commands += {"machine-1": [("schedule", "demo.toml")]}.get(name, [])
            commands += [("ingest", "demo.toml")] if name in ingesting else []
            prefix = self.networks.words_on(name, folder)
            self.machines[name] = [Process(words, folder, prefix) for words in commands]
        sumi("engine", "init", "demo.toml", cwd=self.base / "machine-1", prefix=self.machines["machine-1"][0].prefix)

    def url_on(self, machine: str) -> str:
        """The engine, as a machine reaches it."""
        servers = {"engine": self.server} | ({"standby": self.standby} if self.standby is not None else {})
        ways = [self.networks.way(machine, name, server.port) for name, server in servers.items()]
        how = {"sslrootcert": self.authority} if self.authority is not None else {"sslmode": "disable"}
        return self.server.url_over([NAMES[name] for name in servers], ways, self.database, **how)

    @property
    def all(self) -> list[Process]:
        return [process for machine in self.machines.values() for process in machine]

    @property
    def watch(self) -> EngineWorkspace:
        if self.watching is None:
            self.watching = EngineWorkspace(self.base / "watch", self.server.url(self.database))
            self.watching.endure(lambda: False)
        return self.watching

    def is_over(self) -> bool:
        run = read_run(self.watch)
        return run is not None and run.status is RunStatus.COMPLETED

    def do(self, deed: str) -> None:
        """One misfortune."""
        self.done[deed] += 1
        if deed == "stage":
            pids = [pid for process in self.all for pid in process.stages()]
            if pids:
                kill(self.chance.choice(pids))
        elif deed == "machine":
            self.kill_machine(self.chance.choice(MACHINES))
        elif deed == "everything":
            for process in self.all:
                process.end()
        elif deed == "engine":
            self.server.crash()
            time.sleep(self.chance.uniform(0, 2))
            self.server.start()
        elif deed in ("cut", "power"):  # without power nobody says goodbye to the engine
            machine = self.chance.choice(MACHINES)
            self.networks.cut(machine, is_silent=self.chance.random() < 0.5)
            if deed == "power":
                self.kill_machine(machine)
            self.heal_later(machine, self.chance.uniform(0.5, 2 * self.lease))
        elif deed == "clock":
            self.ahead += self.chance.choice([1, 40, 4000, -40, -4000])
            with connect(self.server.url(self.database), "test") as admin:
                admin.execute(
                    "CREATE OR REPLACE FUNCTION sumi_workspace.clock_us() RETURNS bigint LANGUAGE sql VOLATILE AS"
                    f" $$ SELECT ((extract(epoch FROM clock_timestamp()) + {self.ahead}) * 1000000)::bigint $$"
                )
        elif deed == "stop":
            pids = [pid for process in self.all if process.words[0] == "fetch" for pid in process.stages()]
            if pids:
                where = [self.chance.choice(pids), self.lease + 2]
                threading.Thread(target=_stop_for, args=where, daemon=True).start()
        elif deed == "behind":
            self.networks.cut("standby")
        elif deed == "failover":
            self.fail_over()

    def kill_machine(self, name: str) -> None:
        for process in self.machines[name]:
            process.end()

    def heal_later(self, machine: str, seconds: float) -> None:
        timer = threading.Timer(seconds, self.networks.heal, [machine])
        timer.start()
        self.healing.append(timer)

    def fail_over(self) -> None:
        """The engine dies for good, and its standby takes over."""
        assert self.standby is not None
        self.server.crash()
        self.networks.heal("standby")
        with connect(self.standby.url(self.database), "test") as admin:
            admin.execute("SELECT pg_promote(true, 30)")
            admin.execute("ALTER SYSTEM RESET synchronous_standby_names")  # a copy of the primary's
            admin.execute("SELECT pg_reload_conf()")
        self.server, self.standby = self.standby, None
        if self.watching is not None:
            self.watching.close()
        self.watching = None

    def result_bytes(self) -> int:
        results = self.watch.results
        return sum(results.reader(name).unread_bytes() for name in results.writers())

    def misfortunes(self, deeds: list[str], every: float) -> Iterator[None]:
        """Each after some more results, so that it meets work, and about `every` seconds after the one before."""
        for number, deed in enumerate(deeds, start=1):
            while self.result_bytes() < number * BETWEEN:
                yield
            self.do(deed)
            next_at = time.monotonic() + self.chance.uniform(0.3, 2) * every
            while time.monotonic() < next_at:
                yield

    def crawl(self, story: Iterator[None]) -> None:
        """One crawl to its end, through all of `story`, which goes a step further several times a second."""
        give_up = time.monotonic() + GIVE_UP_AFTER
        try:
            while not (is_over := self.is_over()) or self.has_work_left():
                assert time.monotonic() < give_up, f"the crawl in {self.base} did not end; see stderr.txt there"
                for process in self.all:
                    process.keep_up(self.chance, is_over)
                if is_over:  # a stand-by has nothing left to wait for
                    self.watch.set_flag("stop")
                else:
                    next(story, None)
                time.sleep(0.1)
        finally:
            for timer in self.healing:
                timer.cancel()
            for process in self.all:
                process.end()
                if process.running is not None:
                    process.running.wait()
            for name in (*MACHINES, "standby"):
                self.networks.heal(name)
            if self.watching is not None:
                self.watching.close()
            self.watching = None

    def has_work_left(self) -> bool:
        """Does the machine of the scheduler and the ingest still run? The others' fetchers have nothing to do."""
        return any(process.running for process in self.machines["machine-1"])

    def holders_on(self, machine: str) -> list[int]:
        """Numbers that the engine knows the fetchers of a machine by."""
        known = set()
        for process in self.machines[machine]:
            for pid in process.stages() if process.words[0] == "fetch" else ():
                with suppress(OSError, StopIteration):
                    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
                    inner = int(next(line for line in lines if line.startswith("NSpid:")).split()[-1])
                    known.add((f"{boot_id()}{os.readlink(f'/proc/{pid}/ns/pid')}", inner))  # noqa: PTH115
        rows = self.watch.session.execute("SELECT id, machine, pid FROM holders WHERE NOT is_fenced")
        return [number for number, name, pid in rows if (name.partition(" ")[0], pid) in known]

    def have_nothing_left(self, holders: list[int]) -> bool:
        """Has everything been taken from these? One that held nothing is never fenced: nobody asks for it."""
        found = self.watch.session.execute("SELECT FROM gates WHERE holder = ANY(%s)", (holders,))
        return not found


def only_quality(text: str, domains: tuple[str, ...]) -> str:
    """The config with these quality domains alone."""
    head, *blocks = text.split("[[quality]]\n")
    last, mark, lists = blocks[-1].partition("[[blacklist]]\n")
    kept = [block for block in (*blocks[:-1], last) if any(f'domain = "{domain}"' in block for domain in domains)]
    assert len(kept) == len(domains)
    return "[[quality]]\n".join([head, *kept]) + mark + lists


def _stop_for(pid: int, seconds: float) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)


def sumi(*words: str, cwd: Path, prefix: tuple[str, ...] = ()) -> str:
    """A command that must succeed; what it prints."""
    done = subprocess.run(
        [*prefix, sys.executable, "-m", "crawler", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return done.stdout


def calm_digest(base: Path, served: Served, networks: Networks) -> str:
    """The digest of an undisturbed crawl with files and SQLite."""
    config = write_demo_config(base / "calm", served, LIMITS)
    sumi("crawl", config.name, "-q", cwd=config.parent, prefix=networks.words_on("machine-1", config.parent))
    return sumi("digest", config.name, cwd=config.parent).strip()


def over_budget(served: Served, since: int) -> list[str]:
    """Domains that the server's own log shows more requests to than the budget allows."""
    asked = Counter(seen.host.removeprefix("www.") for seen in served.requests()[since:])
    return [f"{domain}: {count}" for domain, count in asked.items() if count > LIMITS.max_domain_requests]


def check(terrain: Terrain, expected: str, before: int) -> AuditReport:
    """The map, the audit, the server's own log. Raises AssertionError, and leaves what the engine had in `found`."""
    folder = terrain.base / "machine-1"
    text = (folder / "demo.toml").read_text()
    url = terrain.server.url(terrain.database)
    (folder / "after.toml").write_text(text[: text.index("[engine]")] + f'[engine]\nurl = "{url}"\n')
    try:
        assert sumi("digest", "after.toml", cwd=folder).strip() == expected, "the map differs"
        report = audit(load(folder / "after.toml"))
        assert report.is_clean, "\n".join(report.lines())
        assert not (close := too_close(terrain.served, before)), close
        assert not (over := over_budget(terrain.served, before)), over
        return report
    except AssertionError:
        with suppress(AssertionError, subprocess.SubprocessError):
            sumi("engine", "export", "after.toml", "--into", str(terrain.base / "found"), cwd=folder)
        raise


@contextmanager
def places(base: Path) -> Iterator[tuple[Networks, Path | None, tuple[bytes, bytes] | None]]:
    """The networks, the authority of the engine's certificate, and that; both None where no PostgreSQL speaks TLS."""
    base.mkdir(parents=True, exist_ok=True)
    networks = best_networks(MACHINES, SERVERS)
    try:
        try:
            binaries(is_to_encrypt=True)
        except NoServer:
            yield networks, None, None
            return
        authority = trustme.CA()
        authority.cert_pem.write_to_path(base / "authority.pem")
        issued = authority.issue_cert(*NAMES.values())
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        yield networks, base / "authority.pem", (chain, issued.private_key_pem.bytes())
    finally:
        networks.close()


def serve_on(networks: Networks, folder: Path) -> AbstractContextManager[Served]:
    """The demo's web server, where these machines reach it."""
    host = networks.host("web")
    return serve_terrain(demo_terrain(), folder, log=True, address=host.address, prefix=host.prefix)


def story_of(number: int, chance: random.Random, deeds: int, *, has_failovers: bool) -> tuple[list[str], str]:
    """The misfortunes of a round, and of what kind its standby is (empty: it has none)."""
    chosen = ["stop", *(chance.choice(DEEDS) for _ in range(deeds))]
    if not has_failovers:
        kind = {3: "synchronous", 0: "asynchronous"}.get(number % 6, "")
        ends = {"synchronous": ["failover"], "asynchronous": ["behind", "failover"]}
        return (["stop", *ends[kind], *chosen[3:]] if kind else chosen), kind
    kind = "synchronous" if number % 3 == 0 else "asynchronous"
    at = chance.randint(1, len(chosen) - 1)
    chosen[at:at] = ["failover"]
    if kind == "asynchronous":  # what happens in between happens to an engine that has no copy of it
        behind = chance.randint(1, at)
        chosen[behind:behind] = ["behind"]
    return chosen, kind


def torture_machines(
    rounds: int,
    seed: int,
    *,
    deeds: int = 6,
    every: float = 3.0,
    has_failovers: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """All rounds; returns the number of misfortunes. Raises AssertionError at the first map that differs."""
    chance = random.Random(seed)
    total: Counter[str] = Counter()
    base = Path(tempfile.mkdtemp(prefix="torture-"))
    try:
        with places(base) as (networks, authority, certificate), serve_on(networks, base / "server") as served:
            say(networks.words)
            expected = calm_digest(base, served, networks)
            say(f"calm: {expected[:16]}…")
            for number in range(1, rounds + 1):
                with ExitStack() as servers:
                    host = networks.host("engine")
                    server = servers.enter_context(own_server(certificate=certificate, host=host))
                    terrain = Terrain(base / f"round-{number}", served, server, networks, chance, authority)
                    chosen, kind = story_of(number, chance, deeds, has_failovers=has_failovers)
                    if kind:
                        way = networks.way("standby", "engine", server.port)
                        there = networks.host("standby")
                        terrain.standby = servers.enter_context(
                            standby_of(server, way, certificate=certificate, host=there)
                        )
                        replicate(server, is_synchronous=kind == "synchronous")
                    before = len(served.requests())
                    terrain.set_up()
                    terrain.crawl(terrain.misfortunes(chosen, every))
                    report = check(terrain, expected, before)
                total += terrain.done
                starts = sum(process.starts for process in terrain.all)
                words = f"{dict(terrain.done)}{f', {kind} standby' if kind else ''}, {starts} starts"
                gaps = f"{report.unseen} numbers missing ({report.unreported} unreported)"
                say(f"round {number}: {words}, {gaps}, audit clean, the same map")
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
    parser.add_argument("--failovers", action="store_true", help="a standby takes over in every round")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}", flush=True)
    torture_machines(
        chosen.rounds,
        chosen.seed,
        deeds=chosen.deeds,
        has_failovers=chosen.failovers,
        say=lambda text: print(text, flush=True),
    )


if __name__ == "__main__":
    main()
