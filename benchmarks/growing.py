"""Result spools that nobody crawled: what fetchers would have written, drawn from a seed."""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path

from benchmarks.terrain import HUB, MEAN_LINKS, MEDIAN_LINKS, QUALITY_SITES, ScaledTerrain, host_of
from crawler.config.load import load
from crawler.demo.sites import Answer, Certificate, response
from crawler.model.records import Exchange, PageResult, RunEvent, dump
from crawler.visit.html import extract
from crawler.workspace.clock import now_text
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer
from crawler.workspace.runs import Run, RunStatus, write_run

WINDOW = 9_000  # pages: several batches; some 85,000 URLs are new in it
QUALITY = 3  # domains
_AT = "2026-01-01T00:00:00.000Z"
_SPREAD = math.sqrt(2 * math.log(MEAN_LINKS / MEDIAN_LINKS))


class GrowingWeb:
    """URLs by number, and pages that link to some near by, some anywhere, and some never seen before."""

    certificates = (Certificate(("*.grow.test",)),)

    def __init__(self, domains: int) -> None:
        self.domains = domains

    def url(self, number: int) -> str:
        if not self.is_visitable(number):
            return f"https://s{number % 1999}.shelf.test/item/{number}"
        return f"https://d{self.domain(number)}.grow.test/paper/{number}"

    def domain(self, number: int) -> int:
        """Early on a new domain with every other URL. Of the rest, half are on one domain in a hundred.

        The quality domains have their seeds and no more. A crawl visits their pages first; here, where pages are
        visited as they are found, each that turned up late would bring thousands nearer, and the late window would be
        about that: one link in three changed a depth there, and one in fifty early.
        """
        if number < QUALITY:
            return number
        if number < 2 * self.domains and number % 2 == 0:
            return max(number // 2, QUALITY)
        mixed = number * 2_654_435_761 % 4_294_967_296
        return QUALITY + mixed % (self.domains - QUALITY if mixed & 65_536 else self.domains // 100)

    def is_visitable(self, number: int) -> bool:
        return not (number % 10 in (3, 6, 9) and number > 3)

    def results(self, known: int, windows: Sequence[int] = (), seed: int = 5) -> Iterator[PageResult]:
        """Visits in the order in which pages were found, until this many URLs are known.

        The map grows fast (three links in ten are new), except in the windows: the `WINDOW` pages from when so many
        URLs are known have the mix of an ordinary crawl, one new link in ten, so that they can be compared.
        """
        rng = random.Random(seed)
        following, visited, pages = QUALITY, 0, 0
        waiting = sorted(windows)
        self.windows: list[tuple[int, int]] = []
        while following < known:
            if waiting and following >= waiting[0]:
                waiting.pop(0)
                self.windows.append((pages, pages + WINDOW))
            is_window = bool(self.windows) and pages < self.windows[-1][1]
            while not self.is_visitable(visited):
                visited += 1
            count = max(3, min(1500, round(rng.lognormvariate(math.log(MEDIAN_LINKS), _SPREAD))))
            new = max(2, count // 10 if is_window else count * 3 // 10)
            far = count // 4
            near = max(0, count - new - far)
            low, high = max(0, visited - 100), min(following, visited + 100)
            numbers = [
                *rng.choices(range(low, high), k=near),
                # Some pages are linked to far more often than others.
                *[int(rng.random() ** 3 * following) for _ in range(far)],
                *range(following, following + new),
            ]
            following += new
            hrefs = tuple(dict.fromkeys(map(self.url, numbers)))
            yield page_result(self.url(visited), visited, hrefs, f"Page {visited}")
            visited += 1
            pages += 1

    def answer(self, host: str, method: str, target: str) -> Answer:
        if target == "/robots.txt":
            return Answer(response(404, b"", "text/plain", with_body=False))
        body = f"<!DOCTYPE html><title>{host}{target}</title><a href='{self.url(1)}'>one</a>".encode()
        return Answer(response(200, body, with_body=method == "GET"))


def recorded_results(terrain: ScaledTerrain, limit: int) -> Iterator[PageResult]:
    """Visits in the order of a crawl: nearest to the seeds first, and first found first among those."""
    seeds = [f"https://{HUB}/", *(f"https://{host_of(site)}/" for site in range(QUALITY_SITES))]
    found = dict.fromkeys(seeds)
    queue = deque(seeds)
    for number in range(limit):
        if not queue:
            return
        url = queue.popleft()
        _, _, host, path = url.split("/", 3)
        body = terrain.answer(host, "GET", "/" + path).data.partition(b"\r\n\r\n")[2]
        page = extract(body, "text/html; charset=utf-8", url, 10_000)
        for href in page.hrefs:
            target = href if href.startswith("https:") else f"https://{host}{href}"
            if ".bench.test/" in target and target not in found:
                found[target] = None
                queue.append(target)
        yield page_result(url, number, page.hrefs, page.title or "")


def page_result(key: str, number: int, hrefs: tuple[str, ...], title: str) -> PageResult:
    domain = key.split("/", 3)[2]
    ledger = (
        Exchange(1_767_225_600_000 + number, number * 3, "HEAD", domain, 200, 3, domain),
        Exchange(1_767_225_600_110 + number, number * 3 + 110, "GET", domain, 200, 5, domain),
    )
    return PageResult(
        run=1,
        key=key,
        wire=key,
        domain=domain,
        at=_AT,
        state="processed",
        status=200,
        content_type="text/html; charset=utf-8",
        title=title,
        base=key,
        hrefs=hrefs,
        bytes=40_000,
        boot="bench",
        ledger=ledger,
    )


def start_run(workspace: Path, config_path: Path) -> None:
    """What a scheduler leaves when it starts a run."""
    config = load(config_path)
    place = FileWorkspace(workspace)
    place.prepare()
    writer = Writer(place.layout.results_of("scheduler"))
    writer.append(dump(RunEvent(1, now_text(), "started", config.config_hash, config.map_hash)))
    writer.close()
    write_run(place, Run(1, RunStatus.RUNNING))


def write_results(workspace: Path, results: Iterable[PageResult]) -> list[int]:
    """Write page results as one fetcher would; returns the raw links up to and with each page."""
    writer = Writer(FileWorkspace(workspace).layout.results_of("fetcher-01"))
    counts = []
    batch: list[bytes] = []
    for result in results:
        counts.append(len(result.hrefs))
        batch.append(dump(result))
        if len(batch) == 200:
            writer.append_all(batch)
            batch = []
    writer.append_all(batch)
    writer.close()
    return [0, *accumulate(counts)]
