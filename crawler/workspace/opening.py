"""Open a workspace: the one place that chooses its implementation."""

from __future__ import annotations

from pathlib import Path

from crawler.workspace.door import Workspace


def open_workspace(root: Path) -> Workspace:
    """The workspace at this folder. Touches nothing; `prepare` makes it."""
    from crawler.workspace.files.file_workspace import (
        FileWorkspace,  # the implementation knows the door, not vice versa
    )

    return FileWorkspace(root)
