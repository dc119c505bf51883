"""The note in a blob's file: a zstd skippable frame before the page's own, which every reader of zstd passes over.

    magic · size · "SRN1" · bytes of the page's frame · BLAKE2b of hash, these bytes and the rest · the note, compressed

The print binds a note to the blob that it was written for, and to a file of its length. What is not whole, of another
blob or of another program is no note; `damage_of_note` tells it from none at all.
"""

from __future__ import annotations

import hashlib
import struct
import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LONGEST_NOTE = 64 * 1024  # bytes; a longer one is not kept
HEAD = 16 * 1024  # bytes: nearly every note's frame is shorter
_LEVEL = 1
_MAGIC = 0x184D2A57
_ANY_MAGIC = 0x184D2A50  # the first of sixteen that mark a frame to be passed over
_FRAME = struct.Struct("<II")
_OWN = struct.Struct("<4sQ16s")
_TAG = b"SRN1"


def note_frame(note: bytes, digest: str, page_size: int) -> bytes:
    """The frame of a note, to be put before a page's frame of so many bytes; empty for no note, or one too long."""
    if not note or len(note) > LONGEST_NOTE:
        return b""
    data = zstd.compress(note, _LEVEL)
    own = _OWN.pack(_TAG, page_size, _print(digest, page_size, data))
    return _FRAME.pack(_MAGIC, len(own) + len(data)) + own + data


def start_of_page(content: bytes) -> int:
    """Where the page's own frame begins in a file: after all frames that are to be passed over."""
    start = 0
    while len(content) - start >= _FRAME.size:
        magic, size = _FRAME.unpack_from(content, start)
        if magic & ~0xF != _ANY_MAGIC:
            break
        start += _FRAME.size + size
    return min(start, len(content))


def frame_size(head: bytes) -> int:
    """Bytes of the note's frame at the beginning of a file; 0: there is none."""
    if len(head) < _FRAME.size + _OWN.size:
        return 0
    magic, size = _FRAME.unpack_from(head)
    is_ours = magic == _MAGIC and head[_FRAME.size :].startswith(_TAG)
    return _FRAME.size + size if is_ours and _OWN.size < size <= 2 * LONGEST_NOTE else 0


def note_in(head: bytes, digest: str, file_size: int) -> bytes:
    """The note at the beginning of a file of this size; empty: none, or not what was written for this blob."""
    size = frame_size(head)
    if not size or len(head) < size:
        return b""
    _, page_size, seal = _OWN.unpack_from(head, _FRAME.size)
    data = head[_FRAME.size + _OWN.size : size]
    if size + page_size != file_size or _print(digest, page_size, data) != seal:
        return b""
    try:
        decoder = zstd.ZstdDecompressor()
        note = decoder.decompress(data, LONGEST_NOTE)
    except zstd.ZstdError:
        return b""
    return note if decoder.eof else b""


def damage_of_note(content: bytes, digest: str) -> str | None:
    """What is wrong with what stands before the page in a whole file; None: nothing, or there is nothing."""
    start = start_of_page(content)
    if not start or (start == frame_size(content) and note_in(content, digest, len(content))):
        return None
    return "what was noted before the page is damaged; the page itself may be whole"


def _print(digest: str, page_size: int, data: bytes) -> bytes:
    return hashlib.blake2b(bytes.fromhex(digest) + page_size.to_bytes(8, "little") + data, digest_size=16).digest()
