"""One sync for many files: everything that a file system holds becomes durable at once.

A thousand new files take a thousand journal commits with fsync, and one with this.
"""

from __future__ import annotations

import ctypes
import os


def _syncfs_of_libc() -> ctypes._NamedFuncPointer | None:
    try:
        function = ctypes.CDLL(None, use_errno=True).syncfs
    except (OSError, AttributeError):
        return None
    function.argtypes, function.restype = (ctypes.c_int,), ctypes.c_int
    return function


_SYNCFS = _syncfs_of_libc()


def sync_file_system(descriptor: int) -> None:
    """Make the file system durable that this descriptor is on. Raises OSError, for writes that failed since, too."""
    if _SYNCFS is None:
        os.sync()  # all file systems: slower, and as good
    elif _SYNCFS(descriptor) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
