"""The commands that run one stage alone: schedule, fetch, ingest."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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

if TYPE_CHECKING:
    from crawler.model.settings import Config


_COMMANDS = {"scheduler": "schedule", "ingest": "ingest"}


class Narrator:
    """Says what a stage by hand does: at its start, what it waits for, at its end."""

    def __init__(self, config: Config, stage: str, is_quiet: bool) -> None:
        self._config = config
        self._stage = stage
        self._is_quiet = is_quiet

    def start(self, work: str, needs: str | None) -> None:
        """The line at the start; and one more, if the stage that it needs is not running."""
        from crawler.observe.processes import observe
        from crawler.workspace.opening import open_workspace

        self._say(f"The {self._stage} {work} in {self._config.workspace}, until its run is over; Ctrl-C saves and ends")
        running = [stage.stage for stage in observe(open_workspace(self._config)).stages if stage.is_running]
        if needs is not None and needs not in running:
            command = f"sumi-ripple {_COMMANDS[needs]} {self._config.source}"
            given = f" --workspace {self._config.workspace}" if self._config.is_workspace_given else ""
            self._say(f"Waiting for the {needs}, which is not running yet: {command}{given}")

    def end(self, code: int) -> int:
        """The line at the end; returns the exit code."""
        from crawler.workspace.door import Unreachable
        from crawler.workspace.opening import open_workspace
        from crawler.workspace.runs import read_run

        try:
            run = read_run(open_workspace(self._config))
            words = f"run #{run.number} is {run.status}" if run else "no run has started yet"
        except Unreachable as problem:
            words = str(problem)
        how = {0: "has ended", 130: "was interrupted, everything is saved"}.get(code, f"has ended with code {code}")
        self._say(f"The {self._stage} {how}; {words}")
        return code

    def _say(self, line: str) -> None:
        if not self._is_quiet:
            typer.echo(line, err=True)


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
    narrator = Narrator(loaded, "scheduler", quiet)
    narrator.start("releases jobs", "ingest")
    raise typer.Exit(narrator.end(_with_reloads(loaded, partial(load_config, config, workspace), run_scheduler)))


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
    narrator = Narrator(loaded, "fetcher", quiet)
    narrator.start("visits released pages", "scheduler")
    again = partial(load_config, config, workspace, workers)
    raise typer.Exit(narrator.end(run_fetchers(loaded, workers, log_level=level, load_again=again)))


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
    narrator = Narrator(loaded, "ingest", quiet)
    narrator.start("applies results to the map", None if drain else "scheduler")
    work = partial(run_ingest, drain=drain)
    raise typer.Exit(narrator.end(_with_reloads(loaded, partial(load_config, config, workspace), work)))


def _with_reloads(config: Config, load_again: Callable[[], Config], work: Callable[[Config], int]) -> int:
    """Do a stage's work, and again under the config as it is then, as long as it ends only for that."""
    from crawler.supervise.reloading import ConfigReader
    from crawler.workspace.control import REPLACED
    from crawler.workspace.opening import open_workspace

    reader = ConfigReader(load_again, open_workspace(config))
    while (code := work(config)) == REPLACED:
        config = reader.read(config) or config
    return code
