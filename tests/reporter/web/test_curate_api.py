"""Decisions, control and the log, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.workspace.files.file_workspace import FileWorkspace
from reporter.web.routing import Role
from tests.reporter.web.serving import PASSWORD, Served


@pytest.fixture
def post(fresh: Served) -> Any:
    token = fresh.token(Role.ADMIN)

    def posted(path: str, body: dict[str, Any], status: int = 200) -> Any:
        answer = fresh.post(path, token=token, json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    return posted


def test_a_decision_is_previewed_written_listed_and_undone(fresh: Served, post: Any) -> None:
    path = fresh.face.first_config.source
    assert path is not None
    before = path.read_text()
    decision = {"decision": "accept", "domain": "moss.test", "note": "seen on q.test", "tags": ["tea"]}
    assert post("/api/curate/preview", decision)["lines"]
    assert path.read_text() == before, "a preview changes nothing"
    assert post("/api/curate", decision)["list"] == "quality"
    assert "moss.test" in path.read_text() and "seen on q.test" in path.read_text()
    assert post("/api/curate", decision, 409)["type"] == "/problems/config"
    token = fresh.token(Role.USER)
    listed = fresh.get("/api/curate/log", token=token).json()["decisions"]
    assert [(row["decision"], row["domain"]) for row in listed] == [("accept", "moss.test")]
    assert post("/api/curate/undo", {})["domain"] == "moss.test"
    assert path.read_text() == before
    assert post("/api/curate/undo", {}, 409)["detail"].startswith("there is nothing to undo")


def test_a_note_alone_is_previewed_written_and_undone(fresh: Served, post: Any) -> None:
    path = fresh.face.first_config.source
    assert path is not None
    before = path.read_text()
    decision = {"decision": "note", "domain": "q.test", "note": "the first", "tags": ["tea"]}
    lines = post("/api/curate/preview", decision)["lines"]
    assert lines[:2] == ["note: none → the first", "tags: none → tea"] and path.read_text() == before
    assert post("/api/curate", decision)["list"] == "quality"
    token = fresh.token(Role.USER)
    tagged = fresh.get("/api/graph", token=token).json()["nodes"]
    assert tagged["tags"][tagged["name"].index("q.test")] == ["tea"]
    assert post("/api/curate", {**decision, "domain": "moss.test"}, 409)["detail"].endswith("stub it first")
    assert post("/api/curate/undo", {"domain": "q.test"})["decision"] == "note"
    assert path.read_text() == before


@pytest.mark.parametrize("domain", ["a b", "--undo", "q.test", "x" * 300, "evil.toml"])
def test_a_decision_about_no_domain_is_refused_by_the_preview_too(post: Any, domain: str) -> None:
    decision = {"decision": "accept", "domain": domain}
    for path in ("/api/curate/preview", "/api/curate"):
        if (path, domain) != ("/api/curate", "evil.toml"):
            assert post(path, decision, 409)["type"] == "/problems/config"


def test_control_sets_and_clears_the_flag_files(fresh: Served, post: Any) -> None:
    workspace = fresh.face.workspace
    assert isinstance(workspace, FileWorkspace)
    workspace.prepare()
    assert post("/api/control", {"action": "pause", "stage": "fetcher"})["flags"] == ["pause.fetcher"]
    assert workspace.flags() == ["pause.fetcher"]
    assert post("/api/control", {"action": "resume"})["flags"] == []
    assert post("/api/control", {"action": "stop"}, 409)["type"] == "/problems/nothing-runs"
    assert post("/api/control", {"action": "reload"}, 409)["type"] == "/problems/nothing-runs"
    role = workspace.take_role("ingest")
    try:
        post("/api/control", {"action": "reload"})
        assert workspace.document("reload") is not None
        assert post("/api/control", {"action": "stop"})["flags"] == ["stop"]
    finally:
        role.release()


def test_every_write_leaves_an_entry_in_the_log_without_secrets(fresh: Served, post: Any) -> None:
    fresh.face.workspace.prepare()
    fresh.post("/api/auth/login", json={"name": "ada", "password": PASSWORD})
    for _ in range(3):
        post("/api/control", {"action": "pause"})
    post("/api/control", {"action": "stop"}, 409)
    token = fresh.token(Role.USER)
    newest = fresh.get("/api/log?limit=2", token=token).json()
    rest = fresh.get(f"/api/log?before={newest['next']}", token=token).json()
    entries = newest["entries"] + rest["entries"]
    assert [entry["status"] for entry in entries] == [409, 200, 200, 200, 401] and rest["next"] is None
    assert entries[0]["who"] == "one-admin" and entries[-1]["who"] == "nobody"
    assert entries[-1]["detail"] == {"name": "ada"}, "no password"
