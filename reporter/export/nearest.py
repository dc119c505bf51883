"""An export that would be empty, because there is no such run or domain: say so, with the ones that there are."""

from __future__ import annotations

import difflib

from crawler.config.checks import Bad, domain_pattern
from crawler.database.map_errors import NoSuchRun
from crawler.database.reader import open_map
from crawler.model.errors import SumiError
from crawler.model.map_place import MapPlace
from crawler.rules.lists import matches
from reporter.queries import overview
from reporter.queries.export_rows import Filters


class NothingFound(SumiError):
    """The filters name something that the map does not hold."""


def require_something(database: MapPlace, filters: Filters) -> None:
    """Raise NothingFound if the map has no such domain, NoSuchRun if it has no such run."""
    if filters.run is None and filters.domain is None:
        return
    try:
        pattern = domain_pattern(filters.domain) if filters.domain is not None else None
    except Bad:
        return  # the export itself says what is allowed
    with open_map(database) as reader:
        if filters.run is not None:
            known = [row.id for row in overview.runs(reader)]
            if filters.run not in known:
                numbers = ", ".join(str(number) for number in known) or "none"
                raise NoSuchRun(database, f"there is no run {filters.run}; the runs there are: {numbers}")
        if pattern is not None:
            _require_domain(database, pattern, [row.domain for row in overview.domains(reader).values()])


def _require_domain(database: MapPlace, pattern: str, names: list[str]) -> None:
    if any(matches(pattern, name) for name in names):
        return
    near = difflib.get_close_matches(pattern.removeprefix("*."), names, n=3, cutoff=0.5)
    hint = f"the nearest names are {', '.join(near)}" if near else f"{len(names):,} others are there"
    raise NothingFound(f"{database} holds no domain {pattern}; {hint}")
