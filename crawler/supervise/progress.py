"""A stage's progress, as the result logs and the map show it."""

from __future__ import annotations

from crawler.database.ingest_progress import spool_positions
from crawler.model.map_place import MapPlace
from crawler.workspace.door import Workspace
from crawler.workspace.log import BEGINNING


def stage_progress(stage: str, workspace: Workspace, database: MapPlace) -> object:
    """A value that differs whenever the stage has done something."""
    if stage == "ingest":
        return spool_positions(database)
    return [workspace.results.end(name) for name in workspace.results.writers() if name != "scheduler"]


def has_unapplied_results(workspace: Workspace, database: MapPlace) -> bool:
    """Are there results that the map has not applied yet?"""
    positions = spool_positions(database) or {}
    for name in workspace.results.writers():
        reader = workspace.results.reader(name, positions.get(name, BEGINNING), is_live_only=True)
        try:
            if reader.read(1):
                return True
        finally:
            reader.close()
    return False
