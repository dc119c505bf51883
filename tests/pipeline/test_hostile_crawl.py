"""Whole crawls of hostile sites with honest ones beside them: the honest ones are mapped as if they were alone, no
stage grows without bound, and a Ctrl-C ends it at any moment.
"""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from crawler.model.states import slug_of
from crawler.supervise.exit_rules import PATIENCE
from tests.hostile import HostileServer, Seen
from tests.pipeline.crawling import eventually, pages_done, rows, started

pytestmark = pytest.mark.xdist_group("hostile-crawl")

MEGABYTE = 1024 * 1024
# By role, in megabytes. Scheduler, ingest and supervisor read no page: they do not grow with what one sends.
MOST_MEMORY = {"fetcher": 400, "ingest": 200, "scheduler": 120, "other": 120}
INNOCENT = [f"innocent{number}.test" for number in range(6)]
BOMBS = [f"https://b{number}.bombs.test/paragraphs" for number in range(20)]
BOMBS += [f"https://c{number}.bombs.test/{path}" for number in range(5) for path in ("query-flood", "attribute-flood")]
DENSE = [f"https://robots-dense{number}.test/plain" for number in range(30)]
# Each found behaviour: where it ends.
HOLDING = [f"https://h{number}.holding.test/~held" for number in range(8)]
FOUND: dict[str, tuple[str, str | None]] = {
    "https://f1.found.test/unclosed-tags": ("processed", None),
    "https://f2.found.test/meta-flood": ("processed", None),
    "https://f3.found.test/one-tag": ("processed", None),
    "https://f4.found.test/query-flood": ("processed", None),
    "https://f5.found.test/empty-blocks": ("failed", "too-costly"),
    "https://f6.found.test/empty-members": ("failed", "too-costly"),
    "https://f7.found.test/trailer-after-body": ("failed", "too-large"),
    "https://f8.found.test/truncated-gzip": ("processed", None),
    "https://f9.found.test/controls": ("processed", None),
    "https://tickets.test/plain": ("failed", "robots-unreachable"),
    "https://late-tickets.test/plain": ("failed", "bad-response"),
    "https://robots-agents.test/plain": ("processed", None),
    "https://robots-digits.test/plain": ("failed", "crawl-delay-too-long"),
}


def write_config(folder: Path, server: HostileServer, urls: list[str]) -> Path:
    seeds: dict[str, list[str]] = {}
    for url in urls:
        seeds.setdefault(url.split("/")[2], []).append(url)
    quality = "".join(
        f'[[quality]]\ndomain = "{host}"\nseeds = [{", ".join(map(repr, its))}]\n' for host, its in seeds.items()
    )
    path = folder / "crawl.toml"
    path.write_text(
        "[crawler]\nmax-depth = 1\nmax-concurrent-pages-open = 40\nminimum-time-on-page = 100\nworkers = 2\n"
        "retries = 1\nretry-delay = 100\nrobots-retries = 1\nrobots-retry-delay = 100\n"
        f'[network]\ntotal-timeout = 120000\nca-bundle = "{server.ca_path}"\n'
        f'[network.resolve]\n"*" = "127.0.0.1:{server.port}"\n{quality}'
    )
    return path


