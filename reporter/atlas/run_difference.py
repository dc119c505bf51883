"""PURE. Two levels of domains as one: what is new in the second, and what vanished since the first."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

SAME, NEW, VANISHED = 0, 1, 2


def difference(
    before: dict[str, Any], after: dict[str, Any], names_before: Set[str], names_after: Set[str]
) -> dict[str, Any]:
    """The second level with the domains and links that only the first has, and a mark for each.

    `nodes.change` and `link_changes` are 0 (in both), 1 (new) or 2 (vanished). A domain is where the second level has
    it. The levels hold the most linked domains; `names_before` and `names_after` are all of them, so that a domain that
    is only less linked does not count as vanished. A link counts as new or vanished if both its domains are in both
    levels, or one of them is itself new or vanished.
    """
    old, new = before["nodes"], after["nodes"]
    shown_after = set(new["name"])
    gone = [index for index, name in enumerate(old["name"]) if name not in shown_after and name not in names_after]
    nodes = {name: [*column, *(old[name][index] for index in gone)] for name, column in new.items() if name in old}
    nodes["change"] = [SAME if name in names_before else NEW for name in new["name"]] + [VANISHED] * len(gone)
    places = {name: index for index, name in enumerate(nodes["name"])}
    in_both = set(old["name"]) & shown_after
    changed = {name for name, mark in zip(nodes["name"], nodes["change"], strict=True) if mark}

    def mark_of(ends: tuple[str, str], others: dict[tuple[str, str], int], mark: int) -> int:
        is_judged = in_both >= set(ends) or not changed.isdisjoint(ends)
        return mark if is_judged and ends not in others else SAME

    links_before, links_after = _links(before), _links(after)
    rows = [(ends, count, mark_of(ends, links_before, NEW)) for ends, count in links_after.items()]
    rows += [
        (ends, count, VANISHED)
        for ends, count in links_before.items()
        if ends not in links_after and places.keys() >= set(ends) and mark_of(ends, links_after, VANISHED)
    ]
    marks = [mark for _, _, mark in rows]
    counts = {
        **after["counts"],
        "shown": len(nodes["name"]),
        "links": len(rows),
        "new": nodes["change"].count(NEW),
        "vanished": len(gone),
        "links_new": marks.count(NEW),
        "links_vanished": marks.count(VANISHED),
    }
    return {
        **after,
        "against": before["run"],
        "counts": counts,
        "nodes": nodes,
        "links": [value for (one, other), count, _ in rows for value in (places[one], places[other], count)],
        "link_changes": marks,
    }


def _links(level: dict[str, Any]) -> dict[tuple[str, str], int]:
    names, flat = level["nodes"]["name"], level["links"]
    ends = zip(flat[::3], flat[1::3], flat[2::3], strict=True)
    return {(names[source], names[target]): links for source, target, links in ends}
