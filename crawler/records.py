"""What the stages say to each other: frozen records with one door in and one door out.

Every record is one JSON object on one spool line. `v` is the format's version and `kind` says which
record it is; `docs/pipeline.md` lists every field. The spool adds a checksum as the last member and
checks it before a line gets here, so what `parse` rejects is a line of another version, not a torn one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import orjson

from crawler.states import VISITED

VERSION = 1


class RecordError(ValueError):
    """A spool line that is whole but is not a record this version can read."""


class Exchange(NamedTuple):
    """One request on the wire, as the ledger keeps it.

    Two clocks: `at_ms` is the wall clock (for people), `mono_ms` the machine's monotonic clock since its
    boot (for proofs: it does not jump). `answer` is the status code, or the slug of what went wrong.
    """

    at_ms: int
    mono_ms: int
    method: str
    host: str
    answer: int | str
    elapsed_ms: int
    domain: str


@dataclass(frozen=True, slots=True)
class Job:
    """Visit this page once. Identity: (run, key). `page` is its number in the map that it was released from."""

    kind: ClassVar[str] = "job"
    run: int
    key: str
    wire: str
    domain: str
    page: int = 0


@dataclass(frozen=True, slots=True)
class Closure:
    """The rest of a domain is not to be visited in this run: a decision, so that replay need not make it.

    reason: `rate-limited` (a 429), `request-limit` (the budget ran out; `limit` is that budget) or
    `crawl-delay` (robots.txt asks for more seconds than the config allows; `limit` is that allowance in ms).
    """

    reason: str
    request_number: int
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class PageResult:
    """What became of one visit. Identity: (run, key); a second one of the same identity changes nothing.

    `state` is the word for `pages.state`. `base` and `hrefs` are raw, as the page wrote them. `redirect` is
    the absolute URL of a redirect that left the key. `closes` ends the domain's run together with this page,
    in one line, so that no crash can keep one without the other.
    """

    kind: ClassVar[str] = "page"
    run: int
    key: str
    wire: str
    domain: str
    at: str
    state: str
    error: str | None = None
    status: int | None = None
    content_type: str | None = None
    last_modified: str | None = None
    title: str | None = None
    base: str | None = None
    hrefs: tuple[str, ...] = ()
    nofollow: bool = False
    links_cut: int = 0
    redirect: str | None = None
    retries: int = 0
    bytes: int = 0
    boot: str = ""
    ledger: tuple[Exchange, ...] = ()
    closes: Closure | None = None


@dataclass(frozen=True, slots=True)
class RobotsResult:
    """A robots.txt was asked for, and this is what it means for `host` from `at` on.

    outcome: `parsed`, `allow-all` (no usable file) or `unreachable` (the last try failed; `error` says why).
    """

    kind: ClassVar[str] = "robots"
    run: int
    domain: str
    host: str
    at: str
    outcome: str
    status: int | None = None
    body: str | None = None
    crawl_delay: float | None = None
    error: str | None = None
    boot: str = ""
    ledger: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True)
class DomainEvent:
    """Something happened to a whole domain outside of any one page.

    event: `closed` (with `closes`), `lost-requests` (a fetcher died; `count` requests had left without a
    ledger entry) or `deferred` (robots.txt could not be read; the domain waits).
    """

    kind: ClassVar[str] = "domain"
    run: int
    domain: str
    at: str
    event: str
    count: int = 0
    detail: str | None = None
    closes: Closure | None = None


@dataclass(frozen=True, slots=True)
class FamilyEvent:
    """A family of look-alike URLs (one path under endless queries, one shape of path) has had its share.

    `family` is the family's name as `crawler.traps.family_of` builds it, `error` the slug and words that
    its waiting pages get, `limit` the share. `spare` are the keys that had been released: those visits still count.
    """

    kind: ClassVar[str] = "family"
    run: int
    domain: str
    at: str
    family: str
    error: str
    limit: int = 0
    spare: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A run started, resumed, was interrupted or finished. event: `started resumed interrupted finished`."""

    kind: ClassVar[str] = "run"
    run: int
    at: str
    event: str
    config_hash: str = ""
    map_hash: str = ""


@dataclass(frozen=True, slots=True)
class Release:
    """The scheduler has put new jobs into this domain's spool."""

    kind: ClassVar[str] = "release"
    run: int
    domain: str
    count: int


@dataclass(frozen=True, slots=True)
class Feed:
    """Hints of one committed batch, from the ingest to the scheduler. The frontier table is the truth.

    `work`: (domain, best priority among the rows added); `done`: (domain, page ids whose frontier rows are
    gone); `closed`: domains that are over for this run; `resync`: hints may have been lost, look at the table.
    """

    kind: ClassVar[str] = "feed"
    run: int
    work: tuple[tuple[str, int], ...] = ()
    done: tuple[tuple[str, tuple[int, ...]], ...] = ()
    closed: tuple[str, ...] = ()
    resync: bool = False


