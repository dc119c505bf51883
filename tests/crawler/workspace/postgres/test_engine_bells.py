"""Bells by NOTIFY: they ring across processes, and their loss costs only time."""

from __future__ import annotations

import time

from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.crawler.workspace.engine_opener import EngineOpener


def test_rings_within_a_tick_are_one_and_others_are_not_heard(opener: EngineOpener, workspace: EngineWorkspace) -> None:
    bell, other = workspace.bell("ingest"), opener()
    for _ in range(50):
        other.ring("ingest")
    other.ring("scheduler")
    assert bell.wait(60)
    heard = 1
    while bell.wait(0.2):
        heard += 1
    assert heard < 50
    bell.close()


def test_a_bell_whose_connection_is_lost_waits_its_time_and_listens_again(
    opener: EngineOpener, workspace: EngineWorkspace
) -> None:
    bell, other = workspace.bell("ingest"), opener()
    statement = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sumi-ripple bell ingest'"
    )
    other.session.execute(statement)
    assert not bell.wait(0.3), "no ring, and no error"
    workspace.ring("ingest")
    assert bell.wait(60), "a ring inside of the process needs no connection"
    give_up = time.monotonic() + 60
    heard = False
    while not heard and time.monotonic() < give_up:
        other.ring("ingest")
        heard = bell.wait(0.2)
    assert heard
    bell.close()
    bell.close()
