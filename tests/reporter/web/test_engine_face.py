"""The web face on a map in the engine gives the answers that it gives on the same map in a file."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import requests

from crawler.engine.engine_connection import connect
from crawler.engine.schemas import upgrade
from crawler.model.map_place import EngineMap
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from ingest.map_transfer import copy_whole_map
from reporter.web.routing import Role
from tests.postgres_server import own_database, own_server
from tests.reporter.web.serving import CONFIG, Served, make_rich_folder, served

SAME = (
    "/api/stats",
    "/api/frontier/waiting",
    "/api/frontier/stats",
    "/api/frontier/urls?limit=5",
    "/api/pages?limit=7",
    "/api/pages?state=errors",
    "/api/pages?q=friend",
    "/api/pages/referrers?url=https://friend.test/",
    "/api/domains?sort=crawled",
    "/api/runs",
    "/api/explain?url=https://q.test/",
    "/api/explain?domain=friend.test",
    "/api/candidates",
    "/api/links/mending",
    "/api/graph",
    "/api/graph?level=pages&domain=q.test",
    "/api/graph/links?from=q.test&to=friend.test",
    "/api/export/pages.csv",
    "/api/export/domains.csv",
)
ANSWERING = ("/api/live", "/api/stats/timeseries", "/api/exports", "/api/log", "/api/curate/log", "/api/hooks")


class Both(NamedTuple):
    file: Served
    engine: Served

    def ask(self, path: str) -> tuple[requests.Response, requests.Response]:
        file, engine = (each.get(path, token=each.token(Role.USER)) for each in self)
        return file, engine


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    in_files = make_rich_folder(tmp_path_factory.mktemp("files"))
    with closing(sqlite3.connect(in_files / "sumi-ripple.db")) as db, db:
        db.execute("INSERT OR IGNORE INTO meta VALUES ('map_id', 'rich')")
    in_engine: Path = tmp_path_factory.mktemp("engine")
    with own_database() as url:
        with connect(url, "test") as admin:
            upgrade(admin, WORKSPACE)
        copy_whole_map(in_files / "sumi-ripple.db", EngineMap(url, files=in_engine / "sumi-ripple.db"))
        config = f'{CONFIG}\n[engine]\nurl = "{url}"\n'
        with served(in_files) as file, served(in_engine, config=config) as engine:
            yield Both(file, engine)


@pytest.mark.parametrize("path", SAME)
def test_answers_are_the_same(both: Both, path: str) -> None:
    file, engine = both.ask(path)
    assert (file.status_code, engine.status_code) == (200, 200), engine.text
    assert _content(engine) == _content(file)


@pytest.mark.parametrize("path", ANSWERING)
def test_answers_about_the_crawl_are_given(both: Both, path: str) -> None:
    file, engine = both.ask(path)
    assert (file.status_code, engine.status_code) == (200, 200), engine.text


def test_while_the_engine_is_away_every_answer_says_so_and_to_try_again(tmp_path: Path) -> None:
    """Prometheus and programs try again after a 503; a 409 would be the caller's mistake."""
    with own_server(is_durable=False) as server:
        with connect(server.url(), "test") as admin:
            upgrade(admin, WORKSPACE)
        make_rich_folder(tmp_path)
        copy_whole_map(tmp_path / "sumi-ripple.db", EngineMap(server.url(), files=tmp_path / "engine.db"))
        (tmp_path / "my.toml").unlink(missing_ok=True)
        with served(tmp_path, config=f'{CONFIG}\n[engine]\nurl = "{server.url()}"\n') as face:
            token = face.token(Role.ADMIN)
            assert face.get("/metrics", token=token).status_code == 200
            server.stop()
            for path in ("/metrics", "/api/live", "/api/stats", "/api/hooks", "/api/runs", "/health"):
                answer = face.get(path, token=token)
                assert (answer.status_code, answer.headers.get("Retry-After")) == (503, "5"), (path, answer.text)
            server.start()
            assert face.get("/metrics", token=token).status_code == 200


def test_serve_shows_the_map_of_the_engine(both: Both) -> None:
    """The command itself, as a process of its own."""
    first = both.engine.face.config.source
    assert first is not None
    config = first.with_name("again.toml")
    config.write_text(first.read_text().replace('"workspace"', '"elsewhere"'))
    command = [sys.executable, "-m", "crawler", "serve", str(config), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            said = [server.stdout.readline() for _ in range(3)]
            session = requests.Session()
            assert session.get(said[1].strip(), timeout=30).status_code == 200, said
            found = session.get(f"{said[1].partition('/enter')[0]}/api/stats", timeout=30).json()
        finally:
            server.send_signal(signal.SIGINT)
        assert server.wait(30) == 0
    assert found["overall"] == _content(both.file.get("/api/stats"))["overall"]


def _content(answer: requests.Response) -> Any:
    """What an answer says of the map; the two faces have a config each."""
    if "json" not in answer.headers["Content-Type"]:
        return answer.text
    found = answer.json()
    found.pop("config", None)
    return found
