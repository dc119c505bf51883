"""The checks before stages start: none is running here, and no flag of an earlier stop is left."""

from __future__ import annotations

import logging
import time

from crawler.config.crawl_name import crawl_command, crawl_name
from crawler.config.last_used import require_own_workspace, write_last_used
from crawler.config.places import require_places
from crawler.model.errors import SumiError
from crawler.model.settings import Config
from crawler.observe.processes import StageProcess, observe
from crawler.workspace.door import STAGES, Held, RoleTaken, Workspace, WorkspaceError
from crawler.workspace.opening import open_workspace
from crawler.workspace.unfinished import require_no_unfinished_import

log = logging.getLogger("sumi.crawl")


def take_supervision(workspace: Workspace, config: Config) -> Held:
    """Become the supervisor of a workspace. Raises WorkspaceError."""
    try:
        return workspace.take_role("supervisor")
    except RoleTaken as taken:
        require_no_unfinished_import(workspace)
        words = f"a crawl is already running in {crawl_name(config)}{f', {taken.by}' if taken.by else ''}; "
        words += f"see its status with: {crawl_command('status', config)}"
        if config.engine.url:
            words += f"; end it with: {crawl_command('stop', config)}; another crawl needs another database"
        else:
            words += ", or give this crawl its own --workspace"
        raise WorkspaceError(words) from None


def require_no_stages(workspace: Workspace, config: Config, patience: float = 3.0) -> None:
    """Raise WorkspaceError if stages are running here. Those of a crawl that was just killed get time to end."""
    deadline = time.monotonic() + patience
    while True:
        found = [stage for stage in observe(workspace).stages if stage.is_running]
        if not found:
            return
        if time.monotonic() > deadline:
            names = ", ".join(_named(workspace, stage) for stage in found)
            raise WorkspaceError(
                f"stages are already running in {crawl_name(config)}, started by hand: {names}; let them finish, or "
                f"stop them with: {crawl_command('stop', config)}"
            )
        time.sleep(0.1)


def _named(workspace: Workspace, stage: StageProcess) -> str:
    """A stage with its process, as far as that is known."""
    process = workspace.who_has(stage.name) or (f"pid {stage.pid}" if stage.pid else "")
    return f"{stage.name} ({process})" if process else stage.name


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
            f"the stages in {crawl_name(config)} have been told to stop; to cancel that: "
            f"{crawl_command('resume', config)}"
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


def warn_of_pause_flags(workspace: Workspace, config: Config) -> None:
    paused = sorted(flag for flag in workspace.flags() if flag.startswith("pause"))
    if paused:
        log.warning(
            "Paused by the flag %s in %s; to go on: %s"
            if config.engine.url
            else "Paused by the flag file %s in %s; to go on: %s",
            " and ".join(paused),
            crawl_name(config),
            crawl_command("resume", config),
        )
