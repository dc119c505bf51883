"""Takes one domain from job to job: send a request, give the answer to the visit, record its result, begin the next.

A domain is in exactly one place: idle (the main thread has it), in the queue, or with the one greenlet that took it
out. So its visits are made one after the other, and its parts need no lock.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from crawler.fetch.due_queue import DueQueue
from crawler.fetch.gated_request import GatedRequester, Later, Sent
from crawler.fetch.job_queue import job_fault
from crawler.fetch.journal import Journal, JournalClosed
from crawler.fetch.leased_domain import LeasedDomain
from crawler.fetch.outlook import Outlook
from crawler.fetch.parse_memory import ParseMemory
from crawler.fetch.reading_code import READING_CODE
from crawler.fetch.robots_cache import RobotsCache
from crawler.fetch.visit_in_progress import VisitInProgress
from crawler.model.messages import LOCAL_SHORTAGE, BodyWanted, PageNote, Pause, Request, Response, StoredPage
from crawler.model.moments import Moment
from crawler.model.records import DomainEvent, Job, PageResult, RobotsResult, SitemapResult, Validators, changed, dump
from crawler.model.settings import Config
from crawler.model.states import ERRORS, PageState, slug_of
from crawler.model.urls import hash64
from crawler.net.answer import SMALL_BODY
from crawler.net.client import ACCEPT, ACCEPT_ENCODING
from crawler.net.hub import Hub
from crawler.pace import breaker as breakers
from crawler.pace.breaker import Breaker
from crawler.pace.gate_record import KILL_REASONS, MOST_KILLS, TOO_COSTLY, KillMark
from crawler.resilience.suspicion import WITNESS_NS, Verdict
from crawler.rules.field_rules import FieldRules
from crawler.rules.lists import Classifier
from crawler.rules.page_rules import PageRules
from crawler.store.blobs import BlobDamaged, BlobStore, NotAHash
from crawler.visit.flow import Reply, Visit, Wish, visit
from crawler.visit.robots import Policy
from crawler.visit.sitemap_flow import SitemapVisit, visit_sitemap
from crawler.visit.validation import Validator
from crawler.workspace.clock import now_text
from crawler.workspace.control import StageControl
from crawler.workspace.door import Activity
from crawler.workspace.log import Cursor
from crawler.workspace.runs import RunWatch

log = logging.getLogger("sumi.fetcher")

ASK_AGAIN_NS = 100_000_000  # until a withheld visit is looked at again
NOT_MODIFIED = 304
COOLING_IN_PLACE = 5.0  # seconds; a domain that its breaker holds back for longer is released meanwhile
VisitResult = PageResult | SitemapResult


@dataclass(slots=True)
class Counts:
    """Totals of this process, for its heartbeat."""

    pages: int = 0
    requests: int = 0
    errors: int = 0


class DomainWorker:
    """Works on domains. `advance` is for the greenlet that took the domain out of the queue, `notify_new_jobs` for
    the main thread.

    Invariants:
    - when a call returns, the domain is back in the queue or idle;
    - no page is begun that this process's config puts out of scope, whatever was released before;
    - announced jobs are not missed: a domain rests only if none was announced since it last looked (`Idleness`);
    - a result is recorded before anything is done that it allows.
    """

    def __init__(
        self,
        config: Config,
        control: StageControl,
        runs: RunWatch,
        journal: Journal,
        requester: GatedRequester,
        queue: DueQueue[LeasedDomain],
        hub: Hub,
        counts: Counts,
        clock: Callable[[], Moment],
        memory: ParseMemory | None = None,
        activity: Activity | None = None,
        outlook: Outlook | None = None,
        blobs: BlobStore | None = None,
    ) -> None:
        self._config = config
        self._control = control
        self._runs = runs
        self._journal = journal
        self._requester = requester
        self._queue = queue
        self._hub = hub
        self._counts = counts
        self._clock = clock
        self._memory = memory
        self._activity = activity
        self._blobs = blobs
        self._reading_code = b"" if blobs is None else READING_CODE
        self._damaged: set[str] = set()  # hashes of blobs that are to be written anew
        self._asked_as = hash64(f"{config.user_agent.header}\n{ACCEPT}\n{ACCEPT_ENCODING}") & 0xFFFFFFFF
        self._outlook = outlook or Outlook(control.workspace, config.resilience.suspicion, is_supervised=False)
        self._robots = RobotsCache(control.workspace, config.user_agent.crawler_name, lambda: clock().wall_ms)
        self._validator = Validator(config.validation, config.garbage)
        self._fields = FieldRules(config)
        classifier = Classifier(config)
        self._is_listed: Callable[[str], bool] = lambda domain: classifier.classify(domain).klass.is_listed
        self._rules = PageRules(config, classifier)

    # -- for the main thread -------------------------------------------------------------------------

    def notify_new_jobs(self, domain: LeasedDomain) -> None:
        """There may be new jobs: an idle domain goes on with the next one, if there is one."""
        if domain.idleness.notify() and self._begin_next(domain):
            self._queue.push(domain, 0)

    # -- for the greenlet that took the domain out of the queue --------------------------------------

    def advance(self, domain: LeasedDomain) -> None:
        """Send the request that is due, do everything that needs no further request, and put the domain back."""
        try:
            self._advance(domain)
        finally:
            if self._memory is not None:
                self._memory.release()

    def _advance(self, domain: LeasedDomain) -> None:
        assert domain.visit is not None
        self._tell(domain.visit)
        reply: Reply = None
        result: VisitResult | None = None
        request = domain.visit.pending
        if domain.visit.withheld is not None or self._outlook.has_struck(domain.visit):
            verdict = self._outlook.judge(domain.visit, time.monotonic_ns())
            if self._outlook.has_struck(domain.visit):
                verdict = Verdict.AGAIN
            if verdict is not Verdict.BELIEVE:
                self._postpone(domain, domain.visit, verdict)
                return
            result = self._record_withheld(domain, domain.visit)
        elif request is not None:
            if self._control.is_paused() or self._outlook.holds_requests:
                self._queue.hold(True)
                self._queue.push(domain, 0)
                return
            self._end_cooldown(domain)
            outcome = self._requester.try_send(domain.pace, request)
            if isinstance(outcome, Later):
                self._queue.push(domain, outcome.due_ns)
                return
            if isinstance(outcome, Sent):
                domain.visit.record(outcome.entry, is_robots=request.wanted is BodyWanted.ANYTHING)
                self._outlook.note(domain.visit, outcome.entry.host, outcome.answer, outcome.interval)
                reply = outcome.answer
            else:
                reply = outcome
        while True:
            if result is None:
                result = self._continue(domain, domain.visit, reply)
            if result is None:
                return
            self._finish(domain, domain.visit, result)
            if self._memory is not None:
                self._memory.release()
            if not self._begin_next(domain):
                return
            self._tell(domain.visit)
            reply = result = None

    def _tell(self, current: VisitInProgress) -> None:
        """Tell which job this place works on, before it does. A job that has killed a fetcher is worked on alone."""
        if self._activity is not None:
            self._activity.assign(self._hub.place, current.job.domain, current.job.run, current.number)
        if current.is_suspect and self._memory is not None:
            self._memory.work_alone()

    def _begin_next(self, domain: LeasedDomain) -> bool:
        """Begin the visit of the next job. False: there is none, and the domain is idle."""
        while True:
            is_ending = self._queue.is_ending
            found = domain.jobs.next() if not is_ending and domain.jobs.fill() else None
            if found is None:
                domain.pace.forget_retries()
                if domain.idleness.try_rest(time.monotonic(), is_ending=is_ending):
                    return False
                continue
            job, job_end = found
            if (fault := job_fault(job)) is not None or job.domain != domain.name:
                # Its page, if there is one, still waits in the map, and is released again as the map has it.
                log.warning("%s: skipped a job that cannot be done: %s", domain.name, fault or "of another domain")
                self._journal.skip_job(domain.progress, job_end)
                continue
            if self._needs_no_visit(domain, job):
                self._journal.skip_job(domain.progress, job_end)
                continue
            if job.run == domain.pace.run and self._is_cooling(domain):
                domain.jobs.put_back(job, job_end)
                if domain.idleness.try_rest(time.monotonic(), is_ending=is_ending):
                    return False
                continue
            killed = domain.pace.kills_of(job)
            if killed.times >= MOST_KILLS:
                self._condemn(domain, job, job_end, killed)
                continue
            if job.run != domain.pace.run:
                domain.pace.begin_run(job.run, self._journal.mark())
            steps = self._steps(domain, job)
            domain.begin_visit(VisitInProgress(job, job_end, steps, is_suspect=killed.times > 0))
            if log.isEnabledFor(logging.INFO):
                log.info("Crawling %s", job.wire)
            return True

    def _condemn(self, domain: LeasedDomain, job: Job, job_end: Cursor, killed: KillMark) -> None:
        """Record a job that has killed its fetcher twice, without another visit."""
        log.warning("%s stopped a fetcher twice and is not visited again", job.wire)
        result = _failed(job, _kill_error(killed, self._config))
        nothing = visit(job, self._config, lambda host: None, self._is_listed)
        self._finish(domain, VisitInProgress(job, job_end, nothing), result)

    def _needs_no_visit(self, domain: LeasedDomain, job: Job) -> bool:
        """Is the job of an earlier run, done already, out of scope by now, or of a domain that is closed for its run?

        A page out of scope needs no result: the map decides its state by the rules. Where the scheduler has others than
        this process, because they change just now, it releases the page again.
        """
        is_current = job.run >= self._runs.number
        if is_current and (closure := domain.pace.pop_found_closure(job.run)):
            # The fetcher that closed the domain recorded it, but that line may have been damaged since. Then no other
            # record would say why the jobs that are skipped here have no result.
            event = DomainEvent(job.run, domain.name, now_text(), "closed", closes=closure)
            self._journal.append(dump(event))
        is_over = not is_current or domain.pace.is_closed(job.run) or domain.jobs.is_done(job)
        return is_over or self._is_out_of_scope(job)

    def _is_out_of_scope(self, job: Job) -> bool:
        """Is this a page that the rules of now deny? Sitemaps are read whatever the scope says."""
        return job.task != "sitemap" and self._rules.scope_rule(job.key, job.domain) is not None

    def _known_policy(self, domain: LeasedDomain, run: int, host: str) -> Policy | None:
        """The policy of a host, if its robots.txt is known; the gate learns its crawl delay."""
        policy = self._robots.policy(run, host)
        domain.pace.learn_delay(host, None if policy is None else policy.crawl_delay_ms)
        return policy

    def _continue(self, domain: LeasedDomain, current: VisitInProgress, reply: Reply) -> VisitResult | None:
        """Give the visit its reply. None: it wants something that takes time, and the domain is in the queue."""
        answer = reply
        try:
            while True:
                wish = self._step(current, reply)
                reply = None
                if isinstance(wish, Request):
                    current.wait_for(wish)
                    self._queue.push(domain, self._requester.due_ns(domain.pace, wish))
                    return None
                if isinstance(wish, Pause):
                    current.wait_for(None)
                    domain.pace.pause(wish.seconds, wish.retry_counts)
                    self._queue.push(domain, time.monotonic_ns() + int(wish.seconds * 1e9))
                    return None
                if isinstance(wish, StoredPage):
                    answer = reply = self._stored_body(wish.content_hash)
                elif isinstance(wish, PageNote):
                    current.note = wish.note
                elif isinstance(wish, RobotsResult):
                    if wish.error is not None and self._withholds(domain, current, wish):
                        return None
                    self._record_robots(domain, current, wish)
                else:
                    self._journal.append(dump(changed(wish, at=now_text())))
        except StopIteration as end:
            result: VisitResult = end.value
            if result.error is not None and self._withholds(domain, current, result):
                return None
            return self._keep_page(result, answer, current.note)
        except (OSError, JournalClosed):
            raise
        except Exception as problem:
            # A page must not stop the crawl, not even one that brings out a bug of this program.
            job = current.job
            log.exception("internal error while visiting %s", job.wire)
            error = f"internal-error: {type(problem).__name__}"
            if isinstance(problem, MemoryError):
                error = f"{LOCAL_SHORTAGE}: this machine has no memory left to read the page"
            return _failed(job, error)

    def _stored_body(self, digest: str) -> bytes | None:
        """The content of a page that has not changed; None: it is not there, or damaged."""
        if self._blobs is None:
            return None
        try:
            body = self._blobs.get_if_quick(digest)
            if body is None:
                body = self._hub.run_in_thread(partial(self._blobs.get, digest))
        except BlobDamaged as problem:
            log.warning("%s; the page is asked for again", problem)
            self._damaged.add(digest)
            return None
        if body is not None and len(body) > SMALL_BODY and self._memory is not None:
            self._memory.grow(len(body), len(body))
        return body

    def _stored(self, job: Job) -> tuple[Validators | None, bytes]:
        """The validators of a job that may be sent, and what is noted beside its page.

        They may be if they were given to requests like ours, for a page that is in the store.
        """
        known = job.validators
        if self._blobs is None or not isinstance(known, Validators) or known.asked_as != self._asked_as:
            return None, b""
        try:
            note = self._blobs.note_of(known.content_hash)
        except NotAHash:
            note = None
        return (None, b"") if note is None else (known, note)

    def _keep_page(self, result: VisitResult, answer: Reply, note: bytes) -> VisitResult:
        """Put the body of an accepted page into the store, before its result can name it."""
        if self._blobs is None or not isinstance(result, PageResult) or not isinstance(answer, (Response, bytes)):
            return result
        digest = result.content_hash
        if digest is None or result.noarchive:
            return result
        if isinstance(answer, bytes) or answer.status == NOT_MODIFIED:
            # It is in the store, and durable there: the map would not know it otherwise.
            if note:
                self._put(partial(self._blobs.renew_note, digest, note), result.bytes)
            return changed(result, stored=True)
        is_damaged = digest in self._damaged
        self._damaged.discard(digest)
        self._put(partial(self._blobs.put, answer.body, digest, is_anew=is_damaged, note=note), result.bytes)
        return changed(result, stored=True)

    def _put(self, put: Callable[[], object], size: int) -> None:
        """Put a page of this size; a large one in a thread, so that other domains need not wait for it."""
        if size > SMALL_BODY:
            self._hub.run_in_thread(put)
        else:
            put()

    def _step(self, current: VisitInProgress, reply: Reply) -> Wish:
        """The visit's next wish. A large page is parsed in a thread, so that other domains need not wait for it."""
        body = reply.body if isinstance(reply, Response) else reply
        if isinstance(body, bytes) and len(body) > SMALL_BODY:
            return self._hub.run_in_thread(partial(self._step_in_thread, self._hub.place, current, reply))
        return current.step(reply)

    def _step_in_thread(self, place: int, current: VisitInProgress, reply: Reply) -> Wish:
        if self._activity is not None:
            self._activity.enter_thread(place)
        try:
            return current.step(reply)
        finally:
            if self._activity is not None:
                self._activity.leave_thread(place)

    def _finish(self, domain: LeasedDomain, current: VisitInProgress, result: VisitResult) -> None:
        """Append a visit's result: its job is done."""
        closes = result.closes
        if closes is not None and not closes.request_number:
            closes = changed(closes, request_number=domain.pace.sent)
        ledger = current.ledger()
        result = changed(result, at=now_text(), boot=domain.pace.gate.clock_name, ledger=ledger, closes=closes)
        mark = self._journal.append_result(dump(result), domain.progress, current.job_end)
        domain.pace.count(ledger, mark)
        domain.jobs.remember(current.job)
        domain.end_visit()
        self._counts.requests += len(ledger)
        if isinstance(result, PageResult):
            domain.is_404_known |= result.state == PageState.DEAD_LINK
            self._counts.pages += 1
            self._counts.errors += result.state in ERRORS
        if closes is not None:
            domain.pace.close(closes)
        if isinstance(result, PageResult):  # a site without sitemaps is as healthy as any
            self._judge_domain(domain, result)
        if log.isEnabledFor(logging.INFO):
            _tell_end(result)
        self._journal.wake_ingest(more_to_come=self._queue.has_due)

    # -- failures that may be ours -------------------------------------------------------------------

    def _withholds(self, domain: LeasedDomain, current: VisitInProgress, result: VisitResult | RobotsResult) -> bool:
        """Is this result not recorded yet, because its last request failed in a way that may be ours?

        Its job stays after the bookmark: a fetcher that dies now loses nothing.
        """
        if current.last_failure is None or self._outlook.judge(current, time.monotonic_ns()) is Verdict.BELIEVE:
            current.note_success()
            return False
        current.withhold(result)
        self._outlook.withheld += 1
        self._queue.push(domain, current.last_failure.end + WITNESS_NS)
        return True

    def _record_withheld(self, domain: LeasedDomain, current: VisitInProgress) -> VisitResult | None:
        """The failure is the site's. None: it was a robots.txt, and the visit goes on."""
        self._outlook.withheld -= 1
        result = current.pop_withheld()
        if isinstance(result, RobotsResult):
            self._record_robots(domain, current, result)
            return None
        return result

    def _postpone(self, domain: LeasedDomain, current: VisitInProgress, verdict: Verdict) -> None:
        """Look at a withheld visit again later, or make it again."""
        if verdict is Verdict.WAIT:
            self._queue.push(domain, time.monotonic_ns() + ASK_AGAIN_NS)
            return
        if current.withheld is not None:
            self._outlook.withheld -= 1
        if any(failed.is_name for failed in current.failures):
            self._requester.forget_failed_names()
        domain.pace.forget_retries()
        refunded = current.begin_again(self._steps(domain, current.job), self._outlook.state.was_out)
        if refunded:
            domain.pace.refund(refunded)
        self._queue.push(domain, 0)

    def _steps(self, domain: LeasedDomain, job: Job) -> Visit | SitemapVisit:
        known = partial(self._known_policy, domain, job.run)
        retry_counts = domain.pace.retry_counts_of(job)
        if job.task == "sitemap":
            return visit_sitemap(job, self._config, known, self._is_listed, retry_counts)
        learns_404 = self._config.validation.learn_404 and not domain.is_404_known
        fields = self._fields.of(job.domain, job.key)
        validators, note = self._stored(job)
        return visit(
            job,
            self._config,
            known,
            self._is_listed,
            retry_counts,
            self._validator,
            learns_404=learns_404,
            fields=fields,
            asked_as=self._asked_as,
            validators=validators,
            reading_code=self._reading_code,
            note=note,
        )

    # -- the breaker ---------------------------------------------------------------------------------

    def _is_cooling(self, domain: LeasedDomain) -> bool:
        """Does the breaker hold the domain back for so long that others may have its place meanwhile?"""
        if domain.pace.breaker.due_ns - time.monotonic_ns() <= COOLING_IN_PLACE * 1e9:
            return False
        domain.pace.refresh()  # a person may have had it reset
        return domain.pace.breaker.due_ns - time.monotonic_ns() > COOLING_IN_PLACE * 1e9

    def _judge_domain(self, domain: LeasedDomain, result: PageResult) -> None:
        """What this visit says about its domain may open or close the breaker."""
        if not result.ledger:
            return
        settings = self._config.resilience
        is_barrier = result.is_hard_garbage and breakers.HARD in settings.breaker_counts
        word = breakers.HARD if is_barrier else slug_of(result.error) or breakers.OK
        has_answer = isinstance(result.ledger[-1].answer, int)
        outcome = breakers.outcome_of(word, settings, has_answer=has_answer)
        before = domain.pace.breaker
        self._change_breaker(domain, before, breakers.after(before, outcome, time.monotonic_ns(), settings), word)

    def _end_cooldown(self, domain: LeasedDomain) -> None:
        """An open breaker whose cooldown has passed lets one visit at a time through."""
        before = domain.pace.breaker
        if before.is_open and time.monotonic_ns() >= before.due_ns:
            self._change_breaker(domain, before, breakers.after_cooldown(before))

    def _change_breaker(self, domain: LeasedDomain, before: Breaker, now: Breaker, word: str = "") -> None:
        """Keep the breaker. A change of its state is recorded before it takes effect."""
        if now == before:
            return
        if now.state is not before.state:
            words = breakers.words(now, word)
            event = DomainEvent(domain.pace.run, domain.name, now_text(), f"breaker-{now.state}", now.changes, words)
            self._journal.append(dump(event))
            log.log(
                logging.WARNING if now.is_open else logging.INFO,
                "%s: the circuit breaker is %s: %s",
                domain.name,
                now.state,
                words,
            )
        domain.pace.keep_breaker(now)

    def _record_robots(self, domain: LeasedDomain, current: VisitInProgress, result: RobotsResult) -> None:
        """Record a robots.txt, then act on it: the proof comes before the requests that it allows."""
        moment = self._clock()
        ledger = current.pop_robots_ledger()
        self._counts.requests += len(ledger)
        result = changed(result, at=now_text(), boot=domain.pace.gate.clock_name, ledger=ledger)
        domain.pace.count(ledger, self._journal.append(dump(result)))
        domain.pace.learn_delay(result.host, self._robots.learn(result, moment.wall_ms).crawl_delay_ms)


def _failed(job: Job, error: str) -> VisitResult:
    """The result of a job that came to nothing."""
    if job.task == "sitemap":
        return SitemapResult(job.run, job.key, job.wire, job.domain, "", job.announced_by, job.level, error=error)
    return PageResult(job.run, job.key, job.wire, job.domain, "", "failed", error)


def _tell_end(result: VisitResult) -> None:
    if isinstance(result, SitemapResult):
        words = result.error or f"{result.entries:,} addresses"
        log.info("Sitemap %s: %s", result.wire, words)
    elif result.is_rejected:
        log.info("%s: rejected, %s (%s)", result.wire, result.validation, result.rejection_reason)
    elif result.error:
        log.info("%s: %s (%s)", result.wire, result.state, result.error)
    else:
        log.info("Discovered %d links on %s", len(result.hrefs), result.wire)


def _kill_error(killed: KillMark, config: Config) -> str:
    slug = KILL_REASONS.get(killed.reason, KILL_REASONS[TOO_COSTLY])
    if killed.reason == TOO_COSTLY:
        return f"{slug}: reading the page took more memory than a fetcher may have"
    return f"{slug}: reading the page took more than {config.network.processing_timeout / 1000:g} s"
