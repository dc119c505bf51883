"""Orders become decisions of the run: read from the log of orders, recorded in the scheduler's log, once each.

An order that comes while no run is under way waits for the next one. Which orders were taken up is known from the map:
a scheduler begins when the map has applied all decisions of the one before.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from crawler.database.frontier import Frontier
from crawler.model.records import Closure, DomainEvent, Order, OrderEvent
from crawler.model.urls import domain_of
from crawler.pace.breaker import NO_BREAKER, BreakerState
from crawler.pace.gate_record import GateRecord, reset
from crawler.schedule.decision_log import DecisionLog
from crawler.workspace.clock import now_text, read_clock
from crawler.workspace.door import GateError, Workspace
from crawler.workspace.reading import read_records

log = logging.getLogger("sumi.scheduler")


class OrderTaker:
    """`begin` when the map is open and up to date, then `take_up` as often as you like."""

    def __init__(
        self,
        workspace: Workspace,
        frontier: Frontier,
        decisions: DecisionLog,
        after_reset: Callable[[str], None] = lambda domain: None,
    ) -> None:
        self._workspace = workspace
        self._after_reset = after_reset
        self._resets: list[Order] = []  # whose events are recorded, while a gate was busy
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
            # What an order does is recorded before the order itself: a crash in between repeats it.
            if order.action == "clear":
                self._close_waiting_domains(run, order)
            if order.action == "reset":
                self._record_reset(run, order)
                self._resets.append(order)
            else:
                self._take(run, order)
            count += 1
        self._finish_resets(run)
        return count

    def _take(self, run: int, order: Order) -> None:
        self._decisions.record(OrderEvent(run, now_text(), order.id, order.action, order.wires, order.who))
        log.info("Taking up an order: %s", order.action)

    def _close_waiting_domains(self, run: int, order: Order) -> None:
        for domain in self._frontier.domains():
            closure = Closure("cleared", 0)
            event = DomainEvent(run, domain.name, now_text(), "closed", detail=f"order {order.id}", closes=closure)
            self._decisions.record(event)

    # -- resets --------------------------------------------------------------------------------------

    def _record_reset(self, run: int, order: Order) -> None:
        """The decision that closures from before now count no longer, for the map."""
        for name in _domains(order):
            record = self._gate_record(name)
            sent = record.sent if record is not None and record.run == run else 0
            self._decisions.record(DomainEvent(run, name, now_text(), "reopened", sent, f"order {order.id}"))
            breaker = record.breaker if record is not None and record.run == run else NO_BREAKER
            if breaker.state is not BreakerState.CLOSED:
                words = f"it was reset by order {order.id}"
                event = DomainEvent(run, name, now_text(), "breaker-closed", breaker.changes + 1, words)
                self._decisions.record(event)

    def _finish_resets(self, run: int) -> None:
        """Open the gates. One is busy while a request is out; then it is tried again."""
        for order in list(self._resets):
            if all(self._reset_gate(name, run) for name in _domains(order)):
                self._resets.remove(order)
                self._take(run, order)
                for name in _domains(order):
                    self._after_reset(name)

    def _gate_record(self, name: str) -> GateRecord | None:
        try:
            gate = self._workspace.gate(name, read_clock)
        except GateError:
            return None
        try:
            return gate.read()
        finally:
            gate.close()

    def _reset_gate(self, name: str, run: int) -> bool:
        try:
            gate = self._workspace.gate(name, read_clock)
        except GateError:
            return True  # no request leaves there anyway
        try:
            return gate.update(run, reset)
        finally:
            gate.close()

    def close(self) -> None:
        self._reader.close()


def _domains(order: Order) -> list[str]:
    return list(dict.fromkeys(domain_of(wire) for wire in order.wires))
