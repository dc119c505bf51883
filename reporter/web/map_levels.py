"""Levels of the map for many viewers: each is worked out once for a state of the map, and kept in memory.

A map under way changes all the time. Its level of domains is worked out again when it is older than twenty times what
that took: viewers take a twentieth of a core at most.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crawler.database.reader import open_map
from crawler.model.settings import Config
from reporter.atlas.domain_level import MOST_DOMAINS, domain_level
from reporter.queries.search_index import map_stamp

_KEPT = 4  # levels of domains: about 2 MB each
_TIMES_ITS_COST = 20.0
_LEAST_AGE = 1.0  # seconds


@dataclass(slots=True)
class _Kept:
    level: dict[str, Any]
    stamp: str
    config: Config  # tags and notes of domains are its
    until: float | None  # monotonic seconds; None: as long as its stamp holds


class MapLevels:
    """Levels of domains by the file that they are of."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: OrderedDict[Path, _Kept] = OrderedDict()

    def domains(self, config: Config, database: Path, most: int) -> dict[str, Any]:
        """The level of domains of a map, cut to so many. Raises NoDatabase, NotAMap, NoSuchRun."""
        return first_domains(self._all(config, database), most)

    def _all(self, config: Config, database: Path) -> dict[str, Any]:
        with open_map(database) as reader:
            stamp = map_stamp(reader)
        with self._lock:  # one viewer works it out, the others wait for that
            found = self._kept.get(database)
            if found and self._holds(found, stamp, config):
                self._kept.move_to_end(database)
                return found.level
            began = self._clock()
            level = domain_level(config, database, MOST_DOMAINS)
            ended = self._clock()
            is_over = level["run"]["status"] == "completed"
            until = None if is_over else ended + max(_LEAST_AGE, (ended - began) * _TIMES_ITS_COST)
            self._kept[database] = _Kept(level, stamp, config, until)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
            return level

    def _holds(self, kept: _Kept, stamp: str, config: Config) -> bool:
        is_young = kept.until is None or self._clock() < kept.until
        return is_young and kept.stamp == stamp and kept.config == config


def first_domains(level: dict[str, Any], most: int) -> dict[str, Any]:
    """The level with its first domains only: they are in the order of importance."""
    if level["counts"]["shown"] <= most:
        return level
    nodes = {name: column[:most] for name, column in level["nodes"].items()}
    flat = level["links"]
    links = [
        value
        for source, target, number in zip(flat[::3], flat[1::3], flat[2::3], strict=True)
        if source < most and target < most
        for value in (source, target, number)
    ]
    counts = {**level["counts"], "shown": most, "links": len(links) // 3}
    return {**level, "nodes": nodes, "links": links, "counts": counts}
