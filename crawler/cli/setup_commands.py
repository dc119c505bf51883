"""The commands that make a workspace ready for a first crawl, and empty again: configure, reset."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from crawler.cli.options import ConfigArgument, WorkspaceOption, load_config, log_to_stderr
from crawler.model.errors import SumiError, UsageError
from crawler.model.map_place import MapPlace


def configure(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="The config file; written if there is none.", show_default=False)
    ],
    workspace: WorkspaceOption = None,
) -> None:
    """Make everything that a crawl needs: a config, its seeds file, and the folders of its workspace.

    What is there already stays as it is, so the command may be given again at any time.
    """
    from crawler.config.places import require_places
    from crawler.config.starting import missing_seed_files, seeds_text, starting_text, write_new
    from crawler.workspace.opening import open_workspace

    is_new = write_new(config, starting_text())
    seeds = [place for place, domain in missing_seed_files(config) if write_new(place, seeds_text(domain))]
    made = [str(path) for path in ([config] if is_new else []) + seeds]
    try:
        loaded = load_config(config, workspace)
        require_places(loaded)
    except SumiError:
        for place in map(Path, made):
            place.unlink(missing_ok=True)
        raise
    root = open_workspace(loaded)
    if not root.exists():
        made.append(root.name)
    root.prepare()
    root.prepare_outputs()
    typer.echo(f"Made {', '.join(made)}" if made else "Everything was there already; nothing was changed")
    if is_new:
        typer.echo(f"Put your domain into it and its pages into the seeds file, then: sumi-ripple {config} --dry-run")


def reset(
    config: ConfigArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    purge: Annotated[
        bool, typer.Option("--purge", help="Delete what was moved aside, in the background. It cannot be brought back.")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Empty a workspace: map, spools, state, logs, stored pages and summaries are moved aside under a dated name.

    The folders stay, and so does the pace: domains that were just asked are not asked again too soon. With an engine,
    the crawl in it is meant: one in files, in the same folder, stays as it is.
    """
    from crawler.database.presence import is_there
    from crawler.engine.place import place_of
    from crawler.supervise.before_start import require_no_stages, take_supervision
    from crawler.supervise.fresh import move_aside
    from crawler.supervise.purge import mark_for_purge, old_schemas, purge_in_background, purge_schemas
    from crawler.workspace.opening import open_workspace
    from crawler.workspace.unfinished import unfinished_import
    from ingest.whole_maps import remove_left

    log_to_stderr(0, False)
    loaded = load_config(config, workspace)
    if not yes and not sys.stdin.isatty():
        raise UsageError("reset asks before it empties a workspace, and nobody can answer here; say --yes")
    place = open_workspace(loaded)
    files = open_workspace(loaded.workspace) if loaded.engine.url else None
    kept = f"The crawl in files in {place.name} stays as it is" if files and files.results.writers() else ""
    if not place.exists() and not is_there(loaded.map_place):
        typer.echo(f"There is nothing to reset: neither {place.name} nor {loaded.map_place} exists")
        return
    place.prepare(is_to_be_cleared=True)
    role = take_supervision(place, loaded)
    try:
        require_no_stages(place, loaded)
        if not yes:
            where = f"{place_of(loaded.engine.url, os.environ)}" if files else place.name
            _ask(where, loaded.map_place, purge)
        if (given_up := unfinished_import(place, is_alone=True)) is not None:
            remove_left(loaded.map_place)
        before = old_schemas(loaded)
        moved = move_aside(loaded, is_whole=True)
        if purge:
            dropped = purge_schemas(loaded, old_schemas(loaded) - before)
            mark_for_purge(moved)
        place.prepare_outputs()
    finally:
        role.release()
    if given_up:
        typer.echo("The unfinished import was given up; nothing of it is in the engine")
    if kept:
        typer.echo(kept)
    if purge:
        words = purge_in_background(loaded)
        if dropped:
            typer.echo(dropped)
        if words or not dropped:
            typer.echo(f"{words} deleted, in the background" if words else "There was nothing to delete")
        return
    for each in moved:
        typer.echo(f"Moved aside: {each}")
    if not moved:
        typer.echo("There was nothing to move aside")


def _ask(workspace: str, database: MapPlace, purge: bool) -> None:
    """Go on only if a person says so."""
    what = "deleted, for good" if purge else "moved aside"
    if not typer.confirm(f"The map {database} and the crawl in {workspace} will be {what}. Go on?"):
        typer.echo("Nothing was changed")
        raise typer.Exit(1)
