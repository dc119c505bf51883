"""Which of several fetchers claims a domain: real leases and job spools, two fetchers' ends of them in one process."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace as record_of

from crawler.fetch.claims import CLAIMED_FIRST, RETRY_AFTER, DomainClaims
from crawler.fetch.domain_worker import DomainWorker
from crawler.fetch.journal import Journal
from crawler.fetch.leased_domain import LeasedDomain
from crawler.model.records import Job, Release, dump
from crawler.model.settings import Config
from crawler.pace.breaker import Breaker, BreakerState
from crawler.workspace.clock import read_clock
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.job_spools import BOOKMARK, read_bookmark
from crawler.workspace.files.spool import Writer

NAMES = [f"d{number}.test" for number in range(12)]


class NoWork:
    """In the place of the worker: it leaves every domain idle."""

    def __init__(self, on_begin: Callable[[LeasedDomain], None] = lambda domain: None) -> None:
        self.notify_new_jobs = on_begin


class Bench:
    """Fetchers number 0 and 1 of two, and the scheduler's pen."""

    def __init__(self, folder: Path) -> None:
        self.config = Config(workspace=folder)
        self.workspace = FileWorkspace(folder)
        self.workspace.prepare()
        self._releases = Writer(self.workspace.layout.releases, durable=False)
        self._made: list[tuple[DomainClaims, Journal]] = []

    def release(self, names: list[str]) -> None:
        for turn, name in enumerate(names):
            writer = Writer(self.workspace.layout.jobs_of(name))
            writer.append(dump(Job(1, f"https://{name}/", f"https://{name}/", name)))
            writer.close()
            self._releases.append(dump(Release(1, name, 1, turn)))

    def fetcher(self, index: int, on_begin: Callable[[LeasedDomain], None] = lambda domain: None) -> DomainClaims:
        journal = Journal(self.workspace, f"fetcher-{index}", index, 1 << 20, lambda: None)
        worker = cast(DomainWorker, NoWork(on_begin))
        claims = DomainClaims(self.config, self.workspace, index, 2, worker, journal, read_clock)
        self._made.append((claims, journal))
        return claims

    def close(self) -> None:
        for claims, journal in self._made:
            claims.close()
            journal.close()


def claimed(claims: DomainClaims, later: float = 0.0) -> list[str]:
    """The domains that a fetcher holds after a round at a time so many seconds from now."""
    began = time.monotonic() + later
    claims.listen(began)
    claims.claim_due(began)
    while claims.has_more_to_claim:
        claims.claim_due(time.monotonic() + later)
    return sorted(domain.name for domain in claims.held)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.mark.parametrize("early", [(), (0,), (1,), (0, 1)], ids=lambda early: f"before-{early}")
def test_every_domain_is_claimed_at_once_whichever_fetcher_started_before_the_release(bench: Bench, early: Any) -> None:
    fetchers = {index: bench.fetcher(index) for index in early}
    bench.release(NAMES)
    fetchers |= {index: bench.fetcher(index) for index in (0, 1) if index not in early}
    assert claimed(fetchers[0]) == sorted(NAMES[0::2])
    assert claimed(fetchers[1]) == sorted(NAMES[1::2])


def test_a_domain_that_its_fetcher_does_not_claim_finds_another_one_after_a_while(bench: Bench) -> None:
    bench.release(NAMES)
    only = bench.fetcher(1)
    assert claimed(only) == sorted(NAMES[1::2])
    assert claimed(only, RETRY_AFTER) == sorted(NAMES)


def test_jobs_without_an_announcement_are_shared_by_domain_name(bench: Bench) -> None:
    bench.release(NAMES)
    for path in bench.workspace.layout.releases.iterdir():
        path.unlink()
    shares = [sorted(name for name in NAMES if zlib.crc32(name.encode()) % 2 == index) for index in (0, 1)]
    assert [claimed(bench.fetcher(index)) for index in (0, 1)] == shares


def test_jobs_of_a_domain_that_a_list_forbids_by_now_are_not_done(bench: Bench) -> None:
    bench.release(NAMES)
    bench.config = replace(bench.config, blacklist=("d0.test",), stub=("*.d2.test",))
    only = bench.fetcher(0)
    assert claimed(only) == sorted({*NAMES[0::2]} - {"d0.test", "d2.test"})
    assert claimed(only, RETRY_AFTER) == sorted({*NAMES} - {"d0.test", "d2.test"})


@pytest.mark.parametrize(("later_s", "is_claimed"), [(-1, False), (3600, True)], ids=["it cools", "in the future"])
def test_a_breaker_that_opens_only_in_the_future_keeps_nobody_from_a_domain(
    bench: Bench, later_s: int, is_claimed: bool
) -> None:
    """A clock was set back: who claims the domain lets the cooldown begin again."""
    bench.release(NAMES[:1])
    now = read_clock()
    breaker = Breaker(BreakerState.OPEN, cooldown_ms=600_000, since_ns=now.mono_ns + later_s * 1_000_000_000)
    gate = bench.workspace.gate(NAMES[0], read_clock)
    assert gate.update(1, lambda record: record_of(record, ended=now, breaker=breaker))
    gate.close()
    only = bench.fetcher(0)
    assert claimed(only) == NAMES[:is_claimed]
    for domain in only.held:
        assert domain.pace.breaker.since_ns <= read_clock().mono_ns


def test_domains_whose_bookmark_cannot_be_written_are_not_kept(bench: Bench) -> None:
    """One of many writes fails: none of the domains is worked on, and other fetchers may claim them."""
    bench.release(NAMES)
    first = bench.fetcher(0)
    in_the_way = bench.workspace.layout.jobs_of(NAMES[4]) / f".{BOOKMARK}.{os.getpid()}.tmp"
    in_the_way.mkdir()
    with pytest.raises(IsADirectoryError):
        claimed(first)
    assert not first.held
    in_the_way.rmdir()
    second = bench.fetcher(1)
    claimed(second)
    assert claimed(second, RETRY_AFTER) == sorted(NAMES)


def test_work_on_the_first_domains_begins_before_the_others_are_claimed(bench: Bench) -> None:
    names = [f"site{number}.test" for number in range(40)]
    bench.release([name for name in names for _ in range(2)])  # all of them are of even turns
    free: list[int] = []

    def count_free(domain: LeasedDomain) -> None:
        claims = [claim for name in names if (claim := bench.workspace.claim(name)) is not None]
        free.append(len(claims))
        bench.workspace.release_all(claims)

    fetcher = bench.fetcher(0, count_free)
    assert len(claimed(fetcher)) == 40
    assert free[0] == 40 - CLAIMED_FIRST
    assert free[-1] == 0


def test_many_domains_are_adopted_and_released_together(bench: Bench) -> None:
    names = [f"site{number}.test" for number in range(60)]
    bench.release(names)
    fetcher = bench.fetcher(0)
    claimed(fetcher)
    assert claimed(fetcher, RETRY_AFTER) == sorted(names)
    folders = [bench.workspace.layout.jobs_of(name) for name in names]
    assert {read_bookmark(folder).holder for folder in folders} == {"fetcher-0"}
    fetcher.save(with_half_made=True)
    assert not fetcher.held
    assert {read_bookmark(folder).holder for folder in folders} == {None}
