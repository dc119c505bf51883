"""`reset --purge`: what was moved aside is deleted by a process of its own, which nobody waits for.

It is renamed first: what a killed purge leaves is known by its name, and goes with the next one.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from crawler.database.completed_map import runs_folder
from crawler.model.errors import SumiError
from crawler.model.settings import Config
from crawler.model.shown_text import counted
from crawler.workspace.keeping import Kept
from crawler.workspace.opening import open_keeping, open_schemas

_MARK = ".purging-"
_CODE = "import sys; from crawler.supervise.purge import remove_all; remove_all(sys.argv[1:])"


def mark_for_purge(moved: list[str]) -> None:
    """Rename what a reset has just moved aside, and nothing else."""
    for path in map(Path, moved):
        family = [path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"), runs_folder(path)]
        for each in family:
            if each.exists():
                each.rename(each.with_name(_MARK + each.name))


def old_schemas(config: Config) -> set[str]:
    """The names of the engine's schemas that were moved aside; none without an engine."""
    schemas = open_schemas(config)
    return set() if schemas is None else {old.name for old in schemas.old()}


def purge_schemas(config: Config, names: set[str]) -> str:
    """Delete these schemas, and those that a killed purge left; returns what, in words.

    Results that left the engine for the archive of this machine are marked, to go with the files.
    """
    schemas = open_schemas(config)
    if schemas is None:
        return ""
    for folder in schemas.mark(sorted(names)):
        folder.rename(folder.with_name(_MARK + folder.name))
    dropped = schemas.drop_marked()
    return f"{counted(dropped, 'schema')} of the engine deleted" if dropped else ""


def purge_in_background(config: Config) -> str:
    """Delete everything that is marked, in a process that goes on after this one; returns what, in words."""
    archive = config.engine.archive or config.workspace / "archive" / "results"
    folders = {config.workspace, config.output.database_path.parent, archive}
    doomed = sorted(str(path) for folder in folders if folder.is_dir() for path in folder.glob(f"{_MARK}*"))
    if not doomed:
        return ""
    try:
        subprocess.Popen(
            [sys.executable, "-c", _CODE, *doomed],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as problem:
        raise SumiError(f"cannot start to delete {', '.join(doomed)}: {problem.strerror}; nothing is lost") from None
    return f"{counted(len(doomed), 'file or folder', 'files and folders')} moved aside are being"


def remove_all(paths: list[str]) -> None:
    """In the process of its own."""
    for path in map(Path, paths):
        if path.name.startswith(_MARK):
            with suppress(OSError):  # the next purge tries again
                open_keeping(path.parent).remove(Kept(path.name, 0, 0))
