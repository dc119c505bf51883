"""Whole files and folders, made durable: a crash leaves the old content or the new, never a part."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def write_atomically(
    path: Path, content: bytes, *, durable: bool = True, sync_name: bool = True, mode: int | None = None
) -> None:
    """Replace a whole file: after a crash it holds the old content or the new, never a part.

    With `durable`, file and folder are synced, so that what was promised survives a power cut too. Without
    `sync_name`, the folder is not: a power cut may bring the old content back, whole. `mode`: the file's permissions.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        try:
            if mode is not None:
                os.fchmod(descriptor, mode)
            view = memoryview(content)
            while view:
                view = view[os.write(descriptor, view) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        scratch.replace(path)
    except OSError:
        try:
            scratch.unlink()
        except OSError:
            pass
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
