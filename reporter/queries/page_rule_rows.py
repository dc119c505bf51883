"""What rules about single pages did: scope, types, caps. Maps before format 6 know none of them."""

from __future__ import annotations

from crawler.database.reader import MapReader

_CAP = "cap "  # before its name, in the family of a closed unit


def rule_columns(reader: MapReader, alias: str = "pages") -> str:
    """`page_type` and `class` of a page (NULL: its domain's), or what they are in a map of a format without them."""
    has_them = reader.has_column("pages", "page_type")
    return f"{alias}.page_type, {alias}.class" if has_them else "NULL, NULL"


def has_parts(reader: MapReader) -> bool:
    """Has any page another class than its domain?"""
    if not reader.has_column("pages", "class"):
        return False
    return reader.first("SELECT 1 FROM pages WHERE class IS NOT NULL LIMIT 1") is not None


def scope_counts(reader: MapReader, run: int) -> list[tuple[str, int]]:
    """(rule, pages) of what this run saw and left out, the most frequent first."""
    rows = reader.rows(
        "SELECT substr(error_message, 15), count(*) FROM pages WHERE seen_run = ? AND state = 'discovered'"
        " AND error_message LIKE 'out-of-scope: %' GROUP BY 1 ORDER BY 2 DESC, 1",
        (run,),
    )
    return [(rule, count) for rule, count in rows]


def type_counts(reader: MapReader, run: int) -> list[tuple[str | None, int, int]]:
    """(type, pages crawled, pages known) in this run; empty where no page has a type."""
    has_types = "SELECT 1 FROM meta WHERE name = 'map_settings' AND value LIKE '%\"page-type\"%'"
    if not reader.has_column("pages", "page_type") or reader.first(has_types) is None:
        return []  # without a look at every page
    rows = reader.rows(
        "SELECT page_type, count(*) FILTER (WHERE state = 'processed'), count(*) FROM pages WHERE seen_run = ?"
        " GROUP BY 1 ORDER BY page_type IS NULL, 3 DESC, 1",
        (run,),
    )
    found = [(name, crawled, known) for name, crawled, known in rows]
    return found if any(name is not None for name, _, _ in found) else []


def closed_caps(reader: MapReader, run: int) -> list[tuple[str, str, str, int]]:
    """(name, value, error, pages that it left unvisited) of the units of caps that are reached, by name and value."""
    if not reader.has("cap_pages"):
        return []
    rows = reader.rows(
        "SELECT family, error, (SELECT count(*) FROM cap_pages c CROSS JOIN pages p ON p.id = c.page_id"
        "  WHERE c.unit = f.id AND p.error_message = f.error AND p.seen_run = f.run)"
        " FROM closed_families f WHERE run = ? AND domain = '' ORDER BY family",
        (run,),
    )
    found = [(*family.removeprefix(_CAP).partition("\n")[::2], error, pages) for family, error, pages in rows]
    return [(str(name), str(value), error, pages) for name, value, error, pages in found]


def cap_visits(reader: MapReader, unit: int, run: int) -> int:
    """Visits under a unit of a cap in this run."""
    if not reader.has("cap_pages"):
        return 0
    return reader.number(
        "SELECT count(*) FROM cap_pages CROSS JOIN pages ON id = page_id WHERE unit = ? AND visited_run = ?",
        (unit, run),
    )
