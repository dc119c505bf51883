"""The supervisor's answers to the fetchers' questions about the network."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from crawler.model.settings import Config, OutputSettings, QualityEntry, ResilienceSettings
from crawler.net.probe import Probed
from crawler.resilience import network_state
from crawler.supervise.outage_watch import MOST_GUESSES, OutageWatch
from crawler.workspace.clock import boot_id, now_text
from crawler.workspace.files.file_workspace import FileWorkspace


class Bench:
    """A watch, a network that is up or not, and fetchers that beat by hand."""

    def __init__(self, folder: Path, **settings: object) -> None:
        self.config = Config(
            workspace=folder,
            output=OutputSettings(folder / "map.db", folder / "summary.md"),
            resilience=ResilienceSettings(**{"probe_every": 0, **settings}),  # type: ignore[arg-type]
        )
        self.workspace = FileWorkspace(folder)
        self.workspace.prepare()
        self.is_up = True
        self.asked: list[list[str]] = []
        self.watch = self.start()

    def start(self) -> OutageWatch:
        return OutageWatch(self.config, self.workspace, self._probe)

    def _probe(self, targets: Sequence[str]) -> list[Probed]:
        self.asked.append(list(targets))
        return [Probed(targets[0]) if self.is_up else Probed(target, "timeout", "no answer") for target in targets]

    def beat(self, name: str = "fetcher-01", **facts: object) -> None:
        beat = {"v": 1, "stage": "fetcher", "name": name, "pid": 1, "started": now_text(), "at": now_text()}
        facts = {"run": 1, **facts}
        self.workspace.beat(name, orjson.dumps({**beat, "doing": "running", "facts": facts}))

    def ask(self, **facts: object) -> int:
        now = time.monotonic_ns()
        self.beat(asked_ns=now, failing_since_ns=now - 5, **facts)
        return now

    def step(self) -> bool:
        """Two rounds, with the probe's end in between."""
        is_hopeless = self.watch.step()
        if self.watch._thread is not None:
            self.watch._thread.join()
        return self.watch.step() or is_hopeless

    @property
    def told(self) -> network_state.NetworkState:
        return network_state.read(self.workspace.document(network_state.DOCUMENT), boot_id())


