"""Every state has its advice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crawler.model.settings import Config
from crawler.model.states import PageState
from reporter.explain.explanation import explain
from reporter.explain.remedies import advise


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://127.0.0.1/", "Even then nothing would be sent (loopback)"),
        ("https://[::ffff:10.0.0.1]/", "[network] allow-private-addresses lets it in"),
        ("https://q.test/never", "must be a seed; then it is crawled, at depth 0"),
        ("https://never.test/", "A page at depth 2 or less must link to it"),
        ("https://ads.test/never", '"ads.test" must leave [[blacklist]]'),
        ("https://hub.test/never", '"hub.test" must leave [[stub]]'),
        ("https://denied.test/never", "robots.txt must allow it (now: Disallow: /)"),
        ("https://friend.test/day?n=9", "[traps] max-query-variants must be raised (it is 200"),
        ("https://never.test/a/a/a/a/a/a", "[traps] max-path-repeats must be raised (it is 3"),
    ],
)
def test_a_url_never_seen_is_told_what_would_happen(database: Path, config: Config, url: str, words: str) -> None:
    facts = explain(config, database, url)
    assert not facts.is_known
    assert words in facts.text()
    assert "never seen" in facts.text()


@pytest.mark.parametrize(
    ("url", "state", "words"),
    [
        ("https://q.test/", "processed", "it was crawled"),
        ("https://q.test/old", "processed", "it redirects"),
        ("https://q.test/gone", "dead_link", "must bring the page back"),
        ("https://ads.test/x", "blacklisted", "the domain would be discovered"),
        ("https://hub.test/00", "stubbed", "must leave [[stub]]"),
        ("https://later.test/", "queued", "waits for its turn"),
        ("https://far0.test/", "depth_exceeded", "max-depth must be 3 or more"),
        ("https://nofollow.test/", "discovered", "obey-nofollow"),
        ("https://slow.test/0", "rate_limited", "answered 429"),
        ("https://busy.test/0", "request_limit_hit", "max-domain-requests"),
        ("https://denied.test/", "failed", "robots.txt must allow it (now: Disallow: /)"),
        ("https://sleepy.test/", "failed", 'robots-unreachable must be "allow"'),
        ("https://err0.test/", "unreachable", "accept https connections"),
        ("https://err2.test/", "unreachable", "ca-bundle"),
        ("https://err3.test/", "failed", "within the timeouts"),
        ("https://err4.test/", "failed", "must answer with the page"),
        ("https://err6.test/", "failed", "loop of redirects"),
        ("https://err7.test/", "failed", "max-path-repeats"),
        ("https://err8.test/", "failed", "tries again"),
        ("https://err9.test/", "content_mismatch", "not an HTML page"),
    ],
)
def test_each_state_says_what_would_have_to_change(
    database: Path, config: Config, url: str, state: str, words: str
) -> None:
    facts = explain(config, database, url)
    assert facts.state == state
    assert words in " ".join(facts.to_be_crawled)
    assert len(facts.text().splitlines()) <= 40


def test_every_state_of_a_finished_crawl_is_covered_above() -> None:
    marks = test_each_state_says_what_would_have_to_change.pytestmark  # type: ignore[attr-defined]
    covered = {case[1] for case in marks[0].args[1]}
    assert covered | {"fetching"} == {str(state) for state in PageState}


def test_a_page_that_answered_429_after_its_pause_does_not_blame_its_domain(database: Path, config: Config) -> None:
    facts = replace(explain(config, database, "https://slow.test/0"), error="http-429")
    waiting = replace(config, crawler=replace(config.crawler, on_429="wait"))
    assert advise(waiting, facts)[0].startswith("It answered 429 again after the pause")
    assert "is not visited any more in this run" in advise(config, facts)[0]
