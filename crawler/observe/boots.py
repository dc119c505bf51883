"""The order of the machine's boots, as the result logs show it.

The wall clock may be set, so it does not decide which boot was first: the order of a writer's segments does. If the
logs do not show the order of two boots, knowledge from one of them says nothing about requests in the other.
"""

from __future__ import annotations

from collections.abc import Iterator

from crawler.model.records import PageResult, RobotsResult, SitemapResult
from crawler.workspace.door import ResultLogs
from crawler.workspace.log import Line
from crawler.workspace.reading import parse_lines


class BootOrder:
    """The boots of the machine, ranked by time.

    `certain` holds the ranks whose place is sure: every other boot is known to be earlier or known to be later. The
    ranks of the others are a guess by the wall clock.
    """

    def __init__(self, orders: list[list[str]], first_seen: dict[str, str]) -> None:
        """`orders`: for each writer, the boots in which it wrote, in order."""
        guess = sorted(first_seen, key=lambda boot: first_seen[boot])
        bit = {boot: 1 << place for place, boot in enumerate(guess)}
        before = dict(bit)  # for each boot a set of bits: itself and every boot that some writer saw earlier
        is_stable = False
        while not is_stable:
            is_stable = True
            for order in orders:
                seen = 0
                for boot in order:
                    seen |= before[boot]
                    if before[boot] != seen:
                        before[boot], is_stable = seen, False
        ranked = sorted(guess, key=lambda boot: before[boot].bit_count())
        self._ranks = {boot: rank for rank, boot in enumerate(ranked)}
        # Is every one of the first n boots known to be earlier than each of the rest?
        before_all_later = [-1]
        for boot in reversed(ranked):
            before_all_later.append(before_all_later[-1] & before[boot])
        first = before_any_first = 0
        is_sure_cut = [True]
        for boot, rest in zip(ranked, reversed(before_all_later[:-1]), strict=True):
            first |= bit[boot]
            before_any_first |= before[boot]
            is_sure_cut.append(first & ~rest == 0 and before_any_first & ~first == 0)
        self.certain = frozenset(rank for rank in range(len(ranked)) if is_sure_cut[rank] and is_sure_cut[rank + 1])

    def rank(self, boot: str) -> int:
        return self._ranks.get(boot, len(self._ranks))


def read_boots(results: ResultLogs) -> BootOrder:
    """The boots in the result logs. A process lives in one boot and never writes to an old segment."""
    orders: list[list[str]] = []
    first_seen: dict[str, str] = {}
    for writer in results.writers():
        order: list[str] = []
        for number in results.segments(writer):
            records: Iterator[tuple[PageResult | RobotsResult | SitemapResult, Line]] = parse_lines(
                results.segment_lines(writer, number), PageResult, RobotsResult, SitemapResult
            )
            record = next((record for record, _ in records if record.boot), None)
            if record is not None:
                at = first_seen.get(record.boot)
                first_seen[record.boot] = record.at if at is None else min(at, record.at)
                if order[-1:] != [record.boot]:
                    order.append(record.boot)
        orders.append(order)
    return BootOrder(orders, first_seen)
