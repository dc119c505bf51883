"""Pages that no link leads to, tried when nothing else is left to visit.

Guesses are made where the run would end: all links have been followed then, in whatever order, so that the map says the
same however the crawl went, and links never wait for guesses. One guess of a domain is outstanding at a time: the finds
of two lists of a site do not depend on which of them came first. Every guess and every end is recorded, and the next
decision waits until the map has applied it.

With `[discovery] elsewhere`, pages that a sitemap names outside of quality domains are let in here as well, so many at
a time, where the host is within reach: whether it is does not depend on the order of visits then.

A run that lasts longer than a day does not wait for its end with archives: from then on they are tried in every domain
that has nothing else to visit, and one a day in the others. What is found then depends on time, and is recorded like
everything that does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import chain

from crawler.database.frontier import Frontier
from crawler.database.known_lists import (
    KnownList,
    firsts_of,
    members_of,
    next_archive,
    open_archives,
    open_lists,
    tried_of,
    unvisited_entries,
)
from crawler.database.missing_prints import MissingPrints
from crawler.model.origins import Origin
from crawler.model.records import GuessEvent, changed
from crawler.model.settings import Config
from crawler.model.urls import domain_of, normalize
from crawler.rules.list_guess import End, Guess, next_archive_guess, next_guess
from crawler.rules.lists import Classifier, DomainClass
from crawler.rules.page_rules import PageRules
from crawler.schedule.decision_log import WRITER, DecisionLog
from crawler.workspace.clock import now_text
from crawler.workspace.log import BEGINNING

log = logging.getLogger("sumi.scheduler")

Wish = tuple[Origin, KnownList, Guess | End]

LET_IN = 50  # pages of a sitemap in a domain that is none of quality, before what they led to is looked at


class PageGuesses:
    """`decide` when the frontier is empty and everything that was decided before is applied."""

    def __init__(self, config: Config, frontier: Frontier, decisions: DecisionLog) -> None:
        self._settings = config.discovery
        self._max_depth = config.crawler.max_depth
        self._frontier = frontier
        self._decisions = decisions
        self._tracking = config.crawler.tracking_parameters
        self._classifier = Classifier(config)
        self._rules = PageRules(config, self._classifier)

    def are_applied(self) -> bool:
        """Does the map know every guess of this process?"""
        return self._frontier.positions().get(WRITER, BEGINNING) >= self._decisions.guess_end

    def decide(self, run: int) -> bool:
        """Record what the map asks for. True: something was decided; False: there is nothing to try."""
        missing = MissingPrints(self._frontier, run)
        busy: set[str] = set()  # domains that have had their guess
        guesses = chain(self._lists(run, busy, missing), self._archives(run, busy, missing), self._entries(run, busy))
        return self._record(guesses, run, busy)

    def decide_archives(self, run: int, busy: set[str]) -> bool:
        """The same for archives alone, while the run has other things to do. None of the domains in `busy` gets one.

        This depends on time: it is for runs that do not end soon.
        """
        return self._record(self._archives(run, busy, MissingPrints(self._frontier, run)), run, busy)

    def _record(self, wishes: Iterable[Wish], run: int, busy: set[str]) -> bool:
        has_decided = False
        for way, known, found in wishes:
            event = GuessEvent(run, known.domain, now_text(), "ended", way, known.form)
            if isinstance(found, Guess):
                busy.add(known.domain)
                event = changed(event, event="guessed", wire=found.wire)
                log.debug("trying %s, which no link leads to", found.wire)
            else:
                event = changed(event, reason=found.reason)
            self._decisions.record(event)
            has_decided = True
        return has_decided

    def _lists(self, run: int, busy: set[str], missing: MissingPrints) -> Iterator[Wish]:
        """Every list with what to do about it; none of domains that are busy by then."""
        settings, frontier = self._settings, self._frontier
        is_on = settings.pagination == "speculate"
        for known in open_lists(frontier, run, is_elsewhere=settings.elsewhere) if is_on else ():
            if known.domain not in busy:
                members, firsts = members_of(frontier, known.rule, run), firsts_of(frontier, known.rule, run)
                limit, prints = settings.max_list_guesses, missing.of(known.domain)
                found = next_guess(members, firsts, known.guesses, limit, prints)
                if found is not None:
                    yield Origin.SPECULATED, known, self._within_rules(found)

    def _archives(self, run: int, busy: set[str], missing: MissingPrints) -> Iterator[Wish]:
        """The same for every form of archives."""
        settings, frontier = self._settings, self._frontier
        for known in open_archives(frontier, run) if settings.archives else ():
            if known.domain not in busy:
                tried, url = tried_of(frontier, known.rule, run), next_archive(frontier, known.rule, run)
                limit, prints = settings.max_archive_pages, missing.of(known.domain)
                found = next_archive_guess(tried, url, known.guesses, limit, prints)
                if found is not None:
                    yield Origin.ARCHIVE, known, self._within_rules(found)

    def _entries(self, run: int, busy: set[str]) -> Iterator[Wish]:
        """Pages of sitemaps outside of quality domains, on hosts within reach."""
        if not (self._settings.elsewhere and self._settings.sitemaps):
            return
        others = busy.copy()  # a domain's share is let in together
        for domain, wire in unvisited_entries(self._frontier, run, self._max_depth, LET_IN):
            if domain not in others:
                yield Origin.SITEMAP, KnownList(0, "", domain, 0), Guess(wire)

    def _within_rules(self, found: Guess | End) -> Guess | End:
        """A page that is out of scope would never be visited; nor one outside of quality domains, unless the config
        asks for that (the list's last page was visited, so that it is within reach).
        """
        if isinstance(found, End):
            return found
        key, domain = normalize(found.wire, self._tracking), domain_of(found.wire)
        klass = self._classifier.classify(domain).class_of(key)
        is_inside = klass is DomainClass.QUALITY or (self._settings.elsewhere and not klass.is_listed)
        return found if is_inside and self._rules.scope_rule(key, domain) is None else End("out-of-scope")
