"""The spool: whole lines or nothing, whatever happens to the bytes (seed 000 §8.2; design, promises 2 and 5)."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.workspace.files import spool
from crawler.workspace.files.spool import (
    Reader,
    Writer,
    bytes_after,
    end_of,
    is_whole,
    seal_line,
    segment_path,
    segments,
)
from crawler.workspace.log import Cursor, Damage, Line, LogError
from tests.places import ROOT


def body(number: int, size: int = 0) -> bytes:
    return orjson.dumps({"v": 1, "n": number, "text": "Jäger * ☂ " + "x" * size})


def write(folder: Path, count: int, **options: int) -> list[bytes]:
    writer = Writer(folder, **options)
    bodies = [body(number) for number in range(count)]
    for each in bodies:
        writer.append(each)
    writer.close()
    return [seal_line(each)[:-1] for each in bodies]


def read_all(folder: Path, cursor: Cursor = Cursor()) -> tuple[list[bytes], list[Damage]]:  # noqa: B008
    damages: list[Damage] = []
    reader = Reader(folder, cursor, damages.append)
    texts = [line.body for line in reader]
    reader.close()
    return texts, damages


def put(folder: Path, number: int, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    segment_path(folder, number).write_bytes(content)


# -- a line ------------------------------------------------------------------------------------------------


def test_a_sealed_line_is_json_with_its_checksum_as_last_member() -> None:
    line = seal_line(body(7))
    assert line.endswith(b'"}\n')
    assert list(orjson.loads(line)) == ["v", "n", "text", "crc"]
    assert is_whole(line[:-1])


@given(st.dictionaries(st.text(min_size=1), st.text() | st.integers(-(2**63), 2**63 - 1), min_size=1), st.data())
@settings(max_examples=150, deadline=None)
def test_no_changed_or_shortened_line_is_whole(fields: dict[str, str | int], data: st.DataObject) -> None:
    try:
        line = seal_line(orjson.dumps(fields))[:-1]
    except orjson.JSONEncodeError:  # lone surrogates: no record has them
        return
    assert is_whole(line)
    at = data.draw(st.integers(0, len(line) - 1))
    bit = data.draw(st.integers(0, 7))
    flipped = bytearray(line)
    flipped[at] ^= 1 << bit
    assert not is_whole(bytes(flipped))
    assert not is_whole(line[:at])


# -- writing and reading -----------------------------------------------------------------------------------


def test_what_is_written_is_read_in_order(tmp_path: Path) -> None:
    expected = write(tmp_path / "s", 50)
    assert read_all(tmp_path / "s") == (expected, [])


def test_append_returns_the_cursor_behind_the_line_and_reading_from_there_gives_the_rest(tmp_path: Path) -> None:
    writer = Writer(tmp_path, segment_bytes=200)
    ends = [writer.append(body(number)) for number in range(10)]
    texts = [seal_line(body(number))[:-1] for number in range(10)]
    for index, end in enumerate(ends):
        assert read_all(tmp_path, end) == (texts[index + 1 :], [])
    assert [line.end for line in Reader(tmp_path)] == ends
    assert writer.end == ends[-1] == end_of(tmp_path)


def test_append_all_writes_several_lines_at_once(tmp_path: Path) -> None:
    writer = Writer(tmp_path)
    end = writer.append_all([body(1), body(2)])
    assert writer.append_all([]) == end == writer.end
    assert read_all(tmp_path)[0] == [seal_line(body(1))[:-1], seal_line(body(2))[:-1]]


def test_tiny_segments_roll_after_every_line_and_are_read_as_one_spool(tmp_path: Path) -> None:
    expected = write(tmp_path, 9, segment_bytes=1)
    assert segments(tmp_path) == list(range(1, 10))
    assert read_all(tmp_path) == (expected, [])


def test_read_returns_no_more_than_its_limit_and_goes_on_behind_it(tmp_path: Path) -> None:
    expected = write(tmp_path, 25, segment_bytes=300)
    reader = Reader(tmp_path)
    got: list[bytes] = []
    while lines := reader.read(4):
        assert len(lines) <= 4
        assert reader.cursor == lines[-1].end
        got += [line.body for line in lines]
    assert got == expected


def test_a_reader_tails_a_growing_spool_across_segments(tmp_path: Path) -> None:
    reader = Reader(tmp_path / "later")
    assert reader.read() == []  # the folder is not there yet
    writer = Writer(tmp_path / "later", segment_bytes=250)
    for number in range(40):
        writer.append(body(number))
        assert [line.body for line in reader.read()] == [seal_line(body(number))[:-1]]
        assert reader.read() == []
    assert len(segments(tmp_path / "later")) > 3


def test_a_line_longer_than_the_read_chunk_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "_CHUNK", 64)
    writer = Writer(tmp_path)
    bodies = [body(number, size=number * 37) for number in range(20)]
    writer.append_all(bodies)
    assert read_all(tmp_path)[0] == [seal_line(each)[:-1] for each in bodies]


def test_a_reader_goes_on_where_consumed_segments_have_been_removed(tmp_path: Path) -> None:
    expected = write(tmp_path, 6, segment_bytes=1)
    reader = Reader(tmp_path)
    assert [line.body for line in reader.read(2)] == expected[:2]
    for number in (1, 2, 3):
        segment_path(tmp_path, number).unlink()
    reader.close()
    assert [line.body for line in reader] == expected[3:]


def test_bytes_between_counts_what_lies_unread_behind_a_cursor(tmp_path: Path) -> None:
    expected = write(tmp_path, 6, segment_bytes=150)
    reader = Reader(tmp_path)
    left = sum(len(text) + 1 for text in expected)
    assert bytes_after(tmp_path, reader.cursor) == left
    while lines := reader.read(1):
        left -= len(lines[0].body) + 1
        assert bytes_after(tmp_path, reader.cursor) == left
    assert left == 0 == bytes_after(tmp_path / "nowhere", Cursor())


def test_foreign_files_in_the_folder_are_no_segments(tmp_path: Path) -> None:
    write(tmp_path, 1)
    for name in ("bookmark.json", "0000000000001.jsonl", "abc.jsonl", "00000000000².jsonl", ".000000000002.jsonl"):
        (tmp_path / name).write_text("{}")
    assert segments(tmp_path) == [1]


# -- crashes -----------------------------------------------------------------------------------------------


def test_a_spool_cut_at_every_byte_gives_exactly_the_lines_before_the_cut(tmp_path: Path) -> None:
    texts = write(tmp_path / "whole", 6)
    content = segment_path(tmp_path / "whole", 1).read_bytes()
    ends = [0]
    for text in texts:
        ends.append(ends[-1] + len(text) + 1)
    for cut in range(len(content) + 1):
        put(tmp_path / "cut", 1, content[:cut])
        damages: list[Damage] = []
        reader = Reader(tmp_path / "cut", on_damage=damages.append)
        whole = sum(end <= cut for end in ends) - 1
        assert [line.body for line in reader] == texts[:whole], cut
        assert damages == []  # a torn tail is waited for
        assert reader.cursor == (Cursor(1, ends[whole]) if cut else reader.cursor)
        reader.close()


def test_a_cut_segment_with_a_successor_sets_its_torn_tail_aside_once(tmp_path: Path) -> None:
    texts = write(tmp_path / "whole", 3)
    content = segment_path(tmp_path / "whole", 1).read_bytes()
    put(tmp_path / "cut", 2, content)
    for cut in range(len(content) + 1):
        put(tmp_path / "cut", 1, content[:cut])
        lines, damages = read_all(tmp_path / "cut")
        # Without its newline a line is still whole: its checksum says so.
        head = [text for index, text in enumerate(texts) if content.index(text) + len(text) <= cut]
        assert lines == head + texts, cut
        taken = sum(len(text) + 1 for text in head)
        if cut > taken:
            assert [(d.segment, d.offset, d.raw, d.reason) for d in damages] == [
                (1, taken, content[taken:cut], "torn tail")
            ]
        else:
            assert damages == []


def test_a_torn_tail_that_is_completed_later_is_read_then(tmp_path: Path) -> None:
    text = seal_line(body(1))
    put(tmp_path, 1, text[:20])
    reader = Reader(tmp_path)
    assert reader.read() == []
    put(tmp_path, 1, text)
    assert [line.body for line in reader.read()] == [text[:-1]]


def test_a_writer_after_a_crash_starts_a_new_file_and_never_touches_the_old_one(tmp_path: Path) -> None:
    first = Writer(tmp_path)
    first.append(body(1))
    torn = segment_path(tmp_path, 1).read_bytes() + b'{"v":1,"n":2,"te'
    put(tmp_path, 1, torn)  # the first writer was killed in mid-write
    second = Writer(tmp_path)
    assert segments(tmp_path) == [1]  # nothing is made before there is something to write
    second.append(body(3))
    assert segments(tmp_path) == [1, 2]
    assert segment_path(tmp_path, 1).read_bytes() == torn
    lines, damages = read_all(tmp_path)
    assert lines == [seal_line(body(1))[:-1], seal_line(body(3))[:-1]]
    assert [damage.reason for damage in damages] == ["torn tail"]


def test_a_writer_can_be_told_the_number_of_its_first_segment(tmp_path: Path) -> None:
    Writer(tmp_path, first=3_000_001).append(body(1))
    assert segments(tmp_path) == [3_000_001]
    later = Writer(tmp_path, first=2_000_001)  # never behind what is there
    assert later.end == Cursor(3_000_002, 0)
    later.append(body(2))
    assert segments(tmp_path) == [3_000_001, 3_000_002]


def test_what_was_appended_survives_the_writers_death_without_sync(tmp_path: Path) -> None:
    program = """
    import os, sys
    from pathlib import Path
    from crawler.workspace.files.spool import Writer
    writer = Writer(Path(sys.argv[1]))
    for number in range(20):
        writer.append(b'{"n":%d}' % number)
    os.kill(os.getpid(), 9)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program), str(tmp_path)], cwd=ROOT, check=False)
    assert done.returncode == -9
    lines, damages = read_all(tmp_path)
    assert [orjson.loads(line)["n"] for line in lines] == list(range(20))
    assert damages == []


