"""A whole crawl, from the checks before its start to its summary: `sumi-ripple crawl`."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Protocol

import orjson

from crawler.config.last_used import (
    changed_settings,
    describe_settings,
    read_last_used,
    require_own_workspace,
    write_last_used,
)
from crawler.hooks.delivery import HookSender
from crawler.model.errors import SumiError
from crawler.model.settings import Config
from crawler.observe.live_view import QuietView, choose_view
from crawler.observe.logs import configure, level_of
from crawler.observe.wrapping import fitted, terminal_width
from crawler.supervise.before_start import (
    remove_stop_flags,
    require_no_stages,
    take_supervision,
    warn_of_open_workspace,
    warn_of_pause_flags,
)
from crawler.supervise.exit_rules import EXIT_CODES, Outcome
from crawler.supervise.fresh import move_aside
from crawler.supervise.reloading import LoadAgain
from crawler.supervise.stages import crawl_stages, mark_run_interrupted, run_ingest_stage
from crawler.supervise.supervisor import Supervisor
from crawler.supervise.suspension import remove_left_suspension
from crawler.workspace.door import StoppedWhileAway, Unreachable, Workspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.runs import Run, RunStatus, read_run, read_run_text
from crawler.workspace.unfinished import require_no_unfinished_import

log = logging.getLogger("sumi.crawl")

_MOST_CHANGES = 12
_DOCUMENT = "crawl"  # is a crawl running, or done?


@dataclass(frozen=True, slots=True)
class Verbosity:
    """The user's choice of -v, -vv or -q."""

    level: int = 0
    is_quiet: bool = False

    def say(self, line: str) -> None:
        if not self.is_quiet:
            print(fitted(line, terminal_width(sys.stdout)), flush=True)


class Ending(Protocol):
    """The last words of a crawl, and its exit code."""

    @property
    def lines(self) -> Sequence[str]: ...
    @property
    def exit_code(self) -> int: ...
    @property
    def summary(self) -> Path | None: ...


# (config, workspace, verbosity, the closing, load_again) → the outcome, the config by then
Runner = Callable[[Config, Workspace, Verbosity, "Closing", LoadAgain | None], tuple[Outcome, Config]]
# (config, the reason why the run is not complete, is its summary to be written?) → the last words. Raises SumiError.
CloseRun = Callable[[Config, str | None, bool], Ending]


def crawl(
    config: Config,
    close_run: CloseRun,
    *,
    is_fresh: bool = False,
    verbosity: Verbosity = Verbosity(),  # noqa: B008
    load_again: LoadAgain | None = None,
    runner: Runner | None = None,
    load_ending: Callable[[], None] = lambda: None,
) -> int:
    """Crawl until the run is completed or the user stops it; returns the exit code. Raises SumiError.

    `load_again` reads the config's file once more, for a SIGHUP or `sumi-ripple reload`. `runner` runs the stages: by
    default as processes. `load_ending` imports what `close_run` needs: it is called while processes work.
    """
    workspace = open_workspace(config)
    workspace.prepare(is_to_be_cleared=is_fresh)
    role = take_supervision(workspace, config)
    try:
        require_no_stages(workspace, config)
        if is_fresh:
            for place in move_aside(config):
                verbosity.say(f"Moved aside: {place}")
        require_no_unfinished_import(workspace, is_alone=True)
        require_own_workspace(config)
        remove_stop_flags(workspace)
        remove_left_suspension(workspace)
        warn_of_pause_flags(workspace, config)
        warn_of_open_workspace(workspace)
        if _lacks_only_its_summary(workspace):
            log.info("Run #%d was completed, but the crawl was killed before its summary", _run(workspace).number)
            code = run_ingest_stage(config, drain=True)
            return code or _close(config, close_run, verbosity)
        _warn_of_changed_settings(config, workspace)
        write_last_used(config)
        _mark(workspace, "running")
        verbosity.say(f"Crawling {config.source}: {_seed_words(config)}, workspace {config.workspace}")
        closing = Closing(config, close_run, load_ending)
        outcome, config = (runner or _supervise)(config, workspace, verbosity, closing, load_again)
        try:
            if outcome is Outcome.INTERRUPTED:
                mark_run_interrupted(config, workspace)
            tell_end(config, workspace, outcome)
        except Unreachable as problem:
            if outcome is not Outcome.INTERRUPTED or isinstance(problem, StoppedWhileAway):
                raise
            raise StoppedWhileAway(str(problem)) from None
        if outcome is Outcome.COMPLETED:
            return _close(config, closing.close_run, verbosity)
        _say_stopped(config, close_run, verbosity, outcome)
        return EXIT_CODES[outcome]
    finally:
        role.release()