def descendants_of(pid: int) -> list[int]:
    """Every process below this one: the stages are children of the supervisor's fork server."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [pid]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


def peak_of(pid: int) -> int:
    try:
        match = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0
    return int(match[1]) * 1024 if match else 0


def role_of(folder: Path, pid: int) -> str:
    """The stage whose process this is, by the heartbeats; `other`: the supervisor or the fork server."""
    for path in (folder / "ws" / "status").glob("*.json"):
        try:
            beat = orjson.loads(path.read_bytes())
        except (OSError, ValueError):
            continue
        if beat["pid"] == pid:
            return str(beat["stage"])
    return "other"


@dataclass
class Crawled:
    folder: Path
    seen: list[Seen]
    peaks: dict[str, int] = field(default_factory=dict)  # role → bytes
    were_honest_first: bool = False  # were all honest pages in the map while others were held?

    @property
    def requests(self) -> Counter[tuple[str, str, str]]:
        return Counter((one.host, one.method, one.path) for one in self.seen)

    def states(self) -> dict[str, tuple[str, str | None]]:
        return {
            url: (state, slug_of(error))
            for url, state, error in rows(self.folder, "SELECT url, state, error_message FROM pages")
        }


def honest_done(folder: Path) -> int:
    sql = "SELECT count(*) FROM pages WHERE visited_run IS NOT NULL AND domain LIKE 'innocent%'"
    try:
        return int(rows(folder, sql)[0][0])
    except sqlite3.Error:
        return 0


def crawl(folder: Path, server: HostileServer, urls: list[str]) -> Crawled:
    """A crawl to its end; the peak of memory of each of its processes."""
    before = len(server.seen())
    peaks: dict[str, int] = {}
    with started("crawl", write_config(folder, server, urls), "--workspace", "ws", "-q", cwd=folder) as process:

        def has_ended() -> bool:
            for child in (process.pid, *descendants_of(process.pid)):
                role = role_of(folder, child)
                peaks[role] = max(peaks.get(role, 0), peak_of(child))
            if honest_done(folder) == 7 * len(INNOCENT):
                server.released.set()
            return process.poll() is not None

        server.released.clear()
        eventually(has_ended, "the crawl ends")
        assert process.returncode == 0
    return Crawled(folder, server.seen()[before:], peaks, server.released.is_set())


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    with HostileServer(tmp_path_factory.mktemp("hostile")) as running:
        yield running


@pytest.fixture(scope="module")
def calm(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    return crawl(tmp_path_factory.mktemp("calm"), server, [f"https://{host}/" for host in INNOCENT])


@pytest.fixture(scope="module")
def beset(server: HostileServer, tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    urls = [f"https://{host}/" for host in INNOCENT] + [*HOLDING, *FOUND, *BOMBS, *DENSE]
    return crawl(tmp_path_factory.mktemp("beset"), server, urls)


def test_honest_sites_are_mapped_and_asked_as_if_they_were_alone(calm: Crawled, beset: Crawled) -> None:
    alone = {url: end for url, end in calm.states().items() if "://innocent" in url}
    beside = {url: end for url, end in beset.states().items() if "://innocent" in url}
    assert len(alone) == 7 * len(INNOCENT)
    assert beside == alone
    for host in INNOCENT:
        asked = [{one: n for one, n in each.requests.items() if one[0] == host} for each in (calm, beset)]
        assert asked[0] == asked[1]


def test_each_found_behaviour_ends_in_its_state(beset: Crawled) -> None:
    states = beset.states()
    assert {url: states[url] for url in FOUND} == FOUND
    assert {states[url] for url in BOMBS + DENSE} == {("processed", None)}


def test_a_body_that_ended_early_is_marked_in_the_map(beset: Crawled) -> None:
    marked = rows(beset.folder, "SELECT url FROM pages WHERE truncated")
    assert marked == [("https://f8.found.test/truncated-gzip",)]


def test_no_process_of_the_crawl_grows_beyond_its_bound(beset: Crawled) -> None:
    megabytes = {role: peak // MEGABYTE for role, peak in beset.peaks.items()}
    assert set(megabytes) == set(MOST_MEMORY)
    assert [role for role, most in MOST_MEMORY.items() if megabytes[role] >= most] == [], megabytes


def test_honest_sites_do_not_wait_for_hostile_ones(beset: Crawled) -> None:
    """The servers of HOLDING sent the ends of their answers when every honest page was in the map, and not before.

    What hostile sites cost in time, `make bench-hostile` measures.
    """
    assert beset.were_honest_first
    assert {beset.states()[url] for url in HOLDING} == {("processed", None)}


@pytest.mark.parametrize("done", [0, 3, 12])
def test_an_interrupt_among_hostile_pages_ends_soon(server: HostileServer, tmp_path: Path, done: int) -> None:
    config = write_config(tmp_path, server, [*FOUND, *BOMBS, *DENSE, "https://slow.test/drip-body"])
    with started("crawl", config, "--workspace", "ws", "-q", cwd=tmp_path) as process:
        eventually(lambda: pages_done(tmp_path) >= done and len(descendants_of(process.pid)) >= 4, "it is at work")
        os.kill(process.pid, signal.SIGINT)
        # The rule says five seconds (`exit_rules.kill_at`). Without it, a stage may take as long as this and longer.
        assert process.wait(PATIENCE - 10) in (0, 130)
