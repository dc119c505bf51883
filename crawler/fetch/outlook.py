"""What this fetcher thinks of the network: it holds failures back that may be its own, and asks for a diagnosis.

    request loop ──▶ note, judge ──▶ ask ──▶ heartbeat ──▶ the supervisor diagnoses ──▶ document `network` ──▶ refresh

A fetcher that nobody supervises gets no answer: it believes every failure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from crawler.fetch.visit_in_progress import VisitInProgress
from crawler.model.messages import Answer, Failure
from crawler.resilience import network_state
from crawler.resilience.network_state import NetworkState
from crawler.resilience.suspicion import LOCAL_LOOKING, NAMES, WITNESS_NS, Evidence, Interval, Verdict, judge
from crawler.workspace.clock import boot_id
from crawler.workspace.door import Workspace


class Outlook:
    """The request loop's thread notes and judges, the main thread refreshes and tells."""

    def __init__(
        self, workspace: Workspace, threshold: int, *, is_supervised: bool, wake: Callable[[], None] = lambda: None
    ) -> None:
        self._workspace = workspace
        self._is_supervised = is_supervised
        self._wake = wake
        self._evidence = Evidence(threshold)
        self._content: bytes | None = None
        self._told_ns = 0
        self.state = NetworkState()
        self.asked_ns = 0  # the newest question
        self.asked_names_ns = 0  # the newest about name servers
        self.withheld = 0  # visits that wait for an answer, as far as is known

    @property
    def holds_requests(self) -> bool:
        """May no request leave now? The network is out, or so many failed that it probably is."""
        return self._is_supervised and (self.state.is_waiting or self._evidence.is_suspicious)

    # -- for the request loop ------------------------------------------------------------------------

    def note(self, current: VisitInProgress, host: str, answer: Answer, request: Interval) -> None:
        """A request has ended."""
        if not isinstance(answer, Failure) or answer.slug not in LOCAL_LOOKING:
            if not isinstance(answer, Failure):
                self._evidence.add_success(host, request)
            current.note_success()
            return
        if not self._is_supervised:
            return
        request = request._replace(is_name=answer.slug in NAMES)
        self._evidence.add_failure(current.job.domain, request)
        first = current.first_failure
        if first is not None and self._was_proved_between(first, request):
            current.is_confirmed = True
        current.note_failure(request)
        if self._evidence.is_suspicious or current.first_failure is not request:
            self._ask(request.end, is_name=request.is_name)

    def judge(self, current: VisitInProgress, now_ns: int) -> Verdict:
        """What becomes of a visit whose last request failed?"""
        failed = current.last_failure
        if failed is None or not self._is_supervised:
            return Verdict.BELIEVE
        verdict = judge(failed, is_confirmed=current.is_confirmed, evidence=self._evidence, state=self.state)
        asked_ns = self.asked_names_ns if failed.is_name else self.asked_ns
        if verdict is Verdict.WAIT and now_ns >= failed.end + WITNESS_NS and asked_ns < failed.end:
            self._ask(now_ns, is_name=failed.is_name)
        return verdict

    def has_struck(self, current: VisitInProgress) -> bool:
        """Did a request of this visit fail in an outage that is over?"""
        return bool(current.failures) and any(self.state.was_out(failed.start) for failed in current.failures)

    def _was_proved_between(self, one: Interval, other: Interval) -> bool:
        if one.is_name or other.is_name:
            return one.end <= self.state.names_proof_ns <= other.start
        proofs = (self._evidence.last_success_ns, self.state.proof_ns)
        return any(one.end <= proof <= other.start for proof in proofs)

    def _ask(self, now_ns: int, *, is_name: bool) -> None:
        if now_ns > self.asked_ns or (is_name and now_ns > self.asked_names_ns):
            self.asked_ns = now_ns
            if is_name:
                self.asked_names_ns = now_ns
            self._wake()

    # -- for the main thread -------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look at the document again."""
        content = self._workspace.glance(network_state.DOCUMENT)
        if content == self._content:
            return
        self._content = content
        before, self.state = self.state, network_state.read(content, boot_id())
        if self.state.proof_ns > max(before.proof_ns, self._evidence.failing_since_ns):
            self._evidence.forgive()

    def has_news(self) -> bool:
        """Is there a question that no heartbeat has told yet? Once."""
        is_new = self.asked_ns > self._told_ns
        self._told_ns = self.asked_ns
        return is_new

    def facts(self) -> dict[str, Any]:
        """For the heartbeat. Called from signal handlers too, so it takes no lock."""
        return {
            "asked_ns": self.asked_ns,
            "asked_names_ns": self.asked_names_ns,
            "failing_since_ns": self._evidence.failing_since_ns,
            "failing_domains": self._evidence.failing_domains,
            "last_success_ns": self._evidence.last_success_ns,
            "good_hosts": list(self._evidence.good_hosts),
            "withheld": self.withheld,
        }
