"""Findings about this machine, each by a staged fault."""

from __future__ import annotations

import multiprocessing
import os
import socket
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from crawler.model.settings import Config, NetworkSettings, OutputSettings
from crawler.net.probe import Probed
from crawler.observe.processes import StageProcess
from crawler.supervise import diagnosis
from crawler.supervise.diagnosis import machine_findings, network_findings, probe_all, until_reached


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(workspace=tmp_path, output=OutputSettings(tmp_path / "map.db", tmp_path / "s.md"))


def words(config: Config, *stages: StageProcess, drift: float = 0.0) -> list[str]:
    return [finding.word for finding in machine_findings(config, stages, drift)]


def test_a_healthy_machine_has_no_findings(config: Config) -> None:
    assert words(config) == []


def test_a_clock_that_was_set_is_found(config: Config) -> None:
    assert words(config, drift=-3600.0) == ["clock"]


def test_a_database_that_is_none_is_found(config: Config) -> None:
    config.output.database_path.write_bytes(b"no database" * 100)
    assert words(config) == ["database"]


def test_an_ingest_without_a_heartbeat_is_found(config: Config) -> None:
    ingest = StageProcess("ingest", "ingest", True, "running", 1, None, 99.0)
    assert words(config, ingest) == ["database"]


def test_a_fetcher_without_room_for_files_is_found(config: Config) -> None:
    fetcher = StageProcess("fetcher-01", "fetcher", True, "running", os.getpid(), None, 0.1, {"open_files": 1})
    assert words(config, fetcher) == ["file-handles"]


@pytest.mark.parametrize(("flag", "free"), [(0, 1), (os.ST_RDONLY, 10**6)])
def test_a_full_or_read_only_disk_is_found(
    config: Config, monkeypatch: pytest.MonkeyPatch, flag: int, free: int
) -> None:
    facts = SimpleNamespace(f_flag=flag, f_bavail=free, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda place: facts)
    assert words(config) == ["disk"]


def test_little_memory_is_found(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnosis, "LEAST_MEMORY", 2**60)
    assert words(config) == ["memory"]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([Probed("a", "timeout", ""), Probed("b", "dns", "")], ["network"]),
        ([Probed("a", "dns-temporary", ""), Probed("b", "dns", "")], ["name-servers"]),
        ([Probed("a", "tls", "", True)], ["clock"]),
        ([Probed("a", "timeout", ""), Probed("b")], []),
        ([], []),
    ],
)
def test_the_network_the_name_servers_and_the_clock_are_told_apart(results: list[Probed], expected: list[str]) -> None:
    assert [finding.word for finding in network_findings(results)] == expected


def test_one_that_is_reached_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: dict[str, Callable[[], Probed]] = {
        "good": lambda: Probed("good"),
        "bug": lambda: 1 / 0,  # type: ignore[dict-item,return-value]
    }
    monkeypatch.setattr("crawler.net.probe.probe", lambda target, network: answers[target]())
    assert any(result.is_reached for result in until_reached(["bug", "good"], NetworkSettings()))
    assert [result.slug for result in until_reached(["bug"], NetworkSettings())] == ["internal-error"]
    assert until_reached([], NetworkSettings()) == []


def test_targets_are_asked_in_a_process_of_its_own_that_is_gone_afterwards() -> None:
    network = NetworkSettings(allow_private_addresses=True, connect_timeout=500)
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))  # and does not listen
        good, refused = (f"127.0.0.1:{one.getsockname()[1]}" for one in (server, deaf))
        assert any(result.is_reached for result in probe_all([refused, good], network))
        assert [result.slug for result in probe_all([refused], network)] == ["connection-refused"]
        assert not multiprocessing.active_children()
