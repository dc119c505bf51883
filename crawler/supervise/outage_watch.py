"""Answers the fetchers' question whether the network works, for all of them, and waits for it while it does not.

A success of another fetcher after the question is an answer; otherwise hosts that answered earlier in this run (before
its first answer: in the run before), those of `[resilience] probe`, and a few of the list are connected to. While none
is reached, the document `network` says so and no fetcher sends anything. The probe runs in a thread: the supervisor
goes on meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crawler.model.settings import Config
from crawler.model.urls import authority_of, host_of, without_www
from crawler.observe.live_text import duration
from crawler.observe.processes import StageProcess, observe
from crawler.resilience import findings, network_state
from crawler.resilience.findings import Finding
from crawler.supervise.diagnosis import MOST_TARGETS, ClockDrift, machine_findings, network_findings, probe_all
from crawler.workspace.clock import boot_id, now_text
from crawler.workspace.door import Workspace

if TYPE_CHECKING:
    from crawler.net.probe import Probed

log = logging.getLogger("sumi.supervisor")

MOST_HOSTS = 16  # that answered, remembered for the probe
SAVE_HOSTS_EVERY = 5.0  # seconds
_SEEDS = 3  # hosts of the list that are asked besides
MERGE_NS = 60_000_000_000  # outages closer to each other than this are one
MOST_GUESSES = 10  # pauses where nothing has answered yet and `suspicion` domains or more fail

ProbeAll = Callable[[Sequence[str]], "list[Probed]"]


class OutageWatch:
    """Looks at the fetchers' questions at every round of the supervisor.

    Invariants:
    - a question is answered once: with a proof that is younger than it, or by waiting until there is one;
    - an outage begins with the last success before it, so that no failure in it is left out.
    """

    def __init__(self, config: Config, workspace: Workspace, probe: ProbeAll | None = None) -> None:
        self._config = config
        self._settings = config.resilience
        self._workspace = workspace
        self._probe = probe or (lambda targets: probe_all(targets, config.network))
        self._drift = ClockDrift()
        before = network_state.read(workspace.document(network_state.DOCUMENT), boot_id())
        # What an earlier supervisor was waiting for is asked again by the fetchers, if it is still so.
        self.state = replace(before, is_waiting=False, findings=(), since="")
        if before.is_waiting:
            self.state = replace(self.state, out_until_ns=time.monotonic_ns())
        if self.state != before:
            self._write()
        self._hosts = dict.fromkeys(before.hosts)
        self._seeds = list(dict.fromkeys(_target_of(seed) for entry in config.quality for seed in entry.seeds))
        self._saved_at = 0.0
        self._thread: threading.Thread | None = None
        self._results: list[Probed] | None = None
        self._probe_ns = 0  # when the probe under way, or the last one, began
        self._asked_ns = 0
        self._failing_since_ns = 0
        self._waiting_since_ns = 0
        self._failing_domains = 0  # the most that failed together since the run began, or since an answer

    def step(self) -> bool:
        """One look. True: the network has been out for as long as the config allows."""
        stages = [stage for stage in observe(self._workspace, with_locks=False).stages if stage.stage == "fetcher"]
        fetchers = [stage for stage in stages if stage.is_running]
        self._learn_hosts(fetchers)
        failing = sum(_number(stage, "failing_domains") for stage in fetchers)
        self._failing_domains = max(failing, 0 if self._hosts else self._failing_domains)
        if self.state.is_waiting:
            return self._wait_on()
        if self._thread is not None:
            self._finish_diagnosis(fetchers)
            return False
        asked = max((_number(stage, "asked_ns") for stage in fetchers), default=0)
        if asked <= self.state.asked_ns:
            return False
        proof = max(_number(stage, "last_success_ns") for stage in fetchers)
        is_about_names = max(_number(stage, "asked_names_ns") for stage in fetchers) > self.state.asked_ns
        if proof > asked and not is_about_names:  # a success may be over a connection that was kept
            self._answer(asked, proof)
            return False
        self._asked_ns = asked
        self._failing_since_ns = _outage_start(fetchers, asked)
        if self._targets():
            self._begin_probe()
        else:
            self._guess(asked)
        return False

    def diagnose(self) -> list[Finding]:
        """What may be wrong on this machine, the network aside."""
        stages = observe(self._workspace, with_locks=False).stages
        return machine_findings(self._config, stages, self._drift.seconds())

    def close(self) -> None:
        """Leave no state behind that would hold fetchers of another supervisor."""
        if self.state.is_waiting:
            self._change(is_waiting=False, out_until_ns=time.monotonic_ns(), findings=(), since="")

    # -- asking --------------------------------------------------------------------------------------

    def _targets(self) -> list[str]:
        """The targets of a probe, those that the config names first. Before the first answer of a run, those of the run
        before.
        """
        hosts = [host for host in reversed(tuple(self._hosts) or self.state.earlier_hosts) if host]
        return [*self._settings.probe, *hosts][: max(MOST_TARGETS, len(self._settings.probe) + 3)]

    def _next_seeds(self) -> list[str]:
        """A few hosts of the list, others each time: one that answers proves the network too, and a host of `probe`
        that is gone for good holds nobody back.
        """
        some, self._seeds = self._seeds[:_SEEDS], self._seeds[_SEEDS:] + self._seeds[:_SEEDS]
        return some

    def _begin_probe(self) -> None:
        self._results = None
        self._probe_ns = time.monotonic_ns()
        targets = list(dict.fromkeys([*self._targets(), *self._next_seeds()]))

        def run() -> None:
            self._results = self._probe(targets)

        self._thread = threading.Thread(target=run, name="probe", daemon=True)
        self._thread.start()

    def _pop_results(self) -> list[Probed] | None:
        """The results of the probe under way; None: it is not done yet."""
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread = None
        return self._results or []

    def _finish_diagnosis(self, fetchers: Sequence[StageProcess]) -> None:
        results = self._pop_results()
        if results is None:
            return
        if any(result.is_reached for result in results):
            self._answer(self._asked_ns, self._probe_ns, are_names_proved=True)
            return
        late = max((_number(stage, "last_success_ns") for stage in fetchers), default=0)
        are_names_out = all((result.slug or "").startswith("dns") for result in results)
        if late > self._asked_ns and not are_names_out:  # it works again already
            self._answer(self._asked_ns, late)
            return
        self._begin_waiting([*network_findings(results), *self._doubts()])

    def _doubts(self) -> list[Finding]:
        """Is it the site that is down, and nobody else can be asked?"""
        domains = _domains_of(self._hosts)
        if self._settings.probe or len(domains) != 1:
            return []
        longest = self._settings.give_up_after
        return [
            findings.one_site(domains.pop(), f"for {longest / 3600:.3g} h (give-up-after)" if longest else "for ever")
        ]

    def _answer(self, asked_ns: int, proof_ns: int, *, are_names_proved: bool = False) -> None:
        names = proof_ns if are_names_proved else self.state.names_proof_ns
        self._change(asked_ns=max(asked_ns, self.state.asked_ns), proof_ns=proof_ns, names_proof_ns=names)

    def _guess(self, asked_ns: int) -> None:
        """There is nothing to ask. Wait once, or several times where many domains fail; then failures are believed."""
        guesses = self.state.guesses + 1
        most = MOST_GUESSES if self._failing_domains >= self._settings.suspicion else 1
        if guesses > most:
            self._answer(asked_ns, time.monotonic_ns(), are_names_proved=True)
        else:
            self._begin_waiting([findings.nothing_to_ask(self._settings.probe_every, most - guesses)], guesses)

    # -- waiting -------------------------------------------------------------------------------------

    def _begin_waiting(self, why: list[Finding], guesses: int = 0) -> None:
        now = time.monotonic_ns()
        found = [*why, *self.diagnose()]
        begins = self._failing_since_ns
        if self.state.out_until_ns and begins - self.state.out_until_ns < MERGE_NS:
            begins = min(begins, self.state.out_from_ns)
        self._waiting_since_ns = now
        log.warning("Requests fail that should not; nothing is sent until that is over, and nothing is lost:")
        for finding in found:
            log.warning("  %s", finding)
        self._change(
            is_waiting=True,
            asked_ns=self._asked_ns,
            out_from_ns=begins,
            out_until_ns=0,
            since=now_text(),
            findings=tuple(str(finding) for finding in found),
            guesses=guesses or self.state.guesses,
        )
        self._probe_ns = now

    def _wait_on(self) -> bool:
        now = time.monotonic_ns()
        results = self._pop_results()
        if results is not None and any(result.is_reached for result in results):
            self._end_waiting(self._probe_ns)
        elif self._thread is None and now - self._probe_ns >= self._settings.probe_every * 1e9:
            if self._targets():
                self._begin_probe()
            else:
                self._end_waiting(now)
        is_hopeless = self._settings.give_up_after and now - self._waiting_since_ns > self._settings.give_up_after * 1e9
        return self.state.is_waiting and bool(is_hopeless)

    def _end_waiting(self, proof_ns: int) -> None:
        seconds = (time.monotonic_ns() - self._waiting_since_ns) / 1e9
        log.warning("Going on after %s; the visits that failed are made again", duration(seconds))
        self._change(
            is_waiting=False,
            proof_ns=proof_ns,
            names_proof_ns=proof_ns,
            out_until_ns=time.monotonic_ns(),
            findings=(),
            since="",
        )

    # -- the document --------------------------------------------------------------------------------

    def _learn_hosts(self, fetchers: Sequence[StageProcess]) -> None:
        """Remember hosts that answered in this run."""
        run = max((_number(stage, "run") for stage in fetchers), default=0)
        if run and run != self.state.run:
            earlier = tuple(self._hosts) if len(_domains_of(self._hosts)) > 1 else ()
            self._hosts = {}
            self._failing_domains = 0
            self._change(run=run, hosts=(), earlier_hosts=earlier, guesses=0)
        for stage in fetchers:
            for host in stage.facts.get("good_hosts") or ():
                if isinstance(host, str) and _number(stage, "run") == self.state.run and host not in self._hosts:
                    self._hosts[host] = None
        while len(self._hosts) > MOST_HOSTS:
            del self._hosts[next(iter(self._hosts))]
        now = time.monotonic()
        if tuple(self._hosts) != self.state.hosts and (not self.state.hosts or now - self._saved_at > SAVE_HOSTS_EVERY):
            self._saved_at = now
            self._change(hosts=tuple(self._hosts))

    def _change(self, **members: object) -> None:
        self.state = replace(self.state, **members)  # type: ignore[arg-type]
        self._write()

    def _write(self) -> None:
        self._workspace.write_document(network_state.DOCUMENT, network_state.dump(self.state))
        for name in self._workspace.bells():
            if name.startswith("fetcher-"):
                self._workspace.ring(name)


def _target_of(seed: str) -> str:
    authority = authority_of(seed)
    return authority if ":" not in authority else f"https://{authority}/"


def _domains_of(hosts: Iterable[str]) -> set[str]:
    return {without_www(host_of(f"https://{host}/")) for host in hosts if host}


def _number(stage: StageProcess, fact: str) -> int:
    value = stage.facts.get(fact)
    return value if isinstance(value, int) else 0


def _outage_start(fetchers: Sequence[StageProcess], asked_ns: int) -> int:
    """The earliest moment at which the outage can have begun: after the last success, before the first failure."""
    failing = [since for stage in fetchers if (since := _number(stage, "failing_since_ns"))]
    last = max((_number(stage, "last_success_ns") for stage in fetchers), default=0)
    return min([*failing, last or asked_ns, asked_ns])
