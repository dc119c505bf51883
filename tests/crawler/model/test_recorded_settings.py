"""Recorded settings: what is recorded can be restored, and every difference is named."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from crawler.model import recorded_settings
from crawler.model.settings import (
    Config,
    CrawlerSettings,
    LimitSettings,
    QualityEntry,
    RevisitSettings,
    StoreSettings,
    TrapSettings,
)

DOMAINS = st.from_regex(r"\A(\*\.)?[a-z]{1,5}\.test\Z")
CONFIGS = st.builds(
    Config,
    crawler=st.builds(CrawlerSettings, max_depth=st.integers(0, 9), tracking_parameters=st.just(("utm_*",))),
    traps=st.builds(TrapSettings, max_path_depth=st.integers(0, 9)),
    limits=st.builds(LimitSettings, max_pages=st.integers(0, 1), max_duration=st.integers(0, 1)),
    quality=st.lists(
        st.builds(QualityEntry, DOMAINS, st.just(("https://a.test/", "https://a.test/b"))), max_size=3
    ).map(tuple),
    blacklist=st.lists(DOMAINS, max_size=3, unique=True).map(tuple),
    stub=st.lists(DOMAINS, max_size=3, unique=True).map(tuple),
)


@given(CONFIGS, CONFIGS)
def test_recorded_settings_are_restored_exactly(was: Config, now: Config) -> None:
    values = recorded_settings.read(recorded_settings.dump(was))
    assert values is not None
    back = recorded_settings.restored(values, now)
    assert (back.config_hash, back.map_hash) == (was.config_hash, was.map_hash)
    assert back.workspace == now.workspace and back.output == now.output
    is_same = was.config_hash == now.config_hash
    assert bool(recorded_settings.changes(recorded_settings.flat(was), recorded_settings.flat(now))) is not is_same


def test_settings_of_another_version_keep_the_values_that_they_do_not_name() -> None:
    now = Config(crawler=CrawlerSettings(max_depth=5, retries=9), workspace=Path("here"))
    back = recorded_settings.restored({"crawler.max-depth": 2, "crawler.unheard-of": True}, now)
    assert (back.crawler.max_depth, back.crawler.retries) == (2, 9)


def test_a_setting_younger_than_a_record_had_its_default() -> None:
    old = {name: value for name, value in recorded_settings.flat(Config()).items() if not name.startswith("limits.")}
    assert recorded_settings.changes(old, recorded_settings.flat(Config())) == []
    now = recorded_settings.flat(Config(limits=LimitSettings(max_pages=60)))
    assert recorded_settings.changes(old, now) == ["limits.max-pages: 0 → 60"]


def test_text_that_is_no_record_is_none() -> None:
    assert recorded_settings.read("") is None and recorded_settings.read("[1]") is None


def test_each_change_is_one_line() -> None:
    before = recorded_settings.flat(Config(crawler=CrawlerSettings(max_depth=2), blacklist=("a.test",)))
    after = recorded_settings.flat(Config(crawler=CrawlerSettings(max_depth=3), blacklist=("b.test",)))
    assert recorded_settings.changes(before, after) == [
        *("blacklist: − a.test", "blacklist: + b.test", "crawler.max-depth: 2 → 3"),
    ]


def test_a_setting_that_is_recorded_only_where_it_differs_is_named_with_its_default() -> None:
    usual, other = Config(), Config(store=StoreSettings(html=True), revisit=RevisitSettings("adaptive"))
    assert recorded_settings.changes(recorded_settings.flat(other), recorded_settings.flat(usual)) == [
        *("revisit.schedule: adaptive → always", "store.html: true → false"),
    ]


def test_a_setting_that_is_younger_than_a_record_is_no_change_at_its_default() -> None:
    old = recorded_settings.flat(Config())
    del old["crawler.link-text"]
    assert recorded_settings.changes(old, recorded_settings.flat(Config())) == []
    asked = Config(crawler=CrawlerSettings(link_text=True))
    assert recorded_settings.changes(old, recorded_settings.flat(asked)) == ["crawler.link-text: false → true"]
    assert asked.config_hash != Config().config_hash and asked.map_hash == Config().map_hash
