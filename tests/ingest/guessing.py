"""A crawl without processes: the real scheduler's guesses and the real ingest, over a site that is a dictionary."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from crawler.database.frontier import Frontier
from crawler.model.pagination import label_next
from crawler.model.records import GuessEvent, PageResult, Result, RunEvent, dump, parse
from crawler.model.settings import Config
from crawler.model.urls import domain_of, hash64, normalize
from crawler.schedule.decision_log import WRITER, DecisionLog
from crawler.schedule.page_guesses import PageGuesses
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.log import Cursor
from ingest.apply import MapUpdater
from ingest.writing.store import Store
from tests.ingest.terrains import AT


@dataclass
class Answers:
    """key → hrefs; a key that is not there is a dead link. `others` have more to say than links."""

    links: dict[str, tuple[str, ...]]
    others: dict[str, dict[str, Any]] = field(default_factory=dict)  # key → members of its result

    def visit(self, run: int, key: str, wire: str) -> PageResult:
        members = dict(self.others.get(key, {}))
        hrefs = self.links.get(key)
        if hrefs is None and not members:
            return PageResult(run, key, wire, domain_of(key), AT, "dead_link", "http-404: x", 404)
        label = label_next(key, wire, hrefs or (), ())
        members = {"text_print": hash64(key) >> 4, "validation": "ok", "status": 200} | members
        if label is not None:
            members |= {"next_page": label[0], "next_by": label[1]}
        state = members.pop("state", "processed")
        return PageResult(run, key, wire, domain_of(key), AT, state, hrefs=hrefs or (), **members)


@dataclass
class Walked:
    """The results of a walk, in the order in which the ingest had them, and the map that came out."""

    results: list[Result]
    map: Path
    most_outstanding: int = 0  # guesses of one domain at one time

    def events(self) -> list[tuple[str, str]]:
        """What was decided: (event, address or reason)."""
        found = [event for event in self.results if isinstance(event, GuessEvent)]
        return [(event.event, normalize(event.wire) if event.wire else event.reason) for event in found]

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return rows(self.map, sql)


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(sql).fetchall()


def walk(
    config: Config, site: Answers, chance: random.Random | None = None, runs: int = 1, extra: Sequence[Result] = ()
) -> Walked:
    """Crawl the site until nothing is left to visit or to try. `extra` is read at the start. With `chance`, visits are
    made in any order, and the ingest is started again now and then.
    """
    workspace = FileWorkspace(config.workspace)
    workspace.prepare()
    store = Store(config.output.database_path, config)
    updater = MapUpdater(config, store)
    walked = Walked([], config.output.database_path)
    frontier = Frontier(config.output.database_path)
    decisions = DecisionLog(workspace, 1 << 20)
    guesses = PageGuesses(config, frontier, decisions)
    place = Cursor()

    def apply(*results: Result) -> None:
        nonlocal store, updater
        if chance is not None and chance.random() < 0.1:  # a new process, which knows what is in the map
            store.close()
            store = Store(config.output.database_path, config)
            updater = MapUpdater(config, store)
        updater.apply_batch([(result, dump(result)) for result in results])
        updater.commit()
        walked.results.extend(results)

    try:
        for run in range(1, runs + 1):
            apply(RunEvent(run, AT, "started"), *extra)
            frontier.open()
            for _ in range(1000):
                waiting = frontier.ask("SELECT p.url, coalesce(wire_url, url) FROM frontier JOIN pages p USING (id)")
                if waiting:
                    (chance or random.Random(0)).shuffle(waiting)
                    for key, wire in waiting:
                        apply(site.visit(run, key, wire))
                    continue
                if not guesses.decide(run):
                    break
                decided = list(_decided(workspace, place))
                place = decided[-1][1]
                tried = [event.domain for event, _ in decided if event.event == "guessed"]
                walked.most_outstanding = max([walked.most_outstanding, *map(tried.count, tried)])
                apply(*(event for event, _ in decided))
            else:
                raise AssertionError("it never ends")
            apply(RunEvent(run, AT, "finished"))
    finally:
        decisions.close()
        frontier.close()
        store.close()
    return walked


def _decided(workspace: FileWorkspace, place: Cursor) -> Iterator[tuple[GuessEvent, Cursor]]:
    reader = workspace.results.reader(WRITER, place)
    try:
        while lines := reader.read():
            for line in lines:
                event = parse(line.body)
                assert isinstance(event, GuessEvent)
                yield event, line.end
    finally:
        reader.close()


def elsewhere(config: Config, folder: Path) -> Config:
    """The same config with a map and a workspace of its own."""
    return replace(config, output=replace(config.output, database_path=folder / "map.db"), workspace=folder / "w")
