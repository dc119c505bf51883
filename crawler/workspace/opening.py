"""Open a workspace: the one place that chooses its implementation."""

from __future__ import annotations

from pathlib import Path

from crawler.workspace.door import Workspace
from crawler.workspace.files.file_workspace import FileWorkspace


def open_workspace(root: Path) -> Workspace:
    """The workspace at this folder. Touches nothing; `prepare` makes it."""
    return FileWorkspace(root)
