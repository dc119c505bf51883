"""Open a workspace: the one place that chooses its implementation."""

from __future__ import annotations

from pathlib import Path

from crawler.workspace.door import LogFolder, Workspace
from crawler.workspace.keeping import Keeping


def open_workspace(root: Path) -> Workspace:
    """The workspace at this folder. Touches nothing; `prepare` makes it."""
    from crawler.workspace.files.file_workspace import (
        FileWorkspace,  # the implementation knows the door, not vice versa
    )

    return FileWorkspace(root)


def open_log_folder(root: Path) -> LogFolder:
    """A folder for logs outside of a workspace: for those that replay makes."""
    from crawler.workspace.files.appended_file import LogFolder as FileLogFolder

    return FileLogFolder(root)


def open_keeping(root: Path) -> Keeping:
    """The same workspace as something to be kept: for backups, figures about its size, and what may be removed."""
    from crawler.workspace.files.kept_files import KeptFiles

    return KeptFiles(root)
