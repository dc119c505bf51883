"""The alerts that need no Prometheus: when they hold, and when they do not."""

from __future__ import annotations

from crawler.resilience.alert_rules import BACKLOG, STALL, WINDOW, AlertRules, Sample


def sample(at: float, **facts: object) -> Sample:
    usual: dict[str, object] = {"answers": {"all": 0}, "pages": 0, "waiting": 0, "backlog": 0, "silent": {}}
    return Sample(at, **{**usual, **facts})  # type: ignore[arg-type]


def holding(*samples: Sample) -> dict[str, str]:
    rules = AlertRules()
    for each in samples:
        rules.add(each)
    return rules.holding()


def answers(all_: int, errors: int = 0, limited: int = 0, timeouts: int = 0) -> dict[str, int]:
    return {"all": all_, "server_errors": errors, "rate_limited": limited, "timeouts": timeouts}


def test_errors_429_and_timeouts_are_told_apart() -> None:
    before = sample(0, answers=answers(1000, 900, 900, 900))
    assert holding(before, sample(60, answers=answers(1100, 930, 900, 900))).keys() == {"server-errors"}
    assert holding(before, sample(60, answers=answers(1100, 900, 910, 900))).keys() == {"rate-limited"}
    assert holding(before, sample(60, answers=answers(1100, 900, 900, 930))).keys() == {"timeouts"}
    assert holding(before, sample(60, answers=answers(1100, 919, 904, 919))) == {}


def test_a_rate_needs_requests_and_the_last_five_minutes_count() -> None:
    assert holding(sample(0), sample(60, answers=answers(20, 20))) == {}
    old = [sample(0), sample(60, answers=answers(100, 100))]
    assert holding(*old, sample(60 + WINDOW, answers=answers(300, 100))) == {}


def test_counters_that_begin_again_raise_nothing() -> None:
    assert holding(sample(0, answers=answers(5000)), sample(60, answers=answers(100, 90))) == {}


def test_a_backlog_and_a_silent_stage() -> None:
    found = holding(sample(0, backlog=BACKLOG + 2**20, silent={"ingest": 75.0, "scheduler": 2.0}))
    assert found.keys() == {"backlog", "silent-stage"}
    assert "the ingest has given no sign of life for 75 seconds" in found["silent-stage"]


def test_a_stall_is_a_quarter_of_an_hour_with_work_and_no_visit() -> None:
    steps = [sample(at, pages=7, waiting=5) for at in range(0, int(STALL) + 20, 10)]
    assert holding(*steps[:60]) == {}
    assert holding(*steps).keys() == {"stall"}
    assert holding(*steps[:50], sample(500, pages=8, waiting=5), *(s._replace(pages=8) for s in steps[51:])) == {}
    assert holding(*steps[:-1], steps[-1]._replace(waiting=0)) == {}


def test_a_pause_or_an_outage_is_no_stall() -> None:
    steps = [sample(at, pages=7, waiting=5, is_held=at == 500) for at in range(0, int(STALL) + 20, 10)]
    assert holding(*steps) == {}
    assert holding(sample(0, is_held=True, network_out="10:00")) == {
        "network-outage": "the crawl waits for its own network since 10:00"
    }
