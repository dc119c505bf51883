"""The commands that run one stage alone: schedule, fetch, ingest."""

from __future__ import annotations

from typing import Annotated

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


def schedule(
    config: ConfigArgument, verbose: VerboseOption = 0, quiet: QuietOption = False, workspace: WorkspaceOption = None
) -> None:
    """Run the scheduler alone: it starts or resumes the run and releases jobs to the fetchers.

    It ends with the run.
    """
    from crawler.schedule.scheduler import run_scheduler
    from crawler.supervise.before_start import prepare_stage

    log_to_stderr(verbose, quiet)
    loaded = load_config(config, workspace)
    prepare_stage(loaded, "scheduler")
    raise typer.Exit(run_scheduler(loaded))


def fetch(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Run fetchers alone: they visit the pages that the scheduler releases.

    They end with the run. The command may be given in several terminals at once.
    """
    from crawler.supervise.before_start import prepare_stage
    from crawler.supervise.fetchers import run_fetchers

    level = log_to_stderr(verbose, quiet)
    loaded = load_config(config, workspace, workers)
    prepare_stage(loaded, "fetcher")
    raise typer.Exit(run_fetchers(loaded, workers, log_level=level))


def ingest(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    drain: Annotated[bool, typer.Option("--drain", help="Apply the results that are there, then end.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Run the ingest alone: it applies the fetchers' results to the database.

    It ends with the run.
    """
    from crawler.supervise.before_start import prepare_stage
    from ingest.loop import run_ingest

    log_to_stderr(verbose, quiet)
    loaded = load_config(config, workspace)
    prepare_stage(loaded, "ingest")
    raise typer.Exit(run_ingest(loaded, drain=drain))
