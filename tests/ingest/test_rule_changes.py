"""Changed rules are named; a map in which nothing can differ is kept, and then a replay agrees that nothing does."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.database.digest import digest
from crawler.model import recorded_settings
from crawler.model.records import RunEvent
from crawler.model.settings import CapRule, Config, PageTypeRule, QualityEntry, ScopeSettings
from ingest.replay import replay
from ingest.rule_changes import can_differ, changed_rules
from ingest.writing.store import Store
from tests.ingest.terrains import AT, Terrain, config, read_plainly, results_of, terrains
from tests.ingest.test_loop import begun, drain, results, start, write


def with_crawler(rules: Config, **values: object) -> Config:
    return replace(rules, crawler=replace(rules.crawler, **values))  # type: ignore[arg-type]


def crawl(rules: Config) -> None:
    write(rules, "scheduler", begun())
    write(rules, "fetcher-01", results())
    write(rules, "scheduler", [RunEvent(1, AT, "finished")])
    drain(rules)


HARMLESS = {
    "a domain that no page is on": lambda rules: replace(rules, blacklist=(*rules.blacklist, "*.elsewhere.test")),
    "another order": lambda rules: replace(rules, stub=("never.test", *rules.stub)),
    "a larger budget that no domain has used up": lambda rules: with_crawler(rules, max_domain_requests=9999),
    "a longer pause that no domain asked for": lambda rules: with_crawler(rules, max_crawl_delay=999_999),
    "a trap limit that no URL comes near": lambda rules: replace(rules, traps=replace(rules.traps, max_url_length=999)),
    "a rule that no URL matches": lambda rules: replace(rules, scope=ScopeSettings(deny=("/never/",))),
    "a type that no page is of": lambda rules: replace(rules, page_types=(PageTypeRule("odd", "/never/"),)),
}
HARMFUL = {
    "crawler.max-depth: 2 → 1": lambda rules: with_crawler(rules, max_depth=1),
    "blacklist: + two.test": lambda rules: replace(rules, blacklist=(*rules.blacklist, "two.test")),
    "crawler.max-domain-requests: 500 → 5": lambda rules: with_crawler(rules, max_domain_requests=5),
    "quality: + new.test from https://new.test/": lambda rules: replace(
        rules, quality=(*rules.quality, QualityEntry("new.test", ("https://new.test/",)))
    ),
    "traps.max-url-length: 2000 → 5": lambda rules: replace(rules, traps=replace(rules.traps, max_url_length=5)),
    "crawler.obey-nofollow: true → false": lambda rules: with_crawler(rules, obey_nofollow=False),
    "validation.follow-rejected: false → true": lambda rules: replace(
        rules, validation=replace(rules.validation, follow_rejected=True)
    ),
    "discovery.elsewhere: false → true": lambda rules: replace(
        rules, discovery=replace(rules.discovery, elsewhere=True)
    ),
    "crawler.discovered-domain-requests: null → 5": lambda rules: with_crawler(rules, discovered_domain_requests=5),
    "scope.deny: + one[.]test": lambda rules: replace(rules, scope=ScopeSettings(deny=("one[.]test",))),
    'page-type: + {"name":"far","pattern":"one[.]test"}': lambda rules: replace(
        rules, page_types=(PageTypeRule("far", "one[.]test"),)
    ),
    'cap: + {"name":"all","pattern":"one","max_pages":1,"per":""}': lambda rules: replace(
        rules, caps=(CapRule("all", "one", 1),)
    ),
    "quality: + one.test/1/ from https://one.test/1/": lambda rules: replace(
        rules, quality=(*rules.quality, QualityEntry("one.test", ("https://one.test/1/",), "/1"))
    ),
}


@pytest.mark.parametrize("change", HARMLESS)
def test_a_map_in_which_nothing_can_differ_is_kept_without_a_backup(
    rules: Config, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sumi.ingest")
    crawl(rules)
    before = digest(rules.output.database_path)
    other = HARMLESS[change](rules)
    assert other.map_hash != rules.map_hash
    ingest = start(other)
    assert ingest.rebuilt is None
    assert ingest.store.meta("map_hash") == other.map_hash
    ingest.shutdown()
    assert any("nothing in this map can differ" in line for line in caplog.messages)
    assert digest(rules.output.database_path) == before
    assert not list(rules.output.database_path.parent.glob("*.before-*"))
    caplog.clear()
    start(other).shutdown()
    assert not any("rules changed" in line for line in caplog.messages)


@pytest.mark.parametrize("change", HARMFUL)
def test_a_change_that_counts_is_named_and_rebuilds_the_map(
    rules: Config, change: str, caplog: pytest.LogCaptureFixture
) -> None:
    crawl(rules)
    ingest = start(HARMFUL[change](rules))
    assert ingest.rebuilt is not None
    ingest.shutdown()
    assert any(f"({change}) since this map was built" in line for line in caplog.messages)


def test_a_map_of_an_earlier_version_is_rebuilt_without_names(rules: Config, caplog: pytest.LogCaptureFixture) -> None:
    crawl(rules)
    store = Store(rules.output.database_path, rules)
    store.db.execute("DELETE FROM meta WHERE name = 'map_settings'")
    store.close()
    ingest = start(HARMLESS["another order"](rules))
    assert ingest.rebuilt is not None
    ingest.shutdown()
    assert any("The rules changed since this map was built" in line for line in caplog.messages)


def test_only_rules_of_the_map_are_named(rules: Config) -> None:
    other = with_crawler(rules, max_depth=3, workers=7, retries=9)
    assert changed_rules(recorded_settings.flat(rules), other) == ["crawler.max-depth: 2 → 3"]


HOSTS = st.sampled_from(["qa.test", "one.test", "two.test", "*.two.test", "sub.qb.test", "nowhere.test", "*.stub.test"])


@st.composite
def changes(draw: st.DrawFn) -> dict[str, object]:
    return {
        "blacklist": draw(st.lists(HOSTS, max_size=2, unique=True).map(tuple)),
        "stub": draw(st.lists(HOSTS, max_size=2, unique=True).map(tuple)),
        "max_domain_requests": draw(st.sampled_from([500, 501, 499, 50])),
        "max_crawl_delay": draw(st.sampled_from([120_000, 130_000, 1000])),
        "max_path_depth": draw(st.sampled_from([24, 30, 1])),
        "max_similar_paths": draw(st.sampled_from([5000, 6000, 0])),
    }


@settings(max_examples=40, deadline=None)
@given(terrains(size=3), terrains(size=3), changes())
def test_where_nothing_can_differ_nothing_does(first: Terrain, second: Terrain, change: dict[str, object]) -> None:
    with TemporaryDirectory() as folder:
        rules = config(Path(folder))
        for run, terrain in ((1, first), (2, second)):
            write(rules, "scheduler", begun(run))
            write(rules, "fetcher-01", results_of(terrain, read_plainly(terrain, 2), run))
            write(rules, "scheduler", [RunEvent(run, AT, "finished")])
        drain(rules)
        other = replace(
            with_crawler(rules, **{name: change[name] for name in ("max_domain_requests", "max_crawl_delay")}),
            traps=replace(
                rules.traps,
                **{name: change[name] for name in ("max_path_depth", "max_similar_paths")},  # type: ignore[arg-type]
            ),
            blacklist=(*rules.blacklist, *change["blacklist"]),  # type: ignore[misc]
            stub=(*rules.stub, *change["stub"]),  # type: ignore[misc]
        )
        store = Store(rules.output.database_path, rules)
        may_differ = can_differ(store, recorded_settings.flat(rules), other)
        store.close()
        replay(other, Path(folder) / "other.db")
        if not may_differ:
            assert digest(Path(folder) / "other.db") == digest(rules.output.database_path)
