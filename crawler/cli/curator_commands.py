"""The curator's commands: which domains deserve a decision, and the decisions themselves. None sends a request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.map_commands import MapArgument, Progress, RunOption, last_config, map_at
from crawler.cli.options import CsvOption, JsonOption, WorkspaceOption, complete_config, load_config, show
from crawler.model.errors import UsageError
from crawler.model.map_place import MapPlace

if TYPE_CHECKING:
    from crawler.config.curation import Made
    from crawler.model.settings import Config


def candidates(
    config: MapArgument,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N.")] = 20,
    run: RunOption = None,
) -> None:
    """Rank the discovered domains by how many different quality domains link to them.

    Each with the title of its front page, pages that link there, and why no more of it was crawled.
    """
    from reporter import candidate_views
    from reporter.candidates import candidates as find

    if as_json and as_csv:
        raise UsageError("give only one of --json and --csv")
    found = find(map_at(config, run=run)[0], limit)
    if as_json:
        text = candidate_views.as_json(found)
    elif as_csv:
        text = candidate_views.as_csv(found)
    else:
        show(candidate_views.as_text(found, str(config)))
        return
    typer.echo(text, nl=False)


DomainArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DOMAIN [CONFIG]",
        help="The domain (*.example.org: with its subdomains); and the config file, unless it is the one that"
        " ./workspace was last crawled with.",
        autocompletion=complete_config,
        show_default=False,
    ),
]
NoteOption = Annotated[str, typer.Option("--note", metavar="TEXT", help="A note to keep with the entry.")]
TagOption = Annotated[
    list[str] | None, typer.Option("--tag", metavar="WORD", help="A tag to keep with the entry; may be repeated.")
]
UndoOption = Annotated[bool, typer.Option("--undo", help="Take the newest decision back.")]
NoPreviewOption = Annotated[
    bool, typer.Option("--no-preview", help="Do not work out what the map would become; that takes time on large maps.")
]


DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Work out what the map would become, and change nothing.")
]


def accept(
    words: DomainArgument = None,
    note: NoteOption = "",
    tags: TagOption = None,
    undo: UndoOption = False,
    no_preview: NoPreviewOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Put a domain into the quality list of the config file, with https://DOMAIN/ as its seed.

    Comments and layout of the file are kept. The map is not changed before the next crawl; what it would become is
    worked out by a replay of the results and shown in figures.
    """
    _decide("accept", words, note, tags, undo, no_preview, workspace, dry_run, as_json)


