"""Orders from the web face: the scheduler takes them up once, the ingest applies them, and replay agrees."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from crawler.database.digest import digest
from crawler.demo.server import serve_terrain
from crawler.demo.sites import Page
from reporter.web.routing import Role
from tests.pipeline.crawling import rows, run
from tests.pipeline.walks import config_for, crawl_quickly, site_of, terrain_of
from tests.reporter.web import serving


def test_pages_that_people_ask_for_are_visited_once_and_replay_agrees(tmp_path: Path) -> None:
    site = site_of("a.test", 6, 2)
    hidden = (
        Page("/hidden", "Hidden", links=(("/deeper", "Deeper"),)),
        Page("/deeper", "Deeper"),
        Page("/late", "Late"),
    )
    site = replace(site, pages=(*site.pages, *hidden))
    with (
        serve_terrain(terrain_of(site), tmp_path / "server") as served,
        serving.served(config_for(tmp_path, served, ("a.test",)).parent) as face,
    ):
        token = face.token(Role.ADMIN)
        asked = face.post(
            "/api/frontier/seed",
            token=token,
            json={"urls": ["https://a.test/hidden", "https://b.test/", "nonsense"]},
        )
        assert asked.status_code == 202
        assert asked.json()["accepted"] == ["https://a.test/hidden"]
        assert [each["url"] for each in asked.json()["refused"]] == ["https://b.test/", "nonsense"]
        assert face.post("/api/frontier/add", token=token, json={"urls": ["https://b.test/"]}).status_code == 409
        assert face.post("/api/frontier/add", token=token, json={"urls": ["https://a.test/late"]}).status_code == 202
        config = tmp_path / "my.toml"
        crawl_quickly(config)
        found = dict(rows(tmp_path, "SELECT url, origin FROM pages WHERE visited_run = 1"))
        assert len(found) == 6 + 3
        assert found["https://a.test/hidden"] == "seed" and found["https://a.test/late"] == "ordered"
        assert found["https://a.test/deeper"] == "linked"
        assert rows(tmp_path, "SELECT run, action, who FROM orders ORDER BY action") == [
            (1, "add", "one-admin"),
            (1, "seed", "one-admin"),
        ]
        run("replay", config, "--into", tmp_path / "again.db", "-q", cwd=tmp_path)
        assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")
        crawl_quickly(config)
        assert rows(tmp_path, "SELECT count(*) FROM pages WHERE visited_run = 2") == [(6,)], "for one run"
        assert rows(tmp_path, "SELECT count(*) FROM orders") == [(2,)]
        recovered = face.post("/api/frontier/recover", token=token).json()
        assert recovered["domains"] == 0 and recovered["ended_fetchers"] == ["fetcher-01"]


def test_a_cleared_frontier_ends_the_run_and_replay_agrees(tmp_path: Path) -> None:
    with (
        serve_terrain(terrain_of(site_of("a.test", 30, 3)), tmp_path / "server") as served,
        serving.served(config_for(tmp_path, served, ("a.test",), more="[limits]\nmax-pages = 4").parent) as face,
    ):
        config = tmp_path / "my.toml"
        crawl_quickly(config)
        token = face.token(Role.ADMIN)
        assert face.call("DELETE", "/api/frontier", token=token).status_code == 409
        preview = face.get("/api/frontier/preview", token=token).json()
        assert preview["domains"] == 1 and preview["pages"] > 0
        path = f"/api/frontier?token={preview['token']}"
        assert face.call("DELETE", path, token=face.token(Role.ADMIN)).status_code == 202, "the same account"
        assert face.call("DELETE", path, token=token).status_code == 409, "once"
        config.write_text(config.read_text().replace("max-pages = 4", "max-pages = 1000"))
        crawl_quickly(config)
        assert rows(tmp_path, "SELECT status FROM runs") == [("completed",)]
        assert rows(tmp_path, "SELECT count(*) FROM frontier") == [(0,)]
        assert rows(tmp_path, "SELECT closed_reason FROM domain_states WHERE domain = 'a.test'") == [("cleared",)]
        ((left,),) = rows(
            tmp_path, "SELECT count(*) FROM pages WHERE state = 'failed' AND error_message LIKE 'cleared:%'"
        )
        assert left > 0
        run("replay", config, "--into", tmp_path / "again.db", "-q", cwd=tmp_path)
        assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")
        crawl_quickly(config)
        assert rows(tmp_path, "SELECT count(*) FROM pages WHERE visited_run = 2") == [(30,)], "the next run tries again"


def test_a_domain_that_was_closed_is_asked_again_after_a_reset_and_replay_agrees(tmp_path: Path) -> None:
    """a.test answers its second page with 429; the run goes on with b.test, and stops at a limit."""
    busy = site_of("a.test", 6, 1)
    pages = tuple(replace(page, status=429) if page.path == "/section/0" else page for page in busy.pages)
    front = replace(pages[0], links=(*pages[0].links, *((f"/leaf/{leaf}", "Leaf") for leaf in range(4))))
    busy = replace(busy, pages=(front, *pages[1:]))
    with (
        serve_terrain(terrain_of(busy, site_of("b.test", 30, 2)), tmp_path / "server") as served,
        serving.served(
            config_for(tmp_path, served, ("a.test", "b.test"), more="[limits]\nmax-pages = 8").parent
        ) as face,
    ):
        config, token = tmp_path / "my.toml", face.token(Role.ADMIN)
        path = "/api/admin/domains/a.test/reset"
        crawl_quickly(config)
        closed = "SELECT closed_reason FROM domain_states WHERE domain = 'a.test'"
        assert rows(tmp_path, closed) == [("rate-limited",)]
        assert face.post("/api/admin/domains/none.test/reset", token=token).status_code == 404
        assert face.post("/api/admin/domains/b.test/reset", token=token).json()["type"] == "/problems/not-closed"
        answer = face.post(path, token=token)
        assert (answer.status_code, answer.json()["closed"]) == (202, "rate-limited")
        config.write_text(config.read_text().replace("max-pages = 8", "max-pages = 1000"))
        crawl_quickly(config)
        assert rows(tmp_path, closed) == [(None,)]
        found = dict(rows(tmp_path, "SELECT url, state FROM pages WHERE domain = 'a.test' AND visited_run = 1"))
        assert found == {
            "https://a.test/": "processed",
            "https://a.test/section/0": "rate_limited",
            **{f"https://a.test/leaf/{leaf}": "processed" for leaf in range(4)},
        }
        assert rows(tmp_path, "SELECT status FROM runs") == [("completed",)]
        assert rows(tmp_path, "SELECT action FROM orders") == [("reset",)]
        run("replay", config, "--into", tmp_path / "again.db", "-q", cwd=tmp_path)
        assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")
        assert face.post(path, token=token).status_code == 409, "it is open"
