"""A whole crawl, from before its start to after its end: `sumi-ripple crawl`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import orjson

from crawler.config import last_used as snapshot
from crawler.model.settings import Config
from crawler.observe.live import choose_view
from crawler.observe.logs import configure, level_of
from crawler.supervise.fresh import move_aside
from crawler.supervise.pool import fetcher_count
from crawler.supervise.supervisor import (
    Outcome,
    Supervisor,
    remove_stop_flags,
    require_no_stages,
    run_ingest_stage,
    stages_of,
    take_supervision,
)
from crawler.workspace.door import Workspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.runs import Run, RunStatus, read_note, read_run

log = logging.getLogger("sumi.crawl")

EXIT_CODES = {Outcome.COMPLETED: 0, Outcome.FAILED: 1, Outcome.INTERRUPTED: 130}
_MOST_CHANGES = 12
_DOCUMENT = "crawl"  # whether a crawl is under way, or done


@dataclass(frozen=True, slots=True)
class Manner:
    """How a crawl is to be shown."""

    verbosity: int = 0
    is_quiet: bool = False


def crawl(
    config: Config,
    write_summary: Callable[[Path, Path], None],
    *,
    is_fresh: bool = False,
    manner: Manner = Manner(),  # noqa: B008
) -> int:
    """Crawl until the run is completed or the user has had enough; returns the exit code. Raises SumiError."""
    workspace = open_workspace(config.workspace)
    workspace.prepare(is_to_be_cleared=is_fresh)
    role = take_supervision(workspace)
    try:
        require_no_stages(workspace)
        level = level_of(manner.verbosity, manner.is_quiet)
        if is_fresh:
            _start_afresh(config, manner)
        snapshot.require_own_workspace(config)
        _look_at_flags(workspace)
        if _is_only_to_be_closed(workspace):
            log.info("Run #%d was completed, but nobody lived to see it", _run(workspace).number)
            code = run_ingest_stage(config, drain=True)
            return code or _close(config, write_summary, manner)
        _show_changes(config, workspace)
        snapshot.write(config)
        _mark(workspace, "running")
        with choose_view(is_quiet=manner.is_quiet, verbosity=manner.verbosity) as view:
            try:
                supervisor = Supervisor(
                    config, workspace, stages_of(config, fetcher_count(config)), view, log_level=level
                )
                configure(level, supervisor.say)
                outcome = supervisor.run()
            finally:
                configure(level)
        if outcome is Outcome.COMPLETED:
            return _close(config, write_summary, manner)
        if outcome is Outcome.INTERRUPTED:
            _say(manner, "Interrupted; everything is saved. The same command goes on from here.")
        return EXIT_CODES[outcome]
    finally:
        role.release()


def _start_afresh(config: Config, manner: Manner) -> None:
    for path in move_aside(config):
        _say(manner, f"Moved aside: {path}")


def _look_at_flags(workspace: Workspace) -> None:
    removed = remove_stop_flags(workspace)
    if removed:
        log.warning("Removed old flag files of an earlier stop: %s", ", ".join(removed))
    paused = sorted(flag for flag in workspace.flags() if flag.startswith("pause"))
    if paused:
        log.warning(
            "Paused by the flag file %s in %s; remove it, or give: sumi-ripple resume",
            " and ".join(paused),
            workspace.name,
        )


def _show_changes(config: Config, workspace: Workspace) -> None:
    """A run that was begun under other settings goes on under these: say which."""
    run, before = read_run(workspace), snapshot.read(workspace)
    if run is None or run.status is RunStatus.COMPLETED or before is None:
        return
    changed = snapshot.changes(before, snapshot.take(config))
    if not changed:
        return
    log.warning("The configuration has changed since run #%d was last at work:", run.number)
    for line in changed[:_MOST_CHANGES]:
        log.warning("  %s", line)
    if len(changed) > _MOST_CHANGES:
        log.warning("  … and %d more", len(changed) - _MOST_CHANGES)


# -- the end ------------------------------------------------------------------------------------------------


def _close(config: Config, write_summary: Callable[[Path, Path], None], manner: Manner) -> int:
    """Write the summary of a completed run and say where everything is."""
    workspace = open_workspace(config.workspace)
    write_summary(config.output.database_path, config.output.summary_path)
    log.info("Summary written to %s", config.output.summary_path)
    _mark(workspace, "done")
    _say(manner, f"Run #{_run(workspace).number} is complete.")
    _say(manner, f"  summary   {_near(config.output.summary_path)}")
    _say(manner, f"  database  {_near(config.output.database_path)}")
    _say(manner, f"  spools    {_near(config.workspace / 'spool')}")
    return 0


def _say(manner: Manner, line: str) -> None:
    if not manner.is_quiet:
        print(line, flush=True)


def _near(path: Path) -> str:
    """The path as one would type it from here."""
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


# -- a crawl that was killed between the end of its run and its summary ----------------------------------------


def _mark(workspace: Workspace, status: str) -> None:
    """Note that a crawl is under way, or done, and which run was the last completed one when it began."""
    note = {"v": 1, "status": status, "before": read_note(workspace)}
    workspace.write_document(_DOCUMENT, orjson.dumps(note))


def _is_only_to_be_closed(workspace: Workspace) -> bool:
    """Did the last crawl complete its run, and was it killed before it had written the summary?"""
    try:
        mark = orjson.loads(workspace.document(_DOCUMENT) or b"")
        run = read_run(workspace)
        return (
            mark["status"] == "running"
            and run is not None
            and run.status is RunStatus.COMPLETED
            and read_note(workspace) != mark["before"]
        )
    except (ValueError, KeyError, TypeError):
        return False


def _run(workspace: Workspace) -> Run:
    return read_run(workspace) or Run(0, RunStatus.COMPLETED)
