"""`make bench-hostile`: how long honest sites take beside hostile ones, against how long they take alone.

    python -m benchmarks.hostile_sites [--only NAME,NAME] [--copies 8]

Each behaviour of the tests' hostile server is crawled from several hosts, with six honest sites beside it. The honest
ones have a server of their own, in a process of its own: what is measured is the crawler. The time is that from the
first request to the last one that the honest server sees; the crawl is ended then. Requests to a site are half a
second apart, which is half of the default: what hostile pages cost once weighs twice as much here. A ratio over 1.2 is
marked. About four minutes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tests.hostile import HostileServer

HONEST = tuple(f"innocent{number}.test" for number in range(6))
PAGES = 7  # of each
MOST_SECONDS = 60.0  # for one crawl
MOST_RATIO = 1.2
_TEMPLATE = """[crawler]
max-depth = 1
max-concurrent-pages-open = 40
minimum-time-on-page = 500
workers = 2
retries = 1
retry-delay = 100
robots-retries = 1
robots-retry-delay = 100
[network]
ca-bundle = "ca.pem"
[network.resolve]
"""

# Behaviour → the URLs of one copy; {n} is its number.
BEHAVIOURS: dict[str, tuple[str, ...]] = {
    "unclosed tags": ("https://u{n}.found.test/unclosed-tags",),
    "a flood of <meta>": ("https://m{n}.found.test/meta-flood",),
    "one tag of 10 MB": ("https://o{n}.found.test/one-tag",),
    "gb18030 queries": ("https://q{n}.found.test/query-flood",),
    "attributes": ("https://a{n}.found.test/attribute-flood",),
    "paragraphs, 10 MB in 10 KB": ("https://p{n}.found.test/paragraphs",),
    "gzip bombs": ("https://b{n}.found.test/bomb-gzip", "https://c{n}.found.test/bomb-stacked"),
    "empty blocks, 40 GB": ("https://e{n}.found.test/empty-blocks",),
    "empty members": ("https://f{n}.found.test/empty-members",),
    "a flood of trailers": ("https://t{n}.found.test/endless-trailer",),
    "bytes one by one": ("https://d{n}.found.test/drip-body", "https://s{n}.found.test/silent"),
    "session tickets": ("https://late-tickets.test/plain", "https://tickets.test/plain"),
    "16,000 agents in robots.txt": ("https://robots-agents.test/plain",),
    "dense robots.txt": ("https://robots-dense{n}.test/plain",),
    "a million links": ("https://l{n}.found.test/million-links",),
    "a base of 65 KB": ("https://z{n}.found.test/~long-base",),
    "redirects without end": ("https://walk{n}00.test/~walk",),
    "hosts without end": ("https://h{n}.many.test/~hosts",),
}


def serve(folder: Path, door: Connection) -> None:
    """A server in a process of its own. Answers every message with the times of the requests to honest sites so far."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with HostileServer(folder) as server:
        door.send((server.port, server.ca_path.read_text()))
        while door.recv():
            door.send([seen.at for seen in server.seen() if seen.host.startswith("innocent")])


class Served:
    """The handle of such a process."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        context = multiprocessing.get_context("spawn")
        self._door, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(folder, theirs), daemon=True)
        self._process.start()
        self.port, self.certificate = self._door.recv()

    def honest_times(self) -> list[float]:
        self._door.send(True)
        return list(self._door.recv())

    def close(self) -> None:
        self._door.send(False)
        self._process.join(10)


def write_config(folder: Path, honest: Served, hostile: Served, urls: list[str]) -> Path:
    (folder / "ca.pem").write_text(honest.certificate + hostile.certificate)
    lines = [_TEMPLATE]
    lines += [f'"{host}" = "127.0.0.1:{honest.port}"\n' for host in HONEST]
    lines.append(f'"*" = "127.0.0.1:{hostile.port}"\n')
    for url in urls:
        lines.append(f'[[quality]]\ndomain = "{url.split("/")[2]}"\nseeds = ["{url}"]\n')
    path = folder / "crawl.toml"
    path.write_text("".join(lines))
    return path


def measure(honest: Served, hostile: Served, urls: list[str]) -> float | None:
    """Seconds from the first to the last request to honest sites; None: they were not done in time."""
    # Two requests a page (HEAD and GET), one for the page that is missing, and robots.txt.
    expected = len(HONEST) * (2 * PAGES - 1 + 1)
    before = len(honest.honest_times())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        config = write_config(folder, honest, hostile, [f"https://{host}/" for host in HONEST] + urls)
        command = [sys.executable, "-m", "crawler", "crawl", str(config), "--workspace", "ws", "-q"]
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + MOST_SECONDS
        try:
            while time.monotonic() < end and process.poll() is None:
                times = honest.honest_times()[before:]
                if len(times) >= expected:
                    break
                time.sleep(0.05)
            times = honest.honest_times()[before:]
        finally:
            for number in (signal.SIGINT, signal.SIGINT):  # twice: at once
                if process.poll() is None:
                    os.kill(process.pid, number)
                    time.sleep(0.2)
            process.wait(30)
    return times[-1] - times[0] if len(times) >= expected else None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="behaviours, separated by commas")
    parser.add_argument("--copies", type=int, default=8, help="hosts with the same behaviour")
    wanted = parser.parse_args()
    names = [name for name in BEHAVIOURS if not wanted.only or any(part in name for part in wanted.only.split(","))]
    slow = 0
    with tempfile.TemporaryDirectory() as name:
        honest, hostile = Served(Path(name) / "honest"), Served(Path(name) / "hostile")
        alone = [measure(honest, hostile, []) for _ in range(3)]
        usual = statistics.median(seconds for seconds in alone if seconds is not None)
        print(f"alone: {usual:.2f} s ({', '.join(f'{seconds or 0:.2f}' for seconds in alone)})", flush=True)
        for behaviour in names:
            copies = range(wanted.copies)
            urls = [url.format(n=number) for url in BEHAVIOURS[behaviour] for number in copies]
            seconds = measure(honest, hostile, list(dict.fromkeys(urls)))
            ratio = None if seconds is None else seconds / usual
            is_slow = ratio is None or ratio > MOST_RATIO
            slow += is_slow
            shown = "not done" if seconds is None else f"{seconds:.2f} s  {ratio:.2f}  {seconds - usual:+.2f} s"
            print(f"{behaviour:30} {shown}{'  SLOW' if is_slow else ''}", flush=True)
        honest.close()
        hostile.close()
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
