"""`sumi-ripple explain`: everything that is known of one URL."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from crawler.database.map_errors import NotAMap
from crawler.model.settings import Config
from crawler.model.urls import UrlError
from reporter.explain.explanation import Explanation, explain
from tests.reporter.terrain import FOLLOWED, NOT_FOLLOWED, MapBuilder, config_for

ORIGINS = ("q.test", "*.wild.test")


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


def test_before_the_first_crawl_the_config_alone_answers(tmp_path: Path, config: Config) -> None:
    for database in (None, tmp_path / "none.db"):
        facts = explain(config, database, "https://q.test/x")
        assert (facts.klass, facts.is_known, facts.newest_run) == ("quality", False, None)
        assert "nothing has been crawled yet" in facts.text()


@pytest.mark.parametrize("reverse", [False, True])
def test_who_links_here_is_counted_whole_and_shown_in_part(tmp_path: Path, reverse: bool) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://popular.test/")
    for number in range(50):
        url = f"https://{'q' if number < 25 else f's{number}'}.test/{number}"
        b.page(url)
        b.link(url, "https://popular.test/", FOLLOWED if number else NOT_FOLLOWED)
    database = b.save(reverse_index=reverse)
    whole = explain(config_for(), database, "https://popular.test/", is_uncut=True)
    assert len(whole.linked_from) == 50 and "more page" not in whole.text(is_uncut=True)
    facts = explain(config_for(), database, "https://popular.test/")
    assert facts.linked_from_total == 50
    assert len(facts.linked_from) == 20
    assert {link.kind for link in facts.linked_from} == {"link", "nofollow"}
    assert "50 pages" in facts.text() and "... and 44 more pages: explain --all" in facts.text()


def test_a_page_of_an_earlier_run_says_so(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db", run=2)
    b.add_run(1)
    b.add_run(2)
    b.page("https://q.test/")
    b.page("https://old.test/", "failed", error_message="http-500: x", seen_run=1, visited_run=1)
    facts = explain(config_for(), b.save(), "https://old.test/")
    assert "run 2 has not seen it" in facts.text()
    assert "must link to it again" in facts.text()


def test_a_map_built_under_another_config_is_noticed(database: Path) -> None:
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
