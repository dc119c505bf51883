"""Crawls that were moved aside, where a part of one lies on another disk: its place in the workspace is a link.

The link stays, so that the part stays on its disk. Its content is moved within that disk, into a folder with the name
of the crawl that was moved aside, and a link there leads to it.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from crawler.workspace.atomic import OWNER_ONLY_FOLDER

_PURGED = ".purging-"  # crawler.supervise.purge puts it before the name of what it deletes


def move_content(link: Path, kept: Path) -> None:
    """Move what lies behind a link into `old-…` there; `kept`, in the crawl that is moved aside, leads to it then."""
    aside = link.resolve() / kept.parent.name
    aside.mkdir(OWNER_ONLY_FOLDER, exist_ok=True)
    for path in sorted(link.resolve().iterdir()):
        if not path.name.startswith(("old-", _PURGED)):
            path.rename(aside / path.name)
    kept.symlink_to(aside)


def remove_aside(folder: Path) -> None:
    """Delete a crawl that was moved aside, and what was moved with it on another disk. Raises OSError."""
    name = folder.name.removeprefix(_PURGED)
    for path in folder.iterdir():
        target = path.resolve() if path.is_symlink() else None
        if target is not None and target.name == name and target.is_dir():
            shutil.rmtree(target)
    shutil.rmtree(folder)
