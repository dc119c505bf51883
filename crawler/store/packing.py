"""Loose blobs become packs: one for each site, with a dictionary of what its pages have in common.

A pack is whole and durable before the files that it replaces go, so a kill at any moment leaves every blob in at least
one of the two places; the next packing removes the files that the killed one had no time for. A damaged blob stays
where it is, and is counted, unless a whole copy of it is there: then the damaged one goes. One packing at a time, and
no removal meanwhile: the caller sees to that. Crawls may go on.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from crawler.store.blobs import BlobDamaged
from crawler.store.file_store import FileStore
from crawler.store.pack_file import Pack, dictionary_of, sampled, write_pack

MOST_IN_A_PACK = 10_000  # blobs
_SCRATCH = "pack"
FEWEST_OF_A_SITE = 20  # blobs; those of smaller sites go into packs together


@dataclass
class Packed:
    """What a packing did: blobs and packs, and the bytes on disk before and after."""

    blobs: int = 0
    packs: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    damaged: int = 0
    left_out: int = 0  # copies that were damaged, or double, while a whole one is there


def pack_blobs(store: FileStore, site_of: Callable[[str], str], older_than: float) -> Packed:
    """Pack the blobs whose files were written before `older_than` (seconds since 1970). `site_of` groups hashes."""
    store.clear_scratch(_SCRATCH)
    done = Packed()
    groups: dict[str, list[str]] = {}
    for digest in store.loose_hashes():
        is_young = store.path_of(digest).stat().st_mtime >= older_than
        if store.is_packed_whole(digest):
            is_damaged = not store.is_loose_whole(digest)
            if is_damaged or not is_young:
                _remove_file(store, digest, done)
                done.left_out += is_damaged
        elif not is_young:
            groups.setdefault(site_of(digest), []).append(digest)
    rest = [digest for site in sorted(groups) if len(groups[site]) < FEWEST_OF_A_SITE for digest in groups[site]]
    together = [groups[site] for site in sorted(groups) if len(groups[site]) >= FEWEST_OF_A_SITE]
    for group in [*together, rest]:
        for start in range(0, len(group), MOST_IN_A_PACK):
            _pack(store, group[start : start + MOST_IN_A_PACK], done)
    done.left_out += store.leave_out_copies()
    return done


def _pack(store: FileStore, digests: list[str], done: Packed) -> None:
    def whole() -> Iterator[tuple[str, bytes]]:
        for digest in digests:
            try:
                body = store.get(digest)
            except BlobDamaged:
                continue
            if body is not None:
                yield digest, body

    if next(whole(), None) is None:
        done.damaged += len(digests)
        return
    dictionary = dictionary_of(sampled(body for _, body in whole()))
    place = write_pack(store.scratch(_SCRATCH), store.pack_folder(), whole(), dictionary, store.mode)
    store.packs.look_again()
    pack = Pack(place)
    try:
        packed = set(pack.hashes())
        done.blobs += len(packed)
        done.damaged += len(digests) - len(packed)
        done.packs += 1
        done.bytes_after += pack.size
    finally:
        pack.close()
    newest = max(store.path_of(digest).stat().st_mtime for digest in packed)
    os.utime(place, (newest, newest))  # a pack is as old as its pages: for lifetimes, and for the growth of the store
    for digest in packed:
        _remove_file(store, digest, done)


def _remove_file(store: FileStore, digest: str, done: Packed) -> None:
    """Remove the file of a blob that is in a pack."""
    path = store.path_of(digest)
    done.bytes_before += path.stat().st_size
    path.unlink()
