"""The robots.txt policies of hosts: kept in the workspace for 24 hours, the recently used ones in memory too."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import orjson

from crawler.model.records import RecordError, RobotsResult, dump, parse
from crawler.visit.robots import FRESH_SECONDS, Policy, policy_of
from crawler.workspace.clock import boot_id
from crawler.workspace.door import Workspace

_REMEMBERED = 512  # hosts
_MOST_BYTES = 32 * 1024 * 1024  # of their rules, as far as they can be estimated
_BYTES_A_HOST = 1024
_BYTES_A_RULE = 512  # measured: 300 to 450 with its path and its line


class _Known(NamedTuple):
    policy: Policy
    at_ms: int
    run: int | None  # None: it holds in every run
    boot: str
    mono_ms: int  # when its last request ended, on the monotonic clock of that boot
    cost: int  # bytes of memory, estimated


class RobotsCache:
    """Policies by host, as far as they concern `agent`. Safe to use from many threads.

    The memory of recently used ones is bounded in hosts and in bytes: a dense robots.txt takes some hundred times the
    memory of a common one. One that is not in memory any more is read from the workspace again.

    A host that could not be reached is known as such for one run only: the next one asks again.
    """

    def __init__(
        self,
        workspace: Workspace,
        agent: str,
        wall_ms: Callable[[], int],
        mono_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
    ) -> None:
        self._workspace = workspace
        self._agent = agent
        self._wall_ms = wall_ms
        self._mono_ms = mono_ms
        self._known: OrderedDict[str, _Known] = OrderedDict()
        self._cost = 0
        self._lock = threading.Lock()

    def policy(self, run: int, host: str) -> Policy | None:
        """The policy of a host, if it is known and fresh."""
        with self._lock:
            known = self._known.get(host)
            if known is not None:
                self._known.move_to_end(host)
        if known is None:
            known = self._load(host)
            if known is None:
                return None
            self._remember(host, known)
        age = self._wall_ms() - known.at_ms
        is_fresh = 0 <= age < FRESH_SECONDS * 1000 and known.run in (None, run)
        if is_fresh and known.boot == boot_id():  # a wall clock set back must not make it live longer
            is_fresh = self._mono_ms() - known.mono_ms < FRESH_SECONDS * 1000
        return known.policy if is_fresh else None

    def learn(self, result: RobotsResult, at_ms: int) -> Policy:
        """Keep a robots.txt that was just read; returns its policy."""
        policy = policy_of(result, self._agent)
        self._remember(result.host, _known(policy, result, at_ms))
        content = orjson.dumps({"v": 1, "at_ms": at_ms, "result": orjson.Fragment(dump(result))})
        self._workspace.keep_robots(result.host, content)
        return policy

    def _load(self, host: str) -> _Known | None:
        content = self._workspace.robots(host)
        if content is None:
            return None
        try:
            fields = orjson.loads(content)
            at_ms = int(fields["at_ms"])
            result = parse(orjson.dumps(fields["result"]))
        except (ValueError, KeyError, TypeError, RecordError):
            return None
        if not isinstance(result, RobotsResult) or result.host != host:
            return None
        return _known(policy_of(result, self._agent), result, at_ms)

    def _remember(self, host: str, known: _Known) -> None:
        with self._lock:
            before = self._known.pop(host, None)
            self._known[host] = known
            self._cost += known.cost - (before.cost if before else 0)
            while len(self._known) > 1 and (len(self._known) > _REMEMBERED or self._cost > _MOST_BYTES):
                self._cost -= self._known.popitem(last=False)[1].cost


def _known(policy: Policy, result: RobotsResult, at_ms: int) -> _Known:
    ended = max((entry.mono_ms + entry.elapsed_ms for entry in result.ledger), default=0)
    boot = result.boot if result.ledger else ""
    run = result.run if result.outcome == "unreachable" else None
    cost = _BYTES_A_HOST + policy.rules.count * _BYTES_A_RULE
    return _Known(policy, at_ms, run, boot, ended, cost)
