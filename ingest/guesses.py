"""Pages that are tried without a link: the guesses that the scheduler recorded, and what it needs for them.

Which pages are members of a list, and which archives their addresses show, is noted as they become known, in quality
domains alone (lists also in others, with [discovery] elsewhere). A guess is a page without a link, as those of a
sitemap are; its end changes no page. Outside of quality domains a page of a sitemap is visited by such a decision, too.
Guesses are read here and never made, so a replay has those of the crawl, whatever the config says.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from crawler.model.archives import archives_shown
from crawler.model.origins import Origin
from crawler.model.pagination import number_in
from crawler.model.records import GuessEvent
from crawler.model.settings import Config
from crawler.rules.lists import DomainClass
from crawler.rules.page_rules import is_out_of_scope
from ingest.links import LinkFinder, Targets
from ingest.memory.changes import ArchivePage, EndedGuesses, Guess, ListPage
from ingest.memory.map_rows import MapPage
from ingest.memory.page_index import UNSEEN
from ingest.sitemaps import MakePages
from ingest.spread import DepthSpread
from ingest.writing.store import Store


class GuessUpdater:
    """Applies guesses and their ends. `make_pages` gives the numbers of pages; it makes those that are not known."""

    def __init__(
        self, config: Config, store: Store, finder: LinkFinder, depths: DepthSpread, make_pages: MakePages
    ) -> None:
        self._notes_lists = config.discovery.pagination == "speculate"
        self._notes_pages = config.discovery.tries_pages
        self._notes_archives = config.discovery.archives
        self._is_on_elsewhere = config.discovery.elsewhere
        self._store = store
        self._finder = finder
        self._depths = depths
        self._make_pages = make_pages
        self._run = 0
        self._open: set[int] = set()  # pages that were tried and are not visited yet
        self._archives: set[int] = set()  # hashes of the keys of archives

    def enter_run(self, run: int) -> None:
        self._run = run
        self._open = self._store.open_guesses(run)
        self._archives = self._store.archive_hashes() if self._notes_archives else set()

    def note_page(self, page: MapPage) -> None:
        """The run has just met this page."""
        if not self._notes_pages:
            return
        if is_out_of_scope(page.trap) or page.domain.is_listed:
            return
        is_quality = page.klass is DomainClass.QUALITY
        member = number_in(page.key) if self._notes_lists and (is_quality or self._is_on_elsewhere) else None
        if member is not None:
            self._store.changes.list_pages[page.id] = ListPage(member.form, member.number, page.domain.id)
        if self._notes_archives and is_quality:
            if page.hash in self._archives:
                self._store.changes.known_archives[page.hash] = page.id
            if page.origin.is_linked:
                self.note_link(page)

    def note_link(self, page: MapPage) -> None:
        """A link leads to this page: its address shows what archives the site may have."""
        if not self._notes_archives or page.klass is not DomainClass.QUALITY:
            return
        index, noted = self._store.index, self._store.changes.archive_pages
        for form, url in archives_shown(page.wire or page.key):
            numbers, new = self._finder.find_targets(url, (url,))
            if not numbers and not new:
                continue
            hash_ = index.hashes[numbers[0]] if numbers else new[0].link.hash
            before = noted.get(hash_)
            if before is not None and (len(before.url), before.url) <= (len(url), url):
                url = before.url  # whichever page showed it first
            noted[hash_] = ArchivePage(form, url, page.domain.id, numbers[0] if numbers else new[0].number)
            self._archives.add(hash_)

    def apply(self, event: GuessEvent) -> None:
        if event.event == "ended":
            domain = self._store.domain(event.domain, self._run)
            self._store.changes.ended_guesses.append(EndedGuesses(event.form, event.way, domain.id, event.reason))
            return
        origin = Origin(event.way)
        numbers = self._make_pages(self._finder.find_targets(event.wire, (event.wire,)), event.at, origin)
        self._depths.reach_unlinked(numbers, origin, self._run)
        self._depths.let_in(numbers)
        for number in numbers:
            self._store.changes.guesses[number] = Guess(event.form, event.way)
            if origin is not Origin.SITEMAP:
                self._open.add(number)

    @contextmanager
    def counting_finds(self, page: MapPage, links: Targets) -> Iterator[None]:
        """Around the making of a page's links: counts those that the run had not seen, if the page is a guess."""
        if page.id not in self._open:
            yield
            return
        index = self._store.index
        before = len(index)
        unseen = sum(index.standings[number] == UNSEEN for number in links.numbers)
        yield
        self._store.changes.guess_finds[page.id] = unseen + len(index) - before
        self._open.discard(page.id)
