"""What a fetcher before may have left undone: a lease is free, but its holder may have died with it.

The dead one's results behind the bookmark are read first, so that no visit is made twice whose result is there; and
they are counted against the domain's gate, so that a request which left without a trace is told of, once.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from crawler.fetch.journal import Results
from crawler.fetch.lease import Domain
from crawler.model.records import Closure, DomainEvent, PageResult, RobotsResult, dump
from crawler.model.settings import Config
from crawler.pace.decisions import is_in_force
from crawler.pace.gate_record import GateRecord
from crawler.visit.robots import policy_of
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.clock import now_text
from crawler.workspace.door import ResultLogs, Workspace
from crawler.workspace.log import Cursor, Line
from crawler.workspace.reading import read_records

KEEP_INDEXES = 10.0  # seconds: a fetcher that dies leaves many domains, which are taken one after the other


class Takeover:
    """Brings in order what is behind a domain's bookmark. For the main thread, and for whoever holds the lease.

    Invariants:
    - what the gate counts as sent is in a ledger, or told of as lost, and never both;
    - what is told is first noted in the gate (`untold`), with the place in our spool behind which to look for it.
    """

    def __init__(self, workspace: Workspace, config: Config, results: Results) -> None:
        self._workspace = workspace
        self._config = config
        self._results = results
        self._indexes: dict[str, ResultIndex] = {}
        self._indexed_at = 0.0

    def bring_in_order(self, domain: Domain, bookmark: Bookmark) -> bool:
        """Step over what is done, count what was sent; False if the gate is busy just now."""
        before = domain.gate.read()
        counted = Cursor(before.mark.segment, before.mark.offset)
        marker = f"fetcher-{before.mark.writer:02d}"
        left = LeftBehind()
        if bookmark.holder is not None:
            start = min(bookmark.results, counted) if bookmark.holder == marker else bookmark.results
            left = self._index(bookmark.holder).since(domain.name, start)
            domain.step_over(left.done)
        is_told = before.unreported and before.run in self._index(marker).since(domain.name, counted).told
        lost = 0

        def adjust(record: GateRecord) -> GateRecord:
            nonlocal lost
            found = sum(
                requests
                for run, end, requests in left.ledgered
                if run == record.run and (bookmark.holder != marker or end > counted)
            )
            lost = max(0, record.sent - record.ledgered - found) + (0 if is_told else record.unreported)
            found_closures = (record.closes, left.closes.get(record.run))
            closes = next((each for each in found_closures if each and is_in_force(each, self._config)), None)
            # It may have died between writing down what robots.txt wants and keeping it where we look for it.
            delay = max(record.crawl_delay_ms, left.crawl_delay_ms)
            return replace(
                record,
                ledgered=record.sent,
                crawl_delay_ms=delay,
                closes=closes,
                unreported=lost,
                mark=self._results.mark(),
            )

        if not domain.gate.update(before.run, adjust):
            return False
        if lost:
            # Whoever finds `untold` in the gate looks for this line behind the mark: told once, whatever happens.
            self._results.append(dump(DomainEvent(before.run, domain.name, now_text(), "lost-requests", lost)))
            if not domain.gate.update(before.run, lambda record: replace(record, unreported=0)):
                return False
        domain.run = before.run
        record = domain.gate.record
        domain.tried = record.retry_counts
        domain.closes, domain.closed_run = record.closes, record.run
        domain.has_found_closure = record.closes is not None
        return True

    def forget(self, now: float) -> None:
        """Let go of what was read, if nobody has asked for it lately."""
        if self._indexes and now - self._indexed_at > KEEP_INDEXES:
            self._indexes.clear()

    def _index(self, writer: str) -> ResultIndex:
        self._indexed_at = time.monotonic()
        index = self._indexes.get(writer)
        if index is None:
            index = self._indexes[writer] = ResultIndex(self._workspace.results, writer)
        return index


@dataclass(slots=True)
class LeftBehind:
    """What a dead fetcher's result spool says of one domain.

    `ledgered`: (run, cursor behind the line, requests to the domain in its ledger). `told`: runs for which it told
    of lost requests. `crawl_delay_ms`: the most that a robots.txt it read asks for.
    """

    done: set[tuple[int, str]] = field(default_factory=set)
    closes: dict[int, Closure] = field(default_factory=dict)
    ledgered: list[tuple[int, Cursor, int]] = field(default_factory=list)
    told: set[int] = field(default_factory=set)
    crawl_delay_ms: int = 0
    segments: set[int] = field(default_factory=set)


_Line = PageResult | RobotsResult | DomainEvent


class ResultIndex:
    """One writer's results from some cursor on, by domain. Reads each line once, however many domains ask."""

    def __init__(self, results: ResultLogs, writer: str) -> None:
        self._results = results
        self._writer = writer
        self._start: Cursor | None = None
        self._end = Cursor()
        self._lines: dict[str, list[tuple[Cursor, _Line, int]]] = {}

    def since(self, domain: str, cursor: Cursor) -> LeftBehind:
        """What was written for a domain behind `cursor`; it is durable when this returns."""
        if self._start is None:
            self._start = self._end = cursor
        elif cursor < self._start:
            self._add(cursor, self._start)
            self._start = cursor
        self._end = self._add(self._end, None)
        left = LeftBehind()
        for end, result, requests in self._lines.get(domain, ()):
            if end <= cursor:
                continue
            left.segments.add(end.segment)
            if isinstance(result, DomainEvent):
                if result.event == "lost-requests":
                    left.told.add(result.run)
                elif result.closes is not None:
                    left.closes[result.run] = result.closes
                continue
            left.ledgered.append((result.run, end, requests))
            if isinstance(result, RobotsResult):
                left.crawl_delay_ms = max(left.crawl_delay_ms, policy_of(result).crawl_delay_ms)
            else:
                left.done.add((result.run, result.key))
                if result.closes is not None:
                    left.closes[result.run] = result.closes
        self._results.make_durable(self._writer, left.segments)
        return left

    def _add(self, start: Cursor, stop: Cursor | None) -> Cursor:
        reader = self._results.reader(self._writer, start)
        try:
            records: Iterator[tuple[_Line, Line]] = read_records(reader, PageResult, RobotsResult, DomainEvent)
            for result, line in records:
                end = line.end
                if stop is not None and end > stop:
                    break
                # Requests to other domains were counted at their own gates when they were made.
                ledger = () if isinstance(result, DomainEvent) else result.ledger
                requests = sum(entry.domain == result.domain for entry in ledger)
                self._lines.setdefault(result.domain, []).append((end, _slim(result), requests))
            return reader.cursor
        finally:
            reader.close()


def _slim(result: _Line) -> _Line:
    """What is worth keeping in memory of a result: not its links."""
    if isinstance(result, DomainEvent):
        return result
    if isinstance(result, RobotsResult):
        delay = result.crawl_delay
        return RobotsResult(result.run, result.domain, result.host, result.at, result.outcome, crawl_delay=delay)
    return PageResult(result.run, result.key, "", result.domain, result.at, result.state, closes=result.closes)
