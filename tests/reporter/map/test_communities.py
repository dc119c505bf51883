"""Communities: dense parts of a graph, the same ones every time."""

from __future__ import annotations

from itertools import combinations

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from reporter.map.communities import communities

Edge = tuple[int, int, float]


def modularity(count: int, edges: list[Edge], labels: list[int]) -> float:
    graph = nx.Graph()
    graph.add_nodes_from(range(count))
    for a, b, weight in edges:
        before = graph.get_edge_data(a, b, {"weight": 0.0})["weight"]
        graph.add_edge(a, b, weight=before + weight)
    parts = [{node for node in range(count) if labels[node] == label} for label in set(labels)]
    return float(nx.community.modularity(graph, parts))


def test_two_cliques_with_one_link_between_them_are_two_communities() -> None:
    edges = [(a, b, 1.0) for start in (0, 6) for a, b in combinations(range(start, start + 6), 2)]
    assert communities(12, [*edges, (5, 6, 1.0)]) == [0] * 6 + [1] * 6


def test_planted_communities_are_found_about_as_well_as_networkx_finds_them() -> None:
    graph = nx.planted_partition_graph(8, 30, 0.4, 0.02, seed=3)
    edges = [(a, b, 1.0) for a, b in graph.edges]
    found = communities(240, edges)
    peer = nx.community.louvain_communities(graph, seed=1)
    assert modularity(240, edges, found) >= 0.98 * nx.community.modularity(graph, peer)


def test_nodes_without_links_are_alone() -> None:
    assert communities(4, []) == [0, 1, 2, 3]
    assert communities(0, []) == []


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 19), st.integers(0, 19), st.integers(1, 9)), max_size=60))
def test_every_node_has_one_community_that_linked_nodes_make_up(links: list[tuple[int, int, int]]) -> None:
    edges = [(a, b, float(weight)) for a, b, weight in links]
    labels = communities(20, edges)
    assert labels == communities(20, edges)
    first_seen = list(dict.fromkeys(labels))
    assert first_seen == list(range(len(first_seen))), "numbered in the order of their first nodes"
    graph = nx.Graph([(a, b) for a, b, _ in edges])
    graph.add_nodes_from(range(20))
    for label in first_seen:
        members = [node for node in range(20) if labels[node] == label]
        assert len({frozenset(nx.node_connected_component(graph, node)) for node in members}) == 1
