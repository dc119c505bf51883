"""Everything that a batch did, for one commit."""

from __future__ import annotations

from typing import NamedTuple

from crawler.model.link_context import LinkContext
from crawler.model.records import DomainEvent, Exchange, OrderEvent, RunEvent
from crawler.workspace.log import Cursor, Damage
from ingest.memory.map_rows import MapDomain, MapPage, MapSitemap
from ingest.memory.page_index import BLACKLISTED, STUBBED

Visit = tuple[int, int, tuple[int, ...]]  # (domain, page, domain of each link that is new)


class ClosedFamily(NamedTuple):
    """A family of similar URLs whose visit limit is reached. The pages in `spare` were released before."""

    number: int
    domain: str
    family: str
    error: str
    spare: tuple[str, ...]


class NextPage(NamedTuple):
    """The next page of a list. `form` is None where its address has no number that can be read."""

    page: int
    evidence: str
    domain: int
    form: str | None = None
    number: int = 0


class ListPage(NamedTuple):
    """A page of a list over several pages."""

    form: str
    number: int
    domain: int


class ArchivePage(NamedTuple):
    """An archive that the address of a linked page shows. `page` is its number; 0: it is not known."""

    form: str
    url: str
    domain: int
    page: int


class Guess(NamedTuple):
    """A page that was tried without a link."""

    form: str
    way: str


class EndedGuesses(NamedTuple):
    """No more pages of this form are tried in this run."""

    form: str
    way: str
    domain: int
    reason: str


class Reopening(NamedTuple):
    """A domain that was reset in this run, or is closed for two reasons."""

    request: int = -1  # a 429 to this request, or an earlier one, counts no longer
    lasting: str | None = None  # the reason that a stronger one hides, and that a reset leaves


class Changes:
    """The work of a batch, beside the pages and domains themselves. Every commit begins a new one."""

    def __init__(self) -> None:
        self.new_pages: list[MapPage] = []
        self.pages: dict[int, MapPage] = {}  # changed ones that are in the database already
        self.domains: dict[int, MapDomain] = {}
        self.moves: dict[int, int] = {}  # pages whose depths alone changed → number of the reach they are stored with
        # Pages that entered run `entered_run` without their rows → number of the reach they are stored with.
        self.entered: dict[int, int] = {}
        self.entered_run = 0
        self.moved_up: dict[int, int] = {}  # domain → least depth among its waiting pages that moved
        self.closed_pages: list[int] = []  # pages that closures ended; known when the closures are written
        self.links: dict[int, tuple[int, list[int]]] = {}  # from page → (kind, to pages)
        self.link_contexts: dict[int, dict[int, LinkContext]] = {}  # from page → to page → text and rel, if any
        self.relinked: set[int] = set()  # those of them that have had links before
        self.confirmed: dict[int, int] = {}  # those that have the links of an earlier visit, and no others → its run
        self.redirects: dict[int, set[int]] = {}  # target → pages redirected to it
        self.visits: list[Visit] = []
        self.ends_run = False
        # Standing → referrer → listed pages; new references only.
        self.references: dict[int, dict[int, list[int]]] = {BLACKLISTED: {}, STUBBED: {}}
        self.robots: dict[int, str | None] = {}  # domain → the text of its robots.txt
        self.entered_domains: list[MapDomain] = []  # quality domains that the run has just met
        self.sitemaps: dict[int, MapSitemap] = {}
        self.done_sitemaps: list[MapSitemap] = []
        self.sitemap_entries: dict[int, tuple[int, str | None]] = {}  # page → (sitemap, date)
        self.next_pages: dict[int, NextPage | None] = {}  # of every page that was visited; None: none is labelled
        self.list_pages: dict[int, ListPage] = {}
        self.archive_pages: dict[int, ArchivePage] = {}  # hash of the key → …
        self.known_archives: dict[int, int] = {}  # hash of the key → page
        self.guesses: dict[int, Guess] = {}
        self.guess_finds: dict[int, int] = {}  # page that was tried → pages that the run had not seen before
        self.ended_guesses: list[EndedGuesses] = []
        self.closed_domains: dict[int, MapDomain] = {}
        self.reopenings: dict[int, Reopening] = {}  # by domain
        self.closed_harder: set[int] = set()  # those that had been closed already, for a lesser reason
        self.closed_families: list[ClosedFamily] = []
        self.cap_pages: list[tuple[int, int]] = []  # (unit of a cap, page) of new pages
        self.breakers: list[tuple[int, DomainEvent]] = []  # (domain, change of its breaker)
        self.held: dict[int, tuple[int, bytes]] = {}  # hash of the key → (run, line)
        self.unheld: list[int] = []
        self.events: list[int] = []
        self.run_events: list[RunEvent] = []
        self.orders: list[OrderEvent] = []
        self.positions: dict[str, Cursor] = {}
        self.damage: list[tuple[str, Damage]] = []
        self.done: list[MapPage] = []  # pages whose visit was applied
        self.referrers: dict[int, int] = {}  # page → the page whose link made it known in this run, for the logs
        self.exchanges: list[Exchange] = []  # requests that the results name
        self.meta: dict[str, str] = {}  # notes about the map that hold with this commit
        self.latest = ""  # the latest clock among the records
