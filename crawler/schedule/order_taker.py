"""Orders become decisions of the run: read from the log of orders, recorded in the scheduler's log, once each.

An order that comes while no run is under way waits for the next one. Which orders were taken up is known from the map:
a scheduler begins when the map has applied all decisions of the one before.
"""

from __future__ import annotations

import logging

from crawler.database.frontier import Frontier
from crawler.model.records import Closure, DomainEvent, Order, OrderEvent
from crawler.schedule.decision_log import DecisionLog
from crawler.workspace.clock import now_text
from crawler.workspace.door import Workspace
from crawler.workspace.reading import read_records

log = logging.getLogger("sumi.scheduler")


class OrderTaker:
    """`begin` when the map is open and up to date, then `take_up` as often as you like."""

    def __init__(self, workspace: Workspace, frontier: Frontier, decisions: DecisionLog) -> None:
        self._frontier = frontier
        self._decisions = decisions
        self._reader = workspace.orders.whole_reader()
        self._taken: set[str] = set()

    def begin(self) -> None:
        """Learn which orders the map knows. Raises MapAway."""
        self._taken |= self._frontier.taken_orders()

    def take_up(self, run: int) -> int:
        """Record every new order as a decision of this run; returns how many."""
        count = 0
        for order, _ in read_records(self._reader, Order):
            if order.id in self._taken:
                continue
            self._taken.add(order.id)
            if order.action == "clear":
                self._close_waiting_domains(run, order)  # before the order itself: a crash in between repeats it
            self._decisions.record(OrderEvent(run, now_text(), order.id, order.action, order.wires, order.who))
            log.info("Taking up an order: %s", order.action)
            count += 1
        return count

    def _close_waiting_domains(self, run: int, order: Order) -> None:
        for domain in self._frontier.domains():
            closure = Closure("cleared", 0)
            event = DomainEvent(run, domain.name, now_text(), "closed", detail=f"order {order.id}", closes=closure)
            self._decisions.record(event)

    def close(self) -> None:
        self._reader.close()
