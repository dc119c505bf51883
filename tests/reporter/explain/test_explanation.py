"""`sumi-ripple explain`: the witness is checked edge by edge, and every state has its advice."""

from __future__ import annotations

import dataclasses
import itertools
import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.config import load as configuration
from crawler.database.errors import NotAMap
from crawler.model.settings import Config
from crawler.model.states import PageState
from crawler.model.urls import UrlError, domain_of
from reporter.explain.explanation import Explanation, explain
from tests.reporter.terrain import FOLLOWED, NOT_FOLLOWED, REDIRECT, MapBuilder, config_for, plain_depths, rich_map

ORIGINS = ("q.test", "*.wild.test")


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rich_map(tmp_path_factory.mktemp("rich") / "map.db")


@pytest.fixture
def config() -> Config:
    return config_for(ORIGINS, blacklist=("ads.test",), stub=("hub.test",))


def check_witness(database: Path, facts: Explanation) -> None:
    """Every path begins inside its origin, follows rows of `links`, and is as long as the depth says."""
    with sqlite3.connect(database) as connection:
        for entry in facts.depths:
            path = entry.path
            assert path, f"no way shown from {entry.origin}"
            base = entry.origin.removeprefix("*.")
            assert domain_of(path[0].url) == base or domain_of(path[0].url).endswith("." + base)
            assert (path[0].via, path[0].depth) == ("start", 0)
            assert path[-1].url == facts.key
            assert path[-1].depth == entry.depth
            for before, after in itertools.pairwise(path):
                (kind,) = connection.execute(
                    "SELECT l.kind FROM links l JOIN pages f ON f.id = l.from_page_id"
                    " JOIN pages t ON t.id = l.to_page_id WHERE f.url = ? AND t.url = ?",
                    (before.url, after.url),
                ).fetchone()
                assert kind == (FOLLOWED if after.via == "link" else REDIRECT)
                assert after.depth - before.depth == (1 if after.via == "link" else 0)


def test_every_page_of_a_map_has_a_witness_for_every_depth(database: Path, config: Config) -> None:
    with sqlite3.connect(database) as connection:
        urls = [url for (url,) in connection.execute("SELECT url FROM pages")]
        depths = connection.execute("SELECT count(*) FROM page_depths").fetchone()[0]
    found = 0
    for url in urls:
        facts = explain(config, database, url)
        check_witness(database, facts)
        found += len(facts.depths)
    assert found == depths > 50


_EDGES = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from([FOLLOWED, FOLLOWED, NOT_FOLLOWED, REDIRECT])),
    max_size=40,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=_EDGES, reverse=st.booleans())
def test_on_any_terrain_the_witness_is_a_shortest_path(
    tmp_path_factory: pytest.TempPathFactory, edges: list[tuple[int, int, int]], reverse: bool
) -> None:
    """Redirect loops, chains and short cuts included, with and without the reverse index."""
    hosts = ["q.test", "q.test", "a.wild.test", "wild.test"] + [f"h{number % 4}.test" for number in range(8)]
    urls = [f"https://{host}/{number}" for number, host in enumerate(hosts)]
    b = MapBuilder(tmp_path_factory.mktemp("graph") / "map.db", ORIGINS)
    for url in urls:
        b.page(url)
    redirecting = {source for source, _, kind in edges if kind == REDIRECT}
    for source, target, kind in edges:
        # A page that redirects has that one edge.
        if source != target and (source not in redirecting or kind == REDIRECT):
            if kind == REDIRECT:
                if source not in redirecting:
                    continue
                redirecting.discard(source)
                redirecting.add(-1 - source)
            elif -1 - source in redirecting:
                continue
            b.link(urls[source], urls[target], kind)
    path = b.save(reverse_index=reverse)
    config = config_for(ORIGINS)
    with sqlite3.connect(path) as connection:
        expected = {origin: plain_depths(connection, origin, 3, 1) for origin in ORIGINS}
    for url in urls:
        facts = explain(config, path, url)
        check_witness(path, facts)
        for entry in facts.depths:
            assert expected[entry.origin][b.pages[url]] == entry.depth


