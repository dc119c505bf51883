"""Crawler traps: bounded by shape and by family (issue: a calendar without end, session ids, endless queries)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.settings import TrapSettings
from crawler.model.states import slug_of
from crawler.rules.traps import family_of, shape_error

TRAPS = TrapSettings()
OFF = TrapSettings(0, 0, 0, 0, 0)


def name(path: str, traps: TrapSettings = TRAPS) -> str | None:
    family = family_of("https://a.test" + path, traps)
    return family.name if family else None


# -- shape ---------------------------------------------------------------------------------------------------


def test_an_overlong_url_is_a_trap() -> None:
    key = "https://a.test/" + "x" * 100
    traps = TrapSettings(max_url_length=len(key))
    assert shape_error(key, traps) is None
    error = shape_error(key + "x", traps)
    assert error == "trap-url-length: the URL has 116 characters, more than 115"


def test_a_too_deep_path_is_a_trap_and_its_query_does_not_count() -> None:
    traps = TrapSettings(max_path_depth=3)
    assert shape_error("https://a.test/a/b/c", traps) is None
    assert shape_error("https://a.test/a?x=/b/c/d/e/f", traps) is None
    assert slug_of(shape_error("https://a.test/a/b/c/d", traps)) == "trap-path-depth"


@pytest.mark.parametrize("path", ["/a/b/a/b/a/b/a/b", "/x/x/x/x", "/x/1/x/2/x/3/x", "/a////////b", "/x/x/x/x/y?z"])
def test_one_segment_over_and_over_is_a_trap(path: str) -> None:
    assert slug_of(shape_error("https://a.test" + path, TRAPS)) == "trap-path-repeats"


@pytest.mark.parametrize("path", ["/", "/a", "/a/b/a/b/a/b", "/2024/1/1/1", "/a//b", "/x?x=/x/x/x/x"])
def test_ordinary_paths_are_no_traps(path: str) -> None:
    assert shape_error("https://a.test" + path, TRAPS) is None


def test_zero_turns_every_limit_off() -> None:
    for key in ("https://a.test/" + "x/" * 5000 + "x", "https://a.test/1?x=1", "https://a.test/1"):
        assert shape_error(key, OFF) is None
        assert family_of(key, OFF) is None


# -- families ------------------------------------------------------------------------------------------------


def test_keys_with_a_query_belong_to_the_family_of_their_path() -> None:
    family = family_of("https://a.test:8443/find?q=1&z=2", TrapSettings(max_query_variants=7))
    assert family is not None
    assert family == family_of("https://a.test:8443/find?other=x", TrapSettings(max_query_variants=7))
    assert family.limit == 7
    assert family.name == "a.test:8443/find?*"
    assert slug_of(family.error) == "trap-query-variants"
    assert name("/find?q=1") != name("/found?q=1")


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("/calendar/2024/05/01", "/calendar/1987/12/31"),
        ("/calendar/2024-05-01", "/calendar/1987-1-3"),
        ("/calendar/20240501T1200", "/calendar/20240502T0930"),
        ("/page/2", "/page/300"),
        ("/page-2", "/page-300"),
        ("/page2.html", "/page33.html"),
        ("/article123", "/article9"),
        ("/c/deadbeef0123", "/c/0123456789abcdef"),
        ("/u/550e8400-e29b-41d4-a716-446655440000/x", "/u/00000000-0000-4000-8000-000000000001/x"),
        ("/x;jsessionid=0A1B2C/y", "/x;jsessionid=ZZZ/y"),
        ("/x;sid=abc", "/x;sid=def"),
        ("/(S(abc123def))/x", "/(S(zzz999))/x"),
        ("/s/AbCdEfGh1234567890xYzQ/home", "/s/ZyXwVuTs0987654321aBcD/home"),
    ],
)
def test_paths_that_differ_only_in_numbers_dates_or_ids_are_one_family(one: str, two: str) -> None:
    assert name(one) is not None
    assert name(one) == name(two)
    family = family_of("https://a.test" + one, TRAPS)
    assert family is not None and family.limit == TRAPS.max_similar_paths
    assert slug_of(family.error) == "trap-similar-paths"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/about",
        "/top-10-things-to-do",
        "/facade",
        "/deadbeef",
        "/caf%C3%A9",
        "/a/b/c",
        "/a;b/c",
        "/h2o-facts",
        "/x.y.z",
    ],
)
def test_paths_with_nothing_to_count_stand_for_themselves(path: str) -> None:
    assert name(path) is None


def test_families_keep_other_words_and_domains_apart() -> None:
    assert name("/page/2") != name("/post/2")
    assert name("/page/2") != name("/page/2/x")
    assert family_of("https://a.test/1", TRAPS) != family_of("https://b.test/1", TRAPS)
    assert name("/x?a=1") != name("/x/1")


def test_errors_stay_short_and_readable() -> None:
    family = family_of("https://a.test/" + "x" * 1900 + "?a", TrapSettings(max_query_variants=1))
    assert family is not None
    assert len(family.error) < 220
    assert "1 visit of" in family.error
    error = shape_error("https://a.test" + "/" + "/".join(["y" * 300] * 5), TRAPS)
    assert error is not None and len(error) < 220


_PATHS = st.text(alphabet="aF09/-_.;=()%~?&xT:", max_size=60)


@given(_PATHS)
@settings(max_examples=300, deadline=None)
def test_every_key_has_at_most_one_family_and_it_is_the_same_each_time(path: str) -> None:
    key = "https://a.test/" + path
    assert family_of(key, TRAPS) == family_of(key, TRAPS)
    assert shape_error(key, TRAPS) == shape_error(key, TRAPS)


@pytest.mark.parametrize("piece", ["1", "1-", "a1", "(S(", "0a", ";a=", "aA1", "/1", "%31"])
def test_hostile_paths_cost_no_more_than_their_length(piece: str) -> None:
    """No clock is asserted: what is quadratic here would take minutes, and the test's time limit is the judge."""
    key = "https://a.test/" + piece * 100_000 + "/".join(map(str, range(50_000)))
    family = family_of(key, TRAPS)
    assert family is None or len(family.error) < 220
    assert shape_error(key, TrapSettings(max_url_length=0, max_path_depth=0)) is None or "/" in piece
