"""Runs that reach a limit: of [limits] they end in good order and go on at the next start, of a domain's requests they
are closed there; and replay agrees.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from crawler.database.digest import digest
from crawler.demo.server import Served, serve_terrain
from tests.pipeline.crawling import rows, run
from tests.pipeline.walks import config_for, crawl_quickly, site_of, terrain_of

OTHERS = tuple(f"{letter}.test" for letter in "bcd")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A quality site of 30 pages that links to three others of 12."""
    front = site_of("a.test", 30, 3, tuple(f"https://{host}/" for host in OTHERS))
    others = [site_of(host, 12, 2) for host in OTHERS]
    with serve_terrain(terrain_of(front, *others), tmp_path_factory.mktemp("server")) as found:
        yield found


def visited(folder: Path) -> int:
    return int(rows(folder, "SELECT count(*) FROM pages WHERE visited_run = 1")[0][0])


def replayed(config: Path, folder: Path) -> bool:
    run("replay", config, "--into", folder / "again.db", "-q", cwd=folder)
    return digest(folder / "again.db") == digest(folder / "sumi-ripple.db")


@pytest.mark.parametrize("limit", ["max-domains = 2", 'max-duration = "1s"', "max-bytes = 8000"])
def test_a_limit_of_the_run_ends_it_and_the_frontier_is_kept(limit: str, served: Served, tmp_path: Path) -> None:
    config = config_for(tmp_path, served, ("a.test",), more=f"[limits]\n{limit}")
    # At its own pace it cannot be done in a second; how much is done by then is the machine's affair.
    is_timed = "duration" in limit
    said = run("crawl", config, cwd=tmp_path, ok=None).stdout if is_timed else crawl_quickly(config)
    key = limit.split(" ")[0]
    assert f"Run #1: limit reached ({key} = " in said and "the pages that wait are kept." in said
    assert rows(tmp_path, "SELECT status FROM runs") == [("interrupted",)]
    assert rows(tmp_path, "SELECT count(*) > 0 FROM frontier") == [(1,)]
    asked = rows(tmp_path, "SELECT domain FROM domain_states WHERE request_count > 0")
    if key == "max-domains":
        assert len(asked) == 2 and ("a.test",) in asked
        assert visited(tmp_path) == 30 + 12, "the domains that were begun are finished"
    assert visited(tmp_path) < 30 + 36 and (is_timed or visited(tmp_path) > 0)
    assert replayed(config, tmp_path)
    (listed,) = orjson.loads(run("runs", config, "--json", cwd=tmp_path).stdout)["runs"]
    assert listed["status"] == "interrupted"
    config.write_text(config.read_text().replace(f"[limits]\n{limit}", "[limits]\nmax-pages = 1000"))
    crawl_quickly(config)
    assert visited(tmp_path) == 30 + 36 and rows(tmp_path, "SELECT status FROM runs") == [("completed",)]
    text = run("runs", config, cwd=tmp_path).stdout
    assert f"limits.{key}: " in text and "limits.max-pages: 0 → 1000" in text


def test_a_budget_for_quality_domains_and_another_for_the_rest(served: Served, tmp_path: Path) -> None:
    budgets = "max-domain-requests = 20\ndiscovered-domain-requests = 5"
    config = config_for(tmp_path, served, ("a.test",), budgets, "[limits]\nmax-pages = 1000")
    said = crawl_quickly(config)
    sent = dict(rows(tmp_path, "SELECT domain, request_count FROM domain_states"))
    assert sent == {"a.test": 20, **dict.fromkeys(OTHERS, 5)}
    closed = rows(tmp_path, "SELECT DISTINCT closed_reason FROM domain_states")
    assert closed == [("request-limit",)] and "Run #1 is complete." in said
    assert replayed(config, tmp_path)
    audit = run("audit", config, cwd=tmp_path).stdout
    assert "20 requests a domain (5 if discovered), max-pages = 1,000 for the run." in audit


def test_max_pages_ends_a_run_keeps_the_frontier_and_the_next_start_goes_on(served: Served, tmp_path: Path) -> None:
    config = config_for(tmp_path, served, ("a.test",), more="[limits]\nmax-pages = 12")
    said = crawl_quickly(config)
    assert "Run #1: limit reached (max-pages = 12), the pages that wait are kept." in said
    assert "--next-run" in said and f"{config.name} --by domain\n" in said
    assert visited(tmp_path) == 12
    assert rows(tmp_path, "SELECT status FROM runs") == [("interrupted",)]
    assert rows(tmp_path, "SELECT count(*) > 0 FROM frontier") == [(1,)]
    assert (tmp_path / "crawl-summary.md").exists()
    assert (tmp_path / "workspace" / "summaries" / "run-1.md").exists()
    assert replayed(config, tmp_path)
    crawl_quickly(config)
    assert visited(tmp_path) == 24, "the next start goes on, with the whole allowance"
    said = crawl_quickly(config, "--next-run")
    assert rows(tmp_path, "SELECT id, status FROM runs") == [(1, "completed"), (2, "interrupted")]
    assert "--by domain --run 2\n" in said, "without it, run 1 is shown"
    shown = run("stats", config, "--json", cwd=tmp_path)
    assert orjson.loads(shown.stdout)["run"]["id"] == 1 and "Run 2 is not finished; --run 2 shows it." in shown.stderr
