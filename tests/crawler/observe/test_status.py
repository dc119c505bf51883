"""The status of a workspace, in words and as JSON."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import orjson

from crawler.database.format import SCHEMA_VERSION
from crawler.observe.status import Status
from crawler.workspace.files.file_workspace import FileWorkspace
from ingest.writing.schema import TABLES


def test_status_in_words_fits_the_columns_that_there_are_and_is_whole_in_a_pipe(workspace: FileWorkspace) -> None:
    workspace.layout.flag("pause").touch()
    role = workspace.take_role("fetcher-01")
    for width in (60, 80, 120):
        assert all(len(text) <= width for text, _ in Status(workspace).lines(width))
    lines = [text for text, _ in Status(workspace).lines()]
    role.release()
    assert not any("…" in line for line in lines)
    assert str(workspace.layout.root) in lines[0]
    text = "\n".join(lines)
    assert "run #3 running" in text and "fetcher-01    running, pid 7" in text
    assert "all stages paused by the flag file pause" in text
    assert "next request: b.test in 2.5 s" in text
    assert "1,200 crawled, 1 failed, 4,321 waiting" in text and "5,678 known, 98,765 links" in text


def test_status_as_json_has_a_version_and_the_documented_members(workspace: FileWorkspace) -> None:
    found = orjson.loads(orjson.dumps(Status(workspace).as_json()))
    assert found["v"] == 1 and found["kind"] == "status"
    assert found.keys() >= {"at", "workspace", "run", "flags", "stages", "figures", "waiting", "backlog"}
    assert found["run"] == {"number": 3, "status": "running"}
    assert {stage["name"] for stage in found["stages"]} == {"scheduler", "fetcher-01", "fetcher-02", "ingest"}
    assert all(stage["is_running"] is False for stage in found["stages"]), "no process holds a lock"


def test_a_cut_list_of_closed_domains_ends_with_the_command_that_shows_the_rest(
    workspace: FileWorkspace, tmp_path: Path
) -> None:
    with sqlite3.connect(tmp_path / "map.db") as db:
        db.executescript(TABLES)
        db.execute("INSERT INTO meta VALUES ('schema_version', ?)", (str(SCHEMA_VERSION),))
        db.executemany(
            "INSERT INTO domain_states (domain, class, run, closed_reason) VALUES (?, 'discovered', 3, 'rate-limited')",
            [(f"d{number:02d}.test",) for number in range(25)],
        )
    db.close()
    command = "sumi-ripple status my.toml"
    cut = [text for text, _ in Status(workspace, tmp_path / "map.db", command=command).lines()]
    assert cut[-1] == "  … and 20 more closed domains: sumi-ripple status my.toml --all"
    whole = [text for text, _ in Status(workspace, tmp_path / "map.db", command=command, is_uncut=True).lines()]
    assert [text for text in whole if "closed: " in text][-1] == "  closed: d24.test (rate-limited)"
    assert len(whole) == len(cut) + 19
