"""The tables of a map in PostgreSQL: those of `ingest.writing.schema`, in its words, and the functions they need.

One difference: `links` is a view. Its rows lie packed in `page_links`, a row for all links of a page that were first
found in one run and seen last in another, with the numbers of the target pages in an array: 5 bytes a link instead of
80, and a fifth of the time.
"""

from __future__ import annotations

import re

from crawler.database.dialect import tables_for_postgres
from crawler.database.engine_functions import FUNCTIONS
from crawler.database.ids import pair_sql
from ingest.writing.schema import OWN_INDEXES, READING_INDEXES, READING_VIEWS, TABLES, columns_of

_LINKS = f"""
CREATE TABLE page_links (
    from_page_id    bigint NOT NULL,
    discovered_run  bigint NOT NULL,
    last_run        bigint NOT NULL,
    kind            bigint NOT NULL,
    targets         integer[] NOT NULL,
    PRIMARY KEY (from_page_id, discovered_run, last_run, kind)
);
CREATE VIEW links AS
SELECT {pair_sql("from_page_id", "target::bigint")} AS id, from_page_id, target::bigint AS to_page_id, discovered_run,
       last_run, kind
FROM page_links CROSS JOIN LATERAL unnest(targets) AS found(target);
"""
# OFFSET keeps the planner from taking the function apart: it would compare every page asked for with every row, as it
# does not know what a look into a list costs.
_LINKS_TO = f"""
CREATE OR REPLACE FUNCTION links_to(page bigint) RETURNS SETOF links LANGUAGE sql STABLE ROWS 20 AS
$$ SELECT {pair_sql("from_page_id", "page")}, from_page_id, page, discovered_run, last_run, kind
   FROM page_links WHERE targets @> ARRAY[page::integer] OFFSET 0 $$
"""
# A unique index refuses texts above 2.7 kB, so those over addresses are by hash; pages are unique by `url_hash`.
_OTHER_INDEXES: dict[str, str | None] = {
    "idx_links_to": "CREATE INDEX IF NOT EXISTS idx_links_to ON page_links USING gin (targets)",
    "idx_links_from": None,  # the primary key is one
    "idx_pages_url": "CREATE INDEX IF NOT EXISTS idx_pages_url ON pages USING hash (url)",
    "idx_blacklisted_url": "CREATE INDEX IF NOT EXISTS idx_blacklisted_url ON blacklisted_urls USING hash (url)",
    "idx_stubbed_url": "CREATE INDEX IF NOT EXISTS idx_stubbed_url ON stubbed_urls USING hash (url)",
}
# A tenth of PostgreSQL's own sample: looking at so many long rows again, whenever a tenth of them is new, was most of
# its upkeep, and no question here depends on rare values.
_SAMPLE = 10
_SAMPLED = {table: columns_of(table) for table in ("pages", "page_depths", "frontier")}
_SAMPLED["page_links"] = ["from_page_id", "discovered_run", "last_run", "kind", "targets"]
_MORE = """
CREATE INDEX idx_sitemaps_url ON sitemaps USING hash (url);
ALTER TABLE pages SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.1);
ALTER TABLE frontier SET (fillfactor = 85, autovacuum_vacuum_scale_factor = 0.1);
"""


def all_tables() -> str:
    """Statements that make the tables of a map, without the reading aids."""
    tables = tables_for_postgres(TABLES)
    packed, replaced = re.subn(r"CREATE TABLE links \(.*?\);", lambda _: _LINKS, tables, count=1, flags=re.DOTALL)
    assert replaced == 1
    return f"{FUNCTIONS}{packed}{_LINKS_TO};{_MORE}{''.join(map(_sampled, _SAMPLED))}"


def _sampled(table: str) -> str:
    each = ", ".join(f'ALTER COLUMN "{name}" SET STATISTICS {_SAMPLE}' for name in _SAMPLED[table])
    return f"ALTER TABLE {table} {each};\n"


def reading_indexes(*, is_complete: bool) -> list[str]:
    """Statements that make the indexes for readers: all, or those that our own questions need."""
    names = READING_INDEXES if is_complete else OWN_INDEXES
    made = [_OTHER_INDEXES.get(name, READING_INDEXES[name]) for name in names]
    return [sql for sql in made if sql is not None]


def reading_views() -> list[str]:
    """Statements that make the views for readers, and the function that asks for the links to a page."""
    return [_LINKS_TO, *(tables_for_postgres(sql) for sql in READING_VIEWS.values())]
