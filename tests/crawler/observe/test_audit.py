"""The audit: clean ledgers prove the promises, and each broken promise is named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from crawler.model import recorded_settings
from crawler.model.records import DomainEvent, Exchange, PageResult, Record, RobotsResult, RunEvent, changed, dump
from crawler.model.settings import Config, CrawlerSettings
from crawler.observe.audit import audit
from crawler.observe.audit_report import AuditReport, Violation
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer
from ingest.writing.store import Store

BOOT, NEXT_BOOT = "a" * 32, "b" * 32
DAY = 24 * 3600 * 1000


def exchange(at: int, host: str = "x.test", method: str = "GET", took: int = 10, domain: str | None = None) -> Exchange:
    return Exchange(1_700_000_000_000 + at, at, method, host, 200, took, domain or host.removeprefix("www."))


def robots(*entries: Exchange, host: str = "x.test", run: int = 1, boot: str = BOOT, **more: object) -> RobotsResult:
    fields = {"outcome": "parsed", "status": 200, "body": "", **more}
    domain = host.removeprefix("www.")
    return RobotsResult(
        run=run, domain=domain, host=host, at="2026-01-01T00:00:00Z", boot=boot, ledger=entries, **fields
    )  # type: ignore[arg-type]


def page(*entries: Exchange, run: int = 1, boot: str = BOOT, key: str = "/", domain: str = "x.test") -> PageResult:
    at = "2026-01-01T00:00:00Z" if boot == BOOT else "2026-01-02T00:00:00Z"
    return PageResult(run, f"https://{domain}{key}", "", domain, at, "processed", boot=boot, ledger=entries)


def rules(tmp_path: Path, **settings: object) -> Config:
    return Config(
        crawler=CrawlerSettings(**{"minimum_time_on_page": 1000, "max_domain_requests": 5, **settings}),  # type: ignore[arg-type]
        blacklist=("*.bad.test",),
        stub=("stub.test",),
        workspace=tmp_path,
        output=replace(Config().output, database_path=tmp_path / "map.db"),
    )


def judge(tmp_path: Path, *spools: list[Record], events: Sequence[RunEvent] = (), **settings: object) -> AuditReport:
    workspace = FileWorkspace(tmp_path)
    logs: list[tuple[str, Sequence[Record]]] = [(f"fetcher-{number:02d}", log) for number, log in enumerate(spools, 1)]
    for name, records in (*logs, ("scheduler", events)):
        writer = Writer(workspace.layout.results_of(name), segment_bytes=400)
        for record in records:
            writer.append(dump(record))
        writer.close()
    return audit(rules(tmp_path, **settings))


def run_event(run: int, at: int, config: Config, event: str = "started") -> RunEvent:
    moment = datetime.fromtimestamp((1_700_000_000_000 + at) / 1000, UTC)
    time = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return RunEvent(run, time, event, config.config_hash, config.map_hash, recorded_settings.dump(config))


def promises(report: AuditReport) -> list[str]:
    return [violation.promise for violation in report.violations]


def test_a_polite_crawl_is_clean_and_says_how_close_it_came(tmp_path: Path) -> None:
    report = judge(
        tmp_path,
        [robots(exchange(0)), page(exchange(1010, method="HEAD"), exchange(2025))],
    )
    assert report.is_clean
    assert (report.requests, report.domains, report.pages, report.pairs) == (3, 1, 1, 2)
    assert report.closest == (0, "x.test")
    text = "\n".join(report.lines())
    assert "3 requests to 1 domain in 1 run, for 1 page." in text
    assert "clean: no violation." in text


def test_a_request_too_early_is_named(tmp_path: Path) -> None:
    report = judge(tmp_path, [robots(exchange(0)), page(exchange(1009))])
    assert promises(report) == ["spacing"]
    assert "999 ms after the request before it; 1,000 ms are due" in report.violations[0].words
    assert "NOT clean" in list(report.lines())[-1]


def test_a_crawl_delay_counts_from_the_moment_it_is_known(tmp_path: Path) -> None:
    early = page(exchange(1010))
    known = robots(exchange(2020), crawl_delay=2.5)
    records = [robots(exchange(0)), early, known, page(exchange(4529), key="/b")]
    assert promises(judge(tmp_path / "close", records)) == ["spacing"]
    records[-1] = page(exchange(4530), key="/b")
    assert judge(tmp_path / "far", records).is_clean


def test_a_domain_that_changes_hands_is_judged_across_fetchers(tmp_path: Path) -> None:
    first = [robots(exchange(0)), page(exchange(1010))]
    assert promises(judge(tmp_path / "close", first, [page(exchange(1500), key="/b")])) == ["spacing"]
    assert judge(tmp_path / "far", [page(exchange(2020), key="/b")], first).is_clean


def test_www_and_bare_host_are_one_domain(tmp_path: Path) -> None:
    records = [robots(exchange(0)), robots(exchange(500, "www.x.test"), host="www.x.test")]
    assert promises(judge(tmp_path, records)) == ["spacing"]


def test_a_reboot_begins_a_new_clock(tmp_path: Path) -> None:
    records = [robots(exchange(50_000)), page(exchange(10), boot=NEXT_BOOT)]
    assert judge(tmp_path, records).is_clean


def test_a_clock_set_back_across_a_reboot_makes_no_violation(tmp_path: Path) -> None:
    """The spool tells which boot was first. By the wall clock the page was asked for before its robots.txt."""
    judge(tmp_path, [robots(exchange(50_000)), page(exchange(60_000))])
    back = exchange(10)._replace(at_ms=1_600_000_000_000)
    again = robots(exchange(9000)._replace(at_ms=1_600_000_009_000), boot=NEXT_BOOT, crawl_delay=60.0)
    records = [page(back, boot=NEXT_BOOT, key="/b"), again]
    assert judge(tmp_path, [changed(record, at="2020-09-13T00:00:00Z") for record in records]).is_clean


def test_what_was_learned_in_a_boot_counts_in_the_next_one(tmp_path: Path) -> None:
    judge(tmp_path, [robots(exchange(50_000), crawl_delay=5.0)])
    visit = page(exchange(10, method="HEAD"), exchange(2000), boot=NEXT_BOOT)
    assert promises(judge(tmp_path, [visit])) == ["spacing"]


@pytest.mark.parametrize("at", ["2020-01-01T00:00:00Z", "2030-01-01T00:00:00Z"])
def test_boots_whose_order_is_unknown_prove_nothing_about_each_other(tmp_path: Path, at: str) -> None:
    """Two writers, each in a boot of its own: which one was first?"""

    def told(name: str, *visits: PageResult | RobotsResult) -> list[str]:
        first = robots(exchange(0), outcome="unreachable", error="robots-unreachable: http-503", crawl_delay=60.0)
        return promises(judge(tmp_path / name, [changed(first, at=at)], list(visits)))

    visit = page(exchange(10, method="HEAD"), exchange(2000), boot=NEXT_BOOT)
    assert told("read elsewhere", visit) == []
    # What lies within one boot is as certain as ever, and so is what nobody ever read.
    assert told("too close", page(exchange(10), exchange(900), boot=NEXT_BOOT)) == ["spacing"]
    other = page(exchange(10, "y.test"), boot=NEXT_BOOT, domain="y.test")
    assert told("never read", other) == ["robots"]
    late = robots(exchange(5000, "y.test"), host="y.test", boot=NEXT_BOOT)
    assert told("read too late", other, late) == ["robots"]
    assert (
        told(
            "read in time",
            changed(late, ledger=(exchange(0, "y.test", took=1),)),
            page(exchange(1010, "y.test"), boot=NEXT_BOOT, domain="y.test"),
        )
        == []
    )


def test_a_clock_set_forward_during_a_visit_makes_no_robots_txt_older(tmp_path: Path) -> None:
    judge(tmp_path / "a", [robots(exchange(0))])
    later = 1_700_000_000_000 + 2 * DAY
    steady, jumped = exchange(10, method="HEAD"), exchange(2000)._replace(at_ms=later)
    assert judge(tmp_path / "a", [page(steady, jumped, boot=NEXT_BOOT)]).is_clean
    judge(tmp_path / "b", [robots(exchange(0))])
    assert promises(judge(tmp_path / "b", [page(jumped, boot=NEXT_BOOT)])) == ["robots"]


def test_a_robots_txt_read_in_the_middle_of_a_visit_is_not_out_of_order(tmp_path: Path) -> None:
    """The hop to `www.` asks for robots.txt before the visit's own ledger is written."""
    hop = robots(exchange(2020, "www.x.test"), host="www.x.test")
    visit = page(exchange(1010, method="HEAD"), exchange(3030, "www.x.test"))
    assert judge(tmp_path, [robots(exchange(0)), hop, visit]).is_clean


