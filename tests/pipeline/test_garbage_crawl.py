"""Whole crawls with a user's own signs of garbage, with `learn-404` and with `follow-rejected`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.demo.server import Served, serve_terrain
from crawler.demo.sites import Page, Site
from tests.pipeline.crawling import rows, run
from tests.pipeline.walks import config_for, crawl_quickly, terrain_of

RULES = """
[[garbage]]
name = "sold-out"
text = "Sold out,  FOR good"

[[garbage]]
name = "placeholder"
selector = "div.placeholder > b"
verdict = "hard"
"""
LOST = ("Not found - a.test", ("There is nothing here.",))  # what the server shows for missing pages, but with 200


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    links = tuple((path, path) for path in ("/shop", "/widget", "/widely", "/gone", "/lost", "/good"))
    site = Site(
        "a.test",
        "a.test",
        (
            Page("/", "Front page", links=links),
            Page("/shop", "Shop", ("This shelf is sold out, for good.",), (("/after-shop", "On"),)),
            Page("/widget", "Widget", ("<div class=placeholder><b>Soon</b></div>",), (("/after-widget", "On"),)),
            Page("/widely", "Widely", ("<div class=placeholder>No sign</div>",)),
            Page("/lost", *LOST),
            Page("/good", "Good", ("A page like any other.",)),
            Page("/after-shop", "After", ("Behind the shop.",)),
            Page("/after-widget", "After", ("Behind the widget.",)),
        ),
    )
    with serve_terrain(terrain_of(site), tmp_path_factory.mktemp("server")) as found:
        yield found


def crawled(folder: Path, served: Served, validation: str) -> dict[str, tuple[str, str, str | None]]:
    """Path → (state, validation, reason), after a crawl with HEAD requests that a replay agrees with."""
    config = config_for(folder, served, ("a.test",), more=f"[validation]\n{validation}\n{RULES}")
    config.write_text(config.read_text().replace('head-requests = "never"', 'head-requests = "always"'))
    crawl_quickly(config)
    run("replay", config, "--into", folder / "again.db", "-q", cwd=folder)
    assert digest(folder / "again.db") == digest(folder / "sumi-ripple.db")
    found = rows(folder, "SELECT url, state, coalesce(validation, ''), rejection_reason FROM pages")
    return {url.removeprefix("https://a.test"): (state, word, reason) for url, state, word, reason in found}


def test_own_signs_reject_pages_and_a_missing_page_that_was_read_tells_soft_ones(
    served: Served, tmp_path: Path
) -> None:
    pages = crawled(tmp_path, served, "learn-404 = true")
    assert pages["/shop"] == ("processed", "soft", "sold-out: it says 'Sold out,  FOR good'")
    assert pages["/widget"] == ("processed", "hard", "placeholder: div.placeholder > b matches")
    assert pages["/widely"][:2] == pages["/good"][:2] == ("processed", "ok")
    assert pages["/gone"][0] == "dead_link"
    assert pages["/lost"] == ("processed", "soft", "soft-404: it shows what the domain shows for missing pages")
    assert pages["/after-shop"][0] == pages["/after-widget"][0] == "discovered", "recorded, and not followed"
    said = run("stats", tmp_path / "my.toml", "--by", "rejection", cwd=tmp_path).stdout
    assert "sold-out" in said and "placeholder" in said and "soft-404" in said


def test_links_of_rejected_pages_are_followed_where_the_config_asks_for_it(served: Served, tmp_path: Path) -> None:
    pages = crawled(tmp_path, served, "follow-rejected = true")
    assert (pages["/shop"][1], pages["/widget"][1]) == ("soft", "hard")
    assert pages["/after-shop"][:2] == pages["/after-widget"][:2] == ("processed", "ok")
    assert pages["/gone"][0] == "dead_link" and pages["/lost"][1] == "ok", (
        "HEAD told that one is gone; no page was read"
    )
