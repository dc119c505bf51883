"""The metrics of a crawl: names and labels as Prometheus' own tools like them, counters exact over restarts, and the
rules and the dashboard in deploy/ ask for nothing else.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from crawler.model.records import Exchange, PageResult, RunEvent
from crawler.model.settings import Config
from crawler.model.wire_counts import META, VisitCounts
from crawler.observe.alert_state import Alert, write_alerts
from crawler.workspace.files.file_workspace import FileWorkspace
from reporter.metrics.collector import metrics_text
from tests.crawler.cli.calling import called
from tests.ingest.terrains import AT, config
from tests.ingest.test_loop import begun, drain, write
from tests.places import ROOT

DEPLOY = ROOT / "deploy"


def visit(key: str, state: str, answer: int | str, **more: object) -> PageResult:
    ledger = (Exchange(0, 0, "GET", "qa.test", answer, 120, "qa.test"),)
    status = answer if isinstance(answer, int) else None
    return PageResult(1, key, key, "qa.test", AT, state, status=status, bytes=1000, ledger=ledger, **more)  # type: ignore[arg-type]


@pytest.fixture
def rules(tmp_path: Path) -> Config:
    found = config(tmp_path)
    FileWorkspace(found.workspace).prepare()
    return found


@pytest.fixture
def crawled(rules: Config) -> Config:
    home = "https://qa.test/0"
    links = tuple(f"https://qa.test/{n}" for n in range(1, 4))
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", [visit(home, "processed", 200, base=home, hrefs=links)])
    drain(rules)  # one process …
    write(
        rules,
        "fetcher-01",
        [
            visit(links[0], "dead_link", 404, error="http-404: gone"),
            visit(links[1], "unreachable", "timeout", error="timeout: too slow"),
            visit(links[2], "failed", 200, error="robots-denied: as it says"),
            visit(links[0], "dead_link", 404, error="http-404: gone"),  # written twice: counted once
        ],
    )
    write(rules, "scheduler", [RunEvent(1, AT, "finished")])
    drain(rules)  # … and another
    return rules


def samples(config: Config) -> dict[tuple[str, frozenset], float]:
    text = metrics_text(FileWorkspace(config.workspace), config.output.database_path, "9.9").decode()
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(config: Config, name: str, **labels: str) -> float:
    return samples(config)[name, frozenset(labels.items())]


def test_counters_are_exact_over_restarts_and_lines_that_come_twice(crawled: Config) -> None:
    assert value(crawled, "crawler_pages_fetched_total", outcome="processed") == 1
    assert value(crawled, "crawler_pages_fetched_total", outcome="dead_link") == 1
    assert value(crawled, "crawler_http_responses_total", code="404") == 1
    assert value(crawled, "crawler_http_responses_total", code="200") == 2
    assert value(crawled, "crawler_request_failures_total", reason="timeout") == 1
    assert value(crawled, "crawler_robots_denials_total") == 1
    assert value(crawled, "crawler_response_bytes_total") == 4000
    assert value(crawled, "crawler_fetch_duration_seconds_count") == 4
    assert value(crawled, "crawler_fetch_duration_seconds_bucket", le="0.1") == 0
    assert value(crawled, "crawler_fetch_duration_seconds_bucket", le="0.25") == 4
    assert value(crawled, "crawler_run_active") == 0
    assert value(crawled, "crawler_build_info", version="9.9") == 1


def test_a_workspace_without_a_map_has_metrics_too_and_alerts_are_among_them(rules: Config) -> None:
    write_alerts(FileWorkspace(rules.workspace), [Alert("backlog", "it grows", AT)])
    assert value(rules, "crawler_run_active") == 0
    assert value(rules, "crawler_alerts", alert="backlog") == 1


def test_no_label_names_a_domain_or_a_url(crawled: Config) -> None:
    labels = {name for _, found in samples(crawled) for name, _ in found}
    assert labels <= {"outcome", "code", "reason", "state", "stage", "le", "version", "alert"}


def test_a_note_that_cannot_be_read_counts_as_none() -> None:
    for text in ("", "[]", "{", '{"outcomes": 7}', '{"durations": ["x"]}', '{"durations": [1]}'):
        assert VisitCounts.read(text).codes == {}
    assert META


def test_the_command_prints_the_same_and_writes_a_whole_file(
    crawled: Config, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toml = tmp_path / "my.toml"
    toml.write_text(
        f'[output]\ndatabase-path = "{crawled.output.database_path}"\nworkspace-path = "{crawled.workspace}"\n'
        '[[quality]]\ndomain = "qa.test"\nseeds = ["https://qa.test/0"]\n'
    )
    line = 'crawler_pages_fetched_total{outcome="processed"} 1.0'
    assert called("metrics", str(toml)) == 0
    assert line in capsys.readouterr().out
    assert called("metrics", str(toml), "--output", str(tmp_path / "crawler.prom")) == 0
    assert line in (tmp_path / "crawler.prom").read_text()
    assert called("metrics", str(toml), "--output", str(tmp_path / "crawler.txt")) == 2


# -- deploy/ ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def promtool() -> str:
    found = shutil.which("promtool")
    if found is None:
        pytest.skip("promtool is not installed (Debian: apt install prometheus); it tests deploy/prometheus")
    return found


def test_promtool_finds_no_fault_in_the_metrics(crawled: Config, promtool: str) -> None:
    text = metrics_text(FileWorkspace(crawled.workspace), crawled.output.database_path, "9.9")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "words", [("check", "rules", "sumi-ripple.rules.yml"), ("test", "rules", "sumi-ripple.test.yml")]
)
def test_promtool_accepts_the_rules_and_their_tests(promtool: str, words: tuple[str, ...]) -> None:
    folder = DEPLOY / "prometheus"
    done = subprocess.run([promtool, *words], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr


def test_rules_and_dashboard_ask_only_for_metrics_that_there_are(crawled: Config) -> None:
    text = metrics_text(FileWorkspace(crawled.workspace), crawled.output.database_path, "9.9").decode()
    known = set(re.findall(r"^# TYPE (\w+)", text, re.M))
    known |= {f"{name}_bucket" for name in known}
    asked = set(re.findall(r"\bcrawler_\w+", (DEPLOY / "prometheus" / "sumi-ripple.rules.yml").read_text()))
    dashboard = json.loads((DEPLOY / "grafana" / "sumi-ripple.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked |= {name for expression in expressions for name in re.findall(r"\bcrawler_\w+", expression)}
    assert asked and asked <= known, asked - known
