"""The one request that politeness does not cover (docs/scale.md): a process that is stopped between the engine's word
and the send, for longer than its request's time, sends when it goes on. These tests stand in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.fetch.job_queue import JobQueue
from crawler.fetch.journal import Journal
from crawler.fetch.leased_domain import LeasedDomain
from crawler.fetch.takeover import Takeover
from crawler.model.records import Exchange, PageResult, RobotsResult, dump
from crawler.model.settings import Config, CrawlerSettings, EngineSettings
from crawler.observe.audit import audit
from crawler.pace.decisions import Busy, EntryRequest, Open
from crawler.workspace.bookmarks import Bookmark
from crawler.workspace.door import Claim, Gate, LeaseLost
from crawler.workspace.log import BEGINNING
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.crawler.workspace.engine_opener import EngineOpener, EngineTestClock, opener_in

DELAY = 1000
LONGEST = 10_000  # milliseconds of a request; 5 s more until the gate gives it up
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=100)


@pytest.fixture
def opener(tmp_path: Path) -> Iterator[EngineOpener]:
    with opener_in(tmp_path) as made:
        yield made


def config_of(opener: EngineOpener, tmp_path: Path) -> Config:
    settings = CrawlerSettings(minimum_time_on_page=DELAY, max_domain_requests=100)
    return Config(crawler=settings, engine=EngineSettings(opener.url), workspace=tmp_path / "workspace")


def leased(workspace: EngineWorkspace, claim: Claim | None, clock: EngineTestClock, bookmark: Bookmark) -> LeasedDomain:
    assert claim is not None
    jobs = JobQueue(workspace.jobs("a.test", BEGINNING))
    return LeasedDomain("a.test", claim, workspace.gate("a.test", clock, LONGEST), jobs, bookmark)


def asked(gate: Gate, clock: EngineTestClock, number: int) -> Exchange:
    """A whole request through the gate, and its ledger entry."""
    assert gate.try_enter(WISH).admission == Open(number)
    clock.pass_ms(30)
    return ended(gate, number)


def ended(gate: Gate, number: int) -> Exchange:
    gate.finish()
    span = gate.span
    return Exchange(span.wall_ms, span.start_ms, "GET", "a.test", 200, span.elapsed_ms, "a.test", number)


def recorded(journal: Journal, gate: Gate, key: str, *ledger: Exchange) -> None:
    if key == "robots":
        record: RobotsResult | PageResult = RobotsResult(
            1, "a.test", "a.test", "", "parsed", 200, "", boot=gate.clock_name, ledger=ledger
        )
    else:
        wire = f"https://a.test/{key}"
        record = PageResult(1, wire, wire, "a.test", "", "processed", boot=gate.clock_name, ledger=ledger)
    journal.append(dump(record))


def test_one_beyond_the_lease_is_in_no_ledger_its_number_is_missing_and_reported_as_lost(
    opener: EngineOpener, tmp_path: Path
) -> None:
    clock, config = opener.clock(), config_of(opener, tmp_path)
    stopped, other = opener(), opener()
    before = leased(stopped, stopped.claim("a.test"), clock, Bookmark())
    journal = Journal(stopped, "fetcher-01", 1, 1_000_000, lambda: None)
    recorded(journal, before.pace.gate, "robots", asked(before.pace.gate, clock, 1))
    journal.sync(0)
    clock.pass_ms(DELAY)
    assert before.pace.gate.try_enter(WISH).admission == Open(2), "and here the process is stopped"
    clock.pass_ms(60_000)

    after = leased(other, other.claim("a.test"), clock, Bookmark(BEGINNING, "fetcher-01", BEGINNING))
    heir = Journal(other, "fetcher-02", 2, 1_000_000, lambda: None)
    assert Takeover(other, config, heir).take_over(after)
    clock.pass_ms(DELAY)
    gate = after.pace.gate
    recorded(heir, gate, "b", asked(gate, clock, 3))
    heir.sync(0)
    gate.read()  # its leave is there

    row = other.session.execute("SELECT * FROM gates")
    before.pace.gate.finish()  # it goes on, the request leaves, and then it learns that it lost its lease
    with pytest.raises(LeaseLost):
        before.pace.gate.try_enter(WISH)
    assert other.session.execute("SELECT * FROM gates") == row, "it is its heir's"
    with pytest.raises(LeaseLost):
        journal.append(b"{}")
        journal.sync(0)
    report = audit(config)
    assert report.is_clean, list(report.lines())
    assert (report.requests, report.numbered, report.unseen, report.lost, report.unreported) == (2, 2, 1, 1, 0)


def test_one_that_ends_while_another_is_out_leaves_the_gate_to_that(opener: EngineOpener) -> None:
    clock = opener.clock()
    stopped, other = opener(), opener()
    gate, guest = stopped.gate("a.test", clock, LONGEST), other.gate("a.test", clock, LONGEST)
    assert gate.try_enter(WISH).admission == Open(1), "and here the process is stopped"
    clock.pass_ms(LONGEST + 5_000)
    guest.try_enter(WISH)  # it learns that the request's end is unknown, and counts it as ended now
    clock.pass_ms(DELAY)
    assert guest.try_enter(WISH).admission == Open(2)
    gate.finish(is_ledgered=True)
    clock.pass_ms(DELAY)
    assert gate.try_enter(WISH).admission == Busy()
    guest.finish(is_ledgered=True)
    assert guest.read().sent == 2


def test_one_within_the_lease_reaches_a_log_and_audit_shows_it(opener: EngineOpener, tmp_path: Path) -> None:
    """A robots.txt of another domain leads a fetcher here that does not hold the domain, once the time is up."""
    clock, config = opener.clock(), config_of(opener, tmp_path)
    stopped, other = opener(), opener()
    mine = leased(stopped, stopped.claim("a.test"), clock, Bookmark())
    journal = Journal(stopped, "fetcher-01", 1, 1_000_000, lambda: None)
    gate = mine.pace.gate
    recorded(journal, gate, "robots", asked(gate, clock, 1))
    clock.pass_ms(DELAY)
    assert gate.try_enter(WISH).admission == Open(2), "and here the process is stopped"
    clock.pass_ms(LONGEST + 5_000)

    guest = other.gate("a.test", clock, LONGEST)
    guest.try_enter(WISH)  # it learns that the request's end is unknown, and counts it as ended now
    clock.pass_ms(DELAY)
    foreign = asked(guest, clock, 3)
    heir = Journal(other, "fetcher-02", 2, 1_000_000, lambda: None)
    recorded(heir, guest, "robots", foreign)
    heir.sync(0)

    recorded(journal, gate, "b", ended(gate, 2))
    journal.sync(0)
    report = audit(config)
    assert [violation.promise for violation in report.violations] == ["spacing"], list(report.lines())
    assert (report.numbered, report.unseen) == (3, 0)
