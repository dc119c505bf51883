"""Fetchers alone under one supervisor: `sumi-ripple fetch`."""

from __future__ import annotations

import logging
import signal

from crawler.model.settings import Config
from crawler.observe.live_view import QuietView
from crawler.supervise.exit_rules import EXIT_CODES
from crawler.supervise.reloading import LoadAgain
from crawler.supervise.stage_process import StageSpec
from crawler.supervise.stages import fetcher_count, fetcher_stages
from crawler.supervise.supervisor import Supervisor
from crawler.workspace.opening import open_workspace


def run_fetchers(
    config: Config,
    workers: int | None = None,
    *,
    log_level: int = logging.WARNING,
    load_again: LoadAgain | None = None,
) -> int:
    """Run fetchers until the run is over; returns the exit code.

    SIGINT or SIGTERM: once to finish and save, twice to end at once. If this process is killed, the fetchers finish
    and save by themselves: the scheduler and the ingest, which others started, go on.
    """

    def specs_of(config: Config) -> list[StageSpec]:
        return fetcher_stages(config, fetcher_count(config, workers), orphan_signal=signal.SIGTERM)

    workspace = open_workspace(config)
    supervisor = Supervisor(
        *(config, workspace, specs_of(config), QuietView()),
        log_level=log_level,
        owns_run=False,
        load_again=load_again,
        specs_of=specs_of,
    )
    return EXIT_CODES[supervisor.run()]
