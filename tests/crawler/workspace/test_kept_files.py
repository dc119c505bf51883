"""A workspace copied while it is in use, and settled after a restore."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from crawler.model.messages import NO_RETRIES, RetryCounts
from crawler.model.records import Closure, RunEvent, dump
from crawler.pace.decisions import EntryRequest
from crawler.workspace.clock import read_clock
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.kept_files import KeptFiles
from crawler.workspace.log import Cursor

AT = "2025-01-01T00:00:00.000Z"


@pytest.fixture
def workspace(tmp_path: Path) -> FileWorkspace:
    made = FileWorkspace(tmp_path / "workspace")
    made.prepare()
    return made


def lines_of(workspace: FileWorkspace, writer: str) -> list[bytes]:
    return [line.body for line in workspace.results.reader(writer)]


def test_a_copy_ends_where_it_is_told_to_and_sealed_segments_are_links(
    workspace: FileWorkspace, tmp_path: Path
) -> None:
    writer = workspace.results.writer("scheduler", segment_bytes=150)
    ends = [writer.append(dump(RunEvent(number, AT, "started"))) for number in range(1, 6)]
    KeptFiles(tmp_path / "workspace").save(tmp_path / "copy", {"scheduler": ends[3], "gone": Cursor()}, has_store=True)
    copy = FileWorkspace(tmp_path / "copy")
    assert lines_of(copy, "scheduler") == lines_of(workspace, "scheduler")[:4]
    folders = [place.layout.results_of("scheduler") for place in (workspace, copy)]
    first, last = f"{ends[0].segment:012d}.jsonl", f"{ends[3].segment:012d}.jsonl"
    assert (folders[0] / first).samefile(folders[1] / first)
    assert not (folders[0] / last).samefile(folders[1] / last), "one that may grow is copied"
    writer.close()


def test_orders_are_copied_up_to_their_last_whole_line(workspace: FileWorkspace, tmp_path: Path) -> None:
    writer = workspace.orders.writer(segment_bytes=1 << 20)
    writer.append(dump(RunEvent(1, AT, "started")))
    writer.close()
    (segment,) = workspace.layout.orders.iterdir()
    whole = segment.read_bytes()
    segment.write_bytes(whole + b'{"v":1,"torn')
    (tmp_path / "workspace" / "web").mkdir()
    (tmp_path / "workspace" / "web" / "accounts.json").write_text("{}")
    (tmp_path / "workspace" / "logs").mkdir(exist_ok=True)
    (tmp_path / "workspace" / "logs" / "link.csv").symlink_to("/etc/passwd")
    KeptFiles(tmp_path / "workspace").save(tmp_path / "copy", {}, has_store=False)
    copy = FileWorkspace(tmp_path / "copy")
    assert (copy.layout.orders / segment.name).read_bytes() == whole
    assert (tmp_path / "copy" / "web" / "accounts.json").read_text() == "{}"
    assert not (tmp_path / "copy" / "logs" / "link.csv").exists(), "no symlink is followed"


def test_stored_pages_are_links_and_the_notes_beside_them_copies(workspace: FileWorkspace, tmp_path: Path) -> None:
    """A note is written after the backup: a link to it would grow, and the backup would no longer be whole."""
    store = tmp_path / "workspace" / "store"
    for name in ("html/aa/bb/x.html.zst", "html/packs/1.pack", "html/tmp/fetcher-01-1", "forgotten.jsonl"):
        (store / name).parent.mkdir(parents=True, exist_ok=True)
        (store / name).write_text("{}\n")
    KeptFiles(tmp_path / "workspace").save(tmp_path / "copy", {}, has_store=True)
    copy = tmp_path / "copy" / "store"
    assert (copy / "html/aa/bb/x.html.zst").samefile(store / "html/aa/bb/x.html.zst")
    assert (copy / "html/packs/1.pack").samefile(store / "html/packs/1.pack")
    assert not (copy / "html" / "tmp").exists()
    with (store / "forgotten.jsonl").open("a") as notes:
        notes.write('{"hash":"…"}\n')
    assert (copy / "forgotten.jsonl").read_text() == "{}\n"


def test_the_growth_of_a_file_over_all_runs_is_read_from_its_lines(workspace: FileWorkspace, tmp_path: Path) -> None:
    now = 1_750_000_000.0
    records = tmp_path / "workspace" / "metadata" / "crawl_metadata.jsonl"
    records.parent.mkdir()
    ages = [*range(30, 0, -1), 0.5]  # in days: a line a day, as long as the others
    times = [datetime.fromtimestamp(now - age * 86_400, UTC).isoformat(timespec="milliseconds") for age in ages]
    lines = [f'{{"timestamp":"{at.removesuffix("+00:00")}Z","url":"{"x" * 9000}"}}\n' for at in times]
    records.write_text("".join(lines))
    (part,) = [part for part in KeptFiles(tmp_path / "workspace").parts(now) if part.name == "page records"]
    line = part.size / len(lines)
    assert (round(part.last_day / line), round(part.last_week / line)) in {(1, 7), (2, 8)}


def test_a_settled_gate_counts_what_was_sent_and_waits_its_full_delay(workspace: FileWorkspace, tmp_path: Path) -> None:
    gate = workspace.gate("a.test", read_clock)
    gate.try_enter(EntryRequest(run=3, delay_ms=0, limit=10))
    gate.close()  # a fetcher that was killed with a request out
    KeptFiles(tmp_path / "workspace").save(tmp_path / "copy", {}, has_store=False)
    before = read_clock()
    KeptFiles(tmp_path / "copy").settle(3, ())
    settled = FileWorkspace(tmp_path / "copy").gate("a.test", read_clock)
    record = settled.read()
    assert (record.run, record.sent, record.ledgered, record.is_in_flight) == (3, 1, 1, False)
    assert record.ended is not None and record.ended.mono_ns >= before.mono_ns
    settled.close()


def test_a_settled_gate_knows_only_closures_of_the_map_and_no_retries(workspace: FileWorkspace, tmp_path: Path) -> None:
    """A gate is copied after the map. What it knows of a visit whose result is not in the copy is to be found anew."""
    closure = Closure("rate-limited", 2)
    for domain, run in {"in-map.test": 3, "after-map.test": 3, "next-run.test": 4}.items():
        gate = workspace.gate(domain, read_clock)
        gate.update(run, lambda record: replace(record, closes=closure, retry_counts=RetryCounts(job=7, retries=1)))
        gate.close()
    KeptFiles(tmp_path / "workspace").settle(3, ("in-map.test", "next-run.test"))
    found = {}
    for domain in ("in-map.test", "after-map.test", "next-run.test"):
        gate = workspace.gate(domain, read_clock)
        record = gate.read()
        found[domain] = record.closes
        assert record.retry_counts == NO_RETRIES
        gate.close()
    assert found == {"in-map.test": closure, "after-map.test": None, "next-run.test": None}
