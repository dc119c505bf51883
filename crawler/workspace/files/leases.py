"""Domain leases: locked files. The kernel frees them when the process dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from crawler.workspace.atomic import open_own, read_own, write_atomically

_LARGEST = 10**19  # a token has twenty digits in its file
_FLOOR = ".floor"  # the greatest token of all leases whose files were removed


class Lease:
    """See `crawler.workspace.door.Claim`. `token` counts the claims of this domain; the lock file keeps it."""

    __slots__ = ("_descriptor", "token")

    def __init__(self, descriptor: int, token: int) -> None:
        self._descriptor: int | None = descriptor
        self.token = token

    def release(self) -> None:
        """Safe to call twice."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def try_lease(path: Path) -> Lease | None:
    """Lock a lease file; None if another process holds it.

    The same kind of lock as filelock's, at a tenth of its cost: every domain has one.
    """
    descriptor = open_own(path, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.fstat(descriptor).st_nlink:  # removed between opening and locking it: it is nobody's lease any more
            os.close(descriptor)
            return None
        token = _next_token(descriptor, path.parent)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return Lease(descriptor, token)


def is_free(path: Path) -> bool:
    """Is this lease free now? An error counts as held, because the caller wants to delete something."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def remove_lease(path: Path, lease: Lease) -> None:
    """Remove the file of a lease that the caller holds, and release it. Tokens go on from the greatest one removed."""
    floor = path.parent / _FLOOR
    if lease.token > _read_floor(path.parent):
        write_atomically(floor, b"%020d\n" % lease.token, durable=False)
    path.unlink(missing_ok=True)
    lease.release()


def _read_floor(folder: Path) -> int:
    try:
        content = read_own(folder / _FLOOR)
    except OSError:
        return 0
    return int(content) % _LARGEST if content.strip().isdigit() else 0


def _next_token(descriptor: int, folder: Path) -> int:
    """One more than the last holder's. Only the holder of the lock reads or writes it."""
    content = os.pread(descriptor, 24, 0)
    last = int(content) if content.strip().isdigit() else _read_floor(folder)
    token = last % _LARGEST + 1
    os.pwrite(descriptor, b"%020d\n" % token, 0)
    return token
