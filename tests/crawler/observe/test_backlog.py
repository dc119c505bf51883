"""The work that waits between the stages."""

from __future__ import annotations

import orjson

from crawler.model.records import Job, dump
from crawler.observe.backlog import read_backlog
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer


def test_the_backlog_is_the_jobs_after_the_bookmarks(workspace: FileWorkspace) -> None:
    writer = Writer(workspace.layout.jobs_of("a.test"))
    first = writer.append(dump(Job(1, "https://a.test/", "https://a.test/", "a.test")))
    whole = writer.append(dump(Job(1, "https://a.test/x", "https://a.test/x", "a.test")))
    assert read_backlog(workspace, None).jobs_bytes == whole.offset
    mark = {"v": 1, "segment": first.segment, "offset": first.offset, "holder": None, "results": [0, 0]}
    (workspace.layout.jobs_of("a.test") / "bookmark.json").write_bytes(orjson.dumps(mark))
    found = read_backlog(workspace, None)
    assert (found.jobs_bytes, found.job_domains) == (whole.offset - first.offset, 1)
    assert found.results_bytes is None, "unknown without a database"
