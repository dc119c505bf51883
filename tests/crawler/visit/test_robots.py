"""robots.txt by RFC 9309; each test names the section it checks."""

from __future__ import annotations

import pytest

from crawler.model.records import RobotsResult
from crawler.visit.robots import LONGEST_DELAY, MAX_BYTES, Verdict, parse, policy_of, text_of, verdict_of_status

URL = "https://site.test"


def allows(robots: str | bytes, path: str, agent: str = "SumiRipple") -> bool:
    return parse(robots).allows(URL + path, agent)


def test_a_group_that_names_the_crawler_hides_the_group_for_everyone() -> None:
    """§2.2.1"""
    robots = "User-agent: *\nDisallow: /\nUser-agent: sumiripple\nDisallow: /only\n"
    assert allows(robots, "/page")
    assert not allows(robots, "/only")
    assert not allows(robots, "/page", "OtherBot")


def test_a_product_token_is_matched_whole_and_in_any_case() -> None:
    """§2.2.1"""
    robots = "User-agent: SUMIRIPPLE/2.0 (some comment)\nDisallow: /\n"
    assert not allows(robots, "/")
    assert allows("User-agent: sumi\nDisallow: /\n", "/")
    assert allows("User-agent: sumiripple-images\nDisallow: /\n", "/")


def test_groups_of_one_agent_are_one_group() -> None:
    """§2.2.1"""
    robots = (
        "User-agent: sumiripple\nDisallow: /a\n\nUser-agent: x\nDisallow: /\n\nUser-agent: sumiripple\nDisallow: /b\n"
    )
    assert not allows(robots, "/a")
    assert not allows(robots, "/b")
    assert allows(robots, "/c")


def test_unknown_lines_and_sitemaps_end_no_group() -> None:
    """§2.2.4"""
    for line in ("Sitemap: https://site.test/map.xml", "Frobnicate: yes", "no colon at all here", "# comment", ""):
        robots = f"User-agent: sumiripple\n{line}\nUser-agent: other\nDisallow: /x\n"
        assert not allows(robots, "/x"), line
        assert not allows(robots, "/x", "other"), line


def test_rules_before_any_user_agent_count_for_nobody() -> None:
    assert allows("Disallow: /\n", "/")


def test_the_longest_path_decides_and_allow_wins_a_tie() -> None:
    """§2.2.2"""
    robots = "User-agent: *\nDisallow: /folder\nAllow: /folder/page\nDisallow: /same\nAllow: /same\n"
    assert allows(robots, "/folder/page")
    assert not allows(robots, "/folder/other")
    assert allows(robots, "/same")


def test_an_empty_disallow_forbids_nothing() -> None:
    assert allows("User-agent: *\nDisallow:\n", "/")


@pytest.mark.parametrize(
    ("rule", "path", "is_hit"),
    [
        ("/*.gif$", "/a/b.gif", True),
        ("/*.gif$", "/a/b.gif?x=1", False),
        ("/a*b*c", "/a-b-c-d", True),
        ("/a*b*c", "/a-c-b", False),
        ("/fish*", "/fish.html", True),
        ("/*", "/", True),
        ("/$", "/", True),
        ("/$", "/x", False),
        ("*/private", "/deep/private/x", True),
        ("/a$b", "/a$b", True),
        ("/**$", "/anything", True),
        ("/p*q$", "/pq", True),
        ("/ab*ab$", "/ab", False),
    ],
)
def test_star_and_final_dollar_are_the_only_special_characters(rule: str, path: str, is_hit: bool) -> None:
    """§2.2.3"""
    assert allows(f"User-agent: *\nDisallow: {rule}\n", path) is not is_hit


@pytest.mark.parametrize(
    ("rule", "path"),
    [
        ("/foo/bar/%62%61%7A", "/foo/bar/baz"),
        ("/foo/bar/baz", "/foo/bar/%62%61%7A"),
        ("/foo/bar/ツ", "/foo/bar/%E3%83%84"),
        ("/foo/bar/%e3%83%84", "/foo/bar/%E3%83%84"),
        ("/path/file-with-a-%2A.html", "/path/file-with-a-*.html"),
        ("/path/foo-%24", "/path/foo-$"),
        ("/a b", "/a%20b"),
        ("/q?x={1}", "/q?x=%7B1%7D"),
    ],
)
def test_percent_encodings_of_one_path_are_the_same(rule: str, path: str) -> None:
    """§2.2.2"""
    assert not allows(f"User-agent: *\nDisallow: {rule}\n", path)


def test_an_encoded_slash_is_not_a_slash() -> None:
    """§2.2.2: reserved characters stay as they are."""
    assert allows("User-agent: *\nDisallow: /a/b\n", "/a%2Fb")


def test_robots_txt_itself_may_always_be_asked_for() -> None:
    """§2.2.2"""
    assert allows("User-agent: *\nDisallow: /\n", "/robots.txt")
    assert not allows("User-agent: *\nDisallow: /\n", "/robots.txt.bak")


def test_a_bom_and_any_line_end_are_read_over() -> None:
    for end in (b"\n", b"\r\n", b"\r"):
        robots = b"\xef\xbb\xbf" + end.join([b"User-agent: *", b"Disallow: /x", b""])
        assert not allows(robots, "/x")


