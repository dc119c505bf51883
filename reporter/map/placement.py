"""PURE. A place for every domain: springs between communities, a packed disc for each of them.

A few dozen bodies are moved by springs, which is slow in Python and looks best. Those are the domains themselves in a
small map, and communities in a large one; the domains of a community are packed into its disc, the largest in the
middle. The same graph always gets the same places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import atan2, cos, hypot, log2, pi, sin, sqrt
from typing import NamedTuple

from reporter.map.communities import communities

MOST_BODIES = 60  # moved by springs: the cost grows with the square
_STEPS = 120
_GOLDEN = pi * (3 - sqrt(5))
_MARGIN = 3.0  # free space around a domain in a packed disc
_PACKING = 1.5  # of a disc's radius in a sunflower, where neighbours are nearer than in a grid
_LABEL_ROOM = 20.0  # free space around a domain that is a body of its own
_BAND = 24  # neighbouring seats of a packed disc that may be exchanged, for discs of about one size
_ALIKE = 1.0
_NEIGHBOURS = (
    *range(1, 14),
    21,
    34,
    55,
    89,
    144,
)  # of a seat in a sunflower, by number: Fibonacci's, and all small ones

Link = tuple[int, int, int]  # from, to, links
Springs = dict[tuple[int, int], float]


class Placement(NamedTuple):
    x: list[float]
    y: list[float]
    group: list[int]


def place(radii: Sequence[float], links: Sequence[Link]) -> Placement:
    """Centres of discs with these radii. No two overlap."""
    springs = springs_of(links)
    groups = groups_of(len(radii), springs)
    if len(radii) <= MOST_BODIES:
        x, y = _spread([radius + _LABEL_ROOM for radius in radii], springs)
        return Placement(x, y, groups)
    return _place_in_groups(radii, springs, groups)


def springs_of(links: Sequence[Link]) -> Springs:
    """The pull between two domains that link to each other: it grows with the logarithm of the links."""
    springs: Springs = defaultdict(float)
    for source, target, number in links:
        if source != target:
            springs[min(source, target), max(source, target)] += log2(1 + number)
    return springs


def groups_of(count: int, springs: Springs) -> list[int]:
    """The community of each domain; in a large map at most MOST_BODIES of them."""
    groups = communities(count, [(a, b, weight) for (a, b), weight in springs.items()])
    return groups if count <= MOST_BODIES else _few(groups, springs)


def separated(x: Sequence[float], y: Sequence[float], radii: Sequence[float]) -> tuple[list[float], list[float]]:
    """Places near these at which no two discs overlap."""
    moved_x, moved_y = list(x), list(y)
    _separate(moved_x, moved_y, radii)
    return moved_x, moved_y


# -- a large map ------------------------------------------------------------------------------------------------


def _few(groups: list[int], springs: Springs) -> list[int]:
    """At most MOST_BODIES groups: the smallest join the one they are most linked with, or else each other."""
    sizes: defaultdict[int, int] = defaultdict(int)
    for group in groups:
        sizes[group] += 1
    kept = set(sorted(sizes, key=lambda group: (-sizes[group], group))[: MOST_BODIES - 1])
    kept = {group for group in kept if sizes[group] > 2} or kept
    ties: defaultdict[int, defaultdict[int, float]] = defaultdict(lambda: defaultdict(float))
    for (a, b), weight in springs.items():
        for one, other in ((groups[a], groups[b]), (groups[b], groups[a])):
            if one not in kept and other in kept:
                ties[one][other] += weight
    loose = len(sizes)  # no ties to a kept group
    joined = {group: max(ties[group], key=lambda other: (ties[group][other], -other)) for group in ties}
    final = [group if group in kept else joined.get(group, loose) for group in groups]
    numbers: dict[int, int] = {}
    return [numbers.setdefault(group, len(numbers)) for group in final]


def _place_in_groups(radii: Sequence[float], springs: Springs, groups: list[int]) -> Placement:
    members: list[list[int]] = [[] for _ in range(max(groups) + 1)]
    for node in sorted(range(len(radii)), key=lambda node: (-radii[node], node)):
        members[groups[node]].append(node)
    seats = [_sunflower([radii[node] for node in nodes]) for nodes in members]
    extents = [
        max(hypot(x, y) + radii[node] for (x, y), node in zip(taken, nodes, strict=True))
        for taken, nodes in zip(seats, members, strict=True)
    ]
    between: Springs = defaultdict(float)
    for (a, b), weight in springs.items():
        if groups[a] != groups[b]:
            between[min(groups[a], groups[b]), max(groups[a], groups[b])] += weight
    gap = 14 + sum(extents) / len(extents) * 0.12
    centre_x, centre_y = _spread([extent + gap for extent in extents], between)
    x, y = [0.0] * len(radii), [0.0] * len(radii)
    angles = _outward(springs, groups, centre_x, centre_y)
    for group, nodes in enumerate(members):
        for node, (dx, dy) in zip(_turned(nodes, seats[group], radii, angles), seats[group], strict=True):
            x[node], y[node] = centre_x[group] + dx, centre_y[group] + dy
    return Placement(x, y, groups)


def _sunflower(radii: Sequence[float]) -> list[tuple[float, float]]:
    """Seats for discs of falling size around a middle, each as far out as the area of those before it needs."""
    seats, area = [], 0.0
    for number, radius in enumerate(radii):
        own = ((radius + _MARGIN) * _PACKING) ** 2
        out = sqrt(area + own * 0.6) if number else 0.0
        seats.append((out * cos(number * _GOLDEN), out * sin(number * _GOLDEN)))
        area += own
    scale = _scale_without_overlap(seats, radii)
    return [(x * scale, y * scale) for x, y in seats]


def _scale_without_overlap(seats: list[tuple[float, float]], radii: Sequence[float]) -> float:
    """The factor at which no two seats are too near, exchanged discs included. 1 for nearly all."""
    scale = 1.0
    for near, (x, y) in enumerate(seats):
        for step in _NEIGHBOURS:
            if near + step >= len(seats):
                break
            other_x, other_y = seats[near + step]
            needed = radii[near] + radii[near + step] + 2 * _ALIKE
            scale = max(scale, needed / hypot(x - other_x, y - other_y))
    return scale


def _outward(springs: Springs, groups: list[int], x: list[float], y: list[float]) -> dict[int, float]:
    """For nodes with links to other groups: the direction in which those lie."""
    pulls: defaultdict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for (a, b), weight in springs.items():
        one, other = groups[a], groups[b]
        if one != other:
            dx, dy = x[other] - x[one], y[other] - y[one]
            scale = weight / (hypot(dx, dy) or 1.0)
            pulls[a][0] += dx * scale
            pulls[a][1] += dy * scale
            pulls[b][0] -= dx * scale
            pulls[b][1] -= dy * scale
    return {node: atan2(dy, dx) for node, (dx, dy) in pulls.items()}


def _turned(
    nodes: list[int], seats: list[tuple[float, float]], radii: Sequence[float], angles: dict[int, float]
) -> list[int]:
    """The nodes in the order of the seats, discs of about one size exchanged so that links leave on their side."""
    turned = list(nodes)
    start = 1
    while start < len(nodes):
        end = start + 1
        while end < min(start + _BAND, len(nodes)) and radii[nodes[start]] - radii[nodes[end]] < _ALIKE:
            end += 1
        band = nodes[start:end]
        places = sorted(range(start, end), key=lambda seat: atan2(seats[seat][1], seats[seat][0]))
        wishes = sorted(band, key=lambda node: (angles.get(node, 0.0), node))
        for seat, node in zip(places, wishes, strict=True):
            turned[seat] = node
        start = end
    return turned


# -- springs ----------------------------------------------------------------------------------------------------


def _spread(radii: Sequence[float], springs: Springs) -> tuple[list[float], list[float]]:
    """Bodies pushed apart by each other and pulled together by springs, then moved until none overlap."""
    count = len(radii)
    if not count:
        return [], []
    order = sorted(range(count), key=lambda body: (-radii[body], body))
    x, y, area = [0.0] * count, [0.0] * count, 0.0
    for number, body in enumerate(order):
        out = sqrt(area) * 1.3
        x[body], y[body] = out * cos(number * _GOLDEN), out * sin(number * _GOLDEN)
        area += radii[body] ** 2
    gap = sum(radii) / count
    strongest = max(springs.values(), default=1.0)
    pulls = [(a, b, 0.25 + 0.75 * weight / strongest) for (a, b), weight in springs.items()]
    for step in range(_STEPS):
        heat = 2.0 * gap * (1 - step / _STEPS) + 0.02 * gap
        _step(x, y, radii, pulls, gap, heat)
    _separate(x, y, radii)
    middle_x, middle_y = (min(x) + max(x)) / 2, (min(y) + max(y)) / 2
    return [value - middle_x for value in x], [value - middle_y for value in y]


def _step(
    x: list[float],
    y: list[float],
    radii: Sequence[float],
    pulls: list[tuple[int, int, float]],
    gap: float,
    heat: float,
) -> None:
    count, far = len(x), 2.5 * gap  # bodies further away do not push: the unlinked would drift off
    fx = [-value * 0.10 for value in x]
    fy = [-value * 0.16 for value in y]  # screens are wider than high
    for a in range(count):
        ax, ay, ar = x[a], y[a], radii[a]
        for b in range(a + 1, count):
            dx, dy = ax - x[b], ay - y[b]
            length = sqrt(dx * dx + dy * dy) or 0.01
            free = length - ar - radii[b]
            if free > far:
                continue
            push = gap * gap / (free if free > 0.2 * gap else 0.2 * gap) / length
            fx[a] += dx * push
            fy[a] += dy * push
            fx[b] -= dx * push
            fy[b] -= dy * push
    for a, b, weight in pulls:
        dx, dy = x[a] - x[b], y[a] - y[b]
        length = sqrt(dx * dx + dy * dy) or 0.01
        free = length - radii[a] - radii[b]
        if free > 0:
            pull = weight * free / length * 0.8
            fx[a] -= dx * pull
            fy[a] -= dy * pull
            fx[b] += dx * pull
            fy[b] += dy * pull
    for body in range(count):
        force = hypot(fx[body], fy[body])
        if force:
            scale = min(force, heat) / force
            x[body] += fx[body] * scale
            y[body] += fy[body] * scale


def _separate(x: list[float], y: list[float], radii: Sequence[float]) -> None:
    """Push overlapping bodies apart, to either side, until none overlap. What is left after that is scaled away."""
    count = len(x)
    for _ in range(_STEPS):
        worst = 0.0
        for a in range(count):
            for b in range(a + 1, count):
                dx, dy = x[a] - x[b], y[a] - y[b]
                least = radii[a] + radii[b]
                if dx > least or dx < -least or dy > least or dy < -least:
                    continue
                length = hypot(dx, dy)
                if not length:
                    dx, length = 0.01, 0.01
                missing = least - length
                if missing > 0.01:
                    worst = max(worst, missing)
                    push = missing / length / 2 * 1.02
                    x[a] += dx * push
                    y[a] += dy * push
                    x[b] -= dx * push
                    y[b] -= dy * push
        if not worst:
            return
    scale = 1.0
    for a in range(count):
        for b in range(a + 1, count):
            length = hypot(x[a] - x[b], y[a] - y[b])
            scale = max(scale, (radii[a] + radii[b]) / (length or 0.01))
    x[:] = [value * scale for value in x]
    y[:] = [value * scale for value in y]
