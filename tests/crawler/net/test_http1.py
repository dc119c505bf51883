"""Reading HTTP/1.1 and content codings from bytes alone: however they are cut, and whatever they say."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator

import brotli
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.model.messages import Request
from crawler.net.client import _request_line
from crawler.net.codings import PIECE, BadEncoding, Collector, TooCostly, codings
from crawler.net.http1 import (
    LONGEST_HEAD,
    MOST_CHUNKS,
    BadResponse,
    Body,
    EarlyClose,
    Head,
    Source,
    TooLarge,
    read_head,
)
from tests.hostile import empty_blocks, raw_deflate


def source_of(data: bytes, step: int = 7) -> Source:
    pieces: Iterator[bytes] = (data[i : i + step] for i in range(0, len(data), step))
    return Source(lambda: next(pieces, b""))


def head_of(data: bytes) -> Head:
    return read_head(source_of(data))


def read(data: bytes, method: str = "GET", step: int = 7) -> tuple[Head, bytes, bool]:
    source = source_of(data, step)
    head = read_head(source)
    body = Body(source, head, method)
    return head, b"".join(body.pieces()), body.is_exact


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        (b"HTTP/1.1 200 OK", 200),
        (b"HTTP/1.0 404 Not Found", 404),
        (b"HTTP/1.1 200", 200),
        (b"HTTP/1.1  301  Moved", 301),
        (b"HTTP/2 200", 200),
        (b"HTTP/1.1 999 Request denied", 999),
        (b"HTTP/1.1 200 \xff\x00\x1b", 200),
    ],
)
def test_status_lines_as_servers_write_them(line: bytes, status: int) -> None:
    assert head_of(line + b"\r\n\r\n").status == status


@pytest.mark.parametrize(
    "line",
    [
        b"HTTP/1.1 abc OK",
        b"HTTP/1.1 20 OK",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 099 OK",
        b"HTTP/x 200",
        b"HTTP/1.1",
        b"garbage",
        b"<html>",
        b"ICY 200 OK",
        b"\x00\x00",
        b"HTTPS/1.1 200 OK",
        b"SSH-2.0-OpenSSH",
    ],
)
def test_what_is_not_a_status_line_is_refused(line: bytes) -> None:
    with pytest.raises(BadResponse):
        head_of(line + b"\r\n\r\n")


@given(st.one_of(st.binary(max_size=30), st.text(max_size=12).map(lambda text: f'"{text}"'.encode())))
def test_an_etag_is_sent_back_byte_for_byte_or_not_at_all(etag: bytes) -> None:
    etag = etag.replace(b"\r", b"").replace(b"\n", b"").strip()
    known = head_of(OK + b"ETag: " + etag + b"\r\n\r\n").headers.get("etag", "")
    assert not known or known.encode("latin-1") == etag
    if known:
        request = Request("GET", "https://a.test/", conditions=(("If-None-Match", known),))
        assert _request_line(request)[1].endswith(b"If-None-Match: " + etag + b"\r\n")


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "a\0", "a\x7f", "\u0100"])
def test_no_condition_breaks_out_of_its_line(value: str) -> None:
    """However it came into a job."""
    with pytest.raises(BadResponse):
        _request_line(Request("GET", "https://a.test/", conditions=(("If-None-Match", value),)))


def test_of_several_etags_and_dates_the_first_counts() -> None:
    headers = head_of(OK + b'ETag: "a"\r\nETag: "b"\r\nLast-Modified: now\r\nLast-Modified: then\r\n\r\n').headers
    assert headers == {"etag": '"a"', "last-modified": "now"}


def test_headers_are_lower_case_joined_and_safe() -> None:
    raw = (
        b"X-Two: a\r\nx-two: b\r\nX-Nul: a\0b\r\nX\0Y: z\r\nNo colon here\r\n: no name\r\nX-Space : v\r\n"
        b"X-Latin: caf\xe9\r\nX-Utf: caf\xc3\xa9\r\nX-Esc: \x1b[31m\r\nX-Fold: one\r\n\t two\r\nX-Empty:\r\n"
    )
    assert head_of(OK + raw + b"\r\n").headers == {
        "x-two": "a, b",
        "x-nul": "ab",
        "x-space": "v",
        "x-latin": "café",
        "x-utf": "café",
        "x-esc": "[31m",
        "x-fold": "one two",
        "x-empty": "",
    }


def test_bare_line_feeds_and_leading_blank_lines_are_forgiven() -> None:
    head, body, _ = read(b"\r\n\nHTTP/1.1 200 OK\nContent-Length: 2\n\nhi")
    assert (head.status, body) == (200, b"hi")


def test_a_location_keeps_its_bytes_as_escapes_and_the_first_one_counts() -> None:
    head = head_of(OK + b"Location: /caf\xe9\r\nLocation: /other\r\n\r\n")
    assert head.headers["location"] == "/caf%E9"


def test_what_x_robots_tag_says_to_everyone_stands_before_what_it_says_to_one() -> None:
    head = head_of(OK + b"X-Robots-Tag: otherbot: noindex\r\nX-Robots-Tag: nofollow\r\n\r\n")
    assert head.headers["x-robots-tag"] == "nofollow, otherbot: noindex"


def test_interim_answers_are_passed_over() -> None:
    hints = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    head = head_of(hints + OK + b"X: y\r\n\r\n")
    assert (head.status, head.headers) == (200, {"x": "y"})


def test_interim_answers_without_end_are_refused() -> None:
    with pytest.raises(BadResponse, match="interim"):
        head_of(b"HTTP/1.1 102 Processing\r\n\r\n" * 100)


def test_heads_without_end_are_refused() -> None:
    with pytest.raises(TooLarge):
        read_head(source_of(OK + b"X: y\r\n" * LONGEST_HEAD, 4096))
    with pytest.raises(TooLarge):
        read_head(source_of(b"HTTP/1.1 200 " + b"s" * LONGEST_HEAD * 2, 4096))


@pytest.mark.parametrize(
    ("raw", "is_keep_alive"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n\r\n", True),
    ],
)
def test_which_connections_may_be_kept(raw: bytes, is_keep_alive: bool) -> None:
    assert head_of(raw).is_keep_alive is is_keep_alive


CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("raw", "method", "body", "is_exact"),
    [
        (OK + b"Content-Length: 5\r\n\r\nhello", "GET", b"hello", True),
        (OK + b"Content-Length: 5, 5\r\n\r\nhello", "GET", b"hello", True),
        (OK + b"Content-Length: 5\r\n\r\nhello!", "GET", b"hello", False),
        (OK + b"Content-Length: 5\r\n\r\n", "HEAD", b"", True),
        (OK + b"Content-Length: 5\r\n\r\nhello", "HEAD", b"", False),
        (OK + b"\r\nhello", "GET", b"hello", False),
        (OK + b"Content-Length: -5\r\n\r\nhello", "GET", b"hello", False),
        (OK + b"Content-Length: five\r\n\r\nhello", "GET", b"hello", False),
        (b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\n", "GET", b"", True),
        (b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\n", "GET", b"", True),
        (CHUNKED + b"5\r\nhello\r\n0\r\n\r\n", "GET", b"hello", True),
        (CHUNKED + b"2;x=y\r\nhe\r\n003 \r\nllo\r\n0\r\nTrailer: x\r\n\r\n", "GET", b"hello", True),
        (CHUNKED + b"5\nhello\n0\n\n", "GET", b"hello", True),
        (
            OK + b"Content-Length: 99\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            "GET",
            b"hello",
            True,
        ),
        (OK + b"Transfer-Encoding: identity\r\nContent-Length: 5\r\n\r\nhello", "GET", b"hello", True),
        (OK + b"Transfer-Encoding: gzip\r\n\r\nhello", "GET", b"hello", False),
    ],
)
def test_bodies_end_where_their_framing_says(raw: bytes, method: str, body: bytes, is_exact: bool) -> None:
    _, found, exact = read(raw, method, len(raw))
    assert (found, exact) == (body, is_exact)


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (b"", EarlyClose),
        (b"HTTP/1.1 200 OK\r\nX: ", EarlyClose),
        (OK + b"Content-Length: 10\r\n\r\nhello", EarlyClose),
        (CHUNKED + b"5\r\nhel", EarlyClose),
        (CHUNKED + b"5", EarlyClose),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", EarlyClose),
        (CHUNKED + b"-5\r\nhello\r\n0\r\n\r\n", BadResponse),
        (CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n", BadResponse),
        (CHUNKED + b"5_0\r\nhello\r\n0\r\n\r\n", BadResponse),
        (CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n", BadResponse),
        (CHUNKED + b"\r\n", BadResponse),
        (CHUNKED + b"fffffffffffffffffffff\r\nhello", BadResponse),
        (CHUNKED + b"3\r\nhello\r\n0\r\n\r\n", BadResponse),
        (CHUNKED + b"5;" + b"x" * 100_000, TooLarge),
        (CHUNKED + b"0\r\n" + b"X-Trailer: more\r\n" * 100_000, TooLarge),
        (CHUNKED + b"1\r\nx\r\n" * (MOST_CHUNKS + 1), TooLarge),
        (OK + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", BadResponse),
        (b"HTTP/1.1 101 Switching\r\n\r\n", BadResponse),
    ],
)
def test_answers_that_contradict_themselves_are_refused(raw: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        read(raw, step=4096)


@given(st.integers(1, 60), st.sampled_from(["length", "chunks", "close"]))
def test_the_reading_does_not_depend_on_how_the_bytes_arrive(step: int, framing: str) -> None:
    body = b"<html>" + b"0123456789\r\n" * 9
    if framing == "length":
        raw = OK + b"Content-Length: %d\r\n\r\n" % len(body) + body
    elif framing == "chunks":
        raw = CHUNKED + b"".join(
            b"%x\r\n%b\r\n" % (len(body[i : i + 11]), body[i : i + 11]) for i in range(0, len(body), 11)
        )
        raw += b"0\r\nA: b\r\n\r\n"
    else:
        raw = OK + b"X: y\r\n\r\n" + body
    head, found, is_exact = read(raw, step=step)
    assert (head.status, found, is_exact) == (200, body, framing != "close")


@settings(max_examples=200)
@given(
    st.lists(
        st.sampled_from(
            [
                b"HTTP/1.1 200 OK",
                b"\r\n",
                b"\n",
                b"Content-Length: 3",
                b"5",
                b";",
                b"abc",
                b"\0",
                b" ",
                b"Transfer-Encoding: chunked",
                b"HTTP/1.1 100 x",
                b":",
                b"0",
            ]
        ),
        max_size=30,
    ).map(b"".join),
    st.integers(1, 20),
)
def test_any_bytes_end_in_an_answer_or_a_known_error(data: bytes, step: int) -> None:
    try:
        read(OK + data, step=step)
    except (BadResponse, TooLarge, EarlyClose):
        pass


# --- content codings


PRESSES: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def undo(applied: list[str], data: bytes, limit: int = 10**7, step: int = 1000) -> Collector:
    collector = Collector(applied, limit)
    for i in range(0, len(data), step):
        if not collector.feed(data[i : i + step]):
            break
    return collector


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(sorted(PRESSES)), max_size=3),
    st.binary(max_size=50).map(lambda seed: seed * 3000),
    st.integers(1, 5000),
)
def test_any_stack_of_codings_comes_off_however_it_is_cut(applied: list[str], text: bytes, step: int) -> None:
    data = text
    for name in applied:
        data = PRESSES[name](data)
    collector = undo(applied, data, step=step)
    assert (collector.body(), collector.is_cut, collector.is_whole) == (text, False, True)


@pytest.mark.parametrize("name", sorted(PRESSES))
@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 98_272, 98_273, 2_000_000])
@pytest.mark.parametrize("step", [1, 7, 10**6])
def test_a_few_bytes_that_expand_far_come_off_whole(name: str, size: int, step: int) -> None:
    """All input is consumed long before all output is out."""
    text = bytes(size)
    collector = undo([name], PRESSES[name](text), step=step)
    assert (collector.body() == text, collector.is_whole) == (True, True)


def test_raw_deflate_is_understood_too() -> None:
    assert undo(["deflate"], raw_deflate(b"hello" * 100), step=1).body() == b"hello" * 100


def test_several_gzip_members_are_one_body_and_garbage_after_them_is_ignored() -> None:
    data = gzip.compress(b"one ") + gzip.compress(b"two")
    assert undo(["gzip"], data, step=3).body() == b"one two"
    assert undo(["gzip"], data + b"\0\0garbage", step=3).body() == b"one two"


def test_several_zstd_frames_are_one_body() -> None:
    assert undo(["zstd"], zstd.compress(b"one ") + zstd.compress(b"two"), step=3).body() == b"one two"


def test_a_zstd_window_beyond_what_the_standard_allows_is_refused() -> None:
    options = {zstd.CompressionParameter.window_log: 27}
    with pytest.raises(BadEncoding):
        undo(["zstd"], zstd.ZstdCompressor(options=options).compress(bytes(1000), zstd.ZstdCompressor.FLUSH_BLOCK))


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_a_bomb_stops_at_the_limit_with_memory_flat(name: str) -> None:
    biggest = 0

    class Watching(Collector):
        def _keep(self, piece: bytes) -> bool:
            nonlocal biggest
            biggest = max(biggest, len(piece))
            return super()._keep(piece)

    bomb = brotli.compress(bytes(20_000_000), quality=1) if name == "br" else PRESSES[name](bytes(20_000_000))
    collector = Watching([name], 1_000_000)
    assert not collector.feed(bomb)
    assert collector.is_cut
    assert len(collector.body()) == 1_000_000
    assert biggest <= 2 * PIECE


@pytest.mark.parametrize("name", ["gzip", "deflate", "br", "zstd"])
def test_broken_streams_are_named(name: str) -> None:
    with pytest.raises(BadEncoding):
        undo([name], b"\xff\xfethis is not compressed at all" * 100)


def test_a_body_of_exactly_the_limit_is_whole() -> None:
    assert not undo(["gzip"], gzip.compress(bytes(1000)), limit=1000).is_cut
    assert not undo([], bytes(1000), limit=1000).is_cut
    assert undo([], bytes(1001), limit=1000).is_cut


def test_stacks_without_end_are_refused() -> None:
    with pytest.raises(BadEncoding):
        Collector(["gzip"] * 6, 1000)


@pytest.mark.parametrize(
    ("header", "names"),
    [
        (None, []),
        ("", []),
        ("GZIP", ["gzip"]),
        ("gzip, br", ["gzip", "br"]),
        ("identity", []),
        ("utf-8, gzip", ["gzip"]),
    ],
)
def test_content_encoding_headers(header: str | None, names: list[str]) -> None:
    assert codings(header) == names


def test_40_gb_of_empty_blocks_in_200_kb_end_as_too_costly() -> None:
    """The last layer puts nothing out: the limit on the body alone never stopped it."""
    data = empty_blocks()
    assert len(data) < 250_000
    with pytest.raises(TooCostly):
        undo(["deflate", "gzip", "gzip"], data)


@pytest.mark.parametrize("name", ["gzip", "zstd"])
def test_a_body_of_countless_empty_parts_ends_as_too_costly(name: str) -> None:
    with pytest.raises(TooCostly):
        undo([name], PRESSES[name](b"") * 20_000, step=PIECE)


def test_the_deadline_is_looked_at_while_a_body_is_decoded() -> None:
    looks = []
    collector = Collector(["gzip"], 10**8, lambda: looks.append(1))
    collector.feed(gzip.compress(bytes(20 * 1024 * 1024)))
    assert len(looks) >= 19


def test_a_stream_that_ends_too_early_is_not_whole() -> None:
    data = gzip.compress(b"text " * 1000)
    assert not undo(["gzip"], data[:-10]).is_whole
    assert undo(["gzip"], data).is_whole
