"""Open a workspace: the one place that chooses its implementation."""

from __future__ import annotations

from pathlib import Path

from crawler.model.settings import Config
from crawler.workspace.door import LogFolder, Workspace, WorkspaceError
from crawler.workspace.keeping import Keeping, Schemas


def open_workspace(where: Config | Path) -> Workspace:
    """The workspace of a config, or the one of files in a folder. Touches nothing; `prepare` makes it."""
    # The implementations know the door, not vice versa.
    if isinstance(where, Config) and where.engine.url:
        try:
            from crawler.workspace.postgres.engine_workspace import EngineWorkspace
        except ImportError:
            from crawler.engine.engine_connection import MISSING

            raise WorkspaceError(MISSING) from None
        return EngineWorkspace(where.workspace, where.engine.url, where.engine.archive, lease=where.engine.lease)
    from crawler.workspace.files.file_workspace import FileWorkspace

    return FileWorkspace(where.workspace if isinstance(where, Config) else where)


def open_log_folder(root: Path) -> LogFolder:
    """A folder for logs outside of a workspace: for those that replay makes."""
    from crawler.workspace.files.appended_file import LogFolder as FileLogFolder

    return FileLogFolder(root)


def open_keeping(root: Path) -> Keeping:
    """The same workspace as something to be kept: for backups, figures about its size, and what may be removed."""
    from crawler.workspace.files.kept_files import KeptFiles

    return KeptFiles(root)


def open_schemas(config: Config) -> Schemas | None:
    """What the engine of this config keeps; None: there is none."""
    if not config.engine.url:
        return None
    try:
        from crawler.workspace.postgres.engine_workspace import ARCHIVE
        from crawler.workspace.postgres.old_schemas import EngineSchemas
    except ImportError:
        from crawler.engine.engine_connection import MISSING

        raise WorkspaceError(MISSING) from None
    return EngineSchemas(config.engine.url, config.engine.archive or config.workspace / ARCHIVE)
