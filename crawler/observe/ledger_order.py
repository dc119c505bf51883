"""The records of all result logs, merged into one stream in the order of time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import get_args

from crawler.model.records import PageResult, Result, RobotsResult, SitemapResult
from crawler.observe.boots import BootOrder
from crawler.workspace.door import ResultLogs
from crawler.workspace.log import Line, OnDamage
from crawler.workspace.reading import read_records


def read_in_order(results: ResultLogs, boots: BootOrder, on_damage: OnDamage | None) -> Iterator[Result]:
    """All records; those of one domain nearly always in the order of their requests.

    A record is appended after its last request has ended, so the logs are merged by the latest end so far in each: a
    domain is claimed by another fetcher only after its holder's last append.
    """

    def timed(writer: str, index: int) -> Iterator[tuple[tuple[int, int], int, Result]]:
        rank, latest = 0, 0
        reader = results.reader(writer, on_damage=on_damage)
        try:
            records: Iterator[tuple[Result, Line]] = read_records(reader, *get_args(Result))
            for record, _ in records:
                if isinstance(record, PageResult | RobotsResult | SitemapResult) and record.ledger:
                    this = boots.rank(record.boot)
                    end = max(entry.mono_ms + entry.elapsed_ms for entry in record.ledger)
                    rank, latest = (rank, max(latest, end)) if this == rank else (this, end)
                yield (rank, latest), index, record
        finally:
            reader.close()

    streams = [timed(writer, index) for index, writer in enumerate(results.writers())]
    for _, _, record in heapq.merge(*streams, key=lambda item: item[:2]):
        yield record
