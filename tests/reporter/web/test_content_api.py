"""Stored pages over HTTP: as text, never as their own HTML."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from crawler.store.file_store import open_store
from reporter.web.routing import Role
from tests.reporter.web.serving import make_rich_folder, served

HTML = "<meta charset=utf-8><title>Über</title><script>alert(1)</script><p>Text &lt;b&gt;".encode()


def test_a_stored_page_is_text_and_the_others_say_why_they_are_not_there(tmp_path: Path) -> None:
    folder = make_rich_folder(tmp_path)
    with served(folder) as face:
        digest = open_store(face.face.config, writer="test").put(HTML)
        rows = [("https://q.test/", digest, 1, 0), ("https://q.test/about", digest, 0, 0)]
        rows += [("https://friend.test/", digest, 0, 1), ("https://q.test/new", "0" * 64, 1, 0)]
        with sqlite3.connect(folder / "sumi-ripple.db") as db:
            db.executemany(
                "INSERT INTO page_facts (id, run, content_hash, stored, noarchive, bytes, link_count)"
                " SELECT id, 1, ?2, ?3, ?4, 60, 0 FROM pages WHERE url = ?1",
                rows,
            )
        token = face.token(Role.USER)
        found = face.get("/api/pages/content?url=https://q.test/", token=token).json()
        assert (found["is_stored"], found["text"], found["is_cut"]) == (True, "Über\nText <b>", False)
        for url, why in (
            ("https://q.test/about", "did not keep pages"),
            ("https://friend.test/", "asks that no copy"),
            ("https://q.test/new", "not in the store any more"),
            ("https://q.test/gone", "no visit"),
        ):
            answer = face.get(f"/api/pages/content?url={url}", token=token).json()
            assert not answer["is_stored"] and why in answer["why"]


@pytest.mark.parametrize(("url", "status"), [("https://nowhere.test/", 404), ("mailto:x", 422)])
def test_a_page_that_is_not_there_is_said_plainly(tmp_path: Path, url: str, status: int) -> None:
    with served(make_rich_folder(tmp_path)) as face:
        assert face.get(f"/api/pages/content?url={url}", token=face.token(Role.USER)).status_code == status
