"""Caps: counted at the release, exact over restarts, closed by a record that spares what is out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.model.records import FamilyEvent
from crawler.model.settings import CapRule, Config
from crawler.rules.page_rules import PageRules
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.schedule.scheduling import Map, jobs, restart, start

CAP = CapRule("users", "^https://[a-z]+[.]test/(?P<user>[^/]+)/", 3, "user")


@pytest.fixture
def config(config: Config) -> Config:
    return replace(config, caps=(CAP,))


def add(map_: Map, config: Config, *urls: str) -> None:
    rules = PageRules(config)
    for url in urls:
        page = map_.add(url)
        map_.db.executemany("INSERT INTO cap_pages VALUES (?, ?)", [(u.number, page) for u in rules.caps_of(url)])


def closings(map_: Map) -> list[FamilyEvent]:
    return [record for record in map_.take_in() if isinstance(record, FamilyEvent)]


def test_a_unit_is_closed_at_its_limit_over_all_domains_and_other_units_go_on(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    ann = [f"https://a.test/ann/{n}" for n in range(2)] + [f"https://b.test/ann/{n}" for n in range(3)]
    add(map_, config, *ann, "https://b.test/bob/1", "https://b.test/plain")
    start(config, map_)
    released = jobs(workspace)
    assert len([key for key in released if "/ann/" in key]) == 3
    assert {"https://b.test/bob/1", "https://b.test/plain"} <= set(released)
    (closed,) = closings(map_)
    assert (closed.domain, closed.limit, closed.rule) == ("", 3, f"user {CAP.pattern}")
    assert closed.error == "cap-reached: 3 visits under the cap users for ann in this run"
    assert list(closed.spare) == sorted(key for key in released if "/ann/" in key)


def test_a_new_scheduler_counts_visited_and_outstanding_pages(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    add(map_, config, "https://a.test/ann/0", "https://a.test/ann/1")
    start(config, map_)
    map_.visit("https://a.test/ann/0", tell=False)
    add(map_, config, "https://a.test/ann/2", "https://a.test/ann/3")
    stage = restart(config, map_)
    stage.settle_down()
    assert [key[-1] for key in jobs(workspace) if "/ann/" in key] == ["0", "1", "2"]
    (closed,) = closings(map_)
    assert closed.spare == ("https://a.test/ann/1", "https://a.test/ann/2")
