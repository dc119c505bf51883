"""A budget that is smaller than the site: run after run it walks on, and `explain` says when a page may be expected."""

from __future__ import annotations

from pathlib import Path

import orjson

from crawler.database.digest import digest
from crawler.demo.server import serve_terrain
from tests.pipeline.crawling import rows, run
from tests.pipeline.walks import config_for, crawl_quickly, site_of, terrain_of

PAGES, SECTIONS, BUDGET = 200, 9, 60
LAST = f"https://a.test/leaf/{PAGES - SECTIONS - 3}"  # of the last section


def test_a_budget_of_60_walks_a_site_of_200_pages_in_four_runs(tmp_path: Path) -> None:
    with serve_terrain(terrain_of(site_of("a.test", PAGES, SECTIONS)), tmp_path / "server") as served:
        config = config_for(tmp_path, served, ("a.test",), f"max-domain-requests = {BUDGET}")
        walked, expected, seen_in = [], None, None
        for number in range(1, 5):
            crawl_quickly(config)
            walked.append(rows(tmp_path, "SELECT count(*) FROM pages WHERE visited_run IS NOT NULL")[0][0])
            (requests,) = rows(tmp_path, "SELECT request_count FROM domain_states WHERE domain = 'a.test'")[0]
            assert requests <= BUDGET
            if number == 1:
                facts = orjson.loads(run("explain", LAST, config, "--json", cwd=tmp_path).stdout)
                turn, expected = facts["turn"], facts["turn"]["run"]
                assert f"It may be expected in run {expected}, at the earliest: " in facts["to_be_crawled"][1]
                assert (turn["before"], turn["steps"]) == (PAGES - walked[0] - 1, 2), "it was found last, in two steps"
            if seen_in is None and rows(tmp_path, f"SELECT visited_run FROM pages WHERE url = '{LAST}'") != [(None,)]:
                seen_in = number
        assert walked[-2] < walked[-1] == PAGES, walked
        assert expected is not None and seen_in is not None and 2 <= expected <= seen_in == 4
    run("replay", config, "--into", tmp_path / "again.db", cwd=tmp_path)
    assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")
