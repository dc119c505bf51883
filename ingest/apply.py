"""Results in, changes to the map out. A function of (config, results): no clock, no network, no chance.

`take` is given a batch of results. It first finds out which pages the batch speaks of, then applies one result after
the other, following every consequence (a shorter way found late, a held result that now counts, a loop of redirects
that closes), and leaves the sum in `store.changes` for one commit. Pages go by their numbers, of which the register
says what a link needs to know; only of those that change more than their depths is the row brought into memory.

A result counts only while the rules want its page visited (`plan.is_open`). In a live crawl that is always so, for
nothing else is released. Replayed in another order or under other rules, a result may come before the way to its
page is known, or there may be no such way: then it is held, and applied at the moment the page opens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

from crawler.model.records import (
    Closure,
    DomainEvent,
    Exchange,
    FamilyEvent,
    PageResult,
    Result,
    RobotsResult,
    RunEvent,
    parse,
)
from crawler.model.settings import Config
from crawler.model.states import PageState, check_transition
from crawler.model.urls import Link, LinkResolver, hash64
from crawler.pace.decisions import is_in_force
from crawler.rules.traps import family_of, shape_error
from ingest.links import Lead, Pathfinder, Ways
from ingest.map_rows import Domain, Page
from ingest.page_index import OTHER, UNSEEN, VISITED, picked, standing_of
from ingest.rules.depth import NOWHERE
from ingest.rules.page_state import (
    LISTED_AS,
    MAX_REDIRECTS,
    is_family_in_force,
    is_open,
    redirect_error,
    settle,
    stronger,
)
from ingest.sqlite.change_writer import Changes
from ingest.sqlite.schema import LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT, READING_INDEXES
from ingest.sqlite.store import Statement, Store

_REMEMBERED = 160_000  # addresses of links; some 30 MB
_WITHOUT_READING_INDEXES: list[Statement] = [(f"DROP INDEX IF EXISTS {name}", ()) for name in READING_INDEXES]


class Mapper:
    """Applies results to a store. `run` is the run whose results are being applied."""

    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        self._register = store.register
        self._distances = store.distances
        self._pathfinder = Pathfinder(LinkResolver(config.crawler.tracking_parameters), store.register, _REMEMBERED)
        self.run = 0
        self.duplicates = 0  # results that had been applied already
        self.stale = 0  # results of a run that is over
        self._max_depth = config.crawler.max_depth
        self._spreading: dict[int, None] = {}  # visited pages whose depths changed, in the order they did
        self._opening: deque[Page] = deque()  # pages whose held result now counts
        self._held: set[int] = set()
        self._families: dict[int, tuple[str, frozenset[str]]] = {}
        self._ways: dict[int, tuple[Ways, bool]] = {}  # of the batch, by position: where a visit leads, by redirect?
        self._asked: dict[int, Ways] = {}  # likewise: the page that was visited
        self._sql: list[Statement] = []  # on runs, for the next commit
        run, _ = store.last_run()
        if run:
            self._enter_run(run)

    # -- a batch -------------------------------------------------------------------------------------

    def take(self, batch: Sequence[tuple[Result, bytes]]) -> None:
        """Apply these results (each with its line); the changes wait in the store for `commit`."""
        if not all(isinstance(result, RunEvent) and result.event != "started" for result, _ in batch):
            self.store.load()  # the others speak of no page, and the scheduler waits for them at a start
        self._bring_into_memory(batch)
        for position, (result, line) in enumerate(batch):
            self.store.changes.latest = max(self.store.changes.latest, result.at)
            if isinstance(result, PageResult):
                self._take_page(result, line, position)
            else:
                self._take_event(result, line)
        # Once for the whole batch: a page that is reached again and again on the way is carried on from once.
        self._spread()
        self._ways.clear()
        self._asked.clear()
        self._pathfinder.settle()

    def commit(self) -> Changes:
        """Write the batch and return what it changed (the feed is made of that)."""
        sql, self._sql = self._sql, []
        return self.store.commit(self.run, sql)

    def _bring_into_memory(self, batch: Sequence[tuple[Result, bytes]]) -> None:
        """Find the links of the batch, and look up the pages and domains that will change, at once."""
        standings = self._register.standings
        domains: set[str] = set()
        wanted: set[int] = set()
        for position, (result, _) in enumerate(batch):
            if not isinstance(result, PageResult):
                continue
            asked = self._asked[position] = self._asked_for(result)
            ways, _ = self._ways[position] = self._ways_of(result)
            wanted.update(asked.numbers)
            domains.update([lead.link.domain for lead in ways.leads])
            if self._register.has_unseen and UNSEEN in picked(standings, ways.numbers):
                wanted.update([number for number in ways.numbers if standings[number] == UNSEEN])
        self.store.fetch_domains(domains)
        self.store.pages(wanted)

    def _ways_of(self, result: PageResult) -> tuple[Ways, bool]:
        """Where a visit leads, and whether by a redirect: then it is one page, or else all that the page links to."""
        if result.redirect:
            ways = self._pathfinder.follow(result.wire, (result.redirect,))
            if ways.numbers or ways.leads:
                return ways, True
        return self._pathfinder.follow(result.base or result.wire, result.hrefs), False

    def _asked_for(self, result: PageResult) -> Ways:
        """What was visited, under these rules: results may be older than the tracking parameters."""
        ways = self._pathfinder.follow(result.wire, (result.wire,))
        if ways.numbers or ways.leads:
            return ways
        return Ways([], [Lead(Link(result.key, result.wire, result.domain, hash64(result.key)))])

    # -- runs ----------------------------------------------------------------------------------------

    def _enter_run(self, run: int) -> None:
        self.run = run
        self._held = self.store.held_hashes(run)
        self._families = self.store.closed_families(run)

    def _begin_run(self, run: int, at: str, config_hash: str) -> None:
        """The first sign of a run: its row, a clear table, its seeds. In one commit: a run without seeds is over."""
        self._spread()
        self.store.changes.ends_run = True
        self.commit()  # what the run before left in memory goes out before its tables are cleared
        self.store.do_now(
            [
                (
                    "INSERT INTO runs (id, started_at, config_hash, status) VALUES (?, ?, ?, 'running')",
                    (run, at, config_hash),
                ),
                ("DELETE FROM frontier", ()),
                ("DELETE FROM held_results WHERE run < ?", (run,)),
                ("DELETE FROM closed_families WHERE run < ?", (run,)),
                *_WITHOUT_READING_INDEXES,
            ]
        )
        self.store.begin_run()
        self._enter_run(run)
        for entry in self.config.quality:
            for seed in entry.seeds:
                self._reach_all(self._numbers(self._pathfinder.follow(seed, (seed,)), at), NOWHERE)
        self._spread()

    def _take_run(self, event: RunEvent) -> None:
        if event.event == "started":
            if event.run > self.run:
                self._begin_run(event.run, event.at, event.config_hash)
            self._sql.append(
                (
                    "UPDATE runs SET started_at = ?, config_hash = ? WHERE id = ?",
                    (event.at, event.config_hash, event.run),
                )
            )
        elif event.event == "finished":
            self._sql.append(
                ("UPDATE runs SET status = 'completed', finished_at = ? WHERE id = ?", (event.at, event.run))
            )
            self.store.changes.ends_run = True
            self._sql += [(sql, ()) for sql in READING_INDEXES.values()]
        elif event.event in ("interrupted", "resumed"):
            status = "interrupted" if event.event == "interrupted" else "running"
            finished = event.at if event.event == "interrupted" else None
            if event.event == "resumed":  # drawn anew under other rules, it may have been complete
                self._sql += _WITHOUT_READING_INDEXES
            self._sql.append(
                (
                    "UPDATE runs SET status = ?, finished_at = ? WHERE id = ? AND status <> 'completed'",
                    (status, finished, event.run),
                )
            )

    def _is_current(self, run: int, at: str) -> bool:
        """Is this record of the run at hand? A record of a later run begins it."""
        if run > self.run:
            self._begin_run(run, at, "")
        if run < self.run:
            self.stale += 1
            return False
        return True

    # -- records without a page ----------------------------------------------------------------------

    def _take_event(self, event: RobotsResult | DomainEvent | FamilyEvent | RunEvent, line: bytes) -> None:
        number = hash64(line.decode("utf-8", "surrogateescape"))
        if number in self.store.changes.events or self.store.is_event_applied(number):
            self.duplicates += 1
            return
        if isinstance(event, RunEvent):
            self._take_run(event)
        elif self._is_current(event.run, event.at):
            if isinstance(event, RobotsResult):
                self._take_robots(event)
            elif isinstance(event, FamilyEvent):
                self._close_family(event)
            else:
                domain = self._domain(event.domain)
                if event.event == "lost-requests":
                    domain.lost_requests += event.count
                    domain.request_count += event.count
                    self._touch_domain(domain)
                if event.closes is not None:
                    self._close_domain(domain, event.closes)
        self.store.changes.events.append(number)

    def _take_robots(self, result: RobotsResult) -> None:
        self._count_requests(result.ledger)
        domain = self._domain(result.domain)
        if domain.robots_at is None or result.at >= domain.robots_at:
            domain.robots_at = result.at
            self.store.changes.robots[domain.id] = result.body
            domain.robots_outcome = result.outcome
            domain.robots_status = result.status
            domain.crawl_delay = result.crawl_delay
        self._touch_domain(domain)

    def _close_domain(self, domain: Domain, closure: Closure) -> None:
        if not is_in_force(closure, self.config):
            return
        reason = stronger(domain.closed, closure.reason)
        if reason != domain.closed:
            if domain.closed is not None:
                self.store.changes.closed_harder.add(domain.id)
            domain.closed = reason
            domain.closed_at_request = closure.request_number
            self._touch_domain(domain)
        self.store.changes.closed_domains[domain.id] = domain

    def _close_family(self, event: FamilyEvent) -> None:
        if not is_family_in_force(event, self.config.traps):
            return
        number = hash64(f"{event.domain}\n{event.family}")
        error, spare = event.error, frozenset(event.spare)
        before = self._families.get(number)
        if before is not None:
            # Closed under several limits, or by a scheduler that was killed before this was taken in. Whichever came
            # first, only what all of them spared is spared: a page that was closed once is not opened again.
            error, spare = min(error, before[0]), spare & before[1]
        self._families[number] = (error, spare)
        closing = (number, event.domain, event.family, error, tuple(sorted(spare)))
        self.store.changes.closed_families.append(closing)

    def _count_requests(self, ledger: Iterable[Exchange]) -> None:
        for entry in ledger:
            domain = self._domain(entry.domain)
            domain.request_count += 1
            self._touch_domain(domain)

    def _domain(self, name: str) -> Domain:
        return self.store.domain(name, self.run)

    def _touch_domain(self, domain: Domain) -> None:
        self.store.changes.domains[domain.id] = domain

    # -- pages ---------------------------------------------------------------------------------------

    def _numbers(self, ways: Ways, at: str) -> list[int]:
        """The pages that these ways lead to, as they stand in this run; those that are not known are made."""
        numbers, leads = ways
        if leads:
            for lead in leads:
                if not lead.number:
                    lead.number = self._page_at(lead.link, at)
            numbers = list(dict.fromkeys([*numbers, *[lead.number for lead in leads]]))
        standings = self._register.standings
        if self._register.has_unseen and UNSEEN in picked(standings, numbers):
            for number in numbers:
                if standings[number] == UNSEEN:
                    self._see_again(number)
        return numbers

    def _page_at(self, link: Link, at: str) -> int:
        """The page that a link leads to; a new one, if there is none."""
        number, hash_ = self._register.place(link)
        if number:
            return number
        page = self.store.new_page(link, hash_, self._domain(link.domain), self.run, at)
        if page.domain.is_listed:
            page.state = LISTED_AS[page.domain.klass]
            self._register.standings[page.id] = standing_of(page.state, False)
        else:  # `discovered`, which it is already, until somebody reaches it
            page.trap = shape_error(page.key, self.config.traps)
            family = family_of(page.key, self.config.traps)
            if family is not None:
                page.family = hash64(f"{page.domain.name}\n{family.name}")
        return page.id

    def _see_again(self, number: int) -> None:
        """A page that is known from an earlier run is seen in this one."""
        page = self.store.page(number)
        page.enter_run(self.run)
        self._domain(page.domain.name)
        self._settle(page, new_run=True)
        self._register.standings[number] = standing_of(page.state, False)

    def _take_page(self, result: PageResult, line: bytes, position: int) -> None:
        if not self._is_current(result.run, result.at):
            return
        asked = self._asked[position]
        number = asked.numbers[0] if asked.numbers else self._register.place(asked.leads[0].link)[0]
        page = self.store.page(number) if number else None
        hash_ = hash64(page.key) if page is not None else asked.leads[0].link.hash
        if page is not None and page.seen_run < self.run:
            page = None  # known from an earlier run; no way to it has been seen in this one
        if hash_ in self._held or (page is not None and page.visited is not None):
            self.duplicates += 1
        elif page is None or not self._is_open(page):
            self._held.add(hash_)
            self.store.changes.held[hash_] = (self.run, line)
        else:
            self._apply(page, result, *self._ways[position])

    def _apply(self, page: Page, result: PageResult, ways: Ways, is_redirect: bool) -> None:
        """The visit of a page that is open: its state, its links, and what they open."""
        changes = self.store.changes
        self._count_requests(result.ledger)
        before = self.store.linked_before(page)
        page.visit = result
        page.visited_run = self.run
        page.visited = PageState(result.state)
        page.visit_error = result.error
        kind = LINK_NOT_FOLLOWED if result.nofollow and self.config.crawler.obey_nofollow else LINK_FOLLOWED
        targets = self._numbers(ways, result.at)
        if is_redirect and targets[0] != page.id:
            kind = LINK_REDIRECT
            page.redirect_to = targets[0]
            changes.redirects.setdefault(targets[0], set()).add(page.id)
        self._count_links(page, targets, before)
        changes.links[page.id] = (kind, targets)
        if before:
            changes.relinked.add(page.id)
        changes.done.append(page)
        self._settle(page)
        if kind != LINK_NOT_FOLLOWED:
            self._reach_all(targets, self._distances.arrival(page.reach, kind == LINK_REDIRECT))
        if page.redirect_to is not None:
            self._judge_redirects(page)
        if result.closes is not None:
            self._close_domain(page.domain, result.closes)

    def _count_links(self, page: Page, targets: list[int], before: set[int]) -> None:
        """Sum up links that are new by domain, and note new references to listed pages."""
        changes, register = self.store.changes, self._register
        fresh = [number for number in targets if number not in before] if before else targets
        changes.visits.append((page.domain.id, page.id, picked(register.domains, fresh)))
        changes.new_links += len(fresh)
        standings = picked(register.standings, fresh)
        for listed, found in changes.references.items():
            if listed in standings:
                found[page.id] = [n for n, standing in zip(fresh, standings, strict=True) if standing == listed]

    # -- consequences --------------------------------------------------------------------------------

    def _reach_all(self, numbers: Sequence[int], arriving: int) -> None:
        """A followed way that brings this reach leads to each of these pages."""
        register, distances = self._register, self._distances
        in_hand, standings, reaches = self.store.in_hand, register.standings, register.reaches
        become: dict[int, int] = {}  # reach number → what the way makes of it
        whole: list[int] = []
        for number in register.news(numbers, arriving):
            before = reaches[number]
            # Of most pages that are nearer now only the depths change: that needs no row.
            if before and standings[number] != OTHER and number not in in_hand:
                after = become.get(before)
                if after is None:
                    after = register.reach_number(distances.merge(register.values[before], arriving))
                    become[before] = after
                if after:
                    self.store.move(number, after)
                    if standings[number] == VISITED:
                        self._spreading[number] = None
                    continue
            whole.append(number)
        for page in self.store.pages(whole):
            # A page that has no way yet gets, with the first one, what lying inside quality entries gives.
            reach = distances.merge(page.reach or page.domain.pin, arriving)
            if reach != page.reach:
                self._reach(page, reach)
        self.store.make_room()

    def _reach(self, page: Page, reach: int) -> None:
        """The page's depths are now these."""
        self.store.set_reach(page, reach)
        nearest = self._distances.nearest(reach)
        if page.domain.is_listed:  # and stays what it is, however near
            page.depth = nearest
            self.store.touch(page)
        elif nearest != page.depth or page.visited is None:
            page.depth = nearest
            self._settle(page)
        else:  # the state hangs on the least depth alone (what is not visited may have been closed behind our back)
            self.store.touch(page)
        if page.visited is not None:
            self._spreading[page.id] = None
        elif self._held and hash64(page.key) in self._held and self._is_open(page):
            self._opening.append(page)

    def _is_open(self, page: Page) -> bool:
        return is_open(page.domain.klass, page.depth, page.trap, self._max_depth)

    def _release_held(self, page: Page) -> None:
        number = hash64(page.key)
        if number not in self._held:
            return
        result = parse(self.store.held_line(number))
        assert isinstance(result, PageResult)
        self._held.discard(number)
        self.store.changes.unheld.append(number)
        self._apply(page, result, *self._ways_of(result))

    def _spread(self) -> None:
        """Carry changed depths on over the recorded links, until nothing changes any more."""
        arrival = self._distances.arrival
        while self._spreading or self._opening:
            if self._opening:
                self._release_held(self._opening.popleft())
                continue
            number = next(iter(self._spreading))
            del self._spreading[number]
            kind, targets = self.store.out_links(number, self.run)
            if kind != LINK_NOT_FOLLOWED:
                self._reach_all(targets, arrival(self.store.reach_of(number), kind == LINK_REDIRECT))

    def _judge_redirects(self, page: Page) -> None:
        """A redirect was recorded: look again at every page whose chain of redirects now leads through it."""
        affected = {page.id: page}
        edge = [page]
        for _ in range(MAX_REDIRECTS):
            sources: set[int] = set()
            for reached in edge:
                sources |= self.store.redirecting_to(reached, self.run)
            edge = [p for p in self.store.pages(sources - affected.keys()) if p.redirect_to is not None]
            if not edge:
                break
            affected.update((p.id, p) for p in edge)
        for reached in affected.values():
            error = self._chain_error(reached)
            if error != reached.redirect_error:
                reached.redirect_error = error
                self._settle(reached)

    def _chain_error(self, page: Page) -> str | None:
        chain = [page.id]
        here = page
        while here.redirect_to is not None and here.visited is not None and len(chain) <= MAX_REDIRECTS + 1:
            if here.redirect_to in chain:
                return redirect_error(chain, True)
            chain.append(here.redirect_to)
            here = self.store.page(here.redirect_to)
        return redirect_error(chain, False)

    def _settle(self, page: Page, *, new_run: bool = False) -> None:
        """Work out the page's state from all that is known of it now."""
        closed_family = self._families.get(page.family) if page.family is not None else None
        family_error = None
        if closed_family is not None and page.key not in closed_family[1]:
            family_error = closed_family[0]
        domain = page.domain
        state, error = settle(
            domain.klass,
            page.depth,
            page.trap,
            page.visited,
            page.visit_error,
            page.redirect_error,
            family_error,
            domain.closed if domain.run == self.run else None,
            self._max_depth,
        )
        if state is not page.state:
            check_transition(page.state, state, new_run=new_run, url=page.key)
            page.state = state
        page.error = error
        self.store.touch(page)
