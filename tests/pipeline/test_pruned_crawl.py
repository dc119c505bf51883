"""Crawls of a site with ETags whose old results are pruned: what is left can be read, and what is not is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.config.load import load
from crawler.demo.server import Served
from crawler.keep.stored_pages import NotKept, page_content, verify
from crawler.model.settings import Config
from crawler.observe.audit import audit
from tests.pipeline.crawling import rows, run
from tests.pipeline.test_conditional_crawl import PLAIN, Site, site
from tests.pipeline.walks import config_for, crawl_quickly

__all__ = ["site"]

KEPT = f"https://a.test{PLAIN[0]}"
MORE = """
[output]
database-path = "map.db"
[store]
html = true
[retention]
results = 1
[discovery]
sitemaps = false
"""


def config_of(site: Site, folder: Path, more: str = "") -> Path:
    return config_for(
        folder / "kept", Served(0, site.server_port, 1, folder / "ca.pem", None), ("a.test",), more=MORE + more
    )


def pruned(path: Path) -> Config:
    warned = "of runs before 3 there will be no map"
    assert f"results: without them, {warned}" in run("prune", "results", path, "--dry-run", cwd=path.parent).stdout
    lines = run("prune", "results", path, "--yes", cwd=path.parent).stdout.splitlines()
    assert lines[0].startswith(f"results: from now on, {warned}") and " removed: only the results" in lines[1]
    return load(path)


def test_what_was_known_of_pruned_runs_is_not_denied(site: Site, tmp_path: Path) -> None:
    path = config_of(site, tmp_path)
    folder = path.parent
    crawl_quickly(path)
    site.not_to_be_kept.add(PLAIN[0])
    crawl_quickly(path)
    config = load(path)
    first = page_content(config, KEPT, 1)
    assert PLAIN[0].encode() in first
    for number in (None, 2):
        with pytest.raises(NotKept, match="asked in run #2 not to be kept"):
            page_content(config, KEPT, number)
    site.not_to_be_kept.discard(PLAIN[0])
    crawl_quickly(path)
    report = audit(config)
    assert report.is_clean and not report.unknown_robots
    config = pruned(path)
    report = audit(config)
    assert report.is_clean and report.unknown_robots > len(PLAIN)
    assert "robots: not known for" in run("audit", path, cwd=folder).stdout
    assert page_content(config, KEPT) == page_content(config, KEPT, 3) == first and verify(config).is_sound
    done = run("store", "cat", KEPT, path, "--run", "1", cwd=folder, ok=1)
    assert "what run #1 saw" in done.stderr and "results of runs before #3 are gone" in done.stderr


def test_stored_pages_that_were_carried_are_read_again_and_exported_though_their_visits_are_pruned(
    site: Site, tmp_path: Path
) -> None:
    path = config_of(site, tmp_path, '[revisit]\nschedule = "30d"\n')
    folder = path.parent
    for _ in range(3):
        crawl_quickly(path)
    whole = run("export", path, folder / "whole.warc.gz", cwd=folder).stdout
    config = pruned(path)
    assert verify(config).is_sound
    path.write_text(path.read_text() + '[[extract]]\nname = "front"\nselector = "title::text"\n')
    said = run("replay", path, "--into", folder / "again.db", "--from-store", cwd=folder).stdout
    pages = rows(folder, "SELECT count(*) FROM page_facts WHERE stored = 1", "map.db")[0][0]
    assert pages > len(PLAIN) and "pages read again from the store" in said
    assert "no longer" not in said and "are gone" not in said
    assert rows(folder, "SELECT count(DISTINCT id) FROM page_fields", "again.db") == [(pages,)]
    left = run("export", path, folder / "left.warc.gz", cwd=folder).stdout
    assert whole.replace("whole", "left") == left, "as many records"
    done = run("export", path, folder / "none.warc.gz", "--run", "3", cwd=folder, ok=2)
    assert "no visit in run 3 of" in done.stderr and "results of runs before run 3 are gone" in done.stderr
