"""Levels of pages, and the page links behind a link between domains."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from crawler.database.map_errors import NotOnMap
from reporter.atlas.behind_links import behind_link
from reporter.atlas.page_level import pages_of_domain, paths, surroundings
from tests.reporter.terrain import MapBuilder


def pairs(level: dict[str, Any]) -> set[tuple[str, str]]:
    names, flat = level["nodes"]["name"], level["links"]
    return {(names[a], names[b]) for a, b in zip(flat[::3], flat[1::3], strict=True)}


def test_the_pages_of_a_domain_come_with_the_links_between_them(database: Path) -> None:
    level = pages_of_domain(database, "q.test")
    assert level["counts"]["shown"] == level["counts"]["known"] == len(level["nodes"]["name"]) == 8
    assert ("https://q.test/", "https://q.test/gone") in pairs(level)
    assert all(name.startswith("https://q.test") for pair in pairs(level) for name in pair)
    few = pages_of_domain(database, "q.test", 3)
    assert (few["counts"]["shown"], few["counts"]["known"]) == (3, 8)


def test_the_surroundings_of_a_page_are_its_links_in_both_directions(database: Path) -> None:
    level = surroundings(database, "https://friend.test/")
    names = level["nodes"]["name"]
    assert names[level["middle"]] == "https://friend.test/"
    assert level["counts"]["links_here"] == 3 and level["counts"]["links_from_here"] == 12
    assert {"https://q.test/", "https://friend.test/deep", "https://far1.test/"} <= set(names)
    x = dict(zip(names, level["nodes"]["x"], strict=True))
    assert x["https://far1.test/"] < x["https://friend.test/"] < x["https://friend.test/deep"]


def test_the_paths_to_a_page_are_rows_of_links(database: Path) -> None:
    level = paths(database, "https://friend.test/deep")
    assert [path["origin"] for path in level["paths"]] == ["*.wild.test", "q.test"]
    names = level["nodes"]["name"]
    steps = [names[place] for place, _, _ in level["paths"][1]["steps"]]
    assert steps == ["https://q.test/", "https://friend.test/", "https://friend.test/deep"]
    assert set(pairwise(steps)) <= pairs(level)


def test_a_page_that_no_path_leads_to_is_alone(database: Path) -> None:
    level = paths(database, "https://nofollow.test/")
    assert level["paths"] == [] and level["nodes"]["name"] == ["https://nofollow.test/"]


@pytest.mark.parametrize("reverse", [False, True])
def test_behind_a_link_between_domains_are_links_between_pages(tmp_path: Path, reverse: bool) -> None:
    b = MapBuilder(tmp_path / "map.db")
    for number in range(3):
        b.page(f"https://q.test/{number}")
    b.page("https://x.test/")
    for number in range(3):
        b.link(f"https://q.test/{number}", "https://x.test/")
    b.link_text("https://q.test/1", "https://x.test/", "an \u202eexample")
    found = behind_link(b.save(reverse_index=reverse), "q.test", "x.test", 2)
    assert (found["links"], found["shown"]) == (3, 2)
    rows = behind_link(tmp_path / "map.db", "q.test", "x.test")["rows"]
    assert {row["from"] for row in rows} == {f"https://q.test/{number}" for number in range(3)}
    assert [row["text"] for row in rows if row["from"].endswith("/1")] == ["an \ufffdexample"]
    assert behind_link(tmp_path / "map.db", "x.test", "q.test")["rows"] == []


def test_what_is_not_on_the_map_is_said_plainly(database: Path) -> None:
    with pytest.raises(NotOnMap, match=r"nowhere\.test is not on the map"):
        pages_of_domain(database, "nowhere.test")
    for question in (surroundings, paths):
        with pytest.raises(NotOnMap):
            question(database, "https://nowhere.test/")
    with pytest.raises(NotOnMap):
        behind_link(database, "q.test", "nowhere.test")
