"""The commands that keep a crawl over time: backup, restore, storage, prune, archive. None of them sends a request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.help_format import looks_like_a_file
from crawler.cli.map_commands import OptionalConfigArgument, last_config
from crawler.cli.options import JsonOption, WorkspaceOption, complete_config, load_config, show
from crawler.model.errors import UsageError

if TYPE_CHECKING:
    from crawler.model.removal import Pruning, Removal
    from crawler.model.settings import Config

FolderArgument = Annotated[
    Path, typer.Argument(metavar="DIR", help="The folder of the backup.", show_default=False, file_okay=True)
]


def backup(
    folder: FolderArgument,
    config: OptionalConfigArgument = None,
    store: Annotated[
        str,
        typer.Option(
            "--store",
            metavar="HOW",
            help="The stored pages: whole (linked, or copied to another disk), reference (only where they are), none.",
        ),
    ] = "whole",
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Check every file of the backup; one that is there already is only checked."),
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Copy a whole crawl into a new folder while it goes on: map, results, gates, logs, stored pages, config."""
    from crawler.keep import backup as keep
    from crawler.keep.manifest import NAME
    from crawler.model.shown_text import size_words

    if store not in keep.STORES:
        raise UsageError(f"--store {store}: give one of {', '.join(keep.STORES)}")
    is_there = (folder / NAME).exists()
    if verify and not is_there and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        keep.verify(folder)  # it says why this is no backup
    if not verify or not is_there:
        loaded = load_config(config, workspace) if config else last_config(workspace)
        made = keep.back_up(loaded, folder, store)
        facts = made.manifest
        show(f"Backed up run {facts.run} ({facts.status}) to {folder}: {made.files:,} files, {size_words(made.size)}")
        if made.unapplied:
            show(
                f"{size_words(made.unapplied)} of results were not in the map yet and are not in the backup: "
                "a restored crawl visits those pages again"
            )
        show(f"digest {facts.digest}")
    if verify:
        found = keep.verify(folder)
        show(f"{folder} is whole: a backup of run {found.run} ({found.status}), made {found.made_at}")


