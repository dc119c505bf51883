"""The stages of a crawl."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace

import pytest

from crawler.model.settings import Config, CrawlerSettings
from crawler.supervise.stages import crawl_stages, fetcher_count


@pytest.mark.parametrize(
    ("cores", "in_config", "given", "slots", "expected"),
    [
        (1, None, None, 10, 2),
        (4, None, None, 10, 4),
        (64, None, None, 10, 8),
        (4, 3, None, 10, 3),
        (4, 3, 6, 10, 6),
        (4, None, None, 1, 1),
        (4, None, 6, 5, 5),
    ],
)
def test_the_number_of_fetchers(
    monkeypatch: pytest.MonkeyPatch, cores: int, in_config: int | None, given: int | None, slots: int, expected: int
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    config = Config(crawler=CrawlerSettings(workers=in_config, max_concurrent_pages_open=slots))
    assert fetcher_count(config, given) == expected


def test_a_crawl_has_one_ingest_one_scheduler_and_numbered_fetchers(config: Config) -> None:
    specs = crawl_stages(replace(config, crawler=replace(config.crawler, workers=2)))
    assert [(spec.name, spec.stage) for spec in specs] == [
        ("ingest", "ingest"),
        ("scheduler", "scheduler"),
        ("fetcher 1 of 2", "fetcher"),
        ("fetcher 2 of 2", "fetcher"),
    ]
    assert pickle.loads(pickle.dumps(specs)) == specs, "each is sent to a new process"
