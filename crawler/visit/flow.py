"""PURE. The request flow of one page, as a generator: no sockets, no sleeping, no clock.

`visit` yields its next wish and is sent the outcome:

    Request                    →  Response, Failure, or a Refusal (the budget is spent)
    Pause                      →  None, once the time has passed
    StoredPage                 →  its bytes; None: they are not to be had
    PageNote                   →  None, once it is held ready to be kept beside the page
    RobotsResult, DomainEvent  →  None, once it is written to the journal

and returns the page's result. The worker fills in time, boot and ledger (`at`, `boot`, `ledger`) and the request number
of a closure. A pause carries the retry counts: a visit that is interrupted there and begun again with them makes no
more retries than the config allows.

The flow is robots.txt, HEAD (`head-requests`), GET. Where the page is in the store, it is one GET with the validators
of the last answer, and after a 304 the stored page is read as if it had been sent again; or what was noted beside it
when it was read last, if reading it again would give the same. A redirect that keeps the key (`www.`, slash, scheme) is
followed here; one that leaves it ends the visit, for the target is a page of its own.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

from msgspec import UNSET, UnsetType

from crawler.model.content_types import HTML_TYPES, is_html, media_type
from crawler.model.messages import (
    LOCAL_SHORTAGE,
    NO_RETRIES,
    Answer,
    BodyWanted,
    Failure,
    PageNote,
    Pause,
    Request,
    Response,
    RetryCounts,
    StoredPage,
)
from crawler.model.page_claims import longest_key
from crawler.model.pagination import label_next
from crawler.model.records import (
    SITEMAP_KEY,
    Closure,
    DomainEvent,
    Job,
    PageResult,
    Revalidation,
    RobotsResult,
    SitemapResult,
    Validators,
)
from crawler.model.settings import Config, ExtractRule
from crawler.model.states import PageState, slug_of
from crawler.model.urls import UrlError, authority_of, domain_of, hash64, normalize, resolve, wire_of
from crawler.model.validity import REJECTED, Validity
from crawler.visit.html import (
    Extracted,
    extracted,
    header_says_noarchive,
    header_says_nofollow,
    language_of,
    read,
    refresh_target,
)
from crawler.visit.page_reading import Reading
from crawler.visit.reading_note import NoteKey, key_of, note_of, reading_in
from crawler.visit.robots import MAX_BYTES, Policy, Verdict, parse, policy_of, text_of, verdict_of_status
from crawler.visit.validation import Validation, Validator, text_print

MAX_REDIRECTS = 10
MAX_ROBOTS_REDIRECTS = 5
FEW_RULES = 1000  # a longer robots.txt is asked for where it is kept: hundreds of visits are under way at one time

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MISSING = frozenset({404, 410})
_OF_A_CONDITION = frozenset({304, 412})  # answers to a condition; 412 has no place here, and some servers send it
# A retry would end the same way.
UNREACHABLE_AT_ONCE = frozenset({"connection-refused", "tls", "dns", "address-blocked"})
FAILED_AT_ONCE = frozenset({"too-large", "bad-encoding", "too-slow", "too-costly"})
# Failures that are retried, and the state of the page after the last retry.
_AFTER_RETRIES = {
    "connection-reset": PageState.UNREACHABLE,
    "connection-failed": PageState.UNREACHABLE,
    "dns-temporary": PageState.UNREACHABLE,
}
_PAGE_EXTENSIONS = frozenset(
    {"asp", "aspx", "cfm", "cgi", "do", "htm", "html", "jsf", "jsp", "jspx", "php", "php3", "php4", "php5"}
    | {"phtml", "pl", "py", "rb", "shtm", "shtml", "xht", "xhtml"}
)
_HEADER_LENGTH = 300
LONGEST_ETAG = 2048  # characters; a longer one is not kept: cut off, it would be another
MOST_HEADERS = 8 * 1024  # characters of names and values that a result keeps
_NOT_KEPT = frozenset({"set-cookie", "set-cookie2"})
# Headers that say something about the page. Many servers leave them out of a 304.
_TELLING = ("content-type", "content-language", "x-robots-tag", "refresh")
_OF_THE_BODY = frozenset({"content-type", "content-length", "content-encoding", "content-range", "transfer-encoding"})
_USERINFO = re.compile(r"(?<=[/\\])[^/\\?#]*@")


@dataclass(frozen=True, slots=True)
class Refusal:
    """The request was not sent: its domain is closed for this run. `is_own`: it is the visited page's domain."""

    closes: Closure
    is_own: bool = True


