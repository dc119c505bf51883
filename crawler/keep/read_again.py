"""Stored pages read again with today's code and rules, without one request: for `replay --from-store`.

The visit itself is run again (`crawler.visit.flow`), with the stored answer in the place of the network. What the page
says is then new: title, links, judgement, facts. What happened is as it was recorded: the time, the requests, the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crawler.model.messages import Request, Response
from crawler.model.records import UNSET, Job, PageResult, Revalidation, changed
from crawler.model.settings import Config
from crawler.model.shown_text import counted
from crawler.model.urls import hash64
from crawler.rules.field_rules import FieldRules
from crawler.store.blobs import BlobDamaged, BlobStore, NotAHash
from crawler.visit.flow import visit
from crawler.visit.robots import Policy
from crawler.visit.validation import Validator

# The members of a result that tell what happened, and not what the page says.
HAPPENED = (
    *("run", "key", "wire", "domain", "at", "status", "content_type", "last_modified", "retries", "bytes", "boot"),
    *(
        "ledger",
        "closes",
        "truncated",
        "content_hash",
        "stored",
        "etag",
        "answered_by",
        "headers",
        "carried",
        "revalidation",
    ),
)
_TELLING = ("x-robots-tag", "content-language", "refresh")  # say something about the page, besides its type


class PagesReadAgain:
    """Calls give the result of a visit as it would be today. Results without a stored page stay as they are."""

    def __init__(self, config: Config, store: BlobStore) -> None:
        crawler = replace(config.crawler, head_requests="never", retries=0)
        # Pages are read anew: what was noted beside them is not looked at, and nothing is noted.
        self._config = replace(config, crawler=crawler)
        self._store = store
        self._validator = Validator(config.validation, config.garbage)
        self._fields = FieldRules(config)
        self._visited: dict[int, tuple[str, dict[str, str]] | None] = {}  # by the hash of the key; None: as usual
        self.read = self.missing = self.unreadable = self.unknown = self.others = 0

    def __call__(self, result: PageResult) -> PageResult:
        if not result.stored or result.content_hash is None:
            self.others += 1
            return result
        is_visit_gone = result.is_carried and hash64(result.key) not in self._visited
        if is_visit_gone and not isinstance(result.revalidation, Revalidation):
            self.unknown += 1  # how the page was answered is not known any more
            return result
        try:
            body = self._store.get(result.content_hash)
        except (BlobDamaged, NotAHash):
            body = None
        if body is None:
            self.missing += 1
            return result
        found = self._visit_again(result, body)
        if found is None:
            self.unreadable += 1
            return result
        self.read += 1
        happened: dict[str, Any] = {name: getattr(result, name) for name in HAPPENED}
        return changed(found, **happened)

    def lines(self) -> list[str]:
        """What was read, for people."""
        found = [f"{counted(self.read, 'page')} read again from the store"]
        if self.missing:
            found.append(f"{counted(self.missing, 'page')} no longer in the store, or damaged there: as recorded")
        if self.unknown:
            words = "with a visit whose results, and headers, are gone (prune results, [spool] results): as recorded"
            found.append(f"{counted(self.unknown, 'stored page')} {words}")
        if self.unreadable:
            found.append(f"{counted(self.unreadable, 'stored page')} that today's rules would not request: as recorded")
        if self.others:
            found.append(f"{counted(self.others, 'visit')} without a stored page: as recorded")
        return found

    def _answer(self, result: PageResult) -> tuple[str, dict[str, str]]:
        """The address that answered, and the headers of its answer. A carried page has those of its last visit: it
        brings what the map had noted of them, or, where that was nothing, the results of that visit have them.
        """
        number = hash64(result.key)
        if result.is_carried:
            if isinstance(result.revalidation, Revalidation):
                return result.answered_by or result.wire, _telling(result.revalidation.headers)
            url, headers = self._visited.get(number) or (result.wire, {})
            return url, dict(headers)
        headers = {} if result.headers is UNSET else dict(result.headers)
        telling = _telling(headers)
        is_usual = result.answered_by is None and not telling
        self._visited[number] = None if is_usual else (result.answered_by or result.wire, telling)
        return result.answered_by or result.wire, headers

    def _visit_again(self, result: PageResult, body: bytes) -> PageResult | None:
        """The visit with the stored answer; None: today's rules want something that the store does not have."""
        url, headers = self._answer(result)
        headers.setdefault("content-type", result.content_type or "text/html")
        job = Job(result.run, result.key, result.wire, result.domain)
        steps = visit(
            job,
            self._config,
            lambda host: Policy(),
            lambda domain: False,
            validator=self._validator,
            fields=self._fields.of(job.domain, job.key),
        )
        try:
            wish = next(steps)
            for _ in range(2):
                if not isinstance(wish, Request) or wish.method != "GET":
                    return None
                is_here = wish.url == url
                answer = Response(200, headers, body) if is_here else Response(301, {"location": url})
                wish = steps.send(answer)
        except StopIteration as end:
            found: PageResult = end.value
            return found
        return None


def _telling(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: headers[name] for name in _TELLING if name in headers}
