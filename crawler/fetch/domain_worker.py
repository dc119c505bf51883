"""One domain's steps, from job to job: ask, tell the visit, write its result down, begin the next.

A domain is in exactly one place: idle (the main thread's), in the queue, or with the one greenlet that took it out.
So its visits are made one after the other, and what belongs to it needs no lock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from crawler.fetch.due_queue import DueQueue
from crawler.fetch.gated_request import Asker, Later
from crawler.fetch.journal import Results, TooLate
from crawler.fetch.lease import JOBS_AT_ONCE, Domain, read_jobs
from crawler.fetch.robots_cache import RobotsCache
from crawler.model.messages import NO_RETRIES, Pause, Response
from crawler.model.moments import Moment
from crawler.model.records import DomainEvent, Exchange, PageResult, RobotsResult, changed, dump
from crawler.model.settings import Config
from crawler.model.states import ERRORS
from crawler.net.hub import Hub
from crawler.pace.gate_record import LedgerMark, with_pause
from crawler.rules.lists import Classifier
from crawler.visit.flow import Reply, Visit, Wish, visit
from crawler.visit.robots import Policy
from crawler.workspace.clock import now_text
from crawler.workspace.control import StageControl
from crawler.workspace.log import Cursor
from crawler.workspace.runs import RunWatch

log = logging.getLogger("sumi.fetcher")

LARGE_BODY = 400 * 1024  # bytes: more takes ten milliseconds and longer to read


@dataclass(slots=True)
class Counts:
    pages: int = 0
    requests: int = 0
    errors: int = 0


class Steps:
    """Takes domains forward. `advance` is for the greenlet that took the domain out of the queue, `nudge` and
    `is_at_rest` are for the main thread.

    Invariants:
    - whoever ends a step has put the domain back into the queue, or made it idle;
    - a domain changes between idle and busy under `_idling`, and a nudge that comes meanwhile is not lost;
    - a result is written down before anything is done that it allows.
    """

    def __init__(
        self,
        config: Config,
        control: StageControl,
        runs: RunWatch,
        results: Results,
        asker: Asker,
        queue: DueQueue[Domain],
        hub: Hub,
        counts: Counts,
        clock: Callable[[], Moment],
    ) -> None:
        self._config = config
        self._control = control
        self._runs = runs
        self._results = results
        self._asker = asker
        self._queue = queue
        self._hub = hub
        self._counts = counts
        self._clock = clock
        self._robots = RobotsCache(control.workspace, lambda: clock().wall_ms)
        self._idling = threading.Lock()  # for a domain's change between idle and busy
        classifier = Classifier(config)
        self._is_listed: Callable[[str], bool] = lambda domain: classifier.classify(domain).klass.is_listed

    # -- for the main thread -------------------------------------------------------------------------

    def nudge(self, domain: Domain) -> None:
        """There may be new jobs: let an idle domain go on with the next one, if there is one."""
        with self._idling:
            if not domain.is_idle:
                domain.is_nudged = True
                return
            domain.is_idle = False
        if self._begin_next(domain):
            self._queue.push(domain, 0)

    def is_at_rest(self, domain: Domain) -> bool:
        """Is it idle, with nothing known that it should look at? Then it stays so until it is nudged."""
        with self._idling:
            return domain.is_idle and not domain.is_nudged

    # -- for whoever took the domain out of the queue ------------------------------------------------

    def advance(self, domain: Domain) -> None:
        """Do what the domain is due for, then as much as needs no request, and put it back."""
        reply: Reply = None
        if domain.wish is not None:
            if self._control.is_paused():
                self._queue.hold(True)
                self._queue.push(domain, 0)
                return
            answer = self._asker.ask(domain, domain.wish)
            if isinstance(answer, Later):
                self._queue.push(domain, answer.due_ns)
                return
            reply = answer
        while True:
            result = self._feed(domain, reply)
            if result is None:
                return
            self._finish(domain, result)
            if not self._begin_next(domain):
                return
            reply = None

    def _begin_next(self, domain: Domain) -> bool:
        """Begin the visit of the next job. False: there is none, and the domain is idle."""
        while True:
            if not domain.jobs and not self._queue.is_ending:
                domain.jobs.extend(read_jobs(domain.reader, JOBS_AT_ONCE))
                domain.reader.close()  # the next window is another file
            if not domain.jobs or self._queue.is_ending:
                with self._idling:
                    if domain.is_nudged and not self._queue.is_ending:
                        domain.is_nudged = False
                        continue
                    domain.tried = NO_RETRIES
                    domain.is_idle = True
                    domain.idle_since = time.monotonic()
                    return False
            job, domain.job_end = domain.jobs.popleft()
            domain.job = job
            is_closed = domain.closes is not None and domain.closed_run == job.run
            if is_closed and domain.has_found_closure and job.run >= self._runs.number:
                # Whoever closed it wrote that down, but the line may have been damaged since: then nobody else would
                # ever tell what became of the jobs that are stepped over here.
                domain.has_found_closure = False
                self._results.append(
                    dump(DomainEvent(job.run, domain.name, now_text(), "closed", closes=domain.closes))
                )
            if job.run < self._runs.number or is_closed or (job.run, job.key) in domain.recent:
                self._results.step_over(domain)
                continue
            if job.run != domain.run:
                domain.run, domain.uncounted, domain.mark = job.run, 0, self._results.mark()
            known = partial(self._known, domain, job.run)
            domain.visit = visit(job, self._config, known, self._is_listed, domain.tried_of(job))
            domain.wish, domain.has_asked = None, False
            domain.ledger.clear()
            domain.robots_ledger.clear()
            if log.isEnabledFor(logging.INFO):
                log.info("Crawling %s", job.wire)
            return True

    def _known(self, domain: Domain, run: int, host: str) -> Policy | None:
        """What is known of a host's robots.txt; its delay is remembered for the gate."""
        policy = self._robots.policy(run, host)
        if policy is None:
            domain.delays.pop(host, None)
        else:
            domain.delays[host] = policy.crawl_delay_ms
        return policy

    def _feed(self, domain: Domain, reply: Reply) -> PageResult | None:
        """Tell the visit what came of its wish. None: it wants something that takes time, and is back in the queue."""
        assert domain.visit is not None and domain.job is not None
        try:
            while True:
                wish = self._step(domain.visit, reply)
                reply = None
                if isinstance(wish, RobotsResult):
                    self._write_robots(domain, wish)
                elif isinstance(wish, DomainEvent):
                    self._results.append(dump(changed(wish, at=now_text())))
                elif isinstance(wish, Pause):
                    domain.wish = None
                    domain.tried = wish.retry_counts
                    # In the gate too: whoever takes over from a fetcher that dies meanwhile waits as long, and goes
                    # on counting.
                    domain.gate.update(
                        domain.job.run, partial(with_pause, seconds=wish.seconds, retry_counts=wish.retry_counts)
                    )
                    self._queue.push(domain, time.monotonic_ns() + int(wish.seconds * 1e9))
                    return None
                else:
                    domain.wish = wish
                    self._queue.push(domain, self._asker.due(domain, wish))
                    return None
        except StopIteration as end:
            result: PageResult = end.value
            return result
        except (OSError, TooLate):
            raise
        except Exception as problem:
            # A page must not stop the crawl, not even one that finds a mistake in this program.
            log.exception("visiting %s found a mistake in this program", domain.job.wire)
            job = domain.job
            error = f"internal-error: {type(problem).__name__}"
            return PageResult(job.run, job.key, job.wire, job.domain, "", "failed", error)

    def _step(self, visit: Visit, reply: Reply) -> Wish:
        """A visit's next wish. To read a large page takes long, which others need not wait for."""
        if isinstance(reply, Response) and len(reply.body) > LARGE_BODY:
            return self._hub.run_in_thread(lambda: visit.send(reply))
        return visit.send(reply)

    def _finish(self, domain: Domain, result: PageResult) -> None:
        """Append a visit's result; its job is settled with that."""
        assert domain.job is not None
        closes = result.closes
        if closes is not None and not closes.request_number:
            closes = changed(closes, request_number=domain.gate.record.sent)
        ledger = tuple(domain.robots_ledger + domain.ledger)
        result = changed(result, at=now_text(), boot=self._clock().boot, ledger=ledger, closes=closes)
        end = self._results.append(dump(result), settles=domain)
        self._count(domain, ledger, end)
        domain.remember(domain.job)
        domain.visit = None
        self._counts.pages += 1
        self._counts.requests += len(ledger)
        self._counts.errors += result.state in ERRORS
        if closes is not None:
            domain.closes, domain.closed_run = closes, result.run
            if domain.gate.update(result.run, domain.bring_up_to_date):
                domain.uncounted = 0
        if log.isEnabledFor(logging.INFO):
            if result.error:
                log.info("%s: %s (%s)", result.wire, result.state, result.error)
            else:
                log.info("Discovered %d links on %s", len(result.hrefs), result.wire)
        self._results.tell_ingest(more_to_come=self._queue.has_due)

    def _write_robots(self, domain: Domain, result: RobotsResult) -> None:
        """Write down what was learned, then act on it: the proof comes before what it allows."""
        moment = self._clock()
        ledger = tuple(domain.robots_ledger)
        domain.robots_ledger.clear()
        self._counts.requests += len(ledger)
        result = changed(result, at=now_text(), boot=moment.boot, ledger=ledger)
        end = self._results.append(dump(result))
        self._count(domain, ledger, end)
        domain.delays[result.host] = self._robots.learn(result, moment.wall_ms).crawl_delay_ms

    def _count(self, domain: Domain, ledger: tuple[Exchange, ...], end: Cursor) -> None:
        domain.uncounted += sum(entry.domain == domain.name for entry in ledger)
        domain.mark = LedgerMark(self._results.number, end.segment, end.offset)
