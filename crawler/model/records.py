"""PURE. Records that the stages exchange: frozen, read by `parse` and written by `dump` alone.

Every record is one JSON object on one spool line. `v` is the format's version and `kind` says which
record it is; `docs/pipeline.md` lists every field. The spool adds a checksum as the last member and
checks it before a line gets here, so a line that `parse` rejects is of another version, not torn.

The annotations are the format: every line is validated against them. Members that are not named here may come from a
newer program and are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import UNSET, UnsetType

from crawler.model.states import VISITED
from crawler.model.validity import REJECTED, Validity

VERSION = 1

SITEMAP_KEY = "sitemap:"  # before the address, in the key of its job

_NOT_MODIFIED = 304
_LARGEST = 2**62  # fits a database integer, and exceeds every count here
Number = Annotated[int, msgspec.Meta(gt=-_LARGEST, lt=_LARGEST)]


class RecordError(ValueError):
    """A spool line that is whole but is not a record this version can read."""


NETWORK_OUTAGE = "network-outage"  # in a ledger: a request that the crawler's own network failed


class Exchange(NamedTuple):
    """One request on the wire, as the ledger keeps it.

    Two clocks: `at_ms` is the wall clock (for people), `mono_ms` the machine's monotonic clock since its
    boot (for proofs: it does not jump). `answer` is the status code, or the slug of what went wrong. `number` counts
    the domain's requests in the run, as its gate does; 0: written by a program that did not say.
    """

    at_ms: Number
    mono_ms: Number
    method: str
    host: str
    answer: Number | str
    elapsed_ms: Number
    domain: str
    number: Number = 0

    @property
    def is_counted(self) -> bool:
        """Does it count against the domain's budget? An outage of the crawler's network costs none."""
        return self.answer != NETWORK_OUTAGE


class _Record(msgspec.Struct, frozen=True, gc=False, tag_field="kind"):
    """`kind` is the tag that each of them names. They refer to nothing that could refer to them, hence no `gc`."""

    @property
    def kind(self) -> str:
        return str(self.__struct_config__.tag)


class Validators(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a visit needs to ask whether a page has changed, and to read it from the store if it has not.

    They are those of the last accepted answer with status 200, whose body has the hash `content_hash` and is in the
    store. They hold for the address `url`, and for requests with the headers that `asked_as` stands for. `headers` are
    those of the answer that say something about the page. `is_etag_vain`: the page was sent again in spite of it.
    """

    content_hash: str
    url: str
    asked_as: Number
    etag: str = ""
    last_modified: str = ""
    headers: dict[str, str] = {}
    is_etag_vain: bool = False


