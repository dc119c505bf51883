"""The door of the store: blobs by the SHA-256 of their content. Anything that keeps bytes can stand behind it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Protocol

from crawler.model.errors import SumiError

_HASH = re.compile(r"[0-9a-f]{64}")


class BlobDamaged(SumiError):
    """A blob is there, and is not what its name says. `reason` says how that shows."""

    def __init__(self, digest: str, place: str, reason: str) -> None:
        super().__init__(f"{place} is damaged: {reason}")
        self.digest = digest
        self.place = place
        self.reason = reason


class NotAHash(SumiError, ValueError):
    """What was given is no name of a blob."""


def checked_hash(digest: str) -> str:
    """The digest, if it is one: 64 hex digits in lower case. Raises NotAHash. No other name gets near a path."""
    if not isinstance(digest, str) or _HASH.fullmatch(digest) is None:
        raise NotAHash(f"no SHA-256 in hex: {str(digest)[:80]!r}")
    return digest


class BlobStore(Protocol):
    """Blobs, each under the SHA-256 of its decoded content, in hex. A blob never changes.

    Every method raises NotAHash for a name that is no hash, and OSError if the storage fails.
    """

    def put(self, body: bytes, digest: str | None = None, *, is_anew: bool = False, note: bytes = b"") -> str:
        """Keep these bytes and return their hash; `digest` is that hash, where the caller has it.

        A blob that is there already stays as it is, unless it was found damaged and `is_anew` asks for it. When this
        returns, every reader finds the blob, whole; it survives the death of this process, and a power cut once `sync`
        has returned. A `note` is kept beside a blob that is written now, if the storage can; it is no part of the blob.
        """
        ...

    def get(self, digest: str) -> bytes | None:
        """The bytes; None: there is no such blob. Raises BlobDamaged if what is there does not have this hash."""
        ...

    def has(self, digest: str) -> bool:
        """Is there such a blob? Says nothing about its content."""
        ...

    def get_if_quick(self, digest: str) -> bytes | None:
        """The bytes of a blob that can be read at once; None: there may be one all the same, and whoever has other work
        asks `get` for it in a thread. Raises BlobDamaged.
        """
        ...

    def note_of(self, digest: str) -> bytes | None:
        """What was noted beside a blob; empty: nothing that is whole. None: there is no such blob. Its content is not
        looked at.
        """
        ...

    def renew_note(self, digest: str, note: bytes) -> None:
        """Note something else beside a blob, from the next `sync` of this store on, if the storage can."""
        ...

    def hashes(self) -> Iterator[str]:
        """The hash of every blob, each once, in no order that matters. What is no blob is passed over."""
        ...

    def sync(self) -> None:
        """Make everything that was put so far, by any process, durable."""
        ...
