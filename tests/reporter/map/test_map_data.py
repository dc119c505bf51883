"""The data of the map page: the figures of the map, the most linked domains first, bounded and said so."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from crawler.database.map_errors import NoDatabase, NoSuchRun
from reporter.map import map_data as module
from reporter.map.map_data import SAMPLES, map_data
from reporter.stats import stats
from tests.reporter.export.test_graph import ask
from tests.reporter.terrain import MapBuilder


def node(found: module.MapData, name: str) -> dict[str, object]:
    nodes = found.content["nodes"]
    place = nodes["name"].index(name)
    return {column: values[place] for column, values in nodes.items()}


def test_every_figure_is_the_one_that_stats_shows(database: Path) -> None:
    found = map_data(database)
    shown = {row["domain"]: row for row in orjson.loads(stats(database, "domain", True))["domains"]}
    assert set(found.content["nodes"]["name"]) == set(shown)
    for name, row in shown.items():
        figures = node(found, name)
        assert {key: figures[key] for key in ("crawled", "known", "errors", "waiting", "closed")} == {
            key: row[key] for key in ("crawled", "known", "errors", "waiting", "closed")
        }
        assert figures["depth"] == row["depth_low"]
        assert found.content["classes"][figures["class"]] == row["class"]  # type: ignore[index]


def test_links_between_domains_are_those_of_the_pages(database: Path) -> None:
    found = map_data(database)
    names, flat = found.content["nodes"]["name"], found.content["links"]
    links = {(names[flat[at]], names[flat[at + 1]]): flat[at + 2] for at in range(0, len(flat), 3)}
    rows = ask(
        database,
        "SELECT f.domain, t.domain, count(*) FROM links l JOIN pages f ON f.id = l.from_page_id"
        " JOIN pages t ON t.id = l.to_page_id WHERE f.domain <> t.domain GROUP BY 1, 2",
    )
    assert links == {(source, target): number for source, target, number in rows}
    friend = node(found, "friend.test")
    assert (friend["quality_domains"], friend["links_from_quality"]) == (2, 2)
    assert friend["links_in"] == sum(number for _, target, number in rows if target == "friend.test")
    assert friend["domains_out"] == len([1 for source, _, _ in rows if source == "friend.test"])


def test_quality_domains_come_first_then_the_most_linked(database: Path) -> None:
    found = map_data(database, most=4)
    assert found.content["nodes"]["name"] == ["q.test", "blog.wild.test", "wild.test", "friend.test"]
    assert (found.domains, found.domains_known) == (4, len(ask(database, "SELECT DISTINCT domain FROM pages")))
    assert found.links < found.links_known
    assert max(found.content["links"][0::3] + found.content["links"][1::3]) < 4


def test_only_the_strongest_links_are_kept(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LINKS", 2)
    found = map_data(database)
    names, flat = found.content["nodes"]["name"], found.content["links"]
    assert found.links == 2
    assert (names[flat[0]], names[flat[1]], flat[2]) == ("q.test", "hub.test", 25)


def test_sample_pages_are_crawled_ones_with_a_title_first(database: Path) -> None:
    pages = node(map_data(database), "q.test")["pages"]
    assert isinstance(pages, list) and len(pages) == SAMPLES
    assert pages[0] == ["https://q.test/", "https://q.test/", "Title of https://q.test/", "processed"]
    assert [page[3] for page in pages] == ["processed"] * SAMPLES


def test_names_are_shown_in_unicode_with_the_punycode_beside_it(tmp_path: Path) -> None:
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://xn--bltterwald-r5a.test/")
    b.page("https://q.test/")
    nodes = map_data(b.save()).content["nodes"]
    assert dict(zip(nodes["name"], nodes["shown"], strict=True)) == {
        "q.test": "q.test",
        "xn--bltterwald-r5a.test": "blätterwald.test (xn--bltterwald-r5a.test)",
    }


def test_the_same_map_makes_the_same_data(database: Path) -> None:
    assert orjson.dumps(map_data(database).content) == orjson.dumps(map_data(database).content)


def test_a_map_without_pages_is_empty_and_one_without_runs_is_none(tmp_path: Path) -> None:
    empty = map_data(MapBuilder(tmp_path / "empty.db").save())
    assert (empty.domains, empty.domains_known, empty.links) == (0, 0, 0)
    b = MapBuilder(tmp_path / "new.db")
    b.db.commit()
    b.db.close()
    with pytest.raises(NoSuchRun):
        map_data(tmp_path / "new.db")
    with pytest.raises(NoDatabase):
        map_data(tmp_path / "none.db")
