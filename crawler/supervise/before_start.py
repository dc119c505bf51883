"""The checks before stages start: none is running here, and no flag of an earlier stop is left."""

from __future__ import annotations

import logging
import time

from crawler.config.last_used import require_own_workspace, write_last_used
from crawler.config.places import require_places
from crawler.model.errors import SumiError
from crawler.model.settings import Config
from crawler.observe.processes import observe
from crawler.workspace.door import STAGES, Held, RoleTaken, Workspace, WorkspaceError
from crawler.workspace.opening import open_workspace
from crawler.workspace.unfinished import require_no_unfinished_import

log = logging.getLogger("sumi.crawl")


def take_supervision(workspace: Workspace) -> Held:
    """Become the supervisor of a workspace. Raises WorkspaceError."""
    try:
        return workspace.take_role("supervisor")
    except RoleTaken:
        require_no_unfinished_import(workspace)
        raise WorkspaceError(
            f"a crawl is already running in {workspace.name}; see its status with: sumi-ripple status --workspace "
            f"{workspace.name}, or give this crawl its own --workspace"
        ) from None


def require_no_stages(workspace: Workspace, patience: float = 3.0) -> None:
    """Raise WorkspaceError if stages are running here. Those of a crawl that was just killed get time to end."""
    deadline = time.monotonic() + patience
    while True:
        found = [stage for stage in observe(workspace).stages if stage.is_running]
        if not found:
            return
        if time.monotonic() > deadline:
            names = ", ".join(stage.name + (f" (pid {stage.pid})" if stage.pid else "") for stage in found)
            raise WorkspaceError(
                f"stages are already running in {workspace.name}, started by hand: {names}; let them finish, or stop "
                f"them with: sumi-ripple stop --workspace {workspace.name}"
            )
        time.sleep(0.1)


def prepare_stage(config: Config, stage: str) -> None:
    """Prepare the workspace for a stage that is started by hand. Raises SumiError."""
    require_places(config)
    workspace = open_workspace(config)
    workspace.prepare()
    require_no_unfinished_import(workspace)
    require_own_workspace(config)
    if not any(found.is_running for found in observe(workspace).stages):
        remove_stop_flags(workspace)
    elif workspace.is_flagged("stop", stage):
        raise SumiError(
            f"the stages in {workspace.name} have been told to stop; to cancel that: sumi-ripple resume --workspace "
            f"{workspace.name}"
        )
    write_last_used(config)


def warn_of_open_workspace(workspace: Workspace) -> None:
    """Others who can write to a workspace can end runs, move gates and forge results."""
    if workspace.is_open_to_others():
        log.warning(
            "Every user of this system can write to the workspace %s; end that with: chmod -R o-w %s",
            workspace.name,
            workspace.name,
        )


def remove_stop_flags(workspace: Workspace) -> list[str]:
    """Remove the flags of an earlier stop, which were for stages that have ended since; returns their names."""
    names = [f"stop.{stage}" if stage else "stop" for stage in (None, *STAGES) if workspace.clear_flag("stop", stage)]
    if names:
        log.warning("Removed flag files of an earlier stop: %s", ", ".join(names))
    return names


def warn_of_pause_flags(workspace: Workspace) -> None:
    paused = sorted(flag for flag in workspace.flags() if flag.startswith("pause"))
    if paused:
        log.warning(
            "Paused by the flag file %s in %s; to go on: sumi-ripple resume --workspace %s",
            " and ".join(paused),
            workspace.name,
            workspace.name,
        )