def test_lines_that_arrive_while_the_reader_looks_for_the_next_segment_are_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Writer(tmp_path)
    first.append(body(1))
    reader = Reader(tmp_path)
    assert len(reader.read()) == 1
    real = spool.segments

    def meanwhile(folder: Path) -> list[int]:
        monkeypatch.setattr(spool, "segments", real)
        first.append(body(2))
        Writer(folder).append(body(3))
        return real(folder)

    monkeypatch.setattr(spool, "segments", meanwhile)
    assert [line.body for line in reader] == [seal_line(body(2))[:-1], seal_line(body(3))[:-1]]


# -- damage ------------------------------------------------------------------------------------------------


def flip(content: bytes, at: int, bit: int) -> bytes:
    changed = bytearray(content)
    changed[at] ^= 1 << bit
    return bytes(changed)


def test_every_flipped_bit_costs_its_own_line_and_no_other(tmp_path: Path) -> None:
    texts = write(tmp_path / "whole", 3)
    content = segment_path(tmp_path / "whole", 1).read_bytes()
    start = len(texts[0]) + 1
    end = start + len(texts[1])
    assert b"J" in texts[1] and b"*" in texts[1]  # one bit away from a newline
    for at in range(start, end):
        for bit in range(8):
            put(tmp_path / "bad", 1, flip(content, at, bit))
            lines, damages = read_all(tmp_path / "bad")
            assert lines == [texts[0], texts[2]], (at, bit)
            assert [(d.segment, d.offset) for d in damages] == [(1, start)], (at, bit)
            assert damages[0].raw == flip(content, at, bit)[start:end]