Record = Job | PageResult | RobotsResult | DomainEvent | FamilyEvent | RunEvent | Release | Feed
Result = PageResult | RobotsResult | DomainEvent | FamilyEvent | RunEvent

_KINDS: dict[str, Any] = {
    cls.kind: cls for cls in (Job, PageResult, RobotsResult, DomainEvent, FamilyEvent, RunEvent, Release, Feed)
}
_FIELDS: dict[str, frozenset[str]] = {
    kind: frozenset(cls.__dataclass_fields__) - {"kind"} for kind, cls in _KINDS.items()
}

_STATES = frozenset(state.value for state in VISITED)
_LARGEST = 2**62  # what a database can hold, and more than anything here counts
_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "bool": (bool, int),
    "str | None": (str, type(None)),
    "int | None": (int, type(None)),
    "float | None": (float, int, type(None)),
}
# The members of each kind that are no lists or records themselves, with the types they may have.
_SCALARS: dict[str, tuple[tuple[str, tuple[type, ...]], ...]] = {
    kind: tuple((name, _TYPES[f.type]) for name, f in cls.__dataclass_fields__.items() if f.type in _TYPES)
    for kind, cls in _KINDS.items()
}


def dump(record: Record, **changes: Any) -> bytes:
    """The record as one JSON object, without checksum and newline (those are the spool's).

    `changes` are written in the place of the record's own members.
    """
    fields: dict[str, Any] = {"v": VERSION, "kind": record.kind}
    for name in record.__dataclass_fields__:
        if name != "kind":
            fields[name] = getattr(record, name)
    fields.update(changes)
    try:
        return orjson.dumps(fields, default=tuple)  # ledger entries are named tuples
    except TypeError:  # half a surrogate pair in what a page said; JSON in UTF-8 cannot hold it
        return orjson.dumps(_whole_characters(fields), default=tuple)


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
    """The record of a whole line. Raises RecordError with what is wrong with it."""
    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise RecordError(f"not JSON: {problem}") from None
    if not isinstance(fields, dict):
        raise RecordError("not a JSON object")
    version = fields.pop("v", None)
    if version != VERSION or version is True:
        raise RecordError(f"record version {version!r}; this program reads version {VERSION}")
    kind = fields.pop("kind", None)
    cls = _KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        raise RecordError(f"unknown kind of record: {kind!r}")
    fields.pop("crc", None)
    unknown = fields.keys() - _FIELDS[kind]
    for name in unknown:  # a newer minor version may add members; they are not ours to judge
        del fields[name]
    try:
        if kind == "page" or kind == "robots":
            fields["ledger"] = tuple([Exchange(*entry) for entry in fields.get("ledger", ())])
            "".join([entry.domain for entry in fields["ledger"]])  # raises if one is no text
            if kind == "page":
                fields["hrefs"] = _texts(fields.get("hrefs", []))
        elif kind == "family":
            fields["spare"] = _texts(fields.get("spare", []))
        elif kind == "feed":
            fields["work"] = tuple([(_text(domain), int(priority)) for domain, priority in fields.get("work", [])])
            fields["done"] = tuple([(_text(domain), tuple(map(int, ids))) for domain, ids in fields.get("done", [])])
            fields["closed"] = _texts(fields.get("closed", []))
        closes = fields.get("closes")
        if closes is not None:
            fields["closes"] = _closure(closes)
        _check(kind, fields)
        return cls(**fields)  # type: ignore[no-any-return]
    except (TypeError, ValueError, KeyError, AttributeError) as problem:
        raise RecordError(f"a broken {kind} record: {problem}") from None


def _check(kind: str, fields: dict[str, Any]) -> None:
    """Raise TypeError or ValueError if a member is not what everybody takes it for."""
    for name, types in _SCALARS[kind]:
        if name in fields:
            value = fields[name]
            if type(value) not in types:
                raise TypeError(f"{name} is a {type(value).__name__}")
            if type(value) is int and not -_LARGEST < value < _LARGEST:
                raise ValueError(f"{name} is {value}")
    if kind == "page" and fields.get("state") not in _STATES:
        raise ValueError(f"no visit ends as {fields.get('state')!r}")


def _closure(fields: Any) -> Closure:
    closure = Closure(_text(fields["reason"]), int(fields["request_number"]), fields.get("limit"))
    if not isinstance(closure.limit, int | None) or not -_LARGEST < closure.request_number < _LARGEST:
        raise TypeError("the figures of a closure are no numbers")
    return closure


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"a {type(value).__name__} where a text should be")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError("not a list")
    "".join(value)  # the quickest way to find out whether all are texts
    return tuple(value)


def identity(result: PageResult) -> tuple[int, str]:
    """Which visit is this the result of?"""
    return result.run, result.key


__all__ = [
    "VERSION",
    "Closure",
    "DomainEvent",
    "Exchange",
    "FamilyEvent",
    "Feed",
    "Job",
    "PageResult",
    "Record",
    "RecordError",
    "Release",
    "Result",
    "RobotsResult",
    "RunEvent",
    "dump",
    "identity",
    "parse",
]
