"""Pages that no link leads to, tried when nothing else is left to visit.

Guesses are made where the run would end: all links have been followed then, in whatever order, so that the map says the
same however the crawl went, and links never wait for guesses. One guess of a domain is outstanding at a time: the finds
of two lists of a site do not depend on which of them came first. Every guess and every end is recorded, and the next
decision waits until the map has applied it.
"""

from __future__ import annotations

import logging

from crawler.database.frontier import Frontier
from crawler.database.known_lists import firsts_of, members_of, open_lists
from crawler.model.records import GuessEvent
from crawler.model.settings import Config
from crawler.rules.list_guess import Guess, next_guess
from crawler.schedule.decision_log import WRITER, DecisionLog
from crawler.workspace.clock import now_text
from crawler.workspace.log import BEGINNING

log = logging.getLogger("sumi.scheduler")


class PageGuesses:
    """`decide` when the frontier is empty and everything that was decided before is applied."""

    def __init__(self, config: Config, frontier: Frontier, decisions: DecisionLog) -> None:
        self._settings = config.discovery
        self._frontier = frontier
        self._decisions = decisions

    def are_applied(self) -> bool:
        """Does the map know every guess of this process?"""
        return self._frontier.positions().get(WRITER, BEGINNING) >= self._decisions.guess_end

    def decide(self, run: int) -> bool:
        """Record what the map asks for. True: something was decided; False: there is nothing to try."""
        if self._settings.pagination != "speculate":
            return False
        has_decided = False
        busy = ""  # the domain that has had its guess; lists come domain by domain
        for known in open_lists(self._frontier, run):
            if known.domain == busy:
                continue
            members = members_of(self._frontier, known.rule, run)
            firsts = firsts_of(self._frontier, known.rule, run)
            found = next_guess(members, firsts, known.guesses, self._settings.max_list_guesses)
            if found is None:
                continue
            has_decided = True
            if isinstance(found, Guess):
                busy = known.domain
                event = GuessEvent(run, known.domain, now_text(), "guessed", "speculated", known.form, found.wire)
                log.debug("trying %s, after the last page of its list", found.wire)
            else:
                event = GuessEvent(
                    run, known.domain, now_text(), "ended", "speculated", known.form, reason=found.reason
                )
            self._decisions.record(event)
        return has_decided
