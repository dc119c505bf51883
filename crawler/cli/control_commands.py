"""The commands that control a crawl from outside: pause, resume, stop and reload; and its status."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawler.cli.help_format import looks_like_a_file
from crawler.cli.options import (
    JsonOption,
    WorkspaceOption,
    complete_config,
    complete_stage_or_config,
    default_workspace,
    load_config,
)
from crawler.model.errors import UsageError
from crawler.model.map_place import MapPlace

if TYPE_CHECKING:
    from crawler.observe.status import Status
    from crawler.workspace.door import Workspace
    from crawler.workspace.reloads import Answer

_ANSWER_PATIENCE = 10.0  # seconds

TargetArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CONFIG] [STAGE]",
        help="A config file (for its workspace) and a stage: scheduler, fetcher or ingest. [default: all stages]",
        autocompletion=complete_stage_or_config,
        show_default=False,
    ),
]
WorkspaceOfConfigArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[CONFIG]",
        help="A config file, for its workspace.",
        autocompletion=complete_config,
        show_default=False,
    ),
]


def _target(words: list[str] | None, given: Path | None) -> tuple[Workspace, str | None, MapPlace | None]:
    """The (workspace, stage, database) that the arguments of a command name."""
    from crawler.config.last_used import engine_source
    from crawler.workspace.door import STAGES
    from crawler.workspace.opening import open_workspace

    stages = [word for word in words or [] if word in STAGES]
    configs = [word for word in words or [] if word not in STAGES]
    if len(stages) > 1 or len(configs) > 1:
        raise UsageError("give at most one config and one stage (scheduler, fetcher or ingest)")
    if configs and not looks_like_a_file(configs[0]):
        raise UsageError(f"{configs[0]} is neither a config file nor a stage; the stages are {', '.join(STAGES)}")
    stage = stages[0] if stages else None
    if configs:
        config = load_config(Path(configs[0]), given)
        return open_workspace(config), stage, config.map_place
    root = (given or Path("workspace")).absolute()
    if not open_workspace(root).exists():
        raise UsageError(f"there is no workspace at {root}; name another folder with --workspace, or a config file")
    root = root if given else default_workspace(root)
    source = engine_source(root)
    if source is not None:  # the folder has only what this machine alone needs
        config = load_config(source, root)
        return open_workspace(config), stage, config.map_place
    return open_workspace(root), stage, None


def status(
    target: WorkspaceOfConfigArgument = None,
    workspace: WorkspaceOption = None,
    as_json: JsonOption = False,
    watch: Annotated[bool, typer.Option("--watch", help="Update every second, until Ctrl-C.")] = False,
    everything: Annotated[bool, typer.Option("--all", help="List every closed domain and circuit breaker.")] = False,
) -> None:
    """Show what is running, paused or waiting and why, and how much work is queued between the stages."""
    from crawler.observe.status import Status

    place, stage, database = _target(target, workspace)
    if stage:
        raise UsageError(f"status shows all stages at once; omit {stage}")
    look = partial(Status, place, database, is_uncut=everything, command=_again("status", target, workspace))
    if watch:
        _watch(look, as_json)
    elif as_json:
        typer.echo(_json(look().as_json()))
    else:
        from crawler.observe.wrapping import terminal_width

        _print_lines(look().lines(terminal_width(sys.stdout)))


def _again(command: str, target: list[str] | None, workspace: Path | None) -> str:
    """A command with the arguments that were given to this one."""
    return " ".join(
        [f"sumi-ripple {command}", *(target or []), *(["--workspace", str(workspace)] if workspace else [])]
    )


def _watch(look: Callable[[], Status], as_json: bool) -> None:
    from crawler.observe.live_view import TerminalView

    if as_json or not sys.stdout.isatty():
        while True:
            found = look()
            typer.echo(
                _json(found.as_json(), is_short=True) if as_json else "\n".join(text for text, _ in found.lines())
            )
            sys.stdout.flush()
            time.sleep(1.0)
    with TerminalView(sys.stdout, time.monotonic()) as view:
        while True:
            view.draw(look().lines(view.width))
            time.sleep(1.0)


def _json(value: Any, is_short: bool = False) -> str:
    import orjson

    return orjson.dumps(value, option=0 if is_short else orjson.OPT_INDENT_2).decode()


def _print_lines(lines: list[tuple[str, str]]) -> None:
    """Print in colours on a terminal (unless NO_COLOR is set), plainly elsewhere."""
    if sys.stdout.isatty():
        from rich.console import Console

        from crawler.observe.live_view import styled

        Console(highlight=False).print(styled(lines))
    else:
        for text, _ in lines:
            typer.echo(text)


def pause(target: TargetArgument = None, workspace: WorkspaceOption = None) -> None:
    """Pause all stages, or one. Within two seconds no more requests are sent.

    The command creates a flag file, as would: touch workspace/pause
    """
    place, stage, _ = _target(target, workspace)
    _set_flag(place, "pause", stage)
    typer.echo(f"{_subject(stage)} paused in {place.name}; to go on: {_again('resume', target, workspace)}")


def resume(target: TargetArgument = None, workspace: WorkspaceOption = None) -> None:
    """Resume after a pause. A stop that no stage has seen yet is cancelled too."""
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
    typer.echo(f"Removed the flag file {' and '.join(removed)}" if removed else f"Nothing is paused in {place.name}")
    if stage and place.is_flagged("pause"):
        typer.echo("All stages are still paused by the flag file pause; to go on: sumi-ripple resume")


def stop(target: TargetArgument = None, workspace: WorkspaceOption = None) -> None:
    """Stop all stages, or one: they finish what is in flight, save and end. The next crawl resumes the run.

    The command creates a flag file, as would: touch workspace/stop
    """
    from crawler.observe.processes import observe

    place, stage, _ = _target(target, workspace)
    running = [found.name for found in observe(place).stages if found.is_running and stage in (None, found.stage)]
    if not running and not place.is_role_taken("supervisor"):
        typer.echo(f"Nothing is running in {place.name}")
        return
    _set_flag(place, "stop", stage)
    typer.echo(f"Told {', '.join(running) or 'the crawl'} to finish what is in flight, save and end")


def reload(target: WorkspaceOfConfigArgument = None, workspace: WorkspaceOption = None) -> None:
    """Read the config again: lists, scope, limits, delays and all else hold from the next batch on.

    What changed is said. A config with a mistake changes nothing. A signal does the same: kill -HUP PID
    """
    from crawler.config.last_used import last_used_source
    from crawler.observe.processes import observe
    from crawler.workspace.reloads import order_reload

    place, stage, _ = _target(target, workspace)
    if stage:
        raise UsageError(f"reload concerns all stages at once; omit {stage}")
    source = last_used_source(place)
    named = Path(target[0]).absolute() if target else source
    if source is None or named is None:
        raise UsageError(f"nothing has been crawled in {place.name}; there is no config to read again")
    if not any(found.is_running for found in observe(place).stages) and not place.is_role_taken("supervisor"):
        typer.echo(f"Nothing is running in {place.name}; the next start reads {named} anyway")
        return
    if named != source:
        raise UsageError(f"the crawl in {place.name} was started with {source}, not with {named}")
    load_config(source, Path(place.name))  # a mistake is best told here, to the one who made it
    answer = _await_answer(place, order_reload(place))
    if answer is None:
        typer.echo(f"Told the stages in {place.name} to read {source}; they say in their logs what came of it")
        return
    for line in answer.lines:
        typer.echo(line if line is answer.lines[0] else f"  {line}", err=not answer.is_taken)
    if not answer.is_taken:
        raise typer.Exit(1)


def _await_answer(place: Workspace, token: str) -> Answer | None:
    """The answer of the crawl, which looks for orders twice a second; None: there was none in a while."""
    from crawler.workspace.reloads import reload_answer

    deadline = time.monotonic() + _ANSWER_PATIENCE
    while (answer := reload_answer(place, token)) is None and time.monotonic() < deadline:
        time.sleep(0.05)
    return answer


def _set_flag(place: Workspace, word: str, stage: str | None) -> None:
    if not place.exists():
        raise UsageError(f"there is no workspace at {place.name} yet; nothing has been crawled there")
    place.set_flag(word, stage)
    _ring_all(place)


def _ring_all(place: Workspace) -> None:
    for name in place.bells():
        place.ring(name)


def _subject(stage: str | None) -> str:
    return {"fetcher": "The fetchers are", None: "All stages are"}.get(stage, f"The {stage} is")