class Revalidation(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The members of `Validators` that a result has nowhere else."""

    asked_as: Number
    headers: dict[str, str] = {}
    is_etag_vain: bool = False


class Job(_Record, frozen=True, tag="job"):
    """Visit this page once. Identity: (run, key). `page` is its number in the map that it was released from.

    task: `page`, or `sitemap`. A sitemap is no page: its key begins with `SITEMAP_KEY`, its number is below zero, and
    `announced_by` is the domain whose robots.txt led to it, over `level` steps (0: that robots.txt itself).
    """

    run: Number
    key: str
    wire: str
    domain: str
    page: Number = 0
    task: str = "page"
    announced_by: str = ""
    level: Number = 0
    validators: Validators | UnsetType = UNSET


class Closure(msgspec.Struct, frozen=True, gc=False):
    """The decision not to visit the rest of a domain in this run. Replay reads it and does not make it again.

    reason: `rate-limited` (a 429), `request-limit` (the budget ran out; `limit` is that budget),
    `crawl-delay` (robots.txt asks for more seconds than the config allows; `limit` is that allowance in ms),
    `breaker-open` (its circuit breaker was open when the run had nothing else to do) or `cleared` (a person had the
    frontier cleared).
    """

    reason: str
    request_number: Number
    limit: Number | None = None


class Carried(msgspec.Struct, frozen=True, gc=False):
    """The decision not to visit a page in this run, because it is not due: it stays as its last visit found it.

    `visited_at` is the time of that visit, `due` when the next one is due, `interval` the seconds between them.
    `link_count` is the number of addresses on the page; the result names each target once.
    """

    visited_at: str
    due: str
    interval: Number = 0
    link_count: Number = 0


class PageResult(_Record, frozen=True, omit_defaults=True, tag="page"):
    """The result of one visit. Identity: (run, key); a second one of the same identity changes nothing.

    `state` is the word for `pages.state`. `base` and `hrefs` are raw, as the page wrote them. `redirect` is
    the absolute URL of a redirect that left the key. `closes` ends the domain's run together with this page,
    in one line, so that no crash can keep one without the other. `truncated`: the compressed body ended before its
    stream did, and the page was read as far as it came. `validation` is the word for `pages.validation`; None: nothing
    was judged. `text_print`: pages that show the same have the same (`crawler.visit.validation.text_print`).
    `texts` and `rels` are those of the hrefs, in their order; the rest of the hrefs has none. They are there if
    [crawler] link-text asks for them, `rels` only if there is one. `next_page` is the address of the next page of its
    list, where that is linked and labels are asked for; `next_by` says by what evidence: `rel` or `address`.
    `carried`: there was no visit; the scheduler wrote this from the map, because the page is not due.

    `content_hash` is the SHA-256 of the decoded body, in hex, of every accepted page with status 200 that came whole.
    `stored`: that body is in the store. `noarchive`: the page asks not to be kept. `etag` is as the server wrote it.
    `answered_by`: the URL that answered, where it is not `wire`. `headers`: those of the answer, without cookies, up to
    8 KB, if the page was stored. The rest are facts of an accepted page: `canonical` is absolute, `heading` the first
    `<h1>`, `text_hash` the hash of the text that is shown, `simhash` its SimHash if [store] near-duplicates asks for
    it. `fields` are the user's own ([[extract]]), if a rule concerns the page. `revalidation`: the headers that say
    something about a stored page, and how the next visit may ask whether it has changed, if it has an ETag or a date. A
    page that a 304 confirmed is told as if it had been sent again; the ledger has the 304.
    """

    run: Number
    key: str
    wire: str
    domain: str
    at: str
    state: str
    error: str | None = None
    status: Number | None = None
    content_type: str | None = None
    last_modified: str | None = None
    title: str | None = None
    base: str | None = None
    hrefs: tuple[str, ...] = ()
    nofollow: bool = False
    links_cut: Number = 0
    redirect: str | None = None
    retries: Number = 0
    bytes: Number = 0
    boot: str = ""
    ledger: tuple[Exchange, ...] = ()
    closes: Closure | None = None
    truncated: bool = False
    validation: str | None = None
    rejection_reason: str | None = None
    text_print: Number | None = None
    texts: tuple[str, ...] | UnsetType = UNSET
    rels: tuple[str, ...] | UnsetType = UNSET
    next_page: str | None = None
    next_by: str = ""
    content_hash: str | None = None
    stored: bool = False
    noarchive: bool = False
    etag: str | None = None
    answered_by: str | None = None
    headers: dict[str, str] | UnsetType = UNSET
    description: str | None = None
    language: str | None = None
    canonical: str | None = None
    heading: str | None = None
    text_hash: str | None = None
    simhash: str | None = None
    fields: dict[str, tuple[str, ...]] | UnsetType = UNSET
    carried: Carried | UnsetType = UNSET
    revalidation: Revalidation | UnsetType = UNSET

    @property
    def is_carried(self) -> bool:
        """Was there no visit?"""
        return self.carried is not UNSET

    @property
    def visited_at(self) -> str:
        return self.at if self.carried is UNSET else self.carried.visited_at

    @property
    def is_confirmed(self) -> bool:
        """Did the server say that nothing changed (304)? The result is told as if the page had been sent again."""
        return bool(self.ledger) and self.ledger[-1].answer == _NOT_MODIFIED

    @property
    def last_status(self) -> int | None:
        """The status of the last answer, which `status` is not for a page that a 304 confirmed."""
        return _NOT_MODIFIED if self.is_confirmed else self.status

    @property
    def was_sent(self) -> bool:
        """Did the page come with this visit? Not if there was no visit, or a 304."""
        return not self.is_carried and not self.is_confirmed

    @property
    def bytes_sent(self) -> int:
        """Bytes of the body that came with this visit, decoded."""
        return self.bytes if self.was_sent else 0

    @property
    def is_rejected(self) -> bool:
        return self.validation in REJECTED

    @property
    def is_hard_garbage(self) -> bool:
        """Does the site test or refuse its visitors? Counts as a failure of its domain, whatever the status."""
        return self.validation == Validity.HARD


class RobotsResult(_Record, frozen=True, tag="robots"):
    """The outcome of a request for robots.txt, valid for `host` from `at` on.

    outcome: `parsed`, `allow-all` (no usable file) or `unreachable` (the last try failed; `error` says why).
    """

    run: Number
    domain: str
    host: str
    at: str
    outcome: str
    status: Number | None = None
    body: str | None = None
    crawl_delay: float | None = None
    error: str | None = None
    boot: str = ""
    ledger: tuple[Exchange, ...] = ()


class SitemapResult(_Record, frozen=True, tag="sitemap"):
    """What a sitemap names, or why it could not be read. A long one is several of these; with `is_last` it is done.

    `urls` and `sitemaps` are those that count: on its own domain or the one that announced it; `left_out` is the number
    of the others. `dates` are the `lastmod` of `urls`, in their order ("": none); empty where there is none at all.
    form: `urlset`, `index`, `feed`, `text`, `invalid`, `robots` (the `Sitemap` lines of a robots.txt, and the usual
    place) or `` (it was not read; `error` says why). `entries` is the number of addresses in all its parts.
    """

    run: Number
    key: str
    wire: str
    domain: str
    at: str
    announced_by: str
    level: Number = 0
    form: str = ""
    error: str | None = None
    status: Number | None = None
    urls: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    sitemaps: tuple[str, ...] = ()
    entries: Number = 0
    left_out: Number = 0
    is_cut: bool = False
    is_last: bool = True
    retries: Number = 0
    bytes: Number = 0
    boot: str = ""
    ledger: tuple[Exchange, ...] = ()
    closes: Closure | None = None


class DomainEvent(_Record, frozen=True, tag="domain"):
    """An event of a whole domain that belongs to no single page.

    event: `closed` (with `closes`), `lost-requests` (a fetcher died; `count` requests had left without a
    ledger entry), `deferred` (robots.txt could not be read; the domain waits), or `breaker-open`, `breaker-half-open`,
    `breaker-closed` (its circuit breaker changed; `count` numbers the changes in the run, `detail` says why), or
    `reopened` (a person had the domain reset, after `count` requests of the run: closures from before count no longer).
    """

    run: Number
    domain: str
    at: str
    event: str
    count: Number = 0
    detail: str | None = None
    closes: Closure | None = None


class FamilyEvent(_Record, frozen=True, tag="family"):
    """A family of similar URLs (one path under endless queries, one form of path) has reached its visit limit, or a
    unit of a [[cap]] has: then `domain` is empty, for it may span several, and `rule` is the cap's group and pattern.

    `family` is the family's name as `crawler.rules.traps.family_of` builds it, `error` the slug and words that
    its waiting pages get, `limit` the number of visits. `spare` are the keys that had been released: those visits still
    count.
    """

    run: Number
    domain: str
    at: str
    family: str
    error: str
    limit: Number = 0
    spare: tuple[str, ...] = ()
    rule: str = ""


class GuessEvent(_Record, frozen=True, tag="guess"):
    """A page that no link leads to is tried, or no more of its kind are.

    event: `guessed` (`wire` is the address) or `ended` (`reason` says why: `dead-link`, `redirect`, `soft-404`,
    `same-text`, `nothing-new`, `failed`, `limit`, `out-of-scope`). `way` is the word for `pages.origin`: `speculated`
    (the page after the last of a list), `archive`, or `sitemap` (a page outside of quality domains that a sitemap
    names, on a host within reach). `form` is the address with `{n}` in place of the number, or `{year}` and `{month}`
    in place of the date; empty for `sitemap`.
    """

    run: Number
    domain: str
    at: str
    event: str
    way: str
    form: str
    wire: str = ""
    reason: str = ""


class Order(_Record, frozen=True, tag="order"):
    """What a person asks the crawl to do, left in the log of orders by the web face. The scheduler takes it up.

    action: `seed` (visit these pages before others), `add` (visit them after the linked pages of their domains),
    `clear` (visit nothing that waits now: every domain with waiting pages is closed for the run) or `reset` (visit the
    domains of these pages again, though they were closed or their breakers are open).
    """

    id: str
    at: str
    action: str
    wires: tuple[str, ...] = ()
    who: str = ""


class OrderEvent(_Record, frozen=True, tag="ordered"):
    """An order that was taken up in this run, as the decision that it is. `order` is the order's id."""

    run: Number
    at: str
    order: str
    action: str
    wires: tuple[str, ...] = ()
    who: str = ""


class RunEvent(_Record, frozen=True, tag="run"):
    """A run started, resumed, was interrupted or finished. event: `started resumed interrupted finished`.

    `settings` are those that hold from here on (`crawler.model.recorded_settings`), with `started` and `resumed`.
    `reason`: the limit that interrupted it (`max-pages = 500`), or why a run was finished before its end.
    """

    run: Number
    at: str
    event: str
    config_hash: str = ""
    map_hash: str = ""
    settings: str = ""
    reason: str = ""


class Release(_Record, frozen=True, tag="release"):
    """The scheduler has put new jobs into this domain's spool.

    `turn` numbers the domains in the order of their first jobs: the fetchers serve them in turn.
    """

    run: Number
    domain: str
    count: Number
    turn: Number = 0


class Feed(_Record, frozen=True, tag="feed"):
    """Hints of one committed batch, from the ingest to the scheduler. The frontier table is the truth.

    `work`: (domain, best priority among the rows added); `done`: (domain, page ids whose frontier rows are
    gone); `closed`: domains that are over for this run; `resync`: hints may have been lost, look at the table.
    `bytes`: of the bodies of the visits in this batch. `carried`: pages of `done` that were not due, and not visited.
    """

    run: Number
    work: tuple[tuple[str, int], ...] = ()
    done: tuple[tuple[str, tuple[int, ...]], ...] = ()
    closed: tuple[str, ...] = ()
    resync: bool = False
    bytes: Number = 0
    carried: Number = 0


Result = PageResult | RobotsResult | SitemapResult | DomainEvent | FamilyEvent | GuessEvent | OrderEvent | RunEvent
Record = Job | Result | Release | Feed | Order

_KINDS = frozenset(cls.__struct_config__.tag for cls in get_args(Record))
_STATES = frozenset(state.value for state in VISITED)
_WAYS = frozenset({"speculated", "archive", "sitemap"})
_VALIDITIES = frozenset(word.value for word in Validity)
_HASH = re.compile(r"[0-9a-f]{64}")  # it is part of a path in the store
_VERSION = b'{"v":%d,' % VERSION
_encode = msgspec.json.Encoder().encode
_NUL = rb"\u0000"
_ADDRESSES = frozenset(("hrefs", "base", "urls", "sitemaps", "body"))
_decode: Callable[[bytes], Record] = msgspec.json.Decoder(Record).decode

AnyRecord = TypeVar("AnyRecord", bound=msgspec.Struct)


def changed(record: AnyRecord, **members: Any) -> AnyRecord:
    """The record with other values for these members."""
    return msgspec.structs.replace(record, **members)


def dump(record: Record) -> bytes:
    """The record as one JSON object, without checksum and newline (those are the spool's)."""
    try:
        body = _encode(record)
    except UnicodeEncodeError:  # a lone surrogate in the page's text, which UTF-8 cannot encode
        body = _encode(_whole_characters(msgspec.to_builtins(record)))
    return _VERSION + body[1:]


def _whole_characters(value: Any) -> Any:
    """The same value with every lone surrogate in its texts replaced, as a browser would show it."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole_characters(name): _whole_characters(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_characters(each) for each in value]
    return value


def parse(line: bytes) -> Record:
    """The record of a whole line. Raises RecordError with what is wrong with it.

    Its texts have no NUL: U+FFFD stands in its place, as it does in what the reader of pages returns.
    """
    try:
        if _NUL in line:
            line = _without_nul(line)
        if not line.startswith(_VERSION):  # every writer begins so, but any order of members is valid
            _kind_of(line)
        record = _decode(line)
    except RecordError:
        raise
    except (ValueError, RecursionError) as problem:
        raise RecordError(f"a broken {_kind_of(line)} record: {problem}") from None
    if type(record) is PageResult:
        if record.state not in _STATES:
            raise RecordError(f"a broken page record: no visit ends as {record.state!r}")
        if record.validation is not None and record.validation not in _VALIDITIES:
            raise RecordError(f"a broken page record: no page is {record.validation!r}")
        if record.content_hash is not None and _HASH.fullmatch(record.content_hash) is None:
            raise RecordError("a broken page record: its content hash is no SHA-256")
    elif type(record) is GuessEvent and (record.event not in ("guessed", "ended") or record.way not in _WAYS):
        raise RecordError(f"a broken guess record: {record.event!r} {record.way!r}")
    return record


def _without_nul(line: bytes) -> bytes:
    """The line with U+FFFD for NUL, which PostgreSQL does not keep in a text: maps of both engines say the same.

    Addresses that are still to be parsed stay as they are: their parser knows what becomes of it.
    """
    try:
        fields = msgspec.json.decode(line)
    except (ValueError, RecursionError):
        return line  # what is wrong with it is said elsewhere
    if not isinstance(fields, dict):
        return line
    return msgspec.json.encode({name: v if name in _ADDRESSES else _shown(v) for name, v in fields.items()})


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")
    if isinstance(value, list):
        return [_shown(each) for each in value]
    if isinstance(value, dict):
        return {_shown(name): _shown(each) for name, each in value.items()}
    return value


def _kind_of(line: bytes) -> str:
    """The kind of record that the line claims to be. Raises RecordError for any other version or kind."""
    try:
        fields = msgspec.json.decode(line)
    except (ValueError, RecursionError) as problem:
        raise RecordError(f"not JSON: {problem}") from None
    if not isinstance(fields, dict):
        raise RecordError("not a JSON object")
    version, kind = fields.get("v"), fields.get("kind")
    if version != VERSION or version is True:
        raise RecordError(f"record version {version!r}; this program reads version {VERSION}")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise RecordError(f"unknown kind of record: {kind!r}")
    return kind


def identity(result: PageResult) -> tuple[int, str]:
    """The visit that this result belongs to."""
    return result.run, result.key


__all__ = [
    "SITEMAP_KEY",
    "UNSET",
    "VERSION",
    "Carried",
    "Closure",
    "DomainEvent",
    "Exchange",
    "FamilyEvent",
    "Feed",
    "GuessEvent",
    "Job",
    "Order",
    "OrderEvent",
    "PageResult",
    "Record",
    "RecordError",
    "Release",
    "Result",
    "Revalidation",
    "RobotsResult",
    "RunEvent",
    "SitemapResult",
    "Validators",
    "changed",
    "dump",
    "identity",
    "parse",
]
