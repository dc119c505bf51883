"""The shortest path is checked edge by edge."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crawler.model.settings import Config
from crawler.model.urls import domain_of
from reporter.explain.explanation import Explanation, explain
from tests.reporter.explain.test_explanation import ORIGINS
from tests.reporter.terrain import FOLLOWED, NOT_FOLLOWED, REDIRECT, MapBuilder, config_for, plain_depths


def check_paths(database: Path, facts: Explanation) -> None:
    """Every path begins inside its origin, follows rows of `links`, and is as long as the depth says."""
    with sqlite3.connect(database) as connection:
        for entry in facts.depths:
            path = entry.path
            assert path, f"no path shown from {entry.origin}"
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


def test_every_page_of_a_map_has_a_path_for_every_depth(database: Path, config: Config) -> None:
    with sqlite3.connect(database) as connection:
        urls = [url for (url,) in connection.execute("SELECT url FROM pages")]
        depths = connection.execute("SELECT count(*) FROM page_depths").fetchone()[0]
    found = 0
    for url in urls:
        facts = explain(config, database, url)
        check_paths(database, facts)
        found += len(facts.depths)
    assert found == depths > 50


_EDGES = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from([FOLLOWED, FOLLOWED, NOT_FOLLOWED, REDIRECT])),
    max_size=40,
)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edges=_EDGES, reverse=st.booleans())
def test_on_any_terrain_the_path_is_a_shortest_one(
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
        check_paths(path, facts)
        for entry in facts.depths:
            assert expected[entry.origin][b.pages[url]] == entry.depth


def test_a_path_through_redirects_is_shown_as_one(tmp_path: Path) -> None:
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


def test_a_link_that_is_not_followed_is_no_path(tmp_path: Path) -> None:
    for reverse in (False, True):
        b = MapBuilder(tmp_path / f"{reverse}.db")
        for url in ("https://q.test/a", "https://q.test/b", "https://x.test/"):
            b.page(url)
        b.link("https://q.test/a", "https://x.test/", NOT_FOLLOWED)
        b.link("https://q.test/b", "https://x.test/")
        facts = explain(config_for(), b.save(reverse_index=reverse), "https://x.test/")
        assert [step.url for step in facts.depths[0].path] == ["https://q.test/b", "https://x.test/"]


def test_a_redirect_of_an_earlier_run_is_no_path(tmp_path: Path) -> None:
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
