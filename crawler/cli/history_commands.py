"""The commands that look back over the runs of a crawl. None of them sends a request."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.map_commands import MapArgument, Progress, database_of, last_config
from crawler.cli.options import CsvOption, JsonOption, WorkspaceOption, complete_config, load_config, show
from crawler.model.errors import SumiError, UsageError
from crawler.model.map_place import MapPlace

if TYPE_CHECKING:
    from crawler.database.run_log import RecordedRun, RecordedRuns
    from crawler.model.settings import Config
    from reporter.diff.run_changes import Changes, ComparedRun

_MOST_RESULT_BYTES = 64 * 1024 * 1024  # with more results the summary names `diff` instead: two replays would take long


def runs(config: MapArgument, as_json: JsonOption = False) -> None:
    """List the runs: when, how long, how they ended, their figures, and the settings that changed in between."""
    from reporter.runs_list import as_json as in_json
    from reporter.runs_list import as_text, list_runs

    found = list_runs(database_of(config))
    if as_json:
        typer.echo(in_json(found), nl=False)
    else:
        show(as_text(found))


def diff(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONFIG] [A B]",
            help="The config file, unless it is the one that ./workspace was last crawled with; and two runs."
            " [default: the last two completed runs]",
            autocompletion=complete_config,
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N changes of a kind.")] = 10,
    workspace: WorkspaceOption = None,
) -> None:
    """Show what changed from one run to another: new, vanished and returned domains, pages and links; pages that died,
    came back, moved or have another title; domains of another class or depth.

    The map of each run is rebuilt from its results, under the rules that it had, and kept beside the database.
    """
    from reporter.diff import diff_views

    if as_json and as_csv:
        raise UsageError("give only one of --json and --csv")
    configs = [word for word in words or [] if not word.isdecimal()]
    numbers = [int(word) for word in words or [] if word.isdecimal() and len(word) < 10]
    if len(configs) > 1 or len(numbers) not in (0, 2) or len(configs) + len(numbers) != len(words or []):
        raise UsageError("give at most one config and two runs, like: sumi-ripple diff my.toml 1 2")
    config = load_config(Path(configs[0]), workspace) if configs else last_config(workspace)
    progress = Progress()
    try:
        found = changes_between(config, (numbers[0], numbers[1]) if numbers else None, progress)
    finally:
        progress.end()
    if as_json:
        typer.echo(diff_views.as_json(found), nl=False)
    elif as_csv:
        typer.echo(diff_views.as_csv(found), nl=False)
    else:
        show(diff_views.as_text(found, limit))


def changes_between(config: Config, numbers: tuple[int, int] | None, progress: Progress | None) -> Changes:
    """The changes between these two runs, or the last two completed ones."""
    from crawler.database.run_log import recorded_runs
    from ingest.run_maps import map_of_run
    from reporter.diff.compare import compare

    database = config.map_place
    runs = recorded_runs(database)
    if numbers is None:
        completed = runs.completed()[-2:]
        if len(completed) < 2:
            raise SumiError(f"a diff needs two completed runs, and {database} has {len(completed)}")
        first, second = completed
    else:
        if numbers[0] == numbers[1]:
            raise UsageError(f"give two different runs, like: sumi-ripple diff {numbers[0]} {numbers[0] + 1}")
        if numbers[0] > numbers[1]:
            raise UsageError(f"give the earlier run first: sumi-ripple diff {numbers[1]} {numbers[0]}")
        first, second = (runs.find(number) for number in numbers)
    found = _quick_changes(config, runs, first, second)
    if found is not None:
        return found
    maps = [map_of_run(config, run.number, progress) for run in (first, second)]
    return compare(
        (_compared(first), maps[0]), (_compared(second), maps[1]), database, _changed_rules(first, second), progress
    )


def _quick_changes(config: Config, runs: RecordedRuns, first: RecordedRun, second: RecordedRun) -> Changes | None:
    """The changes from the run before to the newest one, if the map that the run before left is kept; else None."""
    from crawler.database.completed_map import maps_before
    from crawler.database.map_errors import MapError
    from crawler.database.run_log import rules_hash
    from ingest.run_maps import rules_of_run
    from reporter.diff.compare import compare_successive

    for copy in maps_before(runs, first, second):
        if isinstance(runs.path, Path) and rules_hash(runs.path) == rules_of_run(config, second).map_hash:
            with suppress(MapError):  # it is moved or removed meanwhile
                return compare_successive(_compared(first), _compared(second), runs.path, copy)
    return None


def changes_for_summary(config: Config, database: MapPlace | None = None) -> str:
    """The summary's section about the run before; "" where there is none, or the newest run is not completed.

    `database` is the map that the summary is of, unless that is the live one.
    """
    from crawler.database.run_log import recorded_runs
    from ingest.run_maps import result_bytes
    from reporter.diff.diff_views import as_section

    runs = recorded_runs(database or config.map_place)
    completed = runs.completed()
    if len(completed) < 2 or runs.runs[-1] != completed[-1]:
        return ""
    first, second = completed[-2].number, completed[-1].number
    try:
        quick = _quick_changes(config, runs, completed[-2], completed[-1])
        if quick is not None:
            return as_section(quick)
        if result_bytes(config) > _MOST_RESULT_BYTES:
            return f"## Changes Since Run {first}\n\n`sumi-ripple diff CONFIG {first} {second}` shows them."
        return as_section(changes_between(config, (first, second), None))
    except SumiError:  # the results of the run before are gone: the rest of the summary can be written all the same
        return ""


def _compared(run: RecordedRun) -> ComparedRun:
    from reporter.diff.run_changes import ComparedRun

    return ComparedRun(run.number, run.started_at, run.finished_at, run.status)


def _changed_rules(first: RecordedRun, second: RecordedRun) -> tuple[str, ...]:
    from crawler.model import recorded_settings

    before, after = (recorded_settings.read(run.settings or "") for run in (first, second))
    return () if before is None or after is None else tuple(recorded_settings.changes(before, after))
