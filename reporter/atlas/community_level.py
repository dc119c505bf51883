"""PURE. Communities of domains, from the level of domains: a disc for each, named after its most linked domain."""

from __future__ import annotations

from collections import Counter
from math import sqrt
from typing import Any

from reporter.map.placement import separated

_NAMED = 6  # domains of a community that are named
_ROOM = 14.0  # free space around a community, for its label


def community_level(domains: dict[str, Any]) -> dict[str, Any]:
    """The communities and the links between them. Their places are the centres of their domains."""
    nodes = domains["nodes"]
    members: dict[int, list[int]] = {}
    for index, group in enumerate(nodes["group"]):
        members.setdefault(group, []).append(index)
    order = sorted(members, key=lambda group: (-len(members[group]), group))
    number = {group: place for place, group in enumerate(order)}
    made: dict[str, list[Any]] = {
        name: [] for name in ("name", "shown", "class", "r", "x", "y", "group", "domains", "quality", "named", "known")
    }
    for group in order:
        _add(made, nodes, domains["classes"], group, members[group])
    made["x"], made["y"] = (
        [round(value, 1) for value in values]
        for values in separated(made["x"], made["y"], [radius + _ROOM for radius in made["r"]])
    )
    between: Counter[tuple[int, int]] = Counter()
    flat = domains["links"]
    for source, target, links in zip(flat[::3], flat[1::3], flat[2::3], strict=True):
        one, other = number[nodes["group"][source]], number[nodes["group"][target]]
        if one != other:
            between[one, other] += links
    strongest = sorted(between.items(), key=lambda item: (-item[1], item[0]))
    counts = {"shown": len(order), "known": len(order), "links": len(between), "links_known": len(between)}
    counts |= {"domains": domains["counts"]["shown"], "domains_known": domains["counts"]["known"]}
    return {
        **{name: domains[name] for name in ("v", "kind", "run", "classes")},
        "level": "communities",
        "counts": counts,
        "nodes": made,
        "links": [value for (one, other), links in strongest for value in (one, other, links)],
    }


def _add(
    made: dict[str, list[Any]], nodes: dict[str, list[Any]], classes: list[str], group: int, members: list[int]
) -> None:
    """Add a community. Its name is that of its most linked domain, its class the one of most of its domains."""
    ranked = sorted(members, key=lambda index: (-nodes["r"][index], -nodes["known"][index], index))
    area = sum(nodes["r"][index] ** 2 for index in members)
    weight = [nodes["r"][index] ** 2 for index in members]
    quality = sum(classes[nodes["class"][index]] == "quality" for index in members)
    rest = len(members) - 1
    values: dict[str, Any] = {
        "name": nodes["name"][ranked[0]],
        "shown": nodes["shown"][ranked[0]] + (f" and {rest:,} more" if rest else ""),
        "class": classes.index("quality") if quality else _usual(nodes["class"][index] for index in members),
        "r": round(sqrt(area) * 1.3 + 4, 1),
        "x": sum(nodes["x"][index] * part for index, part in zip(members, weight, strict=True)) / area,
        "y": sum(nodes["y"][index] * part for index, part in zip(members, weight, strict=True)) / area,
        "group": group,
        "domains": len(members),
        "quality": quality,
        "named": [[nodes["name"][index], nodes["shown"][index]] for index in ranked[:_NAMED]],
        "known": sum(nodes["known"][index] for index in members),
    }
    for name, value in values.items():
        made[name].append(value)


def _usual(classes: Any) -> int:
    return int(Counter(classes).most_common(1)[0][0])