def test_the_budget_counts_lost_requests_too(tmp_path: Path) -> None:
    visits = [page(exchange(number * 2000), key=f"/{number}") for number in range(1, 5)]
    records: list[Record] = [robots(exchange(0)), *visits]
    assert judge(tmp_path / "fits", records).is_clean
    lost = DomainEvent(1, "x.test", "", "lost-requests", 1)
    report = judge(tmp_path / "over", [*records, lost])
    assert promises(report) == ["budget"]
    assert report.lost == 1
    assert report.busiest == (6, "x.test", 1)


def numbered(at: int, number: int, answer: int | str = 200) -> Exchange:
    return exchange(at)._replace(number=number, answer=answer)


def test_a_number_that_two_requests_have_is_named(tmp_path: Path) -> None:
    """Two fetchers passed the gate at the same time, though their clocks say otherwise."""
    first = [robots(numbered(0, 1)), page(numbered(5000, 2))]
    report = judge(tmp_path, first, [page(numbered(60_000, 2), key="/b")])
    assert promises(report) == ["numbers"]
    assert any("has the number 2, and so has another request" in line for line in report.lines())


def test_numbers_without_a_gap_and_with_lost_requests_are_told(tmp_path: Path) -> None:
    (whole := tmp_path / "whole").mkdir()
    report = judge(whole, [robots(numbered(0, 1)), page(numbered(5000, 2)), page(numbered(9000, 1), run=2)])
    assert report.is_clean and any("numbers: 3 requests" in line and "without a gap" in line for line in report.lines())
    (lossy := tmp_path / "lossy").mkdir()
    report = judge(lossy, [robots(numbered(0, 1)), page(numbered(5000, 4))])
    assert report.is_clean and any("2 are missing, of requests that were lost" in line for line in report.lines())
    assert report.unreported == 2


