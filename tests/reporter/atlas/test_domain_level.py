"""The level of domains, of communities, and two runs as one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from crawler.model.settings import EntryNote
from reporter.atlas.community_level import community_level
from reporter.atlas.domain_level import domain_level
from reporter.atlas.run_difference import NEW, SAME, VANISHED, difference
from reporter.map.layout_file import kept_places
from tests.reporter.terrain import MapBuilder, config_for


@pytest.fixture(scope="module")
def level(database: Path) -> dict[str, Any]:
    return domain_level(config_for(("q.test", "*.wild.test")), database)


def test_it_shows_so_many_of_so_many_and_keeps_their_places(level: dict[str, Any], database: Path) -> None:
    assert level["counts"]["shown"] == level["counts"]["known"] == 52
    assert set(kept_places(database)) == set(level["nodes"]["name"])
    few = domain_level(config_for(), database, 10)
    assert (few["counts"]["shown"], few["counts"]["known"]) == (10, 52)
    assert few["nodes"]["name"] == level["nodes"]["name"][:10]
    assert few["nodes"]["x"] == level["nodes"]["x"][:10], "they are where they were"


def test_tags_and_notes_of_the_lists_come_with_their_domains(database: Path) -> None:
    from dataclasses import replace

    notes = (EntryNote("quality", "q.test", "the first", ("tea", "old")),)
    level = domain_level(replace(config_for(), entry_notes=notes), database)
    place = level["nodes"]["name"].index("q.test")
    assert level["nodes"]["tags"][place] == ["tea", "old"] and level["nodes"]["note"][place] == "the first"
    assert level["nodes"]["tags"][level["nodes"]["name"].index("friend.test")] == []


def test_every_domain_is_in_one_community_and_links_between_them_add_up(level: dict[str, Any]) -> None:
    communities = community_level(level)
    nodes = communities["nodes"]
    assert sum(nodes["domains"]) == 52 and communities["counts"]["domains"] == 52
    assert sorted(nodes["group"]) == sorted(set(level["nodes"]["group"]))
    group = level["nodes"]["group"]
    flat = level["links"]
    between = sum(n for a, b, n in zip(flat[::3], flat[1::3], flat[2::3], strict=True) if group[a] != group[b])
    assert sum(communities["links"][2::3]) == between > 0
    for a in range(len(nodes["x"])):
        for b in range(a):
            apart = ((nodes["x"][a] - nodes["x"][b]) ** 2 + (nodes["y"][a] - nodes["y"][b]) ** 2) ** 0.5
            assert apart >= nodes["r"][a] + nodes["r"][b]


def test_an_empty_map_has_empty_levels(tmp_path: Path) -> None:
    level = domain_level(config_for(), MapBuilder(tmp_path / "map.db").save())
    assert level["counts"]["shown"] == 0 and community_level(level)["counts"]["shown"] == 0


def tiny(path: Path, names: str, links: tuple[str, ...]) -> dict[str, Any]:
    b = MapBuilder(path, ("a.test",))
    for name in names:
        b.page(f"https://{name}.test/")
    for link in links:
        b.link(f"https://{link[0]}.test/", f"https://{link[1]}.test/")
    return domain_level(config_for(("a.test",)), b.save())


def test_two_runs_as_one_mark_what_is_new_and_what_vanished(tmp_path: Path) -> None:
    before = tiny(tmp_path / "1.db", "abcd", ("ab", "bc", "bd"))
    after = tiny(tmp_path / "2.db", "abde", ("ab", "ae", "ad"))
    both = difference(before, after, {f"{x}.test" for x in "abcd"}, {f"{x}.test" for x in "abde"})
    marks = dict(zip(both["nodes"]["name"], both["nodes"]["change"], strict=True))
    assert marks == {"a.test": SAME, "b.test": SAME, "d.test": SAME, "e.test": NEW, "c.test": VANISHED}
    names = both["nodes"]["name"]
    links = {
        names[both["links"][3 * at]][0] + names[both["links"][3 * at + 1]][0]: mark
        for at, mark in enumerate(both["link_changes"])
    }
    assert links == {"ab": SAME, "ae": NEW, "ad": NEW, "bc": VANISHED, "bd": VANISHED}
    assert (both["counts"]["new"], both["counts"]["vanished"]) == (1, 1)


def test_a_domain_that_is_only_not_shown_has_not_vanished(tmp_path: Path) -> None:
    before = tiny(tmp_path / "1.db", "abc", ("ab", "bc"))
    after = tiny(tmp_path / "2.db", "ab", ("ab",))
    known = {"a.test", "b.test", "c.test"}
    both = difference(before, after, known, known)
    assert both["nodes"]["change"] == [SAME, SAME] and both["counts"]["links_vanished"] == 0
