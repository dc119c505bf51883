"""`make torture`: crawl the demo terrain again and again, killing its processes all the while, and compare the maps.

Each round is one crawl in a workspace of its own. Some of its deaths come from outside, at random moments (a stage,
the supervisor, all at once); the others from inside, at chosen ones: before, after or in the middle of a write,
before and after an fsync, a rename, a write of a gate, a commit (`hooks/sitecustomize.py`). Whenever the whole crawl
is dead it is started again, until it says that it is done. Then the map must have the digest of a calm crawl and the
sums that its links make, the page logs must hold each of its visits once, the ledgers must pass the audit, the server's
own log must show no two requests too close together, every page that a result names as stored must be there and whole,
no visit may stand in the spools twice, and the requests made again must fit what was in flight when processes died.

With `--outages` the network fails all the while too (`outages.py`): seconds without a server, with a silent one, or
without name servers. The calm crawl of the comparison has the same door in its way, and it stays open. `--longest`
makes outages longer, and the first one of each round at least two thirds of that.

With `--discovery` the terrain is one of sitemaps in parts, lists and archives (`discovery.py`), and the deaths from
inside fall on the writes of what was read of a sitemap and of what was decided about a guess.

With `--reloads` the crawl reads its config again before every death from outside: deaths fall into the middle of that.

With `--revisits` the web is crawled four times in a row, the second time unchanged and the third time with some pages
changed; in the fourth run almost no page is due (`revisits.py`). Deaths fall on pages that a 304 confirms or that are
carried into the run, and stored pages are packed meanwhile.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from crawler.config.load import load
from crawler.database.digest import digest
from crawler.demo.demo_config import DemoLimits, write_demo_config
from crawler.demo.server import Served, serve_terrain
from crawler.demo.terrain import demo_terrain
from crawler.model.records import PageResult, identity, parse
from crawler.observe.audit import audit
from crawler.store.file_store import FileStore, open_store
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Reader
from tests.ingest.terrains import read_database
from tests.torture.discovery import discovery_terrain, write_discovery_config
from tests.torture.outages import FailingNetwork, Weather

HOOKS = Path(__file__).parent / "hooks"
ROOT = Path(__file__).parents[2]
# The budget is ample: requests that a killed fetcher had made count, so a tight one closes a domain earlier.
LIMITS = DemoLimits(max_domain_requests=2000)
DEEDS = {
    "scheduler": [("write", 6), ("replace", 3), ("fsync", 3)],
    "fetcher": [("write", 40), ("pwrite", 120), ("fsync", 12), ("replace", 10), ("blob", 25)],
    "ingest": [("commit", 20), ("fsync", 25), ("write", 15)],
}
DISCOVERY_DEEDS = {
    "scheduler": [("guess", 4)],
    "fetcher": [("sitemap", 4)],
    "ingest": [("commit", 20), ("fsync", 25)],
}
WHEN = {deed: ["before", "after", "torn"] for deed in ("write", "blob", "guess", "sitemap")}
GIVE_UP_AFTER = 180  # seconds for one crawl; a calm one takes about ten


@dataclass
class Crawl:
    """One workspace, and the processes that have died in it."""

    config: Path
    tokens: Path
    no_names: Path | None = None
    deaths: Counter[str] = field(default_factory=Counter)
    starts: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": f"{HOOKS}:{ROOT}",
            "SUMI_RIPPLE_TORTURE": str(self.tokens),
        }
        if self.no_names is not None:
            environment["SUMI_RIPPLE_NO_NAMES"] = str(self.no_names)
        self.starts += 1
        self.process = subprocess.Popen(
            [sys.executable, "-m", "crawler", "crawl", str(self.config), "-q", "--workspace", str(self.config.parent)],
            env=environment,
            cwd=self.config.parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self.config.parent / "stderr.txt").open("ab"),
            start_new_session=True,
        )

    def kill_something(self, chance: random.Random) -> None:
        assert self.process is not None
        stages = stages_of(self.process.pid)
        whom = chance.choice(["stage", "stage", "stage", "supervisor", "all"])
        if whom == "stage" and stages:
            kill(chance.choice(stages))
        elif whom == "supervisor":
            kill(self.process.pid)
        else:
            whom = "all"
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                return
        self.deaths[whom] += 1

    def reload(self, number: int) -> None:
        """Let the crawl read a config that differs in settings which decide nothing. Stages end and start for it.

        One of them, a limit that is never reached, is recorded with the run: jobs are withdrawn and released anew.
        """
        assert self.process is not None
        own = ("max-idle-connections", "[limits]", "max-pages")
        lines = [line for line in self.config.read_text().splitlines() if not line.startswith(own)]
        at = lines.index("[network]")
        changed = ["[limits]", f"max-pages = {1000 * number}", "[network]", f"max-idle-connections = {number}"]
        self.config.write_text("\n".join([*lines[:at], *changed, *lines[at + 1 :]]) + "\n")
        if is_crawling(self.process.pid):  # before that a SIGHUP would end it
            os.kill(self.process.pid, signal.SIGHUP)
            self.deaths["reload"] += 1

    def clean_up(self) -> None:
        """End whatever of this crawl is left, by its process group, which this harness made."""
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()


def is_crawling(supervisor: int) -> bool:
    """Has it started its stages, and so its handlers of signals?"""
    return len(stages_of(supervisor)) > 1


def stages_of(supervisor: int) -> list[int]:
    """The stages and the fork server that they come from, as far as they are alive."""
    # Of multiprocessing's other helper (the resource tracker) the command line tells.
    servers = [child for child in children_of(supervisor) if b"forkserver" in command_of(child)]
    return servers + [stage for server in servers for stage in children_of(server)]


def children_of(parent: int) -> list[int]:
    try:
        return [int(text) for text in Path(f"/proc/{parent}/task/{parent}/children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def lay_tokens(folder: Path, chance: random.Random, count: int, deeds: dict[str, list[tuple[str, int]]]) -> None:
    """Choose this round's moments of death from inside."""
    folder.mkdir()
    for _ in range(count):
        role = chance.choice(list(deeds))
        deed, most = chance.choice(deeds[role])
        when = chance.choice(WHEN.get(deed, ["before", "after"]))
        (folder / f"{role}@{deed}@{when}@{chance.randint(1, most)}").touch()


