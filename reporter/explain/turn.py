"""PURE. The run in which a page that waits may be visited, from its domain's budget and the pages that go before it."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.model.shown_text import counted


@dataclass(frozen=True, slots=True)
class Turn:
    """`run` is the earliest one; None: with this budget the way to the page ends before it."""

    run: int | None
    before: int  # waiting pages of its domain that go before it
    steps: int | None  # pages of its domain that each run must visit to find it again; None: not known
    pages_a_run: int  # what the budget is enough for, at as many requests a page as in the newest run

    def words(self, budget_key: str) -> str:
        """One sentence. `budget_key`: the setting that would have to be raised."""
        if self.run is None:
            return (
                f"It is not reached in any run: the way to it leads over {counted(self.steps or 0, 'page')} of its"
                f" domain, and the budget is enough for about {self.pages_a_run:,}. Raise {budget_key}, or make it a"
                " seed."
            )
        return (
            f"It may be expected in run {self.run}, at the earliest: {counted(self.before, 'page')} of its domain"
            f" {'goes' if self.before == 1 else 'go'} before it, and the budget is enough for about"
            f" {self.pages_a_run:,} a run. New pages may go before it too."
        )


def turn_of(
    run: int, *, is_open: bool, before: int, steps: int | None, budget: int, requests: int, visited: int
) -> Turn | None:
    """The turn of a page that waited in `run`. `is_open`: its domain may still be visited in that run.

    `requests` and `visited` are the requests to its domain in that run and the pages they visited; None: there were
    none, so nothing can be foreseen.
    """
    if not requests or not visited:
        return None
    pages_a_run = max(1, budget * visited // requests)
    left = max(0, budget - requests) * visited // requests if is_open else 0
    if before < left:
        return Turn(run, before, steps, pages_a_run)
    room = pages_a_run - (steps or 0)
    if room <= 0:
        return Turn(None, before, steps, pages_a_run)
    return Turn(run + 1 + (before - left) // room, before, steps, pages_a_run)
