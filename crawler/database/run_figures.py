"""The figures of one run as a row of CSV: what is left of a summary that was removed."""

from __future__ import annotations

import csv
import io

from crawler.database.map_errors import MapError
from crawler.database.reader import open_map
from crawler.model.map_place import MapPlace

FIGURES_HEADER = b"run,started_at,finished_at,status,pages,known,links,errors,domains,source\r\n"


def figures_row(database: MapPlace, run: int, source: str) -> bytes:
    """The row of a run, as it was counted when the run was finished; empty where the map knows none."""
    try:
        with open_map(database) as reader:
            if not reader.has("run_figures"):
                return b""
            row = reader.first(
                "SELECT r.id, r.started_at, r.finished_at, r.status, f.pages, f.known, f.links, f.errors, f.domains"
                " FROM runs r JOIN run_figures f USING (id) WHERE r.id = ?",
                (run,),
            )
    except MapError:
        return b""
    if row is None:
        return b""
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerow([*row, source])
    return buffer.getvalue().encode()