def tell_end(config: Config, workspace: Workspace, outcome: Outcome) -> None:
    """Tell the hooks how the run ended. A Ctrl-C is no news to who pressed it."""
    run = read_run(workspace)
    if not config.hooks or run is None:
        return
    hooks = HookSender(config, workspace)
    facts = {"run": run.number, "status": run.status.value}
    if outcome is Outcome.COMPLETED and run.status is RunStatus.COMPLETED:
        hooks.tell("run-finished", {**facts, "words": f"run {run.number} is completed"})
    elif outcome is Outcome.COMPLETED:
        hooks.tell("limit-reached", {**facts, "words": f"run {run.number} has reached a limit: {run.reason}"})
    elif outcome in (Outcome.FAILED, Outcome.BROKEN):
        hooks.tell("run-failed", {**facts, "words": f"run {run.number} stopped; the log says why"})
    hooks.finish()


def _seed_words(config: Config) -> str:
    seeds = sum(len(entry.seeds) for entry in config.quality)
    return f"{len(config.quality):,} quality domain{'s'[: len(config.quality) != 1]}, {seeds:,} seed{'s'[: seeds != 1]}"


def _supervise(
    config: Config,
    workspace: Workspace,
    verbosity: Verbosity,
    closing: Closing,
    load_again: LoadAgain | None,
) -> tuple[Outcome, Config]:
    """The end of a crawl, and the config that it has by then."""
    level = level_of(verbosity.level, verbosity.is_quiet)
    with choose_view(is_quiet=verbosity.is_quiet, verbosity=verbosity.level) as view:
        try:
            stages = crawl_stages(config)
            supervisor = Supervisor(
                *(config, workspace, stages, view),
                log_level=level,
                on_settled=closing.load,
                on_completed=lambda: closing.begin(supervisor.config),
                load_again=load_again,
                specs_of=crawl_stages,
            )
            configure(level, supervisor.say)
            return supervisor.run(), supervisor.config
        finally:
            configure(level)


def in_one_process(
    config: Config,
    workspace: Workspace,
    verbosity: Verbosity,
    closing: Closing,
    load_again: LoadAgain | None,
) -> tuple[Outcome, Config]:
    """A runner: all stages in this process, with a view of them. The summary is written after their end."""
    from crawler.supervise.unified import UnifiedCrawl

    level = level_of(verbosity.level, verbosity.is_quiet)
    with choose_view(is_quiet=verbosity.is_quiet, verbosity=verbosity.level) as view:
        try:
            unified = UnifiedCrawl(config, workspace, view, load_again=load_again, is_program=True)
            configure(level, unified.say)
            return unified.run(), unified.config
        finally:
            configure(level)


def in_a_library(
    config: Config,
    workspace: Workspace,
    verbosity: Verbosity,
    closing: Closing,
    load_again: LoadAgain | None,
) -> tuple[Outcome, Config]:
    """A runner: the same inside of another program, whose logging and terminal are its own."""
    from crawler.supervise.unified import UnifiedCrawl

    unified = UnifiedCrawl(config, workspace, QuietView(), load_again=load_again)
    return unified.run(), unified.config


