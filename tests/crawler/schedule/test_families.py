"""Families of similar URLs: their limit, and their one closing event."""

from __future__ import annotations

import orjson
import pytest

from crawler.model.records import FamilyEvent
from crawler.model.settings import Config, CrawlerSettings, TrapSettings
from crawler.model.urls import hash64
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.schedule.scheduling import Map, jobs, start


@pytest.fixture
def trap_config(config: Config) -> Config:
    return Config(
        crawler=CrawlerSettings(jobs_per_domain=4, max_active_domains=3),
        output=config.output,
        workspace=config.workspace,
        traps=TrapSettings(max_query_variants=3),
    )


def test_a_family_gets_its_share_and_is_then_closed_with_one_event(
    trap_config: Config, workspace: FileWorkspace
) -> None:
    from crawler.rules.traps import family_of

    map_ = Map(trap_config, workspace)
    urls = [f"https://a.test/calendar?day={number}" for number in range(10)]
    family = family_of(urls[0], trap_config.traps)
    assert family is not None and family.limit == 3
    for url in urls:
        map_.add(url, family=family.name)
    map_.add("https://a.test/plain", 9)
    stage = start(trap_config, map_)
    assert jobs(workspace) == urls[:3]
    events = [record for record in map_.take_in() if isinstance(record, FamilyEvent)]
    assert [(event.run, event.domain, event.family, event.error, event.limit) for event in events] == [
        (1, "a.test", family.name, family.error, 3)
    ]
    assert events[0].spare == tuple(urls[:3])
    stage.step(5)
    assert map_.take_in() == [], "once"
    # The ingest settles what waits in the family; what stands behind it comes up.
    map_.db.execute(
        "DELETE FROM frontier WHERE page_id IN (SELECT id FROM pages WHERE url IN (SELECT value FROM json_each(?)))",
        (orjson.dumps(urls[3:]).decode(),),
    )
    map_.visit(*urls[:2])
    stage.settle_down()
    assert jobs(workspace)[-1] == "https://a.test/plain"
    map_.visit(urls[2], "https://a.test/plain")
    stage.settle_down()
    assert [event.event for event in map_.take_in()] == ["finished"]  # type: ignore[union-attr]


def test_visits_before_a_restart_count_for_a_familys_share(trap_config: Config, workspace: FileWorkspace) -> None:
    from crawler.rules.traps import family_of

    map_ = Map(trap_config, workspace)
    urls = [f"https://a.test/calendar?day={number}" for number in range(5)]
    family = family_of(urls[0], trap_config.traps)
    assert family is not None
    map_.add(urls[0], family=family.name)
    map_.add(urls[1], family=family.name)
    start(trap_config, map_).kill()
    map_.visit(urls[0], tell=False)  # one visited, one out
    for url in urls[2:]:
        map_.add(url, family=family.name)
    stage = start(trap_config, map_)
    assert stage.scheduler.released == 1
    (event,) = [record for record in map_.take_in() if isinstance(record, FamilyEvent)]
    assert event.spare == tuple(urls[1:3])


def test_a_family_that_the_map_knows_as_closed_is_not_closed_again(
    trap_config: Config, workspace: FileWorkspace
) -> None:
    from crawler.rules.traps import family_of

    map_ = Map(trap_config, workspace)
    url = "https://a.test/calendar?day=1"
    family = family_of(url, trap_config.traps)
    assert family is not None
    map_.add(url, family=family.name)
    number = hash64(f"a.test\n{family.name}")
    map_.db.execute("INSERT INTO closed_families VALUES (?, 1, 'a.test', ?, 'trap', '[]')", (number, family.name))
    stage = start(trap_config, map_)
    stage.step(5)
    assert jobs(workspace) == []
    assert map_.take_in() == []
