"""Records about a domain: changes of its circuit breaker, in whatever order they are read."""

from __future__ import annotations

import sqlite3
from itertools import permutations
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.model.records import Closure, DomainEvent, PageResult, Result
from tests.ingest.terrains import AT, config
from tests.ingest.test_loop import begun, drain, results, write

CHANGES = [
    DomainEvent(1, "two.test", AT, "breaker-open", 1, "5 visits in a row failed"),
    DomainEvent(1, "two.test", AT, "breaker-half-open", 2, "a trial"),
    DomainEvent(1, "two.test", AT, "breaker-closed", 3, "visits succeed again"),
]
CLOSED = DomainEvent(1, "two.test", AT, "closed", closes=Closure("breaker-open", 9))


def crawled(folder: Path, *parts: list) -> Path:  # type: ignore[type-arg]
    """The map of these results, each part from a fetcher of its own."""
    folder.mkdir()
    rules = config(folder)
    write(rules, "scheduler", begun())
    for number, part in enumerate(parts, 1):
        write(rules, f"fetcher-{number:02d}", part)
    drain(rules)
    return rules.output.database_path


def ask(path: Path, sql: str) -> list[tuple[object, ...]]:
    db = sqlite3.connect(path)
    try:
        return db.execute(sql).fetchall()
    finally:
        db.close()


def test_the_last_change_of_a_breaker_counts_whichever_is_read_last(tmp_path: Path) -> None:
    for number, order in enumerate(permutations(CHANGES)):
        path = crawled(tmp_path / str(number), *[[change] for change in order])
        found = ask(path, "SELECT domain, state, changes, detail FROM breakers JOIN domain_states USING (id)")
        assert found == [("two.test", "closed", 3, "visits succeed again")]


def test_changes_of_a_breaker_leave_the_digest_as_it_was(tmp_path: Path) -> None:
    assert digest(crawled(tmp_path / "a", results())) == digest(crawled(tmp_path / "b", results(), CHANGES))


@pytest.mark.parametrize("is_first", [True, False])
def test_pages_behind_an_open_breaker_fail_and_a_result_that_comes_after_all_counts(
    tmp_path: Path, is_first: bool
) -> None:
    some = [result for result in results() if not getattr(result, "key", "").startswith("https://two.test/2")]
    path = crawled(tmp_path / "m", *([[CLOSED], some] if is_first else [some, [CLOSED]]))
    pages = dict(ask(path, "SELECT url, state || ' ' || ifnull(error_message, '') FROM pages"))
    assert pages["https://two.test/2"].startswith("failed breaker-open: visits of the domain failed in a row")
    assert pages["https://two.test/0"].startswith("processed")
    assert ask(
        path, "SELECT count(*) FROM frontier WHERE domain_id = (SELECT id FROM domain_states WHERE domain = 'two.test')"
    ) == [(0,)]


def _limited(request: int, page: str) -> list[Result]:
    """A visit of a page of two.test that is answered with 429."""
    key = f"https://two.test/{page}"
    closes = Closure("rate-limited", request)
    return [PageResult(1, key, key, "two.test", AT, "rate_limited", status=429, error="http-429: no", closes=closes)]


def _states(path: Path) -> dict[str, str]:
    return dict(ask(path, "SELECT url, state FROM pages WHERE domain = 'two.test'"))  # type: ignore[arg-type]


def _others() -> list[Result]:
    """All visits but those of the pages that two.test/0 links to."""
    return [each for each in results() if getattr(each, "key", "") not in {f"https://two.test/{n}" for n in (1, 2, 3)}]


RESET = [DomainEvent(1, "two.test", AT, "reopened", 5, "order x")]


def test_a_reset_ends_the_closures_before_it_in_whatever_order_records_are_read(tmp_path: Path) -> None:
    """Each log is read in its order, the logs in any order."""
    digests = set()
    for number, order in enumerate(permutations([_others(), _limited(4, "1"), RESET])):
        path = crawled(tmp_path / str(number), *order)
        digests.add(digest(path))
        assert _states(path)["https://two.test/1"] == "rate_limited", "it was visited"
        assert _states(path)["https://two.test/2"] == "queued"
        assert ask(path, "SELECT closed_reason FROM domain_states WHERE domain = 'two.test'") == [(None,)]
        waiting = ask(path, "SELECT count(*) FROM frontier JOIN pages USING (id) WHERE domain = 'two.test'")
        assert waiting == ask(path, "SELECT count(*) FROM pages WHERE domain = 'two.test' AND state = 'queued'")
    assert len(digests) == 1


def test_a_429_after_a_reset_closes_the_domain_again_in_whatever_order_records_are_read(tmp_path: Path) -> None:
    digests = set()
    for number, order in enumerate(permutations([_others(), _limited(4, "1"), RESET, _limited(9, "2")])):
        path = crawled(tmp_path / str(number), *order)
        digests.add(digest(path))
        assert ask(path, "SELECT closed_reason FROM domain_states WHERE domain = 'two.test'") == [("rate-limited",)]
        assert "queued" not in _states(path).values()
    assert len(digests) == 1


def test_a_budget_that_ran_out_outlasts_a_reset_in_whatever_order_records_are_read(tmp_path: Path) -> None:
    budget = [DomainEvent(1, "two.test", AT, "closed", closes=Closure("request-limit", 5, 10_000))]
    digests = set()
    for number, order in enumerate(permutations([_others(), _limited(4, "1"), RESET, budget])):
        path = crawled(tmp_path / str(number), *order)
        digests.add(digest(path))
        assert ask(path, "SELECT closed_reason FROM domain_states WHERE domain = 'two.test'") == [("request-limit",)]
        assert _states(path)["https://two.test/2"] == "request_limit_hit"
    assert len(digests) == 1
