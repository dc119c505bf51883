"""PURE. What is left of a run and when it may end, in words and as JSON, from the heartbeats of the stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from crawler.config.estimate import words
from crawler.model.shown_text import counted

if TYPE_CHECKING:
    from crawler.observe.processes import Snapshot

_FIGURES = {"pages", "domains", "least", "most", "may_find_domains"}
_KEYS = {"pages": "max-pages", "domains": "max-domains", "seconds": "max-duration", "bytes": "max-bytes"}


def left_facts(snapshot: Snapshot) -> dict[str, Any] | None:
    """The figures, as `status --json` has them; None: no run is under way, or nothing is known of it yet."""
    found = snapshot.map_facts().get("left")
    if not isinstance(found, dict) or snapshot.has_run_ended or not any(s.is_running for s in snapshot.stages):
        return None
    if not found.keys() >= _FIGURES:
        return None
    limits = snapshot.facts_of("scheduler").get("limits")
    limits = {name: limits[name] for name in _KEYS if name in limits} if isinstance(limits, dict) else {}
    least, most = float(found["least"]), float(found["most"])
    if "seconds" in limits:
        least, most = min(least, limits["seconds"]), min(most, limits["seconds"])
    return {
        "pages": int(found["pages"]),
        "domains": int(found["domains"]),
        "seconds_least": round(least),
        "seconds_most": round(most),
        "may_find_domains": bool(found["may_find_domains"]),
        "limits": limits,
    }


def left_short(facts: dict[str, Any] | None) -> str:
    """For a line of the live view: `40 s to 12 min left, or longer`."""
    if facts is None or not facts["pages"]:
        return ""
    return f"{_range(facts)} left" + (", longer with new domains" if _is_open_ended(facts) else "")


def left_long(facts: dict[str, Any] | None) -> str:
    """For `status`: what the range is made of, and the limits of the run."""
    if facts is None or not facts["pages"]:
        return ""
    where = f"{counted(facts['pages'], 'page')} in {counted(facts['domains'], 'domain')}"
    text = (
        f"left: {where}, at least {words(facts['seconds_least'])}; if new pages use up the budgets there,"
        f" {words(facts['seconds_most'])}"
    )
    if _is_open_ended(facts):
        text += "; longer with new domains"
    rest = [f"{_KEYS[name]} in {_amount(name, value)}" for name, value in facts["limits"].items()]
    return text + (f"; it ends earlier at {' or '.join(rest)}" if rest else "")


def _is_open_ended(facts: dict[str, Any]) -> bool:
    return bool(facts["may_find_domains"]) and "seconds" not in facts["limits"]


def _range(facts: dict[str, Any]) -> str:
    least, most = words(facts["seconds_least"]), words(facts["seconds_most"])
    return f"about {least}" if least == most else f"{least} to {most}"


def _amount(name: str, value: int) -> str:
    return words(value) if name == "seconds" else f"{value:,} {name}"