@dataclass(frozen=True)
class Plan:
    """What all crawls of a torture have in common."""

    served: Served
    network: FailingNetwork | None = None
    longest: float = 5.0  # seconds of an outage
    has_discovery: bool = False
    has_reloads: bool = False

    def write_config(self, folder: Path) -> Path:
        config = (write_discovery_config if self.has_discovery else write_demo_config)(folder, self.served, LIMITS)
        if self.network is not None:
            config.write_text(behind(config.read_text(), self.served, self.network))
        return config

    def weather(self, chance: random.Random) -> Weather | None:
        if self.network is None:
            return None
        first = self.longest * 2 / 3 if self.longest > 5 else 0.5
        return Weather(self.network, chance.randrange(10**6), most=self.longest, first=first)


def crawl_under_torture(folder: Path, plan: Plan, chance: random.Random, inside: int, outside: int) -> Crawl:
    """One crawl to its end, through all its deaths."""
    network = plan.network
    config = plan.write_config(folder)
    tokens = folder / "tokens"
    lay_tokens(tokens, chance, inside, DISCOVERY_DEEDS if plan.has_discovery else DEEDS)
    laid = len(list(tokens.iterdir()))
    crawl = Crawl(config, tokens, network.no_names if network is not None else None)

    def before_a_death() -> None:
        if plan.has_reloads:
            crawl.reload(chance.randrange(100, 1000))
            time.sleep(chance.uniform(0, 0.5))

    endure(crawl, chance, outside, longest=plan.longest, before_a_death=before_a_death)
    crawl.deaths["inside"] = laid - len(list(tokens.iterdir()))
    return crawl


