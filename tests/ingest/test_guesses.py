"""Pages that are tried without a link: when, how many, what ends it, and the same map in any order."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.database.digest import digest
from crawler.model.records import SITEMAP_KEY, GuessEvent, PageResult, Result, RunEvent, SitemapResult
from crawler.model.settings import Config, DiscoverySettings, ScopeSettings
from crawler.schedule.page_guesses import LET_IN
from tests.ingest.guessing import Answers, elsewhere, rows, walk
from tests.ingest.terrains import AT, ingest_all

SEED = "https://qa.test/0"
LIST = "https://qa.test/news"


def at(number: int, name: str = LIST) -> str:
    return f"{name}/page/{number}"


def site(linked: int, there: int, **others: dict[str, Any]) -> Answers:
    """A list of which the first page links `linked` pages, and no page links the next; `there` pages exist."""
    pages = {SEED: (LIST,), LIST: tuple(at(n) for n in range(2, linked + 1))}
    pages |= {at(n): (LIST, f"https://qa.test/story/{n}") for n in range(2, there + 1)}
    pages |= {f"https://qa.test/story/{n}": () for n in range(2, there + 1)}
    return Answers(pages, {at(int(name[1:])): members for name, members in others.items()})


@pytest.fixture
def rules(rules: Config) -> Config:
    return replace(rules, discovery=DiscoverySettings(sitemaps=False, pagination="speculate"))


def test_the_page_after_the_last_linked_one_is_tried_until_one_is_missing(rules: Config) -> None:
    walked = walk(rules, site(3, 5))
    assert walked.events() == [*(("guessed", at(n)) for n in (4, 5, 6)), ("ended", "dead-link")]
    found = dict(walked.ask("SELECT url, origin || ' ' || state || ' ' || depth FROM pages"))
    assert found[at(4)] == found[at(5)] == "speculated processed 0"
    assert found[at(6)] == "speculated dead_link 0"
    assert found["https://qa.test/story/5"] == "linked processed 0"
    assert walked.ask(f"SELECT 1 FROM links JOIN pages ON pages.id = to_page_id WHERE url = '{at(4)}'") == []
    rule = "SELECT form, ended_by, ended_run FROM pagination_rules"
    assert walked.ask(rule) == [("https://qa.test/news/page/{n}", "dead-link", 1)]


ENDS = {
    "dead-link": {"state": "dead_link", "status": 410},
    "redirect": {"status": 302, "redirect": "https://qa.test/news"},
    "soft-404": {"validation": "soft", "rejection_reason": "soft-404: by its title"},
    "same-text": {"text_print": 77},
    "failed": {"state": "failed", "error": "robots-denied: x"},
}


@pytest.mark.parametrize("reason", ENDS)
def test_what_comes_of_a_guess_ends_the_list(rules: Config, reason: str) -> None:
    walked = walk(rules, site(3, 9, p2={"text_print": 77}, p5=ENDS[reason]))
    assert walked.events() == [("guessed", at(4)), ("guessed", at(5)), ("ended", reason)]


@pytest.mark.parametrize("is_front_page_too", [False, True])
def test_a_page_that_shows_what_the_domain_shows_for_missing_ones_ends_the_list(
    rules: Config, is_front_page_too: bool
) -> None:
    """Unless the front page shows that, too: then it tells nothing."""
    answers = site(3, 9, p5={"text_print": 404})
    answers.links[SEED] = (LIST, "https://qa.test/gone", "https://qa.test/")
    answers.others["https://qa.test/gone"] = {"state": "dead_link", "status": 404, "text_print": 404}
    answers.others["https://qa.test/"] = {"text_print": 404 if is_front_page_too else 405}
    walked = walk(rules, answers)
    begins = [("guessed", at(4)), ("guessed", at(5)), ("ended", "soft-404")]
    assert (walked.events()[:3] == begins) is not is_front_page_too
    assert (walked.ask(f"SELECT validation FROM pages WHERE url = '{at(5)}'") == [("soft",)]) is not is_front_page_too


def test_a_guess_that_is_out_of_scope_is_not_made_and_ends_the_list(rules: Config) -> None:
    narrow = replace(rules, scope=ScopeSettings(deny=(r"/news/page/[5-9]",)))
    assert walk(narrow, site(3, 9)).events() == [("guessed", at(4)), ("ended", "out-of-scope")]


def test_a_page_with_nothing_new_ends_the_list(rules: Config) -> None:
    answers = site(3, 9)
    answers.links[at(5)] = (LIST, "https://qa.test/story/2")
    assert walk(rules, answers).events() == [("guessed", at(4)), ("guessed", at(5)), ("ended", "nothing-new")]


def test_a_list_has_its_share_of_guesses_in_a_run(rules: Config) -> None:
    few = replace(rules, discovery=replace(rules.discovery, max_list_guesses=3))
    walked = walk(few, site(3, 40))
    assert walked.events() == [*(("guessed", at(n)) for n in (4, 5, 6)), ("ended", "limit")]


@pytest.mark.parametrize("linked", [2, 1])
def test_two_pages_of_a_list_must_be_linked(rules: Config, linked: int, tmp_path: Path) -> None:
    answers = site(linked, 3)
    # The list's first page and its second are two; a lonely number is no list.
    answers.links[SEED] = (LIST,) if linked == 2 else (at(3),)
    assert bool(walk(rules, answers).events()) is (linked == 2)


def test_outside_quality_domains_and_without_the_switch_nothing_is_tried(rules: Config, tmp_path: Path) -> None:
    off = replace(elsewhere(rules, tmp_path), discovery=DiscoverySettings(sitemaps=False, pagination="label"))
    assert walk(off, site(3, 5)).events() == []
    far = "https://one.test/news"
    answers = Answers({SEED: (far,), far: (at(2, far), at(3, far)), at(2, far): (), at(3, far): (), at(4, far): ()})
    assert walk(rules, answers).events() == []


def test_a_list_that_names_its_next_page_or_ends_by_its_own_links_is_left_alone(rules: Config) -> None:
    answers = site(3, 3, p3={"state": "dead_link", "status": 404})
    assert walk(rules, answers).events() == []


def test_one_guess_of_a_domain_is_outstanding_at_a_time(rules: Config) -> None:
    answers = site(3, 5)
    other = "https://qa.test/essays"
    answers.links |= {SEED: (LIST, other), other: (at(2, other), at(3, other))}
    answers.links |= {at(n, other): (f"https://qa.test/story/{n}",) for n in range(2, 6)}
    walked = walk(rules, answers)
    assert walked.most_outstanding == 1
    assert ("guessed", at(4, other)) in walked.events() and ("guessed", at(4)) in walked.events()


def test_a_guess_becomes_linked_when_a_link_turns_up(rules: Config) -> None:
    answers = site(3, 5)
    answers.links["https://qa.test/story/4"] = (at(4),)
    walked = walk(rules, answers)
    assert walked.ask(f"SELECT origin FROM pages WHERE url = '{at(4)}'") == [("linked",)]


def test_the_next_run_tries_again_and_comes_as_far(rules: Config) -> None:
    walked = walk(rules, site(3, 5), runs=2)
    once = [*(("guessed", at(n)) for n in (4, 5, 6)), ("ended", "dead-link")]
    assert walked.events() == once + once
    assert walked.ask(f"SELECT visited_run, origin FROM pages WHERE url = '{at(5)}'") == [(2, "speculated")]


def test_guesses_are_asked_for_as_the_site_writes_its_addresses(rules: Config) -> None:
    answers = site(3, 4)
    answers.links[LIST] = ("https://www.qa.test/news/page/2/", "https://www.qa.test/news/page/3/")
    tried = [event.wire for event in walk(rules, answers).results if isinstance(event, GuessEvent) and event.wire]
    assert tried == ["https://www.qa.test/news/page/4/", "https://www.qa.test/news/page/5/"]


# -- archives ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def dated(rules: Config) -> Config:
    return replace(rules, discovery=DiscoverySettings(sitemaps=False, archives=True, pagination="speculate"))


def posts(*months: str, lists: tuple[str, ...] = ()) -> Answers:
    """A post of each month, linked from the front; the pages of the months in `lists` are there, with one post more."""
    links = {SEED: tuple(f"https://qa.test/{month}/post" for month in months)}
    links |= {f"https://qa.test/{month}/post": () for month in months}
    for month in lists:
        links |= {f"https://qa.test/{month}": (f"https://qa.test/{month}/lost",), f"https://qa.test/{month}/lost": ()}
    return Answers(links)


def test_archives_above_linked_pages_are_tried_the_latest_first_until_one_is_missing(dated: Config) -> None:
    walked = walk(dated, posts("2020/01", "2021/02", "2022/03", lists=("2022/03",)))
    assert walked.events() == [
        ("guessed", "https://qa.test/2022"),
        ("ended", "dead-link"),
        ("guessed", "https://qa.test/2022/03"),
        ("guessed", "https://qa.test/2021/02"),
        ("ended", "dead-link"),
    ]
    found = dict(walked.ask("SELECT url, origin || ' ' || state || ' ' || depth FROM pages"))
    assert found["https://qa.test/2022/03"] == "archive processed 0"
    assert found["https://qa.test/2022/03/lost"] == "linked processed 0"
    assert "https://qa.test/2020/01" not in found
    assert walked.most_outstanding == 1


def test_an_archive_that_is_linked_is_not_tried_and_there_is_a_bound(dated: Config) -> None:
    answers = posts("2021/02", "2022/03", lists=("2021/02", "2022/03", "2022", "2021"))
    answers.links[SEED] += ("https://qa.test/2022/03",)
    few = replace(dated, discovery=replace(dated.discovery, max_archive_pages=2))
    guessed = [address for event, address in walk(few, answers).events() if event == "guessed"]
    assert guessed == ["https://qa.test/2022", "https://qa.test/2021"]


def test_an_archive_that_is_there_and_leads_nowhere_is_tried_once(dated: Config) -> None:
    answers = posts("2022/03")
    answers.links["https://qa.test/2022"] = ()  # no page below it comes to light
    guessed = [address for event, address in walk(dated, answers).events() if event == "guessed"]
    assert guessed == ["https://qa.test/2022", "https://qa.test/2022/03"]


def test_archives_are_off_by_default_and_only_of_quality_domains(rules: Config, dated: Config, tmp_path: Path) -> None:
    assert walk(elsewhere(rules, tmp_path), posts("2022/03", lists=("2022/03",))).events() == []
    assert walk(dated, Answers({SEED: ("https://one.test/2022/03/post",)})).events() == []


def test_the_next_run_tries_archives_again(dated: Config) -> None:
    walked = walk(dated, posts("2022/03", lists=("2022/03",)), runs=2)
    half = len(walked.events()) // 2
    assert walked.events()[:half] == walked.events()[half:]
    assert walked.ask("SELECT visited_run FROM pages WHERE url = 'https://qa.test/2022/03/lost'") == [(2,)]


# -- outside of quality domains ---------------------------------------------------------------------------------------

FAR = "https://one.test/news"


@pytest.fixture
def far(rules: Config) -> Config:
    return replace(rules, discovery=DiscoverySettings(pagination="speculate", elsewhere=True))


def surroundings(*, is_linked: bool = True) -> Answers:
    """A list outside of quality domains that goes on after its last link; its host has pages for sitemaps to name."""
    pages = {SEED: (FAR,) if is_linked else (), FAR: (at(2, FAR), at(3, FAR))}
    pages |= {at(n, FAR): (f"https://one.test/story/{n}",) for n in range(2, 5)}
    pages |= {f"https://one.test/hidden/{n}": ("https://one.test/deep", "https://qa.test/new") for n in range(3)}
    return Answers(pages)


def named(*urls: str, at_host: str = "one.test") -> SitemapResult:
    """A sitemap on another host, which the robots.txt of a quality domain announces."""
    url = f"https://{at_host}/sitemap.xml"
    return SitemapResult(1, SITEMAP_KEY + url, url, at_host, AT, "qa.test", 1, "urlset", urls=urls)


HIDDEN = tuple(f"https://one.test/hidden/{n}" for n in range(3))


def test_elsewhere_a_list_goes_on_where_it_is_within_reach(far: Config) -> None:
    walked = walk(far, surroundings())
    assert walked.events() == [("guessed", at(4, FAR)), ("guessed", at(5, FAR)), ("ended", "dead-link")]
    found = dict(walked.ask("SELECT url, origin || ' ' || state || ' ' || coalesce(depth, '-') FROM pages"))
    assert found[at(4, FAR)] == "speculated processed -" and found[at(5, FAR)] == "speculated dead_link -"
    assert found["https://one.test/story/4"] == "linked discovered -", "only links carry depth"


def test_elsewhere_a_page_of_a_sitemap_is_visited_where_its_host_is_within_reach(far: Config, tmp_path: Path) -> None:
    plain = replace(far, discovery=DiscoverySettings(elsewhere=True))
    sitemap = named(*HIDDEN)
    walked = walk(plain, surroundings(), extra=[sitemap])
    assert sorted(walked.events()) == [("guessed", url) for url in HIDDEN]
    found = dict(walked.ask("SELECT url, origin || ' ' || state || ' ' || coalesce(depth, '-') FROM pages"))
    assert {found[url] for url in HIDDEN} == {"sitemap processed -"}
    assert found["https://one.test/deep"] == "linked discovered -", "only links carry depth"
    assert found["https://qa.test/new"] == "linked dead_link 0", "inside a quality domain any link is enough"
    for number, (config, answers) in enumerate(
        ((plain, surroundings(is_linked=False)), (replace(far, discovery=DiscoverySettings()), surroundings()))
    ):
        walked = walk(elsewhere(config, tmp_path / str(number)), answers, extra=[sitemap])
        assert walked.events() == []
        assert walked.ask(f"SELECT DISTINCT state FROM pages WHERE url IN {HIDDEN}") == [("discovered",)]


def test_elsewhere_pages_of_a_sitemap_are_let_in_some_at_a_time_and_none_that_scope_or_lists_forbid(
    far: Config, tmp_path: Path
) -> None:
    many = tuple(f"https://one.test/hidden/{n}" for n in range(LET_IN + 20))
    forbidden = ("https://one.test/private", "https://bad.test/x", "https://two.test/out-of-reach")
    config = replace(far, scope=ScopeSettings(deny=("/private",)))
    walked = walk(config, surroundings(), extra=[named(*many, *forbidden)])
    guessed = [url for event, url in walked.events() if event == "guessed"]
    assert set(guessed).isdisjoint(forbidden) and set(many) < set(guessed)
    first = walked.results.index(next(r for r in walked.results if isinstance(r, PageResult) and "hidden" in r.key))
    assert sum(isinstance(r, GuessEvent) and r.way == "sitemap" for r in walked.results[:first]) == LET_IN


def told(path: Path) -> tuple[Any, ...]:
    return (
        digest(path),
        tuple(sorted(rows(path, "SELECT form, ended_by FROM pagination_rules"))),
        tuple(sorted(rows(path, "SELECT form, ended_by FROM archive_rules"))),
        tuple(sorted(rows(path, "SELECT url, origin, state, depth FROM pages"))),
        tuple(sorted(rows(path, "SELECT url, way, g.run FROM guesses g JOIN pages USING (id)"))),
    )


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.randoms(use_true_random=False), batch=st.integers(1, 9), linked=st.integers(3, 5))
def test_any_order_of_visits_and_of_replay_gives_the_same_map(
    dated: Config, tmp_path_factory: pytest.TempPathFactory, order: random.Random, batch: int, linked: int
) -> None:
    rules = dated
    answers = site(linked, 7)
    months = posts("2020/01", "2022/03", lists=("2020/01", "2022/03"))
    answers.links |= {key: (*answers.links.get(key, ()), *hrefs) for key, hrefs in months.links.items()}
    calm = walk(elsewhere(rules, tmp_path_factory.mktemp("calm")), answers)
    other = walk(elsewhere(rules, tmp_path_factory.mktemp("other")), answers, order)
    assert told(other.map) == told(calm.map)
    results: list[Result] = [result for result in other.results if not isinstance(result, RunEvent)]
    order.shuffle(results)
    again = elsewhere(rules, tmp_path_factory.mktemp("again"))
    replayed = ingest_all(again, [*results, results[0], RunEvent(1, AT, "finished")], batch)
    assert told(replayed) == told(calm.map)
    without = replace(again, discovery=DiscoverySettings(sitemaps=False))
    without = replace(without, output=replace(without.output, database_path=again.workspace.parent / "off.db"))
    assert digest(ingest_all(without, [*results, RunEvent(1, AT, "finished")], batch)) == digest(calm.map)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.randoms(use_true_random=False), batch=st.integers(1, 9))
def test_elsewhere_too_any_order_of_visits_and_of_replay_gives_the_same_map(
    far: Config, tmp_path_factory: pytest.TempPathFactory, order: random.Random, batch: int
) -> None:
    answers = surroundings()
    answers.links["https://one.test/hidden/1"] = (at(7, FAR), "https://one.test/hidden/2", "https://two.test/")
    sitemap = named(*HIDDEN, at(3, FAR), "https://two.test/hidden")
    calm = walk(elsewhere(far, tmp_path_factory.mktemp("calm")), answers, extra=[sitemap])
    other = walk(elsewhere(far, tmp_path_factory.mktemp("other")), answers, order, extra=[sitemap])
    assert told(other.map) == told(calm.map)
    results: list[Result] = [result for result in other.results if not isinstance(result, RunEvent)]
    order.shuffle(results)
    again = elsewhere(far, tmp_path_factory.mktemp("again"))
    assert told(ingest_all(again, [*results, results[0], RunEvent(1, AT, "finished")], batch)) == told(calm.map)


def test_a_guess_and_a_sitemap_of_one_page_agree_in_any_order(rules: Config) -> None:
    guess = GuessEvent(1, "qa.test", AT, "guessed", "speculated", "https://qa.test/news/page/{n}", at(4))
    url = "https://qa.test/sitemap.xml"
    named = SitemapResult(1, SITEMAP_KEY + url, url, "qa.test", AT, "qa.test", 1, "urlset", urls=(at(4),))
    visit = PageResult(1, at(4), at(4), "qa.test", AT, "processed")
    found = set()
    for number, order in enumerate(([guess, named, visit], [named, guess, visit], [visit, guess, named])):
        there = replace(
            rules, output=replace(rules.output, database_path=rules.output.database_path.with_name(f"{number}"))
        )
        found.add(tuple(rows(ingest_all(there, order, 1), f"SELECT origin, state FROM pages WHERE url = '{at(4)}'")))
    assert found == {(("sitemap", "processed"),)}
