"""The crawl under way: rates over time, the domains that wait, with the reason, and those closed for the run."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import msgspec

from crawler.database.map_errors import MapError
from crawler.database.rate_log import DAY, KEPT, RateRow, rates_path, read_rates
from crawler.database.reader import open_map
from crawler.observe.domain_waits import ON_THE_WIRE, DomainWait, domain_waits, reason_words
from reporter.queries.visit_totals import closed_domains, waiting_of_domain
from reporter.web.face import Face
from reporter.web.routing import Answer, Call

_POINTS = 240  # of a chart


class SeriesQuery(msgspec.Struct, forbid_unknown_fields=True):
    seconds: Annotated[int, msgspec.Meta(ge=10, le=100 * 366 * DAY)] = 3600


def timeseries(call: Call) -> Answer:
    """Rates over the last so many seconds, in at most some 240 points. Where no crawl ran, there is no point."""
    now, span = int(time.time()), call.query.seconds
    step = next((each for each, kept in KEPT.items() if span <= kept), DAY)
    width = max(step, -(-span // _POINTS // step) * step)
    rows = read_rates(rates_path(call.face.first_config.workspace), step, now - span)
    return Answer({"seconds": span, "step": width, "points": [_point(each, width) for each in _gathered(rows, width)]})


def _gathered(rows: list[RateRow], width: int) -> list[RateRow]:
    """Rows of one width: sums of what came, the last of what stood."""
    found: dict[int, RateRow] = {}
    for row in rows:
        at = row.at - row.at % width
        before = found.get(at)
        if before is not None:
            row = row._replace(
                pages=row.pages + before.pages,
                errors=row.errors + before.errors,
                requests=row.requests + before.requests,
            )
        found[at] = row._replace(at=at)
    return list(found.values())


def _point(row: RateRow, width: int) -> dict[str, Any]:
    at = datetime.fromtimestamp(row.at, UTC).isoformat().replace("+00:00", "Z")
    rates = {"pages": row.pages, "errors": row.errors, "requests": row.requests}
    return {
        "at": at,
        **rates,
        **{f"{name}_per_second": round(value / width, 3) for name, value in rates.items()},
        "waiting": row.waiting,
        "known": row.known,
        "in_flight": row.in_flight,
    }


class WaitingQuery(msgspec.Struct, forbid_unknown_fields=True):
    reason: Annotated[str, msgspec.Meta(max_length=40)] = ""
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100


class Waiting(NamedTuple):
    """`domains` wait, the longest wait first, each with the number of its waiting pages; `closed` counts by reason."""

    domains: list[tuple[DomainWait, int]]
    on_the_wire: list[str]
    closed: dict[str, int]


def waiting(call: Call) -> Answer:
    """Domains with released jobs that wait, the longest wait first; those on the wire; those closed for this run."""
    found, query = waiting_now(call.face), call.query
    counts: dict[str, int] = {}
    for each, _ in found.domains:
        counts[each.reason] = counts.get(each.reason, 0) + 1
    shown = [(each, pages) for each, pages in found.domains if query.reason in ("", each.reason)]
    return Answer(
        {
            "total": len(found.domains),
            "reasons": counts,
            "closed": found.closed,
            "words": {reason: reason_words(reason) for reason in (*counts, *found.closed)},
            "domains": [{**each._asdict(), "pages": pages} for each, pages in shown[: query.limit]],
            "on_the_wire": found.on_the_wire[: query.limit],
        }
    )


def waiting_now(face: Face) -> Waiting:
    """As the gates and the map show it, a few seconds old at most."""
    stamp = str(int(time.monotonic()))
    return face.prepared.get("waits", stamp, lambda: _waiting(face), is_live=True)


def _waiting(face: Face) -> Waiting:
    found = domain_waits(face.workspace, face.config)
    waits = sorted((each for each in found if each.reason != ON_THE_WIRE), key=_longest_first)
    on_the_wire = [each.domain for each in found if each.reason == ON_THE_WIRE]
    try:
        with open_map(face.database) as reader:
            counted = [(each, waiting_of_domain(reader, each.domain)) for each in waits]
            closed = closed_domains(reader)
    except MapError:  # the map is being made; the reasons are known all the same
        return Waiting([(each, 0) for each in waits], on_the_wire, {})
    return Waiting([(each, pages) for each, pages in counted if pages], on_the_wire, closed)


def _longest_first(wait: DomainWait) -> tuple[bool, float, str]:
    return wait.seconds is None, -(wait.seconds or 0), wait.domain
