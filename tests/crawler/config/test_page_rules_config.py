"""[scope], a path in [[quality]], [[page-type]] and [[cap]]: loaded, checked, recorded, hashed, shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.config.describe import describe
from crawler.config.load import ConfigError, load
from crawler.config.warnings import warnings
from crawler.model import recorded_settings
from crawler.model.settings import CapRule, Config, PageTypeRule, QualityEntry, ScopeSettings
from tests.places import ROOT

BASE = """
[[quality]]
domain = "a.test"
"""
RULES = """
[scope]
allow = ['^https://', '^https://']
deny = ['/login']
[[quality]]
domain = "uni.test"
path = "/x/../%7Elab/"
deny = ['/draft']
note = "the lab"
[[page-type]]
name = "issue"
pattern = '/issues/\\d+$'
[[cap]]
name = "users"
pattern = '^https://a[.]test/(?P<user>[^/]+)'
max-pages = 5
per = "user"
[[cap]]
name = "all"
pattern = 'a[.]test'
max-pages = 50
"""


def loaded(folder: Path, text: str) -> Config:
    (folder / "my.toml").write_text(text)
    return load(folder / "my.toml")


def test_every_rule_is_loaded_and_a_path_is_written_as_keys_have_it(tmp_path: Path) -> None:
    config = loaded(tmp_path, BASE + RULES)
    assert config.scope == ScopeSettings(("^https://",), ("/login",))
    lab = QualityEntry("uni.test", ("https://uni.test/~lab/",), "/~lab", ScopeSettings(deny=("/draft",)))
    assert config.quality[1] == lab
    assert config.page_types == (PageTypeRule("issue", r"/issues/\d+$"),)
    assert config.caps == (
        CapRule("users", "^https://a[.]test/(?P<user>[^/]+)", 5, "user"),
        CapRule("all", "a[.]test", 50),
    )
    assert [note.domain for note in config.entry_notes] == ["uni.test/~lab/"]


def test_a_part_without_seeds_starts_from_its_front_page_and_is_an_entry_of_its_own(tmp_path: Path) -> None:
    part = '[[quality]]\ndomain = "a.test"\npath = "/lab"\n'
    config = loaded(tmp_path, BASE + part + part.replace("/lab", "/lab/"))
    assert [(entry.name, entry.seeds) for entry in config.quality] == [
        ("a.test", ("https://a.test/",)),
        ("a.test/lab/", ("https://a.test/lab/",)),
    ]
    assert any("a.test/lab/ is in the quality list twice" in note for note in config.notes)


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("[scope]\nallow = 'x'", "scope.allow", "a list of"),
        ("[scope]\ndeny = ['(']", "scope.deny", "missing )"),
        ("[scope]\ndeny = ['(?=x)']", "scope.deny", "RE2"),
        ("[scope]\ndeny = ['ü']", "scope.deny", "ASCII"),
        ("[scope]\ndenied = ['x']", "scope.denied", "deny"),
        ("[[quality]]\ndomain = 'b.test'\npath = 'lab'", "quality[1].path", "begins with a slash"),
        ("[[quality]]\ndomain = 'b.test'\npath = '/'", "quality[1].path", "whole site"),
        ("[[quality]]\ndomain = 'b.test'\npath = '/x?y'", "quality[1].path", "begins with a slash"),
        (
            "[[quality]]\ndomain = 'b.test'\npath = '/x'\nseeds = ['https://b.test/y']",
            "quality[1].seeds[0]",
            "path, /x/",
        ),
        ("[[quality]]\ndomain = 'b.test'\nallow = [7]", "quality[1].allow", "regular expression"),
        ("[[page-type]]\nname = 'A B'\npattern = 'x'", "page-type[0].name", "small letters"),
        ("[[page-type]]\nname = 'a'", "page-type[0].pattern", "regular expression"),
        ("[[cap]]\nname = 'a'\npattern = 'x'", "cap[0].max-pages", "1 or more"),
        ("[[cap]]\nname = 'a'\npattern = 'x'\nmax-pages = 5\nper = 'user'", "cap[0].per", "has none"),
        ("[[cap]]\nname = 'a'\npattern = '(x)'\nmax-pages = 5\nper = 'user'", "cap[0].per", '"1"'),
        ("[[cap]]\nname = 'a'\npattern = '(x)'\nmax-pages = 5\nper = true", "cap[0].per", "captured group"),
        ("[cap]\nname = 'a'", "cap", "two brackets"),
    ],
)
def test_a_mistake_names_its_place_and_what_is_allowed(tmp_path: Path, text: str, place: str, words: str) -> None:
    with pytest.raises(ConfigError) as problem:
        loaded(tmp_path, BASE + text + "\n")
    found = {mistake.path: str(mistake) for mistake in problem.value.mistakes}
    assert words in found[place]


def test_two_caps_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    cap = "[[cap]]\nname = 'a'\npattern = 'x'\nmax-pages = 5\n"
    with pytest.raises(ConfigError, match="no other"):
        loaded(tmp_path, BASE + cap + cap)


def test_rules_are_recorded_and_come_back_and_unused_ones_change_no_hash(tmp_path: Path) -> None:
    plain, ruled = loaded(tmp_path, BASE), loaded(tmp_path, BASE + RULES)
    values = recorded_settings.read(recorded_settings.dump(ruled))
    assert values is not None
    back = recorded_settings.restored(values, plain)
    assert (back.quality, back.scope, back.page_types, back.caps) == (
        ruled.quality,
        ruled.scope,
        ruled.page_types,
        ruled.caps,
    )
    assert back.map_hash == ruled.map_hash != plain.map_hash
    before = recorded_settings.read(recorded_settings.dump(plain))
    assert before is not None and not {"scope.deny", "page-type", "cap"} & before.keys()
    assert recorded_settings.restored(before, ruled).map_hash == plain.map_hash
    # As programs before these rules computed it.
    entry = QualityEntry("a.test", ("https://a.test/", "https://a.test/x"))
    old = Config(
        quality=(entry, QualityEntry("*.b.test", ("https://b.test/",))), blacklist=("x.test",), stub=("*.y.test",)
    )
    assert old.map_hash == "843893537974af8664bf0f806766e36487963a5a9e8b31bdcbac7650152563a2"


def test_a_seed_out_of_scope_is_warned_about_and_dry_run_shows_the_rules(tmp_path: Path) -> None:
    config = loaded(tmp_path, BASE + RULES.replace("'/login'", "'a[.]test/$'"))
    found = [line for line in warnings(config) if "out of scope" in line]
    assert len(found) == 1 and found[0].startswith("quality[0]: the seed https://a.test/ will not be visited")
    text = describe(config)
    for words in (
        "scope: 1 rule that allow, 2 rules that deny",
        "page types: issue",
        "cap users: 5 pages a run for each user",
    ):
        assert words in text


def test_the_example_of_a_forge_is_a_valid_config() -> None:
    config = load(ROOT / "examples" / "forge.toml")
    assert len(config.page_types) == 8 and len(config.caps) == 5
    assert not [line for line in warnings(config) if "scope" in line]
