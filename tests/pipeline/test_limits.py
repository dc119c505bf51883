"""A run that reaches a limit of [limits]: it ends in good order, goes on at the next start, and replay agrees."""

from __future__ import annotations

from pathlib import Path

from crawler.database.digest import digest
from crawler.demo.server import serve_terrain
from crawler.demo.terrain import demo_terrain
from tests.pipeline.crawling import prepared, rows, run


def visited(folder: Path) -> int:
    return int(rows(folder, "SELECT count(*) FROM pages WHERE visited_run = 1")[0][0])


def test_max_pages_ends_a_run_keeps_the_frontier_and_the_next_start_goes_on(tmp_path: Path) -> None:
    with serve_terrain(demo_terrain(), tmp_path / "server") as served:
        config = prepared(tmp_path, served)
        config.write_text(config.read_text() + "\n[limits]\nmax-pages = 12\n")
        first = run("crawl", config, cwd=tmp_path)
        assert "Run #1: limit reached (max-pages = 12), the pages that wait are kept." in first.stdout
        assert "--next-run" in first.stdout and f"sumi-ripple {config.name}" in first.stdout
        assert visited(tmp_path) == 12
        assert rows(tmp_path, "SELECT status FROM runs") == [("interrupted",)]
        assert rows(tmp_path, "SELECT count(*) > 0 FROM frontier") == [(1,)]
        assert (tmp_path / "crawl-summary.md").exists() and (tmp_path / "summaries" / "run-1.md").exists()
        run("replay", config, "--into", tmp_path / "again.db", cwd=tmp_path)
        assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")
        run("crawl", config, cwd=tmp_path)
        assert visited(tmp_path) == 24, "the next start goes on, with the whole allowance"
        run("crawl", config, "--next-run", cwd=tmp_path)
        assert rows(tmp_path, "SELECT id, status FROM runs") == [(1, "completed"), (2, "interrupted")]
