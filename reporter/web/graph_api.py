"""The map in levels, and the page links behind a link between domains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from crawler.model.urls import UrlError, normalize
from reporter.atlas.behind_links import behind_link
from reporter.atlas.community_level import community_level
from reporter.atlas.domain_level import DEFAULT_DOMAINS, MOST_DOMAINS, known_domains
from reporter.atlas.page_level import pages_of_domain, paths, surroundings
from reporter.atlas.run_difference import difference
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

Level = Literal["communities", "domains", "pages", "surroundings", "paths"]


class GraphQuery(msgspec.Struct, forbid_unknown_fields=True):
    level: Level = "domains"
    most: Annotated[int, msgspec.Meta(ge=1, le=MOST_DOMAINS)] = DEFAULT_DOMAINS
    domain: str = ""
    url: str = ""
    run: Annotated[int, msgspec.Meta(ge=1)] | None = None
    against: Annotated[int, msgspec.Meta(ge=1)] | None = None


class LinksQuery(msgspec.Struct, forbid_unknown_fields=True, rename={"source": "from", "target": "to"}):
    source: str
    target: str
    run: Annotated[int, msgspec.Meta(ge=1)] | None = None


def graph(call: Call) -> Answer:
    """One level of the map; of domains, also of two runs as one."""
    asked: GraphQuery = call.query
    face = call.face
    if asked.level == "domains" and asked.against is not None:
        return Answer(_both(call, asked))
    database = _map_of(call, asked.run)
    if asked.level in ("domains", "communities"):
        found = face.levels.domains(face.config, database, asked.most)
        return Answer(community_level(found) if asked.level == "communities" else found)
    if asked.level == "pages":
        return Answer(pages_of_domain(database, asked.domain.strip().lower()))
    try:
        key = normalize(asked.url, face.config.crawler.tracking_parameters)
    except UrlError as problem:
        raise Problem(422, "bad-url", str(problem)) from None
    return Answer(surroundings(database, key) if asked.level == "surroundings" else paths(database, key))


def links(call: Call) -> Answer:
    """The page links from one domain to another."""
    asked: LinksQuery = call.query
    return Answer(behind_link(_map_of(call, asked.run), asked.source.lower(), asked.target.lower()))


def _both(call: Call, asked: GraphQuery) -> dict[str, Any]:
    """Two runs as one. The live map remembers domains of earlier runs, so both are maps of single runs."""
    face, earlier = call.face, asked.against
    later = asked.run or face.newest_run()
    if earlier is None or earlier == later:
        raise Problem(422, "same-run", "give two different runs")
    maps = [face.map_of_run(number) for number in (earlier, later)]
    before, after = (face.levels.domains(face.config, path, MOST_DOMAINS) for path in maps)
    return difference(before, after, *(known_domains(path) for path in maps))


def _map_of(call: Call, run: int | None) -> Path:
    return call.face.shown().path if run is None else call.face.map_of_run(run)
