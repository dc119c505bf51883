"""Jobs from the frontier table into the workspace: a window at a time, announced to the fetchers."""

from __future__ import annotations

import logging

from crawler.database.carried_pages import NotDue
from crawler.database.frontier import Frontier, MapAway, Waiting
from crawler.database.known_answers import validators_of
from crawler.model.records import FamilyEvent, Release, dump
from crawler.model.settings import Config, CrawlerSettings
from crawler.model.shown_text import counted
from crawler.rules.page_rules import rule_text
from crawler.schedule.caps import CapLimits
from crawler.schedule.carrying import BATCH, PageCarrier
from crawler.schedule.decision_log import DecisionLog
from crawler.schedule.domain_queues import ActiveDomain, DomainQueues
from crawler.schedule.families import FamilyLimits
from crawler.schedule.subdomain_limits import SubdomainLimits
from crawler.workspace.clock import now_text
from crawler.workspace.door import JobWindow, Workspace

log = logging.getLogger("sumi.scheduler")

_WINDOW, _LARGEST_WINDOW = 16, 64
_WINDOW_MS = 6000
_RETRY_HELD_BACK = 1.0  # seconds
_REVISITS_MS, _FEWEST_REVISITS, _MOST_REVISITS = 1000, 2, 8
_SMALL_SEGMENT = 1024 * 1024  # the releases are only ever tailed


