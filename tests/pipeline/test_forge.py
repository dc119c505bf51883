"""examples/forge.toml against a terrain of that shape: scope, page types and caps in a whole crawl, and in a second one
under other rules.
"""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.demo.server import serve_terrain
from crawler.demo.sites import Answer, Certificate, response
from tests.pipeline.crawling import run
from tests.places import ROOT

pytestmark = pytest.mark.xdist_group("forge")

ISSUES, FILES = 9, 6
REPOSITORIES = ("tea/pot", "tea/cup", "ann/kettle")


@dataclass
class Forge:
    """Repositories with issues, pull requests and files; a login, histories and filters; a lab elsewhere."""

    certificates: tuple[Certificate, ...] = (Certificate(("forge.example", "uni.example")),)

    def answer(self, host: str, method: str, target: str) -> Answer:
        with_body = method != "HEAD"
        if target == "/robots.txt":
            return Answer(response(404, b"", with_body=with_body))
        if host == "forge.example" and target == "/tea/cup/issues/1":
            return Answer(response(301, b"", headers=(("Location", "/login"),), with_body=with_body))
        links = self._links(target) if host == "forge.example" else self._lab(target)
        body = "".join(f'<p><a href="{link}">{link}</a> and some words about it.</p>' for link in links)
        page = f"<title>{target}</title><h1>{target}</h1><p>A page of {host}.</p>{body}".encode()
        return Answer(response(200, page, with_body=with_body))

    def _links(self, target: str) -> list[str]:
        everywhere = ["/login", "/search?q=tea", "/topics/tea", "https://uni.example/"]
        repository = re.match(r"/([^/]+/[^/]+)", target)
        if target == "/topics/tea":
            return [f"/{name}" for name in REPOSITORIES] + ["/tea", "/ann", *everywhere]
        if repository is None or target.startswith("/topics"):
            return everywhere
        name = repository[1]
        return [
            *(f"/{name}/issues/{n}" for n in range(1, ISSUES)),
            *(f"/{name}/pull/{n}" for n in range(1, 4)),
            *(f"/{name}/blob/main/file{n}.c" for n in range(FILES)),
            *(f"/{name}/{end}" for end in ("issues", "pulls", "issues/new", "commits/main", "issues?sort=old&page=2")),
            f"/{name}/blob/{'0' * 40}/file1.c",
            *everywhere,
        ]

    def _lab(self, target: str) -> list[str]:
        return ["/~lab/", "/~lab/people", "/~labor/", "/rector", "https://forge.example/tea"]


def write_config(folder: Path, port: int, ca: Path) -> None:
    """The example with smaller caps, a lab in part of a university, and the terrain in place of the network."""
    text = (ROOT / "examples" / "forge.toml").read_text()
    for before, after in (
        ("minimum-time-on-page = 2000", 'minimum-time-on-page = 100\nhead-requests = "never"\nworkers = 1'),
        ("max-pages = 30\n", "max-pages = 4\n"),
        ("max-pages = 50\n", "max-pages = 3\n"),
    ):
        assert before in text
        text = text.replace(before, after)
    text += f'[[quality]]\ndomain = "uni.example"\npath = "/~lab/"\n[network]\nca-bundle = "{ca}"\n'
    text += f'[network.resolve]\n"*" = "127.0.0.1:{port}"\n'
    (folder / "forge.toml").write_text(text)


