"""A workspace from files into the engine and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from crawler.model.records import RunEvent, dump
from crawler.pace.decisions import EntryRequest, NotYet
from crawler.workspace.clock import read_clock
from crawler.workspace.door import Workspace, WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import segment_path
from crawler.workspace.log import Damage, Line
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_transfer import Transferred, export_files, import_files


def event(number: int) -> bytes:
    return dump(RunEvent(number, "2026-01-01T00:00:00.000Z", "started"))


@pytest.fixture
def files(tmp_path: Path) -> FileWorkspace:
    made = FileWorkspace(tmp_path / "files")
    made.prepare()
    for name, count in (("fetcher-01", 7), ("scheduler", 2)):
        log = made.results.writer(name, segment_bytes=200)
        for number in range(count):
            log.append(event(number))
        log.close()
    made.orders.writer(segment_bytes=1 << 20, durable=True).append(event(5))
    made.write_document("run", b'{"run":3}')
    made.keep_robots("a.test", b'{"x":1}')
    gate = made.gate("a.test", read_clock)
    gate.try_enter(EntryRequest(run=3, delay_ms=0, limit=9))
    gate.finish()
    gate.update(3, lambda record: replace(record, ledgered=1))
    gate.close()
    return made


def lines(workspace: Workspace) -> dict[str, list[Line]]:
    return {name: list(workspace.results.reader(name)) for name in workspace.results.writers()}


def test_a_workspace_goes_into_the_engine_and_back_and_is_the_same(
    files: FileWorkspace, workspace: EngineWorkspace, tmp_path: Path
) -> None:
    assert import_files(files, workspace) == Transferred(lines=10, logs=2, domains=1, documents=1)
    back = FileWorkspace(tmp_path / "back")
    assert export_files(workspace, back).lines == 9
    for each in (workspace, back):
        assert lines(each) == lines(files), "every line at its place"
        assert each.document("run") == b'{"run":3}' and each.robots("a.test") == b'{"x":1}'
        assert len(each.orders.whole_reader().read()) == 1
        gate = each.gate("a.test", read_clock)
        assert (gate.read().run, gate.read().sent, gate.read().ledgered) == (3, 1, 1)
        assert isinstance(gate.try_enter(EntryRequest(run=3, delay_ms=60_000, limit=9)).admission, NotYet)
        gate.close()
    for name in files.results.writers():
        for number in files.results.segments(name):
            paths = [segment_path(each.layout.results_of(name), number) for each in (files, back)]
            assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_damaged_line_stays_behind_and_all_others_keep_their_places(
    files: FileWorkspace, workspace: EngineWorkspace, tmp_path: Path
) -> None:
    path = segment_path(files.layout.results_of("fetcher-01"), 1)
    content = bytearray(path.read_bytes())
    content[10] ^= 1
    path.write_bytes(content)
    import_files(files, workspace)
    back = FileWorkspace(tmp_path / "back")
    export_files(workspace, back)
    assert lines(workspace) == lines(back) == lines(files)
    found: list[Damage] = []
    list(back.results.reader("fetcher-01", on_damage=found.append))
    assert len(found) == 1, "it is damage there, too"


def test_nothing_is_written_over_and_no_crawl_may_be_at_work(
    files: FileWorkspace, workspace: EngineWorkspace, tmp_path: Path
) -> None:
    role = files.take_role("ingest")
    with pytest.raises(WorkspaceError, match="ingest is at work"):
        import_files(files, workspace)
    role.release()
    import_files(files, workspace)
    with pytest.raises(WorkspaceError, match="holds a crawl already"):
        import_files(files, workspace)
    with pytest.raises(WorkspaceError, match="holds a crawl already"):
        export_files(workspace, files)
