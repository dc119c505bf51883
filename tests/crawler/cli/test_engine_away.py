"""A crawl and its stages while the engine is away: a Ctrl-C ends them as it does at any other time."""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.engine.engine_connection import connect
from crawler.engine.schemas import upgrade
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from tests.pipeline.crawling import eventually
from tests.places import ROOT
from tests.postgres_server import PostgresServer, in_database, own_server

AWAY = "nothing is requested until it is back"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with own_server(is_durable=False) as made:
        yield made


@pytest.mark.parametrize(
    ("words", "stages"),
    [
        (("crawl", "--workers", "1"), ("scheduler", "ingest", "fetcher-01")),
        (("crawl", "--unified"), ("scheduler", "ingest", "fetcher-01")),
        (("fetch", "--workers", "1"), ("fetcher-01",)),
        (("schedule",), ("scheduler",)),
        (("ingest",), ("ingest",)),
    ],
    ids=["crawl", "crawl --unified", "fetch", "schedule", "ingest"],
)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_an_interrupt_while_the_engine_is_away_exits_130_and_says_what_is_done_again(
    server: PostgresServer,
    tmp_path: Path,
    short_folder: Path,
    words: tuple[str, ...],
    stages: tuple[str, ...],
    number: signal.Signals,
) -> None:
    name = f"away_{secrets.token_hex(4)}"
    with connect(server.url(), "test") as admin:
        admin.execute(f"CREATE DATABASE {name}")
    url = in_database(server.url(), name)
    with connect(url, "test") as admin:
        upgrade(admin, WORKSPACE)
    config = tmp_path / "my.toml"
    config.write_text(
        '[[quality]]\ndomain = "example.com"\nseeds = ["https://example.com/"]\n'
        f'[network]\nresolve = {{"*" = "127.0.0.1:1"}}\n[engine]\nurl = "{url}"\n'
    )
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "pause").touch()  # it works, and sends nothing
    said = tmp_path / "said"
    with said.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "crawler", words[0], str(config), *words[1:]],
            env={**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(short_folder)},
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        watching = EngineWorkspace(tmp_path / "watching", url)
        for name in stages:
            eventually(lambda name=name: b'"paused"' in (watching.heartbeat(name) or b""), f"{name} is paused")  # type: ignore[misc]
        watching.close()
        server.stop()
        eventually(lambda: AWAY in said.read_text(), "the engine is missed")
        process.send_signal(number)
        assert process.wait(60) == 130, said.read_text()
    finally:
        process.kill()
        process.wait()
        server.start()
    eventually(lambda: not list(short_folder.iterdir()), "nothing is left among the temporary files")
    text = " ".join(said.read_text().split())
    assert "stopped; what was not written yet is done again when the same command goes on (cannot reach" in text
    assert "Traceback" not in text and "[ERROR]" not in text and "starts anew" not in text, text
