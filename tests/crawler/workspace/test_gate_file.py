"""The gate as a file: the bytes of its record, torn writes, rubbish. (The rules: tests/crawler/pace; what every
implementation promises: test_contract.py.)
"""

from __future__ import annotations

import errno
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from crawler.model.messages import RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure
from crawler.pace.breaker import Breaker, BreakerState
from crawler.pace.decisions import CLOSURE_REASONS, EntryRequest, NotYet, Open
from crawler.pace.gate_record import GateRecord, KillMark, LedgerMark
from crawler.workspace.door import GateError
from crawler.workspace.files import gate_file
from crawler.workspace.files.gate_file import GateFile, newest, pack, pack_breaker, unpack, unpack_breaker
from tests.crawler.pace.clocks import BOOT, Clock

DELAY = 1000
WISH = EntryRequest(run=1, delay_ms=DELAY, limit=100)

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
        Closure, st.sampled_from(CLOSURE_REASONS), st.integers(0, 2**32 - 1), st.none() | st.integers(0, 2**40)
    ),
    unreported=st.integers(0, 2**32 - 1),
    mark=st.builds(LedgerMark, st.integers(0, 999), st.integers(0, 2**60), st.integers(0, 2**60)),
    pause_ms=st.integers(0, 2**32 - 1),
    retry_counts=st.builds(
        RetryCounts,
        job=st.integers(0, 2**64 - 1),
        retries=st.integers(0, 2**16 - 1),
        has_waited=st.booleans(),
        robots_host=st.integers(0, 2**32 - 1),
        robots_tries=st.integers(0, 2**16 - 1),
    ),
    killed=st.builds(KillMark, st.integers(0, 2**32 - 1), st.integers(0, 255), st.integers(0, 2)),
)

# -- bytes ----------------------------------------------------------------------------------------------------

ENDED = Moment("0123456789abcdef0123456789abcdef", 123_456_789_012_345, 1_700_000_000_123)
# Slots that an earlier version of this program wrote, without the zeros at their end but for the checksum.
RECORDED = [
    (
        GateRecord(),
        1,
        "535247310100000000000000 00000000 00000000 00000000 00 00 00000000 ffffffffffffffff 00000000"
        "00000000000000000000000000000000 ffffffffffffffff 0000000000000000",
        "40067403",
    ),
    (
        GateRecord(
            run=3,
            sent=17,
            ledgered=15,
            is_in_flight=True,
            ended=ENDED,
            crawl_delay_ms=1500,
            unreported=2,
            mark=LedgerMark(4, 6, 70_000),
            pause_ms=3000,
            retry_counts=RetryCounts(0xFEDCBA9876543210, 2, True, 0xDEADBEEF, 5),
        ),
        2**40 + 1,
        "535247310100000000010000 03000000 11000000 0f000000 01 00 00000000 ffffffffffffffff dc050000"
        "0123456789abcdef0123456789abcdef 79df0d8648700000 7b68e5cf8b010000 02000000"
        "0400 0600000000000000 7011010000000000 b80b0000 1032547698badcfe 0200 01 efbeadde 0500",
        "3c3340a9",
    ),
    (
        GateRecord(run=9, sent=500, ledgered=500, ended=ENDED, closes=Closure("request-limit", 500, 500)),
        77,
        "535247314d00000000000000 09000000 f4010000 f4010000 00 02 f4010000 f401000000000000 00000000"
        "0123456789abcdef0123456789abcdef 79df0d8648700000 7b68e5cf8b010000",
        "5cb45169",
    ),
    (
        GateRecord(run=1, sent=4, ledgered=3, ended=ENDED, closes=Closure("rate-limited", 4)),
        6,
        "535247310600000000000000 01000000 04000000 03000000 00 01 04000000 ffffffffffffffff 00000000"
        "0123456789abcdef0123456789abcdef 79df0d8648700000 7b68e5cf8b010000",
        "4fda53a4",
    ),
]


@pytest.mark.parametrize(("record", "sequence", "body", "checksum"), RECORDED)
def test_the_format_is_what_it_was_byte_for_byte(record: GateRecord, sequence: int, body: str, checksum: str) -> None:
    slot = bytes.fromhex(body).ljust(124, b"\0") + bytes.fromhex(checksum)
    assert pack(record, sequence) == slot
    assert unpack(slot) == (sequence, record)


def test_every_field_of_the_record_has_a_row_in_the_layout() -> None:
    rows = [field.name for field in gate_file._FIELDS]
    assert sorted([*rows, "breaker"]) == sorted(field.name for field in fields(GateRecord))
    assert len(pack(GateRecord(), 1)) == 128


def test_a_record_that_was_written_before_retries_were_kept_has_none() -> None:
    """The retry counts are in bytes that were zero."""
    record = GateRecord(run=3, sent=4, pause_ms=5)
    body = pack(replace(record, retry_counts=RetryCounts(7, 2, True)), 9)[:100] + bytes(24)
    assert unpack(body + zlib.crc32(body).to_bytes(4, "little")) == (9, record)


