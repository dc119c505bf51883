"""The ingest grows with pages that were visited, not with what one page claims: memory and bytes on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.model.records import PageResult, RunEvent, dump
from crawler.workspace.files.spool import Writer
from ingest.replay import replay
from tests.ingest.terrains import AT, config, ingest_all
from tests.pipeline.crawling import rows

SEED = "https://qa.test/0"
MEGABYTE = 1024 * 1024

# An ingest in a process of its own, which says how large it became.
INGEST = """
import resource, sys
from pathlib import Path
from ingest.loop import run_ingest
from tests.ingest.terrains import config
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert run_ingest(config(Path(sys.argv[1])), drain=True) == 0
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def page(number: int, base: str, hrefs: tuple[str, ...]) -> PageResult:
    key = f"https://qa.test/{number}"
    return PageResult(1, key, key, "qa.test", AT, "processed", status=200, base=base, hrefs=hrefs)


def hostile_pages(length: int) -> list[PageResult]:
    """Six pages of a base of this length and 10,000 hrefs each, as programs before this one recorded them."""
    first = page(0, SEED, tuple(f"/{number}" for number in range(1, 6)))
    rest = [
        page(number, f"https://far.test/{number}/" + "b" * length + "/", tuple(f"p{href}" for href in range(10_000)))
        for number in range(1, 6)
    ]
    return [first, *rest]


@pytest.mark.parametrize("length", [65_000, 1_900])
def test_a_long_base_in_front_of_ten_thousand_hrefs_costs_a_bounded_number_of_bytes(
    tmp_path: Path, length: int
) -> None:
    rules = config(tmp_path)
    writer = Writer(rules.workspace / "spool" / "results" / "fetcher-01")
    writer.append(dump(RunEvent(1, AT, "started")))
    for result in hostile_pages(length):
        writer.append(dump(result))
    writer.close()
    done = subprocess.run(
        [sys.executable, "-c", INGEST, str(tmp_path)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    grown = int(done.stdout.split()[-1]) * 1024
    assert grown < 200 * MEGABYTE, f"the ingest grew by {grown // MEGABYTE} MB"
    size = sum(path.stat().st_size for path in tmp_path.glob("map.db*"))
    assert size < 60 * MEGABYTE, f"the map has {size // MEGABYTE} MB"
    assert rows(tmp_path, "SELECT count(*) FROM pages WHERE visited_run = 1", "map.db") == [(6,)]
    replay(rules, tmp_path / "again.db")
    assert digest(tmp_path / "again.db") == digest(tmp_path / "map.db")


def test_urls_over_the_limit_are_one_row_each_cut_and_marked_and_are_never_queued(tmp_path: Path) -> None:
    long = tuple(f"https://far.test/{number}/" + "x" * 50_000 for number in range(5))
    path = ingest_all(config(tmp_path), [page(0, SEED, (*long, "/1")), page(1, SEED, long)])
    found = rows(tmp_path, "SELECT url, state, error_message FROM pages WHERE url LIKE 'https://far.test%'", path.name)
    assert len(found) == 5
    for url, state, error in found:
        assert len(url) < 300 and state == "failed" and error.startswith("trap-url-length: the URL has 50,019 char")
    assert rows(tmp_path, "SELECT count(*) FROM frontier JOIN pages USING (id) WHERE domain = 'far.test'", path.name)[
        0
    ] == (0,)


def test_a_base_over_the_limit_is_no_base(tmp_path: Path) -> None:
    path = ingest_all(config(tmp_path), [page(0, "https://far.test/" + "b" * 3000 + "/", ("near",))])
    assert rows(tmp_path, "SELECT url FROM pages WHERE url LIKE '%near'", path.name) == [("https://qa.test/near",)]