@pytest.mark.parametrize("seed", range(20))
def test_a_flipped_bit_in_every_line_gives_one_quarantine_each(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    texts = write(tmp_path / "whole", 12)
    rows = [bytearray(text) for text in texts]
    for row in rows:
        row[rng.randrange(1, len(row) - 2)] ^= 1 << rng.randrange(8)
    put(tmp_path / "bad", 1, b"".join(bytes(row) + b"\n" for row in rows))
    put(tmp_path / "bad", 2, seal_line(body(99)))
    lines, damages = read_all(tmp_path / "bad")
    assert lines == [seal_line(body(99))[:-1]]
    assert [damage.raw for damage in damages] == [bytes(row) for row in rows]
    assert {damage.reason for damage in damages} == {"checksum does not match"}


def test_bad_lines_between_good_ones_are_set_aside_with_their_places(tmp_path: Path) -> None:
    texts = write(tmp_path / "whole", 9)
    rows = [flip(text, 9, 1) if index % 3 == 1 else text for index, text in enumerate(texts)]
    put(tmp_path / "bad", 1, b"".join(row + b"\n" for row in rows))
    lines, damages = read_all(tmp_path / "bad")
    assert lines == [text for index, text in enumerate(texts) if index % 3 != 1]
    places = [sum(len(row) + 1 for row in rows[:index]) for index in (1, 4, 7)]
    assert [damage.offset for damage in damages] == places


def test_every_damaged_newline_costs_no_line(tmp_path: Path) -> None:
    texts = write(tmp_path / "whole", 4)
    content = segment_path(tmp_path / "whole", 1).read_bytes()
    places = [at for at, byte in enumerate(content) if byte == 10]
    for at in places:
        for bit in range(8):
            put(tmp_path / "bad", 1, flip(content, at, bit))
            put(tmp_path / "bad", 2, seal_line(body(9)))
            lines, damages = read_all(tmp_path / "bad")
            assert lines == [*texts, seal_line(body(9))[:-1]], (at, bit)
            assert damages == []


def test_lost_newlines_and_a_bad_line_before_a_good_one_cost_only_the_bad_line(tmp_path: Path) -> None:
    a, b, c = write(tmp_path / "whole", 3)
    put(tmp_path / "lost", 1, a + b + c + b"\n")
    assert read_all(tmp_path / "lost") == ([a, b, c], [])
    bad = flip(a, 5, 0)
    put(tmp_path / "both", 1, bad + b"?" + b + b"\n" + c + b"\n")
    lines, damages = read_all(tmp_path / "both")
    assert lines == [b, c]
    assert [damage.raw for damage in damages] == [bad]


def test_reading_can_stop_and_go_on_between_two_records_without_a_newline(tmp_path: Path) -> None:
    a, b, c = write(tmp_path / "whole", 3)
    put(tmp_path / "bad", 1, a + b"?" + b + b"\n" + c + b"\n")
    cursor, got = Cursor(), []
    for _ in range(3):
        reader = Reader(tmp_path / "bad", cursor)
        (line,) = reader.read(1)
        cursor = line.end
        got.append(line.body)
    assert got == [a, b, c]


@given(
    st.lists(st.one_of(st.integers(0, 99).map(body).map(seal_line), st.binary(max_size=80)), max_size=12),
    st.integers(1, 5),
)
@settings(max_examples=150, deadline=None)
def test_any_bytes_at_all_are_read_to_the_end_without_a_crash(parts: list[bytes], limit: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put(folder, 1, b"".join(parts))
        put(folder, 2, seal_line(body(1000)))
        damages: list[Damage] = []
        reader = Reader(folder, on_damage=damages.append)
        lines: list[Line] = []
        while got := reader.read(limit):
            lines += got
        reader.close()
        assert lines[-1].body == seal_line(body(1000))[:-1]
        assert all(is_whole(line.body) for line in lines)
        assert [line.end for line in lines] == sorted({line.end for line in lines})
        whole = sum(1 for part in parts if part.endswith(b'"}\n') and is_whole(part[:-1]))
        assert len(lines) - 1 <= whole
        size = sum(len(part) for part in parts)
        assert sum(len(line.body) for line in lines[:-1]) + sum(len(damage.raw) for damage in damages) <= size


# -- disks -------------------------------------------------------------------------------------------------

FULL_DISK = """
import errno, resource, signal, sys
from pathlib import Path
from crawler.workspace.files.spool import LogError, Writer

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
writer = Writer(Path(sys.argv[1]))
written = 0
try:
    while True:
        writer.append(b'{"n":%d}' % written)
        written += 1
except LogError as problem:
    assert problem.errno == errno.EFBIG, problem
    assert "make room" in str(problem), problem
for attempt in (lambda: writer.append(b'{"n":0}'), writer.sync):
    try:
        attempt()
    except LogError:
        continue
    raise SystemExit("a broken writer went on")
writer.close()
print(written)
"""


def test_a_full_disk_ends_the_writer_and_loses_nothing_that_was_appended(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    written = int(done.stdout)
    assert written > 10
    assert segment_path(tmp_path, 1).stat().st_size == 1000  # with a torn tail
    after = Writer(tmp_path)  # started again, with room
    after.append(b'{"n":-1}')
    lines, damages = read_all(tmp_path)
    assert [orjson.loads(line)["n"] for line in lines] == [*range(written), -1]
    assert [damage.reason for damage in damages] == ["torn tail"]


def test_a_failed_fsync_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path)
    writer.append(body(1))
    calls: list[int] = []

    def fail(descriptor: int) -> None:
        calls.append(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(spool.os, "fsync", fail)
    with pytest.raises(LogError, match="cannot be made durable"):
        writer.sync()
    for attempt in (writer.sync, lambda: writer.append(body(2))):
        with pytest.raises(LogError):
            attempt()
    writer.close()
    writer.close()
    assert len(calls) == 1


def test_the_segments_name_and_its_folders_name_are_durable_before_the_first_sync_returns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def note(descriptor: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{descriptor}").readlink()))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    folder = tmp_path / "results"
    writer = Writer(folder)
    writer.append(body(1))
    writer.sync()
    assert synced == [str(tmp_path), str(folder), str(segment_path(folder, 1))]
    writer.sync()
    assert len(synced) == 3  # nothing new: nothing to do


def test_a_reader_makes_an_unfinished_segment_durable_before_it_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, 4, segment_bytes=1)
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda number: synced.append(str(Path(f"/proc/self/fd/{number}").readlink())))
    reader = Reader(tmp_path, will_sync=True)
    reader.read()
    reader.sync()
    assert synced == [str(segment_path(tmp_path, number)) for number in (1, 2, 3, 4)]
    Reader(tmp_path).read()
    assert len(synced) == 4  # whoever builds nothing upon it does not pay for that


def test_two_writers_in_one_folder_do_not_share_a_segment(tmp_path: Path) -> None:
    first, second = Writer(tmp_path), Writer(tmp_path)
    first.append(body(1))
    with pytest.raises(LogError, match="cannot be started"):
        second.append(body(2))
    assert read_all(tmp_path)[0] == [seal_line(body(1))[:-1]]
