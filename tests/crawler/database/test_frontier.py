"""The frontier as the scheduler reads it."""

from __future__ import annotations

from crawler.database.frontier import Frontier
from crawler.model.settings import Config
from tests.crawler.schedule.conftest import config, map_, workspace
from tests.crawler.schedule.scheduling import Map

__all__ = ["config", "map_", "workspace"]  # fixtures


def test_the_domains_of_a_large_frontier_cost_one_seek_each(config: Config, map_: Map) -> None:
    """Not a clock but SQLite's own plan: no scan of the frontier, no sorting."""
    from crawler.database.frontier import _DOMAINS, _WINDOW

    for sql, parameters in ((_DOMAINS, ()), (_WINDOW, (1, 4))):
        plan = [row[3] for row in map_.db.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        assert not any("TEMP B-TREE" in line for line in plan), plan
        assert not any(line.startswith(("SCAN frontier", "SCAN f ")) for line in plan), plan


def test_domains_are_listed_with_their_best_row(config: Config, map_: Map) -> None:
    map_.add("https://b.test/1", 5)
    map_.add("https://a.test/1", 7)
    map_.add("https://a.test/2", 2)
    frontier = Frontier(config.output.database_path)
    frontier.open()
    assert [(found.name, found.priority, found.row) for found in frontier.domains()] == [
        ("a.test", 2, 3),
        ("b.test", 5, 1),
    ]
    frontier.close()
