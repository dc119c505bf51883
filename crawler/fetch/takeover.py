"""Taking over a domain from the fetcher before, which may have died with it.

Its results after the bookmark are read first, so that no visit is made twice whose result is there. Their ledgers are
compared with the domain's gate, so that a request which left without a ledger entry is reported, once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from crawler.fetch.journal import Journal
from crawler.fetch.leased_domain import LeasedDomain
from crawler.model.records import Closure, DomainEvent, PageResult, RobotsResult, SitemapResult, changed, dump
from crawler.model.settings import Config
from crawler.pace.decisions import is_in_force
from crawler.pace.gate_record import GateRecord
from crawler.rules.budgets import Budgets
from crawler.visit.robots import policy_of
from crawler.workspace.clock import now_text
from crawler.workspace.door import ResultLogs, Workspace
from crawler.workspace.log import Cursor, Line
from crawler.workspace.reading import read_records

KEEP_INDEXES = 10.0  # seconds: a fetcher that dies leaves many domains, which are claimed one after the other


class Takeover:
    """Completes the work of a domain's fetcher before. For the main thread, which has just claimed the domain.

    Invariants:
    - a request that the gate counts as sent is in a ledger or reported as lost, and never both;
    - a request of this domain that is in a ledger is counted by the gate, so that its number is not given again;
    - a report is first noted in the gate (`unreported`), with the mark in our result log after which it will be.
    """

    def __init__(
        self, workspace: Workspace, config: Config, journal: Journal, sync_store: Callable[[], None] | None = None
    ) -> None:
        self._workspace = workspace
        self._config = config
        self._budgets = Budgets(config)
        self._journal = journal
        self._sync_store = sync_store
        self._indexes: dict[str, ResultIndex] = {}
        self._indexed_at = 0.0

    def take_over(self, domain: LeasedDomain) -> bool:
        """Skip jobs that are done, count requests that were sent. False: the gate is busy just now."""
        gate, bookmark = domain.pace.gate, domain.progress.bookmark
        before = gate.read()
        counted = Cursor(before.mark.segment, before.mark.offset)
        marker = f"fetcher-{before.mark.writer:02d}"
        left = LeftResults()
        if bookmark.holder is not None:
            start = min(bookmark.results, counted) if bookmark.holder == marker else bookmark.results
            left = self._index(bookmark.holder).since(domain.name, start)
            domain.skip_done_jobs(left.done)
        is_reported = before.unreported and before.run in self._index(marker).since(domain.name, counted).reported
        lost = 0

        def adjust(record: GateRecord) -> GateRecord:
            nonlocal lost
            found = sum(
                requests
                for run, end, requests in left.ledgered
                if run == record.run and (bookmark.holder != marker or end > counted)
            )
            # A gate may have lost its last writes (a power cut, an engine that crashed); the log has not.
            sent = max(record.sent, left.numbers.get(record.run, 0))
            lost = max(0, sent - record.ledgered - found) + (0 if is_reported else record.unreported)
            closures = (record.closes, left.closes.get(record.run))
            budget = self._budgets.of(domain.name)
            return replace(
                record,
                sent=sent,
                ledgered=sent,
                # It may have died between recording a robots.txt and keeping it in the cache.
                crawl_delay_ms=max(record.crawl_delay_ms, left.crawl_delay_ms),
                closes=next((each for each in closures if each and is_in_force(each, self._config, budget)), None),
                unreported=lost,
                mark=self._journal.mark(),
            )

        if not gate.update(before.run, adjust):
            return False
        if lost:
            # A fetcher that finds `unreported` in the gate looks for this line after the mark: so it is reported once.
            self._journal.append(dump(DomainEvent(before.run, domain.name, now_text(), "lost-requests", lost)))
            if not gate.update(before.run, lambda record: replace(record, unreported=0)):
                return False
        domain.pace.restore()
        return True

    def forget(self, now: float) -> None:
        """Free the indexes, if none was used lately."""
        if self._indexes and now - self._indexed_at > KEEP_INDEXES:
            self._indexes.clear()

    def _index(self, writer: str) -> ResultIndex:
        self._indexed_at = time.monotonic()
        index = self._indexes.get(writer)
        if index is None:
            index = self._indexes[writer] = ResultIndex(self._workspace.results, writer, self._sync_store)
        return index


@dataclass(slots=True)
class LeftResults:
    """The results of one domain in a dead fetcher's log.

    `ledgered`: (run, cursor after the line, requests to the domain in its ledger). `numbers`: the highest number of a
    request in a run. `reported`: runs for which lost requests were reported. `crawl_delay_ms`: the longest that a
    recorded robots.txt asks for.
    """

    done: set[tuple[int, str]] = field(default_factory=set)
    closes: dict[int, Closure] = field(default_factory=dict)
    ledgered: list[tuple[int, Cursor, int]] = field(default_factory=list)
    numbers: dict[int, int] = field(default_factory=dict)
    reported: set[int] = field(default_factory=set)
    crawl_delay_ms: int = 0
    segments: set[int] = field(default_factory=set)


_Line = PageResult | RobotsResult | SitemapResult | DomainEvent


class ResultIndex:
    """One writer's results after a cursor, by domain. Reads each line once, however many domains ask."""

    def __init__(self, results: ResultLogs, writer: str, sync_store: Callable[[], None] | None = None) -> None:
        self._results = results
        self._sync_store = sync_store
        self._writer = writer
        self._start: Cursor | None = None
        self._end = Cursor()
        self._synced: Cursor | None = None  # the store was synced when everything before this was read
        self._lines: dict[str, list[tuple[Cursor, _Line, int, int]]] = {}

    def since(self, domain: str, cursor: Cursor) -> LeftResults:
        """The domain's results after `cursor`; they are durable when this returns."""
        if self._start is None:
            self._start = self._end = cursor
        elif cursor < self._start:
            self._add(cursor, self._start)
            self._start = cursor
        self._end = self._add(self._end, None)
        left = LeftResults()
        for end, result, requests, highest in self._lines.get(domain, ()):
            if end <= cursor:
                continue
            left.segments.add(end.segment)
            if isinstance(result, DomainEvent):
                if result.event == "lost-requests":
                    left.reported.add(result.run)
                elif result.closes is not None:
                    left.closes[result.run] = result.closes
                continue
            left.ledgered.append((result.run, end, requests))
            left.numbers[result.run] = max(highest, left.numbers.get(result.run, 0))
            if isinstance(result, RobotsResult):
                left.crawl_delay_ms = max(left.crawl_delay_ms, policy_of(result).crawl_delay_ms)
            else:
                if isinstance(result, PageResult) or result.is_last:
                    left.done.add((result.run, result.key))
                if result.closes is not None:
                    left.closes[result.run] = result.closes
        if left.segments and self._sync_store is not None and self._synced != self._end:
            self._synced = self._end
            self._sync_store()  # the blobs that these results name come first, and those of all other domains with them
        self._results.make_durable(self._writer, left.segments)
        return left

    def _add(self, start: Cursor, stop: Cursor | None) -> Cursor:
        reader = self._results.reader(self._writer, start, is_live_only=True)
        try:
            records: Iterator[tuple[_Line, Line]] = read_records(
                reader, PageResult, RobotsResult, SitemapResult, DomainEvent
            )
            for result, line in records:
                end = line.end
                if stop is not None and end > stop:
                    break
                # Requests to other domains were counted at their own gates when they were made.
                ledger = () if isinstance(result, DomainEvent) else result.ledger
                counted = [entry.number for entry in ledger if entry.domain == result.domain and entry.is_counted]
                kept = (end, _slim(result), len(counted), max(counted, default=0))
                self._lines.setdefault(result.domain, []).append(kept)
            return reader.cursor
        finally:
            reader.close()


def _slim(result: _Line) -> _Line:
    """The result without its links, to keep in memory."""
    if isinstance(result, DomainEvent):
        return result
    if isinstance(result, RobotsResult):
        delay = result.crawl_delay
        return RobotsResult(result.run, result.domain, result.host, result.at, result.outcome, crawl_delay=delay)
    if isinstance(result, SitemapResult):
        return changed(result, urls=(), dates=(), sitemaps=(), ledger=())
    return PageResult(result.run, result.key, "", result.domain, result.at, result.state, closes=result.closes)
