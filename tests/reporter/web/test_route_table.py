"""The route table: every row as every role, and what it promises to machines."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reporter.web.page_files import page_text
from reporter.web.route_table import ROUTES
from reporter.web.routing import Bucket, Role, Route
from tests.places import ROOT
from tests.reporter.web.serving import Served

SAMPLES = {"domain": "q.test", "run": "1", "file": "domains.csv", "path": "none.js", "page": "none", "number": "7"}
QUERIES = {
    "/api/explain": "?url=https://q.test/",
    "/api/pages/referrers": "?url=https://q.test/",
    "/api/graph/links": "?from=q.test&to=q.test",
    "/api/pages/content": "?url=https://q.test/",
    "/api/admin/pages/preview": "?domain=q.test",
}
ROWS = [pytest.param(row, id=f"{row.method} {row.path}") for row in ROUTES]
WRITES = [pytest.param(row, id=f"{row.method} {row.path}") for row in ROUTES if row.is_write]


def address(route: Route) -> str:
    return re.sub(r"\{([a-z_]+)(:path)?\}", lambda place: SAMPLES[place[1]], route.path) + QUERIES.get(route.path, "")


@pytest.fixture(scope="module")
def tokens(face: Served) -> dict[Role, str | None]:
    return {role: face.token(role) for role in Role}


@pytest.mark.parametrize("route", ROWS)
@pytest.mark.parametrize("role", Role)
def test_every_role_may_call_what_the_table_says(
    face: Served, tokens: dict[Role, str | None], role: Role, route: Route
) -> None:
    """Seed 004 §17: anonymous < user < admin. A body is {}, so that writes that pass are not understood."""
    with face.call(
        route.method, address(route), token=tokens[role], json={} if route.is_write else None, stream=True
    ) as answer:
        if role < route.role:
            assert answer.status_code == (401 if role is Role.ANONYMOUS else 403)
            assert answer.headers["Content-Type"] == "application/problem+json"
        elif route.path == "/enter":
            assert answer.json()["type"] == "/problems/no-such-link"
        else:
            assert answer.status_code not in (401, 403, 405, 500)
            documented = {route.status, 304, 400, 413, 415, 421, 422, 429, *route.problems}
            assert answer.status_code in documented


def test_anonymous_reads_health_and_stats_and_no_other_figures() -> None:
    open_to_all = {row.path for row in ROUTES if row.role is Role.ANONYMOUS and row.path.startswith("/api/")}
    assert open_to_all == {"/api/stats", "/api/auth/login", "/api/auth/logout", "/api/auth/me"}


def test_users_read_and_only_admins_change() -> None:
    """Seed 004 §17: POST and DELETE are for admins."""
    for row in ROUTES:
        if row.is_write and not row.path.startswith("/api/auth/"):
            assert row.role is Role.ADMIN, row.path
        if not row.is_write:
            assert row.role is not Role.ADMIN, row.path


@pytest.mark.parametrize("route", WRITES)
def test_a_write_is_refused_to_foreign_pages_whatever_its_role(
    face: Served, tokens: dict[Role, str | None], route: Route
) -> None:
    foreign = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}
    answer = face.call(route.method, address(route), token=tokens[Role.ADMIN], json={}, headers=foreign)
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/foreign-origin")


@pytest.mark.parametrize("route", [row for row in WRITES if row.values[0].body is not None])
def test_a_body_must_be_json_and_not_too_large(face: Served, tokens: dict[Role, str | None], route: Route) -> None:
    def status(data: bytes, kind: str) -> int:
        return face.call(
            route.method, address(route), token=tokens[Role.ADMIN], data=data, headers={"Content-Type": kind}
        ).status_code

    assert status(b"{}", "text/plain") == 415
    assert status(b"{", "application/json") == 400
    assert status(b"[" * 100_000, "application/json") in (400, 422)
    assert status(b'{"no such member": 1}', "application/json") == 422
    assert status(b'"' + b"x" * 1_100_000 + b'"', "application/json") == 413


def test_the_document_names_every_row_with_its_answers(face: Served) -> None:
    found = face.get("/openapi.json").json()
    assert found["openapi"].startswith("3.1")
    for row in ROUTES:
        operation = found["paths"][row.path.replace(":path", "")][row.method.lower()]
        assert {str(row.status), "429"} <= operation["responses"].keys()
        assert operation["description"] == f"Role: {row.role.word}. Limit: {row.bucket.value}."


_UNTAGGED = {"/api/stream", "/metrics", "/enter", "/{page}", "/static/{path:path}", "/api/domains/{domain}/robots"}
_READS = [row for row in ROWS if not row.values[0].is_write and row.values[0].path not in _UNTAGGED]


@pytest.mark.parametrize("route", _READS)
def test_a_read_has_an_etag_and_is_not_sent_twice(face: Served, tokens: dict[Role, str | None], route: Route) -> None:
    """Those that change with every look (`at`, a new token) have another one each time."""

    def ask(tag: str = "") -> Any:
        return face.get(address(route), token=tokens[Role.USER], headers={"If-None-Match": tag})

    first = ask()
    if first.status_code in (404, 409):  # the rich map has no summary, and one run alone
        return
    assert first.status_code == 200 and first.headers["Cache-Control"] != "no-store"
    again = ask(f'"another", {first.headers["ETag"]}')
    assert (again.status_code, again.content) == (304, b"") or again.headers["ETag"] != first.headers["ETag"]
    assert ask('"another"').status_code == 200
    if route.path in ("/api/domains", "/api/export/{file}", "/openapi.json", "/"):
        assert again.status_code == 304


def test_a_parameter_that_is_not_known_or_comes_twice_is_refused(face: Served, tokens: dict[Role, str | None]) -> None:
    for path in ("/api/live?x=1", "/api/domains?x=1", "/api/domains?limit=1&limit=2", "/api/domains?limit=0"):
        answer = face.get(path, token=tokens[Role.USER])
        assert (answer.status_code, answer.json()["type"]) == (422, "/problems/bad-query"), path
    assert face.get("/map?level=domains").status_code == 200, "the address of a page is its module's"


def test_the_page_about_the_api_names_every_row_with_its_role() -> None:
    told = dict(
        re.findall(r"^\| `([A-Z]+ [^`?]+)[^`]*` \| (\w+) \|", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE)
    )
    of_pages = ("/static/{path:path}", "/", "/{page}")
    rows = {f"{row.method} {row.path}": row.role.word for row in ROUTES if row.path not in of_pages}
    files = {"GET /api/export/diff.csv"}  # one of the files
    assert {name: role for name, role in rows.items() if name not in files} == told


def test_limits_hold_for_calls_and_say_when_to_come_back(fresh: Served) -> None:
    answers = [fresh.get("/api/stats") for _ in range(11)]
    assert [answer.status_code for answer in answers] == [200] * 10 + [429]
    assert 1 <= int(answers[-1].headers["Retry-After"]) <= 60
    assert fresh.get("/health").status_code == 200, "it has a bucket of its own"
    assert fresh.get("/api/stats", token=fresh.token(Role.USER)).status_code == 200, "and so has an account"


def test_seeds_and_sign_ins_have_their_own_limits() -> None:
    for row in ROUTES:
        assert (row.bucket is Bucket.SEEDS) == (row.path == "/api/frontier/seed")
        assert (row.bucket is Bucket.SIGN_IN) == (row.path in ("/enter", "/api/auth/login"))


def test_what_is_not_there_is_a_problem_too(face: Served) -> None:
    for method, path, status in (("GET", "/api/none/at/all", 404), ("PUT", "/health", 405), ("GET", "/none", 404)):
        answer = face.call(method, path)
        assert answer.status_code == status
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["status"] == status


@pytest.mark.parametrize("path", ["..%2f..%2fetc%2fpasswd", "../pages/index.html", ".hidden", "a//b", "%00"])
def test_static_files_come_from_their_folder_alone(face: Served, path: str) -> None:
    assert face.get(f"/static/{path}").status_code == 404


@pytest.mark.parametrize("is_built", [True, False])
def test_pages_say_what_is_missing_where_nothing_was_built(monkeypatch: pytest.MonkeyPatch, is_built: bool) -> None:
    """Without node everything works: the map is drawn on a canvas, and the foot of the page says so."""
    monkeypatch.setattr("reporter.web.page_files.is_renderer_built", lambda: is_built)
    text = page_text("map", "1.0.0")
    assert ('data-built="yes"' in text, "`make web` (needs node) adds WebGL" in text) == (is_built, not is_built)