def test_a_host_that_answered_before_is_asked_and_proves_the_network(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    now = bench.ask(good_hosts=["a.test"])
    bench.step()
    assert bench.asked == [["a.test"]]
    assert (bench.told.is_waiting, bench.told.asked_ns) == (False, now)
    assert bench.told.proof_ns >= now
    bench.step()
    assert len(bench.asked) == 1, "a question is answered once"


def test_another_fetchers_success_is_an_answer_and_nobody_is_asked(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    now = bench.ask(good_hosts=["a.test"])
    bench.beat("fetcher-02", last_success_ns=now + 1)
    bench.step()
    assert bench.asked == []
    assert bench.told.proof_ns == now + 1


def test_a_question_about_names_is_answered_by_asking_a_name_server(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    now = time.monotonic_ns()
    bench.beat(asked_ns=now, asked_names_ns=now, failing_since_ns=now, good_hosts=["a.test"])
    bench.beat("fetcher-02", last_success_ns=now + 1)
    bench.step()
    assert bench.asked == [["a.test"]]
    assert bench.told.names_proof_ns >= now


def test_nothing_is_sent_until_a_host_is_reached_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench(tmp_path)
    bench.is_up = False
    asked = bench.ask(good_hosts=["a.test"], last_success_ns=77)
    with caplog.at_level(logging.WARNING):
        bench.step()
    assert bench.told.is_waiting
    assert bench.told.out_from_ns == 77, "from the last success on, no failure is believed"
    assert bench.told.findings[0].startswith("network: this machine reaches none of 1 hosts")
    assert "network: this machine reaches none" in caplog.text
    assert bench.told.findings[1].startswith("network: only a.test has answered in this run, so a fault of the site")
    assert bench.told.findings[1].endswith("waits for 24 h (give-up-after)")
    bench.step()
    assert bench.told.is_waiting
    bench.is_up = True
    bench.step()
    assert not bench.told.is_waiting
    assert bench.told.was_out(asked) and bench.told.proof_ns > asked


@pytest.mark.parametrize(
    ("hosts", "probe", "is_doubtful"),
    [
        (["a.test", "www.a.test"], (), True),
        (["a.test", "b.test"], (), False),
        (["a.test"], ("https://always.test/",), False),
    ],
)
def test_a_dead_site_that_nobody_else_can_be_asked_about_is_named(
    tmp_path: Path, hosts: list[str], probe: tuple[str, ...], is_doubtful: bool
) -> None:
    bench = Bench(tmp_path, probe=probe)
    bench.is_up = False
    bench.ask(good_hosts=hosts)
    bench.step()
    assert any("only a.test has answered" in finding for finding in bench.told.findings) is is_doubtful


def test_it_gives_up_after_a_while(tmp_path: Path) -> None:
    bench = Bench(tmp_path, give_up_after=1)
    bench.is_up = False
    bench.ask(good_hosts=["a.test"])
    assert not bench.step()
    bench.watch._waiting_since_ns -= 2_000_000_000
    assert bench.step()


def test_with_nothing_to_ask_it_waits_once_and_believes_then(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    first = bench.ask()
    bench.watch.step()
    assert bench.told.is_waiting and bench.told.findings[0].startswith("unknown: ")
    bench.watch.step()
    assert not bench.told.is_waiting and bench.told.was_out(first)
    second = bench.ask()
    bench.watch.step()
    assert not bench.told.is_waiting and bench.told.proof_ns > second
    assert bench.asked == []


def test_with_nothing_to_ask_and_many_failing_domains_it_waits_several_times_and_not_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.ask(failing_domains=2)
    bench.beat("fetcher-02", failing_domains=3)
    bench.watch.step()
    assert f", {MOST_GUESSES} times at the most," in bench.told.findings[0]
    bench.beat("fetcher-02")
    for _ in range(MOST_GUESSES - 1):
        bench.watch.step()
        assert not bench.told.is_waiting
        bench.ask(failing_domains=1)  # the others have not failed yet
        bench.watch.step()
        assert bench.told.is_waiting
    bench.watch.step()
    last = bench.ask(failing_domains=5)
    bench.watch.step()
    assert not bench.told.is_waiting and bench.told.proof_ns > last


def test_hosts_are_known_after_a_restart_and_asked_in_the_next_run_until_one_answers(tmp_path: Path) -> None:
    bench = Bench(tmp_path, probe=("https://always.test/",))
    bench.beat(good_hosts=["a.test", "b.test"])
    bench.step()
    bench.watch = bench.start()
    bench.ask()
    bench.step()
    assert bench.asked == [["https://always.test/", "b.test", "a.test"]]
    bench.ask(run=2)
    bench.step()
    assert bench.asked[1:] == [["https://always.test/", "b.test", "a.test"]]
    bench.watch = bench.start()
    bench.ask(run=2, good_hosts=["c.test"])
    bench.step()
    assert bench.asked[2:] == [["https://always.test/", "c.test"]]
    bench.ask(run=3)
    bench.step()
    assert bench.asked[3:] == [["https://always.test/"]], "one site alone may be gone since"


def test_an_outage_at_the_start_of_a_later_run_is_waited_for(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.beat(good_hosts=["a.test", "b.test"])
    bench.step()
    bench.is_up = False
    bench.ask(run=2)
    for _ in range(3):
        bench.step()
    assert bench.told.is_waiting and bench.told.findings[0].startswith("network: this machine reaches none of 2 hosts")


def test_a_host_of_probe_that_never_answers_holds_nobody_back_whose_seeds_do(tmp_path: Path) -> None:
    bench = Bench(tmp_path, probe=("https://gone.test/",))
    seeds = tuple(QualityEntry(f"{name}.test", (f"https://{name}.test/",)) for name in "abcde")
    bench.config = replace(bench.config, quality=seeds)
    bench.watch = bench.start()
    bench.is_up = False
    bench.ask()
    bench.step()
    assert bench.told.is_waiting
    bench.step()
    asked = [target for targets in bench.asked for target in targets]
    assert {f"{name}.test" for name in "abcde"} <= set(asked), "all of the list, a few at a time"
    bench.is_up = True
    bench.step()
    assert not bench.told.is_waiting


def test_a_watch_that_was_killed_while_it_waited_holds_nobody_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.is_up = False
    asked = bench.ask(good_hosts=["a.test"])
    bench.step()
    assert bench.told.is_waiting
    bench.start()
    assert not bench.told.is_waiting
    assert bench.told.was_out(asked), "what failed then is still not believed"
