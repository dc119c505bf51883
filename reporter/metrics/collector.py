"""Counters of the map and facts of the heartbeats as metrics. No stage is asked, and no page is read.

Never a domain or URL as a label: their number has no end. Counters are those of the map (`crawler.model.wire_counts`):
they go on over restarts and runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.registry import Collector, CollectorRegistry

from crawler.model.map_place import MapPlace
from crawler.model.wire_counts import BUCKETS_MS, VisitCounts
from crawler.observe.alert_state import read_alerts
from crawler.observe.processes import Snapshot, observe
from crawler.workspace.door import STAGES, Workspace
from crawler.workspace.runs import RunStatus
from reporter.queries.monitoring import Monitored, monitored

TEXT = "text/plain; version=0.0.4; charset=utf-8"


class CrawlCollector(Collector):
    """Reads anew whenever it is collected."""

    def __init__(self, workspace: Workspace, database: MapPlace, version: str) -> None:
        self._workspace = workspace
        self._database = database
        self._version = version

    def collect(self) -> Iterator[Metric]:
        snapshot = observe(self._workspace)
        found = monitored(self._database, snapshot.run.number if snapshot.run else None)
        build = GaugeMetricFamily("crawler_build_info", "The version of the program.", labels=("version",))
        build.add_metric((self._version,), 1)
        yield build
        yield from _visits(found.counts)
        yield from _frontier(snapshot, found)
        yield from _stages(snapshot)
        yield from _waiting(snapshot, found)
        alerts = GaugeMetricFamily("crawler_alerts", "Alerts that are raised now, by name.", labels=("alert",))
        for alert in read_alerts(self._workspace):
            alerts.add_metric((alert.name,), 1)
        yield alerts


def metrics_text(workspace: Workspace, database: MapPlace, version: str) -> bytes:
    """All metrics in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(CrawlCollector(workspace, database, version))
    return generate_latest(registry)


def _visits(counts: VisitCounts) -> Iterator[Metric]:
    yield _counter("crawler_pages_fetched", "Visits by the state that they ended in.", "outcome", counts.outcomes)
    # A rate over a series that is not there yet is nothing, not zero: these two always are.
    codes, failures = {"200": 0, **counts.codes}, {"timeout": 0, **counts.failures}
    yield _counter("crawler_http_responses", "HTTP answers by status code.", "code", codes)
    yield _counter("crawler_request_failures", "Requests without an answer, by reason.", "reason", failures)
    yield CounterMetricFamily("crawler_robots_denials", "Pages that robots.txt denies.", value=counts.robots_denials)
    yield CounterMetricFamily("crawler_response_bytes", "Bytes of page bodies, decoded.", value=counts.bytes)
    total, buckets = 0, []
    for end, count in zip((*BUCKETS_MS, None), counts.durations, strict=True):
        total += count
        buckets.append(("+Inf" if end is None else str(end / 1000), float(total)))
    yield HistogramMetricFamily(
        "crawler_fetch_duration_seconds",
        "Time of one request, from its start to the end of its answer.",
        buckets=buckets,
        sum_value=counts.duration_ms / 1000,
    )


def _frontier(snapshot: Snapshot, found: Monitored) -> Iterator[Metric]:
    figures = snapshot.figures()
    urls = GaugeMetricFamily("crawler_frontier_urls", "URLs of the newest run by how far they are.", labels=("state",))
    for state, name in (("waiting", "frontier"), ("in_flight", "in_flight"), ("crawled", "crawled")):
        urls.add_metric((state,), figures[name])
    urls.add_metric(("failed",), figures["failed"])
    urls.add_metric(("known",), figures["known"])
    yield urls
    yield GaugeMetricFamily("crawler_links", "Links recorded in the newest run.", value=figures["links"])
    yield GaugeMetricFamily("crawler_domains", "Domains in the map.", value=found.domains)
    yield GaugeMetricFamily(
        "crawler_backlog_bytes",
        "Bytes of results that wait to be applied.",
        value=int(snapshot.facts_of("ingest").get("backlog") or 0),
    )


def _stages(snapshot: Snapshot) -> Iterator[Metric]:
    is_active = snapshot.run is not None and snapshot.run.status is RunStatus.RUNNING
    is_active = is_active and any(stage.is_running for stage in snapshot.stages)
    yield GaugeMetricFamily("crawler_run_active", "1 while a run is under way.", value=int(is_active))
    yield GaugeMetricFamily("crawler_run_number", "The newest run.", value=snapshot.run.number if snapshot.run else 0)
    yield GaugeMetricFamily("crawler_paused", "1 while a flag pauses a stage.", value=int(bool(snapshot.pause_flags)))
    workers = GaugeMetricFamily("crawler_workers", "Running processes of each stage.", labels=("stage",))
    beats = GaugeMetricFamily(
        "crawler_stage_heartbeat_timestamp_seconds",
        "The oldest heartbeat of its processes.",
        labels=("stage",),
    )
    standing = GaugeMetricFamily(
        "crawler_stage_standing_seconds", "Seconds without progress though work is due.", labels=("stage",)
    )
    now = datetime.fromisoformat(snapshot.at.replace("Z", "+00:00")).astimezone(UTC).timestamp()
    for stage, processes in snapshot.by_stage().items():
        alive = [process for process in processes if process.is_running]
        workers.add_metric((stage,), len(alive))
        ages = [process.age for process in alive if process.age is not None]
        if ages:
            beats.add_metric((stage,), now - max(ages))
        if alive:
            standing.add_metric((stage,), max(process.standing or 0.0 for process in alive))
    assert set(snapshot.by_stage()) == set(STAGES)
    yield from (workers, beats, standing)


def _waiting(snapshot: Snapshot, found: Monitored) -> Iterator[Metric]:
    waiting = GaugeMetricFamily("crawler_domains_waiting", "Domains that wait, by reason.", labels=("reason",))
    waiting.add_metric(("delay",), snapshot.total("fetcher", "waiting"))
    waiting.add_metric(("breaker",), found.breakers)
    for reason, count in sorted(found.closed.items()):
        waiting.add_metric((reason,), count)
    yield waiting
    yield GaugeMetricFamily(
        "crawler_network_out", "1 while the crawl waits for its own network.", value=int(snapshot.network.is_waiting)
    )


def _counter(name: str, words: str, label: str, counts: dict[str, int]) -> Metric:
    family = CounterMetricFamily(name, words, labels=(label,))
    for value, count in sorted(counts.items()):
        family.add_metric((value,), count)
    return family
