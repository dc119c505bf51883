"""PURE. When a page is due again, from what its visits found.

    always      with every run
    "30d"       so long after its last visit
    adaptive    every page has an interval. A visit that finds the page changed makes it shorter, one that does not
                makes it longer; it stays between a shortest and a longest one. Changed means: other links, another
                text, another outcome. Other bytes alone (a token, a date in a comment) are no change.

A sitemap's `lastmod` can hurry a page that it says was changed after the last visit. It can delay a page, up to the
longest interval, only where the sitemaps of its domain proved right: of the visits of the last runs, none found a
change that `lastmod` had not told of.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from crawler.model.settings import RevisitSettings
from crawler.model.states import PageState

FACTOR = 0.4  # an unchanged page waits 1.4 times as long, a changed one 0.6 times
PROOFS = 3  # visits that `lastmod` foretold before it may delay others
PROOF_RUNS = 5  # the runs whose visits count as proof

# Final answers of a site. After anything else (an outage, a closed domain) a page is due at once.
ANSWERS = frozenset({PageState.PROCESSED, PageState.DEAD_LINK, PageState.CONTENT_MISMATCH})

_DATE = re.compile(r"(\d{4})(?:-(\d\d)(?:-(\d\d))?)?")
_SECONDS_FRACTION = re.compile(r"(:\d\d)[.,](\d{1,6})\d*")


class Span(NamedTuple):
    """The time in which a page was changed, as precisely as its `lastmod` is written."""

    start: str
    end: str


def next_interval(settings: RevisitSettings, before: int | None, is_changed: bool) -> int:
    """The seconds until the next visit. `before`: the interval that has just ended; None: it was the first visit."""
    if isinstance(settings.schedule, int):
        return settings.schedule
    wanted = settings.first_interval if before is None else round(before * (1 - FACTOR if is_changed else 1 + FACTOR))
    return max(settings.shortest_interval, min(wanted, settings.longest_interval))


def after(moment: str, seconds: int) -> str:
    """A recorded time, so many seconds later."""
    try:
        return _text(datetime.fromisoformat(moment) + timedelta(seconds=seconds))
    except (ValueError, OverflowError):  # a record with a broken clock: due at once
        return moment


def span_of(lastmod: str) -> Span | None:
    """The time that a `lastmod` names; None: it names none. A date is a whole day, a month a whole month."""
    try:
        if (found := _DATE.fullmatch(lastmod)) is not None:
            year, month, day = (int(part) if part else None for part in found.groups())
            start = datetime(year or 0, month or 1, day or 1, tzinfo=UTC)
            if day is not None:
                return Span(_text(start), _text(start + timedelta(days=1)))
            next_month = 1 if month is None else month % 12 + 1
            following = datetime(start.year + (next_month == 1), next_month, 1, tzinfo=UTC)
            return Span(_text(start), _text(following))
        moment = datetime.fromisoformat(_SECONDS_FRACTION.sub(r"\1.\2", lastmod))
        text = _text(moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        return None
    return Span(text, text)


def hurried(lastmod: str | None, visited_at: str) -> str | None:
    """When a page is due because of its `lastmod`; None: it tells of no change since the last visit.

    A page that was visited on the day of the change may have been changed after the visit: it is due when that day is
    over.
    """
    span = span_of(lastmod) if lastmod else None
    if span is None or span.end <= visited_at:
        return None
    return span.start if span.start > visited_at else span.end


def is_proof(*, said_changed: bool, was_changed: bool) -> bool | None:
    """Did a visit prove `lastmod` right? None: neither right nor wrong. A change that it did not tell of is wrong."""
    if said_changed and not was_changed:
        return None  # too eager: that costs a visit, and hides nothing
    return said_changed == was_changed


def due_with_sitemap(
    settings: RevisitSettings, lastmod: str, visited_at: str, due: str, *, has_proved_right: bool
) -> str:
    """When a page is due, with its `lastmod`. `due`: without it."""
    soon = hurried(lastmod, visited_at)
    if soon is not None:
        return min(soon, due)
    if has_proved_right and span_of(lastmod) is not None:
        return max(due, after(visited_at, settings.longest_interval))
    return due


def _text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
