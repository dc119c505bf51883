"""A web server that means harm: raw sockets and TLS on loopback, every bad habit in one place.

    with HostileServer(tmp_path) as server:
        network = server.network()                    # NetworkSettings that lead every host here
        transport.send(Request("GET", "https://tricks.test/drip-body"))
        server.log                                    # [(monotonic seconds, host, method, path), …]

Hosts are distinguished by SNI (the certificate) and Host header (the site):

- `tricks.test` and every other name: the paths in `TRICKS`, robots.txt allows all; `/` links to all of them
- `expired.test`, `self-signed.test`, `wrong-host.test`, `old-tls.test`, `plain-http.test`, `slow-tls.test`,
  `silent.test` (accepts and says nothing), `hangs-up.test`, `resets.test`, `tickets.test` (session tickets without
  end): no request gets through there; `late-tickets.test` floods with tickets instead of a page
- `innocent….test`: small honest sites, to crawl beside the others
- `*.traps.test`: `calendar`, `sessions`, `repeats`, `queries`, `million`, `deep`: sites without end
- `robots-<what>.test`: a robots.txt that answers 503, 429, drip, reset, loop, foreign, huge, bom, delay …

What takes time takes `pace` seconds between two bytes and gives up after `patience` seconds, so that tests can be
quick: with pace 0.05 and a client's limit of half a second everything that drips ends within a second.
"""

from __future__ import annotations

import gzip
import socket
import ssl
import struct
import threading
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import brotli
import trustme
from backports import zstd

from crawler.model.settings import NetworkSettings
from tests import ticket_flood
from tests.waiting import is_readable

BOMB_SIZE = 64 * 1024 * 1024
LINKS_ON_MILLION = 1_000_000
DEEP = 100_000
HTML = "text/html; charset=utf-8"


class Seen(NamedTuple):
    """One request as the server saw it."""

    at: float
    host: str
    method: str
    path: str


class Exchange:
    """One request being answered; what a trick gets its hands on."""

    def __init__(self, server: HostileServer, sock: Any, method: str, path: str, host: str, raw: bytes) -> None:
        self.server = server
        self.sock = sock
        self.method = method
        self.path = path
        self.host = host
        self.raw = raw
        self.is_kept = False

    @property
    def route(self) -> str:
        return self.path.partition("?")[0]

    @property
    def query(self) -> str:
        return self.path.partition("?")[2]

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def reply(
        self,
        status: int | str = 200,
        body: bytes = b"",
        content_type: str | None = HTML,
        *headers: str,
        keep: bool = True,
    ) -> None:
        """A well-formed answer; HEAD gets the same without the body."""
        lines = [f"HTTP/1.1 {status} OK" if isinstance(status, int) else f"HTTP/1.1 {status}"]
        if content_type is not None:
            lines.append(f"Content-Type: {content_type}")
        lines += [*headers, f"Content-Length: {len(body)}"]
        if not keep:
            lines.append("Connection: close")
        self.send("\r\n".join(lines).encode("utf-8") + b"\r\n\r\n" + (b"" if self.method == "HEAD" else body))
        self.is_kept = keep

    def page(self, title: str, *hrefs: str, head: str = "", body: str = "") -> None:
        self.reply(200, html(title, *hrefs, head=head, body=body))

    def drip(self, data: bytes | Iterator[bytes]) -> None:
        """One piece at a time, `pace` apart, until the client leaves or patience ends."""
        end = time.monotonic() + self.server.patience
        pieces = data if not isinstance(data, bytes) else (data[i : i + 1] for i in range(len(data)))
        for piece in pieces:
            if time.monotonic() > end:
                return
            self.send(piece)
            self.server.rest(self.server.pace)

    def flood(self, pieces: Iterator[bytes]) -> None:
        """As fast as it goes, until the client leaves or patience ends."""
        end = time.monotonic() + self.server.patience
        for piece in pieces:
            if time.monotonic() > end or self.server.is_stopping:
                return
            self.send(piece)

    def hang(self) -> None:
        """Send nothing more; wait until the client hangs up."""
        end = time.monotonic() + self.server.patience
        while time.monotonic() < end and not self.server.is_stopping:
            if is_readable(self.sock, 0.05) and not self.sock.recv(4096):
                return


def html(title: str, *hrefs: str, head: str = "", body: str = "") -> bytes:
    links = "\n".join(f'<a href="{href}">{href}</a>' for href in hrefs)
    return f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}{links}</body></html>".encode()


Trick = Callable[[Exchange], None]
TRICKS: dict[str, Trick] = {}


def trick(*paths: str) -> Callable[[Trick], Trick]:
    def register(function: Trick) -> Trick:
        for path in paths:
            TRICKS[path] = function
        return function

    return register


def repeated(piece: bytes) -> Iterator[bytes]:
    while True:
        yield piece


# --- honest ones, to compare with -----------------------------------------------------------------------------------


@trick("/")
def index(x: Exchange) -> None:
    x.page("Index", *(path for path in TRICKS if path != "/" and not path.startswith("/~")))


@trick("/plain")
def plain(x: Exchange) -> None:
    x.page("Plain", "/plain", "/gone")


