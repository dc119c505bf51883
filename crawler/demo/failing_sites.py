"""PURE. Demo sites that fail for a while.

The tired ferry refuses five pages in a row, so its circuit breaker opens, and answers the rest. Whatever the order of
the visits and however often the breaker opens, the map is the same: the demo's cooldowns are shorter than the time that
a run waits for one at its end.
"""

from __future__ import annotations

from crawler.demo.sites import Page, Site

FERRY_HOST = "tired-ferry.test"
_CROSSINGS = ("monday", "tuesday", "wednesday", "thursday", "friday")
_LANDINGS = ("north-bank", "south-bank", "island")


def tired_ferry() -> Site:
    """A domain that trips its circuit breaker and recovers."""
    return Site(
        FERRY_HOST,
        "The Tired Ferry",
        pages=(
            Page(
                "/",
                "The Tired Ferry",
                ("The ferryman sleeps on weekdays. Whoever calls too often is not answered.",),
                tuple((f"/crossings/{day}", f"Crossing on {day.title()}") for day in _CROSSINGS)
                + tuple((f"/landings/{place}", place.replace("-", " ").title()) for place in _LANDINGS),
            ),
            *(Page(f"/crossings/{day}", f"Crossing on {day.title()}", status=403) for day in _CROSSINGS),
            *(Page(f"/landings/{place}", f"{place} - The Tired Ferry", ("A rope, a bell.",)) for place in _LANDINGS),
        ),
        menu=(),
    )