def storage(
    config: OptionalConfigArgument = None, as_json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Show what each part of a crawl takes on disk, how it grew, and when the disk will be full."""
    from crawler.keep.storage import measure

    loaded = load_config(config, workspace) if config else last_config(workspace)
    found = measure(loaded)
    if as_json:
        typer.echo(found.json(), nl=False)
    else:
        show(found.text())


def restore(
    folder: FolderArgument,
    into: Annotated[
        Path,
        typer.Option(
            "--into",
            metavar="FOLDER",
            help="An empty or new folder for the crawl. [default: this one]",
            show_default=False,
        ),
    ] = Path(),
) -> None:
    """Make a backup a crawl again, in a folder of its own, and check its digest. The crawl can go on from there."""
    from crawler.keep.restore import restore as run_restore

    found = run_restore(folder, into)
    facts = found.manifest
    show(f"Restored run {facts.run} ({facts.status}) of {facts.made_at} to {into}")
    show(f"digest {facts.digest}, as in the backup")
    for note in found.notes:
        show(f"Note: {note}")
    named = f" --workspace {found.config.workspace}" if found.is_workspace_named else ""
    show(f"To go on: sumi-ripple {into / facts.config}{named}")


def prune(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KIND]... [CONFIG]",
            help="Only these kinds: results, blobs, logs, metadata, quarantine, summaries, run-maps, aside. Results, "
            "blobs that are needed, and aside go only if they are named. And the config file, unless ./workspace was "
            "last crawled with it.",
            autocompletion=complete_config,
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go, and why.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Remove it.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Remove what is older than [retention] allows. Daily figures are rolled up before their details go.

    Nothing that a replay or a revisit needs goes unless its kind is named.
    """
    from crawler.keep.prune import KINDS
    from crawler.model.shown_text import size_words

    if dry_run == yes:
        raise UsageError("give either --dry-run, which shows what would go, or --yes, which removes it")
    kinds = tuple(dict.fromkeys(word for word in words or () if word in KINDS))
    configs = [word for word in words or () if word not in KINDS]
    if len(configs) > 1 or (configs and not looks_like_a_file(configs[0])):
        raise UsageError(f"give kinds ({', '.join(KINDS)}) and at most one config, not {' '.join(configs)}")
    loaded = load_config(Path(configs[0]), workspace) if configs else last_config(workspace)
    found = _pruning(loaded, kinds)
    if yes:
        _remove_all(loaded, found)
    else:
        for removal in found.removals:
            show(_removal_words(removal, "would go"))
            _warn(removal, "without them")
    for line in found.stays:
        show(line)
    total = size_words(sum(removal.size for removal in found.removals))
    if found.removals:
        show(f"{total} removed" if yes else f"{total} would go; to remove it, give --yes")
    elif loaded.retention == type(loaded.retention)():
        show(f"[retention] is not set in {loaded.source}: everything is kept")
    else:
        show("Nothing is older than [retention] allows")


def _remove_all(config: Config, found: Pruning) -> None:
    from crawler.workspace.opening import open_workspace

    if not found.removals:
        return
    role = open_workspace(config).take_role("pruner")  # two would roll the same figures up
    try:
        for removal in found.removals:
            _warn(removal, "from now on")
            removal.remove()
            show(_removal_words(removal, "removed"))  # at once: the next one may be refused
    finally:
        role.release()


def _warn(removal: Removal, when: str) -> None:
    if removal.loses:
        show(f"{removal.kind}: {when}, {removal.loses}")


def _removal_words(removal: Removal, done: str) -> str:
    from crawler.model.shown_text import size_words

    return f"{removal.kind}: {removal.name} ({size_words(removal.size)}) {done}: {removal.why}"


def _pruning(config: Config, kinds: tuple[str, ...]) -> Pruning:
    """What would go of these kinds, or of all, from every part of the crawl."""
    from functools import partial

    from crawler.keep.old_blobs import prune_blobs
    from crawler.keep.prune import prune_workspace, require_limits, roll_up
    from crawler.workspace.opening import open_keeping
    from ingest.old_records import prune_records
    from ingest.old_results import prune_results

    require_limits(config, kinds)
    found = prune_workspace(config, kinds)
    rolling = partial(roll_up, open_keeping(config.workspace))
    if not kinds or "metadata" in kinds:
        found += prune_records(config, rolling)
    if not kinds or "results" in kinds:
        found += prune_results(config, rolling, is_named="results" in kinds)
    if not kinds or "blobs" in kinds:
        found += prune_blobs(config, is_named="blobs" in kinds)
    return found


def archive(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CONFIG] | open FOLDER",
            help="The config file, unless ./workspace was last crawled with it; or the archive to open.",
            autocompletion=complete_config,
            show_default=False,
        ),
    ] = None,
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="DATE", help="Archive the visits before this day, e.g. 2025-01-31."),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            "--into",
            metavar="PATH",
            help="The folder of the archive [default: archive/before-DATE in the workspace], or the database that "
            "open makes [default: archive.db in FOLDER].",
            show_default=False,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Archive the visits before a date as compressed CSV and JSON lines, or open such an archive as a read-only table.

    An archive removes nothing; prune does.
    """
    from crawler.keep import archive as keep
    from crawler.model.shown_text import counted

    given = list(words or ())
    if given[:1] == ["open"]:
        if len(given) != 2 or before is not None:
            raise UsageError(
                "give the archive's folder, like: sumi-ripple archive open workspace/archive/before-2025-01-31"
            )
        path, counts = keep.open_archive(Path(given[1]), into)
        tables = ", ".join(f"{name} ({counted(count, 'row')})" for name, count in counts.items())
        show(f"Opened {given[1]} as {path}, read-only: {tables}")
        return
    if before is None or len(given) > 1:
        raise UsageError("give a date and at most one config, like: sumi-ripple archive my.toml --before 2025-01-31")
    day = _day(before)
    loaded = load_config(Path(given[0]), workspace) if given else last_config(workspace)
    folder = into or loaded.workspace / "archive" / f"before-{before}"
    made = keep.make_archive(loaded, day, folder)
    show(
        f"Archived {counted(made.pages, 'visit')} ({counted(made.failures, 'failure')}) of {made.first[:10]} to "
        f"{made.last[:10]} in {folder}"
    )
    show(f"To look into it: sumi-ripple archive open {folder}")


def _day(text: str) -> str:
    """The beginning of a day, in UTC, in the format of the records."""
    from datetime import date

    try:
        return f"{date.fromisoformat(text).isoformat()}T00:00:00.000Z"
    except ValueError:
        raise UsageError(f"--before {text!r} is not a date; write it like 2025-01-31") from None
