"""Why a domain waits."""

from __future__ import annotations

import orjson
import pytest

from crawler.model.messages import RetryCounts
from crawler.model.moments import Moment
from crawler.model.records import Closure, Job
from crawler.model.settings import Config, CrawlerSettings
from crawler.observe.domain_waits import domain_waits, reason_of
from crawler.pace.breaker import Breaker, BreakerState
from crawler.pace.gate_record import GateRecord
from crawler.resilience.network_state import HOLDS
from crawler.workspace.clock import boot_id
from crawler.workspace.files.file_workspace import FileWorkspace

NOW = 100_000_000_000
ENDED = Moment(boot_id(), NOW - 400_000_000, 0)  # 400 ms ago
CONFIG = Config(CrawlerSettings(minimum_time_on_page=1000))


@pytest.mark.parametrize(
    ("record", "reason", "seconds"),
    [
        (GateRecord(), "turn", None),
        (GateRecord(ended=ENDED), "delay", 0.6),
        (GateRecord(ended=ENDED, crawl_delay_ms=5000), "crawl-delay", 4.6),
        (GateRecord(ended=ENDED, crawl_delay_ms=500), "delay", 0.6),
        (GateRecord(ended=ENDED, crawl_delay_ms=2000, pause_ms=9000), "pause", 8.6),
        (GateRecord(ended=ENDED, pause_ms=9000, retry_counts=RetryCounts(robots_tries=1)), "robots", 8.6),
        (GateRecord(ended=ENDED._replace(mono_ns=NOW - 2_000_000_000)), "turn", None),
        (GateRecord(ended=ENDED._replace(boot="another")), "turn", None),
        (GateRecord(ended=ENDED, is_in_flight=True), "on-the-wire", None),
        (GateRecord(ended=ENDED, closes=Closure("rate-limited", 3)), "rate-limited", None),
        (
            GateRecord(ended=ENDED, breaker=Breaker(BreakerState.OPEN, cooldown_ms=60_000, since_ns=NOW)),
            "breaker",
            60.0,
        ),
    ],
)
def test_the_reason_is_the_one_that_lasts_longest(record: GateRecord, reason: str, seconds: float | None) -> None:
    found, left = reason_of(record, CONFIG, NOW)
    assert found == reason
    assert left == (None if seconds is None else pytest.approx(seconds))


def test_domains_wait_for_the_network_while_fetchers_hold_their_requests(workspace: FileWorkspace) -> None:
    workspace.job_writer().write("a.test", [Job(1, "https://a.test/", "https://a.test/", "a.test")])
    workspace.beat("fetcher-01", orjson.dumps({"name": "fetcher-01", "doing": "running"}))
    assert [wait.reason for wait in domain_waits(workspace, CONFIG)] == ["turn"]
    workspace.beat("fetcher-01", orjson.dumps({"name": "fetcher-01", "doing": HOLDS}))
    assert [wait.reason for wait in domain_waits(workspace, CONFIG)] == ["outage"]
    workspace.set_flag("pause")
    assert [wait.reason for wait in domain_waits(workspace, CONFIG)] == ["paused"]
