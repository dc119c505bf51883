"""A snapshot of a workspace."""

from __future__ import annotations

import json

import orjson
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.observe.live_text import plain_line
from crawler.observe.processes import observe
from crawler.observe.status import Status
from crawler.supervise.alert_watch import sample_of
from crawler.supervise.suspension import are_requests_paused
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.observe.beats import NOW, beat, seen


def test_heartbeats_that_cannot_be_read_are_skipped(workspace: FileWorkspace) -> None:
    workspace.layout.status_of("ingest").write_bytes(b'{"torn')
    workspace.layout.status_of("fetcher-01").write_bytes(b"[]")
    workspace.layout.status_of("fetcher-02").write_bytes(b'{"name": "fetcher-02", "at": 5, "facts": "none"}')
    assert plain_line(seen(workspace), 0, 0).startswith("run #3 · 0 pages crawled")


def test_a_snapshot_sums_the_figures_of_running_processes(workspace: FileWorkspace) -> None:
    snapshot = seen(workspace)
    assert snapshot.figures() == {
        "pages": 1234, "known": 5678, "links": 98_765, "frontier": 4321, "errors": 1, "in_flight": 7,
        "crawled": 1200, "failed": 1, "waiting": 4321,
    }  # fmt: skip
    assert snapshot.next_due() == ("a.test", 0.5)
    beat(workspace, "fetcher-02", {"in_flight": 4}, doing="stopped")
    assert seen(workspace).figures()["in_flight"] == 3
    assert seen(workspace).next_due() == ("b.test", 2.5)


def test_a_snapshot_names_the_requests_on_the_wire_the_oldest_first(workspace: FileWorkspace) -> None:
    request = {"domain": "a.test", "method": "GET", "url": "https://a.test/\x1b[2J", "seconds": 0.5}
    beat(workspace, "fetcher-01", {"on_the_wire": [request, {"domain": "b.test"}, "c.test"]}, age=2)
    beat(workspace, "fetcher-02", {"on_the_wire": [{**request, "domain": "d.test", "seconds": 9.0}]})
    out = seen(workspace).on_the_wire()
    assert [(each["domain"], each["seconds"]) for each in out] == [("d.test", 9.0), ("a.test", 2.5)]
    assert out[1]["url"] == "https://a.test/\ufffd[2J"


def test_a_process_without_a_recent_heartbeat_is_stuck_if_it_holds_its_lock(workspace: FileWorkspace) -> None:
    beat(workspace, "ingest", {}, age=60)
    role = workspace.take_role("ingest")
    try:
        (ingest,) = observe(workspace, NOW).by_stage()["ingest"]
        assert ingest.is_running and ingest.is_stuck
        assert sample_of(observe(workspace, NOW), 0).silent == {"ingest": 60.0}
        beat(workspace, "ingest", {}, age=60, doing="stopped")
        (ingest,) = observe(workspace, NOW).by_stage()["ingest"]
        assert ingest.is_starting and not ingest.is_stuck, "that heartbeat is of the process before it"
        assert sample_of(observe(workspace, NOW), 0).silent == {}
    finally:
        role.release()
    (ingest,) = observe(workspace, NOW).by_stage()["ingest"]
    assert not ingest.is_running and not ingest.is_stuck and ingest.pid is None


STRANGE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("\x1b[2J"),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["domain", "seconds", "url", "method"]), inner)
    ),
    max_leaves=4,
)
MEMBERS = st.sampled_from(["stage", "pid", "started", "at", "doing", "facts"])
NUMBERS = ("in_flight", "taken", "released", "open_files", "pages", "frontier", "run")
FACTS = st.sampled_from([*NUMBERS, "next_due", "left", "limits", "good_hosts", "on_the_wire"])
LEFT = st.fixed_dictionaries(
    {name: st.integers() | st.floats() for name in ("pages", "domains", "least", "most", "may_find_domains")}
)
LIMITS = st.dictionaries(st.sampled_from(["pages", "domains", "seconds", "bytes"]), st.integers() | st.floats())


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(MEMBERS, STRANGE, max_size=3), st.dictionaries(FACTS, STRANGE | LEFT | LIMITS, max_size=3))
def test_forged_heartbeats_are_shown_without_an_error_and_write_nothing_else_to_a_terminal(
    workspace: FileWorkspace, members: dict[str, object], facts: dict[str, object]
) -> None:
    """The supervisor shows them too: an error there would end the crawl."""
    for name in ("scheduler", "ingest", "fetcher-01"):
        forged = {"name": name, "at": NOW.isoformat(), "facts": facts, **members}
        workspace.layout.status_of(name).write_text(json.dumps(forged))
    snapshot = seen(workspace)
    lines = [line for line, _ in Status(workspace).lines()] + [plain_line(snapshot, 0, 0)]
    snapshot.figures(), snapshot.next_due(), snapshot.on_the_wire(), are_requests_paused(workspace)
    assert "\x1b" not in "".join(lines)


def test_a_heartbeat_with_a_flipped_bit_is_none(workspace: FileWorkspace) -> None:
    workspace.beat("ingest", orjson.dumps({"name": "ingest", "facts": {"pages": 1}}))
    path = workspace.layout.status_of("ingest")
    assert workspace.heartbeats()["ingest"]
    path.write_bytes(path.read_bytes().replace(b'"pages":1', b'"pages":3'))
    assert "ingest" not in workspace.heartbeats()
