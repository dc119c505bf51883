"""Results that wait to be applied, by the heartbeat of the ingest, which tells up to where it has read."""

from __future__ import annotations

from typing import Any

import orjson

from crawler.workspace.door import Workspace
from crawler.workspace.log import Cursor

_INGEST = "ingest"


def progress_facts(positions: dict[str, Cursor], mean_bytes: float, free_disk: int | None) -> dict[str, Any]:
    """The facts of the ingest's heartbeat that the functions here read."""
    return {
        "positions": {name: [cursor.segment, cursor.offset] for name, cursor in positions.items()},
        "mean_result_bytes": round(mean_bytes, 1),
        "free_disk": free_disk,
    }


def unapplied(workspace: Workspace) -> tuple[int, int, int | None] | None:
    """(results, bytes, free bytes where the map lies). The number of results is estimated from their mean size.

    None: no ingest has told yet.
    """
    beat = workspace.heartbeat(_INGEST)
    try:
        facts = orjson.loads(beat or b"{}")["facts"]
        positions = {str(name): Cursor(int(at[0]), int(at[1])) for name, at in facts["positions"].items()}
        mean, free = float(facts["mean_result_bytes"]), facts["free_disk"]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        return None
    size = workspace.results.unread_bytes(positions)
    return int(size / mean) if mean > 0 else 0, size, free if isinstance(free, int) else None
