"""PURE. A checksum inside of a small JSON object: its last member is a CRC-32 of all bytes before it.

One flipped bit is always noticed: in the object's own bytes it breaks the checksum; in the seal's name it makes the
object look like one of an older program, which had no seal, and then the object itself is as it was written.
"""

from __future__ import annotations

import zlib

_SEAL = b',"crc":"'
_LENGTH = len(_SEAL) + 8 + 2  # ,"crc":"01234567"}


def sealed(body: bytes) -> bytes:
    """The JSON object with its checksum. Anything that is not an object of at least one member stays as it is."""
    if not body.endswith(b"}") or len(body) < 3:
        return body
    return b'%b%b%08x"}' % (body[:-1], _SEAL, zlib.crc32(body[:-1]))


def unsealed(content: bytes) -> bytes | None:
    """The object without its seal; as it is, if it has none. None: it is not what was written."""
    cut = len(content) - _LENGTH
    if cut < 1 or content[cut : cut + len(_SEAL)] != _SEAL:
        return content
    is_whole = content[-2:] == b'"}' and content[cut + len(_SEAL) : -2] == b"%08x" % zlib.crc32(content[:cut])
    return content[:cut] + b"}" if is_whole else None
