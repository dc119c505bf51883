"""The scheduler after restarts, lost hints and lost results."""

from __future__ import annotations

from dataclasses import replace

import orjson

from crawler.model.records import Feed, GuessEvent, Job, dump
from crawler.model.settings import Config, DiscoverySettings, LimitSettings, QualityEntry
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer, end_of, segment_path, segments
from crawler.workspace.terms import read_terms
from tests.crawler.schedule.scheduling import Map, jobs, restart, start


def test_what_was_released_before_a_crash_is_not_released_again(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    urls = [f"https://a.test/{number}" for number in range(6)]
    for url in urls:
        map_.add(url)
    start(config, map_).kill()
    map_.visit(urls[0], tell=False)
    stage = restart(config, map_)
    assert stage.scheduler.released == 0, "three of four are still out"
    map_.visit(urls[1])
    stage.settle_down()
    assert jobs(workspace)[-2:] == urls[4:]


def test_what_was_released_under_other_settings_is_withdrawn_and_released_anew(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    urls = [f"https://a.test/{number}" for number in range(6)]
    for url in urls:
        map_.add(url)
    start(config, map_).kill()
    assert jobs(workspace) == urls[:4] and read_terms(workspace) == config.config_hash
    visited = Writer(workspace.layout.results_of("fetcher-01"))
    visited.append(b"a result that the map does not know yet")
    changed = replace(config, limits=LimitSettings(max_pages=3))
    stage = start(changed, map_)
    assert read_terms(workspace) is None, "fetchers wait"
    assert jobs(workspace) == urls[:4], "one of these may have been visited"
    map_.visit(urls[0], tell=False)
    map_.set_place("fetcher-01", visited.end)
    stage.settle_down()
    assert jobs(workspace) == urls[1:3], "with the one before, that is all that may be visited"
    assert read_terms(workspace) == changed.config_hash
    visited.close()


def test_windows_of_other_settings_are_withdrawn_in_the_end_whoever_goes_on(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/1")
    start(config, map_).kill()
    (before,) = segments(workspace.layout.jobs_of("a.test"))
    visited = Writer(workspace.layout.results_of("fetcher-01"))
    visited.append(b"of a fetcher that was started by hand")
    stage = start(replace(config, limits=LimitSettings(max_pages=3)), map_)
    assert segments(workspace.layout.jobs_of("a.test")) == [before]
    stage.step(10.0)
    assert segments(workspace.layout.jobs_of("a.test"))[0] > before
    visited.close()


def test_jobs_of_a_map_that_was_drawn_anew_are_known_by_their_keys(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    urls = [f"https://a.test/{number}" for number in range(3)]
    for url in urls:
        map_.add(url)
    before = Writer(workspace.layout.jobs_of("a.test"), durable=False)
    before.append(dump(Job(1, urls[1], urls[1], "a.test", 2_000)))  # no page has this number now
    before.append(dump(Job(1, urls[0], urls[0], "a.test", 3)))  # another one has this
    before.append(dump(Job(1, "https://a.test/gone", "https://a.test/gone", "a.test", 1)))
    stage = start(config, map_)
    assert stage.scheduler.released == 1
    assert sorted(jobs(workspace)) == [*urls, "https://a.test/gone"]


def test_a_torn_job_is_released_again(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/1")
    map_.add("https://a.test/2")
    start(config, map_).kill()
    folder = workspace.layout.jobs_of("a.test")
    (number,) = segments(folder)
    path = segment_path(folder, number)
    path.write_bytes(path.read_bytes()[:-10])
    restart(config, map_)
    assert jobs(workspace) == ["https://a.test/1", "https://a.test/2"]


def test_segments_of_settled_jobs_and_of_other_runs_go_at_the_start(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    map_.add("https://b.test/")
    start(config, map_).kill()
    map_.visit("https://a.test/", tell=False)
    old = Writer(workspace.layout.jobs_of("c.test"), durable=False)
    old.append(dump(Job(99, "https://c.test/", "https://c.test/", "c.test")))
    restart(config, map_)
    assert jobs(workspace) == ["https://b.test/"]


def test_segment_numbers_rise_from_start_to_start(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    start(config, map_).kill()
    first = segments(workspace.layout.jobs_of("a.test"))
    map_.add("https://a.test/more")
    restart(config, map_)
    second = segments(workspace.layout.jobs_of("a.test"))
    assert second[0] == first[0] and second[1] // 1_000_000 > first[0] // 1_000_000
    assert orjson.loads(workspace.layout.scheduler_file.read_bytes())["epoch"] == second[1] // 1_000_000


def test_segment_numbers_rise_even_when_the_epoch_is_lost(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    start(config, map_).kill()
    first = segments(workspace.layout.jobs_of("a.test"))
    workspace.layout.scheduler_file.write_bytes(b"{torn")
    map_.add("https://a.test/more")
    restart(config, map_)
    assert segments(workspace.layout.jobs_of("a.test"))[1] // 1_000_000 > first[0] // 1_000_000


def test_a_replaced_map_is_read_afresh_with_its_own_page_numbers(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.db.close()
    for suffix in ("", "-wal", "-shm"):
        config.output.database_path.with_name(config.output.database_path.name + suffix).unlink(missing_ok=True)
    second = Map(config, workspace)
    second.set_meta("map_id", "second")
    for number in range(3):
        second.add(f"https://b.test/{number}")
    second.add("https://a.test/")
    second.take_in()
    stage.settle_down()
    assert sorted(jobs(workspace)) == ["https://a.test/", *(f"https://b.test/{number}" for number in range(3))]
    assert stage.scheduler.released == 4, "the one that was out stays out"
    second.visit("https://a.test/")
    stage.settle_down()
    assert segments(workspace.layout.jobs_of("a.test")) == []


def test_a_lost_hint_is_made_up_for_by_looking_at_the_table(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.visit("https://a.test/", tell=False)
    map_.add("https://b.test/")
    stage.step(6)
    stage.settle_down()
    assert jobs(workspace) == ["https://b.test/"]


def test_a_resync_in_the_feed_looks_at_everything(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    map_.add("https://b.test/")
    map_.visit("https://a.test/", tell=False)
    map_.feed(Feed(0, resync=True))
    stage.settle_down()
    assert jobs(workspace) == ["https://b.test/"]


def bookmark_at_the_end(workspace: FileWorkspace, domain: str) -> None:
    folder = workspace.layout.jobs_of(domain)
    end = end_of(folder)
    content = {"v": 1, "segment": end.segment, "offset": end.offset, "holder": "fetcher-01", "results": [1, 0]}
    (folder / "bookmark.json").write_bytes(orjson.dumps(content))


def test_a_visit_without_a_readable_result_is_released_again(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    before = segments(workspace.layout.jobs_of("a.test"))
    bookmark_at_the_end(workspace, "a.test")
    stage.step(60)
    assert jobs(workspace) == ["https://a.test/"]
    assert segments(workspace.layout.jobs_of("a.test"))[0] > before[0]
    released = stage.scheduler.released
    stage.step(60)
    assert stage.scheduler.released == released, "the bookmark is behind the new job now"


def test_a_result_that_waits_to_be_taken_in_is_waited_for(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    bookmark_at_the_end(workspace, "a.test")
    results = Writer(workspace.layout.results_of("fetcher-01"))
    end = results.append(b'{"v":1,"kind":"other"}')
    stage.step(60)
    assert stage.scheduler.released == 1
    map_.set_place("fetcher-01", end)
    stage.step(60)
    assert stage.scheduler.released == 2


def test_a_torn_tail_in_a_dead_fetchers_spool_does_not_hold_up_the_second_release(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    bookmark_at_the_end(workspace, "a.test")
    results = Writer(workspace.layout.results_of("fetcher-01"))
    end = results.append(b'{"v":1,"kind":"other"}')
    with segment_path(workspace.layout.results_of("fetcher-01"), end.segment).open("ab") as file:
        file.write(b'{"v":1,"kind":"pa')
    map_.set_place("fetcher-01", end)
    stage.step(60)
    assert stage.scheduler.released == 2


def test_a_visit_under_way_is_not_released_again(config: Config, map_: Map, workspace: FileWorkspace) -> None:
    map_.add("https://a.test/")
    stage = start(config, map_)
    for _ in range(10):
        stage.step(60)
    assert stage.scheduler.released == 1


def test_a_run_of_more_than_a_day_tries_archives_of_idle_domains_and_one_a_day_of_the_others(
    config: Config, map_: Map, workspace: FileWorkspace
) -> None:
    entries = tuple(QualityEntry(name, (f"https://{name}/",)) for name in ("quiet.test", "busy.test"))
    config = replace(config, discovery=DiscoverySettings(archives=True), quality=entries)
    map_.set_meta("map_hash", config.map_hash)
    map_.add("https://a.test/")  # the run is not over
    for name in ("quiet.test", "busy.test"):
        number = map_.domain(name)
        map_.db.execute("UPDATE domain_states SET class = 'quality', run = 1 WHERE id = ?", (number,))
        map_.db.execute(
            "INSERT INTO archive_rules (id, form, domain_id, first_run, last_run) VALUES (?1, ?2, ?1, 1, 1)",
            (number, f"https://{name}/{{year}}"),
        )
        map_.db.execute(
            "INSERT INTO archive_pages (id, url, rule_id, run, page_id) VALUES (?1, ?2, ?1, 1, NULL)",
            (number, f"https://{name}/2019"),
        )
    map_.add("https://busy.test/")
    stage = start(config, map_)
    stage.step(86_000)
    assert map_.take_in() == []
    stage.step(500)
    assert _tried(map_) == ["https://busy.test/2019", "https://quiet.test/2019"]
    stage.step(3_600)
    assert _tried(map_) == ["https://quiet.test/2019"], "the other one has had its archive of that day"
    stage.step(86_400)
    assert _tried(map_) == ["https://busy.test/2019", "https://quiet.test/2019"]


def _tried(map_: Map) -> list[str]:
    guesses = [record for record in map_.take_in() if isinstance(record, GuessEvent)]
    assert {(guess.event, guess.way) for guess in guesses} == {("guessed", "archive")}
    return [guess.wire for guess in guesses]
