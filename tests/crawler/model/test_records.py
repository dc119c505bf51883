"""Records: one door in, one door out, and nothing a page says can block the door (design, promise 5)."""

from __future__ import annotations

import typing

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.records import (
    Closure,
    DomainEvent,
    Exchange,
    FamilyEvent,
    Feed,
    GuessEvent,
    Job,
    Order,
    OrderEvent,
    PageResult,
    Record,
    RecordError,
    Release,
    RobotsResult,
    RunEvent,
    SitemapResult,
    changed,
    dump,
    identity,
    parse,
)
from crawler.workspace.files.spool import seal_line

LEDGER = (
    Exchange(1_700_000_000_000, 12_345, "HEAD", "www.example.com", 200, 31, "example.com"),
    Exchange(1_700_000_001_000, 13_345, "GET", "www.example.com", "timeout", 30_000, "example.com"),
)
CLOSURE = Closure("rate-limited", 17)
EXAMPLES: list[Record] = [
    Job(1, "https://example.com/", "https://www.example.com/", "example.com"),
    PageResult(
        1, "https://example.com/", "https://www.example.com/", "example.com", "2025-01-15T10:30:00.000Z", "failed"
    ),
    PageResult(
        run=3,
        key="https://example.com/a",
        wire="https://example.com/a/",
        domain="example.com",
        at="2025-01-15T10:30:00.000Z",
        state="rate_limited",
        error="http-429: Too Many Requests",
        status=429,
        content_type="text/html",
        last_modified="Wed, 15 Jan 2025 10:30:00 GMT",
        title='Über \u2028 \x01 "quotes"',
        base="https://example.com/a/",
        hrefs=("/b", "", "\n", "mailto:x"),
        nofollow=True,
        links_cut=2,
        redirect="https://example.org/",
        retries=2,
        bytes=4096,
        boot="0f0f",
        ledger=LEDGER,
        closes=CLOSURE,
    ),
    RobotsResult(1, "example.com", "www.example.com", "2025-01-15T10:30:00.000Z", "parsed", 200, "User-agent: *", 0.5),
    RobotsResult(1, "a.test", "a.test", "t", "unreachable", error="timeout: …", boot="b", ledger=LEDGER),
    SitemapResult(
        1,
        "sitemap:https://a.test/s.xml",
        "https://a.test/s.xml",
        "a.test",
        "t",
        "a.test",
        1,
        "urlset",
        urls=("https://a.test/1",),
        dates=("2024-05",),
        entries=1,
        ledger=LEDGER,
        closes=CLOSURE,
    ),
    DomainEvent(1, "a.test", "t", "closed", closes=Closure("request-limit", 500, 500)),
    DomainEvent(1, "a.test", "t", "lost-requests", count=2, detail="a fetcher died"),
    FamilyEvent(1, "a.test", "t", "a.test/x?*", "trap-query-variants: …", spare=("https://a.test/x?a=1",)),
    GuessEvent(1, "a.test", "t", "guessed", "speculated", "https://a.test/p{n}", "https://a.test/p4"),
    GuessEvent(1, "a.test", "t", "ended", "speculated", "https://a.test/p{n}", reason="dead-link"),
    Order("0a1b", "t", "seed", ("https://a.test/x",), "ada"),
    OrderEvent(1, "t", "0a1b", "seed", ("https://a.test/x",), "ada"),
    RunEvent(1, "t", "started", "config", "map"),
    Release(1, "a.test", 16),
    Feed(1, (("a.test", 0), ("b.test", 3)), (("a.test", (1, 2)),), ("c.test",), True),
    Feed(2),
]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: record.kind)
def test_every_record_comes_back_as_it_was(record: Record) -> None:
    again = parse(dump(record))
    assert again == record
    assert type(again) is type(record)
    assert hash(again) == hash(record)


def test_every_kind_of_record_is_among_the_examples() -> None:
    assert {type(record) for record in EXAMPLES} == set(typing.get_args(Record))


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: record.kind)
def test_a_record_survives_the_spools_checksum(record: Record) -> None:
    assert parse(seal_line(dump(record))[:-1]) == record


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: record.kind)
def test_a_line_says_its_version_and_kind_first_and_is_one_line(record: Record) -> None:
    line = dump(record)
    assert list(orjson.loads(line))[:2] == ["v", "kind"]
    assert b"\n" not in line
    assert line.endswith(b"}")


@given(
    title=st.none() | st.text(),
    hrefs=st.lists(st.text(), max_size=5).map(tuple),
    error=st.none() | st.text(),
    delay=st.none() | st.floats(allow_nan=False, allow_infinity=False),
)
@settings(max_examples=100, deadline=None)
def test_any_text_that_is_text_comes_back_as_it_was(
    title: str | None, hrefs: tuple[str, ...], error: str | None, delay: float | None
) -> None:
    page = PageResult(1, "k", "w", "d", "t", "processed", title=title, hrefs=hrefs, error=error)
    shown = [text and text.replace("\0", "\ufffd") for text in (title, error)]
    assert parse(dump(page)) == changed(page, title=shown[0], error=shown[1])
    robots = RobotsResult(1, "d", "h", "t", "parsed", crawl_delay=delay)
    assert parse(dump(robots)) == robots