def test_a_way_through_redirects_is_shown_as_one(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    urls = ["https://q.test/", "https://a.test/", "https://b.test/", "https://c.test/"]
    for url in urls:
        b.page(url)
    b.link(urls[0], urls[1])
    b.link(urls[1], urls[2], REDIRECT)
    b.link(urls[2], urls[3], REDIRECT)
    path = b.save()
    facts = explain(config_for(), path, urls[3])
    assert [(step.url, step.via, step.depth) for step in facts.depths[0].path] == [
        (urls[0], "start", 0),
        (urls[1], "link", 1),
        (urls[2], "redirect", 1),
        (urls[3], "redirect", 1),
    ]
    assert explain(config_for(), path, urls[1]).redirects_from_here == (urls[2], urls[3])


def test_a_link_that_is_not_followed_is_no_way(tmp_path: Path) -> None:
    for reverse in (False, True):
        b = MapBuilder(tmp_path / f"{reverse}.db")
        for url in ("https://q.test/a", "https://q.test/b", "https://x.test/"):
            b.page(url)
        b.link("https://q.test/a", "https://x.test/", NOT_FOLLOWED)
        b.link("https://q.test/b", "https://x.test/")
        facts = explain(config_for(), b.save(reverse_index=reverse), "https://x.test/")
        assert [step.url for step in facts.depths[0].path] == ["https://q.test/b", "https://x.test/"]


def test_a_redirect_of_an_earlier_run_is_no_way(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db", run=2)
    b.add_run(1)
    b.add_run(2)
    for url in ("https://q.test/then", "https://q.test/now", "https://x.test/"):
        b.page(url)
    b.link("https://q.test/then", "https://x.test/", REDIRECT, last_run=1)
    b.link("https://q.test/now", "https://x.test/", REDIRECT)
    facts = explain(config_for(), b.save(), "https://x.test/")
    assert [link.url for link in facts.linked_from] == ["https://q.test/now"]
    assert [(step.url, step.via) for step in facts.depths[0].path] == [
        ("https://q.test/now", "start"),
        ("https://x.test/", "redirect"),
    ]


def test_the_config_line_that_decides_is_named(tmp_path: Path) -> None:
    source = tmp_path / "my.toml"
    source.write_text(
        '[[quality]]\ndomain = "q.test"\nseeds = ["https://q.test/"]\n\n'
        '[[stub]]\ndomain = "other.test"\n\n'
        '[[blacklist]]\n# ours\n"domain" = \'*.ADS.test\'\n\n[[stub]]\ndomain = "*.ads.test"\n'
    )
    config = configuration.load(source)
    facts = explain(config, None, "https://x.ads.test/page")
    assert (facts.klass, facts.rule, facts.rule_list, facts.rule_line) == ("blacklisted", "*.ads.test", "blacklist", 10)
    assert '[[blacklist]] domain = "*.ads.test" (my.toml:10)' in facts.text()
    assert "the domain would be stubbed" in facts.text()
    assert explain(config, None, "https://q.test/").rule_line == 2
    assert explain(config, None, "https://other.test/").rule_line == 6


def test_key_and_wire_are_told_apart(database: Path, config: Config) -> None:
    facts = explain(config, database, "http://www.never.test/a/?utm_source=x&b=2&a=1#top")
    assert facts.key == "https://never.test/a?a=1&b=2"
    assert facts.wire == "https://www.never.test/a/?utm_source=x&b=2&a=1"
    assert "asked for as" in facts.text()


def test_what_is_no_url_is_refused(database: Path, config: Config) -> None:
    for url in ("mailto:a@b.test", "not a url", "ftp://x.test/"):
        with pytest.raises(UrlError):
            explain(config, database, url)


def test_a_file_that_is_no_map_is_refused(tmp_path: Path, config: Config) -> None:
    (tmp_path / "x.db").write_text("x" * 5000)
    with pytest.raises(NotAMap):
        explain(config, tmp_path / "x.db", "https://q.test/")


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
        ("https://cal.test/day?n=9", "[traps] max-query-variants must be raised (it is 200"),
        ("https://never.test/a/a/a/a/a/a", "[traps] max-path-repeats must be raised (it is 3"),
    ],
)
def test_a_url_never_seen_is_told_what_would_happen(database: Path, config: Config, url: str, words: str) -> None:
    facts = explain(config, database, url)
    assert not facts.is_known
    assert words in facts.text()
    assert "never seen" in facts.text()


def test_before_the_first_crawl_the_config_alone_answers(tmp_path: Path, config: Config) -> None:
    for database in (None, tmp_path / "none.db"):
        facts = explain(config, database, "https://q.test/x")
        assert (facts.klass, facts.is_known, facts.newest_run) == ("quality", False, None)
        assert "nothing has been crawled yet" in facts.text()


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


@pytest.mark.parametrize("reverse", [False, True])
def test_who_links_here_is_counted_whole_and_shown_in_part(tmp_path: Path, reverse: bool) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://popular.test/")
    for number in range(50):
        url = f"https://{'q' if number < 25 else f's{number}'}.test/{number}"
        b.page(url)
        b.link(url, "https://popular.test/", FOLLOWED if number else NOT_FOLLOWED)
    facts = explain(config_for(), b.save(reverse_index=reverse), "https://popular.test/")
    assert facts.linked_from_total == 50
    assert len(facts.linked_from) == 20
    assert {link.kind for link in facts.linked_from} == {"link", "nofollow"}
    assert "50 pages" in facts.text() and "... and 44 more pages" in facts.text()


def test_a_page_of_an_earlier_run_says_so(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db", run=2)
    b.add_run(1)
    b.add_run(2)
    b.page("https://q.test/")
    b.page("https://old.test/", "failed", error_message="http-500: x", seen_run=1, visited_run=1)
    facts = explain(config_for(), b.save(), "https://old.test/")
    assert "run 2 has not seen it" in facts.text()
    assert "must link to it again" in facts.text()


def test_a_map_drawn_under_another_config_is_noticed(database: Path) -> None:
    facts = explain(config_for(ORIGINS, blacklist=("friend.test",)), database, "https://friend.test/")
    assert "in the map it is discovered" in facts.text()


def test_the_json_is_whole_and_versioned(database: Path, config: Config) -> None:
    shape = json.loads(explain(config, database, "https://friend.test/deep").json())
    assert (shape["v"], shape["kind"], shape["class"]) == (1, "explanation", "discovered")
    names = {field.name for field in dataclasses.fields(Explanation)} - {"klass"} | {"v", "kind", "class"}
    assert set(shape) == names
    paths = {entry["origin"]: entry["path"] for entry in shape["depths"]}
    assert paths["q.test"][0] == {"url": "https://q.test/", "depth": 0, "via": "start"}


def test_hostile_titles_and_errors_reach_no_terminal(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/", title="\x1b[31m\u202eevil\nsecond line", error_message="\x1b]0;x\x07")
    text = explain(config_for(), b.save(), "https://q.test/").text()
    assert not set(text) & set("\x1b\x07\u202e")
    assert "evil second line" in text