def test_an_engines_clock_that_was_set_back_brings_no_requests_together(tmp_path: Path) -> None:
    """Two seconds back after the second request: numbers tell the order, and nobody knows the time in between."""
    first = [robots(numbered(10_000, 1)), page(numbered(12_000, 2))]
    second = [page(numbered(11_500, 3), key="/b"), page(numbered(13_000, 4), key="/c")]
    for number, logs in enumerate(([[*first, *second]], [first, second], [second, first])):
        (folder := tmp_path / str(number)).mkdir()
        report = judge(folder, *logs)
        assert report.is_clean, "\n".join(report.lines())
        assert (report.requests, report.closest) == (4, (490, "x.test"))


def test_requests_too_close_together_are_named_though_the_clock_was_set_back_before(tmp_path: Path) -> None:
    first = [robots(numbered(10_000, 1)), page(numbered(12_000, 2))]
    report = judge(tmp_path, first, [page(numbered(11_500, 3), key="/b"), page(numbered(11_900, 4), key="/c")])
    assert promises(report) == ["spacing"]


def test_numbers_that_were_given_twice_do_not_excuse_requests_too_close_together(tmp_path: Path) -> None:
    first = [robots(numbered(10_000, 1)), page(numbered(12_000, 3))]
    report = judge(tmp_path, first, [page(numbered(12_100, 2), key="/b"), page(numbered(14_000, 3), key="/c")])
    assert "spacing" in promises(report)