def test_what_lies_behind_500_kib_is_not_read() -> None:
    """§2.5"""
    filler = b"# " + b"x" * 97 + b"\n"
    head = b"User-agent: *\nDisallow: /early\n"
    robots = head + filler * (MAX_BYTES // len(filler) + 1) + b"Disallow: /late\n"
    assert not allows(robots, "/early")
    assert allows(robots, "/late")


def test_a_line_that_the_limit_cuts_is_dropped_rather_than_misread() -> None:
    head = b"User-agent: *\n" + b"#" * (MAX_BYTES - 14 - len("\nDisallow: /")) + b"\n"
    robots = head + b"Disallow: /only-this-one\n"
    assert robots[:MAX_BYTES].endswith(b"Disallow: /")
    assert allows(robots, "/page")


def test_text_that_is_not_utf_8_survives_being_stored() -> None:
    text = text_of(b"User-agent: *\nDisallow: /caf\xe9\n")
    assert parse(text).rule_for(URL + "/café", "SumiRipple") == "Disallow: /café"
    assert text_of(text) == text


def test_crawl_delay_may_have_fractions_and_the_longest_counts() -> None:
    rules = parse("User-agent: *\nCrawl-delay: 0.25\nDisallow: /x\nUser-agent: *\nCrawl-delay: 1.5\nDisallow: /y\n")
    assert rules.crawl_delay("SumiRipple") == 1.5
    assert parse("User-agent: *\nCrawl-delay: .5\n").crawl_delay("x") == 0.5
    assert parse("User-agent: *\nCrawl-delay: soon\n").crawl_delay("x") is None
    assert parse("User-agent: *\nCrawl-delay: -3\n").crawl_delay("x") is None


def test_crawl_delay_counts_for_the_agents_named_before_it() -> None:
    rules = parse("User-agent: slow\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /private\n")
    assert rules.crawl_delay("slow") == 10
    assert rules.crawl_delay("SumiRipple") is None
    assert not rules.allows(URL + "/private", "slow")


def test_the_deciding_line_can_be_named() -> None:
    rules = parse("User-agent: *\nDisallow: /a  # not this\nAllow: /a/b\n")
    assert rules.rule_for(URL + "/a/x", "SumiRipple") == "Disallow: /a  # not this"
    assert rules.rule_for(URL + "/a/b/c", "SumiRipple") == "Allow: /a/b"
    assert rules.rule_for(URL + "/z", "SumiRipple") is None


@pytest.mark.parametrize("junk", [b"", b"\0\0\0", b"\xff\xfe\x00", b"<html>404</html>", b":", b"::::", b"user-agent"])
def test_no_input_is_an_error(junk: bytes) -> None:
    assert allows(junk, "/")


@pytest.mark.timeout(20)  # a regular expression would take years
def test_a_hostile_pattern_cannot_make_matching_slow() -> None:
    rules = parse("User-agent: *\nDisallow: /" + "*a" * 5000 + "*b$\n")
    assert rules.allows(URL + "/" + "a" * 20_000, "SumiRipple")


def test_status_codes_say_read_allow_or_wait() -> None:
    """§2.3.1"""
    assert {verdict_of_status(status) for status in (200, 204, 206)} == {Verdict.PARSE}
    assert {verdict_of_status(status) for status in (400, 401, 403, 404, 410, 451)} == {Verdict.ALLOW_ALL}
    assert {verdict_of_status(status) for status in (429, 500, 503, 599, 301, 304, 100)} == {Verdict.DEFER}


def test_a_delay_is_never_rounded_down() -> None:
    result = RobotsResult(1, "d", "d", "", "parsed", 200, "", crawl_delay=0.1234)
    assert policy_of(result).crawl_delay_ms == 124


def test_a_file_of_16000_agents_and_as_many_rules_keeps_each_rule_once() -> None:
    """Every rule once stood in the group of every agent: 3.4 GB for 499 KB."""
    agents = "".join(f"User-agent: a{number}\n" for number in range(16_000))
    robots = agents + "".join(f"Disallow: /{number}\n" for number in range(13_000))
    rules = parse(robots)
    assert rules.count == 13_000
    assert not rules.allows(URL + "/12999", "a15999")
    assert parse(robots, "SumiRipple").count == 0, "none of them concerns us"
    assert parse(robots, "a7").count == 13_000


@pytest.mark.parametrize("agent", ["SumiRipple", "other", "third"])
def test_the_groups_that_concern_an_agent_decide_as_all_groups_do(agent: str) -> None:
    robots = (
        "User-agent: other\nUser-agent: *\nDisallow: /a\nCrawl-delay: 3\n\nUser-agent: sumiripple\nAllow: /a/b\n"
        "Disallow: /a\n\nUser-agent: *\nDisallow: /c\nCrawl-delay: 5\nUser-agent: third\nCrawl-delay: 7\n"
    )
    whole, own = parse(robots), parse(robots, agent)
    for path in ("/", "/a", "/a/b", "/c", "/d"):
        assert own.rule_for(URL + path, agent) == whole.rule_for(URL + path, agent)
    assert own.crawl_delay(agent) == whole.crawl_delay(agent)


@pytest.mark.parametrize("digits", [19, 20, 25, 400])
def test_a_delay_of_many_digits_is_too_long_and_not_ignored(digits: int) -> None:
    delay = parse(f"User-agent: *\nCrawl-delay: {'9' * digits}\n").crawl_delay("SumiRipple")
    assert delay == LONGEST_DELAY
    assert policy_of(RobotsResult(1, "a.test", "a.test", "", "parsed", 200, "", 1e25)).crawl_delay_ms < 2**32