def hurried(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.pipeline.quick_crawl", str(folder / "forge.toml"), *words],
        *(),
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("forge")
    with serve_terrain(Forge(), folder) as served:
        write_config(folder, served.port, served.ca_path)
        hurried(folder)
    return folder


def rows(folder: Path, sql: str) -> list[tuple]:
    db = sqlite3.connect(folder / "forge.db")
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_only_pages_in_scope_are_visited_and_the_others_name_their_rule(crawled: Path) -> None:
    visited = {url for (url,) in rows(crawled, "SELECT url FROM pages WHERE visited_run = 1")}
    assert not [url for url in visited if re.search(r"/login|/search|/commits|/new$|/blob/0|sort=", url)]
    left = dict(rows(crawled, "SELECT url, error_message FROM pages WHERE error_message LIKE 'out-of-scope%'"))
    assert left["https://forge.example/login"].startswith("out-of-scope: denied by [[quality]] forge.example deny = ")
    assert "[scope] deny" in left["https://forge.example/tea/pot/commits/main"]
    assert left["https://forge.example/tea/pot/issues?page=2&sort=old"].endswith(
        "no allow of [[quality]] forge.example matches"
    )
    states = rows(crawled, "SELECT DISTINCT state FROM pages WHERE error_message LIKE 'out-of-scope%'")
    assert states == [("discovered",)]


def test_a_redirect_to_a_page_out_of_scope_is_recorded_and_goes_no_further(crawled: Path) -> None:
    found = rows(
        crawled,
        "SELECT p.state, t.url, t.state FROM pages p JOIN pages t ON t.id = p.redirect_to"
        " WHERE p.url = 'https://forge.example/tea/cup/issues/1'",
    )
    assert found in ([], [("processed", "https://forge.example/login", "discovered")])  # [] if the cap came first
    assert rows(crawled, "SELECT status_code FROM pages WHERE url = 'https://forge.example/login'") == [(None,)]


def test_every_repository_has_its_share_and_no_more(crawled: Path) -> None:
    counts = {}
    for url, run_, error in rows(crawled, "SELECT url, visited_run, error_message FROM pages"):
        kind = re.match(r"https://forge\.example/([^/]+/[^/]+)/(issues|blob)", url)
        if kind and (error is None or error.startswith(("cap-reached", "http"))):
            visits = counts.setdefault(kind.groups(), [0, 0])
            visits[0 if run_ else 1] += 1
    assert {key: visits for key, (visits, _) in counts.items()} == {
        (name, kind): most for name in REPOSITORIES for kind, most in (("issues", 4), ("blob", 3))
    }
    assert {left for _, left in counts.values()} == {ISSUES - 4, FILES - 3}
    assert rows(crawled, "SELECT count(*) FROM frontier") == [(0,)]


def test_depth_and_class_follow_the_part_of_a_site(crawled: Path) -> None:
    found = rows(
        crawled,
        "SELECT url, class, depth FROM v_pages WHERE domain = 'uni.example' ORDER BY 1",
    )
    assert found == [
        ("https://uni.example/", "discovered", 1),
        ("https://uni.example/rector", "discovered", 1),
        ("https://uni.example/~lab", "quality", 0),
        ("https://uni.example/~lab/people", "quality", 0),
        ("https://uni.example/~labor", "discovered", 1),
    ]
    origins = rows(crawled, "SELECT DISTINCT quality_origin FROM page_depths ORDER BY 1")
    assert origins == [("forge.example",), ("uni.example/~lab/",)]
    words = run("explain", "https://uni.example/rector", crawled / "forge.toml", cwd=crawled).stdout
    assert "only other parts of uni.example are in the quality list" in words and "1 from uni.example/~lab/" in words
    inside = run("explain", "https://uni.example/~lab/people", crawled / "forge.toml", cwd=crawled).stdout
    assert 'domain = "uni.example", path = "/~lab/" (forge.toml:' in inside


def test_types_scope_and_caps_are_in_stats_summary_explain_and_exports(crawled: Path) -> None:
    config = crawled / "forge.toml"
    stats = json.loads(run("stats", config, "--json", cwd=crawled).stdout)
    types = {row["name"]: row["known"] for row in stats["page_types"]}
    assert types["repository"] == len(REPOSITORIES) and types["issue"] == len(REPOSITORIES) * (ISSUES - 1)
    assert stats["overall"]["out_of_scope"] == sum(row["pages"] for row in stats["scope"]) > 0
    assert {(row["name"], row["value"]) for row in stats["caps"]} >= {("issues", "tea/pot"), ("blobs", "ann/kettle")}
    for by, word in (("type", "issue-list"), ("scope", "[scope] deny"), ("cap", "ann/kettle")):
        assert word in run("stats", config, "--by", by, cwd=crawled).stdout
    summary = (crawled / "forge-summary.md").read_text()
    assert all(f"## {title}" in summary for title in ("Page Types", "Out of Scope", "Caps Reached"))
    left_out = rows(crawled, "SELECT url FROM pages WHERE error_message LIKE 'cap-reached%issues%' LIMIT 1")[0][0]
    words = run("explain", left_out, config, cwd=crawled).stdout
    assert "cap-reached" in words and "issues: 4 of 4 visits" in words and "page type" in words
    run("export", config, "pages.jsonl", cwd=crawled)
    nodes = [json.loads(line) for line in (crawled / "pages.jsonl").read_text().splitlines()]
    kinds = {node["url"]: node["page_type"] for node in nodes if node["kind"] == "node"}
    assert kinds["https://forge.example/tea/pot"] == "repository" and kinds["https://uni.example/"] is None
    run("export", config, "other.csv", "--class", "discovered", cwd=crawled)
    text = "".join(path.read_text() for path in crawled.glob("other*.csv"))
    assert "https://uni.example/rector" in text and "https://uni.example/~lab/people" not in text


def test_check_url_says_what_the_crawl_did(crawled: Path) -> None:
    sample = rows(crawled, "SELECT url, error_message FROM pages WHERE error_message LIKE 'out-of-scope%' LIMIT 3")
    sample += rows(crawled, "SELECT url, NULL FROM pages WHERE state = 'processed' LIMIT 3")
    found = run("check-url", *(url for url, _ in sample), "forge.toml", "--json", cwd=crawled, ok=1)
    urls = json.loads(found.stdout)["urls"]
    assert [(each["key"], each["because"]) for each in urls] == sample
    text = run("check-url", "https://www.forge.example/tea/pot/issues/7/", "forge.toml", cwd=crawled).stdout
    for words in (
        "would be visited",
        "page type     issue",
        "[[cap]] issues: 4 visits a run for tea/pot",
        "depth         0",
    ):
        assert words in text


def test_replay_agrees_and_other_rules_rebuild_the_map_without_a_request(crawled: Path) -> None:
    run("replay", "forge.toml", "--into", "again.db", cwd=crawled)
    assert digest(crawled / "again.db") == digest(crawled / "forge.db")
    text = (crawled / "forge.toml").read_text()
    narrow = text.replace("deny = ['/(?:raw|", "deny = ['/tea/cup', '/(?:raw|").replace(
        'name = "blob"', 'name = "file"'
    )
    (crawled / "narrow.toml").write_text(narrow.replace('path = "/~lab/"', 'path = "/rector/"'))
    run("replay", "narrow.toml", "--into", "narrow.db", cwd=crawled)
    db = sqlite3.connect(crawled / "narrow.db")
    states = db.execute("SELECT DISTINCT state FROM pages WHERE url LIKE '%/tea/cup%'").fetchall()
    assert states == [("discovered",)]
    assert db.execute("SELECT count(*) FROM pages WHERE page_type = 'file'").fetchone()[0] > 0
    assert db.execute("SELECT depth FROM pages WHERE url = 'https://uni.example/rector'").fetchone() == (0,)
    db.close()
