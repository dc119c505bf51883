"""PURE. Communities of a weighted graph, by the Louvain method: local moves that raise modularity, then the same on
the graph of communities, until nothing moves.

No chance is involved: nodes are tried in their order, and the first of equally good communities wins.
"""

from __future__ import annotations

from collections.abc import Iterable

_PASSES = 8  # over all nodes of a level; later ones move less than one in a hundred
_LEVELS = 6
_LEAST_GAIN = 1e-9

Neighbours = list[dict[int, float]]


def communities(count: int, edges: Iterable[tuple[int, int, float]]) -> list[int]:
    """The community of each node, numbered from 0 in the order of their first nodes. Directions do not matter."""
    neighbours: Neighbours = [{} for _ in range(count)]
    for a, b, weight in edges:
        if a != b:
            neighbours[a][b] = neighbours[a].get(b, 0.0) + weight
            neighbours[b][a] = neighbours[b].get(a, 0.0) + weight
    degrees = [sum(near.values()) for near in neighbours]
    labels = list(range(count))
    for _ in range(_LEVELS):
        moved = _local_moves(neighbours, degrees)
        found = _renumbered(moved)
        labels = [found[label] for label in labels]
        size = max(found, default=-1) + 1
        if size == len(found):
            break
        neighbours, degrees = _merged(neighbours, degrees, found, size)
    return _renumbered(labels)


def _local_moves(neighbours: Neighbours, degrees: list[float]) -> list[int]:
    labels = list(range(len(neighbours)))
    sums = list(degrees)  # of the degrees in each community
    total = sum(degrees) or 1.0
    lists = [list(near.items()) for near in neighbours]
    for _ in range(_PASSES):
        moves = 0
        for node, near in enumerate(lists):
            if not near:
                continue
            weights: dict[int, float] = {}
            for other, weight in near:
                label = labels[other]
                weights[label] = weights.get(label, 0.0) + weight
            own, share = labels[node], degrees[node] / total
            sums[own] -= degrees[node]
            best, most = own, weights.get(own, 0.0) - share * sums[own] + _LEAST_GAIN
            for label, weight in weights.items():
                gain = weight - share * sums[label]
                if gain > most:
                    best, most = label, gain
            sums[best] += degrees[node]
            if best != own:
                labels[node] = best
                moves += 1
        if moves * 100 <= len(lists):
            break
    return labels


def _merged(
    neighbours: Neighbours, degrees: list[float], labels: list[int], size: int
) -> tuple[Neighbours, list[float]]:
    """The graph of communities. A community's inner links count in its degree alone: no move changes them."""
    merged: Neighbours = [{} for _ in range(size)]
    sums = [0.0] * size
    for node, near in enumerate(neighbours):
        label = labels[node]
        sums[label] += degrees[node]
        row = merged[label]
        for other, weight in near.items():
            target = labels[other]
            if target != label:
                row[target] = row.get(target, 0.0) + weight
    return merged, sums


def _renumbered(labels: list[int]) -> list[int]:
    numbers: dict[int, int] = {}
    return [numbers.setdefault(label, len(numbers)) for label in labels]
