"""What `engine stats` counts: processes that live, and requests that are out."""

from __future__ import annotations

from crawler.pace.decisions import EntryRequest, Open
from crawler.workspace.clock import read_clock
from crawler.workspace.postgres.engine_figures import engine_figures
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.crawler.workspace.engine_opener import EngineOpener


def counted(workspace: EngineWorkspace) -> tuple[int, int]:
    """Processes, and requests that are out."""
    figures = workspace.session.run(engine_figures)
    return figures.processes, figures.in_flight


def test_processes_are_counted_until_they_end(opener: EngineOpener) -> None:
    looking, first, second = opener(), opener(), opener()
    roles = [each.take_role(role) for each, role in ((first, "fetcher-01"), (second, "ingest"))]
    assert counted(looking) == (2, 0)
    roles[0].release()
    assert counted(looking) == (1, 0)
    second.close()
    assert counted(looking) == (0, 0)


def test_when_the_clock_was_set_back_what_was_before_is_not_counted_until_it_is_renewed(opener: EngineOpener) -> None:
    engine, looking, alive, dead = opener.clock(), opener(), opener(), opener()
    gate = dead.gate("a.test", read_clock)
    assert isinstance(gate.try_enter(EntryRequest(run=1, delay_ms=0, limit=9)).admission, Open)
    alive.take_role("ingest")
    assert counted(looking) == (2, 1)
    engine.pass_ms(-3_600_000)
    alive.session.run(alive.session.renew)
    assert counted(looking) == (1, 0)
