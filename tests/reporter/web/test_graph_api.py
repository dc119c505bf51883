"""The levels of the map over HTTP."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reporter.atlas.domain_level import domain_level
from reporter.web.map_levels import MapLevels, first_domains
from reporter.web.routing import Role
from tests.reporter.terrain import config_for, rich_map
from tests.reporter.web.serving import Served


@pytest.mark.parametrize("level", ["communities", "domains", "pages&domain=q.test", "paths&url=https://friend.test/"])
def test_every_level_can_be_drawn(face: Served, level: str) -> None:
    found = face.get(f"/api/graph?level={level}", token=face.token(Role.USER)).json()
    nodes = found["nodes"]
    assert found["counts"]["shown"] == len(nodes["name"]) > 0
    for column in ("shown", "class", "r", "x", "y", "known"):
        assert len(nodes[column]) == len(nodes["name"])
    assert all(0 <= place < len(nodes["name"]) for place in found["links"][::3] + found["links"][1::3])


def test_the_page_links_behind_a_link_are_listed(face: Served) -> None:
    found = face.get("/api/graph/links?from=q.test&to=friend.test", token=face.token(Role.USER)).json()
    assert [(row["from"], row["to"]) for row in found["rows"]] == [("https://q.test/", "https://friend.test/")]


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("level=pages&domain=nowhere.test", 404),
        ("level=paths&url=https://nowhere.test/", 404),
        ("level=paths&url=mailto:x", 422),
        ("level=galaxies", 422),
        ("most=5001", 422),
        ("run=9", 404),
        ("run=1&against=1", 422),
    ],
)
def test_a_question_that_cannot_be_answered_is_said_plainly(face: Served, query: str, status: int) -> None:
    answer = face.get(f"/api/graph?{query}", token=face.token(Role.USER))
    assert answer.status_code == status and answer.json()["detail"]


def test_the_first_domains_of_a_level_are_a_level(database: Path) -> None:
    level = domain_level(config_for(), database)
    few = first_domains(level, 5)
    assert few["nodes"]["name"] == level["nodes"]["name"][:5] and max(few["links"][::3] + few["links"][1::3]) < 5
    assert few["counts"] == {**level["counts"], "shown": 5, "links": len(few["links"]) // 3}


def test_a_level_is_worked_out_once_for_a_map_and_a_config(tmp_path: Path) -> None:
    database, now = rich_map(tmp_path / "map.db"), [0.0]
    levels = MapLevels(clock=lambda: now[0])
    config = config_for()
    first = levels.domains(config, database, 5000)
    now[0] += 1e6
    assert levels.domains(config, database, 5000) is first, "a completed run does not change"
    assert levels.domains(replace(config, stub=("hub.test",)), database, 5000) is not first
