"""The crawl under way: rates over time, and the domains that wait, with the reason."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec

from crawler.database.map_errors import MapError
from crawler.database.rate_log import DAY, KEPT, RateRow, rates_path, read_rates
from crawler.database.reader import open_map
from crawler.observe.domain_waits import ON_THE_WIRE, DomainWait, domain_waits
from reporter.queries.visit_totals import waiting_of_domain
from reporter.web.routing import Answer, Call

_POINTS = 240  # of a chart
_SHOWN = 100  # domains that wait, in one answer


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


def waiting(call: Call) -> Answer:
    """Domains with released jobs that wait, the longest wait first; and those with a request on the wire."""
    face = call.face
    stamp = str(int(time.monotonic()))
    found = face.prepared.get("waits", stamp, lambda: domain_waits(face.workspace, face.config), is_live=True)
    waits = sorted((each for each in found if each.reason != ON_THE_WIRE), key=_longest_first)
    counts: dict[str, int] = {}
    for each in waits:
        counts[each.reason] = counts.get(each.reason, 0) + 1
    shown = [{**each._asdict(), "pages": 0} for each in waits[:_SHOWN]]
    try:
        with open_map(face.database) as reader:
            for row in shown:
                row["pages"] = waiting_of_domain(reader, str(row["domain"]))
    except MapError:
        pass  # the map is being made; the reasons are known all the same
    return Answer(
        {
            "total": len(waits),
            "reasons": counts,
            "domains": shown,
            "on_the_wire": [each.domain for each in found if each.reason == ON_THE_WIRE][:_SHOWN],
        }
    )


def _longest_first(wait: DomainWait) -> tuple[bool, float, str]:
    return wait.seconds is None, -(wait.seconds or 0), wait.domain
