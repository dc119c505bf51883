"""Pages that were rejected as garbage. Maps of older formats have none."""

from __future__ import annotations

from crawler.database.reader import MapReader

_ALL = 1 << 62
_REJECTED = "FROM pages WHERE validation IN ('hard', 'soft') AND visited_run = ?"
_SLUG = "substr(rejection_reason, 1, instr(rejection_reason || ':', ':') - 1)"


def rejections(reader: MapReader, run: int) -> list[tuple[str, str, int]]:
    """(word, slug of the reason, pages) of those that `run` visited: hard ones first, then the most frequent."""
    if not reader.has_column("pages", "validation"):
        return []
    sql = f"SELECT validation, {_SLUG} AS slug, count(*) {_REJECTED} GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2"
    return [(word, slug, count) for word, slug, count in reader.rows(sql, (run,))]


def rejected_though_crawled(reader: MapReader, run: int) -> int:
    """Pages that `run` crawled, by their status, and that are none."""
    if not reader.has_column("pages", "validation"):
        return 0
    row = reader.first(f"SELECT count(*) {_REJECTED} AND state = 'processed' AND seen_run = ?", (run, run))
    return int(row[0]) if row else 0


def rejected_pages(reader: MapReader, run: int, limit: int | None) -> list[tuple[str, str, str]]:
    """(URL, word, reason) of them, by reason."""
    if not reader.has_column("pages", "validation"):
        return []
    sql = f"SELECT url, validation, rejection_reason {_REJECTED} ORDER BY validation, {_SLUG}, url LIMIT ?"
    rows = reader.rows(sql, (run, _ALL if limit is None else limit))
    return [(url, word, reason) for url, word, reason in rows]
