"""PURE. Does a stage stand still? Its heartbeat tells whether work is due, and when it last got on with it.

What is due is each stage's own rule: a fetcher whose domains all wait for their Crawl-delay has nothing to do, and so
has one that waits for the network. A stage that does not even beat is stuck whatever it had to do.
"""

from __future__ import annotations

from typing import NamedTuple

MOST_STALLS = 3  # of a stage in a row; then a restart does not help


class Work(NamedTuple):
    """`done` differs whenever something was done. `is_due`: there is something that could be done now."""

    done: object = None
    is_due: bool = False


class Progress(NamedTuple):
    """The work at the last look, and since when it has been like that (monotonic nanoseconds)."""

    work: Work = Work()
    since_ns: int = 0


def after(before: Progress, work: Work, now_ns: int) -> Progress:
    """The progress at this look. Time counts only while work is due and none is done."""
    is_standing = before.work.is_due and work.is_due and work.done == before.work.done
    return Progress(work, before.since_ns if is_standing else now_ns)


def stall_words(beat_age: float | None, standing: float | None, stall_after: float) -> str | None:
    """Why a stage counts as stalled; None: it does not.

    `beat_age`: seconds since its last heartbeat (since its start, before the first). `standing`: seconds without
    progress, as that heartbeat told; None: no work is due.
    """
    if not stall_after:
        return None
    if beat_age is not None and beat_age >= stall_after:
        return f"no sign of life for {beat_age:,.0f} s"
    if standing is not None and standing >= stall_after:
        return f"work is due, and none was done for {standing:,.0f} s"
    return None
