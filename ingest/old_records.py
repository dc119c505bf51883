"""Lines of `metadata/crawl_metadata.jsonl` that may go by `[retention] metadata`: the ingest's role is held meanwhile.

The file is written again without them, at another place. One commit notes its new length and that it is to take the old
one's place: so a cut at any moment leaves one of the two, whole, and the next start of the ingest does the rest.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from functools import partial

import orjson

from crawler.database.presence import is_there
from crawler.model.daily import VISITS_HEADER, date_of, visits_by_day
from crawler.model.removal import Pruning, Removal
from crawler.model.settings import Config
from crawler.model.shown_text import age_words, counted
from crawler.workspace.door import AppendedFile, LogFolder
from crawler.workspace.opening import open_workspace
from ingest.old_results import RollUp
from ingest.page_log import METADATA, ReplacedLog, redrawn_folder

_DATE = re.compile(rb'\{"timestamp":"(\d{4}-\d\d-\d\d)T')
_TABLE = "records.csv"


def prune_records(config: Config, roll_up: RollUp, now: float | None = None) -> Pruning:
    """What would go: the lines of whole days, in UTC."""
    limit = config.retention.metadata
    if not limit or not is_there(config.map_place):
        return Pruning()
    before = date_of(str((time.time() if now is None else now) - limit))
    sizes = [len(line) for line in _lines_before(open_workspace(config).logs.file(METADATA), before)]
    if not sizes:
        return Pruning()
    words = f"{counted(len(sizes), 'line')} of {METADATA} from before {before}"
    why = f"older than {age_words(limit)} ([retention] metadata)"
    return Pruning((Removal("metadata", words, sum(sizes), why, partial(_remove, config, roll_up, before)),))


def _remove(config: Config, roll_up: RollUp, before: str) -> None:
    workspace = open_workspace(config)
    role = workspace.take_role("ingest")
    try:
        replaced = ReplacedLog(config.map_place, workspace.logs)
        committed = replaced.finish()  # what a prune that was cut off has left
        rows = visits_by_day(map(_visit, _lines_before(workspace.logs.file(METADATA), before, committed)), METADATA)
        for row in rows.decode().splitlines():  # each day is rolled up once, however often a prune is cut off
            source = f"{METADATA} of {row[:10]}"
            roll_up(_TABLE, VISITS_HEADER, source, partial(f"{row} of {row[:10]}\r\n".encode))
        replaced.note(_write_rest(workspace.logs, before, committed))
        replaced.finish()
    finally:
        role.release()


def _write_rest(logs: LogFolder, before: str, committed: int) -> int:
    """Write the lines that stay to the other place, durably; returns the length."""
    rest = redrawn_folder(logs).file(METADATA)
    size = rest.open_at(0)
    try:
        for line in logs.file(METADATA).lines(committed):
            if not _is_before(line, before):
                rest.append(line)
                size += len(line)
        rest.sync()
    finally:
        rest.close()
    return size


def _lines_before(file: AppendedFile, before: str, size: int | None = None) -> Iterator[bytes]:
    return (line for line in file.lines(size) if _is_before(line, before))


def _is_before(line: bytes, before: str) -> bool:
    """A line without a date stays."""
    found = _DATE.match(line)
    return found is not None and found[1].decode() < before


def _visit(line: bytes) -> tuple[str, int | None, int]:
    """Time, status and bytes of a line, for the daily figures."""
    try:
        fields = orjson.loads(line)
    except ValueError:
        fields = {}
    date = _DATE.match(line)
    status, size = fields.get("http_status"), fields.get("content_bytes")
    return (
        date[1].decode() if date else "",
        status if isinstance(status, int) else None,
        size if isinstance(size, int) else 0,
    )