def test_missing_numbers_beyond_the_reported_losses_are_told_apart(tmp_path: Path) -> None:
    """Three of a domain are missing and one was reported; another domain's report accounts for none of them."""
    lost = [DomainEvent(1, domain, "", "lost-requests", count) for domain, count in (("x.test", 1), ("y.test", 7))]
    records = [robots(numbered(0, 1)), page(numbered(5000, 3)), page(numbered(9000, 6), key="/b"), *lost]
    report = judge(tmp_path, records)
    assert (report.unseen, report.unreported, report.first_gap) == (3, 2, ("x.test", 1))
    words = "3 are missing, of requests that were lost; 2 of them nobody has reported (yet), as of x.test, run 1"
    assert any(words in line for line in report.lines())
    (reported := tmp_path / "reported").mkdir()
    report = judge(reported, [*records, DomainEvent(1, "x.test", "", "lost-requests", 2)])
    assert report.unreported == 0 and not any("nobody has reported" in line for line in report.lines())


def test_a_number_that_an_outage_gave_back_is_given_again(tmp_path: Path) -> None:
    failed = numbered(5000, 2, "network-outage")
    report = judge(tmp_path, [robots(numbered(0, 1)), page(failed), page(numbered(9000, 2), key="/b")])
    assert report.is_clean


