"""The work that waits between the stages. Cheap to read: one `stat` a spool segment, and a few rows of the map."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.database.ingest_progress import spool_positions
from crawler.model.map_place import MapPlace
from crawler.workspace.door import Workspace
from crawler.workspace.log import BEGINNING


@dataclass(frozen=True, slots=True)
class Backlog:
    """Work that waits between the stages."""

    jobs_bytes: int  # released by the scheduler, not yet done by the fetchers
    job_domains: int
    results_bytes: int | None  # written by the fetchers, not yet applied by the ingest; None: unknown


def read_backlog(workspace: Workspace, database: MapPlace | None) -> Backlog:
    jobs = workspace.waiting_job_bytes()
    positions = spool_positions(database) if database else None
    unread = None
    if positions is not None:
        results = workspace.results
        unread = sum(results.reader(name, positions.get(name, BEGINNING)).unread_bytes() for name in results.writers())
    return Backlog(sum(jobs.values()), len(jobs), unread)