def reject(
    words: DomainArgument = None,
    note: NoteOption = "",
    tags: TagOption = None,
    undo: UndoOption = False,
    no_preview: NoPreviewOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Put a domain into the blacklist of the config file: never visited, links to it are counted.

    Otherwise like accept.
    """
    _decide("reject", words, note, tags, undo, no_preview, workspace, dry_run, as_json)


def stub(
    words: DomainArgument = None,
    note: NoteOption = "",
    tags: TagOption = None,
    undo: UndoOption = False,
    no_preview: NoPreviewOption = False,
    dry_run: DryRunOption = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Put a domain into the stub list of the config file: never visited, its pages are recorded.

    Otherwise like accept.
    """
    _decide("stub", words, note, tags, undo, no_preview, workspace, dry_run, as_json)


def _decide(
    command: str,
    words: list[str] | None,
    note: str,
    tags: list[str] | None,
    is_undo: bool,
    no_preview: bool,
    workspace: Path | None,
    is_dry_run: bool,
    as_json: bool,
) -> None:
    from crawler.config.curation import Decision, decide, foresee
    from crawler.model.shown_text import domain_words

    configs = [word for word in words or [] if word.endswith(".toml")]
    domains = [word for word in words or [] if word not in configs]
    if len(domains) > 1 or len(configs) > 1 or not (domains or is_undo):
        raise UsageError(f"give one domain and at most one config (a .toml file): sumi-ripple {command} DOMAIN my.toml")
    if is_undo and is_dry_run:
        raise UsageError("--undo cannot be foreseen; give it without --dry-run")
    if as_json and not is_dry_run:
        raise UsageError("--json goes with --dry-run")
    if is_undo and (note or tags):
        raise UsageError("--undo takes no --note and no --tag")
    config = load_config(Path(configs[0]), workspace) if configs else last_config(workspace)
    if is_undo:
        _undo(config, domains[0] if domains else None, no_preview)
        return
    decision = Decision(command, domains[0], note, tuple(tags or ()))
    if is_dry_run:
        _show_foreseen(foresee(config, decision), as_json)
        return
    made = decide(config, decision)
    left = f", and out of [[{']] and [['.join(made.left)}]]" if made.left else ""
    typer.echo(f"Put {domain_words(made.domain)} into [[{made.list_name}]] of {config.source}{left}.")
    for warning in _new_warnings(made.before, made.after):
        typer.echo(f"Warning: {warning}", err=True)
    if not no_preview:
        _preview(made.after)
    place = f" --workspace {workspace}" if workspace else ""
    name = configs[0] if configs else config.source
    typer.echo(f"It takes effect with the next crawl; to take it back: sumi-ripple {command} --undo {name}{place}")


def _undo(config: Config, domain: str | None, no_preview: bool) -> None:
    from crawler.config.curation import undo
    from crawler.model.shown_text import domain_words

    command, decided, after = undo(config, domain)
    shown = domain_words(decided)
    beside = "" if shown == decided else f" ({shown.partition(' ')[0]})"
    typer.echo(f"Undid `{command} {decided}`{beside}: {config.source} is as it was before.")
    if not no_preview:
        _preview(after)


def _new_warnings(before: Config, after: Config) -> list[str]:
    from crawler.config.warnings import warnings

    known = set(warnings(before))
    return [warning for warning in warnings(after) if warning not in known]


def _show_foreseen(made: Made, as_json: bool) -> None:
    """What a decision would change, for people or as JSON."""
    import orjson

    lines, warnings = (
        _preview_lines(made.after, None if as_json else Progress()),
        _new_warnings(made.before, made.after),
    )
    if as_json:
        shape = {"v": 1, "kind": "preview", "domain": made.domain, "list": made.list_name}
        lines = [line.strip() for line in lines if not line.endswith(":")]
        typer.echo(orjson.dumps({**shape, "lines": lines, "warnings": warnings}).decode())
        return
    for line in lines:
        typer.echo(line)
    for warning in warnings:
        typer.echo(f"Warning: {warning}", err=True)
    typer.echo("Nothing was changed.")


def _preview(config: Config) -> None:
    """Show in figures how a replay under this config differs from the map."""
    for line in _preview_lines(config, Progress()):
        typer.echo(line)


@contextmanager
def _preview_place(database: MapPlace) -> Iterator[MapPlace]:
    """A place for a map that is only compared with this one: in the same engine."""
    from tempfile import TemporaryDirectory

    from ingest.whole_maps import discard, made_here

    if isinstance(database, Path):
        with TemporaryDirectory(prefix=".sumi-preview-", dir=database.parent) as folder:
            yield Path(folder) / "map.db"
        return
    place = database.beside(f"preview_{os.getpid()}")
    with made_here(place):
        try:
            yield place
        finally:
            discard(place)


def _preview_lines(config: Config, progress: Progress | None) -> list[str]:
    from crawler.database.ingest_progress import results_kept_from
    from crawler.database.presence import is_there
    from crawler.workspace.opening import open_workspace
    from ingest.replay import replay

    database = config.map_place
    if not is_there(database) or not open_workspace(config).results.writers():
        return ["Nothing has been crawled yet, so there is no map that it would change."]
    kept_from = results_kept_from(database)
    if kept_from is not None:
        return [f"The results before run {kept_from} are gone ([spool] results), so the new map cannot be foreseen."]
    with _preview_place(database) as place:
        try:
            found = replay(config, place, progress=progress, compare=database)
        finally:
            if progress is not None:
                progress.end()
    lines = found.difference.lines() if found.difference else []
    return ["The map would become, without any further request:", *(f"  {line}" for line in lines)]
