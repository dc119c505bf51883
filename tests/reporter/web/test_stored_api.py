"""Deletion of stored pages: what a preview showed goes, once, for who asked; the map stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.model.records import PageResult, dump
from crawler.store.file_store import digest_of, open_store
from crawler.workspace.files.file_workspace import FileWorkspace
from reporter.web.routing import Role
from tests.reporter.web.serving import CONFIG, Served, served

AT = "2026-01-15T10:30:00.000Z"
STORED = CONFIG + "\n[store]\nhtml = true\n"
PAGES = {  # /1 and /2 have a content of their own, /3 shares one with another domain
    "https://q.test/1": b"<p>one",
    "https://q.test/2": b"<p>two",
    "https://q.test/3": b"<p>the same",
    "https://other.test/": b"<p>the same",
}


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Served]:
    """A face on a workspace with four stored pages."""
    with served(tmp_path, config=STORED) as face:
        workspace = FileWorkspace(face.face.first_config.workspace)
        workspace.prepare()
        writer = workspace.results.writer("fetcher-01", segment_bytes=10**6)
        store = open_store(face.face.config, writer="fetcher-01")
        for url, body in PAGES.items():
            facts = {"content_hash": digest_of(body), "stored": True, "bytes": len(body)}
            writer.append(dump(PageResult(1, url, url, url.split("/")[2], AT, "processed", status=200, **facts)))  # type: ignore[arg-type]
            store.put(body)
        writer.sync()
        writer.close()
        yield face


def has(face: Served, body: bytes) -> bool:
    return open_store(face.face.config).has(digest_of(body))


def test_what_the_preview_showed_is_deleted_once_and_shared_contents_stay(keeper: Served) -> None:
    token = keeper.token(Role.ADMIN)
    which = "domain=q.test"
    assert keeper.call("DELETE", f"/api/admin/pages?{which}", token=token).status_code == 409, "no preview"
    shown = keeper.get(f"/api/admin/pages/preview?{which}", token=token).json()
    assert (shown["pages"], shown["contents"], shown["shared_contents"]) == (3, 2, 1) and shown["bytes"] > 0
    assert has(keeper, b"<p>one"), "a preview deletes nothing"
    path = f"/api/admin/pages?{which}&token={shown['token']}"
    assert keeper.call("DELETE", path.replace("q.test", "other.test"), token=token).status_code == 409, "other pages"
    shown = keeper.get(f"/api/admin/pages/preview?{which}", token=token).json()
    path = f"/api/admin/pages?{which}&token={shown['token']}"
    done = keeper.call("DELETE", path, token=token)
    assert (done.status_code, done.json()["contents"]) == (200, 2)
    assert not has(keeper, b"<p>one") and not has(keeper, b"<p>two") and has(keeper, b"<p>the same")
    assert keeper.call("DELETE", path, token=token).status_code == 409, "a token is good once"
    entry = keeper.get("/api/log", token=token).json()["entries"][1]
    assert (entry["action"], entry["status"], entry["detail"]["domain"]) == ("DELETE /api/admin/pages", 200, "q.test")
    assert "token" not in entry["detail"]


def test_a_preview_is_void_when_something_else_would_go_by_now(keeper: Served) -> None:
    token = keeper.token(Role.ADMIN)
    shown = keeper.get("/api/admin/pages/preview?all=true", token=token).json()
    assert (shown["pages"], shown["contents"]) == (4, 3)
    open_store(keeper.face.config).remove(digest_of(b"<p>one"))
    answer = keeper.call("DELETE", f"/api/admin/pages?all=true&token={shown['token']}", token=token)
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/no-preview")
    assert has(keeper, b"<p>two")


def test_nothing_is_deleted_while_a_crawl_is_at_work(keeper: Served) -> None:
    token = keeper.token(Role.ADMIN)
    shown = keeper.get("/api/admin/pages/preview?url=https://q.test/1", token=token).json()
    assert shown["contents"] == 1
    role = keeper.face.workspace.take_role("fetcher-01")
    try:
        path = f"/api/admin/pages?url=https://q.test/1&token={shown['token']}"
        answer = keeper.call("DELETE", path, token=token)
    finally:
        role.release()
    assert answer.status_code == 409 and "sumi-ripple stop" in answer.json()["detail"]
    assert has(keeper, b"<p>one")


@pytest.mark.parametrize("query", ["", "?url=https://q.test/&domain=q.test", "?all=false", "?domain=%2F", "?url=x"])
def test_pages_must_be_named_in_exactly_one_way(keeper: Served, query: str) -> None:
    answer = keeper.get(f"/api/admin/pages/preview{query}", token=keeper.token(Role.ADMIN))
    assert answer.status_code == 422