def test_half_a_surrogate_pair_is_replaced_and_does_not_stop_the_fetcher() -> None:
    page = PageResult(1, "k", "w", "d", "t", "processed", title="a\ud800b", hrefs=("/\udfff", "/x"), ledger=LEDGER)
    again = parse(dump(page))
    assert again == changed(page, title="a\ufffdb", hrefs=("/\ufffd", "/x"))


def test_members_that_a_newer_program_added_are_ignored() -> None:
    fields = orjson.loads(dump(EXAMPLES[2])) | {"mood": "calm"}
    fields["closes"]["colour"] = "red"
    assert parse(orjson.dumps(fields)) == EXAMPLES[2]


def test_members_may_stand_in_any_order() -> None:
    fields = orjson.loads(dump(EXAMPLES[2]))
    assert parse(orjson.dumps(dict(reversed(fields.items())))) == EXAMPLES[2]
    with pytest.raises(RecordError, match="record version 2"):
        parse(orjson.dumps(dict(reversed(fields.items())) | {"v": 2}))


def test_members_with_defaults_may_be_missing() -> None:
    assert parse(b'{"v":1,"kind":"feed","run":2}') == Feed(2)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[]", "not a JSON object"),
        (b"17", "not a JSON object"),
        (b"{}", "version None"),
        (b'{"v":2,"kind":"job"}', "record version 2; this program reads version 1"),
        (b'{"v":true,"kind":"job"}', "version True"),
        (b'{"v":1}', "unknown kind of record: None"),
        (b'{"v":1,"kind":"sandwich"}', "unknown kind of record: 'sandwich'"),
        (b'{"v":1,"kind":["job"]}', "unknown kind"),
        (b'{"v":1,"kind":"job"}', "a broken job record"),
        (b'{"v":1,"kind":"job","run":"1","key":"k","wire":"w","domain":"d"}', "a broken job record"),
        (b'{"v":1,"kind":"feed","run":1,"work":[["a"]]}', "a broken feed record"),
        (b'{"v":1,"kind":"feed","run":1,"closed":"abc"}', "a broken feed record"),
        (b'{"v":1,"kind":"page","run":1,"ledger":[[1]]}', "a broken page record"),
        (b'{"v":1,"kind":"page","run":1,"hrefs":"abc"}', "a broken page record"),
        (b'{"v":1,"kind":"page","run":1,"hrefs":["/a",1]}', "a broken page record"),
        (b'{"v":1,"kind":"page","run":1,"ledger":[[1,1,"GET","h",200,1,7]]}', "a broken page record"),
        (
            b'{"v":1,"kind":"page","run":1,"key":null,"wire":"w","domain":"d","at":"t","state":"failed"}',
            r"`null` - at `\$\.key`",
        ),
        (
            b'{"v":1,"kind":"page","run":1,"key":"k","wire":"w","domain":"d","at":"t","state":"queued"}',
            "no visit ends as",
        ),
        (b'{"v":1,"kind":"robots","run":9223372036854775808,"domain":"d"}', r"int` <= .* - at `\$\.run`"),
        (b'{"v":1,"kind":"feed","run":1,"work":[[["a"],1]]}', "a broken feed record"),
        (
            b'{"v":1,"kind":"domain","run":1,"domain":"d","at":"t","event":"closed","closes":{}}',
            "a broken domain record",
        ),
        (
            b'{"v":1,"kind":"domain","run":1,"domain":"d","at":"t","event":"closed","closes":7}',
            "a broken domain record",
        ),
    ],
)
def test_a_line_that_is_no_record_is_refused_with_the_reason(line: bytes, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        parse(line)


@given(
    st.binary(max_size=60)
    | st.recursive(
        st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from([*PageResult.__struct_fields__, "v", "kind", "work", "done"]), inner, max_size=6
            )
        ),
    ).map(lambda value: orjson.dumps({"v": 1, "kind": "page"} | value if isinstance(value, dict) else value))
)
@settings(max_examples=200, deadline=None)
def test_whatever_stands_on_a_line_parse_returns_a_record_or_raises_record_error(line: bytes) -> None:
    try:
        parse(line)
    except RecordError:
        pass


def test_texts_have_no_nul_and_addresses_are_left_to_their_parser() -> None:
    page = PageResult(1, "k", "w", "d", "t", "failed", error="tls: a\0b", title="\0", hrefs=("/a\0b",), base="/\0")
    page = changed(page, fields={"na\0me": ("x\0", "\\u0000")}, texts=("\0t",), etag='"\0"', headers={"x": "\0"})
    read = parse(dump(page))
    assert read == changed(
        *(page,),
        error="tls: a\ufffdb",
        title="\ufffd",
        fields={"na\ufffdme": ("x\ufffd", "\\u0000")},
        texts=("\ufffdt",),
        etag='"\ufffd"',
        headers={"x": "\ufffd"},
    )
    event = DomainEvent(1, "d", "t", "deferred", 1)
    assert parse(dump(changed(event, detail="a\0"))) == changed(event, detail="a\ufffd")
    with pytest.raises(RecordError, match="not JSON"):
        parse(b'{"v":1,"kind":"page","title":"\\u0000"')


def test_records_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        EXAMPLES[0].run = 2  # type: ignore[misc]


def test_a_results_identity_is_its_run_and_key() -> None:
    assert identity(PageResult(4, "https://a.test/", "w", "d", "t", "failed")) == (4, "https://a.test/")