def window_for(settings: CrawlerSettings) -> int:
    """The number of released jobs that a domain may have outstanding.

    Few, so that a nearer page found meanwhile is not queued after many others; but enough for the seconds that pass
    until the map has applied their results and the next window is released.
    """
    fastest = max(2 * settings.minimum_time_on_page, 1)  # ms a page: HEAD and GET
    return settings.jobs_per_domain or max(_WINDOW, min(-(-_WINDOW_MS // fastest), _LARGEST_WINDOW))


def revisits_for(settings: CrawlerSettings) -> int:
    """Jobs that a domain which its budget cuts short may have outstanding while only visited pages are known.

    A page that was visited in an earlier run may lead to some that never were, and those go first. So few are released
    at a time; but enough for the time until their links are known.
    """
    fastest = max(2 * settings.minimum_time_on_page, 1)
    return max(_FEWEST_REVISITS, min(_REVISITS_MS // fastest, _MOST_REVISITS))


class JobReleaser:
    """Fills the windows of domains, closes families that reach their limit, and announces new jobs.

    Invariants:
    - a page is released once, unless its visit left no result (`release_again`), or other settings came into force
      before it was visited (`withdraw_windows`);
    - a window stays in the workspace until none of its pages is outstanding, and a little longer: to delete a file that
      is just being written waits for the disk, and what is decided in the same step need not.
    """

    def __init__(
        self, config: Config, workspace: Workspace, frontier: Frontier, queues: DomainQueues, decisions: DecisionLog
    ) -> None:
        self._workspace = workspace
        self._frontier = frontier
        self._queues = queues
        self._decisions = decisions
        self._window = window_for(config.crawler)
        self._revisits = min(revisits_for(config.crawler), self._window)
        self._carrier = PageCarrier(config, frontier, decisions)
        self._asks_for_changes = config.store.html
        self._families = FamilyLimits(frontier, config.traps)
        self._subdomains = SubdomainLimits(frontier, config)
        self._caps = CapLimits(frontier, config, queues) if config.caps else None
        self._jobs = workspace.job_writer()
        self._releases = workspace.releases.writer(segment_bytes=_SMALL_SEGMENT)
        self._turns: dict[str, int] = {}  # domains that have had jobs, numbered in that order
        self._unannounced: list[Release] = []
        self._done: list[tuple[str, int]] = []  # windows to be removed, by domain and number
        self.released = 0

    # -- windows -------------------------------------------------------------------------------------

    def release_window(self, name: str, run: int, now: float, most: int | None = None) -> None:
        """Fill a domain's window from the table, and find out whether the domain has more. `most`: pages at most."""
        domain = self._queues.take_from_line(name)
        if domain is None:
            domain_id = self._frontier.domain_id(name)
            if domain_id is None:
                return  # a hint about a map that was replaced
            domain = ActiveDomain(name, domain_id, now)
            domain.is_cut_short = self._frontier.was_cut_short(domain_id, run)
        limit = self._window + domain.job_count + 1
        rows = self._frontier.window(domain.id, limit, has_not_due=not self._carrier.is_on)
        known = self._carrier.waiting(domain.id)
        not_due = [page for page in known if page.row.page not in domain.outstanding]
        # A sitemap is read when no page of its domain waits, and then the pages that it named are visited first. Where
        # its dates may hurry pages that are not due, it is read at once.
        sitemap = self._frontier.next_sitemap(domain.id) if len(rows) < limit or not_due else None
        domain.sitemap_priority = sitemap.priority if sitemap is not None else None
        if (rows or not_due or sitemap is not None) and not self._may_begin(name, run):
            self._queues.hold_back(name, now + _RETRY_HELD_BACK)  # until the map has closed its pages
            return
        waits_for_dates = sitemap is not None and bool(not_due) and self._carrier.reads_sitemaps_first
        if sitemap is not None and (not rows or waits_for_dates):
            rows = [sitemap, *rows]
        carried = self._carry(domain, not_due, run, now) if not waits_for_dates else False
        if not waits_for_dates:
            rows += [page.row for page in not_due if page.row.page not in domain.carried]
        room = self._window - domain.job_count
        if most is not None:
            room = min(room, most)
        chosen: list[Waiting] = []
        is_any_held = False
        rest: list[Waiting] = [page.row for page in not_due] if waits_for_dates else []
        for row in rows:
            if row.page in domain.outstanding:
                continue
            is_held = domain.is_cut_short and row.turn > 0 and domain.job_count >= self._revisits
            is_any_held |= is_held
            if len(chosen) < room and not is_held and self._is_within_limits(row, domain, run):
                chosen.append(row)
                domain.add(row.page, row.key, row.family)
            else:
                rest.append(row)
        # Until half of them are done, or a hint tells of others: one at a time would be a window for each page.
        domain.is_held_at = self._revisits if is_any_held and not any(row.turn == 0 for row in rest) else None
        domain.has_more = bool(rest) or len(rows) >= limit or len(known) == BATCH
        domain.priority = rest[0].priority if rest else 0
        if chosen or carried:
            self._queues.active[name] = domain
            if chosen:
                self._write(domain, chosen, run, now)
            self._queues.request_more(domain)
        elif rest:
            self._queues.hold_back(name, now + _RETRY_HELD_BACK)

    def _carry(self, domain: ActiveDomain, pages: list[NotDue], run: int, now: float) -> bool:
        """Carry pages that are not due into the run, those aside that a sitemap hurries. False: there was none."""

        def may_carry(row: Waiting) -> bool:
            if not self._is_within_limits(row, domain, run):
                return False
            domain.add(row.page, row.key, row.family)
            domain.carried.add(row.page)
            return True

        rows = [page.row for page in pages if not self._carrier.is_hurried(page)]
        if not self._carrier.carry(rows, run, may_carry):
            return False
        domain.last_progress = now
        return True

    def release_again(self, domain: ActiveDomain, run: int, now: float) -> None:
        """Release outstanding pages whose results cannot be read: nothing else would ever settle them."""
        rows = self._frontier.waiting_pages(domain.outstanding)
        if not rows:
            return
        old = list(domain.windows)
        self._write(domain, rows, run, now)
        for number in old:
            del domain.windows[number]
            self._jobs.remove(domain.name, number)
        domain.carried.clear()
        domain.fruitless += 1
        log.warning("%s: %s left no readable result; released again", domain.name, counted(len(rows), "visit"))

    def restore_windows(self, run: int, now: float) -> None:
        """After a start: make the waiting pages of released windows outstanding again; remove windows without any."""
        self._forget_limits()
        for window in self._jobs.windows():
            if not self._restore(window, run, now):
                window.remove()

    def withdraw_windows(self) -> None:
        """Settings have changed: what still waits is released anew, in their order and as far as they allow.

        Bookmarks stay: they say where the results of a fetcher that died are to be found.
        """
        self._forget_limits()
        for window in self._jobs.windows():
            window.remove()

    def _forget_limits(self) -> None:
        """Limits of single pages and hosts are counted anew, from the map."""
        self.remove_done()
        self._families.forget()
        if self._caps is not None:
            self._caps.forget()
        self._subdomains.forget()

    def _restore(self, window: JobWindow, run: int, now: float) -> bool:
        active = self._queues.active
        for job in window.jobs:
            page = self._frontier.waiting_page(job) if job.run == run else None
            if page is None:
                continue
            domain = active.get(job.domain)
            if domain is None:
                domain_id = self._frontier.domain_id(job.domain)
                if domain_id is None:
                    raise MapAway(f"{job.domain} has pages but no row of its own")
                domain = active[job.domain] = ActiveDomain(job.domain, domain_id, now)
                domain.is_cut_short = self._frontier.was_cut_short(domain_id, run)
            self._subdomains.note(job.domain, run)
            domain.windows.setdefault(window.number, set()).add(page[0])
            domain.add(page[0], job.key, page[1])
        domains = (active.get(job.domain) for job in window.jobs)
        return any(window.number in domain.windows for domain in domains if domain)

    def _write(self, domain: ActiveDomain, rows: list[Waiting], run: int, now: float) -> None:
        known = [row.page for row in rows if row.turn and row.page >= 0] if self._asks_for_changes else []
        validators = validators_of(self._frontier, known) if known else {}
        jobs = [row.job(run, domain.name, validators.get(row.page)) for row in rows]
        self._subdomains.note(domain.name, run)
        number = self._jobs.write(domain.name, jobs)
        domain.windows[number] = {row.page for row in rows}
        domain.last_progress = now
        self.released += len(rows)
        turn = self._turns.setdefault(domain.name, len(self._turns) + 1)
        self._unannounced.append(Release(run, domain.name, len(rows), turn))

    # -- families and caps ---------------------------------------------------------------------------

    def _is_within_limits(self, row: Waiting, domain: ActiveDomain, run: int) -> bool:
        """Count the page against every limit that it is under. A limit that is reached is closed instead."""
        if self._caps is None or row.page < 0:
            return self._is_within_family(row, domain, run)
        for unit in self._caps.full_units(row.key, domain, run):
            spare = self._caps.outstanding_keys(unit, domain)
            rule = rule_text(unit.rule)
            limit = unit.rule.max_pages
            self._decisions.record(FamilyEvent(run, "", now_text(), unit.family, unit.error, limit, spare, rule))
            self._caps.close(unit)
            log.info("a cap is reached: %s", unit.error)
        if self._caps.is_under_closed(row.key, run) or not self._is_within_family(row, domain, run):
            return False
        self._caps.count(row.key)
        return True

    def _is_within_family(self, row: Waiting, domain: ActiveDomain, run: int) -> bool:
        """Count the page against its family's limit, if it is in one. At the limit the family is closed."""
        if row.family is None:
            return True
        if self._families.is_closed(row.family, run):
            return False
        outstanding = domain.pages_of_family(row.family)
        family = self._families.count(row.family, row.key, run, outstanding)
        if family is None:
            return True
        spare = tuple(sorted(domain.outstanding[page] for page in outstanding))
        event = FamilyEvent(run, domain.name, now_text(), family.name, family.error, family.limit, spare)
        self._decisions.record(event)
        self._families.close(row.family)
        log.info("%s: a family of similar URLs is closed: %s", domain.name, family.error)
        return False

    def _may_begin(self, name: str, run: int) -> bool:
        """May this host have jobs? At the limit of hosts under its registered domain, all others are closed."""
        if self._subdomains.may_begin(name, run):
            return True
        found = self._subdomains.to_close(name, run)
        if found is not None:
            base, family, spare = found
            self._decisions.record(FamilyEvent(run, base, now_text(), family.name, family.error, family.limit, spare))
            self._subdomains.close(base)
            log.info("%s: no more hosts under it are visited: %s", base, family.error)
        return False

    # -- the workspace -------------------------------------------------------------------------------

    def announce_again(self, name: str, run: int) -> None:
        """This domain may go on with jobs that it has already."""
        self._unannounced.append(Release(run, name, 0, self._turns.setdefault(name, len(self._turns) + 1)))
        self.announce()

    def announce(self) -> None:
        """Name the domains that have new jobs, and wake the fetchers, once for all of them."""
        if not self._unannounced:
            return
        self._releases.append_all(dump(release) for release in self._unannounced)
        self._unannounced.clear()
        self._workspace.releases.remove_before(self._releases.end.segment - 1)
        self.wake_fetchers()

    def wake_fetchers(self) -> None:
        for name in self._workspace.bells():
            if name.startswith("fetcher-"):
                self._workspace.ring(name)

    def note_done(self, domain: str, number: int) -> None:
        """None of this window's pages is outstanding any more."""
        self._done.append((domain, number))

    def remove_done(self) -> None:
        """Remove those windows: nothing waits for this step any more."""
        for domain, number in self._done:
            self._jobs.remove(domain, number)
        self._done.clear()

    def remove_all(self) -> None:
        self._done.clear()
        self._jobs.remove_all()

    def clean(self) -> None:
        self.remove_done()
        self._jobs.clean()

    def is_worked_off(self, domain: ActiveDomain) -> bool:
        """Has a fetcher's bookmark passed every job of this domain?"""
        return self._jobs.is_worked_off(domain.name)

    def close(self) -> None:
        self.remove_done()
        self._releases.close()
