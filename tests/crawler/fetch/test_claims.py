"""Which of several fetchers takes a domain: real leases, real job spools, two fetchers' ends of them in one process."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from crawler.fetch.claims import LOOK_AGAIN, Domains
from crawler.fetch.domain_worker import Steps
from crawler.fetch.journal import Results
from crawler.fetch.lease import Domain
from crawler.model.records import Job, Release, dump
from crawler.model.settings import Config
from crawler.workspace.clock import read_clock
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.job_spools import BOOKMARK, read_bookmark
from crawler.workspace.files.spool import Writer

NAMES = [f"d{number}.test" for number in range(12)]


class Idle:
    """In the place of the steps: nobody makes any."""

    def nudge(self, domain: Domain) -> None:
        pass

    def is_at_rest(self, domain: Domain) -> bool:
        return True


class Bench:
    """Fetchers number 0 and 1 of two, and the scheduler's pen."""

    def __init__(self, folder: Path) -> None:
        self.config = Config(workspace=folder)
        self.workspace = FileWorkspace(folder)
        self.workspace.prepare()
        self._releases = Writer(self.workspace.layout.releases, durable=False)
        self._made: list[tuple[Domains, Results]] = []

    def release(self, names: list[str]) -> None:
        for turn, name in enumerate(names):
            writer = Writer(self.workspace.layout.jobs_of(name))
            writer.append(dump(Job(1, f"https://{name}/", f"https://{name}/", name)))
            writer.close()
            self._releases.append(dump(Release(1, name, 1, turn)))

    def fetcher(self, index: int) -> Domains:
        results = Results(self.workspace, f"fetcher-{index}", index, 1 << 20, lambda: None)
        domains = Domains(self.config, self.workspace, index, 2, cast(Steps, Idle()), results, read_clock)
        self._made.append((domains, results))
        return domains

    def close(self) -> None:
        for domains, results in self._made:
            domains.drop()
            results.close()


def taken(domains: Domains, later: float = 0.0) -> list[str]:
    """What a fetcher has after a look at a time so many seconds from now."""
    began = time.monotonic() + later
    domains.listen(began)
    domains.take_due(began)
    while domains.has_more_to_take:
        domains.take_due(time.monotonic() + later)
    return sorted(domain.name for domain in domains.held)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.close()


@pytest.mark.parametrize("early", [(), (0,), (1,), (0, 1)], ids=lambda early: f"before-{early}")
def test_every_domain_is_taken_at_once_whoever_started_before_it_was_released(bench: Bench, early: Any) -> None:
    fetchers = {index: bench.fetcher(index) for index in early}
    bench.release(NAMES)
    fetchers |= {index: bench.fetcher(index) for index in (0, 1) if index not in early}
    assert taken(fetchers[0]) == sorted(NAMES[0::2])
    assert taken(fetchers[1]) == sorted(NAMES[1::2])


def test_a_domain_that_nobody_takes_finds_another_fetcher_after_a_while(bench: Bench) -> None:
    bench.release(NAMES)
    only = bench.fetcher(1)
    assert taken(only) == sorted(NAMES[1::2])
    assert taken(only, LOOK_AGAIN) == sorted(NAMES)


def test_what_was_left_without_a_word_is_shared_by_name(bench: Bench) -> None:
    bench.release(NAMES)
    for path in bench.workspace.layout.releases.iterdir():
        path.unlink()
    shares = [sorted(name for name in NAMES if zlib.crc32(name.encode()) % 2 == index) for index in (0, 1)]
    assert [taken(bench.fetcher(index)) for index in (0, 1)] == shares


def test_domains_whose_bookmark_cannot_be_written_are_not_kept(bench: Bench) -> None:
    """One of them fails, when all are written at once: none is worked on, and others may have them."""
    bench.release(NAMES)
    first = bench.fetcher(0)
    in_the_way = bench.workspace.layout.jobs_of(NAMES[4]) / f".{BOOKMARK}.{os.getpid()}.tmp"
    in_the_way.mkdir()
    with pytest.raises(IsADirectoryError):
        taken(first)
    assert not first.held
    in_the_way.rmdir()
    second = bench.fetcher(1)
    taken(second)
    assert taken(second, LOOK_AGAIN) == sorted(NAMES)


def test_many_domains_are_adopted_and_let_go_together(bench: Bench) -> None:
    names = [f"site{number}.test" for number in range(60)]
    bench.release(names)
    fetcher = bench.fetcher(0)
    taken(fetcher)
    assert taken(fetcher, LOOK_AGAIN) == sorted(names)
    folders = [bench.workspace.layout.jobs_of(name) for name in names]
    assert {read_bookmark(folder).holder for folder in folders} == {"fetcher-0"}
    fetcher.save(with_half_made=True)
    assert not fetcher.held
    assert {read_bookmark(folder).holder for folder in folders} == {None}
