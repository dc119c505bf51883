"""Slots over several processes: never more than the maximum together, and shares follow the processes that live."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.pace.decisions import fair_share
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from tests.crawler.workspace.engine_opener import EngineOpener
from tests.places import ROOT

LIMIT = 10

_FETCHER = """
    import sys
    from pathlib import Path
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace
    slots = EngineWorkspace(Path(sys.argv[1]), sys.argv[2]).slots(int(sys.argv[3]))
    for line in sys.stdin:
        share = int(line)
        slots.give_back(slots.held - share)
        slots.acquire(share - slots.held)
        print(slots.held, flush=True)
"""


class Fetchers:
    """Processes that hold slots, each as many as it is told, if there are so many."""

    def __init__(self, root: Path, url: str) -> None:
        self._command = [sys.executable, "-c", textwrap.dedent(_FETCHER), str(root), url, str(LIMIT)]
        self.alive: list[subprocess.Popen[str]] = []

    def start(self, count: int) -> None:
        for _ in range(count):
            pipe = subprocess.PIPE
            self.alive.append(subprocess.Popen(self._command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True))

    def hold(self, share: int) -> list[int]:
        """All of them change what they hold at the same time; returns what each has then."""
        for each in self.alive:
            assert each.stdin is not None
            print(share, file=each.stdin, flush=True)
        return [int(each.stdout.readline()) for each in self.alive if each.stdout is not None]

    def kill(self, count: int) -> None:
        for each in self.alive[:count]:
            each.kill()
            each.wait()
            for end in (each.stdin, each.stdout):
                if end is not None:
                    end.close()
        del self.alive[:count]


@pytest.fixture
def fetchers(tmp_path: Path, opener: EngineOpener) -> Iterator[Fetchers]:
    made = Fetchers(tmp_path, opener.url)
    yield made
    made.kill(len(made.alive))


def test_processes_that_come_and_go_never_hold_more_than_the_maximum_and_reach_their_shares(
    fetchers: Fetchers, workspace: EngineWorkspace
) -> None:
    fetchers.start(2)
    assert fetchers.hold(fair_share(LIMIT, 2)) == [5, 5]
    fetchers.start(2)  # they ask before those that were there have given anything back
    share = fair_share(LIMIT, 4)
    held = fetchers.hold(share)
    assert sum(held) <= LIMIT
    for _ in range(2):
        held = fetchers.hold(share)
    assert sorted(held) == [1, 3, 3, 3], "a share is rounded up, and the last one gets what is left"
    fetchers.kill(2)
    rows = workspace.session.execute("SELECT sum(slots) FROM holders WHERE NOT is_fenced")
    assert rows[0][0] <= LIMIT
    assert fetchers.hold(fair_share(LIMIT, 2)) == [5, 5], "what the dead held is free at once on their machine"
    assert workspace.slots(LIMIT).held == 0
    mine = workspace.slots(LIMIT)
    mine.acquire(LIMIT)
    assert mine.held == 0
    assert fetchers.hold(4) == [4, 4]
    mine.acquire(LIMIT)
    assert mine.held == 2
