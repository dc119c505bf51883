"""The yardstick: fetch and parse a fixed list of pages, and nothing else.

Four processes with five threads each, HEAD and GET, no frontier, no robots, no pacing, no database. Two forms, and
the faster one counts: `urllib3`, plain urllib3 and lxml as anybody would write them, and `own`, the project's
transport and extraction. A site's pages belong to one process, as they do in the pipeline, so that connections are
kept as well here as there.
"""

from __future__ import annotations

import multiprocessing
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

PROCESSES, THREADS = 4, 5
AGENT = "SumiRipple/1.0 (bare loop)"
Fetch = Callable[[str, str], int]  # host, target → links found


@dataclass(frozen=True, slots=True)
class BareResult:
    form: str
    pages: int
    links: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        return self.pages / self.seconds


def run_bare(form: str, urls: list[str], port: int, ca_path: Path) -> BareResult:
    """Fetch and parse every URL once; the clock runs from when all processes are ready to the last page."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(PROCESSES + 1)
    queue = context.SimpleQueue()
    shards: list[list[str]] = [[] for _ in range(PROCESSES)]
    for url in urls:
        shards[zlib.crc32(url.split("/", 3)[2].encode()) % PROCESSES].append(url)
    workers = [
        context.Process(target=_work, args=(form, shard, port, str(ca_path), barrier, queue)) for shard in shards
    ]
    for worker in workers:
        worker.start()
    barrier.wait()
    started = time.perf_counter()
    done = [queue.get() for _ in workers]
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
    pages, links, cpu = (sum(part[position] for part in done) for position in range(3))
    return BareResult(form, int(pages), int(links), seconds, cpu)


def _work(form: str, urls: list[str], port: int, ca_path: str, barrier: Barrier, queue: Any) -> None:
    make = _urllib3_fetch if form == "urllib3" else _own_fetch
    fetch = make(port, ca_path)
    todo = iter(urls)
    lock = threading.Lock()
    counts: list[tuple[int, int]] = []
    threads = [threading.Thread(target=_loop, args=(todo, lock, fetch, counts)) for _ in range(THREADS)]
    barrier.wait()
    cpu = time.process_time()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pages, links = (sum(count[position] for count in counts) for position in range(2))
    queue.put((pages, links, time.process_time() - cpu))


def _loop(todo: Iterator[str], lock: threading.Lock, fetch: Fetch, counts: list[tuple[int, int]]) -> None:
    pages = links = 0
    while True:
        with lock:
            url = next(todo, None)
        if url is None:
            break
        _, _, host, target = url.split("/", 3)
        links += fetch(host, "/" + target)
        pages += 1
    counts.append((pages, links))


def _urllib3_fetch(port: int, ca_path: str) -> Fetch:
    import ssl

    import urllib3
    from lxml import etree

    context = ssl.create_default_context(cafile=ca_path)
    pools: dict[str, urllib3.HTTPSConnectionPool] = {}
    lock = threading.Lock()
    parser = threading.local()

    def fetch(host: str, target: str) -> int:
        pool = pools.get(host)
        if pool is None:
            with lock:
                pool = pools.setdefault(
                    host,
                    urllib3.HTTPSConnectionPool(
                        "127.0.0.1",
                        port,
                        maxsize=THREADS,
                        ssl_context=context,
                        server_hostname=host,
                        assert_hostname=host,
                    ),
                )
        headers = {"Host": host, "User-Agent": AGENT, "Accept-Encoding": "gzip"}
        head = pool.request("HEAD", target, headers=headers, retries=False, redirect=False)
        if head.status != 200 or not head.headers.get("content-type", "").startswith("text/html"):
            raise RuntimeError(f"HEAD of {host}{target} answered {head.status}")
        body = pool.request("GET", target, headers=headers, retries=False, redirect=False).data
        if not hasattr(parser, "html"):
            parser.html = etree.HTMLParser(encoding="utf-8", remove_comments=True)
        root = etree.fromstring(body, parser.html)
        hrefs = set()
        title = None
        for element in root.iter("a", "title"):
            if element.tag == "title":
                title = title or element.text
            elif (href := element.get("href")) is not None:
                hrefs.add(href)
        return len(hrefs)

    return fetch


def _own_fetch(port: int, ca_path: str) -> Fetch:
    from crawler.model.messages import Failure, Request, Take
    from crawler.model.settings import NetworkSettings
    from crawler.net.client import Transport
    from crawler.visit.html import extract

    network = NetworkSettings(ca_bundle=Path(ca_path), resolve=(("*", f"127.0.0.1:{port}"),), max_idle_connections=1000)
    transport = Transport(network, AGENT)

    def fetch(host: str, target: str) -> int:
        url = f"https://{host}{target}"
        head = transport.send(Request("HEAD", url))
        page = transport.send(Request("GET", url, Take.HTML))
        if isinstance(head, Failure) or isinstance(page, Failure):
            raise RuntimeError(f"{url}: {head} {page}")
        return len(extract(page.body, page.headers.get("content-type"), url, 10_000).hrefs)

    return fetch
