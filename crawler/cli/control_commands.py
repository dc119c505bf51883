"""The commands that steer a crawl from outside: the flag files, for people who forget their names, and the status."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawler.cli.options import (
    JsonOption,
    WorkspaceOption,
    complete_config,
    complete_stage_or_config,
    load_config,
    looks_like_a_file,
)
from crawler.model.errors import UsageError

if TYPE_CHECKING:
    from crawler.workspace.door import Workspace

TargetArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CONFIG] [STAGE]",
        help="A config (for its workspace), and a stage: scheduler, fetcher or ingest.",
        autocompletion=complete_stage_or_config,
        show_default=False,
    ),
]
PlaceArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CONFIG]",
        help="A config, for its workspace.",
        autocompletion=complete_config,
        show_default=False,
    ),
]


def _target(words: list[str] | None, given: Path | None) -> tuple[Workspace, str | None, Path | None]:
    """(workspace, stage, database) that the words of a steering command mean."""
    from crawler.workspace.door import STAGES
    from crawler.workspace.opening import open_workspace

    stages = [word for word in words or [] if word in STAGES]
    configs = [word for word in words or [] if word not in STAGES]
    if len(stages) > 1 or len(configs) > 1:
        raise UsageError("give one config and one stage (scheduler, fetcher or ingest) at most")
    if configs and not looks_like_a_file(configs[0]):
        raise UsageError(f"{configs[0]} is neither a config nor a stage; the stages are {', '.join(STAGES)}")
    stage = stages[0] if stages else None
    if configs:
        config = load_config(Path(configs[0]), given)
        return open_workspace(config.workspace), stage, config.output.database_path
    root = (given or Path("workspace")).absolute()
    if not open_workspace(root).exists():
        raise UsageError(f"there is no workspace at {root}; name one with --workspace, or a config")
    return open_workspace(root if given else workspace_here(root)), stage, None


def workspace_here(root: Path) -> Path:
    """The workspace at `root`, or the demo's in it, if that alone is at work or alone was ever crawled in."""
    from crawler.workspace.opening import open_workspace
    from crawler.workspace.runs import read_run

    workspace, demo = open_workspace(root), open_workspace(root / "demo")
    if workspace.is_role_taken("supervisor"):
        return root
    is_only_one = read_run(workspace) is None and read_run(demo) is not None
    return root / "demo" if is_only_one or demo.is_role_taken("supervisor") else root


def status(
    target: PlaceArgument = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Look again every second, until Ctrl-C.")] = False,
) -> None:
    """What is running, paused, waiting and why; what lies in the spools."""
    from crawler.observe.status import Status

    place, stage, database = _target(target, workspace)
    if stage:
        raise UsageError(f"status shows all stages at once; leave {stage} out")
    if watch:
        _watch(place, database, as_json)
    elif as_json:
        typer.echo(_json(Status(place, database).as_json()))
    else:
        _print_lines(Status(place, database).lines())


def _watch(place: Workspace, database: Path | None, as_json: bool) -> None:
    from crawler.observe.live import TerminalView
    from crawler.observe.status import Status

    if as_json or not sys.stdout.isatty():
        while True:
            found = Status(place, database)
            typer.echo(
                _json(found.as_json(), is_short=True) if as_json else "\n".join(text for text, _ in found.lines())
            )
            sys.stdout.flush()
            time.sleep(1.0)
    with TerminalView(sys.stdout, time.monotonic()) as view:
        while True:
            view.draw(Status(place, database).lines())
            time.sleep(1.0)


def _json(value: Any, is_short: bool = False) -> str:
    import orjson

    return orjson.dumps(value, option=0 if is_short else orjson.OPT_INDENT_2).decode()


def _print_lines(lines: list[tuple[str, str]]) -> None:
    """Coloured on a terminal (unless NO_COLOR), plain elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console

        from crawler.observe.live import styled

        Console(highlight=False).print(styled(lines))
    else:
        for text, _ in lines:
            typer.echo(text)


def pause(target: TargetArgument = None, workspace: WorkspaceOption = None) -> None:
    """Hold on: no request leaves within two seconds. The same as: touch workspace/pause"""
    place, stage, _ = _target(target, workspace)
    _set_flag(place, "pause", stage)
    again = " ".join(["sumi-ripple resume", *(target or []), *(["--workspace", str(workspace)] if workspace else [])])
    typer.echo(f"{_whom(stage)} paused in {place.name}; go on with: {again}")


def resume(target: TargetArgument = None, workspace: WorkspaceOption = None) -> None:
    """Go on after a pause; a stop that nobody has heard yet is taken back, too."""
    from crawler.workspace.door import STAGES

    place, stage, _ = _target(target, workspace)
    stages: Sequence[str | None] = (stage,) if stage else (None, *STAGES)
    removed = [
        f"{word}.{name}" if name else word
        for word in ("pause", "stop")
        for name in stages
        if place.clear_flag(word, name)
    ]
    _ring_all(place)
    typer.echo(f"Removed {', '.join(removed)}" if removed else f"Nothing was paused in {place.name}")
    if stage and place.is_flagged("pause"):
        typer.echo("All stages are still paused by the flag file pause; go on with: sumi-ripple resume")


def stop(target: TargetArgument = None, workspace: WorkspaceOption = None) -> None:
    """Finish what is in flight, save and end; the next crawl goes on from there."""
    from crawler.observe.processes import look

    place, stage, _ = _target(target, workspace)
    running = [found.name for found in look(place).stages if found.is_running and stage in (None, found.stage)]
    if not running and not place.is_role_taken("supervisor"):
        typer.echo(f"Nothing is running in {place.name}")
        return
    _set_flag(place, "stop", stage)
    typer.echo(f"Told {', '.join(running) or 'the crawl'} to finish what is in flight, save and end")


def _set_flag(place: Workspace, word: str, stage: str | None) -> None:
    if not place.exists():
        raise UsageError(f"there is no workspace at {place.name} yet: nothing has been crawled there")
    place.set_flag(word, stage)
    _ring_all(place)


def _ring_all(place: Workspace) -> None:
    for name in place.bells():
        place.ring(name)


def _whom(stage: str | None) -> str:
    return {"fetcher": "The fetchers are", None: "All stages are"}.get(stage, f"The {stage} is")
