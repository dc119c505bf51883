"""Windows of jobs: how many, in which order, for whom, and when they go."""

from __future__ import annotations

from dataclasses import replace

import pytest
from filelock import FileLock

from crawler.database.format import SITEMAP_PRIORITY, SITEMAP_TURN
from crawler.model.records import Feed, Job, Release, parse
from crawler.model.settings import Config, CrawlerSettings
from crawler.schedule.job_release import revisits_for, window_for
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Reader, segments
from tests.crawler.schedule.scheduling import Map, Stage, jobs, map_frontier, start


def test_a_window_is_released_by_priority_then_age(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for path, priority in (("one", 3), ("two", 1), ("three", 1), ("four", 0), ("five", 2)):
        map_.add(f"https://a.test/{path}", priority)
    start(config, map_)
    assert [key.rsplit("/", 1)[1] for key in jobs(workspace)] == ["four", "two", "three", "five"]


def test_pages_of_earlier_runs_come_last_and_few_at_a_time_where_the_budget_ran_out(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    for host, paths in (("a.test", ("old", "older")), ("b.test", ("1", "2", "3", "4"))):
        for path in paths:
            map_.add(f"https://{host}/{path}", turn=2)
    new = map_.add("https://a.test/new", priority=5)
    map_.db.execute("UPDATE domain_states SET cut_run = 0 WHERE domain = 'b.test'")
    stage = start(config, map_)
    assert [key.rsplit("/", 1)[1] for key in jobs(workspace, "a.test")] == ["new", "old", "older"] and new
    assert [key.rsplit("/", 1)[1] for key in jobs(workspace, "b.test")] == ["1", "2"]
    map_.visit("https://b.test/1")
    map_.add_and_tell("https://b.test/found")
    stage.settle_down()
    assert [key.rsplit("/", 1)[1] for key in jobs(workspace, "b.test")][2:] == ["found"]
    for url in ("https://b.test/2", "https://b.test/found"):
        map_.visit(url)
    stage.settle_down()
    assert [key.rsplit("/", 1)[1] for key in jobs(workspace, "b.test")][-2:] == ["3", "4"]


def test_few_revisits_are_enough_for_the_time_until_their_links_are_known() -> None:
    assert [revisits_for(CrawlerSettings(minimum_time_on_page=ms)) for ms in (1, 100, 1000, 60_000)] == [8, 5, 2, 2]


def test_a_job_names_the_wire_url_where_it_is_not_the_key(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    one = map_.add("https://a.test/x", wire="https://www.a.test/x/")
    two = map_.add("https://a.test/y")
    start(config, map_)
    records = [parse(line.body) for line in Reader(workspace.layout.jobs_of("a.test"))]
    assert records == [
        Job(1, "https://a.test/x", "https://www.a.test/x/", "a.test", one),
        Job(1, "https://a.test/y", "https://a.test/y", "a.test", two),
    ]


def test_a_domain_never_has_more_jobs_out_than_its_window(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    urls = [f"https://a.test/{number:02d}" for number in range(20)]
    for url in urls:
        map_.add(url)
    stage = start(config, map_)
    done: list[str] = []
    while waiting := jobs(workspace, "a.test"):
        waiting = [key for key in waiting if key not in done]
        assert len(waiting) <= 4
        map_.visit(waiting[0])
        done.append(waiting[0])
        stage.settle_down()
    assert done == urls
    assert stage.scheduler.released == len(urls)


def test_a_window_is_filled_up_when_half_of_it_is_worked_off(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    urls = [f"https://a.test/{number}" for number in range(9)]
    for url in urls:
        map_.add(url)
    stage = start(config, map_)
    map_.visit(urls[0])
    stage.settle_down()
    assert stage.scheduler.released == 4
    map_.visit(urls[1])
    stage.settle_down()
    assert stage.scheduler.released == 6


def test_only_so_many_domains_are_active_at_a_time(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for number in range(6):
        map_.add(f"https://d{number}.test/")
    stage = start(config, map_)
    assert len(jobs(workspace)) == 3
    map_.visit("https://d1.test/")
    stage.settle_down()
    assert stage.scheduler.released == 4
    assert "https://d3.test/" in jobs(workspace)


def test_the_better_priority_gets_the_free_place(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for number, priority in enumerate((5, 4, 3, 2, 1)):
        map_.add(f"https://d{number}.test/", priority)
    start(config, map_)
    assert sorted(jobs(workspace)) == ["https://d2.test/", "https://d3.test/", "https://d4.test/"]


def test_domains_with_endless_urls_give_their_place_to_a_small_one_of_the_same_priority(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    for big in ("big0", "big1", "big2"):
        for number in range(200):
            map_.add(f"https://{big}.test/{number}")
    for number in range(3):
        map_.add(f"https://small.test/{number}")
    stage = start(config, map_)
    visits = 0
    while any(key.startswith("https://small.test/") for key in map_frontier(map_)):
        waiting = map_frontier(map_)
        for folder in sorted(workspace.layout.jobs.iterdir()):  # one page of each, so that nobody is ever through
            keys = [key for key in jobs(workspace, folder.name) if key in waiting]
            map_.visit(*keys[:1])
            visits += len(keys[:1])
        stage.settle_down()
        assert visits < 60, "the small domain has to wait for the big ones to be through"


def test_new_work_in_the_feed_is_released(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.add_and_tell("https://a.test/more")
    map_.add_and_tell("https://b.test/")
    stage.settle_down()
    assert jobs(workspace) == ["https://a.test/", "https://a.test/more", "https://b.test/"]


def test_a_domain_keeps_its_turn(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for name in ("a.test", "b.test"):
        map_.add(f"https://{name}/")
    stage = start(config, map_)
    map_.visit("https://b.test/")
    stage.settle_down()
    for name in ("c.test", "b.test"):
        map_.add_and_tell(f"https://{name}/more")
    stage.settle_down()
    released = [parse(line.body) for line in Reader(workspace.layout.releases)]
    turns = {(record.domain, record.turn) for record in released if isinstance(record, Release)}
    assert turns == {("a.test", 1), ("b.test", 2), ("c.test", 3)}


@pytest.mark.parametrize(("pause", "window"), [(100, 30), (150, 20), (1000, 16), (60_000, 16), (0, 64)])
def test_a_window_is_a_few_jobs_or_a_few_seconds_of_them(pause: int, window: int) -> None:
    assert window_for(CrawlerSettings(minimum_time_on_page=pause)) == window
    assert window_for(CrawlerSettings(minimum_time_on_page=pause, jobs_per_domain=5)) == 5


def test_the_first_windows_are_announced_before_the_others_are_written(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    for number in range(40):
        map_.add(f"https://d{number}.test/")
    stage = Stage(replace(config, crawler=replace(config.crawler, max_active_domains=50)), workspace)
    stage.step()
    map_.take_in()
    announced = [0]
    while announced[-1] < 40:
        stage.step()
        announced.append(len(list(Reader(workspace.layout.releases))))
    assert announced[1] < 10
    assert len(announced) < 6, "each step writes more"


def test_releases_are_announced_and_the_fetchers_bells_rung_once(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    for name in ("fetcher-01", "fetcher-02", "ingest"):
        (workspace.layout.bells / name).touch()
    for name in ("a.test", "b.test"):
        map_.add(f"https://{name}/")
    stage = start(config, map_)
    released = [parse(line.body) for line in Reader(workspace.layout.releases)]
    assert released == [Release(1, "a.test", 1, turn=1), Release(1, "b.test", 1, turn=2)]
    assert sorted(name for name in stage.rung if name.startswith("fetcher")) == ["fetcher-01", "fetcher-02"]


def test_a_closed_domain_is_over(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    for number in range(9):
        map_.add(f"https://a.test/{number}")
    map_.add("https://b.test/")
    stage = start(config, map_)
    map_.db.execute("DELETE FROM frontier WHERE domain_id = (SELECT id FROM domain_states WHERE domain = 'a.test')")
    map_.feed(Feed(1, closed=("a.test",)))
    stage.settle_down()
    assert jobs(workspace) == ["https://b.test/"]
    assert stage.scheduler.facts()["active_domains"] == 1


def test_settled_segments_and_empty_folders_go(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    map_.add("https://b.test/")
    stage = start(config, map_)
    map_.visit("https://a.test/")
    stage.settle_down()
    assert segments(workspace.layout.jobs_of("a.test")) == []
    stage.step(60)
    assert [folder.name for folder in workspace.layout.jobs.iterdir()] == ["b.test"]


def test_a_folder_stays_while_a_fetcher_holds_the_lease(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    map_.add("https://b.test/")
    stage = start(config, map_)
    lease = FileLock(workspace.layout.lease_of("a.test"))
    lease.acquire()
    map_.visit("https://a.test/")
    stage.settle_down()
    stage.step(60)
    assert workspace.layout.jobs_of("a.test").exists()
    lease.release()
    stage.step(60)
    assert not workspace.layout.jobs_of("a.test").exists()


def test_a_sitemap_is_released_when_no_page_of_its_domain_waits_and_one_at_a_time(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    page = "https://a.test/page"
    map_.add(page)
    domain = map_.domain("a.test")
    for number, name in ((1, "robots.txt"), (2, "sitemap.xml")):
        url = f"https://a.test/{name}"
        map_.db.execute(
            "INSERT INTO sitemaps (id, url, wire_url, domain_id, announced_by, level, run, state)"
            " VALUES (?, ?, ?, ?, 'a.test', ?, 1, 'waiting')",
            (number, url, url, domain, number - 1),
        )
        map_.db.execute(
            "INSERT INTO frontier (id, page_id, priority, added_at, domain_id, turn) VALUES (?1, ?1, ?2, '', ?3, ?4)",
            (-number, SITEMAP_PRIORITY + number - 1, domain, SITEMAP_TURN),
        )
    stage = start(config, map_)
    assert jobs(workspace) == [page]
    map_.visit(page)
    stage.settle_down()
    assert jobs(workspace) == ["sitemap:https://a.test/robots.txt"]
    stage = start(config, map_)  # a new process finds it outstanding
    assert jobs(workspace) == ["sitemap:https://a.test/robots.txt"]
    late = map_.add_and_tell("https://a.test/late")
    map_.db.execute("DELETE FROM frontier WHERE id = -1")
    map_.feed(Feed(1, done=(("a.test", (-1,)),)))
    stage.settle_down()
    assert jobs(workspace)[-1] == "https://a.test/late"
    map_.visit("https://a.test/late")
    stage.settle_down()
    [record] = [parse(line.body) for line in Reader(workspace.layout.jobs_of("a.test"))]
    url = "https://a.test/sitemap.xml"
    assert record == Job(1, f"sitemap:{url}", url, "a.test", -2, "sitemap", "a.test", 1)
    assert late > 0
    map_.db.execute("DELETE FROM frontier")
    map_.feed(Feed(1, done=(("a.test", (-2,)),)))
    stage.settle_down()
    map_.take_in()
    stage.settle_down()
    assert stage.scheduler.is_over
