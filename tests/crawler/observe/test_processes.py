"""A snapshot of a workspace, and its backlog."""

from __future__ import annotations

import orjson

from crawler.model.records import Job, dump
from crawler.observe.live_text import plain_line
from crawler.observe.processes import backlog
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer
from tests.crawler.observe.beats import seen


def test_heartbeats_that_cannot_be_read_are_skipped(workspace: FileWorkspace) -> None:
    workspace.layout.status_of("ingest").write_bytes(b'{"torn')
    workspace.layout.status_of("fetcher-01").write_bytes(b"[]")
    workspace.layout.status_of("fetcher-02").write_bytes(b'{"name": "fetcher-02", "at": 5, "facts": "none"}')
    assert plain_line(seen(workspace), 0, 0).startswith("run #3 · 0 pages done")


def test_the_backlog_is_the_jobs_after_the_bookmarks(workspace: FileWorkspace) -> None:
    writer = Writer(workspace.layout.jobs_of("a.test"))
    first = writer.append(dump(Job(1, "https://a.test/", "https://a.test/", "a.test")))
    whole = writer.append(dump(Job(1, "https://a.test/x", "https://a.test/x", "a.test")))
    assert backlog(workspace, None).jobs_bytes == whole.offset
    mark = {"v": 1, "segment": first.segment, "offset": first.offset, "holder": None, "results": [0, 0]}
    (workspace.layout.jobs_of("a.test") / "bookmark.json").write_bytes(orjson.dumps(mark))
    found = backlog(workspace, None)
    assert (found.jobs_bytes, found.job_domains) == (whole.offset - first.offset, 1)
    assert found.results_bytes is None, "unknown without a database"
