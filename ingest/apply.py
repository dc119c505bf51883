"""Results in, changes to the map out. A function of (config, results): no clock, no network, no chance.

`apply_batch` first loads the rows of the pages that the batch visits, then applies one result after the other, with all
consequences (a shorter path found late, a held result that now counts, a loop of redirects that closes), and leaves
the changes in `store.changes` for one commit. Pages go by their numbers, and the page index has all that a link needs;
rows are loaded only of pages that change more than their depths.

A result counts only while the rules want its page visited (`page_state.is_open`). In a live crawl that is always so,
because no other page is released. Replayed in another order or under other rules, a result may come before the path to
its page is known, or there may be no such path: then it is held, and applied when the page opens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise, zip_longest
from typing import NamedTuple

from crawler.database.format import LINK_FOLLOWED, LINK_NOT_FOLLOWED, LINK_REDIRECT
from crawler.model.link_context import LinkContext, merged
from crawler.model.origins import Origin
from crawler.model.page_claims import cut_key, links_within, longest_key
from crawler.model.pagination import number_in
from crawler.model.records import (
    UNSET,
    DomainEvent,
    FamilyEvent,
    GuessEvent,
    OrderEvent,
    PageResult,
    Result,
    RobotsResult,
    RunEvent,
    SitemapResult,
)
from crawler.model.settings import Config
from crawler.model.states import PageState
from crawler.model.urls import Link, LinkResolver, hash64
from crawler.rules.page_rules import PageRules
from crawler.rules.traps import family_of, shape_error
from ingest.deciding import StateDecider
from ingest.domain_events import DomainUpdater
from ingest.entering import PageEntries
from ingest.guesses import GuessUpdater
from ingest.held import HeldResults
from ingest.links import LinkFinder, NewTarget, Targets
from ingest.memory.changes import Changes, NextPage
from ingest.memory.map_rows import MapPage
from ingest.memory.page_index import UNSEEN, picked, standing_of
from ingest.rules.page_state import LISTED_AS
from ingest.sitemaps import SitemapUpdater
from ingest.spread import DepthSpread
from ingest.writing.store import Store

Event = RobotsResult | SitemapResult | DomainEvent | FamilyEvent | GuessEvent | OrderEvent | RunEvent

_REOPENED_AT_ONCE = 20_000  # pages
_REMEMBERED = 160_000  # addresses of links; some 30 MB
_FIRST_SEEDS = 250  # of a run: committed by themselves, so that fetchers have work while the others are entered


def _begins_run(result: Result) -> bool:
    return isinstance(result, RunEvent) and result.event == "started"


class _Links(NamedTuple):
    """The links that a visit found. `confirms`: an earlier run, whose visit found the same."""

    targets: Targets
    print: int = 0
    confirms: int | None = None
    is_redirect: bool = False


class MapUpdater:
    """Applies results to a store. `run` is the run whose results are being applied.

    `before_run` is called when all of the run before is committed, and nothing of the next one is.
    """

    def __init__(self, config: Config, store: Store, before_run: Callable[[int], None] = lambda run: None) -> None:
        self.config = config
        self.store = store
        self._before_run = before_run
        self.run = 0
        self.duplicates = 0  # results that had been applied already
        self.before_commit: Callable[[int], None] = lambda run: None  # for logs that go with the commit
        self.on_first_seeds: Callable[[], None] = lambda: None  # the scheduler can release them
        self._index = store.index
        self._distances = store.distances
        self._longest = longest_key(config.traps.max_url_length)
        resolver = LinkResolver(config.crawler.tracking_parameters, self._longest)
        self._finder = LinkFinder(resolver, store.index, _REMEMBERED)
        self._rules = PageRules(config, store.classifier)
        self._decider = StateDecider(config, store)
        self._domains = DomainUpdater(config, store)
        self._held = HeldResults(store)
        self._entries = PageEntries(config, store, self._decider)
        self._depths = DepthSpread(store, self._decider, self._held, self._entries, self._release_held)
        self._sitemaps = SitemapUpdater(config, store, self._finder, self._depths, self._numbers)
        self._guesses = GuessUpdater(config, store, self._finder, self._depths, self._numbers)
        # Of the batch, by position: the links that a visit found, and the page that was visited.
        self._found: dict[int, _Links] = {}
        self._visited: dict[int, Targets] = {}
        run, _ = store.last_run()
        self._seeds_due = store.seeds_due() if run else None  # since when; this process's predecessor was killed then
        if run:
            with store.errors():
                self._enter_run(run)

    # -- a batch -------------------------------------------------------------------------------------

    def apply_batch(self, batch: Sequence[tuple[Result, bytes]]) -> None:
        """Apply these results (each with its line); the changes wait in the store for `commit`. Raises StoreError."""
        with self.store.errors():
            is_about_pages = not all(isinstance(result, RunEvent) and result.event != "started" for result, _ in batch)
            if is_about_pages or self._seeds_due is not None:
                self.store.fill_index()  # other run events concern no page, and the scheduler waits for them at a start
            if self._seeds_due is not None:
                self._enter_seeds(self._seeds(), self._seeds_due)
            # A run that begins unloads all rows: those that its first results need can only be listed then.
            starts = [place + 1 for place, (result, _) in enumerate(batch) if _begins_run(result)]
            for start, end in pairwise([0, *starts, len(batch)]):
                self._apply_part(batch[start:end])
            # Once for the whole batch: a page that comes nearer several times is carried on from once.
            self._depths.spread(self.run)
            self._enter_domains()
            self._finder.end_batch()
            self._entries.end_batch()

    def _apply_part(self, part: Sequence[tuple[Result, bytes]]) -> None:
        self._load_rows(part)
        for position, (result, line) in enumerate(part):
            self.store.changes.latest = max(self.store.changes.latest, result.at)
            if isinstance(result, PageResult):
                self._apply_page_result(result, line, position)
            else:
                self._apply_event(result, line)
        self._found.clear()
        self._visited.clear()

    def commit(self) -> Changes:
        """Write the batch and return its changes (the feed is made of them). Raises StoreError, OSError."""
        self.before_commit(self.run)
        return self.store.commit(self.run)

    def _load_rows(self, batch: Sequence[tuple[Result, bytes]]) -> None:
        """Find the links of the batch, and load the pages and domains that will change, in lists."""
        visits = [(position, result) for position, (result, _) in enumerate(batch) if isinstance(result, PageResult)]
        for position, result in visits:
            self._visited[position] = self._visited_page(result)
        self.store.pages({number for visited in self._visited.values() for number in visited.numbers})
        standings = self._index.standings
        domains: set[str] = set()
        unseen: set[int] = set()
        for position, result in visits:
            numbers = self._visited[position].numbers
            found = self._found[position] = self._find_links(result, self.store.page(numbers[0]) if numbers else None)
            targets = found.targets
            domains.update([new.link.domain for new in targets.new])
            if self._index.has_unseen and UNSEEN in picked(standings, targets.numbers):
                unseen.update(targets.numbers)
        self.store.load_domains(domains)
        self.store.pages(self._entries.load(unseen))

    def _find_links(self, result: PageResult, page: MapPage | None = None) -> _Links:
        """The targets of a visit: one page by a redirect, or else all that the page links to."""
        if result.redirect:
            targets = self._finder.find_targets(result.wire, (result.redirect,))
            if targets.numbers or targets.new:
                return _Links(targets, is_redirect=True)
        base = self._base_of(result)
        # Results of older programs may claim more than a page can.
        hrefs = result.hrefs[: links_within(base, result.hrefs)]
        print_ = self._finder.print_of(base, hrefs)
        before = page.stored_visited_run if page is not None and page.links_print == print_ else None
        if page is not None and before is not None and before == page.visited_run != result.run:
            _, numbers = self.store.out_links(page.id, before) if hrefs else (0, [])
            return _Links(Targets(numbers, []), print_, before)
        return _Links(self._finder.find_targets(base, hrefs), print_)

    def _base_of(self, result: PageResult) -> str:
        return result.base if result.base and len(result.base) <= self._longest else result.wire

    def _visited_page(self, result: PageResult) -> Targets:
        """The page that was visited, under these rules: results may be older than the tracking parameters."""
        found = self._finder.find_targets(result.wire, (result.wire,))
        if found.numbers or found.new:
            return found
        key = result.key if len(result.key) <= self._longest else cut_key(result.key, hash64(result.key))
        return Targets([], [NewTarget(Link(key, result.wire, result.domain, hash64(key)))])

    # -- runs and events -----------------------------------------------------------------------------

    def _enter_run(self, run: int) -> None:
        self.run = run
        self._held.enter_run(run)
        self._decider.enter_run(run)
        self._entries.enter_run(run)
        self._domains.enter_run(run)
        self._sitemaps.enter_run(run)
        self._guesses.enter_run(run)

    def _enter_domains(self) -> None:
        self._sitemaps.enter_domains(lambda domain: not self._decider.is_host_closed(domain.name))

    def _begin_run(self, run: int, at: str, config_hash: str) -> None:
        """The first record of a run: its row, clear tables, its seeds.

        The first seeds are committed with the row, which says that others are due: a run without them is not over.
        """
        self.store.changes.ends_run = True
        self._commit_part()  # changes of the run before are written before its tables are cleared
        self._before_run(run)
        self.store.begin_run(run, at, config_hash)
        self._enter_run(run)
        seeds = self._seeds()
        if len(seeds) > _FIRST_SEEDS:
            self.store.note_seeds_due(at)
            self._make_seeds(seeds[:_FIRST_SEEDS], at)
            self._commit_part()
            self.on_first_seeds()
        self._enter_seeds(seeds, at)

    def _commit_part(self) -> None:
        self._depths.spread(self.run)
        self._enter_domains()
        self.commit()

    def _seeds(self) -> list[str]:
        return [seed for entry in self.config.quality for seed in entry.seeds]

    def _enter_seeds(self, seeds: Sequence[str], at: str) -> None:
        """All seeds of the run, in the next commit; some may have been made pages before."""
        self.store.note_seeds(self._make_seeds(seeds, at))
        self._seeds_due = None
        self._depths.spread(self.run)

    def _make_seeds(self, seeds: Sequence[str], at: str) -> list[int]:
        """The pages of these seeds, from which the run starts."""
        found = [self._finder.find_targets(seed, (seed,)) for seed in seeds]
        self.store.pages({number for targets in found for number in targets.numbers})  # in one list, not one by one
        numbers = list(dict.fromkeys([number for each in found for number in self._numbers(each, at, Origin.SEED)]))
        for page in self.store.pages(numbers):
            self.store.set_origin(page, Origin.SEED)
        self._depths.reach_all(numbers, self._distances.start)
        return numbers

    def _is_current(self, run: int, at: str) -> bool:
        """Does a record of this run count? One of a later run begins that run; one of an earlier run is too late."""
        if run > self.run:
            self._begin_run(run, at, "")
        return run == self.run

    def _apply_event(self, event: Event, line: bytes) -> None:
        number = hash64(line.decode("utf-8", "surrogateescape"))
        if number in self.store.changes.events or self.store.is_event_applied(number):
            self.duplicates += 1
            return
        if isinstance(event, RunEvent):
            self._apply_run_event(event)
        elif self._is_current(event.run, event.at):
            if isinstance(event, RobotsResult):
                self._domains.apply_robots(event, self.run)
            elif isinstance(event, SitemapResult):
                self._apply_sitemap(event)
            elif isinstance(event, FamilyEvent):
                self._decider.close_family(event)
            elif isinstance(event, GuessEvent):
                self._guesses.apply(event)
            elif isinstance(event, OrderEvent):
                self._apply_order(event)
            elif event.event == "reopened":
                self._reopen_domain(event)
            else:
                self._domains.apply_event(event, self.run)
        self.store.changes.events.append(number)

    def _apply_sitemap(self, result: SitemapResult) -> None:
        self._domains.count_requests(result.ledger, self.run)
        self._sitemaps.apply(result)
        if result.closes is not None:
            self._domains.close(self.store.domain(result.domain, self.run), result.closes)

    def _reopen_domain(self, event: DomainEvent) -> None:
        """A person had a domain reset: pages that its closure ended wait again."""
        domain = self._domains.reopen(event, self.run)
        ended = self.store.pages_ended_by_closure(domain, self.run)
        for start in range(0, len(ended), _REOPENED_AT_ONCE):
            if start:
                self.commit()  # a domain may have more pages than memory; a crash in between repeats the event
            for page in self.store.pages(ended[start : start + _REOPENED_AT_ONCE]):
                self._decider.decide(page)
        for page in list(self.store.loaded.values()):
            if page.domain is domain and page.visited is None and page.seen_run == self.run:
                self._decider.decide(page)

    def _apply_order(self, event: OrderEvent) -> None:
        """Pages that a person asks for. Inside a quality entry they have depth 0; elsewhere only a link leads there.

        The pages of a reset are named for people alone: its effect is in events of their domains.
        """
        self.store.changes.orders.append(event)
        if event.action == "reset":
            return
        origin = Origin.SEED if event.action == "seed" else Origin.ORDERED
        for wire in event.wires:
            numbers = self._numbers(self._finder.find_targets(wire, (wire,)), event.at, Origin.ORDERED)
            self._depths.reach_unlinked(numbers, Origin.ORDERED, self.run)
            if origin is Origin.SEED:
                for page in self.store.pages(numbers):
                    if page.reach:
                        self.store.set_origin(page, origin)

    def _apply_run_event(self, event: RunEvent) -> None:
        if event.event == "started" and event.run > self.run:
            self._begin_run(event.run, event.at, event.config_hash)
        elif event.event == "finished":
            self.store.changes.ends_run = True
        self.store.changes.run_events.append(event)

    # -- pages ---------------------------------------------------------------------------------------

    def _numbers(
        self, targets: Targets, at: str, origin: Origin = Origin.LINKED, referrer: int | None = None
    ) -> list[int]:
        """The numbers of these pages, seen in this run; pages that are not known are made, with this origin."""
        numbers, new = targets
        if new:
            for target in new:
                if not target.number:
                    target.number = self._page_at(target.link, at, origin)
                    if referrer is not None:
                        self.store.changes.referrers.setdefault(target.number, referrer)
            numbers = list(dict.fromkeys([*numbers, *[target.number for target in new]]))
        standings = self._index.standings
        if self._index.has_unseen and UNSEEN in picked(standings, numbers):
            unseen = [number for number in numbers if standings[number] == UNSEEN]
            for number in self._entries.enter(unseen):
                self._see_again(number)
            if referrer is not None:
                self.store.changes.referrers |= dict.fromkeys(unseen, referrer)  # nobody has led there before
        return numbers

    def _page_at(self, link: Link, at: str, origin: Origin) -> int:
        """The page that a link leads to; a new one, if there is none."""
        number, hash_ = self._index.find(link)
        if number:
            return number
        page = self.store.new_page(link, hash_, self.store.domain(link.domain, self.run), self.run, at, origin)
        if page.domain.is_listed:
            page.state = LISTED_AS[page.domain.klass]
            self._index.standings[page.id] = standing_of(page.state, False)
        elif self._rules.has_scope and (error := self._rules.scope_error(page.key, page.domain.name)) is not None:
            page.trap = page.error = error
        else:  # it stays `discovered` until a followed path leads to it
            page.trap = shape_error(page.key, self.config.traps)
            family = family_of(page.key, self.config.traps)
            if family is not None:
                page.family = hash64(f"{page.domain.name}\n{family.name}")
            if self._rules.has_caps:
                self.store.changes.cap_pages += [(unit.number, page.id) for unit in self._rules.caps_of(page.key)]
        if self._rules.has_types:
            page.page_type = self._rules.type_of(page.key) or ""
        self._guesses.note_page(page)
        return page.id

    def _see_again(self, number: int) -> None:
        """A page that is known from an earlier run is seen in this one."""
        page = self.store.page(number)
        page.enter_run(self.run)
        self._index.reaches[number] = 0
        self.store.domain(page.domain.name, self.run)
        self._decider.decide_anew(page)
        self._index.standings[number] = standing_of(page.state, False, page.origin.is_linked)
        self._guesses.note_page(page)

    def _apply_page_result(self, result: PageResult, line: bytes, position: int) -> None:
        if not self._is_current(result.run, result.at):
            return
        visited = self._visited[position]
        number = visited.numbers[0] if visited.numbers else self._index.find(visited.new[0].link)[0]
        page = self.store.page(number) if number else None
        hash_ = hash64(page.key) if page is not None else visited.new[0].link.hash
        if page is not None and page.seen_run < self.run:
            page = None  # known from an earlier run; no path to it has been seen in this one
        if hash_ in self._held.hashes or (page is not None and page.visited is not None):
            self.duplicates += 1
        elif page is None or not self._decider.is_open(page):
            self._held.hold(hash_, self.run, line)
        else:
            self._apply_visit(page, result, self._found[position])

    def _release_held(self, page: MapPage) -> None:
        result = self._held.release(hash64(page.key))
        if result is not None:
            self._apply_visit(page, result, self._find_links(result))

    def _apply_visit(self, page: MapPage, result: PageResult, found: _Links) -> None:
        """The visit of a page that is open: its state, its links, and the pages that they open."""
        changes = self.store.changes
        self._domains.count_requests(result.ledger, self.run)
        before = self.store.linked_before(page) if found.confirms is None else set()
        page.visit = result
        page.links_print = found.print
        page.visited_run = self.run
        page.visited = PageState(result.state)
        page.visit_error = result.error
        is_barred = result.nofollow and self.config.crawler.obey_nofollow
        is_barred |= result.is_rejected and not self.config.validation.follow_rejected
        kind = LINK_NOT_FOLLOWED if is_barred else LINK_FOLLOWED
        with self._guesses.counting_finds(page, found.targets):
            targets = self._numbers(found.targets, result.at, referrer=page.id if self.store.keeps_referrers else None)
        for number in self._index.unlinked_among(targets):
            if number != page.id:  # a page that links to itself is no better known for it
                self.store.set_origin(self.store.page(number), Origin.LINKED)
                self._guesses.note_link(self.store.page(number))
        if found.is_redirect and targets[0] != page.id:
            kind = LINK_REDIRECT
            page.redirect_to = targets[0]
            changes.redirects.setdefault(targets[0], set()).add(page.id)
        if result.next_page or before or found.confirms is not None:
            changes.next_pages[page.id] = self._next_page(result)
        changes.links[page.id] = (kind, targets)
        if found.confirms is not None:
            changes.confirmed[page.id] = found.confirms
        else:
            self._count_links(page, targets, before)
            if before:
                changes.relinked.add(page.id)
        if result.texts is not UNSET and not found.is_redirect:
            changes.link_contexts[page.id] = self._contexts_of(result, result.texts)
        changes.done.append(page)
        self._decider.decide(page)
        if kind != LINK_NOT_FOLLOWED:
            self._depths.reach_all(targets, self._distances.arrival(page.reach, kind == LINK_REDIRECT))
        if page.redirect_to is not None:
            self._decider.judge_redirects(page)
        if result.closes is not None:
            self._domains.close(page.domain, result.closes)

    def _contexts_of(self, result: PageResult, texts: Sequence[str]) -> dict[int, LinkContext]:
        """Target → what the page says about it. Several hrefs may lead to one page."""
        found: dict[int, list[LinkContext]] = {}
        base, rels = self._base_of(result), () if result.rels is UNSET else result.rels
        numbers = self._finder.numbers_of(base, result.hrefs[: links_within(base, result.hrefs)])
        for number, text, rel in zip_longest(numbers, texts[: len(numbers)], rels[: len(numbers)], fillvalue=""):
            if number:
                found.setdefault(int(number), []).append(LinkContext(text, rel))
        together = {number: merged(contexts) for number, contexts in found.items()}
        return {number: context for number, context in together.items() if any(context)}

    def _next_page(self, result: PageResult) -> NextPage | None:
        """The label of a visit: the next page of its list, which is one of its links."""
        if not result.next_page:
            return None
        found = self._finder.find_targets(result.wire, (result.next_page,))
        number = next(iter(self._numbers(found, result.at)), None)
        if number is None:
            return None
        member = number_in(self.store.page(number).key)
        form, place = (member.form, member.number) if member is not None else (None, 0)
        return NextPage(number, result.next_by, self._index.domains[number], form, place)

    def _count_links(self, page: MapPage, targets: list[int], before: set[int]) -> None:
        """Note the domains of links that are new, and new references to listed pages."""
        changes, index = self.store.changes, self._index
        fresh = [number for number in targets if number not in before] if before else targets
        changes.visits.append((page.domain.id, page.id, picked(index.domains, fresh)))
        standings = picked(index.standings, fresh)
        for listed, found in changes.references.items():
            if listed in standings:
                found[page.id] = [n for n, standing in zip(fresh, standings, strict=True) if standing == listed]