def test_a_closure_of_a_reason_that_is_not_known_is_no_record() -> None:
    body = bytearray(pack(GateRecord(closes=Closure("crawl-delay", 1)), 9)[:124])
    assert body[25] == 3
    body[25] = len(CLOSURE_REASONS) + 1
    assert unpack(bytes(body) + zlib.crc32(body).to_bytes(4, "little")) is None


@given(records, st.integers(0, 2**60))
def test_a_record_is_read_as_it_was_written(record: GateRecord, sequence: int) -> None:
    assert unpack(pack(record, sequence)) == (sequence, record)


@given(records, st.integers(0, 127), st.integers(1, 255))
def test_no_damaged_record_is_believed(record: GateRecord, place: int, change: int) -> None:
    data = bytearray(pack(record, 5))
    data[place] ^= change
    assert unpack(bytes(data)) is None


@given(
    st.builds(
        Breaker,
        st.sampled_from(BreakerState),
        *[st.integers(0, 2**16 - 1)] * 3,
        *[st.integers(0, 2**32 - 1)] * 2,
        st.integers(0, 2**62),
    ),
    st.integers(0, 63),
)
def test_a_breaker_is_read_as_it_was_written_or_not_at_all(breaker: Breaker, place: int) -> None:
    data = bytearray(pack_breaker(breaker, 5))
    assert unpack_breaker(bytes(data)) == (5, breaker)
    data[place] ^= 1
    assert unpack_breaker(bytes(data)) is None


def test_a_torn_write_leaves_the_record_before_it() -> None:
    older, newer = pack(GateRecord(sent=1), 1), pack(GateRecord(sent=2), 2)
    for cut in range(len(newer)):
        torn = newer[:cut] + bytes(len(newer) - cut)
        found = newest(torn + older)
        assert found is not None
        assert found[1].sent in (1, 2)
    assert newest(newer + older) == (2, GateRecord(sent=2))


# -- the file -------------------------------------------------------------------------------------------------


def test_records_are_written_into_two_slots_in_turns(tmp_path: Path) -> None:
    clock = Clock()
    gate = GateFile(tmp_path / "d", clock)
    seen = []
    for _ in range(3):
        assert isinstance(gate.try_enter(WISH).admission, Open)
        gate.finish()
        clock.pass_ms(DELAY)
        content = (tmp_path / "d").read_bytes()
        slots = [slot for place in (0, 128) if (slot := unpack(content[place : place + 128])) is not None]
        seen.append(sorted((sequence, record.sent, record.is_in_flight) for sequence, record in slots))
    assert seen == [
        [(1, 1, True), (2, 1, False)],
        [(3, 2, True), (4, 2, False)],
        [(5, 3, True), (6, 3, False)],
    ]
    gate.close()


def test_a_breaker_is_kept_beside_the_requests_and_ends_with_its_run(tmp_path: Path) -> None:
    """A file of an older version has no room for it, and gets some."""
    clock = Clock()
    (tmp_path / "d").write_bytes(pack(GateRecord(run=1, sent=3, ended=clock()), 4) + pack(GateRecord(run=1), 3))
    opened = Breaker(BreakerState.OPEN, 5, 0, 1, 1, 60_000, clock().mono_ns)
    gate = GateFile(tmp_path / "d", clock)
    assert gate.read() == GateRecord(run=1, sent=3, ended=clock())
    assert gate.update(1, lambda record: replace(record, breaker=opened))
    gate.close()
    gate = GateFile(tmp_path / "d", clock)
    assert (gate.read().sent, gate.read().breaker) == (3, opened)
    clock.pass_ms(59_999)
    assert isinstance(gate.try_enter(WISH).admission, NotYet)
    assert isinstance(gate.try_enter(replace(WISH, is_visit=False)).admission, Open), "robots.txt of another domain"
    gate.finish()
    assert gate.read().breaker == opened
    assert gate.update(2, lambda record: record)
    gate.close()
    gate = GateFile(tmp_path / "d", clock)
    assert gate.read().breaker == Breaker()
    gate.close()


def test_a_gate_file_of_rubbish_costs_a_delay_and_nothing_else(tmp_path: Path) -> None:
    clock = Clock()
    (tmp_path / "d").write_bytes(b"rubbish" * 100)
    gate = GateFile(tmp_path / "d", clock)
    assert isinstance(gate.try_enter(WISH).admission, NotYet)
    clock.pass_ms(DELAY)
    assert isinstance(gate.try_enter(WISH).admission, Open)
    gate.finish()
    gate.close()


def test_a_gate_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(GateError, match=r"cannot keep the pace of a domain in .*missing/d") as caught:
        GateFile(tmp_path / "missing" / "d")
    assert caught.value.errno == errno.ENOENT