Wish = Request | Pause | StoredPage | PageNote | RobotsResult | SitemapResult | DomainEvent
Reply = Answer | Refusal | bytes | None
Visit = Generator[Wish, Reply, PageResult]
KnownRobots = Callable[[str], Policy | None]


class _Ended(Exception):
    """The visit has ended with this result."""

    def __init__(self, result: PageResult) -> None:
        super().__init__(result.state)
        self.result = result


def visit(
    job: Job,
    config: Config,
    known: KnownRobots,
    is_listed: Callable[[str], bool],
    retry_counts: RetryCounts = NO_RETRIES,
    validator: Validator | None = None,
    *,
    learns_404: bool = False,
    fields: Sequence[ExtractRule] = (),
    asked_as: int = 0,
    validators: Validators | None = None,
    reading_code: bytes = b"",
    note: bytes = b"",
) -> Visit:
    """Visit one page. `known` gives a host's policy if it is cached and fresh; `is_listed` says whether a domain
    must never be visited (a robots.txt can redirect anywhere). `retry_counts` are those of an interrupted visit
    that this one continues. `validator` is the config's, where it is at hand. `learns_404`: GET a missing page, too.
    `fields` are the user's own that concern this page. `asked_as` stands for the headers of our requests. `validators`
    are those of the job, if its page is in the store and they were given to the same `asked_as`; `note` is what was
    noted beside it. `reading_code` is a print of the code that reads pages: without one nothing is noted, or believed.
    """
    flow = _Flow(job, config, known, is_listed, retry_counts, validator, learns_404)
    flow.fields = fields
    flow.asked_as, flow.validators = asked_as, validators
    flow.reading_code, flow.note = reading_code, note
    try:
        return (yield from flow.run())
    except _Ended as ended:
        return ended.result


def ask_for_file(
    job: Job,
    config: Config,
    known: KnownRobots,
    is_listed: Callable[[str], bool],
    retry_counts: RetryCounts,
    limit: int,
) -> Generator[Wish, Reply, Response | PageResult]:
    """The final answer to a GET of any file, with the robots.txt, retries and redirects of a visit; or, in the words of
    a page's result, how the visit ended without one.
    """
    flow = _Flow(job, config, known, is_listed, retry_counts, None, False)
    flow.wanted, flow.limit = BodyWanted.FILE, limit
    try:
        return (yield from flow.answer())
    except _Ended as ended:
        return ended.result


def ask_for_policy(
    job: Job, config: Config, known: KnownRobots, is_listed: Callable[[str], bool], retry_counts: RetryCounts
) -> Generator[Wish, Reply, Policy | PageResult]:
    """The robots.txt policy of the job's host: the one that is known, or else it is asked for."""
    flow = _Flow(job, config, known, is_listed, retry_counts, None, False)
    try:
        return (yield from flow.policy(authority_of(job.wire)))
    except _Ended as ended:
        return ended.result


def number_of(job: Job) -> int:
    """The job's identity as `RetryCounts` keeps it."""
    return hash64(f"{job.run} {job.key}") & 0xFFFF_FFFF_FFFF_FFFF  # the gate's field has no sign


def looks_like_page(url: str) -> bool:
    """Does the URL's path end the way pages do: with a slash, without an extension, or with a page's own?"""
    name = url.partition("?")[0].rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return not dot or not stem or extension.lower() in _PAGE_EXTENSIONS


