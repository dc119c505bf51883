"""The store as files: what is put comes back, and nothing else does."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.errors import sentence
from crawler.model.records import PageResult, RecordError, dump, parse
from crawler.store.blobs import BlobDamaged, BlobStore, NotAHash
from crawler.store.file_store import SUFFIX, FileStore, SymlinkInStore, compressed, digest_of

PAGE = b"<!doctype html><title>Tea</title><p>" + b"leaves and water " * 300
NO_HASHES = ["", "..", "../../etc/passwd", "/etc/passwd", "a" * 63, "A" * 64, "a" * 65, "a" * 64 + "\n", "é" * 64]


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store" / "html", writer="fetcher-01")


def test_what_was_put_comes_back_byte_for_byte(store: FileStore) -> None:
    door: BlobStore = store
    digest = door.put(PAGE)
    assert digest == digest_of(PAGE)
    assert door.get(digest) == PAGE
    assert door.has(digest)
    assert list(door.hashes()) == [digest]
    door.sync()


def test_small_blobs_with_a_file_of_their_own_are_read_at_once(store: FileStore) -> None:
    small, large = store.put(b"<p>small"), store.put(os.urandom(100_000))
    assert store.get_if_quick(small) == b"<p>small"
    assert store.get_if_quick(large) is None and store.get_if_quick(digest_of(b"not there")) is None


def test_a_damaged_small_blob_is_not_read_at_once_but_reported(store: FileStore) -> None:
    digest = store.put(PAGE)
    store.path_of(digest).write_bytes(compressed(b"another page"))
    with pytest.raises(BlobDamaged):
        store.get_if_quick(digest)


def test_a_small_blob_behind_a_symlink_is_not_read_at_once_but_reported(store: FileStore, tmp_path: Path) -> None:
    digest = store.put(PAGE)
    store.path_of(digest).rename(tmp_path / "elsewhere")
    store.path_of(digest).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BlobDamaged):
        store.get_if_quick(digest)


def test_a_blob_lies_where_its_hash_says_and_holds_a_checked_frame(store: FileStore) -> None:
    digest = store.put(PAGE)
    path = store.root / digest[:2] / digest[2:4] / f"{digest}.html.zst"
    assert path == store.path_of(digest)
    frame = path.read_bytes()
    assert frame[:4] == b"\x28\xb5\x2f\xfd"
    assert frame[4] & 4, "the frame says that a checksum ends it"
    assert len(frame) < len(PAGE) / 5


def test_a_blob_opens_with_plain_zstd(store: FileStore) -> None:
    try:
        done = subprocess.run(["zstd", "-dc", store.path_of(store.put(PAGE))], capture_output=True, check=True)
    except FileNotFoundError:
        pytest.skip("no zstd command here")
    assert done.stdout == PAGE


def test_a_name_that_is_there_means_done(store: FileStore) -> None:
    digest = store.put(PAGE)
    before = store.path_of(digest).stat()
    assert store.put(PAGE) == digest
    assert store.path_of(digest).stat().st_ino == before.st_ino


def test_nothing_is_left_in_the_scratch_folder(store: FileStore) -> None:
    store.put(PAGE)
    assert list((store.root / "tmp").iterdir()) == []


def test_a_writer_removes_what_its_predecessor_was_writing_when_it_died(store: FileStore) -> None:
    (store.root / "tmp" / "fetcher-01-7").write_bytes(b"half")
    (store.root / "tmp" / "fetcher-02-7").write_bytes(b"of another that may be at work")
    FileStore(store.root, writer="fetcher-01")
    assert [path.name for path in (store.root / "tmp").iterdir()] == ["fetcher-02-7"]


def test_an_empty_file_in_a_blobs_place_is_no_blob_and_is_written_anew(store: FileStore) -> None:
    """A power cut can leave a name whose content was never written."""
    digest = store.put(PAGE)
    os.truncate(store.path_of(digest), 0)
    assert not store.has(digest)
    assert store.get(digest) is None
    assert list(store.hashes()) == []
    store.put(PAGE)
    assert store.get(digest) == PAGE


@pytest.mark.parametrize(("mode", "folder"), [(0o600, 0o700), (0o640, 0o750), (0o644, 0o755)])
def test_permissions_are_those_of_the_config_whatever_the_umask(tmp_path: Path, mode: int, folder: int) -> None:
    before = os.umask(0o077)
    try:
        store = FileStore(tmp_path / "html", writer="fetcher-01", mode=mode)
        path = store.path_of(store.put(PAGE))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    for level in (path.parent, path.parent.parent, store.root):
        assert stat.S_IMODE(level.stat().st_mode) == folder


def test_a_full_disk_leaves_no_name_and_no_scratch_file(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        store.put(PAGE)
    monkeypatch.undo()
    assert list(store.hashes()) == []
    assert list((store.root / "tmp").iterdir()) == []


# -- damage and tricks --------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found_wherever_it_is(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    """Found, or of no effect: a frame's header can say the same in two ways."""
    store = FileStore(tmp_path_factory.mktemp("flip") / "html", writer="fetcher-01")
    digest = store.put(PAGE)
    path = store.path_of(digest)
    frame = bytearray(path.read_bytes())
    frame[place % len(frame)] ^= 1 << bit
    path.write_bytes(frame)
    try:
        assert store.get(digest) == PAGE
    except BlobDamaged:
        pass


