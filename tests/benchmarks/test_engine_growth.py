"""The figures of a map that grows in the engine: a small one for real, and ratios and bytes that follow from clocks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import engine_growth, growing
from benchmarks.engine import report
from benchmarks.engine_growth import Size, compare, growth_lines, measure_growth
from benchmarks.growth import cost, take_in
from benchmarks.measure import Steps
from ingest import loop
from tests.postgres_server import own_server


def window(known: int, own: float, engine: float) -> dict[str, float]:
    return {"known": known, "links": 100, "us_per_link": 9.0, "cpu_us_per_link": own, "engine_us_per_link": engine}


def grown() -> dict[str, Any]:
    sizes = {"links": 1000, "table_bytes": 4500, "key_bytes": 500, "reverse_bytes": 1600, "known": 300}
    more = {"database_bytes": 2_000_000, "raw_links": 1200, "seconds": 0.1, "links_per_second": 12_000.0}
    return compare([window(100, 2.0, 4.0), window(100, 4.0, 4.0)], window(300, 6.0, 2.0)) | sizes | more


def test_the_late_window_is_compared_with_the_mean_of_the_early_ones() -> None:
    assert grown()["ratios"] == {"cpu_us_per_link": 2.0, "engine_us_per_link": 0.5, "both": pytest.approx(8 / 7)}


def test_a_window_counts_the_clocks_of_the_batches_inside_it() -> None:
    marks = [[0, 0, 0.0, 0.0, 0.0], [3, 50, 1.0, 0.5, 0.25], [5, 90, 3.0, 1.5, 3.25], [9, 99, 9.0, 9.0, 9.0]]
    found = cost((2, 4), marks, [0, 10, 20, 40, 120, 200, 200, 200, 200])
    assert found["known"] == 50
    assert found["links"] == 100
    assert found["cpu_us_per_link"] == pytest.approx(10_000)
    assert found["engine_us_per_link"] == pytest.approx(30_000)


def test_bytes_a_link_are_told_by_what_they_are_for() -> None:
    lines = "\n".join(growth_lines(grown()))
    assert "4.5 bytes a link, 0.5 more for the key, 1.6 for links to a page" in lines
    assert "| late against early | 2.00 | 0.50 | 1.14 |" in lines


def test_a_part_of_the_benchmark_is_told_alone() -> None:
    leases = {"count": 10, "claim": 1.0, "renew": 0.1, "release": 1.0}
    assert report({"leases": leases}).strip() == "10 domains: claimed in 1.0 s, renewed in 100.0 ms, released in 1.0 s"


@pytest.mark.parametrize(("share", "word"), [(0.71, ": met"), (0.69, "NOT MET")])
def test_an_engine_that_is_too_slow_is_told(share: float, word: str) -> None:
    turn = {"name": "files", "pages": 10, "rate": 9.0, "cpu": 0.02, "engine_cpu": 0.01}
    leases = {"count": 10, "claim": 1.0, "renew": 0.1, "release": 1.0}
    figures = {"turns": [turn], "share": share, "same_map": True, "leases": leases, "growth": grown()}
    told = report(figures)
    assert word in told
    assert "| files | 9 | 2.00 | 1.00 |" in told


def test_a_small_map_grows_in_a_real_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    marks: list[list[float]] = []

    def take_in_here(config: Path, engine: int | None = None) -> dict[str, Any]:
        """In this process, where batches can be small."""
        output = config.with_suffix(".json")
        take_in(config, output, engine)
        found: dict[str, Any] = json.loads(output.read_text())
        marks.append(found["marks"][-1])
        return found

    monkeypatch.setattr(growing, "WINDOW", 60)
    monkeypatch.setattr(engine_growth, "BEYOND", 20)
    monkeypatch.setattr(engine_growth, "run_take_in", take_in_here)
    monkeypatch.setattr(loop, "BATCH", 20)
    monkeypatch.setattr(loop, "_SHARE", 20)
    monkeypatch.setattr(loop, "calm_collector", lambda: None)
    with own_server(is_durable=False) as engine:
        found = measure_growth(Size(6_000, 1_000, 300, 2_000), tmp_path, engine, Steps())
    assert found["known"] >= 6_000
    assert 0 < found["links"] <= found["raw_links"]
    assert found["early"][0]["known"] == found["early"][1]["known"] < found["late"]["known"]
    assert all(mark[4] > 0 for mark in marks)  # the engine's clock
    assert found["table_bytes"] > 4 * found["links"]