def endure(
    crawl: Crawl,
    chance: random.Random,
    outside: int,
    *,
    longest: float = 5.0,
    before_a_death: Callable[[], None] = lambda: None,
    is_over: Callable[[], bool] = lambda: False,
) -> None:
    """Start a crawl, kill parts of it, and start it again whenever it is dead, until it says that it is done.

    `is_over`: the run was completed, though the crawl died before it could say so. Another start would begin the next.
    """
    started = time.monotonic()
    give_up_after = GIVE_UP_AFTER + 10 * longest
    crawl.start()
    try:
        while time.monotonic() - started < give_up_after:
            assert crawl.process is not None
            try:
                code = crawl.process.wait(chance.uniform(0.3, longest / 2) if outside else 30)
            except subprocess.TimeoutExpired:
                if outside:
                    before_a_death()
                    crawl.kill_something(chance)
                    outside -= 1
                continue
            if code == 0 or is_over():
                return
            crawl.start()
        said = (crawl.config.parent / "stderr.txt").read_text(errors="replace")[-4000:]  # the folder goes with us
        raise AssertionError(f"the crawl did not end in {give_up_after:.0f} s. Its last words:\n{said}")
    finally:
        crawl.clean_up()


def behind(text: str, served: Served, network: FailingNetwork) -> str:
    """The demo's config, with a network that may fail in the way, and short times."""
    changes = (
        (f'"*" = "127.0.0.1:{served.port}"', f'"*" = "127.0.0.1:{network.port}"'),
        ("[network]\n", "[network]\nconnect-timeout = 1500\nread-timeout = 1500\n"),
        ("[resilience]\n", '[resilience]\nprobe-every = "1s"\nprobe = ["https://tea-almanac.test/"]\n'),
    )
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return text


def missing_blobs(workspace: FileWorkspace, store: FileStore) -> list[str]:
    """URLs of results whose page is not in the store though they say so. A damaged blob raises."""
    return [
        record.wire
        for writer in workspace.results.writers()
        for line in Reader(workspace.layout.results_of(writer))
        if isinstance(record := parse(line.body), PageResult)
        and record.stored
        and store.get(record.content_hash or "") is None
    ]


def results_twice(workspace: FileWorkspace) -> int:
    """Page results beyond the first of each visit."""
    seen: set[tuple[int, str]] = set()
    again = 0
    for writer in workspace.results.writers():
        for line in Reader(workspace.layout.results_of(writer)):
            record = parse(line.body)
            if isinstance(record, PageResult):
                again += identity(record) in seen
                seen.add(identity(record))
    return again


def check_logs(folder: Path, run: int = 1) -> None:
    """Both page logs hold every visit of the newest run once, no row lost and none twice."""
    with (folder / "logs" / f"pages-{run}.csv").open(newline="") as file:
        rows = [row["url"] for row in csv.DictReader(file)]
    lines = [orjson.loads(line) for line in (folder / "metadata" / "crawl_metadata.jsonl").read_bytes().splitlines()]
    with sqlite3.connect(f"file:{folder / 'sumi-ripple.db'}?mode=ro", uri=True) as db:
        carried = "SELECT id FROM revisits WHERE carried_run = ?1"
        sql = f"SELECT url FROM pages WHERE visited_run = ?1 AND id NOT IN ({carried})"
        visited = sorted(row[0] for row in db.execute(sql, (run,)))
    assert sorted(rows) == visited, "the page log differs from the map"
    assert sorted(line["url"] for line in lines if line["run"] == run) == visited, "the metadata differ from the map"


def too_close(served: Served, since: int) -> list[str]:
    """Pairs of requests in the server's own log that came to one domain sooner than the delay allows."""
    last: dict[str, int] = {}
    found = []
    for seen in served.requests()[since:]:
        domain = seen.host.removeprefix("www.")
        if domain in last and seen.at_ns - last[domain] < LIMITS.minimum_time_on_page * 1_000_000:
            found.append(f"{domain} {(seen.at_ns - last[domain]) / 1e6:.1f} ms {seen.method} {seen.target}")
        last[domain] = seen.at_ns
    return found


