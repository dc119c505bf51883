"""What the map's size costs the ingest and the engine: µs of CPU a link on a small map and on a large one, and bytes.

The results are those of `make bench-growth`, in files; the map is in the engine. So the figures are those of the map
alone: fetchers, gates and the log of results take no part.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.growing import GrowingWeb, start_run, write_results
from benchmarks.growth import BEYOND, cost, growth_config, nowhere, run_take_in
from benchmarks.measure import Steps
from crawler.engine.engine_connection import connect
from crawler.model.map_place import LIVE
from crawler.model.records import PageResult
from ingest.postgres.map_tables import reading_indexes
from tests.postgres_server import PostgresServer

_CLOCKS = ("cpu_us_per_link", "engine_us_per_link")


@dataclass(frozen=True, slots=True)
class Size:
    """How far to grow. The early window begins at `early` known URLs, the late one shortly before `known`."""

    known: int = 3_025_000
    early: int = 100_000
    domains: int = 50_000
    late_before: int = 85_000


QUICK = Size(known=400_000, early=60_000, domains=10_000)


def measure_growth(size: Size, folder: Path, engine: PostgresServer, steps: Steps) -> dict[str, Any]:
    """Grow a map from nothing, then its beginning once more: others may have used the machine meanwhile."""
    web = GrowingWeb(size.domains)
    starts = (size.early, size.known - size.late_before)
    steps.say(f"a map of {size.known:,} URLs in the engine")
    marks, links = _take_in(folder / "large", "bench_large", web.results(size.known, starts), size, engine)
    early, late = web.windows
    sizes = link_sizes(engine.url("bench_large"))
    steps.say("its beginning once more")
    beginning = islice(GrowingWeb(size.domains).results(size.known, starts), early[1] + BEYOND)
    again, _ = _take_in(folder / "again", "bench_again", beginning, size, engine)
    figures = compare([cost(early, each, links) for each in (marks, again)], cost(late, marks, links))
    seconds = marks[-1][2] - marks[0][2]
    return figures | sizes | {"raw_links": links[-1], "seconds": seconds, "links_per_second": links[-1] / seconds}


def _take_in(
    folder: Path, database: str, results: Iterable[PageResult], size: Size, engine: PostgresServer
) -> tuple[list[list[float]], list[int]]:
    """Take these results into a map in a new database; where the clocks stood, and the raw links up to each page."""
    with connect(engine.url(), "bench") as admin:
        admin.execute(f"CREATE DATABASE {database}")
    config = growth_config(folder, nowhere(folder), GrowingWeb(size.domains))
    config.write_text(config.read_text() + f'[engine]\nurl = "{engine.url(database)}"\n')
    start_run(folder / "workspace", config)
    links = write_results(folder / "workspace", results)
    return run_take_in(config, engine.pid)["marks"], links


def compare(early: list[dict[str, float]], late: dict[str, float]) -> dict[str, Any]:
    """Late against early, by the CPU of the ingest, of the engine, and of both."""
    ratios = {clock: late[clock] / fmean(each[clock] for each in early) for clock in _CLOCKS}
    both = sum(late[clock] for clock in _CLOCKS) / fmean(sum(each[clock] for clock in _CLOCKS) for each in early)
    return {"early": early, "late": late, "ratios": ratios | {"both": both}}


def link_sizes(url: str) -> dict[str, Any]:
    """Bytes of the packed links, of their key, and of the index for links to a page, which a run's end makes."""
    with connect(url, "bench") as db:
        db.execute(f"SET search_path = {LIVE}, public")
        for sql in reading_indexes(is_complete=False):
            if "idx_links_to" in sql:
                db.execute(sql)
        row = db.execute(
            "SELECT (SELECT sum(cardinality(targets)) FROM page_links), pg_table_size('page_links'),"
            " pg_relation_size('page_links_pkey'), pg_relation_size('idx_links_to'),"
            " (SELECT count(*) FROM pages), pg_database_size(current_database())"
        ).fetchone()
    assert row is not None
    names = ("links", "table_bytes", "key_bytes", "reverse_bytes", "known", "database_bytes")
    return {name: int(value) for name, value in zip(names, row, strict=True)}


def growth_lines(grown: dict[str, Any]) -> list[str]:
    rows = ["| URLs known | the ingest's CPU, µs a link | the engine's | both |", "|---|---|---|---|"]
    for each in (*grown["early"], grown["late"]):
        own, engine = (each[clock] for clock in _CLOCKS)
        rows.append(f"| {each['known']:,.0f} | {own:.2f} | {engine:.2f} | {own + engine:.2f} |")
    own, engine, both = (grown["ratios"][name] for name in (*_CLOCKS, "both"))
    links = grown["links"]
    table, key, reverse = (grown[f"{name}_bytes"] / links for name in ("table", "key", "reverse"))
    return [
        *rows,
        f"| late against early | {own:.2f} | {engine:.2f} | {both:.2f} |",
        "",
        f"{grown['known']:,} URLs, {links:,} links: {table:.1f} bytes a link, {key:.1f} more for the key, "
        f"{reverse:.1f} for links to a page; the map has {grown['database_bytes'] / 1e6:,.0f} MB",
        f"taken in at {grown['links_per_second']:,.0f} links/s on this machine, ingest and engine together",
    ]
