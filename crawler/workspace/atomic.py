"""Whole files and folders, made durable: a crash leaves the old content or the new, never a part."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

OWNER_ONLY = 0o600  # of files: a workspace tells what was visited, and its state files decide what will be
OWNER_ONLY_FOLDER = 0o700


def open_own(path: Path, flags: int) -> int:
    """Open a file of the workspace, made for its owner alone. A symlink in its place is removed, never followed."""
    for _ in range(2):
        try:
            return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, OWNER_ONLY)
        except OSError as problem:
            if problem.errno != errno.ELOOP or not flags & os.O_CREAT:
                raise
        path.unlink(missing_ok=True)
    raise OSError(errno.ELOOP, "a symlink comes back in its place", str(path))


def read_own(path: Path) -> bytes:
    """The content of a file of the workspace. Raises OSError, for a symlink too."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def write_atomically(
    path: Path,
    content: bytes | Iterable[bytes],
    *,
    durable: bool = True,
    sync_name: bool = True,
    mode: int | None = None,
) -> None:
    """Replace a whole file: after a crash it holds the old content or the new, never a part.

    With `durable`, file and folder are synced, so that what was promised survives a power cut too. Without
    `sync_name`, the folder is not: a power cut may bring the old content back, whole. `mode`: the file's permissions.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, OWNER_ONLY)
    try:
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            for piece in (content,) if isinstance(content, bytes) else content:
                view = memoryview(piece)
                while view:
                    view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        scratch.replace(path)
    except BaseException:
        with suppress(OSError):
            scratch.unlink()
        raise
    if durable and sync_name:
        sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Make a file durable that others have written (any descriptor will do for that)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder as durable as their files."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno not in (errno.EINVAL, errno.EBADF):  # some file systems have no such thing
            raise
    finally:
        os.close(descriptor)


def free_bytes(place: Path) -> int | None:
    """Bytes that this user can still write where a file or folder lies, or will lie; None: that is not known."""
    for folder in (place, *place.parents):
        try:
            found = os.statvfs(folder)
        except FileNotFoundError:
            continue
        except OSError:
            return None
        return found.f_bavail * found.f_frsize
    return None
