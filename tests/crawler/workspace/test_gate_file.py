"""The gate of a domain: spacing, budget, and what it makes of deaths, boots and clocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import zlib
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.model.settings import Config, CrawlerSettings
from crawler.pace.decisions import (
    Busy,
    GateRecord,
    LedgerMark,
    NotYet,
    Open,
    Shut,
    admit,
    fair_share,
    for_run,
    is_in_force,
    next_allowed,
    resting,
    settle,
)
from crawler.workspace.files.gate_file import GateFile, newest, pack, unpack
from crawler.workspace.files.slot_files import SlotFiles

BOOT, OTHER_BOOT = "0" * 31 + "1", "0" * 31 + "2"
MS = 1_000_000
DELAY = 1000


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self, boot: str = BOOT, mono_ms: int = 50_000, wall_ms: int = 1_700_000_000_000) -> None:
        self.now = Moment(boot, mono_ms * MS, wall_ms)

    def __call__(self) -> Moment:
        return self.now

    def pass_ms(self, ms: int) -> None:
        self.now = Moment(self.now.boot, self.now.mono_ns + ms * MS, self.now.wall_ms + ms)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def gate_at(folder: Path, clock: Clock) -> GateFile:
    return GateFile(folder / "example.com", clock)


def enter(gate: GateFile, *, run: int = 1, limit: int = 100, crawl_delay_ms: int | None = None) -> object:
    return gate.try_enter(run, DELAY, limit, crawl_delay_ms=crawl_delay_ms)[0]


def ask(gate: GateFile, clock: Clock, took_ms: int = 10) -> None:
    assert isinstance(enter(gate), Open)
    clock.pass_ms(took_ms)
    gate.finish()


# -- deciding ----------------------------------------------------------------------------------------------


def test_a_domain_that_was_never_asked_may_be_asked_at_once(clock: Clock) -> None:
    assert admit(GateRecord(), DELAY, 1, clock.now) == Open(1)


def test_the_next_request_starts_a_delay_after_the_end_of_the_last_one(clock: Clock) -> None:
    record = GateRecord(ended=clock.now)
    at = clock.now.mono_ns + DELAY * MS
    assert admit(record, DELAY, 9, clock.now) == NotYet(at)
    assert admit(record, DELAY, 9, clock.now._replace(mono_ns=at - 1)) == NotYet(at)
    assert isinstance(admit(record, DELAY, 9, clock.now._replace(mono_ns=at)), Open)


def test_a_longer_crawl_delay_counts_and_a_shorter_one_does_not(clock: Clock) -> None:
    record = GateRecord(ended=clock.now)
    assert next_allowed(record._replace(crawl_delay_ms=5000), DELAY) == clock.now.mono_ns + 5000 * MS
    assert next_allowed(record._replace(crawl_delay_ms=10), DELAY) == clock.now.mono_ns + DELAY * MS


def test_a_request_of_unknown_end_ended_just_now(clock: Clock) -> None:
    long_ago = Moment(BOOT, 0, 0)
    settled = settle(GateRecord(is_in_flight=True, ended=long_ago), clock.now)
    assert settled.ended == clock.now
    assert not settled.is_in_flight


def test_after_a_reboot_the_whole_delay_is_waited(clock: Clock) -> None:
    record = GateRecord(ended=Moment(OTHER_BOOT, 0, 0))
    assert settle(record, clock.now).ended == clock.now


def test_an_end_in_the_future_is_not_believed(clock: Clock) -> None:
    record = GateRecord(ended=Moment(BOOT, clock.now.mono_ns + 10**15, 0))
    assert settle(record, clock.now).ended == clock.now


@pytest.mark.parametrize("jump_ms", [-(10**10), 10**10])
def test_the_wall_clock_decides_nothing(clock: Clock, jump_ms: int) -> None:
    record = GateRecord(ended=clock.now)
    later = clock.now._replace(mono_ns=clock.now.mono_ns + 1, wall_ms=clock.now.wall_ms + jump_ms)
    assert isinstance(admit(settle(record, later), DELAY, 9, later), NotYet)


def test_the_budget_closes_the_domain_with_its_figures(clock: Clock) -> None:
    assert admit(GateRecord(sent=7), DELAY, 7, clock.now) == Shut(Closure("request-limit", 7, 7))


def test_a_larger_budget_or_allowance_lifts_a_closure() -> None:
    small, large = (Config(crawler=CrawlerSettings(max_domain_requests=n, max_crawl_delay=n)) for n in (500, 501))
    for reason in ("request-limit", "crawl-delay"):
        assert is_in_force(Closure(reason, 500, 500), small)
        assert not is_in_force(Closure(reason, 500, 500), large)
    assert is_in_force(Closure("rate-limited", 3), large)


def test_a_new_run_has_a_new_budget_but_the_same_clock(clock: Clock) -> None:
    closed = GateRecord(run=1, sent=7, ledgered=7, ended=clock.now, crawl_delay_ms=5, closes=Closure("rate-limited", 7))
    fresh = for_run(closed, 2)
    assert (fresh.run, fresh.sent, fresh.closes) == (2, 0, None)
    assert (fresh.ended, fresh.crawl_delay_ms) == (clock.now, 5)


# -- bytes -------------------------------------------------------------------------------------------------

records = st.builds(
    GateRecord,
    run=st.integers(0, 2**32 - 1),
    sent=st.integers(0, 2**32 - 1),
    ledgered=st.integers(0, 2**32 - 1),
    is_in_flight=st.booleans(),
    ended=st.none() | st.builds(Moment, st.just(BOOT), st.integers(0, 2**62), st.integers(0, 2**62)),
    crawl_delay_ms=st.integers(0, 2**32 - 1),
    closes=st.none()
    | st.builds(
        Closure,
        st.sampled_from(["rate-limited", "request-limit", "crawl-delay"]),
        st.integers(0, 2**32 - 1),
        st.none() | st.integers(0, 2**40),
    ),
    untold=st.integers(0, 2**32 - 1),
    mark=st.builds(LedgerMark, st.integers(0, 999), st.integers(0, 2**60), st.integers(0, 2**60)),
    rest_ms=st.integers(0, 2**32 - 1),
    tried=st.builds(
        RetryCounts,
        job=st.integers(0, 2**64 - 1),
        retries=st.integers(0, 2**16 - 1),
        has_waited=st.booleans(),
        robots_host=st.integers(0, 2**32 - 1),
        robots_tries=st.integers(0, 2**16 - 1),
    ),
)
TRIED = RetryCounts(job=7, retries=2, has_waited=True)


def test_a_rest_that_a_visit_promised_holds_for_whoever_asks_next_and_ends_with_that_request(tmp_path: Path) -> None:
    clock = Clock()
    gate = GateFile(tmp_path / "gate", clock)
    assert isinstance(gate.try_enter(1, DELAY, 99)[0], Open)
    gate.finish()
    gate.update(1, partial(resting, seconds=120, tried=TRIED))
    gate.close()
    other = GateFile(tmp_path / "gate", clock)  # another process, after a crash
    ended = clock.now.mono_ns
    assert other.try_enter(1, DELAY, 99)[0] == NotYet(ended + 120 * 10**9)
    clock.pass_ms(120_000)
    assert isinstance(other.try_enter(1, DELAY, 99)[0], Open)
    other.finish()
    assert other.try_enter(1, DELAY, 99)[0] == NotYet(clock.now.mono_ns + DELAY * 1_000_000)


def test_what_a_visit_has_tried_is_known_until_another_run_begins(tmp_path: Path) -> None:
    clock = Clock()
    gate = GateFile(tmp_path / "gate", clock)
    gate.update(1, partial(resting, seconds=0, tried=TRIED))
    assert isinstance(gate.try_enter(1, DELAY, 99)[0], Open)
    assert GateFile(tmp_path / "gate", clock).read().tried == TRIED  # the fetcher may be killed right now
    gate.finish()
    assert GateFile(tmp_path / "gate", clock).read().tried == TRIED
    clock.pass_ms(DELAY)
    assert isinstance(gate.try_enter(2, DELAY, 99)[0], Open)
    assert gate.record.tried == NO_RETRIES


def test_a_record_of_the_layout_before_tells_of_no_tries() -> None:
    """What has been tried since lay in bytes that were zero."""
    body = pack(GateRecord(run=3, sent=4, rest_ms=5, tried=TRIED), 9)[:100] + bytes(24)
    assert unpack(body + zlib.crc32(body).to_bytes(4, "little")) == (9, GateRecord(run=3, sent=4, rest_ms=5))


@given(records, st.integers(0, 2**60))
def test_a_record_comes_back_as_it_was_written(record: GateRecord, sequence: int) -> None:
    assert unpack(pack(record, sequence)) == (sequence, record)


@given(records, st.integers(0, 127), st.integers(1, 255))
def test_no_damaged_record_is_believed(record: GateRecord, place: int, change: int) -> None:
    data = bytearray(pack(record, 5))
    data[place] ^= change
    assert unpack(bytes(data)) is None


def test_a_torn_write_leaves_the_record_before_it(clock: Clock) -> None:
    older, newer = pack(GateRecord(sent=1), 1), pack(GateRecord(sent=2), 2)
    for cut in range(len(newer)):
        torn = newer[:cut] + bytes(len(newer) - cut)
        found = newest(torn + older)
        assert found is not None
        assert found[1].sent in (1, 2)
    assert newest(newer + older) == (2, GateRecord(sent=2))


# -- doing -------------------------------------------------------------------------------------------------


def test_a_gate_spaces_requests_and_counts_them(tmp_path: Path, clock: Clock) -> None:
    gate = gate_at(tmp_path, clock)
    ask(gate, clock)
    assert isinstance(enter(gate), NotYet)
    clock.pass_ms(DELAY)
    ask(gate, clock)
    assert gate.read().sent == 2
    gate.close()


def test_another_opening_of_the_gate_finds_it_busy_during_a_request(tmp_path: Path, clock: Clock) -> None:
    mine, theirs = gate_at(tmp_path, clock), gate_at(tmp_path, clock)
    assert isinstance(enter(mine), Open)
    assert isinstance(enter(theirs), Busy)
    mine.finish()
    assert isinstance(enter(theirs), NotYet)
    mine.close()
    theirs.close()


def test_the_clock_and_the_budget_survive_a_restart(tmp_path: Path, clock: Clock) -> None:
    first = gate_at(tmp_path, clock)
    ask(first, clock)
    first.close()
    second = gate_at(tmp_path, clock)
    assert isinstance(enter(second), NotYet)
    clock.pass_ms(DELAY)
    assert enter(second, limit=1) == Shut(Closure("request-limit", 1, 1))
    assert isinstance(enter(second, run=2, limit=1), Open)
    second.finish()
    second.close()


def test_the_crawl_delay_of_a_host_outlives_the_process_that_learned_it(tmp_path: Path, clock: Clock) -> None:
    first = gate_at(tmp_path, clock)
    assert isinstance(enter(first, crawl_delay_ms=5000), Open)
    first.finish()
    first.close()
    second = gate_at(tmp_path, clock)
    clock.pass_ms(4999)
    assert isinstance(enter(second), NotYet)
    clock.pass_ms(1)
    assert isinstance(enter(second), Open)
    second.finish()
    second.close()


def test_a_killed_holder_has_counted_its_request_and_costs_a_whole_delay(tmp_path: Path) -> None:
    """`kill -9` with a request on the wire: the kernel frees the lock, the record says what was under way."""
    path = tmp_path / "example.com"
    code = (
        "import sys, pathlib; from crawler.workspace.files.gate_file import GateFile; "
        f"gate = GateFile(pathlib.Path({str(path)!r})); "
        "print(gate.try_enter(1, 1000, 9)[0], flush=True); sys.stdin.read()"
    )
    victim = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert victim.stdout is not None and victim.stdin is not None
    assert victim.stdout.readline().startswith(b"Open")
    gate = GateFile(path)
    assert isinstance(gate.try_enter(1, DELAY, 9)[0], Busy)
    os.kill(victim.pid, signal.SIGKILL)
    victim.wait()
    victim.stdin.close()
    victim.stdout.close()
    admission, now = gate.try_enter(1, DELAY, 9)
    assert isinstance(admission, NotYet)
    assert admission.at_ns == now.mono_ns + DELAY * MS
    assert gate.read().sent == 1
    gate.close()


def test_the_wait_after_a_death_does_not_begin_anew_with_each_look(tmp_path: Path, clock: Clock) -> None:
    gate = gate_at(tmp_path, clock)
    assert isinstance(enter(gate), Open)
    gate.close()  # as if killed: the request never ended
    heir = gate_at(tmp_path, clock)
    first = enter(heir)
    clock.pass_ms(DELAY // 2)
    assert enter(heir) == first
    clock.pass_ms(DELAY // 2)
    assert isinstance(enter(heir), Open)
    heir.finish()
    heir.close()


def test_a_gate_file_of_rubbish_costs_a_delay_and_nothing_else(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "example.com").write_bytes(b"rubbish" * 100)
    gate = gate_at(tmp_path, clock)
    assert isinstance(enter(gate), NotYet)
    clock.pass_ms(DELAY)
    assert isinstance(enter(gate), Open)
    gate.finish()
    gate.close()


def test_a_closure_is_remembered_for_the_run(tmp_path: Path, clock: Clock) -> None:
    gate = gate_at(tmp_path, clock)
    closes = Closure("rate-limited", 3)
    assert gate.update(1, lambda record: record._replace(closes=closes))
    gate.close()
    again = gate_at(tmp_path, clock)
    assert enter(again) == Shut(closes)
    assert isinstance(enter(again, run=2), Open)
    again.finish()
    again.close()


@given(st.lists(st.sampled_from(["ask", "wait", "die", "reboot", "wall", "other"]), min_size=1, max_size=40))
def test_no_history_brings_two_requests_closer_than_the_delay(
    tmp_path_factory: pytest.TempPathFactory, history: list[str]
) -> None:
    """Restarts, deaths with a request out, reboots, wall clock jumps and a second fetcher, in any order."""
    clock = Clock()
    path = tmp_path_factory.mktemp("gate") / "d"
    gate = GateFile(path, clock)
    true_ms = 0  # time that really passed, whatever the clocks say
    ends: list[int] = []
    for event in history:
        if event == "wait":
            clock.pass_ms(400)
            true_ms += 400
        elif event == "reboot":
            gate.close()
            clock.now = Moment(OTHER_BOOT if clock.now.boot == BOOT else BOOT, 10 * MS, clock.now.wall_ms)
            gate = GateFile(path, clock)
        elif event == "wall":
            clock.now = clock.now._replace(wall_ms=clock.now.wall_ms - 10**9)
        elif event == "other":
            gate.close()
            gate = GateFile(path, clock)
        else:
            if isinstance(enter(gate), Open):
                assert not ends or true_ms - ends[-1] >= DELAY
                if event == "ask":
                    gate.finish()
                else:
                    gate.close()
                    gate = GateFile(path, clock)
                ends.append(true_ms)
    gate.close()


# -- slots -------------------------------------------------------------------------------------------------


def test_slots_are_shared_and_never_more_than_the_limit(tmp_path: Path) -> None:
    mine, theirs = SlotFiles(tmp_path, 3), SlotFiles(tmp_path, 3)
    mine.acquire(2)
    theirs.acquire(5)
    assert (mine.held, theirs.held) == (2, 1)
    mine.give_back(1)
    theirs.acquire(5)
    assert (mine.held, theirs.held) == (1, 2)
    mine.close()
    theirs.close()
    assert theirs.held == 0


def test_the_fair_share_covers_the_limit_and_is_never_nothing() -> None:
    assert fair_share(10, 4) == 3
    assert fair_share(2, 8) == 1
    assert fair_share(10, 0) == 10
