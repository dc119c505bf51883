"""A note beside a blob: it comes back as it was written for this very file, or not at all."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.store.blobs import BlobStore
from crawler.store.file_store import SCRATCH, FileStore, compressed, digest_of
from crawler.store.note_frame import LONGEST_NOTE, frame_size, note_frame, note_in
from crawler.store.packing import pack_blobs

PAGE = b"<!doctype html><title>Tea</title><p>" + b"leaves and water " * 300
NOTE = b"title Tea, no links"


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store" / "html", writer="fetcher-01")


def with_head(store: FileStore, head: bytes) -> str:
    """The blob of the page, with these bytes before its frame."""
    digest = store.put(PAGE)
    store.path_of(digest).write_bytes(head + compressed(PAGE))
    return digest


def test_a_note_comes_back_and_the_page_is_what_it_was(store: FileStore) -> None:
    door: BlobStore = store
    digest = door.put(PAGE, note=NOTE)
    assert door.note_of(digest) == NOTE
    assert door.get(digest) == door.get_if_quick(digest) == PAGE
    assert store.damage_of(digest) == []


def test_plain_zstd_gives_the_page_alone(store: FileStore, tmp_path: Path) -> None:
    path = store.path_of(store.put(PAGE, note=NOTE))
    try:
        done = subprocess.run(["zstd", "-dc", path], capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("no zstd command here")
    assert done.stdout == PAGE


def test_no_note_is_empty_and_no_blob_is_none(store: FileStore) -> None:
    assert store.note_of(digest_of(b"not there")) is None
    assert store.note_of(store.put(PAGE)) == b""
    assert store.note_of(store.put(b"<p>long", note=os.urandom(LONGEST_NOTE + 1))) == b""
    empty = store.put(b"<p>cut by a power cut")
    store.path_of(empty).write_bytes(b"")
    assert store.note_of(empty) is None, "as it was before notes: no blob"


def test_a_note_longer_than_the_first_read_is_read_whole(store: FileStore) -> None:
    note = os.urandom(LONGEST_NOTE)
    assert store.note_of(store.put(PAGE, note=note)) == note


def test_a_note_of_another_blob_is_none_and_is_reported(store: FileStore) -> None:
    frame = compressed(PAGE)
    digest = with_head(store, note_frame(NOTE, digest_of(b"other"), len(frame)))
    assert store.note_of(digest) == b"" and store.get(digest) == PAGE
    (damage,) = store.damage_of(digest)
    assert "the page itself may be whole" in str(damage)


def test_a_page_that_is_cut_off_has_no_note_so_that_it_is_read_and_found_out(store: FileStore) -> None:
    digest = store.put(PAGE, note=NOTE)
    path = store.path_of(digest)
    path.write_bytes(path.read_bytes()[:-1])
    assert store.note_of(digest) == b""


@pytest.mark.parametrize(
    "head",
    [
        struct.pack("<II", 0x184D2A50, 4) + b"else",  # of another program
        struct.pack("<II", 0x184D2A57, 0xFFFFFF) + b"SRN1",  # it says that it is longer than the file
        struct.pack("<II", 0x184D2A57, 32) + b"SRN1" + bytes(28),
    ],
)
def test_a_strange_frame_before_the_page_is_no_note_and_is_reported(store: FileStore, head: bytes) -> None:
    digest = with_head(store, head)
    assert store.note_of(digest) == b""
    assert len(store.damage_of(digest)) == 1


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_gives_no_other_note_and_verify_finds_it(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    store = FileStore(tmp_path_factory.mktemp("flip") / "html", writer="fetcher-01")
    digest = store.put(PAGE, note=NOTE)
    path = store.path_of(digest)
    content = bytearray(path.read_bytes())
    size = frame_size(bytes(content))
    content[place % size] ^= 1 << bit
    path.write_bytes(content)
    assert store.note_of(digest) == b""
    assert len(store.damage_of(digest)) == 1


def test_a_note_that_expands_without_end_is_none(store: FileStore) -> None:
    bomb = note_frame(bytes(LONGEST_NOTE), digest_of(PAGE), 7)
    assert note_in(bomb, digest_of(PAGE), len(bomb) + 7) == bytes(LONGEST_NOTE)
    import crawler.store.note_frame as module

    own = module._OWN
    data = module.zstd.compress(bytes(50_000_000))
    seal = module._print(digest_of(PAGE), 7, data)
    forged = struct.pack("<II", 0x184D2A57, own.size + len(data)) + own.pack(b"SRN1", 7, seal) + data
    assert note_in(forged, digest_of(PAGE), len(forged) + 7) == b""


def test_a_note_behind_a_symlink_or_in_a_pipe_is_none(store: FileStore, tmp_path: Path) -> None:
    digest = store.put(PAGE, note=NOTE)
    store.path_of(digest).rename(tmp_path / "elsewhere")
    store.path_of(digest).symlink_to(tmp_path / "elsewhere")
    assert store.note_of(digest) is None
    store.path_of(digest).unlink()
    os.mkfifo(store.path_of(digest))
    assert store.note_of(digest) is None


def test_a_renewed_note_takes_its_place_with_the_sync_that_makes_it_durable(store: FileStore) -> None:
    digest = store.put(PAGE, note=NOTE)
    store.sync()
    store.renew_note(digest, b"another")
    assert store.note_of(digest) == NOTE
    store.sync_if_dirty()
    assert store.note_of(digest) == b"another" and store.get(digest) == PAGE and store.damage_of(digest) == []
    assert list((store.root / SCRATCH).iterdir()) == []


def test_a_renewed_note_of_a_killed_writer_is_gone_with_its_scratch_file(store: FileStore) -> None:
    digest = store.put(PAGE, note=NOTE)
    store.renew_note(digest, b"another")
    FileStore(store.root, writer="fetcher-01")
    assert store.note_of(digest) == NOTE and list((store.root / SCRATCH).iterdir()) == []


def test_the_note_of_a_packed_blob_is_gone_and_renewing_it_does_nothing(store: FileStore) -> None:
    digest = store.put(PAGE, note=NOTE)
    waits = store.put(PAGE + b"!", note=NOTE)
    store.renew_note(waits, b"another")
    pack_blobs(store, lambda digest: "a.test", 2**40)
    assert store.note_of(digest) == b"" and store.get(digest) == PAGE
    store.renew_note(digest, NOTE)
    store.sync()
    assert store.note_of(digest) == store.note_of(waits) == b"" and not store.is_loose(waits)
    assert list((store.root / SCRATCH).iterdir()) == []