@trick("/chunked")
def chunked(x: Exchange) -> None:
    body = html("Chunked", "/plain")
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    if x.method != "HEAD":
        for i in range(0, len(body), 20):
            x.send(b"%X;ext=1\r\n%b\r\n" % (len(body[i : i + 20]), body[i : i + 20]))
        x.send(b"0\r\nX-Trailer: yes\r\n\r\n")
    x.is_kept = True


@trick("/until-close")
def until_close(x: Exchange) -> None:
    x.send(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n")
    if x.method != "HEAD":
        x.send(html("Until close", "/plain"))


def compressed(x: Exchange, coding: str, body: bytes) -> None:
    x.reply(200, body, HTML, f"Content-Encoding: {coding}")


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "zstd": zstd.compress,
}


def raw_deflate(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


for _coding, _press in COMPRESSORS.items():

    def _small(x: Exchange, coding: str = _coding, press: Callable[[bytes], bytes] = _press) -> None:
        compressed(x, coding, press(html(f"In {coding}", "/plain")))

    TRICKS[f"/{_coding}"] = _small


@trick("/deflate-raw")
def deflate_raw(x: Exchange) -> None:
    compressed(x, "deflate", raw_deflate(html("In raw deflate", "/plain")))


@trick("/stacked")
def stacked(x: Exchange) -> None:
    compressed(x, "gzip, br", brotli.compress(gzip.compress(html("In both", "/plain"))))


@trick("/no-type")
def no_type(x: Exchange) -> None:
    x.reply(200, html("No type", "/plain"), None)


@trick("/no-type-binary")
def no_type_binary(x: Exchange) -> None:
    x.reply(200, b"\x89PNG\r\n\x1a\n" + bytes(200_000), None)


# --- time -----------------------------------------------------------------------------------------------------------


@trick("/drip-status")
def drip_status(x: Exchange) -> None:
    x.drip(b"HTTP/1.1 200 OK" + b" " * 100_000)


@trick("/drip-headers")
def drip_headers(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    x.drip(repeated(b"z"))


@trick("/drip-body")
def drip_body(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 1000000\r\n\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.drip(repeated(b"<"))


@trick("/drip-chunks")
def drip_chunks(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.drip(repeated(b"1\r\nx\r\n"))


@trick("/drip-chunk-size")
def drip_chunk_size(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.drip(b"1;" + b"e" * 100_000)


@trick("/silent")
def silent(x: Exchange) -> None:
    x.hang()


@trick("/~held")
def held(x: Exchange) -> None:
    """A byte now and then, until the test releases it."""
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
    end = time.monotonic() + 6 * x.server.patience
    while x.method != "HEAD" and not x.server.released.wait(0.2) and time.monotonic() < end:
        x.send(b" ")


@trick("/head-hangs")
def head_hangs(x: Exchange) -> None:
    if x.method == "HEAD":
        x.hang()
    else:
        x.page("HEAD hangs", "/plain")


# --- HEAD -----------------------------------------------------------------------------------------------------------


@trick("/head-405")
def head_405(x: Exchange) -> None:
    if x.method == "HEAD":
        x.reply(405, b"", HTML, "Allow: GET")
    else:
        x.page("No HEAD here", "/plain")


@trick("/head-501")
def head_501(x: Exchange) -> None:
    if x.method == "HEAD":
        x.reply(501)
    else:
        x.page("HEAD not implemented", "/plain")


@trick("/head-closes")
def head_closes(x: Exchange) -> None:
    if x.method != "HEAD":
        x.page("HEAD is hung up on", "/plain")


@trick("/head-with-body")
def head_with_body(x: Exchange) -> None:
    body = html("HEAD answered with a body", "/plain")
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    x.is_kept = True


@trick("/head-404-get-200")
def head_404_get_200(x: Exchange) -> None:
    if x.method == "HEAD":
        x.reply(404)
    else:
        x.page("HEAD lies about its being", "/plain")


@trick("/says-html-is-pdf")
def says_html_is_pdf(x: Exchange) -> None:
    if x.method == "HEAD":
        x.reply(200, b"", HTML)
    else:
        x.reply(200, b"%PDF-1.4 nothing to read", "application/pdf")


@trick("/says-pdf-is-html")
def says_pdf_is_html(x: Exchange) -> None:
    if x.method == "HEAD":
        x.reply(200, b"", "application/pdf")
    else:
        x.page("A page after all", "/plain")


@trick("/file.pdf")
def pdf(x: Exchange) -> None:
    x.reply(200, b"%PDF-1.4", "application/pdf")


# --- size -----------------------------------------------------------------------------------------------------------


def _bomb(coding: str) -> bytes:
    piece = html("Boom", "/plain") + b"<!-- " + bytes(1024 * 1024)
    rounds = BOMB_SIZE // len(piece)
    if coding == "gzip":
        machine = zlib.compressobj(9, wbits=31)
        return b"".join(machine.compress(piece) for _ in range(rounds)) + machine.flush()
    if coding == "deflate":
        machine = zlib.compressobj(9)
        return b"".join(machine.compress(piece) for _ in range(rounds)) + machine.flush()
    if coding == "br":
        squeeze = brotli.Compressor(quality=1)
        return b"".join(squeeze.process(piece) for _ in range(rounds)) + squeeze.finish()
    press = zstd.ZstdCompressor()
    return b"".join(press.compress(piece) for _ in range(rounds)) + press.flush()


_bombs: dict[str, bytes] = {}
_bombs_lock = threading.Lock()


def bomb(coding: str) -> bytes:
    with _bombs_lock:
        if coding not in _bombs:
            inner = coding.split("+")
            _bombs[coding] = _bomb(inner[0]) if len(inner) == 1 else gzip.compress(_bomb(inner[0]))
        return _bombs[coding]


for _coding in COMPRESSORS:

    def _big(x: Exchange, coding: str = _coding) -> None:
        compressed(x, coding, bomb(coding))

    TRICKS[f"/bomb-{_coding}"] = _big


@trick("/bomb-stacked")
def bomb_stacked(x: Exchange) -> None:
    compressed(x, "gzip, gzip", bomb("gzip+gzip"))


@trick("/too-many-codings")
def too_many_codings(x: Exchange) -> None:
    compressed(x, ", ".join(["gzip"] * 30), b"x")


@trick("/not-gzip")
def not_gzip(x: Exchange) -> None:
    compressed(x, "gzip", html("Not compressed at all"))


@trick("/unknown-coding")
def unknown_coding(x: Exchange) -> None:
    compressed(x, "utf-8", html("A coding that is none", "/plain"))


@trick("/header-flood")
def header_flood(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\n")
    x.flood(b"X-%d: %b\r\n" % (i, b"f" * 1000) for i in range(10**9))


@trick("/long-header")
def long_header(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nX: ")
    x.flood(repeated(b"h" * 10_000))


@trick("/long-status")
def long_status(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 ")
    x.flood(repeated(b"s" * 10_000))


@trick("/endless-interim")
def endless_interim(x: Exchange) -> None:
    x.flood(repeated(b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\n"))


@trick("/early-hints")
def early_hints(x: Exchange) -> None:
    x.send(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </s.css>\r\n\r\n")
    x.page("After the hints", "/plain")


@trick("/endless-chunks")
def endless_chunks(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.flood(repeated(b"2000\r\n" + b"<p>end</p" * 910 + b"xy\r\n"))


@trick("/endless-tiny-chunks")
def endless_tiny_chunks(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.flood(repeated(b"1\r\nx\r\n" * 2000))


@trick("/endless-trailer")
def endless_trailer(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.send(b"0\r\n")
        x.flood(repeated(b"X-Trailer: more\r\n"))


@trick("/endless-body")
def endless_body(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n")
    if x.method != "HEAD":
        x.flood(repeated(b"<p>more</p>" * 1000))


@trick("/truncated-gzip")
def truncated_gzip(x: Exchange) -> None:
    """A whole HTTP answer whose gzip stream ends in its middle."""
    whole = gzip.compress(html("Cut off", "/plain") + b" ".join(b"%d" % n for n in range(5000)))
    compressed(x, "gzip", whole[: len(whole) // 2])


def empty_blocks() -> bytes:
    """190 KB: 40 GB of empty deflate blocks, inside of two layers of gzip."""
    with _bombs_lock:
        if "empty blocks" not in _bombs:
            block = b"\x00\x00\x00\xff\xff"  # a stored block of no bytes, not the last one
            inner = zlib.compressobj(9, wbits=31)
            piece = block * 200_000
            data = b"".join(inner.compress(piece) for _ in range(40)) + inner.flush(zlib.Z_FULL_FLUSH)
            # The middle layer is one compressed piece many times over, which compresses again.
            outer = zlib.compressobj(9, wbits=31)
            _bombs["empty blocks"] = b"".join(outer.compress(data) for _ in range(1000)) + outer.flush()
        return _bombs["empty blocks"]


@trick("/empty-blocks")
def send_empty_blocks(x: Exchange) -> None:
    compressed(x, "deflate, gzip, gzip", empty_blocks())


@trick("/empty-members")
def empty_members(x: Exchange) -> None:
    compressed(x, "gzip, gzip", gzip.compress(gzip.compress(b"") * 200_000))


@trick("/trailer-after-body")
def trailer_after_body(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.send(b"5\r\n<p>hi\r\n0\r\n")
        x.flood(repeated(b"X-Trailer: more\r\n" * 100))


# --- CPU and memory: small answers that are large work --------------------------------------------------------------

FULL = 10 * 1024 * 1024  # bytes, the default of `max-body-size`


def _squeezed(name: str, body: Callable[[], bytes]) -> None:
    def answer(x: Exchange) -> None:
        with _bombs_lock:
            if name not in _pages:
                _pages[name] = gzip.compress(body())
            small = _pages[name]
        compressed(x, "gzip", small)

    TRICKS[name] = answer


_pages: dict[str, bytes] = {}
_squeezed("/unclosed-tags", lambda: b"<div>" * 6_000 + b"<b" * 1_000_000)
_squeezed("/paragraphs", lambda: (b"<p>x" * (FULL // 4))[: FULL - 16])
_squeezed("/meta-flood", lambda: b" " * 2000 + b"<meta " * 87_000 + b" charset=")
_squeezed("/one-tag", lambda: b"<a " + b"x" * (FULL - 16))
_squeezed("/attribute-flood", lambda: b"<a " + b"x=1 " * (FULL // 4 - 16))
_squeezed(
    "/query-flood",
    lambda: (
        b"<meta charset=gb18030>"
        + b"".join(b'<a href="?q=%d%b">' % (n, "\u4e00\u9fa5\U0001f600".encode("gb18030") * 2000) for n in range(100))
    ),
)
_squeezed("/controls", lambda: b"".join(b'<a href="/%d' % n + b"\x01" * 60_000 + b'">' for n in range(170)))


# --- framing --------------------------------------------------------------------------------------------------------


def _get_only(x: Exchange, head: bytes, body: bytes) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n" + head + b"\r\n")
    if x.method == "HEAD":
        x.is_kept = True
    else:
        x.send(body)


@trick("/length-too-long")
def length_too_long(x: Exchange) -> None:
    _get_only(x, b"Content-Length: 5000\r\n", html("Shorter than promised"))


@trick("/length-too-short")
def length_too_short(x: Exchange) -> None:
    body = html("Longer than promised", "/plain")
    _get_only(x, b"Content-Length: %d\r\n" % len(body), body + b"and more and more" * 50)
    x.is_kept = True


@trick("/length-nonsense")
def length_nonsense(x: Exchange) -> None:
    _get_only(x, b"Content-Length: -5\r\n", html("A length below nothing", "/plain"))


@trick("/length-twice")
def length_twice(x: Exchange) -> None:
    _get_only(x, b"Content-Length: 10\r\nContent-Length: 20\r\n", b"x" * 20)


@trick("/early-close-headers")
def early_close_headers(x: Exchange) -> None:
    x.send(b"HTTP/1.1 200 OK\r\nContent-Ty")


@trick("/early-close-chunk")
def early_close_chunk(x: Exchange) -> None:
    _get_only(x, b"Transfer-Encoding: chunked\r\n", b"100\r\nnot as much")


@trick("/closes-at-once")
def closes_at_once(x: Exchange) -> None:
    return


@trick("/resets")
def resets(x: Exchange) -> None:
    x.server.reset(x.sock)


@trick("/garbage")
def garbage(x: Exchange) -> None:
    x.send(b"\x00\x01 what is this?\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


@trick("/garbage-endless")
def garbage_endless(x: Exchange) -> None:
    x.flood(repeated(b"garbage without any end "))


@trick("/http09")
def http09(x: Exchange) -> None:
    x.send(b"<html><title>HTTP/0.9</title></html>")


@trick("/bad-status")
def bad_status(x: Exchange) -> None:
    x.send(b"HTTP/1.1 abc Fine\r\nContent-Length: 0\r\n\r\n")


@trick("/status-999")
def status_999(x: Exchange) -> None:
    x.reply(999)


@trick("/switches-protocol")
def switches_protocol(x: Exchange) -> None:
    x.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n\x00\x00\x12\x04")


@trick("/bad-chunk-size")
def bad_chunk_size(x: Exchange) -> None:
    _get_only(x, b"Transfer-Encoding: chunked\r\n", b"-5\r\nhello\r\n0\r\n\r\n")


@trick("/bad-chunk-end")
def bad_chunk_end(x: Exchange) -> None:
    _get_only(x, b"Transfer-Encoding: chunked\r\n", b"3\r\nhello\r\n0\r\n\r\n")


@trick("/nul-headers")
def nul_headers(x: Exchange) -> None:
    _get_only(
        x,
        b"X-Nul: a\0b\r\nX\0Y: z\r\nX-Esc: \x1b[31mred\r\nno colon\r\nX-Latin: caf\xe9\r\nX-Utf: caf\xc3\xa9\r\n"
        b"X-Folded: one\r\n two\r\nConnection: close\r\n",
        html("NULs above", "/plain"),
    )


# --- redirects ------------------------------------------------------------------------------------------------------


def redirect(path: str, location: bytes | None, status: int = 302) -> None:
    def answer(x: Exchange) -> None:
        x.send(b"HTTP/1.1 %d Moved\r\n" % status)
        if location is not None:
            x.send(b"Location: " + location + b"\r\n")
        x.send(b"Content-Type: text/html\r\nContent-Length: 4\r\n\r\n" + (b"" if x.method == "HEAD" else b"gone"))
        x.is_kept = True

    TRICKS[path] = answer


redirect("/to/relative", b"../plain")
redirect("/to/absolute", b"https://tricks.test/plain")
redirect("/to/http", b"http://tricks.test/plain")
redirect("/to/protocol-relative", b"//tricks.test/plain")
redirect("/to/query", b"?a=1")
redirect("/to/empty", b"")
redirect("/to/none", None)
redirect("/to/malformed", b"https://[::bad/")
redirect("/to/nonsense", b"http://")
redirect("/to/mailto", b"mailto:me@tricks.test")
redirect("/to/javascript", b"javascript:alert(1)")
redirect("/to/ftp", b"ftp://tricks.test/plain")
redirect("/to/file", b"file:///etc/passwd")
redirect("/to/userinfo", b"https://user:secret@tricks.test/plain")
redirect("/to/latin", b"/caf\xe9")
redirect("/to/utf8", "/café".encode())
redirect("/to/spaces", b"/plain page")
redirect("/to/itself", b"/to/itself")
redirect("/to/fragment", b"#top")
redirect("/to/loop-a", b"/to/loop-b")
redirect("/to/loop-b", b"/to/loop-a")
redirect("/to/private", b"https://127.0.0.1/")
redirect("/to/metadata", b"https://169.254.169.254/latest/meta-data/")
redirect("/to/odd-loopback", b"https://2130706433/")
redirect("/to/301", b"/plain", 301)
redirect("/to/303", b"/plain", 303)
redirect("/to/307", b"/plain", 307)
redirect("/to/308", b"/plain", 308)
redirect("/to/300", b"/plain", 300)
redirect("/to/304", None, 304)
for _hop in range(12):
    redirect(f"/chain/{_hop}", b"/chain/%d" % (_hop + 1))


@trick("/chain/12")
def chain_end(x: Exchange) -> None:
    x.page("The end of a long chain", "/plain")


@trick("/dir", "/dir/")
def dir_slash(x: Exchange) -> None:
    """`/dir` leads to `/dir/`, as nearly everywhere."""
    if x.route == "/dir":
        x.reply(301, b"", HTML, f"Location: https://{x.host}/dir/")
    else:
        x.page("With a slash", "/plain")


@trick("/slash-ping", "/slash-ping/")
def slash_ping(x: Exchange) -> None:
    """Each form sends to the other one: a loop inside one key."""
    there = "/slash-ping" if x.route.endswith("/") else "/slash-ping/"
    x.reply(301, b"", HTML, f"Location: {there}")


@trick("/to-www")
def to_www(x: Exchange) -> None:
    if x.host.startswith("www."):
        x.page("On www", "/plain")
    else:
        x.reply(301, b"", HTML, f"Location: https://www.{x.host}/to-www")


@trick("/reorder")
def reorder(x: Exchange) -> None:
    """Wants its parameters in its own order: the key stays."""
    if x.query == "b=2&a=1":
        x.page("In order", "/plain")
    else:
        x.reply(302, b"", HTML, "Location: /reorder?b=2&a=1")


@trick("/ever-new-order")
def ever_new_order(x: Exchange) -> None:
    """A fresh tracking parameter on every hop: the key stays, the wire URL never repeats."""
    hop = int("0" + "".join(c for c in x.query.partition("utm_source=")[2] if c.isdigit()))
    x.reply(302, b"", HTML, f"Location: /ever-new-order?utm_source={hop + 1}")


@trick("/refresh-header")
def refresh_header(x: Exchange) -> None:
    x.reply(200, html("Refreshing"), HTML, 'Refresh: 0; url="/plain"')


@trick("/refresh-meta")
def refresh_meta(x: Exchange) -> None:
    x.page("Refreshing from within", head='<meta http-equiv="Refresh" content="3;URL=/plain">')


# --- statuses -------------------------------------------------------------------------------------------------------


@trick("/gone")
def gone(x: Exchange) -> None:
    x.reply(404, html("Not here"))


@trick("/gone-not-gzip")
def gone_with_a_broken_page(x: Exchange) -> None:
    x.reply(404, html("Not compressed at all"), HTML, "Content-Encoding: gzip")


@trick("/gone-bomb")
def gone_with_a_bomb(x: Exchange) -> None:
    x.reply(404, bomb("gzip"), HTML, "Content-Encoding: gzip")


@trick("/410")
def really_gone(x: Exchange) -> None:
    x.reply(410, html("Gone"))


@trick("/403")
def forbidden(x: Exchange) -> None:
    x.reply(403, html("Forbidden"))


@trick("/500")
def broken(x: Exchange) -> None:
    x.reply(500, html("Broken"))


@trick("/503-retry-after")
def unavailable(x: Exchange) -> None:
    x.reply(503, html("Later"), HTML, f"Retry-After: {x.server.retry_after}")


@trick("/flapping")
def flapping(x: Exchange) -> None:
    """Every third request is answered."""
    if x.server.count(x.host, "/flapping") % 3 == 0:
        x.page("Up again", "/plain")
    else:
        x.reply(502, html("Down"))


@trick("/204")
def no_content(x: Exchange) -> None:
    x.send(b"HTTP/1.1 204 No Content\r\n\r\n")
    x.is_kept = True


@trick("/~429")
def rate_limited(x: Exchange) -> None:
    """Not linked from the index: one visit closes the whole domain."""
    x.reply(429, html("Slow down"), HTML, f"Retry-After: {x.server.retry_after}")


# --- text -----------------------------------------------------------------------------------------------------------


@trick("/nofollow-header")
def nofollow_header(x: Exchange) -> None:
    x.reply(200, html("Follow nothing", "/never-a"), HTML, "X-Robots-Tag: otherbot: index", "X-Robots-Tag: nofollow")


@trick("/nofollow-meta")
def nofollow_meta(x: Exchange) -> None:
    x.page("Follow nothing", "/never-b", head='<meta name="ROBOTS" content="noindex, NoFollow">')


@trick("/escapes")
def escapes(x: Exchange) -> None:
    x.page("\x1b[31mred\x1b]0;owned\x07 | <b>`md`</b> =1+1 \u202e' OR 1=1 --", "/plain", "/x\x1b[2Jy", "/|pipe|`tick`")


@trick("/nuls")
def nuls(x: Exchange) -> None:
    x.reply(200, b"<title>n\0u\0l</title><a href='/pl\0ain'>x</a>\0\0<a href=/plain>y</a>")


@trick("/surrogates")
def surrogates(x: Exchange) -> None:
    x.reply(200, b"<title>\xed\xa0\x80 &#xD800; \xff</title><a href='/&#xDFFF;'>x</a><a href=/plain>y</a>")


@trick("/megabyte-attribute")
def megabyte_attribute(x: Exchange) -> None:
    x.page("Big", "/" + "m" * 1_000_000, "/plain", body=f'<div title="{"t" * 1_000_000}"></div>')


@trick("/many-attributes")
def many_attributes(x: Exchange) -> None:
    noise = " ".join(f"a{i}=1" for i in range(100_000))
    x.page("Attributes", "/plain", body=f"<div {noise}></div>")


@trick("/million-links")
def million_links(x: Exchange) -> None:
    if "million" not in _pages:
        _pages["million"] = b"<title>A million</title>" + b"".join(b"<a href=%d>" % i for i in range(LINKS_ON_MILLION))
    x.reply(200, _pages["million"])


@trick("/deep-nesting")
def deep_nesting(x: Exchange) -> None:
    x.reply(200, b"<title>Deep</title>" + b"<div>" * DEEP + b"<a href=/plain>x</a>")


@trick("/empty-page")
def empty_page(x: Exchange) -> None:
    x.reply(200, b"")


@trick("/base")
def base(x: Exchange) -> None:
    x.page("Based", "elsewhere", head='<base href="/dir/">')


@trick("/utf-16")
def utf_16(x: Exchange) -> None:
    x.reply(200, b"\xff\xfe" + html("Sixteen bits é", "/plain").decode().encode("utf-16-le"), "text/html")


# --- traps: sites without end ---------------------------------------------------------------------------------------


def calendar(x: Exchange) -> None:
    parts = [part for part in x.route.split("/") if part.isdigit()]
    year, month = (int(parts[0]), int(parts[1])) if len(parts) == 2 else (2024, 1)
    following = year * 12 + month
    x.page(f"{year}-{month}", f"/calendar/{following // 12}/{following % 12 + 1}", "/about")


def sessions(x: Exchange) -> None:
    number = x.server.count(x.host, "") * 7919
    x.page("Session", *(f"/s/{number + i:032x}/page/{i}" for i in range(5)))


def repeats(x: Exchange) -> None:
    x.page("Again", "a/", "b/", "../a/b/")


def queries(x: Exchange) -> None:
    number = int("0" + "".join(c for c in x.query if c.isdigit())) if len(x.query) < 40 else 0
    x.page("Sorted", *(f"/list?sort={number * 4 + i}" for i in range(1, 5)))


def million(x: Exchange) -> None:
    million_links(x)


@trick("/~hosts")
def hosts(x: Exchange) -> None:
    """Every host links to three new ones below the same registered domain."""
    number = int("0" + "".join(c for c in x.host if c.isdigit()))
    x.page("Host", *(f"https://h{number * 3 + i}.many.test/~hosts" for i in range(1, 4)))


@trick("/~walk")
def walk(x: Exchange) -> None:
    """Redirects without end, each to a registered domain of its own."""
    number = int("0" + "".join(c for c in x.host if c.isdigit()))
    x.reply(302, b"", "text/html", f"Location: https://walk{number + 1}.test/~walk")


@trick("/~long-base")
def long_base(x: Exchange) -> None:
    """A few kilobytes that claim 650 megabytes of URLs."""
    x.page("Base", *(f"p{number}" for number in range(10_000)), head=f"<base href=/{'b' * 65_000}/>")


TRAPS: dict[str, Trick] = {
    "calendar": calendar,
    "sessions": sessions,
    "repeats": repeats,
    "queries": queries,
    "million": million,
    "deep": deep_nesting,
}


# --- robots.txt -----------------------------------------------------------------------------------------------------


def robots(x: Exchange) -> None:
    what = x.host.removeprefix("robots-").removesuffix(".test") if x.host.startswith("robots-") else ""
    if what.isdigit():
        x.reply(int(what), b"", "text/plain")
    elif what == "drip":
        x.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 100000\r\n\r\n")
        x.drip(repeated(b"#"))
    elif what == "reset":
        x.server.reset(x.sock)
    elif what == "loop":
        x.reply(302, b"", "text/plain", "Location: /robots.txt")
    elif what == "foreign":
        x.reply(302, b"", "text/plain", "Location: https://robots-elsewhere.test/robots.txt")
    elif what == "elsewhere":
        x.reply(200, b"User-agent: *\nDisallow: /private", "text/plain")
    elif what == "huge":
        lines = b"User-agent: *\nDisallow: /private\n" + b"# filler\n" * 100_000 + b"Disallow: /too-late\n"
        x.reply(200, lines, "text/plain")
    elif what == "bom":
        x.reply(200, b"\xef\xbb\xbfUser-agent: *\nDisallow: /private\n", "text/plain")
    elif what == "delay":
        x.reply(200, b"User-agent: *\nCrawl-delay: 0.5\n", "text/plain")
    elif what == "digits":
        x.reply(200, b"User-agent: *\nCrawl-delay: " + b"9" * 25 + b"\n", "text/plain")
    elif what == "agents":
        names = b"".join(b"User-agent: a%d\n" % n for n in range(16_000))
        x.reply(200, names + b"".join(b"Disallow: /%d\n" % n for n in range(16_000)), "text/plain")
    elif what.startswith("dense"):
        x.reply(200, b"User-agent: *\n" + b"Disallow: /x\n" * 38_000, "text/plain")
    elif what == "long-delay":
        x.reply(200, b"User-agent: *\nCrawl-delay: 86400\n", "text/plain")
    elif what == "closed":
        x.reply(200, b"User-agent: *\nDisallow: /\n", "text/plain")
    elif what == "html":
        x.reply(200, html("All paths lead here"), HTML)
    else:
        x.reply(200, b"User-agent: *\nAllow: /\n", "text/plain")


def innocent(x: Exchange) -> None:
    """A small honest site: seven pages, one of them missing."""
    pages = ["/", "/a", "/b", "/c", "/d", "/e"]
    if x.route in pages:
        x.page(f"Page {x.route}", *pages, "/missing")
    else:
        x.reply(404, html("Not here"))


# --- the server -----------------------------------------------------------------------------------------------------


class HostileServer:
    """Listens on a free port of 127.0.0.1, one thread for each connection, until the block ends."""

    def __init__(
        self,
        folder: Path,
        *,
        pace: float = 0.05,
        patience: float = 10.0,
        retry_after: str = "1",
        keep_alive: bool = True,
    ) -> None:
        self.pace = pace
        self.patience = patience
        self.retry_after = retry_after
        self.ca_path = folder / "hostile-ca.pem"
        self.log: list[Seen] = []
        self.connections = 0
        self.handshakes = 0
        self.resumptions = 0
        self.released = threading.Event()  # ends the answers of `/~held`
        self.flooded = 0  # the most bytes of session tickets that one client took
        self._folder = folder
        self._key_logs: dict[Any, Path] = {}
        self._keep_alive = keep_alive
        self._counts: Counter[tuple[str, str]] = Counter()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._authority = trustme.CA()
        self._stranger = trustme.CA()
        self._authority.cert_pem.write_to_path(str(self.ca_path))
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._default = self._context_for("tricks.test")
        self._default.sni_callback = self._choose

    # -- for the tests

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    def network(self, **changes: Any) -> NetworkSettings:
        """Settings under which every host is this server, with limits short enough for tests."""
        settings: dict[str, Any] = {
            "ca_bundle": self.ca_path,
            "resolve": (("*", f"127.0.0.1:{self.port}"),),
            "connect_timeout": 1000,
            "read_timeout": 500,
            "total_timeout": 1000,
        }
        return NetworkSettings(**(settings | changes))

    def seen(self, host: str | None = None) -> list[Seen]:
        """The log so far, of one host or of all."""
        with self._lock:
            return [entry for entry in self.log if host is None or entry.host == host]

    def __enter__(self) -> HostileServer:
        thread = threading.Thread(target=self._accept, name="hostile-accept", daemon=True)
        thread.start()
        self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            sockets, threads = list(self._open), list(self._threads)
        for sock in sockets:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join(5)

    # -- for the tricks

    def count(self, host: str, path: str) -> int:
        """Requests to this host for this path ("": for any path), this one included."""
        with self._lock:
            return self._counts[host, path]

    def rest(self, seconds: float) -> None:
        self._stop.wait(seconds)

    def reset(self, sock: socket.socket) -> None:
        """Close with a RST."""
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        socket.socket.close(sock)

    # -- certificates

    def _choose(self, sock: ssl.SSLObject, name: str | None, _: ssl.SSLContext) -> None:
        host = (name or "tricks.test").lower()
        with self._lock:
            context = self._contexts.get(host)
            if context is None:
                context = self._contexts[host] = self._context_for(host)
        sock.context = context

    def _context_for(self, host: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        past = datetime.now(UTC) - timedelta(days=60)
        if host == "expired.test":
            leaf = self._authority.issue_cert(host, not_before=past, not_after=past + timedelta(days=30))
        elif host == "wrong-host.test":
            leaf = self._authority.issue_cert("somebody-else.test")
        elif host == "self-signed.test":
            leaf = self._stranger.issue_cert(host)
        else:
            leaf = self._authority.issue_cert(host)
        leaf.configure_cert(context)
        return context

    # -- connections

    def _accept(self) -> None:
        while not self._stop.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.settimeout(self.patience)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            thread = threading.Thread(target=self._serve, args=(sock,), name="hostile", daemon=True)
            with self._lock:
                self.connections += 1
                self._open.add(sock)
                self._threads = [t for t in self._threads if t.is_alive()] + [thread]
            thread.start()

    def _serve(self, bare: socket.socket) -> None:
        sock: Any = bare
        try:
            name = _client_hello_name(bare)
            if self._spoils_handshake(bare, name):
                return
            context = self._default
            key_log = None
            if name.endswith("tickets.test"):
                context = self._context_for(name)
                key_log = ticket_flood.prepare(context, self._folder)
            if name == "old-tls.test":
                context = self._context_for(name)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", DeprecationWarning)
                    context.minimum_version = ssl.TLSVersion.TLSv1
                    context.maximum_version = ssl.TLSVersion.TLSv1_1
                context.set_ciphers("ALL:@SECLEVEL=0")
            sock = context.wrap_socket(bare, server_side=True)
            with self._lock:
                self.handshakes += 1
                self.resumptions += bool(sock.session_reused)
                self._open.discard(bare)
                self._open.add(sock)
            if key_log is not None:
                self._key_logs[sock] = key_log
            if name == "tickets.test":
                self._flood_with_tickets(sock)
            while not self._stop.is_set() and self._one(sock):
                pass
        except (OSError, ValueError):
            pass
        finally:
            self._key_logs.pop(sock, None)
            with self._lock:
                self._open.discard(sock)
                self._open.discard(bare)
            with suppress(OSError, ValueError):
                sock.close()
            with suppress(OSError):
                bare.close()

    def _spoils_handshake(self, bare: socket.socket, name: str) -> bool:
        waiting = Exchange(self, bare, "", "", name, b"")
        if name == "plain-http.test":
            bare.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        elif name == "slow-tls.test":
            bare.recv(65536)
            waiting.drip(b"\x16\x03\x03\x40\x00" + bytes(10_000))
        elif name == "silent.test":
            bare.recv(65536)
            waiting.hang()
        elif name == "hangs-up.test":
            bare.recv(65536)
        elif name == "resets.test":
            self.reset(bare)
        else:
            return False
        return True

    def _flood_with_tickets(self, sock: ssl.SSLSocket) -> None:
        """Until the client leaves or patience ends."""
        end = time.monotonic() + self.patience
        for sent in ticket_flood.flood(sock, self._key_logs[sock]):
            self.flooded = max(self.flooded, sent)
            if time.monotonic() > end or self._stop.is_set():
                return

    def _one(self, sock: Any) -> bool:
        """One request; does the connection go on?"""
        raw = b""
        while b"\r\n\r\n" not in raw:
            data = sock.recv(65536)
            if not data:
                return False
            raw += data
        head = raw.decode("latin-1")
        method, path, _ = head.split("\r\n", 1)[0].split(" ", 2)
        host = ""
        for line in head.split("\r\n")[1:]:
            key, _, value = line.partition(":")
            if key.lower() == "host":
                host = value.strip().lower().partition(":")[0]
        exchange = Exchange(self, sock, method, path, host, raw)
        with self._lock:
            self.log.append(Seen(time.monotonic(), host, method, path))
            self._counts[host, exchange.route] += 1
            self._counts[host, ""] += 1
        self._answer(exchange)
        return exchange.is_kept and self._keep_alive

    def _answer(self, exchange: Exchange) -> None:
        host = exchange.host.removeprefix("www.")
        trap = TRAPS.get(host.removesuffix(".traps.test")) if host.endswith(".traps.test") else None
        if host == "late-tickets.test" and exchange.route == "/plain" and exchange.method == "GET":
            self._flood_with_tickets(exchange.sock)
        elif host == "late-tickets.test":
            exchange.reply(200, keep=False)  # a flood must be the first thing on its connection
        elif exchange.route == "/robots.txt":
            robots(exchange)
        elif host.startswith("innocent"):
            innocent(exchange)
        elif trap is not None:
            trap(exchange)
        elif exchange.route in TRICKS:
            TRICKS[exchange.route](exchange)
        else:
            exchange.reply(404, html("Nothing here"))


def _client_hello_name(sock: socket.socket) -> str:
    """The SNI of a ClientHello that is still waiting to be read; empty if there is none."""
    end = time.monotonic() + 5
    data = b""
    while time.monotonic() < end:
        data = sock.recv(16384, socket.MSG_PEEK)
        if not data or data[0] != 0x16:
            return ""
        if len(data) >= 5 and len(data) >= 5 + int.from_bytes(data[3:5], "big"):
            break
        time.sleep(0.001)
    return _sni_of(data)


def _sni_of(data: bytes) -> str:
    try:
        at = 5 + 4 + 2 + 32
        at += 1 + data[at]  # session id
        at += 2 + int.from_bytes(data[at : at + 2], "big")  # cipher suites
        at += 1 + data[at]  # compression methods
        end = at + 2 + int.from_bytes(data[at : at + 2], "big")
        at += 2
        while at + 4 <= end:
            kind, size = int.from_bytes(data[at : at + 2], "big"), int.from_bytes(data[at + 2 : at + 4], "big")
            if kind == 0:
                length = int.from_bytes(data[at + 7 : at + 9], "big")
                return data[at + 9 : at + 9 + length].decode("ascii").lower()
            at += 4 + size
    except (IndexError, UnicodeDecodeError):
        pass
    return ""
