"""The probe on loopback: a server that answers, a port where nobody listens, one where nobody speaks."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.demo.server import Served, serve_terrain
from crawler.model.settings import NetworkSettings
from crawler.net.probe import probe
from tests.pipeline.fetching import PlainTerrain


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_terrain(PlainTerrain(("a.test",)), tmp_path_factory.mktemp("server"), log=True) as server:
        yield server


def network(served: Served, port: int | None = None, ca: Path | None = None) -> NetworkSettings:
    endpoint = f"127.0.0.1:{served.port if port is None else port}"
    return NetworkSettings(ca_bundle=ca or served.ca_path, resolve=(("a.test", endpoint),), connect_timeout=300)


@pytest.mark.parametrize("target", ["a.test", "https://a.test/", "https://a.test", "a.test:443"])
def test_a_host_that_answers_is_reached_and_gets_no_request(served: Served, target: str) -> None:
    found = probe(target, network(served))
    assert found.is_reached, found
    assert served.requests() == []


def test_a_port_where_nobody_listens_is_not_reached(served: Served) -> None:
    for target in ("a.test", "a.test:443"):
        assert probe(target, network(served, served.closed_port)).slug == "connection-refused"


def test_a_server_that_accepts_and_is_silent_is_not_reached_by_tls(served: Served) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert probe("a.test", network(served, port)).slug == "timeout"
        assert probe("a.test:443", network(served, port)).is_reached, "a connection is all that this form asks for"


def test_a_certificate_that_is_not_trusted_is_not_a_fault_of_the_clock(served: Served) -> None:
    found = probe("a.test", replace(network(served), ca_bundle=None))
    assert (found.slug, found.is_clock) == ("tls", False)
