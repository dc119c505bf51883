"""Sitemaps of quality domains: which are to be read, and the pages that they name.

A quality domain that the run meets gets its robots.txt as a first sitemap (level 0); a sitemap that was read may name
others, up to `MAX_LEVEL` levels and `MAX_SITEMAPS` for each domain that announced them. Each waits in the frontier
until no page of its domain does.

A page that a sitemap names is a page without a link: `origin` says so. Inside a quality domain it has depth 0 and is
visited; elsewhere it is recorded, and visited if a followed path leads there, or by a decision of the scheduler
(`crawler.schedule.page_guesses`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import zip_longest

from crawler.model.origins import Origin
from crawler.model.records import SITEMAP_KEY, SitemapResult
from crawler.model.settings import Config
from crawler.model.urls import UrlError, domain_of, hash64, normalize, wire_of
from ingest.links import LinkFinder, Targets
from ingest.memory.map_rows import MapDomain, MapSitemap
from ingest.memory.page_index import UNSEEN
from ingest.spread import DepthSpread
from ingest.writing.store import Store

MAX_SITEMAPS = 500  # of a domain, in one run
MAX_LEVEL = 4  # three indexes inside of each other, and the sitemaps that they name

MakePages = Callable[[Targets, str, Origin], list[int]]


class SitemapUpdater:
    """Applies what was read of sitemaps, and enters those that are to be read.

    `make_pages` gives the numbers of pages; it makes those that are not known.
    """

    def __init__(
        self, config: Config, store: Store, finder: LinkFinder, depths: DepthSpread, make_pages: MakePages
    ) -> None:
        self._is_on = config.discovery.sitemaps
        self._hosts = {domain_of(seed): seed for entry in config.quality for seed in reversed(entry.seeds)}
        self._store = store
        self._finder = finder
        self._depths = depths
        self._make_pages = make_pages
        self._run = 0
        self._numbers: dict[int, int] = {}  # hash of the URL → number
        self._known: set[int] = set()  # those of this run
        self._announced: Counter[str] = Counter()  # sitemaps of this run, by the domain that announced them

    def enter_run(self, run: int) -> None:
        self._run = run
        rows = self._store.sitemap_numbers()
        self._numbers = {hash64(url): number for number, url, _, _ in rows}
        self._known = {number for number, _, its_run, _ in rows if its_run == run}
        self._announced = Counter(announced_by for _, _, its_run, announced_by in rows if its_run == run)

    def enter_domains(self, may_be_read: Callable[[MapDomain], bool]) -> None:
        """Begin with the quality domains that the run has just met."""
        entered, self._store.changes.entered_domains = self._store.changes.entered_domains, []
        for domain in entered if self._is_on else ():
            if may_be_read(domain):
                wire = wire_of(self._hosts.get(domain.name, f"https://{domain.name}/"))
                self._enter("/".join([*wire.split("/", 3)[:3], "robots.txt"]), domain.name, 0)

    def apply(self, result: SitemapResult) -> None:
        """Pages and further sitemaps of one that was read, and its end."""
        number = self._number_of(result)
        if result.urls:
            self._add_pages(result, number)
        for url in result.sitemaps if result.level < MAX_LEVEL else ():
            # A redirect, and the other usual place, stand for the sitemap that is not there.
            self._enter(url, result.announced_by, result.level + (result.error is None))
        if result.is_last:
            self._end(result, number)

    # -- sitemaps ------------------------------------------------------------------------------------

    def _enter(self, url: str, announced_by: str, level: int) -> None:
        """A sitemap is to be read, unless it is known in this run, or there are too many."""
        try:
            wire, key = wire_of(url), normalize(url, ())
        except UrlError:
            return
        known = self._numbers.get(hash64(key))
        domain = self._store.domain(domain_of(wire), self._run)
        if known in self._known or domain.is_listed or domain.closed is not None or not self._is_on:
            return
        if self._announced[announced_by] >= MAX_SITEMAPS:
            return
        self._make(key, wire, domain, announced_by, level)

    def _make(self, key: str, wire: str, domain: MapDomain, announced_by: str, level: int) -> MapSitemap:
        number = self._numbers.setdefault(hash64(key), len(self._numbers) + 1)
        self._known.add(number)
        self._announced[announced_by] += 1
        made = MapSitemap(number, key, wire, domain, announced_by, level)
        self._store.changes.sitemaps[number] = made
        return made

    def _number_of(self, result: SitemapResult) -> int:
        """The number of a sitemap that was read. A replay in another order may not know yet that it was to be read."""
        key = result.key.removeprefix(SITEMAP_KEY)
        number = self._numbers.get(hash64(key))
        if number is None or number not in self._known:
            domain = self._store.domain(result.domain, self._run)
            number = self._make(key, result.wire, domain, result.announced_by, result.level).id
        return number

    def _end(self, result: SitemapResult, number: int) -> None:
        domain = self._store.domain(result.domain, self._run)
        url = result.key.removeprefix(SITEMAP_KEY)
        row = MapSitemap(number, url, result.wire, domain, result.announced_by, result.level)
        row.state = "failed" if result.error is not None else "read"
        row.form, row.entries, row.left_out = result.form or None, result.entries, result.left_out
        row.is_cut, row.status, row.error, row.read_at = result.is_cut, result.status, result.error, result.at
        self._store.changes.sitemaps[number] = row
        self._store.changes.done_sitemaps.append(row)

    # -- pages ---------------------------------------------------------------------------------------

    def _add_pages(self, result: SitemapResult, sitemap: int) -> None:
        standings = self._store.index.standings
        known = self._finder.find_targets(result.wire, result.urls).numbers
        self._store.pages([number for number in known if standings[number] == UNSEEN])  # in a list: one question
        found: dict[int, None] = {}
        entries = self._store.changes.sitemap_entries
        for url, date in zip_longest(result.urls, result.dates[: len(result.urls)], fillvalue=""):
            target = self._finder.find_targets(result.wire, (url,))
            for number in self._make_pages(target, result.at, Origin.SITEMAP):
                found[number] = None
                before = entries.get(number)
                if before is None or date >= (before[1] or ""):
                    entries[number] = (sitemap, date or None)
        self._depths.reach_unlinked(list(found), Origin.SITEMAP, self._run)
