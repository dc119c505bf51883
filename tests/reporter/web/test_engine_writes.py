"""The web face while a run is under way in an engine: its calls that write, and the runs side by side.

Each answer is the one that the same crawl in files gives.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from requests import Response

from crawler.config.load import load
from crawler.engine.engine_connection import connect
from crawler.engine.schemas import upgrade
from crawler.model.records import Closure, DomainEvent, Order, PageResult, RunEvent, dump
from crawler.model.settings import Config
from crawler.workspace.control import StageControl
from crawler.workspace.door import Workspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from crawler.workspace.reading import read_records
from crawler.workspace.runs import Run, RunStatus, write_run
from ingest.loop import Ingest
from reporter.web.routing import Role
from tests.postgres_server import own_database
from tests.reporter.web.serving import CONFIG, Served, served

AT = "2026-01-0{}T00:00:00.000Z"
SEED = "https://q.test/"


class Both(NamedTuple):
    file: Served
    engine: Served

    def call(self, method: str, path: str, body: Any = None, status: int = 200) -> Any:
        """The answer of both, which is the same."""
        answers = [_answer(each, method, path, body) for each in self]
        assert [answer.status_code for answer in answers] == [status, status], [answer.text for answer in answers]
        file, engine = (_plain(answer.json()) for answer in answers)
        assert engine == file
        return engine


def _answer(served: Served, method: str, path: str, body: Any, tries: int = 20) -> Response:
    """The answer, asked for again while a busy machine is still working it out."""
    answer = served.call(method, path, token=served.token(Role.ADMIN), json=body)
    if answer.status_code == 503 and "Retry-After" in answer.headers and tries:
        time.sleep(int(answer.headers["Retry-After"]))
        return _answer(served, method, path, body, tries - 1)
    return answer


def _plain(content: Any) -> Any:
    """Without what differs from crawl to crawl: its folder, and the numbers and times of orders."""
    if isinstance(content, dict):
        return {name: _plain(v) for name, v in content.items() if name not in ("config", "path", "id", "at", "order")}
    return [_plain(each) for each in content] if isinstance(content, list) else content


def visit(run: int, path: str, *targets: str) -> PageResult:
    key = f"{SEED}{path}"
    return PageResult(
        *(run, key, key, "q.test", AT.format(run), "processed"),
        status=200,
        title=f"of run {run}",
        base=SEED,
        hrefs=targets,
    )


def crawl(config: Config) -> Workspace:
    """Two runs, and a third one that is under way."""
    workspace = open_workspace(config)
    workspace.prepare()
    ingest = Ingest(config, StageControl(workspace, "ingest"))
    for run in (1, 2, 3):
        started = RunEvent(run, AT.format(run), "started", config.config_hash, config.map_hash)
        pages = [visit(run, "", "/a", f"/{run}"), visit(run, "a", "https://moss.test/")]
        finished = [RunEvent(run, AT.format(run), "finished")] if run < 3 else []
        for name, results in (("scheduler", [started]), ("fetcher-01", pages[: 2 if run < 3 else 1])):
            _append(workspace, name, results)
        _append(workspace, "scheduler", finished)
        if not finished:
            closure = Closure("rate-limited", 2)
            _append(workspace, "fetcher-01", [DomainEvent(run, "q.test", AT.format(run), "closed", closes=closure)])
        while ingest.step():
            pass
    ingest.shutdown()
    write_run(workspace, Run(3, RunStatus.RUNNING))
    return workspace


def _append(workspace: Workspace, name: str, results: list[Any]) -> None:
    log = workspace.results.writer(name, segment_bytes=1 << 20)
    log.append_all(dump(result) for result in results)
    log.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    folders: list[Path] = [tmp_path_factory.mktemp(name) for name in ("files", "engine")]
    with own_database() as url:
        with connect(url, "test") as admin:
            upgrade(admin, WORKSPACE)
        for folder, more in zip(folders, ("", f'[engine]\nurl = "{url}"\n'), strict=True):
            (folder / "my.toml").write_text(CONFIG + more)
            crawl(load(folder / "my.toml"))
        with served(folders[0]) as file, served(folders[1]) as engine:
            yield Both(file, engine)


def test_runs_are_compared_and_the_one_under_way_is_told_apart(both: Both) -> None:
    runs = both.call("GET", "/api/runs")
    assert len(runs["runs"]) == 3
    found = both.call("GET", "/api/diff?before=1&after=2")
    assert "https://q.test/2" in str(found)
    both.call("GET", "/api/explain?url=https://q.test/")
    both.call("GET", "/api/stats")
    live = both.call("GET", "/api/frontier/urls?limit=5")
    assert live


def test_orders_are_left_in_the_workspace(both: Both) -> None:
    for action, path in (("add", "/api/frontier/add"), ("seed", "/api/frontier/seed")):
        assert both.call("POST", path, {"urls": [f"https://q.test/{action}"]}, 202)
    orders = [
        [(order.action, order.wires) for order, _ in read_records(each.face.workspace.orders.whole_reader(), Order)]
        for each in both
    ]
    assert orders[0] == orders[1] == [("add", ("https://q.test/add",)), ("seed", ("https://q.test/seed",))]


def test_a_domain_is_reset_and_jobs_are_handed_back(both: Both) -> None:
    assert both.call("POST", "/api/admin/domains/q.test/reset", {}, 202)["closed"] == "rate-limited"
    both.call("POST", "/api/admin/domains/moss.test/reset", {}, 409)
    both.call("POST", "/api/frontier/recover", {})


def test_decisions_are_previewed_written_and_undone(both: Both) -> None:
    decision = {"decision": "accept", "domain": "moss.test", "note": "seen", "tags": ["tea"]}
    preview = both.call("POST", "/api/curate/preview", decision)
    assert preview["lines"]
    assert both.call("POST", "/api/curate", decision)["list"] == "quality"
    assert [row["domain"] for row in both.call("GET", "/api/curate/log")["decisions"]] == ["moss.test"]
    assert both.call("POST", "/api/curate/undo", {})["domain"] == "moss.test"


def test_flags_are_set_and_cleared_for_all_machines(both: Both) -> None:
    assert both.call("POST", "/api/control", {"action": "pause", "stage": "fetcher"})["flags"] == ["pause.fetcher"]
    assert all(each.face.workspace.flags() == ["pause.fetcher"] for each in both)
    assert both.call("POST", "/api/control", {"action": "resume"})["flags"] == []
