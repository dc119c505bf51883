"""The peer: Scrapy on the same pages, with the settings that its documentation advises for broad crawls.

Robots are obeyed, a domain gets one request at a time with the same pause in between, pages and links go to SQLite
in batched transactions. It makes no HEAD requests and keeps no depth per origin. Every connection goes to the
benchmark's server on loopback, whatever the host. Run as a program of its own, because a reactor runs only once:

    python -m benchmarks.scrapy_peer PORT TASK.json OUTPUT.json --seconds 60 [--lean]

The task has `start`, a list of URLs, `suffix`, the end of the host names that are followed, and optionally `listed`,
the only URLs that may be fetched. The spider itself leaves out links that are not listed. That favours Scrapy: with a
request for every link, and a downloader middleware that drops the unlisted, a page took 26 ms of CPU instead of 15.
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer

SETTINGS: dict[str, Any] = {
    "CONCURRENT_REQUESTS": 100,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
    "DOWNLOAD_DELAY": 0.1,
    "DOWNLOAD_DELAY_JITTER": 0,
    "ROBOTSTXT_OBEY": True,
    "SCHEDULER_PRIORITY_QUEUE": "scrapy.pqueues.DownloaderAwarePriorityQueue",
    "REACTOR_THREADPOOL_MAXSIZE": 20,
    "DEPTH_PRIORITY": 1,
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleFifoDiskQueue",
    "SCHEDULER_MEMORY_QUEUE": "scrapy.squeues.FifoMemoryQueue",
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "REDIRECT_ENABLED": True,
    "DOWNLOAD_TIMEOUT": 30,
    "LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "USER_AGENT": "SumiRipple/1.0 (peer)",
}


class Loopback(CachingThreadedResolver):
    """Every host is this machine; DNS is never asked."""

    def getHostByName(self, name: str, timeout: Any = None) -> Any:
        return defer.succeed("127.0.0.1")


class Store:
    """The same map: every URL once, visited or not, every link once, by id. A transaction for a hundred pages."""

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path)
        self.db.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            "CREATE TABLE pages (id INTEGER PRIMARY KEY, url TEXT UNIQUE, title TEXT, status INTEGER);"
            "CREATE TABLE links (from_id INTEGER, to_id INTEGER, PRIMARY KEY (from_id, to_id)) WITHOUT ROWID;"
        )
        self.pages: list[tuple[str, str | None, int]] = []
        self.links: list[tuple[str, str]] = []

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        url = item["url"]
        self.pages.append((url, item["title"], item["status"]))
        self.links.extend([(url, link) for link in item["links"]])
        if len(self.pages) >= 100:
            self.flush()
        return item

    def flush(self) -> None:
        with self.db:
            self.db.executemany(
                "INSERT INTO pages (url, title, status) VALUES (?, ?, ?)"
                " ON CONFLICT (url) DO UPDATE SET title = excluded.title, status = excluded.status",
                self.pages,
            )
            found = [(link,) for link in dict.fromkeys([link for _, link in self.links])]
            self.db.executemany("INSERT OR IGNORE INTO pages (url) VALUES (?)", found)
            self.db.executemany(
                "INSERT OR IGNORE INTO links"
                " SELECT one.id, other.id FROM pages one, pages other WHERE one.url = ? AND other.url = ?",
                self.links,
            )
        self.pages, self.links = [], []


class SqlitePipeline:
    """The item pipeline around `Store`."""

    def __init__(self, crawler: Any) -> None:
        self.store = Store(crawler.settings["STORE_PATH"])

    @classmethod
    def from_crawler(cls, crawler: Any) -> SqlitePipeline:
        return cls(crawler)

    def process_item(self, item: Any) -> Any:
        return self.store.process_item(item)

    def close_spider(self) -> None:
        self.store.flush()


class TerrainSpider(scrapy.Spider):
    """Follows every link inside the terrain, records all of them. Links come from LinkExtractor, as is usual."""

    name = "terrain"

    def __init__(self, task: dict[str, Any]) -> None:
        super().__init__()
        self.start_urls = task["start"]
        self.listed = frozenset(task["listed"]) if "listed" in task else None
        self.inside = task["suffix"] + "/"
        self.extractor = LinkExtractor()
        self.progress: list[tuple[float, float, int]] = []  # wall, CPU, links of each page

    async def start(self) -> AsyncIterator[Any]:
        for url in self.start_urls:
            yield scrapy.Request(url)  # filtered like any other, or a link to it would fetch it again

    def parse(self, response: Any) -> Iterator[Any]:
        links = self.links_of(response)
        self.progress.append((time.perf_counter(), time.process_time(), len(links)))
        title = response.xpath("//title/text()").get()
        yield {"url": response.url, "title": title, "status": response.status, "links": links}
        for link in links:
            if link in self.listed if self.listed is not None else self.inside in link:
                yield scrapy.Request(link)

    def links_of(self, response: Any) -> list[str]:
        return list(dict.fromkeys([link.url.partition("#")[0] for link in self.extractor.extract_links(response)]))


class LeanSpider(TerrainSpider):
    """The same without LinkExtractor and without asking twice: what somebody in a hurry would write."""

    def __init__(self, task: dict[str, Any]) -> None:
        super().__init__(task)
        self.asked: set[str] = set()

    def links_of(self, response: Any) -> list[str]:
        base = response.url
        return list(
            dict.fromkeys([urljoin(base, href).partition("#")[0] for href in response.xpath("//a/@href").getall()])
        )

    def parse(self, response: Any) -> Iterator[Any]:
        for result in super().parse(response):
            if isinstance(result, scrapy.Request):
                if result.url in self.asked:
                    continue
                self.asked.add(result.url)
            yield result


def run(port: int, task: dict[str, Any], output: Path, seconds: float, lean: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings = SETTINGS | {
            "TWISTED_DNS_RESOLVER": Loopback,
            "ITEM_PIPELINES": {SqlitePipeline: 300},
            "STORE_PATH": str(Path(folder) / "scrapy.db"),
            "CLOSESPIDER_TIMEOUT": seconds,
        }
        process = CrawlerProcess(settings)
        crawler = process.create_crawler(LeanSpider if lean else TerrainSpider)
        process.crawl(crawler, task=task)
        _send_everything_to(port)
        process.start()
        progress = getattr(crawler.spider, "progress", [])
    output.write_text(json.dumps({"lean": lean, "progress": progress}))


def _send_everything_to(port: int) -> None:
    """Connections to any host's port 443 go to the benchmark's server."""
    from twisted.internet import reactor

    patched: Any = reactor
    connect = patched.connectTCP

    def to_server(host: str, asked: int, *arguments: Any, **options: Any) -> Any:
        return connect("127.0.0.1", port, *arguments, **options)

    patched.connectTCP = to_server


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("task", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--lean", action="store_true")
    options = parser.parse_args()
    run(options.port, json.loads(options.task.read_text()), options.output, options.seconds, options.lean)