def torture(
    rounds: int,
    seed: int,
    *,
    inside: int = 6,
    outside: int = 6,
    with_outages: bool = False,
    longest: float = 5.0,
    has_discovery: bool = False,
    has_reloads: bool = False,
    say: Callable[[str], None] = print,
) -> int:
    """All rounds; returns the number of deaths. Raises AssertionError at the first map that differs."""
    chance = random.Random(seed)
    deaths: Counter[str] = Counter()
    terrain = discovery_terrain() if has_discovery else demo_terrain()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        base = Path(name)
        with serve_terrain(terrain, base / "server", log=True) as served:
            network = FailingNetwork(served.port, base / "no-names") if with_outages else None
            plan = Plan(served, network, longest, has_discovery, has_reloads)
            if not has_discovery:
                crawl_under_torture(base / "warm-up", plan, chance, 0, 0)
            before = len(served.requests())
            calm = crawl_under_torture(base / "calm", plan, chance, 0, 0)
            needed = len(served.requests()) - before
            expected = digest(base / "calm" / "sumi-ripple.db")
            say(f"calm: {expected[:16]}…, {needed} requests")
            assert calm.starts == 1
            for number in range(1, rounds + 1):
                folder = base / f"round-{number}"
                before = len(served.requests())
                weather = plan.weather(chance)
                if weather is not None:
                    weather.start()
                crawl = crawl_under_torture(folder, plan, chance, inside, outside)
                if weather is not None:
                    weather.stop()
                made = len(served.requests()) - before
                config = load(crawl.config, workspace=folder)
                again = results_twice(FileWorkspace(folder))
                found = digest(folder / "sumi-ripple.db")
                read_database(folder / "sumi-ripple.db")  # does it agree with itself? Sums, least depths, ends of links
                check_logs(folder)
                report = audit(config)
                died = sum(crawl.deaths.values())
                disturbed = died + (weather.outages if weather is not None else 0)
                deaths.update(crawl.deaths)
                out = f"{weather.words()}, " if weather is not None else ""
                say(
                    f"round {number}: {out}{died} deaths ({dict(crawl.deaths)}), {crawl.starts} starts, "
                    f"{made - needed:+d} requests, {again} results twice, "
                    f"audit {'clean' if report.is_clean else 'NOT CLEAN'}, "
                    f"{'the same map' if found == expected else 'ANOTHER MAP'}"
                )
                assert found == expected, f"seed {seed}, round {number}: the map differs"
                assert not (close := too_close(served, before)), close
                assert report.is_clean, "\n".join(report.lines())
                # A visit that was in flight may be made again whole, retries and robots.txt included.
                assert made - needed <= disturbed * LIMITS.max_concurrent_pages_open * 6, (
                    f"{made - needed} requests too many"
                )
                assert not (missing := missing_blobs(FileWorkspace(folder), open_store(config))), missing
                assert not (strange := list(open_store(config).strangers())), strange
                assert again <= died * LIMITS.max_concurrent_pages_open
    say(f"{rounds} rounds, {sum(deaths.values())} deaths {dict(deaths)}: every map the same")
    return sum(deaths.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--outages", action="store_true")
    parser.add_argument("--longest", type=float, default=5.0, help="seconds of an outage")
    parser.add_argument("--discovery", action="store_true")
    parser.add_argument("--reloads", action="store_true")
    parser.add_argument("--revisits", action="store_true")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args()
    print(f"seed {chosen.seed}")
    if chosen.revisits:
        from tests.torture.revisits import torture_revisits

        torture_revisits(chosen.rounds, chosen.seed)
        return
    torture(
        chosen.rounds,
        chosen.seed,
        with_outages=chosen.outages,
        longest=chosen.longest,
        has_discovery=chosen.discovery,
        has_reloads=chosen.reloads,
    )


if __name__ == "__main__":
    main()
