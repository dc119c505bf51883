"""The stages of a crawl: one scheduler, one ingest and some fetchers, each a process of its own."""

from __future__ import annotations

import os
import signal

from crawler.model.settings import Config
from crawler.supervise.stage_process import StageSpec
from crawler.workspace.door import Workspace


def crawl_stages(config: Config) -> list[StageSpec]:
    """All stages of a crawl."""
    return [
        StageSpec("ingest", "ingest", run_ingest_stage, (config,)),
        StageSpec("scheduler", "scheduler", run_scheduler_stage, (config,)),
        *fetcher_stages(config, fetcher_count(config)),
    ]


def fetcher_stages(config: Config, count: int, *, orphan_signal: int = signal.SIGKILL) -> list[StageSpec]:
    """So many fetchers. `orphan_signal`: the signal that they get if their supervisor dies."""
    return [
        StageSpec(
            f"fetcher {index + 1} of {count}",
            "fetcher",
            run_fetcher_stage,
            (config, index, count),
            orphan_signal=orphan_signal,
        )
        for index in range(count)
    ]


def fetcher_count(config: Config, workers: int | None = None) -> int:
    """The number of fetchers to start: as given, else by the config, else one a core, but never more than there are
    slots for requests. Each keeps a core busy when there is enough to do; more only slow down the ingest.
    """
    wanted = workers or config.crawler.workers or max(2, min(8, os.cpu_count() or 1))
    return max(1, min(wanted, config.crawler.max_concurrent_pages_open))


# -- in the stages' own processes -----------------------------------------------------------------------------


def run_scheduler_stage(config: Config) -> int:
    from crawler.schedule.scheduler import run_scheduler

    return run_scheduler(config, is_supervised=True)


def run_fetcher_stage(config: Config, index: int, workers: int) -> int:
    from crawler.fetch.fetcher import run_fetcher

    os.nice(5)  # where cores are scarce the ingest goes first: results that arrive faster than it reads only wait
    return run_fetcher(config, index, workers, is_supervised=True)


def run_ingest_stage(config: Config, drain: bool = False) -> int:
    from ingest.loop import run_ingest

    return run_ingest(config, drain=drain, is_supervised=True)


# -- when all stages have ended -------------------------------------------------------------------------------


def mark_run_interrupted(config: Config, workspace: Workspace) -> None:
    """Mark the run as interrupted, in the map too, where no scheduler has. Raises WorkspaceError."""
    from crawler.schedule.run_keeper import mark_interrupted
    from ingest.loop import run_ingest

    if mark_interrupted(config, workspace):
        run_ingest(config, drain=True, is_supervised=True, on_control=lambda control: None)  # maybe in a thread