def _warn_of_changed_settings(config: Config, workspace: Workspace) -> None:
    """A run that was started under other settings is resumed under these: say which differ."""
    run, before = read_run(workspace), read_last_used(workspace)
    if run is None or run.status is RunStatus.COMPLETED or before is None:
        return
    changed = changed_settings(before, describe_settings(config))
    if not changed:
        return
    log.warning("The configuration has changed since run #%d was interrupted:", run.number)
    for line in changed[:_MOST_CHANGES]:
        log.warning("  %s", line)
    if len(changed) > _MOST_CHANGES:
        rest = len(changed) - _MOST_CHANGES
        log.warning("  … and %d more; recorded with the run: sumi-ripple runs %s --json", rest, config.source)


# -- the end ------------------------------------------------------------------------------------------------


class Closing:
    """Closes a completed run in a thread while the stages end: they take as long as the summary.

    `load` is for when the stages have begun to work: what the end needs is imported meanwhile.
    """

    def __init__(self, config: Config, close_run: CloseRun, load: Callable[[], None]) -> None:
        self._config = config
        self._close_run = close_run
        self.load = load
        self._thread: Thread | None = None
        self._ending: Ending | None = None

    def begin(self, config: Config) -> None:
        """The run is completed: write its summary."""
        self._config = config
        self._thread = Thread(target=self._work, name="summary", daemon=True)
        self._thread.start()

    def close_run(self, config: Config, stopped_by: str | None, is_summary_due: bool) -> Ending:
        """What was begun, or else the whole of it now. Raises SumiError."""
        if self._thread is not None:
            self._thread.join()
        return self._ending or self._close_run(config, stopped_by, is_summary_due)

    def _work(self) -> None:
        with suppress(SumiError):  # it is met again, and told, when the stages have ended
            self._ending = self._close_run(self._config, None, True)


def _close(config: Config, close_run: CloseRun, verbosity: Verbosity) -> int:
    """Write the summary of a completed run; say how it went, the worst first."""
    limit = _run(open_workspace(config)).reason
    ending = close_run(config, f"limit reached ({limit}), the pages that wait are kept" if limit else None, True)
    log.info("Summary written to %s", ending.summary)
    _mark(open_workspace(config), "done")
    _say_ending(ending, verbosity)
    return ending.exit_code


def _say_ending(ending: Ending, verbosity: Verbosity) -> None:
    for line in ending.lines:
        verbosity.say(line)
    if ending.exit_code and verbosity.is_quiet:
        log.error("%s", ending.lines[0])


def _say_stopped(config: Config, close_run: CloseRun, verbosity: Verbosity, outcome: Outcome) -> None:
    """The last words of a run that can be resumed."""
    if outcome is Outcome.INTERRUPTED:
        words = "interrupted, everything is saved"
    else:
        words = "stopped by an error (see above), everything crawled so far is saved"
        if outcome is Outcome.BROKEN:
            words = "stopped by a fault of this program or machine (see above), everything crawled so far is saved"
    try:
        _say_ending(close_run(config, words, False), verbosity)
    except SumiError:  # no run has started yet, or the map is the error
        verbosity.say(f"{words[0].upper()}{words[1:]}. Run the same command again to go on.")


# -- a crawl that was killed after the end of its run and before its summary ----------------------------------


def _mark(workspace: Workspace, status: str) -> None:
    """Record that a crawl is running, or done, with the run's document as it was when the crawl started."""
    mark = {"v": 1, "status": status, "before": read_run_text(workspace)}
    workspace.write_document(_DOCUMENT, orjson.dumps(mark))


def _lacks_only_its_summary(workspace: Workspace) -> bool:
    """Did the last crawl complete its run, and was it killed before it wrote the summary?"""
    try:
        mark = orjson.loads(workspace.document(_DOCUMENT) or b"")
        run = read_run(workspace)
        return (
            mark["status"] == "running"
            and run is not None
            and run.status is RunStatus.COMPLETED
            and read_run_text(workspace) != mark["before"]
        )
    except (ValueError, KeyError, TypeError):
        return False


def _run(workspace: Workspace) -> Run:
    return read_run(workspace) or Run(0, RunStatus.COMPLETED)
