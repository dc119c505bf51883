"""The commands that run one stage alone, for those who put a crawl together by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.options import (
    ConfigArgument,
    QuietOption,
    VerboseOption,
    WorkersOption,
    WorkspaceOption,
    load_config,
    log_to_stderr,
)
from crawler.model.errors import SumiError

if TYPE_CHECKING:
    from crawler.model.settings import Config


def _ready_stage(config: Config, stage: str) -> None:
    """Before a stage is started by hand: leftovers of an earlier stop go, and the settings are noted."""
    import logging

    from crawler.config import last_used as snapshot
    from crawler.observe.processes import look
    from crawler.supervise.supervisor import remove_stop_flags
    from crawler.workspace.opening import open_workspace

    workspace = open_workspace(config.workspace)
    workspace.prepare()
    snapshot.require_own_workspace(config)
    if not any(found.is_running for found in look(workspace).stages):
        removed = remove_stop_flags(workspace)
        if removed:
            logging.getLogger("sumi.cli").warning("Removed flag files of an earlier stop: %s", ", ".join(removed))
    elif workspace.is_flagged("stop", stage):
        raise SumiError(f"the stages in {workspace.name} have been told to stop; to take that back: sumi-ripple resume")
    snapshot.write(config)


def schedule(
    config: ConfigArgument, verbose: VerboseOption = 0, quiet: QuietOption = False, workspace: WorkspaceOption = None
) -> None:
    """The scheduler alone: starts or resumes the run and releases jobs."""
    from crawler.schedule.scheduler import run_scheduler

    log_to_stderr(verbose, quiet)
    loaded = load_config(config, workspace)
    _ready_stage(loaded, "scheduler")
    raise typer.Exit(run_scheduler(loaded))


def fetch(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Fetchers alone: visit what is released. May be started in several terminals."""
    from crawler.supervise.pool import run_pool

    level = log_to_stderr(verbose, quiet)
    loaded = load_config(config, workspace, workers)
    _ready_stage(loaded, "fetcher")
    raise typer.Exit(run_pool(loaded, workers, log_level=level))


def ingest(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    drain: Annotated[bool, typer.Option("--drain", help="Take in what is there, then end.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """The ingest alone: takes results into the database."""
    from ingest.loop import run_ingest

    log_to_stderr(verbose, quiet)
    loaded = load_config(config, workspace)
    _ready_stage(loaded, "ingest")
    raise typer.Exit(run_ingest(loaded, drain=drain))
