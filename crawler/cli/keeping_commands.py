"""The commands that keep a crawl over time: backup, restore, storage, prune, archive. None of them sends a request."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.map_commands import OptionalConfigArgument, last_config
from crawler.cli.options import JsonOption, WorkspaceOption, load_config, show
from crawler.model.errors import UsageError

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
    if not verify or not (folder / NAME).exists():
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
        typer.Option("--into", metavar="FOLDER", help="An empty or new folder for the crawl. [default: this one]"),
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
