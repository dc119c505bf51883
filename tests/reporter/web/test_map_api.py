"""Questions to the map, over HTTP: the same answers as the commands give."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from functools import partial
from typing import Any

import pytest

from crawler.model.records import Job
from crawler.model.states import ERRORS
from reporter import candidate_views
from reporter.candidates import candidates
from reporter.survey import survey
from reporter.web.routing import Role
from tests.reporter.web.serving import Served


@pytest.fixture(scope="module")
def ask(face: Served) -> Any:
    token = face.token(Role.USER)

    def asked(path: str, status: int = 200) -> Any:
        answer = face.get(path, token=token)
        assert answer.status_code == status, answer.text
        return answer.json()

    return asked


def test_figures_are_those_of_stats(ask: Any, face: Served) -> None:
    found, figures = ask("/api/stats"), survey(face.face.database, in_full=False)
    assert found["overall"]["pages_crawled"] == figures.overall.pages_crawled
    assert found["states"] == figures.states and found["error_slugs"] == figures.error_slugs


def test_pages_come_in_parts_that_make_a_whole(ask: Any, face: Served) -> None:
    everything = ask("/api/pages?limit=500")["pages"]
    parts, after = [], 0
    while after is not None:
        found = ask(f"/api/pages?limit=3&after={after}")
        parts += found["pages"]
        after = found["next"]
    assert parts == everything
    assert len(everything) == survey(face.face.database, in_full=False).overall.urls_known


@pytest.mark.parametrize(
    ("query", "fits"),
    [
        ("state=processed", lambda page: page["state"] == "processed"),
        ("state=errors", lambda page: page["state"] in ERRORS),
        ("domain=q.test", lambda page: page["domain"] == "q.test"),
        ("class=discovered", lambda page: page["class"] == "discovered"),
        ("depth=1&state=processed", lambda page: page["depth"] == 1 and page["state"] == "processed"),
        ("status=200", lambda page: page["status"] == 200),
        ("domain=nowhere.test", lambda page: False),
    ],
)
def test_pages_pass_all_filters(ask: Any, query: str, fits: Any) -> None:
    everything = ask("/api/pages?limit=500")["pages"]
    assert ask(f"/api/pages?limit=500&{query}")["pages"] == [page for page in everything if fits(page)]


def test_words_are_searched_for_in_titles_and_urls(ask: Any) -> None:
    everything = ask("/api/pages?limit=500")["pages"]
    page = next(page for page in everything if page["title"])
    word = page["title"].split()[-1].lower()
    found = ask(f"/api/pages?q={word}")["pages"]
    assert page in found
    assert all(word in f"{each['title']} {each['url']}".lower() for each in found)
    assert ask("/api/pages?q=zzzzzz")["pages"] == []
    assert ask("/api/pages?q=ab", 422)["type"] == "/problems/short-word"


def test_domains_are_sorted_filtered_and_in_parts(ask: Any) -> None:
    found = ask("/api/domains?sort=domain&limit=500")
    names = [row["domain"] for row in found["domains"]]
    assert names == sorted(names) and found["total"] == len(names)
    part = ask("/api/domains?sort=domain&limit=1&after=1")
    assert [row["domain"] for row in part["domains"]] == names[1:2] and part["next"] == 2
    quality = ask("/api/domains?class=quality&limit=500")["domains"]
    assert quality and {row["class"] for row in quality} == {"quality"}


def test_explanations_candidates_and_runs_are_those_of_the_commands(ask: Any, face: Served) -> None:
    assert ask("/api/explain?url=https://q.test/")["key"] == "https://q.test/"
    assert ask("/api/explain?domain=q.test")["kind"] == "domain-explanation"
    printed = json.loads(candidate_views.as_json(candidates(face.face.database, 500)))
    assert ask("/api/candidates?limit=500")["candidates"] == printed["candidates"]
    assert [run["id"] for run in ask("/api/runs")["runs"]] == [1]


@pytest.mark.parametrize(
    ("path", "status", "slug"),
    [
        ("/api/explain", 422, "url-or-domain"),
        ("/api/explain?url=nonsense", 422, "no-url"),
        ("/api/explain?domain=a%20b", 422, "no-domain"),
        ("/api/pages?state[]=x", 422, "bad-query"),
        ("/api/pages?limit=0", 422, "bad-query"),
        ("/api/stats?run=99", 404, "no-such-run"),
        ("/api/graph?level=pages&domain=nowhere.test", 404, "not-on-map"),
        ("/api/graph?level=odd", 422, "bad-query"),
        ("/api/domains/nowhere.test/robots", 404, "no-robots"),
        ("/api/diff?before=1", 422, "one-run"),
        ("/api/diff", 409, "cannot-be-done"),
        ("/api/export/odd.csv", 404, "no-such-export"),
        ("/api/runs/x/summary", 404, "no-such-run"),
    ],
)
def test_a_question_that_cannot_be_answered_says_why(ask: Any, path: str, status: int, slug: str) -> None:
    assert ask(path, status)["type"] == f"/problems/{slug}"


@pytest.mark.parametrize("level", ["communities", "domains", "pages&domain=q.test", "paths&url=https://q.test/"])
def test_levels_of_the_map_have_nodes_and_links(ask: Any, level: str) -> None:
    found = ask(f"/api/graph?level={level}")
    assert found["counts"]["shown"] == len(found["nodes"]["name"]) > 0
    assert len(found["links"]) % 3 == 0


def test_tables_are_csv_that_no_spreadsheet_runs(face: Served) -> None:
    get = partial(face.get, token=face.token(Role.USER))
    names = ("pages", "domains", "candidates", "dead-links", "unreachable-links", "moved-links", "links-to-mend")
    for name in (*names, "runs", "waiting", "referrers"):
        answer = get(f"/api/export/{name}.csv?url=https://q.test/gone")
        assert answer.headers["Content-Type"].startswith("text/csv")
        assert "attachment" in answer.headers["Content-Disposition"]
        for row in csv.reader(io.StringIO(answer.text)):
            assert not [cell for cell in row if cell.startswith(("=", "+", "@"))]
    assert get("/api/export/map.gexf").text.startswith("<?xml")


def test_every_page_that_links_to_a_page_is_listed_in_parts_and_as_csv(ask: Any, face: Served) -> None:
    gone = "/api/pages/referrers?url=https://q.test/gone"
    everyone = ask(gone)["referrers"]
    assert [row["url"] for row in everyone] == ["https://q.test/", "https://q.test/about", "https://blog.wild.test/"]
    part = ask(f"{gone}&limit=2&after=1")
    assert (part["referrers"], part["next"]) == (everyone[1:], None)
    assert ask(f"{gone}&limit=1")["next"] == 1
    assert ask(f"{gone}&from=blog.wild.test")["referrers"] == everyone[2:]
    get = partial(face.get, token=face.token(Role.USER))
    listed = get("/api/export/referrers.csv?url=https://q.test/gone&from=q.test").text.splitlines()
    assert [line.partition(",")[0] for line in listed] == ["url", "https://q.test/", "https://q.test/about"]
    mend = list(csv.reader(io.StringIO(get("/api/export/links-to-mend.csv").text)))
    of_gone = [row[2] for row in mend if row[3] == "https://q.test/gone"]
    assert sorted(of_gone) == sorted(row["url"] for row in everyone) and mend[0] == ["kind", "domain", "page", "link"]
    assert ask("/api/pages/referrers?url=https://q.test/nowhere", 404)["type"] == "/problems/not-on-map"


@pytest.mark.parametrize(
    ("table", "query"), [("pages", "state=errors"), ("pages", "q=title"), ("domains", "class=quality")]
)
def test_a_table_as_csv_passes_the_same_filters_as_the_list(ask: Any, face: Served, table: str, query: str) -> None:
    listed = ask(f"/api/{table}?limit=500&{query}")[table]
    text = face.get(f"/api/export/{table}.csv?{query}", token=face.token(Role.USER)).text
    name = {"pages": "url", "domains": "domain"}[table]
    assert [row[name] for row in csv.DictReader(io.StringIO(text))] == [row[name] for row in listed] != []


def test_domains_that_wait_and_that_are_closed_are_told_with_the_reason(fresh: Served) -> None:
    with sqlite3.connect(fresh.face.database) as db:
        db.execute("UPDATE domain_states SET closed_reason = 'request-limit' WHERE domain = 'friend.test'")
        db.execute(
            "INSERT INTO frontier (page_id, priority, added_at, domain_id)"
            " SELECT id, 0, '', domain_id FROM pages WHERE url = 'https://q.test/about'"
        )
    workspace = fresh.face.workspace
    workspace.prepare()
    for domain in ("q.test", "idle.test"):
        workspace.job_writer().write(domain, [Job(1, f"https://{domain}/about", f"https://{domain}/about", domain)])
    token = fresh.token(Role.USER)
    found = fresh.get("/api/frontier/waiting", token=token).json()
    assert [(row["domain"], row["reason"], row["pages"]) for row in found["domains"]] == [("q.test", "turn", 1)]
    assert (found["total"], found["reasons"], found["closed"]) == (
        1,
        {"turn": 1},
        {"rate-limited": 1, "request-limit": 2},
    )
    assert found["words"]["request-limit"] == "its budget of requests is used up"
    assert fresh.get("/api/frontier/waiting?reason=breaker", token=token).json()["domains"] == []
    closed = fresh.get("/api/domains?closed=true&reason=request-limit", token=token).json()["domains"]
    assert [row["domain"] for row in closed] == ["busy.test", "friend.test"]


def test_a_face_without_a_map_says_that_nothing_was_crawled(tmp_path: Any) -> None:
    from tests.reporter.web.serving import served

    with served(tmp_path) as empty:
        token = empty.token(Role.USER)
        for path in ("/api/stats", "/api/pages", "/api/domains", "/api/runs", "/api/graph"):
            answer = empty.get(path, token=token)
            assert (answer.status_code, answer.json()["type"]) == (404, "/problems/no-map")
        assert empty.get("/health").json()["map"] is False
        assert empty.get("/api/explain?domain=q.test", token=token).json()["class"] == "quality"