def test_each_run_has_its_own_budget(tmp_path: Path) -> None:
    visits = [page(exchange(number * 2000), key=f"/{number}", run=1 + number // 4) for number in range(1, 9)]
    assert judge(tmp_path, [robots(exchange(0)), *visits]).is_clean


def test_a_page_requested_before_robots_txt_is_named(tmp_path: Path) -> None:
    assert promises(judge(tmp_path, [page(exchange(0)), robots(exchange(1010))])) == ["robots"]


def test_a_robots_txt_of_another_host_does_not_count(tmp_path: Path) -> None:
    records = [robots(exchange(0)), page(exchange(1010, "www.x.test"))]
    assert promises(judge(tmp_path, records)) == ["robots"]


def test_a_robots_txt_counts_for_a_day(tmp_path: Path) -> None:
    assert judge(tmp_path / "a", [robots(exchange(0)), page(exchange(DAY - 1))]).is_clean
    assert promises(judge(tmp_path / "b", [robots(exchange(0)), page(exchange(2 * DAY))])) == ["robots"]


def dropped_before(tmp_path: Path, run: int, started_at: int) -> None:
    """The map as `prune results` and `[spool] results` leave it: this run is the oldest whose results are kept."""
    moment = datetime.fromtimestamp((1_700_000_000_000 + started_at) / 1000, UTC)
    store = Store(tmp_path / "map.db", rules(tmp_path))
    store.begin_run(run, moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"), "")
    store.commit(run)
    store.set_meta("results_kept_from_run", str(run))
    store.close()


def test_a_robots_txt_whose_record_was_dropped_is_not_known_and_no_violation(tmp_path: Path) -> None:
    """RFC 9309, 2.4: a robots.txt may be used for 24 hours, so that of a dropped run counted in a later one."""
    dropped_before(tmp_path, 3, 50_000)
    report = judge(tmp_path, [page(exchange(60_000), exchange(62_000), run=3)])
    assert report.is_clean and report.unknown_robots == 2
    (line,) = [line for line in report.lines() if "not known" in line]
    assert line.startswith("robots: not known for 2 requests: the records of runs before run 3 are gone")


def test_a_dropped_record_explains_no_request_a_day_later_and_none_of_a_run_that_is_kept(tmp_path: Path) -> None:
    dropped_before(tmp_path, 3, 50_000)
    late = 50_000 + DAY + 3_600_001
    report = judge(tmp_path, [page(exchange(late), run=3)])
    assert promises(report) == ["robots"] and not report.unknown_robots
    unreadable = {"outcome": "unreachable", "error": "robots-unreachable: http-503"}
    records = [robots(exchange(51_000), run=3, **unreadable), page(exchange(53_000), run=3)]
    dropped_before(tmp_path / "kept", 3, 50_000)
    assert promises(judge(tmp_path / "kept", records)) == ["robots"], "read later than all that was dropped"


@pytest.mark.parametrize(
    "said", [{"outcome": "unreachable", "error": "robots-unreachable: http-503"}, {"crawl_delay": 60.0}]
)
def test_a_dropped_record_may_have_taken_the_place_of_an_older_one(tmp_path: Path, said: dict[str, object]) -> None:
    """The newest segment of each fetcher stays, so an older answer may be there and a later one not."""
    records = [robots(exchange(0), **said), page(exchange(60_000), exchange(62_000), run=3)]
    assert not judge(tmp_path / "all", records).is_clean
    dropped_before(tmp_path / "some", 3, 50_000)
    assert judge(tmp_path / "some", records).is_clean


def test_limits_that_were_dropped_are_not_said_to_be_those_of_an_older_version(tmp_path: Path) -> None:
    dropped_before(tmp_path, 3, 50_000)
    report = judge(tmp_path, [page(exchange(60_000), run=2)])
    assert "limits of run 2 are gone with the results that were dropped" in report.limits[0]


def test_an_unreadable_robots_txt_is_no_permission_unless_the_config_says_so(tmp_path: Path) -> None:
    records = [robots(exchange(0), outcome="unreachable", error="robots-unreachable: http-503"), page(exchange(1010))]
    assert promises(judge(tmp_path / "fail", records)) == ["robots"]
    assert judge(tmp_path / "allow", records, robots_unreachable="allow").is_clean


@pytest.mark.parametrize("host", ["ads.bad.test", "stub.test"])
def test_a_request_to_a_listed_domain_is_named(tmp_path: Path, host: str) -> None:
    report = judge(tmp_path, [robots(exchange(0, host), host=host)])
    assert promises(report) == ["lists"]


def test_a_foreign_robots_request_that_turns_up_late_is_put_in_its_place(tmp_path: Path) -> None:
    """Another fetcher went on with the domain long before this ledger was written."""
    own = [robots(exchange(0)), *[page(exchange(number * 5000), key=f"/{number}") for number in range(1, 40)]]
    foreign = exchange(12_500, "y.test"), exchange(13_500, "x.test", domain="x.test"), exchange(250_000, "y.test")
    late = robots(*foreign, host="y.test")
    assert judge(tmp_path / "fits", own, [late], max_domain_requests=100).is_clean
    close = robots(exchange(12_500, "y.test"), exchange(15_300, "x.test"), exchange(250_000, "y.test"), host="y.test")
    assert promises(judge(tmp_path / "close", own, [close], max_domain_requests=100)) == ["spacing"]


def test_damaged_lines_are_counted_and_do_not_stop_it(tmp_path: Path) -> None:
    judge(tmp_path, [robots(exchange(0)), page(exchange(1010)), page(exchange(3000), key="/b")])
    segment = sorted((tmp_path / "spool/results/fetcher-01").iterdir())[-1]
    data = bytearray(segment.read_bytes())
    data[20] ^= 1
    segment.write_bytes(bytes(data))
    report = judge(tmp_path)
    assert report.damaged >= 1
    assert report.is_clean


def test_a_run_without_recorded_limits_is_judged_by_the_present_ones_and_says_so(tmp_path: Path) -> None:
    report = judge(tmp_path, [robots(exchange(0))], events=[RunEvent(1, "", "started", "hash")])
    assert any("limits of run 1 were not recorded" in line for line in report.lines())


def test_a_limit_that_is_raised_later_excuses_nothing(tmp_path: Path) -> None:
    strict = rules(tmp_path, minimum_time_on_page=2000, max_domain_requests=2)
    records = [robots(exchange(0)), page(exchange(1500), exchange(4000))]
    report = judge(tmp_path, records, events=[run_event(1, -10, strict)], minimum_time_on_page=100)
    assert promises(report) == ["spacing", "budget"]
    text = "\n".join(report.lines())
    assert "limits recorded with run 1: 2,000 ms between requests, 2 requests a domain." in text


def test_a_limit_that_is_lowered_later_condemns_nothing(tmp_path: Path) -> None:
    loose = rules(tmp_path, minimum_time_on_page=100, max_domain_requests=50, robots_unreachable="allow")
    records = [
        robots(exchange(0), outcome="unreachable", status=503, body=None, error="http-503"),
        *[page(exchange(number * 200), key=f"/{number}") for number in range(1, 9)],
    ]
    assert judge(tmp_path, records, events=[run_event(1, -10, loose)], max_domain_requests=1).is_clean
    assert not judge(tmp_path / "now", records, max_domain_requests=1).is_clean


def test_lists_are_those_of_the_run(tmp_path: Path) -> None:
    free = replace(rules(tmp_path), blacklist=(), stub=())
    visit = [robots(exchange(0, "stub.test"), host="stub.test")]
    assert judge(tmp_path, visit, events=[run_event(1, -10, free)]).is_clean


def test_each_run_and_each_part_of_a_resumed_run_has_its_own_limits(tmp_path: Path) -> None:
    slow, fast = rules(tmp_path, minimum_time_on_page=2000), rules(tmp_path, minimum_time_on_page=500)
    events = [run_event(1, -10, slow), run_event(1, 5000, fast, "resumed"), run_event(2, 9000, slow)]
    records = [
        robots(exchange(0)),
        page(exchange(2010), key="/a"),
        page(exchange(6000), key="/b"),
        page(exchange(6510), key="/c"),  # too early for the first part of the run, not for the second
        page(exchange(9000), run=2, key="/a"),
        page(exchange(9510), run=2, key="/b"),  # too early again
    ]
    report = judge(tmp_path, records, events=events, minimum_time_on_page=100)
    assert [(violation.promise, violation.run) for violation in report.violations] == [("spacing", 2)]
    text = "\n".join(report.lines())
    assert "run 1: 2,000 ms between requests, 5 requests a domain, then 500 ms" in text
    assert "run 2: 2,000 ms" in text


def test_a_budget_that_is_lowered_within_a_run_binds_what_follows(tmp_path: Path) -> None:
    wide, narrow = rules(tmp_path, max_domain_requests=50), rules(tmp_path, max_domain_requests=2)
    events = [run_event(1, -10, wide), run_event(1, 5000, narrow, "resumed")]
    early = [robots(exchange(0)), *[page(exchange(number * 1010), key=f"/{number}") for number in (1, 2, 3)]]
    assert judge(tmp_path / "early", early, events=events).is_clean
    late = [*early, page(exchange(6000), key="/x")]
    assert promises(judge(tmp_path / "late", late, events=events)) == ["budget"]


def test_an_empty_workspace_is_clean(tmp_path: Path) -> None:
    assert judge(tmp_path).is_clean


def test_a_cut_list_of_violations_ends_with_the_command_that_lists_them_all() -> None:
    for kept, listed in ((2, 2), (None, 5)):
        report = AuditReport(kept=kept, command="sumi-ripple audit my.toml --all")
        for number in range(5):
            report.add(Violation("spacing", f"{number}.test", 1, 0, "too soon"))
        lines = list(report.lines())
        assert sum(line.startswith("violation of ") for line in lines) == listed
        assert ("… and 3 more violations: sumi-ripple audit my.toml --all" in lines) is (kept is not None)
        assert lines[-1] == "NOT clean: 5 violations."