def test_a_flipped_bit_in_the_content_is_damage(store: FileStore) -> None:
    digest = store.put(PAGE)
    frame = bytearray(store.path_of(digest).read_bytes())
    frame[len(frame) // 2] ^= 1
    store.path_of(digest).write_bytes(frame)
    with pytest.raises(BlobDamaged, match=digest):
        store.get(digest)


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (compressed(PAGE)[:-1], "cut off"),
        (compressed(PAGE) + b"more", "follows its end"),
        (compressed(PAGE) + compressed(b"more"), "follows its end"),
        (compressed(PAGE + b"!"), "another hash"),
        (b"<!doctype html>", "does not decompress"),
    ],
)
def test_what_is_not_the_blob_says_why(store: FileStore, frame: bytes, reason: str) -> None:
    digest = store.put(PAGE)
    store.path_of(digest).write_bytes(frame)
    with pytest.raises(BlobDamaged, match=reason):
        store.get(digest)


@pytest.mark.parametrize("name", NO_HASHES)
def test_a_name_that_is_no_hash_is_refused_everywhere(store: FileStore, name: str) -> None:
    for refused in (store.get, store.has, store.path_of, store.frame, lambda digest: store.put(PAGE, digest)):
        with pytest.raises(NotAHash):
            refused(name)
    assert list(store.hashes()) == []


def test_a_symlink_in_a_blobs_place_is_never_followed(store: FileStore, tmp_path: Path) -> None:
    digest = store.put(PAGE)
    elsewhere = tmp_path / "elsewhere"
    store.path_of(digest).rename(elsewhere)
    store.path_of(digest).symlink_to(elsewhere)
    assert not store.has(digest)
    with pytest.raises(BlobDamaged, match="symlink"):
        store.get(digest)
    store.put(PAGE)  # takes the symlink's place; what it led to stays
    assert store.get(digest) == PAGE
    assert not store.path_of(digest).is_symlink()
    assert elsewhere.exists()


def test_a_folder_behind_a_symlink_is_not_entered(store: FileStore, tmp_path: Path) -> None:
    digest = store.put(PAGE)
    for level in (store.path_of(digest).parent, store.path_of(digest).parent.parent):
        elsewhere = tmp_path / f"elsewhere-{level.name}"
        level.rename(elsewhere)
        level.symlink_to(elsewhere)
        assert not store.has(digest)
        with pytest.raises(BlobDamaged):
            store.get(digest)
        with pytest.raises(OSError, match="a symbolic link is in the place of a folder"):
            store.put(PAGE)
        assert list(store.hashes()) == []
        assert list(store.strangers()) == [level]
        level.unlink()
        elsewhere.rename(level)


def test_a_pipe_in_a_blobs_place_does_not_hang_a_reader(store: FileStore) -> None:
    digest = store.put(PAGE)
    store.path_of(digest).unlink()
    os.mkfifo(store.path_of(digest))
    assert not store.has(digest)
    with pytest.raises(BlobDamaged):
        store.get(digest)


def test_forged_names_are_strangers_and_never_blobs(store: FileStore) -> None:
    digest = store.put(PAGE)
    folder = store.path_of(digest).parent
    forged = [
        folder / f"{'0' * 64}{SUFFIX}",  # in the folder of another
        folder / f"{digest}.html",
        folder / f"{digest.upper()}{SUFFIX}",
        folder / f"{digest}x{SUFFIX}",
        store.root / f"{digest}{SUFFIX}",
        store.root / "zz",
    ]
    for path in forged:
        path.write_bytes(compressed(PAGE))
    assert list(store.hashes()) == [digest]
    assert sorted(store.strangers()) == sorted(forged)


def test_a_blob_that_expands_without_end_is_refused(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crawler.store.file_store.LONGEST_BLOB", 1024 * 1024)
    digest = store.put(b"\0" * (8 * 1024 * 1024))
    with pytest.raises(BlobDamaged, match="expands to more"):
        store.get(digest)


@pytest.mark.parametrize("name", NO_HASHES)
def test_a_result_with_a_forged_hash_is_no_record(name: str) -> None:
    """It is quarantined before anybody asks the store for it."""
    with pytest.raises(RecordError, match="content hash"):
        parse(dump(PageResult(1, "https://a.test/", "https://a.test/", "a.test", "", "processed", content_hash=name)))


@pytest.mark.parametrize("name", ["", "tmp", "packs"])
def test_a_link_in_the_place_of_a_folder_of_the_store_is_named_and_nothing_is_written_there(
    tmp_path: Path, name: str
) -> None:
    """The store as a whole may be a link, which is the folder above."""
    root, elsewhere = tmp_path / "store" / "html", tmp_path / "elsewhere"
    elsewhere.mkdir()
    place = root / name if name else root
    place.parent.mkdir(parents=True)
    place.symlink_to(elsewhere)
    writing = (
        lambda: FileStore(root, writer="fetcher-01"),
        lambda: FileStore(root).pack_folder(),
        lambda: FileStore(root).clear_scratch("pack"),
        lambda: FileStore(root).scratch("pack"),
    )
    for deed in writing:
        with pytest.raises(SymlinkInStore) as caught:
            deed()
        assert "a symbolic link is in the place of a folder" in sentence(caught.value)
        assert sentence(caught.value).endswith(f": {place}")
    assert list(elsewhere.iterdir()) == []


def test_a_link_or_a_file_in_the_place_of_a_folder_of_blobs_is_named_whole(store: FileStore, tmp_path: Path) -> None:
    digest, elsewhere = digest_of(PAGE), tmp_path / "elsewhere"
    elsewhere.mkdir()
    for place in (store.path_of(digest).parent.parent, store.path_of(digest).parent):
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(elsewhere)
        with pytest.raises(SymlinkInStore, match="put the folder itself") as caught:
            store.put(PAGE)
        assert caught.value.filename == str(place)
        place.unlink()
        place.write_bytes(b"")
        with pytest.raises(NotADirectoryError, match="no folder") as other:
            store.put(PAGE)
        assert other.value.filename == str(place)
        place.unlink()
    assert list(elsewhere.iterdir()) == [] and list((store.root / "tmp").iterdir()) == []
