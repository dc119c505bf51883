"""A workspace folder that is there as a whole or not at all: made beside its place, and renamed at the end.

What a killed maker leaves is known by its name, and goes with the next one.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from crawler.model.errors import sentence
from crawler.workspace.atomic import OWNER_ONLY_FOLDER, sync_folder
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace


@contextmanager
def whole_folder(place: Path) -> Iterator[Path]:
    """A folder that becomes `place`, which must be empty or missing. If the work fails, nothing stays of it.

    Raises WorkspaceError.
    """
    place = place.resolve()
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise WorkspaceError(f"{place} is not an empty folder, and nothing is written over; name another one")
    scratch = place.with_name(f".{place.name}.exporting")
    if FileWorkspace(scratch).is_role_taken("supervisor"):
        raise WorkspaceError(f"another export to {place} is under way; wait until it has ended, or name another folder")
    try:
        if scratch.exists():
            shutil.rmtree(scratch)
        scratch.mkdir(OWNER_ONLY_FOLDER, parents=True)
        try:
            yield scratch
            sync_folder(scratch)
            scratch.rename(place)
        except BaseException:
            shutil.rmtree(scratch, ignore_errors=True)
            raise
        sync_folder(place.parent)
    except WorkspaceError:  # some are errors of the system, too
        raise
    except OSError as problem:
        raise WorkspaceError(f"cannot write {place}: {sentence(problem)}") from None
