"""Scope, parts of a site, page types and caps, by keys; and expressions that no key can make slow."""

from __future__ import annotations

import resource

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.records import FamilyEvent
from crawler.model.settings import CapRule, Config, PageTypeRule, QualityEntry, ScopeSettings
from crawler.rules.lists import Classifier, DomainClass, is_below
from crawler.rules.page_rules import CapUnit, PageRules, is_cap_in_force, rule_text
from crawler.rules.patterns import KeyPattern, PatternError

LAB = QualityEntry("uni.test", ("https://uni.test/~lab",), "/~lab")


def rules(**settings: object) -> PageRules:
    return PageRules(Config(**settings))  # type: ignore[arg-type]


# -- expressions -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [r"(a+)+$", r"(a|a)*b", r"(.*)(.*)(.*)(.*)x$", r"((a?){20}){10}a{40}$", r"(\w*\.?)*!"])
def test_an_expression_that_hangs_other_engines_takes_linear_time(text: str) -> None:
    """CPU seconds of this process: a backtracking engine would need longer than the test may."""
    pattern = KeyPattern(text)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    pattern.matches("https://a.test/" + "a" * 16_000 + "?")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_utime - before < 5


@pytest.mark.parametrize(
    "text",
    ["", "(", "[z-a]", r"(?=look)", r"(a)\1", "a{1001}", "((a{100}){100}){100}", "x" * 1001, "/über", r"\p{L}{900}"],
)
def test_an_expression_that_cannot_be_bounded_or_read_is_refused(text: str) -> None:
    with pytest.raises(PatternError) as problem:
        KeyPattern(text)
    assert str(problem.value)


def test_a_group_is_asked_for_by_name_number_or_as_the_one_there_is() -> None:
    pattern = KeyPattern(r"test/(?P<user>[^/]+)/([^/]+)")
    assert [pattern.captured("https://a.test/x/y", name) for name in ("user", "1", "2", "group")] == [
        "x",
        "x",
        "y",
        "x",
    ]
    assert pattern.captured("https://a.test", "user") is None
    assert KeyPattern("/(a)?b").captured("https://x.test/b", "1") == ""


# -- scope -------------------------------------------------------------------------------------------------------


def test_deny_beats_allow_and_names_its_rule() -> None:
    found = rules(scope=ScopeSettings(allow=("^https://a[.]test/",), deny=("/login",)))
    assert found.scope_error("https://a.test/x", "a.test") is None
    assert found.scope_error("https://a.test/login", "a.test") == 'out-of-scope: denied by [scope] deny = "/login"'
    assert found.scope_error("https://b.test/x", "b.test") == "out-of-scope: no allow of [scope] matches"


def test_the_rules_of_an_entry_hold_inside_of_it_alone_and_besides_those_for_everything() -> None:
    entry = QualityEntry("*.a.test", (), scope=ScopeSettings(allow=("/blog/",), deny=("/draft",)))
    found = rules(quality=(entry,), scope=ScopeSettings(deny=("/tag/",)))
    assert found.scope_rule("https://a.test/blog/x", "a.test") is None
    assert str(found.scope_rule("https://b.a.test/x", "b.a.test")) == "no allow of [[quality]] *.a.test matches"
    assert (
        str(found.scope_rule("https://a.test/blog/draft", "a.test")) == 'denied by [[quality]] *.a.test deny = "/draft"'
    )
    assert str(found.scope_rule("https://a.test/blog/tag/", "a.test")) == 'denied by [scope] deny = "/tag/"'
    assert found.scope_rule("https://other.test/draft", "other.test") is None


@given(
    st.lists(st.sampled_from("abc"), max_size=3),
    st.lists(st.sampled_from("abc"), max_size=3),
    st.text("abcd", max_size=4),
)
def test_a_page_is_in_scope_if_no_deny_and_some_allow_matches(allow: list[str], deny: list[str], path: str) -> None:
    found = rules(scope=ScopeSettings(tuple(allow), tuple(deny)))
    is_in = not any(letter in path for letter in deny) and (not allow or any(letter in path for letter in allow))
    assert (found.scope_rule(f"https://9.zz/{path}", "9.zz") is None) == is_in


# -- parts of a site ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [("/~lab", True), ("/~lab/x", True), ("/~lab?x=1", True), ("/~labor", False), ("/", False), ("/x/~lab", False)],
)
def test_a_part_holds_its_path_and_all_below(path: str, is_inside: bool) -> None:
    key = f"https://uni.test{path}"
    verdict = Classifier(Config(quality=(LAB,))).classify("uni.test")
    assert is_below("/~lab", key) == is_inside
    assert verdict.klass is DomainClass.QUALITY and verdict.rule == "uni.test/~lab/"
    assert verdict.origins_of(key) == ((0,) if is_inside else ())
    assert verdict.class_of(key) is (DomainClass.QUALITY if is_inside else DomainClass.DISCOVERED)


def test_a_site_in_whole_and_in_part_gives_an_origin_for_each() -> None:
    verdict = Classifier(Config(quality=(LAB, QualityEntry("*.uni.test", ())))).classify("uni.test")
    assert verdict.rule == "*.uni.test"
    assert verdict.origins_of("https://uni.test/~lab/x") == (0, 1)
    assert verdict.origins_of("https://uni.test/x") == (1,)
    assert verdict.class_of("https://uni.test/x") is DomainClass.QUALITY


def test_a_listed_domain_stays_listed_whatever_its_parts_are() -> None:
    verdict = Classifier(Config(quality=(LAB,), blacklist=("uni.test",))).classify("uni.test")
    assert verdict.class_of("https://uni.test/~lab/x") is DomainClass.BLACKLISTED


# -- types and caps ----------------------------------------------------------------------------------------------


def test_the_first_type_that_matches_counts() -> None:
    found = rules(page_types=(PageTypeRule("issue", r"/issues/\d+$"), PageTypeRule("list", "/issues")))
    keys = ("https://f.test/issues/7", "https://f.test/issues", "https://f.test")
    assert [found.type_of(key) for key in keys] == ["issue", "list", None]


def test_a_page_counts_in_every_cap_that_it_is_under() -> None:
    per_user = CapRule("users", "^https://f[.]test/(?P<user>[^/]+)", 5, "user")
    all_ = CapRule("forge", "^https://f[.]test/", 50)
    units = rules(caps=(per_user, all_)).caps_of("https://f.test/ann/pot")
    assert units == (CapUnit(per_user, "ann"), CapUnit(all_, ""))
    assert len({unit.number for unit in (*units, CapUnit(per_user, "bob"))}) == 3
    assert units[0].error == "cap-reached: 5 visits under the cap users for ann in this run"


def test_a_recorded_cap_holds_while_the_config_would_have_closed_it_too() -> None:
    rule = CapRule("users", "/(.*)", 5, "1")
    unit = CapUnit(rule, "ann")
    event = FamilyEvent(1, "", "", unit.family, unit.error, 5, (), rule_text(rule))
    assert is_cap_in_force(event, [rule])
    assert is_cap_in_force(event, [CapRule("users", "/(.*)", 3, "1")])
    assert not is_cap_in_force(event, [CapRule("users", "/(.*)", 6, "1")])
    assert not is_cap_in_force(event, [CapRule("users", "/(.+)", 5, "1")])
    assert not is_cap_in_force(event, [])
