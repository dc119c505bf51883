"""Packs: blobs of a site in one file with a dictionary, found by every reader, never served damaged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crawler.store.blobs import BlobDamaged
from crawler.store.file_store import FileStore
from crawler.store.packing import Packed, pack_blobs


def page(number: int, site: str = "a") -> bytes:
    menu = "".join(f"<li><a href='/{site}/{word**5:x}'>{word**3:o}</a></li>" for word in range(10, 90))
    frame = f"<!doctype html><html lang=en><title>{site}</title><ul>{menu}</ul><footer>{site}, here</footer>"
    return f"{frame}<p>Entry {number}: {number * 7919 % 1000} leaves and {number * 104729 % 977} cups.</p>".encode()


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store" / "html", writer="fetcher-01")


def packed(store: FileStore, site: str = "a.test") -> Packed:
    return pack_blobs(store, lambda digest: site, time.time() + 10)


def test_packed_pages_come_back_byte_for_byte_and_take_less_room(store: FileStore) -> None:
    pages = {store.put(page(number)): page(number) for number in range(300)}
    done = packed(store)
    assert (done.blobs, done.packs, done.damaged) == (300, 1, 0)
    assert done.bytes_after < done.bytes_before / 2, "pages of one site have much in common"
    assert list(store.loose_hashes()) == []
    assert set(store.hashes()) == pages.keys()
    for reader in (store, FileStore(store.root)):
        assert all(reader.get(digest) == body and reader.has(digest) for digest, body in pages.items())
    assert list(store.strangers()) == []


def test_a_reader_finds_what_was_packed_after_it_had_looked(store: FileStore) -> None:
    digest = store.put(page(1))
    reader = FileStore(store.root)
    assert reader.get(digest) == page(1)
    packed(store)
    assert reader.get(digest) == page(1)


def test_a_pack_is_as_old_as_the_newest_of_its_pages(store: FileStore) -> None:
    """`storage` counts what was written lately, and `[retention] blobs` what is old: packing makes nothing new."""
    digests = [store.put(page(number)) for number in range(3)]
    for age, digest in enumerate(digests, 1):
        os.utime(store.path_of(digest), (age * 1000, age * 1000))
    packed(store)
    assert [store.age_and_size(digest)[0] for digest in digests] == [3000.0] * 3


def test_a_page_that_is_in_a_pack_is_not_written_again(store: FileStore) -> None:
    digest = store.put(page(1))
    packed(store)
    store.put(page(1))
    assert not store.is_loose(digest)


def test_only_blobs_that_are_old_enough_are_packed(store: FileStore) -> None:
    old, new = store.put(page(1)), store.put(page(2))
    os.utime(store.path_of(old), (1, 1))
    assert pack_blobs(store, lambda digest: "", time.time() - 3600).blobs == 1
    assert (store.is_loose(old), store.is_loose(new)) == (False, True)


def test_each_site_has_a_pack_and_small_ones_share_one(store: FileStore) -> None:
    sites = {}
    for site, count in (("a", 25), ("b", 30), ("c", 3), ("d", 2)):
        sites |= {store.put(page(number, site)): site for number in range(count)}
    assert pack_blobs(store, sites.__getitem__, time.time() + 10).packs == 3
    assert all(store.get(digest) is not None for digest in sites)


def test_a_damaged_blob_stays_where_it_is_and_is_counted(store: FileStore) -> None:
    good, bad = store.put(page(1)), store.put(page(2))
    store.path_of(bad).write_bytes(b"not a frame")
    done = packed(store)
    assert (done.blobs, done.damaged) == (1, 1)
    assert store.is_loose(bad) and not store.is_loose(good)
    assert packed(store).damaged == 1


def test_a_blob_is_removed_from_its_pack_and_the_others_stay(store: FileStore) -> None:
    pages = {store.put(page(number)): page(number) for number in range(30)}
    packed(store)
    going = next(iter(pages))
    assert store.remove(going)
    assert not store.has(going) and store.get(going) is None
    assert not store.remove(going)
    assert all(store.get(digest) == body for digest, body in pages.items() if digest != going)
    for digest in pages:
        store.remove(digest)
    assert list((store.root / "packs").iterdir()) == [], "an empty pack is removed"


@pytest.mark.parametrize("place", [0, 9, 300, -1, -40, -60])
def test_a_flipped_bit_in_a_pack_is_found_and_never_served(store: FileStore, place: int) -> None:
    pages = {store.put(page(number)): page(number) for number in range(30)}
    packed(store)
    (path,) = (store.root / "packs").iterdir()
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    reader = FileStore(store.root)
    found = []
    for digest, body in pages.items():
        try:
            content = reader.get(digest)
        except BlobDamaged as problem:
            found.append(problem)
        else:
            assert content in (body, None)
    assert found or reader.packs.damaged or reader.get(next(iter(pages))) is not None
    if place in (0, -1, -40, -60):
        assert reader.packs.damaged, "the head, the index and the trailer are checked when a pack is opened"


def test_a_cut_pack_a_symlink_and_a_forged_name_are_refused(store: FileStore, tmp_path: Path) -> None:
    digest = store.put(page(1))
    packed(store)
    (path,) = (store.root / "packs").iterdir()
    whole = path.read_bytes()
    (store.root / "packs" / "0000000000000000.pack").write_bytes(whole[:-1])
    (tmp_path / "elsewhere").write_bytes(whole)
    (store.root / "packs" / "1111111111111111.pack").symlink_to(tmp_path / "elsewhere")
    (store.root / "packs" / "mine.pack").write_bytes(whole)
    path.unlink()
    reader = FileStore(store.root)
    assert reader.get(digest) is None
    assert sorted(reader.packs.damaged) == ["0000000000000000.pack", "1111111111111111.pack"]
    assert {stranger.name for stranger in reader.strangers()} == {"1111111111111111.pack", "mine.pack"}


KILLED = """
import os, signal, sys, time
from pathlib import Path
from crawler.store.file_store import FileStore
from crawler.store.packing import pack_blobs

