"""Pages that were rejected as garbage. Maps of older formats have none."""

from __future__ import annotations

from typing import NamedTuple

from crawler.database.reader import MapReader

_ALL = 1 << 62
_REJECTED = "FROM pages WHERE validation IN ('hard', 'soft') AND visited_run = ?"
_SLUG = "substr(rejection_reason, 1, instr(rejection_reason || ':', ':') - 1)"


class Rejections(NamedTuple):
    """Pages that a run visited and rejected for one reason."""

    word: str  # soft | hard
    slug: str
    pages: int
    crawled: int  # those of them that the run crawled, by their status


def rejections(reader: MapReader, run: int) -> list[Rejections]:
    """Those that `run` visited, by word and slug of the reason: hard ones first, then the most frequent."""
    if not reader.has_column("pages", "validation"):
        return []
    sql = (
        f"SELECT validation, {_SLUG} AS slug, count(*), count(*) FILTER (WHERE state = 'processed' AND seen_run = ?)"
        f" {_REJECTED} GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2"
    )
    return [Rejections(*row) for row in reader.rows(sql, (run, run))]


def rejected_pages(reader: MapReader, run: int, limit: int | None) -> list[tuple[str, str, str]]:
    """(URL, word, reason) of them, by reason."""
    if not reader.has_column("pages", "validation"):
        return []
    sql = f"SELECT url, validation, rejection_reason {_REJECTED} ORDER BY validation, {_SLUG}, url LIMIT ?"
    rows = reader.rows(sql, (run, _ALL if limit is None else limit))
    return [(url, word, reason) for url, word, reason in rows]
