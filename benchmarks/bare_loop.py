"""The yardstick: fetch and parse a fixed list of pages, and nothing else.

Plain urllib3 and lxml as anybody would write them: four processes with five threads each, HEAD and GET, no frontier,
no robots, no pacing, no database. A host's pages belong to one process, as they do in the pipeline, so that
connections are kept as well here as there.
"""

from __future__ import annotations

import multiprocessing
import ssl
import threading
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

PROCESSES, THREADS = 4, 5
AGENT = "SumiRipple/1.0 (bare loop)"


@dataclass(frozen=True, slots=True)
class BareResult:
    pages: int
    links: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


def run_bare(urls: list[str], port: int, ca_path: Path) -> BareResult:
    """Fetch and parse every URL once; the clock runs from when all processes are ready to the last page."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES + 1)
    queue = context.SimpleQueue()
    shards: list[list[str]] = [[] for _ in range(PROCESSES)]
    for url in urls:
        shards[zlib.crc32(url.split("/", 3)[2].encode()) % PROCESSES].append(url)
    workers = [context.Process(target=_work, args=(shard, port, str(ca_path), barrier, queue)) for shard in shards]
    for worker in workers:
        worker.start()
    barrier.wait()
    started = time.perf_counter()
    done = [queue.get() for _ in workers]
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
    pages, links, cpu = (sum(part[position] for part in done) for position in range(3))
    return BareResult(int(pages), int(links), seconds, cpu)


def _work(urls: list[str], port: int, ca_path: str, barrier: Barrier, queue: Any) -> None:
    loop = _Loop(iter(urls), port, ca_path)
    threads = [threading.Thread(target=loop.run) for _ in range(THREADS)]
    barrier.wait()
    cpu = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pages, links = (sum(count[position] for count in loop.counts) for position in range(2))
    queue.put((pages, links, time.process_time() - cpu))


class _Loop:
    """What the threads of one process share: the list, and a connection pool for every host."""

    def __init__(self, todo: Iterator[str], port: int, ca_path: str) -> None:
        self._todo, self._port = todo, port
        self._context = ssl.create_default_context(cafile=ca_path)
        self._lock = threading.Lock()
        self._pools: dict[str, Any] = {}
        self.counts: list[tuple[int, int]] = []  # pages and links of each thread

    def run(self) -> None:
        from lxml import etree

        parser = etree.HTMLParser(encoding="utf-8", remove_comments=True)
        pages = links = 0
        while True:
            with self._lock:
                url = next(self._todo, None)
            if url is None:
                break
            _, _, host, target = url.split("/", 3)
            links += self._visit(host, "/" + target, parser)
            pages += 1
        self.counts.append((pages, links))

    def _visit(self, host: str, target: str, parser: Any) -> int:
        from lxml import etree

        pool = self._pool(host)
        headers = {"Host": host, "User-Agent": AGENT, "Accept-Encoding": "gzip"}
        head = pool.request("HEAD", target, headers=headers, retries=False, redirect=False)
        if head.status != 200 or not head.headers.get("content-type", "").startswith("text/html"):
            raise RuntimeError(f"HEAD of {host}{target} answered {head.status}")
        body = pool.request("GET", target, headers=headers, retries=False, redirect=False).data
        hrefs = set()
        title = None
        for element in etree.fromstring(body, parser).iter("a", "title"):
            if element.tag == "title":
                title = title or element.text
            elif (href := element.get("href")) is not None:
                hrefs.add(href)
        return len(hrefs)

    def _pool(self, host: str) -> Any:
        import urllib3

        with self._lock:
            pool = self._pools.get(host)
            if pool is None:
                pool = self._pools[host] = urllib3.HTTPSConnectionPool(
                    "127.0.0.1",
                    self._port,
                    maxsize=THREADS,
                    ssl_context=self._context,
                    server_hostname=host,
                    assert_hostname=host,
                )
        return pool