root, deed, when, count = sys.argv[1:]
act, left = getattr(os, deed), int(count)

def watched(*words, **options):
    global left
    left -= 1
    if left == 0 and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    done = act(*words, **options)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

setattr(os, deed, watched)
pack_blobs(FileStore(Path(root)), lambda digest: "a.test", time.time() + 10)
"""


@pytest.mark.parametrize(
    ("deed", "when", "count"),
    [
        *(("fsync", "before", 1), ("replace", "before", 1), ("replace", "after", 1)),
        *(("unlink", "after", 1), ("unlink", "before", 17)),
    ],
)
def test_a_packing_that_is_killed_leaves_every_page_whole_and_the_next_one_ends_its_work(
    store: FileStore, deed: str, when: str, count: int
) -> None:
    pages = {store.put(page(number)): page(number) for number in range(30)}
    done = subprocess.run([sys.executable, "-c", KILLED, str(store.root), deed, when, str(count)], timeout=60)
    assert done.returncode == -signal.SIGKILL
    reader = FileStore(store.root)
    assert set(reader.hashes()) == pages.keys()
    assert all(reader.get(digest) == body for digest, body in pages.items())
    assert not any(reader.damage_of(digest) for digest in pages) and list(reader.strangers()) == []
    assert packed(store).damaged == 0
    assert all(store.get(digest) == body and not store.is_loose(digest) for digest, body in pages.items())
    assert len(list((store.root / "packs").iterdir())) == 1, "no page is in two packs"
    assert list((store.root / "tmp").iterdir()) == [], "what the killed one was writing is gone"


def test_a_damaged_file_beside_a_whole_copy_in_a_pack_is_found_and_the_copy_is_served(store: FileStore) -> None:
    digest = store.put(page(1))
    packed(store)
    store.put(page(1), is_anew=True)
    assert store.damage_of(digest) == []
    store.path_of(digest).write_bytes(b"not a frame")
    assert [str(store.path_of(digest))] == [problem.place for problem in store.damage_of(digest)]
    assert store.get(digest) == page(1)
    assert store.get_if_quick(digest) is None, "it is no damage yet: get finds the copy"
    packed(store)
    assert store.damage_of(digest) == [] and not store.is_loose(digest), "packing again leaves the whole one"


def damage_in_pack(store: FileStore, digest: str, place: Path | None = None) -> Path:
    """Flip a bit of this blob in this pack, or in the first one that has it."""
    pack = next(each for each in store.packs.all() if each.has(digest) and place in (None, each.path))
    frame, data = pack.frame(digest) or b"", pack.path.read_bytes()
    at = data.index(frame) + len(frame) // 2
    pack.path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    return pack.path


def test_a_copy_that_is_damaged_in_a_pack_goes_when_the_page_was_put_anew_and_packed(store: FileStore) -> None:
    pages = {store.put(page(number)): page(number) for number in range(10)}
    packed(store)
    bad, other = list(pages)[:2]
    os.utime(damage_in_pack(store, bad), (1000, 1000))
    again = FileStore(store.root, writer="fetcher-02")
    again.put(pages[bad], is_anew=True)
    assert again.is_whole(bad) and sorted(again.hashes()) == sorted(pages), "each once"
    done = pack_blobs(again, lambda digest: "a.test", 1.0)
    assert (done.blobs, done.left_out) == (0, 1), "the new file is too young to be packed, and whole"
    assert again.damage_of(bad) == [] and again.get(bad) == pages[bad]
    assert again.age_and_size(other)[0] == 1000, "the pack is as old as it was"
    packed(again)
    assert sorted(again.hashes()) == sorted(pages) and list(again.loose_hashes()) == []
    assert all(again.get(digest) == body for digest, body in pages.items())


def test_a_page_that_is_damaged_in_one_pack_and_whole_in_another_is_there(store: FileStore) -> None:
    """As an earlier version left it, which packed a page that was put anew and kept its damaged copy."""
    pages = {store.put(page(number)): page(number) for number in range(10)}
    packed(store)
    (first,) = (store.root / "packs").iterdir()
    before = first.read_bytes()
    for digest in pages:
        store.remove(digest)
    bad = store.put(pages[next(iter(pages))])
    packed(store)
    first.write_bytes(before)
    damage_in_pack(FileStore(store.root), bad, first)
    reader = FileStore(store.root)
    assert reader.get(bad) == pages[bad] and len(reader.damage_of(bad)) == 1
    assert sorted(reader.hashes()) == sorted(pages)
    assert packed(reader).left_out == 1 and reader.damage_of(bad) == []
    assert all(reader.get(digest) == body for digest, body in pages.items())


def test_a_damaged_young_file_goes_where_a_pack_has_the_page_whole(store: FileStore) -> None:
    digest = store.put(page(1))
    packed(store)
    store.put(page(1), is_anew=True)
    store.path_of(digest).write_bytes(b"not a frame")
    assert pack_blobs(store, lambda digest: "", 1.0).left_out == 1
    assert not store.is_loose(digest) and store.get(digest) == page(1)


def test_a_page_of_which_no_copy_is_whole_keeps_them_all(store: FileStore) -> None:
    digest = store.put(page(1))
    packed(store)
    store.put(page(1), is_anew=True)
    store.path_of(digest).write_bytes(b"not a frame")
    damage_in_pack(store, digest)
    reader = FileStore(store.root)
    done = packed(reader)
    assert (done.left_out, done.damaged) == (0, 1) and len(reader.damage_of(digest)) == 2


def test_nothing_of_a_removed_page_is_left_in_its_pack_not_even_in_the_dictionary(store: FileStore) -> None:
    secret = "".join(f"{number * 7919 % 100_003:05d}" for number in range(1, 400))
    pages = [f"{page(number).decode()}<p>{secret if number < 15 else number}</p>".encode() for number in range(40)]
    digests = [store.put(body) for body in pages]
    packed(store)
    (before,) = store.packs.all()
    assert secret[:200].encode() in before.dictionary, "a dictionary has pieces of pages, as they are"
    assert store.remove_all(set(digests[:15])) == 15
    (after,) = FileStore(store.root).packs.all()
    assert secret[:40].encode() not in after.dictionary
    assert [store.get(digest) for digest in digests] == [None] * 15 + pages[15:]


def test_a_damaged_page_of_a_pack_stays_damaged_when_another_one_is_removed(store: FileStore) -> None:
    digests = [store.put(page(number)) for number in range(10)]
    packed(store)
    (pack,) = store.packs.all()
    frame = pack.frame(digests[0]) or b""
    data = pack.path.read_bytes()
    at = data.index(frame) + len(frame) // 2
    pack.path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    changed = FileStore(store.root)
    assert changed.remove(digests[1])
    assert len(changed.damage_of(digests[0])) == 1
    assert all(changed.get(digest) == page(number) for number, digest in enumerate(digests) if number > 1)


def test_a_pack_whose_head_names_a_dictionary_longer_than_itself_is_refused(store: FileStore) -> None:
    store.put(page(1))
    packed(store)
    (path,) = (store.root / "packs").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:8] + b"\xff\xff\xff\xff" + data[12:])
    (problem,) = (reader := FileStore(store.root)).packs.all() or reader.packs.damaged.values()
    assert "more than it has" in str(problem)