def retry_after(headers: Mapping[str, str], received_at: float | None = None) -> float | None:
    """The seconds of a Retry-After. A date is read against the server's own clock, and without a `Date` against ours:
    `received_at` is the answer's time, in seconds since 1970.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:12])
    then = _seconds_of_date(value)
    now = _seconds_of_date(headers.get("date", ""))
    if now is None:
        now = received_at
    return None if then is None or now is None else max(0.0, then - now)


def _seconds_of_date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError, OSError):
        return None


class _Flow:
    def __init__(
        self,
        job: Job,
        config: Config,
        known: KnownRobots,
        is_listed: Callable[[str], bool],
        retry_counts: RetryCounts,
        validator: Validator | None,
        learns_404: bool,
    ) -> None:
        self.job = job
        self.validator = validator or Validator(config.validation, config.garbage)
        self.learns_404 = learns_404
        self.settings = config.crawler
        self.counts_429 = config.resilience.counts("http-429")
        self.agent = config.user_agent.crawler_name
        self.longest_base = longest_key(config.traps.max_url_length)
        self.labels_lists = config.discovery.pagination != "off"
        self.keeps_pages = config.store.html
        self.ways = (  # everything in the config that reading a page depends on
            config.crawler.max_links_per_page,
            config.user_agent.crawler_name,
            self.validator.longest_text,
            config.crawler.link_text,
            config.discovery.pagination != "off",
            config.store.near_duplicates,
        )
        self.fields: Sequence[ExtractRule] = ()
        self.asked_as = 0
        self.validators: Validators | None = None
        self.reading_code = self.note = b""
        self.reading: Reading | None = None  # of the page, as it was noted or is read
        self.may_ask_conditionally = True  # until a 304 turns out to be of no use
        self.is_etag_vain = False  # the ETag was sent, or doubted, and the page came all the same
        self.key = job.key.removeprefix(SITEMAP_KEY)
        self.wanted = BodyWanted.HTML
        self.limit = config.network.max_body_size
        self.known = known
        self.is_listed = is_listed
        self.learned: dict[str, Policy] = {}
        self.cleared = ""  # the URL that robots.txt was asked about last, and allowed
        self.retry_counts = retry_counts
        self.retries = retry_counts.retries
        self.has_waited = retry_counts.has_waited
        self.head_type: str | None = None

    # -- the page ------------------------------------------------------------------------------------

    def run(self) -> Visit:
        url = self.job.wire
        seen = {url}
        mode = self.settings.head_requests
        is_head = mode == "always" or (mode == "auto" and not looks_like_page(url))
        is_head = is_head and not self._conditions_of(self.validators)
        while True:
            yield from self._check_robots(url)
            conditions = self._conditions(url)
            answer = yield from self._send(url, is_head, conditions)
            if answer is None:  # HEAD is not to be had here
                is_head = False
                continue
            if conditions and answer.status in _OF_A_CONDITION:
                answer = (yield from self._stored_answer(answer)) if answer.status == 304 else None
                if answer is None:
                    self.may_ask_conditionally = False
                    continue
            elif conditions and answer.status == 200:
                self.is_etag_vain = conditions[0][0] == "If-None-Match"
            target = self._next_hop(url, answer, seen)
            if target is not None:
                url = target
            elif is_head:
                self._check_head(answer)
                is_head = False
            else:
                return (yield from self._read(url, answer))

    def _conditions(self, url: str) -> tuple[tuple[str, str], ...]:
        """The headers that ask for this page only if it has changed; none where its validators do not belong."""
        known = self.validators
        if known is None or not self.may_ask_conditionally or url != known.url:
            return ()
        return self._conditions_of(known)

    @staticmethod
    def _conditions_of(known: Validators | None) -> tuple[tuple[str, str], ...]:
        """All that can be asked with these validators. An ETag that proved false is not sent again."""
        if known is None:
            return ()
        found = []
        if known.etag and not known.is_etag_vain:
            found.append(("If-None-Match", known.etag))
        if known.last_modified.isascii() and known.last_modified:
            found.append(("If-Modified-Since", known.last_modified))
        return tuple(found)

    def _stored_answer(self, confirmed: Response) -> Generator[Wish, Reply, Response | None]:
        """The answer that a 304 confirms, with the page from the store; None: the page is to be asked for again."""
        known = self.validators
        assert known is not None
        etag = confirmed.headers.get("etag", "")
        is_doubted = known.etag and not known.is_etag_vain and not etag.startswith("W/")
        if is_doubted and etag not in ("", known.etag.removeprefix("W/")):
            self.is_etag_vain = True
            return None  # it speaks of another page than the one that is here
        headers = {name: value for name, value in confirmed.headers.items() if name not in _OF_THE_BODY}
        headers = {"etag": known.etag, "last-modified": known.last_modified, **known.headers, **headers}
        headers = {name: value for name, value in headers.items() if value}
        key = self._note_key(headers)
        self.reading = None if key is None else reading_in(self.note, key)
        body = b""
        if self.reading is None:
            found = yield StoredPage(known.content_hash)
            if not isinstance(found, bytes):
                return None
            body = found
        is_cut = (len(body) if self.reading is None else self.reading.size) > self.limit
        return Response(
            *(200, headers, body, is_cut, confirmed.elapsed),
            received_at=confirmed.received_at,
            content_hash=known.content_hash,
        )

    def answer(self) -> Generator[Wish, Reply, Response]:
        """The final answer to a GET, without a HEAD before it."""
        url = self.job.wire
        seen = {url}
        while True:
            yield from self._check_robots(url)
            answer = yield from self._send(url, False)
            assert answer is not None  # only a HEAD ends so
            target = self._next_hop(url, answer, seen)
            if target is None:
                return answer
            url = target

    def _next_hop(self, url: str, answer: Response, seen: set[str]) -> str | None:
        """The wire URL of a redirect that keeps the key, which is `seen` then; None for no redirect."""
        target = self._redirect_of(url, answer)
        if target is None:
            return None
        if target in seen:
            raise self._failed(f"redirect-loop: back to {target}", answer)
        if len(seen) > MAX_REDIRECTS:
            raise self._failed(f"redirect-limit: more than {MAX_REDIRECTS} redirects", answer)
        seen.add(target)
        return target

    def _send(
        self, url: str, is_head: bool, conditions: tuple[tuple[str, str], ...] = ()
    ) -> Generator[Wish, Reply, Response | None]:
        """An answer that is neither a reason to come back later nor none at all; None: ask with GET instead."""
        request = Request("HEAD", url) if is_head else Request("GET", url, self.wanted, self.limit, conditions)
        while True:
            answer = yield request
            if isinstance(answer, Refusal):
                raise self._refused(answer)
            if isinstance(answer, Failure):
                if answer.slug in UNREACHABLE_AT_ONCE:
                    raise self._ended(PageState.UNREACHABLE, answer.message)
                if is_head:
                    return None  # a GET may succeed, and has retries of its own
                if answer.slug in FAILED_AT_ONCE:
                    raise self._ended(PageState.FAILED, answer.message)
                state = _AFTER_RETRIES.get(answer.slug, PageState.FAILED)
                yield from self._try_again(state, answer.message, None, 0.0)
                continue
            assert isinstance(answer, Response)
            if answer.status == 429:
                yield from self._wait_out_429(answer)
            elif is_head and answer.status in (405, 501):
                return None
            elif 500 <= answer.status <= 599:
                at_least = retry_after(answer.headers, answer.received_at) or 0.0
                yield from self._try_again(PageState.FAILED, _http(answer.status), answer, at_least)
            else:
                return answer

    def _try_again(
        self, state: PageState, error: str, answer: Response | None, at_least: float
    ) -> Generator[Wish, Reply, None]:
        if self.retries >= self.settings.retries:
            raise self._ended(state, error, answer)
        if at_least * 1000 > self.settings.max_retry_after:
            raise self._ended(state, f"{error}, to be asked again in {at_least:.0f} s at the earliest", answer)
        self.retries += 1
        yield self._pause(max(at_least, self.settings.retry_delay / 1000), error)

    def _wait_out_429(self, answer: Response) -> Generator[Wish, Reply, None]:
        """Return once the page may be requested again; otherwise the visit ends.

        The domain is closed for this run, unless its pause was kept and the circuit breaker counts the failure: then
        that one decides. A pause over the limit is not kept, so nothing more is asked for.
        """
        seconds = retry_after(answer.headers, answer.received_at)
        if seconds is None:
            seconds = self.settings.retry_delay / 1000
        may_wait = self.settings.on_429 == "wait" and seconds * 1000 <= self.settings.max_retry_after
        if not may_wait or self.has_waited:
            closes = None if may_wait and self.counts_429 else Closure("rate-limited", 0)
            raise self._ended(PageState.RATE_LIMITED, _http(429), answer, closes=closes)
        self.has_waited = True
        self.retries += 1
        yield self._pause(seconds, _http(429))

    def _pause(self, seconds: float, why: str, robots_host: int = 0, robots_tries: int = 0) -> Pause:
        job = number_of(self.job)
        return Pause(seconds, why, RetryCounts(job, self.retries, self.has_waited, robots_host, robots_tries))

    def _redirect_of(self, url: str, answer: Response) -> str | None:
        """The wire URL of a redirect that keeps the key; None for no redirect. Any other redirect ends the visit."""
        location = answer.headers.get("location", "").strip()
        if answer.status not in _REDIRECTS and not (answer.status == 300 and location):
            return None
        target = resolve(url, location) if location else None
        try:
            if target is None:
                raise UrlError("no http(s) URL")
            wire, key = wire_of(target), normalize(target, self.settings.tracking_parameters)
        except UrlError:
            words = f"to {_shown(location)!r}" if location else "to nowhere"
            raise self._failed(f"bad-redirect: {words}", answer) from None
        if key == self.key:
            return wire
        raise self._ended(PageState.PROCESSED, None, answer, redirect=wire)

    def _check_head(self, answer: Response) -> None:
        """End the visit unless the headers announce a page worth a GET."""
        if self.learns_404 and answer.status in _MISSING:
            return
        self._check_status(answer)
        content_type = answer.headers.get("content-type")
        self.head_type = media_type(content_type)
        if self.head_type is not None and self.head_type not in HTML_TYPES:
            raise self._mismatch(f"not HTML but {self.head_type}", answer)

    def _check_status(self, answer: Response) -> None:
        status = answer.status
        if status in _MISSING:
            raise self._ended(PageState.DEAD_LINK, _http(status), answer)
        if not 200 <= status <= 299:
            raise self._failed(_http(status), answer)

    def _read(self, url: str, answer: Response) -> Generator[Wish, Reply, PageResult]:
        self._check_status(answer)
        body, content_type = answer.body, answer.headers.get("content-type")
        if answer.is_cut:
            raise self._failed(f"too-large: more than {self.limit:,} bytes", answer)
        kind = media_type(content_type)
        is_page = kind in HTML_TYPES if kind is not None else not body or is_html(None, body)
        if not is_page:
            found = kind or "something without a type"
            words = f"HEAD said {self.head_type}, GET sent {found}" if self.head_type else f"not HTML but {found}"
            raise self._mismatch(words, answer)
        is_noted = self.reading is not None
        if self.reading is None:
            self.reading = self._reading(answer, self.settings.max_links_per_page)
        page = extracted(self.reading, url, self.longest_base)
        hrefs = page.hrefs
        following = label_next(self.key, page.base or url, page.numbered, page.rel_next) if self.labels_lists else None
        header = answer.headers.get("refresh")
        if header and (refresh := refresh_target(header)):
            hrefs = (*hrefs, refresh)
        base = _without_userinfo(url, [page.base])[0] if page.base else page.base
        result = self._result(
            PageState.PROCESSED,
            None,
            answer,
            title=page.title,
            base=base,
            hrefs=_without_userinfo(base or url, hrefs),
            nofollow=page.nofollow or header_says_nofollow(answer.headers.get("x-robots-tag"), self.agent),
            links_cut=page.links_cut,
            truncated=answer.is_truncated,
            page=page,
            following=following,
            url=url,
        )
        note = b"" if is_noted else self._note(result, answer)
        if note:
            yield PageNote(note)
        return result

    def _note(self, result: PageResult, answer: Response) -> bytes:
        """What is to be noted beside the page; empty: nothing, or nothing else than what is there."""
        key = self._note_key(answer.headers)
        is_kept = result.content_hash is not None and not result.noarchive
        if key is None or not is_kept or self.reading is None:
            return b""
        is_confirmed = self.validators is not None and self.validators.content_hash == result.content_hash
        # One of another type stays: the page has two addresses then, whose servers would take turns.
        return b"" if is_confirmed and key.is_way_of(self.note) else note_of(self.reading, key)

    def _note_key(self, headers: Mapping[str, str]) -> NoteKey | None:
        """The key of this page's note; None: the page has to be read for itself."""
        content_type = headers.get("content-type")
        if not self.reading_code or content_type is None or self.fields or self.validator.looks_into_pages:
            return None
        return key_of(self.reading_code, self.ways, content_type)

    def _reading(self, answer: Response, most_links: int) -> Reading:
        _, agent, longest_text, has_link_text, wants_next, wants_simhash = self.ways
        return read(
            answer.body,
            answer.headers.get("content-type"),
            most_links,
            agent=agent,
            longest_text=longest_text,
            has_link_text=has_link_text,
            wants_next=wants_next,
            wants_simhash=wants_simhash,
        )

    def _judge(self, answer: Response | None, page: Extracted | None) -> tuple[Validation | None, int | None]:
        """The judgement of an answer, and the print of its text if that may be compared with the page for missing ones.

        A function of the answer and the config alone. What depends on other answers, the likeness of prints, is
        decided where all of them are known: in the ingest, when the run ends.
        """
        if answer is None or (page is None and answer.status < 400) or not self.validator.is_enabled:
            return None, None
        if page is None and answer.body:
            page = extracted(self._reading(answer, 0), self.job.wire, self.longest_base)
        found = self.validator.judge(answer, page)
        is_comparable = answer.status in _MISSING or (found is not None and found.word is Validity.OK)
        return found, text_print(page, self.job.wire) if page is not None and is_comparable else None

    # -- robots.txt ----------------------------------------------------------------------------------

    def _check_robots(self, url: str) -> Generator[Wish, Reply, None]:
        """Return if robots.txt allows this URL; otherwise end the visit."""
        if url == self.cleared:
            return
        host = authority_of(url)
        policy = yield from self.policy(host)
        if policy.error is not None:
            slug = slug_of(policy.error)
            if slug in UNREACHABLE_AT_ONCE:
                raise self._ended(PageState.UNREACHABLE, policy.error)
            if slug != "robots-unreachable" or self.settings.robots_unreachable != "allow":
                raise self._failed(policy.error)
        if policy.crawl_delay_ms > self.settings.max_crawl_delay:
            limit = self.settings.max_crawl_delay
            words = f"{host} asks for {policy.crawl_delay:g} s between requests, the limit is {limit / 1000:g} s"
            raise self._ended(
                PageState.FAILED, f"crawl-delay-too-long: {words}", closes=Closure("crawl-delay", 0, limit)
            )
        if not policy.rules.allows(url, self.agent):
            line = policy.rules.rule_for(url, self.agent)
            raise self._failed(f"robots-denied: {host} says {line!r}")
        self.cleared = url

    def policy(self, host: str) -> Generator[Wish, Reply, Policy]:
        """The policy of a host: the one that is known, or else its robots.txt is read."""
        policy = self.learned.get(host) or self.known(host)
        if policy is None:
            policy = yield from self._learn(host)
        if policy.rules.count <= FEW_RULES:
            self.learned[host] = policy
        return policy

    def _learn(self, host: str) -> Generator[Wish, Reply, Policy]:
        """Read a host's robots.txt, with growing pauses while it cannot be read, and report the outcome."""
        number = zlib.crc32(host.encode())
        first = self.retry_counts.robots_tries if self.retry_counts.robots_host == number else 0
        for attempt in range(min(first, self.settings.robots_retries), self.settings.robots_retries + 1):
            learned = yield from self._ask_robots(host)
            if isinstance(learned, RobotsResult):
                yield learned
                return policy_of(learned, self.agent)
            words, at_least = learned
            pause = max(self.settings.robots_retry_delay / 1000 * 2**attempt, at_least or 0.0)
            if attempt == self.settings.robots_retries or pause * 1000 > self._longest_deferral():
                break
            if attempt == 0:
                yield DomainEvent(self.job.run, self.job.domain, "", "deferred", detail=f"{host}/robots.txt: {words}")
            yield self._pause(pause, f"robots-deferred: {words}", number, attempt + 1)
        is_ours = slug_of(words) == LOCAL_SHORTAGE  # no fault of the site
        result = self._robots(host, "unreachable", error=words if is_ours else f"robots-unreachable: {words}")
        yield result
        return policy_of(result, self.agent)

    def _longest_deferral(self) -> float:
        settings = self.settings
        return float(max(settings.max_retry_after, settings.robots_retry_delay << settings.robots_retries))

    def _ask_robots(self, host: str) -> Generator[Wish, Reply, RobotsResult | tuple[str, float | None]]:
        """The outcome of one attempt: a result, or the reason to wait and the seconds asked for."""
        url = f"https://{host}/robots.txt"
        seen = {url}
        while True:
            answer = yield Request("GET", url, BodyWanted.ANYTHING, MAX_BYTES)
            if isinstance(answer, Refusal):
                if answer.is_own:
                    yield self._robots(host, "unreachable", error="request-limit: the budget of requests is spent")
                    raise self._refused(answer)
                words = f"it redirects to {authority_of(url)}, whose budget of requests is spent"
                return self._robots(host, "unreachable", error=f"robots-unreachable: {words}")
            if isinstance(answer, Failure):
                if answer.slug in UNREACHABLE_AT_ONCE and len(seen) == 1:
                    return self._robots(host, "unreachable", error=answer.message)
                return answer.message, None
            assert isinstance(answer, Response)
            location = answer.headers.get("location", "").strip()
            if answer.status in _REDIRECTS and location:
                target = self._robots_target(url, location)
                if target is None:
                    return f"{_http(answer.status)} to {_shown(location)!r}", None
                if target in seen or len(seen) > MAX_ROBOTS_REDIRECTS:
                    return self._robots(host, "allow-all", answer.status)  # RFC 9309 §2.3.1.2: unavailable
                if self.is_listed(domain_of(target)):
                    words = f"it redirects to {authority_of(target)}, which is not to be asked"
                    return self._robots(host, "unreachable", answer.status, error=f"robots-unreachable: {words}")
                seen.add(target)
                url = target
                continue
            verdict = verdict_of_status(answer.status)
            if verdict is Verdict.DEFER:
                return _http(answer.status), retry_after(answer.headers, answer.received_at)
            if verdict is Verdict.ALLOW_ALL:
                return self._robots(host, "allow-all", answer.status)
            text = text_of(answer.body)
            delay = parse(text, self.agent).crawl_delay(self.agent)
            return self._robots(host, "parsed", answer.status, body=text, crawl_delay=delay)

    @staticmethod
    def _robots_target(url: str, location: str) -> str | None:
        target = resolve(url, location)
        try:
            return wire_of(target) if target is not None else None
        except UrlError:
            return None

    def _robots(
        self,
        host: str,
        outcome: str,
        status: int | None = None,
        *,
        body: str | None = None,
        crawl_delay: float | None = None,
        error: str | None = None,
    ) -> RobotsResult:
        return RobotsResult(self.job.run, self.job.domain, host, "", outcome, status, body, crawl_delay, error)

    # -- ends ----------------------------------------------------------------------------------------

    def _result(
        self,
        state: PageState,
        error: str | None,
        answer: Response | None = None,
        *,
        title: str | None = None,
        base: str | None = None,
        hrefs: tuple[str, ...] = (),
        nofollow: bool = False,
        links_cut: int = 0,
        truncated: bool = False,
        following: tuple[str, str] | None = None,
        redirect: str | None = None,
        closes: Closure | None = None,
        page: Extracted | None = None,
        url: str = "",
    ) -> PageResult:
        job = self.job
        headers = answer.headers if answer else {}
        contexts = page.contexts if page else None
        found, number = self._judge(answer, page)
        is_rejected = found is not None and found.word in REJECTED
        facts = self._facts(url, answer, page) if answer is not None and page is not None and not is_rejected else {}
        return PageResult(
            run=job.run,
            key=job.key,
            wire=job.wire,
            domain=job.domain,
            at="",
            state=state.value,
            error=error,
            status=answer.status if answer else None,
            content_type=_short(headers.get("content-type")),
            # A rejected page leaves nothing to compare a later visit with.
            last_modified=None if is_rejected else _short(headers.get("last-modified")),
            title=title,
            base=base,
            hrefs=hrefs,
            nofollow=nofollow,
            links_cut=links_cut,
            redirect=redirect,
            retries=self.retries,
            bytes=self._size(answer) if answer and answer.status < 400 else 0,
            closes=closes,
            truncated=truncated,
            validation=None if found is None else found.word.value,
            rejection_reason=None if found is None else found.reason,
            text_print=number,
            texts=UNSET if contexts is None else _shortened([context.text for context in contexts]),
            rels=_shortened([context.rel for context in contexts or ()]) or UNSET,
            next_page=following[0] if following else None,
            next_by=following[1] if following else "",
            **facts,
        )

    def _size(self, answer: Response) -> int:
        return len(answer.body) if self.reading is None else self.reading.size

    def _facts(self, url: str, answer: Response, page: Extracted) -> dict[str, Any]:
        """What an accepted page says about itself, and, if it came whole, what tells whether it has changed."""
        facts, headers = page.facts, answer.headers
        says_noarchive = facts.noarchive or header_says_noarchive(headers.get("x-robots-tag"), self.agent)
        found: dict[str, Any] = {
            "description": facts.description,
            "language": facts.language or language_of(headers.get("content-language", "")),
            "canonical": self._canonical(page.base or url, facts.canonical) if facts.canonical else None,
            "heading": facts.heading,
            "text_hash": facts.text_hash,
            "simhash": facts.simhash,
            "noarchive": says_noarchive,
            "answered_by": url if url != self.job.wire else None,
        }
        if self.fields:
            from crawler.visit.page_fields import fields_of  # parsel, for those alone who have fields

            found["fields"] = fields_of(answer.body, headers.get("content-type"), self.fields)
        if answer.status == 200 and not answer.is_truncated:
            found["content_hash"] = answer.content_hash or hashlib.sha256(answer.body).hexdigest()
            etag = headers.get("etag", "")
            found["etag"] = etag if 0 < len(etag) <= LONGEST_ETAG else None
            if self.keeps_pages and not says_noarchive:
                found["headers"] = kept_headers(headers)
                found["revalidation"] = self._revalidation(found, headers)
        return found

    def _revalidation(self, found: dict[str, Any], headers: Mapping[str, str]) -> Revalidation | UnsetType:
        """How the page was answered: for the next visit, which may ask whether it has changed, and for whoever reads it
        again from the store. Unset: that is not known whole, or a date came that cannot be sent back.
        """
        kept: dict[str, str] = found["headers"]
        telling = {name: headers[name] for name in _TELLING if name in headers}
        date = headers.get("last-modified", "")
        has_date = 0 < len(date) < _HEADER_LENGTH and date.isascii()  # others cannot be sent back as they came
        if (found["etag"] is None and date and not has_date) or not telling.keys() <= kept.keys():
            return UNSET
        known = self.validators
        is_same = known is not None and known.content_hash == found["content_hash"]
        is_vain = is_same and known is not None and (self.is_etag_vain or known.is_etag_vain)
        return Revalidation(self.asked_as, telling, is_vain)

    def _canonical(self, base: str, href: str) -> str | None:
        """The address that a page gives as its own, if it can be one."""
        target = resolve(base, href)
        try:
            wire = wire_of(target) if target is not None else None
        except UrlError:
            return None
        return wire if wire is not None and len(wire) <= self.longest_base else None

    def _ended(
        self,
        state: PageState,
        error: str | None,
        answer: Response | None = None,
        *,
        redirect: str | None = None,
        closes: Closure | None = None,
    ) -> _Ended:
        return _Ended(self._result(state, error, answer, redirect=redirect, closes=closes))

    def _failed(self, error: str, answer: Response | None = None) -> _Ended:
        return self._ended(PageState.FAILED, error, answer)

    def _mismatch(self, words: str, answer: Response) -> _Ended:
        return self._ended(PageState.CONTENT_MISMATCH, f"content-mismatch: {words}", answer)

    def _refused(self, refusal: Refusal) -> _Ended:
        closes = refusal.closes
        if closes.reason == "request-limit":
            error = f"request-limit: all {closes.limit} requests of this run have been made"
            return self._ended(PageState.REQUEST_LIMIT_HIT, error, closes=closes)
        state = PageState.RATE_LIMITED if closes.reason == "rate-limited" else PageState.FAILED
        return self._ended(state, f"{closes.reason}: the domain was closed for this run", closes=closes)


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer that its result keeps: no cookies, and 8 KB at the most, in their order. Those that say
    something about the page have their room before others.
    """
    kept: dict[str, str] = {}
    told = {name: len(name) + len(headers[name]) for name in _TELLING if name in headers}
    room = MOST_HEADERS - sum(size for size in told.values() if size <= MOST_HEADERS // 4)
    for name, value in headers.items():
        size = len(name) + len(value)
        is_reserved = told.get(name, MOST_HEADERS) <= MOST_HEADERS // 4
        if is_reserved:
            kept[name] = value
        elif name not in _NOT_KEPT and size <= room:
            kept[name] = value
            room -= size
    return kept


def _http(status: int) -> str:
    return f"http-{status}"


def _shown(location: str) -> str:
    """A bad `Location` for an error message: shortened, and without user name and password."""
    return _USERINFO.sub("", location)[:200]


def _without_userinfo(base: str, hrefs: Sequence[str]) -> tuple[str, ...]:
    """The hrefs as written, but without user names and passwords."""
    if "@" not in "".join(hrefs):  # the cheapest test for all of them
        return tuple(hrefs)
    return tuple([_bare(base, href) if "@" in href else href for href in hrefs])


def _bare(base: str, href: str) -> str:
    target = resolve(base, href)
    try:
        if target is None:
            return _USERINFO.sub("", href)  # no link; it is only recorded
        return wire_of(target) if "@" in target.split("/", 3)[2] else href
    except UrlError:
        return _USERINFO.sub("", href)


def _shortened(texts: Sequence[str]) -> tuple[str, ...]:
    """The texts without the empty ones at their end: a result's texts may be fewer than its hrefs."""
    last = next((place for place in range(len(texts), 0, -1) if texts[place - 1]), 0)
    return tuple(texts[:last])


def _short(text: str | None) -> str | None:
    return text[:_HEADER_LENGTH] if text else None


__all__ = [
    "KnownRobots",
    "Refusal",
    "Reply",
    "Visit",
    "Wish",
    "ask_for_file",
    "ask_for_policy",
    "kept_headers",
    "looks_like_page",
    "number_of",
    "retry_after",
    "visit",
]
