"""Code that reads the bytes of strangers takes time in proportion to them, whatever they are.

For every module with regular expressions over untrusted text, inputs are made of the very pieces that its expressions
look for: one piece repeated, two in turns, unclosed and cut short. All are tried at 32 KB; the slowest ones then at 1,
2 and 4 MB, where CPU may grow no faster than size. (`tests/crawler/visit/test_scanner.py` does more for the scanner.)
"""

from __future__ import annotations

import importlib
import itertools
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

import pytest

from crawler.model import page_claims, shown_text, urls
from crawler.model.settings import TrapSettings
from crawler.net import codings, http1
from crawler.rules import subdomains, traps
from crawler.visit import content_types, encoding, flow, html, pure_scanner, references, robots, sitemap
from reporter import escape
from tests.places import ROOT

SCREEN = 32 * 1024
SIZES = (1024 * 1024, 2 * 1024 * 1024, 4 * 1024 * 1024)
SLOWEST = 1  # inputs of each reader that are tried in full
PIECE = 64 * 1024  # bytes that a connection gives at once
COMMON = ("<", ">", "/", '"', "'", "=", " ", "%", "&", ";", "-", "\n", "a", "1", "?", "#", "@", ".", "é", "\x00")
LONGEST_HOST = 64 * 1024  # no address of a page is longer
NO_LIMITS = TrapSettings(0, 0, 3, 200, 5000)

Reader = Callable[[str], object]


def data(function: Callable[[bytes], object]) -> Reader:
    return lambda text: function(text.encode("utf-8", "surrogatepass"))


def source(raw: bytes) -> http1.Source:
    pieces = iter([*(raw[start : start + PIECE] for start in range(0, len(raw), PIECE))])
    return http1.Source(lambda: next(pieces, b""))


def read_head(raw: bytes) -> object:
    try:
        return http1.read_head(source(b"HTTP/1.1 200 OK\r\nX: " + raw))
    except (http1.BadResponse, http1.TooLarge, http1.EarlyClose) as refused:
        return refused


def read_chunks(raw: bytes) -> object:
    body = http1.Body(source(raw), http1.Head(200, (1, 1), {"transfer-encoding": "chunked"}), "GET")
    try:
        return sum(map(len, body.pieces()))
    except (http1.BadResponse, http1.TooLarge, http1.EarlyClose) as refused:
        return refused


def normal(text: str) -> object:
    try:
        return urls.normalize("https://a.test/" + text)
    except urls.UrlError as refused:
        return refused


def host(text: str) -> object:
    try:
        return urls.normalize(f"https://{text}.test/")
    except urls.UrlError as refused:
        return refused


def page(raw: bytes, charset: str = "utf-8") -> object:
    return html.extract(raw, f"text/html; charset={charset}", "https://a.test/", 10_000, agent="SumiRipple")


READERS: dict[str, dict[str, Reader]] = {
    "crawler.visit.html": {
        "page": data(page),
        "page in gb18030": data(partial(page, charset="gb18030")),
        "links in big5": data(lambda raw: page(b'<a href="?' + raw[:60_000] + b'">', charset="big5")),
        "refresh": html.refresh_target,
        "nofollow": html.header_says_nofollow,
        "title": html.clean_title,
    },
    "crawler.visit.encoding": {
        "late meta": data(lambda raw: encoding.find_encoding(b" " * 1024 + raw + b" charset=", None)),
        "prescan": data(lambda raw: encoding.find_encoding(raw, None)),
        "xml": data(lambda raw: encoding.find_encoding(b"<?xml " + raw, None)),
    },
    "crawler.visit.references": {"attribute": data(references.in_attribute), "text": data(references.in_text)},
    "crawler.visit.content_types": {
        "type": content_types.media_type,
        "charset": content_types.charset_of,
        "sniff": data(lambda raw: content_types.is_html(None, raw)),
    },
    "crawler.visit.pure_scanner": {
        "scan": data(lambda raw: pure_scanner.scan(raw, 10_000, False, ("meta",), html.refresh_target, _LIMITS)),
        "address": data(lambda raw: pure_scanner.scan(b"<a href=" + raw, 10, False, (), html.refresh_target, _LIMITS)),
    },
    "crawler.visit.robots": {
        "file": lambda text: robots.parse(text),
        "rules": lambda text: robots.parse(f"User-agent: *\nDisallow: /{text}").allows("https://a.test/x", "x"),
        "path": lambda text: robots.path_of("https://a.test/" + text),
        "match": lambda text: robots.parse("User-agent: *\nDisallow: /*a*b*c*d$").allows("https://a.test/" + text, "x"),
    },
    "crawler.visit.sitemap": {
        "text": data(lambda raw: sitemap.read_sitemap(b"https://a.test/\n" + raw)),
        "prologue": data(lambda raw: sitemap.read_sitemap(b"<?xml version='1.0'?>" + raw)),
        "urlset": data(lambda raw: sitemap.read_sitemap(b"<urlset><url><loc>" + raw)),
        "feed": data(lambda raw: sitemap.read_sitemap(b"<rss><channel>" + raw)),
        "wide": data(lambda raw: sitemap.read_sitemap(b"\xff\xfe<\0a\0" + raw)),
        "date": sitemap.date_of,
    },
    "crawler.visit.flow": {
        "location": lambda text: flow._shown(text),
        "userinfo": lambda text: flow._without_userinfo("https://a.test/", ["//" + text + "@"]),
        "retry-after": lambda text: flow.retry_after({"retry-after": text}),
    },
    "crawler.net.http1": {"head": data(read_head), "chunks": data(read_chunks)},
    "crawler.net.codings": {"names": codings.codings},
    "crawler.model.urls": {
        "path": normal,
        "query": lambda text: normal("?" + text),
        "host": host,
        "link": lambda text: urls.LinkResolver().link("https://a.test/b/", text),
    },
    "crawler.rules.traps": {
        "family": lambda text: traps.family_of("https://a.test/1" + text, NO_LIMITS),
        "shape": lambda text: traps.shape_error("https://a.test/" + text, NO_LIMITS),
    },
    "crawler.rules.subdomains": {"registered": lambda text: subdomains.registered_domain(text[:LONGEST_HOST])},
    "crawler.model.page_claims": {"length": page_claims.whole_length},
    "crawler.model.shown_text": {"plain": lambda text: shown_text.plain(text, 10**9)},
    "reporter.escape": {
        "markdown": lambda text: escape.markdown(text, 10**9),
        "code": lambda text: escape.code(text, 10**9),
        "xml": escape.xml,
        "cell": escape.cell,
    },
}
_LIMITS = (64 * 1024, 80 * 1024, 10_000, 2048)
ROOMS = ("crawler/visit", "crawler/net", "crawler/model", "crawler/rules", "reporter/escape.py")


def patterns_of(value: object) -> Iterator[re.Pattern[Any]]:
    """Every compiled expression in a module's value: itself, a method of one, or inside of a collection."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(getattr(value, "__self__", None), re.Pattern):
        yield value.__self__  # type: ignore[attr-defined]
    elif isinstance(value, dict):
        yield from itertools.chain.from_iterable(map(patterns_of, value.values()))
    elif isinstance(value, tuple | list | frozenset):
        yield from itertools.chain.from_iterable(map(patterns_of, value))


def pieces_of(pattern: re.Pattern[Any]) -> set[str]:
    """The literal texts of an expression, and one character of each of its classes."""
    found: set[str] = set()

    def walk(parsed: Any) -> None:
        word = ""
        for operation, argument in parsed:
            if operation is _constants.LITERAL:
                word += chr(argument)
                continue
            found.add(word)
            word = ""
            if operation is _constants.IN:
                for kind, each in argument:
                    if kind is _constants.LITERAL:
                        found.add(chr(each))
                    elif kind is _constants.RANGE:
                        found.add(chr(each[0]))
            for part in argument if isinstance(argument, tuple | list) else (argument,):
                for each in part if isinstance(part, list) else (part,):
                    if isinstance(each, _parser.SubPattern):
                        walk(each)
        found.add(word)

    walk(_parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG))
    return {piece for piece in found if piece}


def inputs_of(module: str) -> list[str]:
    """Units to repeat: pieces of the module's expressions, alone and in pairs."""
    values = vars(importlib.import_module(module)).values()
    pieces = {piece for value in values for pattern in patterns_of(value) for piece in pieces_of(pattern)}
    ordered = sorted(pieces, key=lambda piece: (-len(piece), piece))[:24]
    units = [*ordered, *COMMON]
    pairs = [one + other for one in ordered[:12] for other in (*COMMON, *ordered[:6])]
    return list(dict.fromkeys(units + pairs))


def text_of(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def cpu(reader: Reader, text: str) -> float:
    start = time.process_time()
    reader(text)
    return time.process_time() - start


def test_every_module_with_an_expression_over_strangers_text_is_tried_here() -> None:
    found = set()
    for room in ROOMS:
        paths = [ROOT / room] if room.endswith(".py") else sorted((ROOT / room).glob("*.py"))
        for path in paths:
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            values = vars(importlib.import_module(module)).values()
            if any(True for value in values for _ in patterns_of(value)):
                found.add(module)
    assert found <= set(READERS)


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, readers in READERS.items() for name in readers]
)
def test_cpu_grows_no_faster_than_the_input(module: str, name: str) -> None:
    reader = READERS[module][name]
    screened = sorted(((cpu(reader, text_of(unit, SCREEN)), unit) for unit in inputs_of(module)), reverse=True)
    for seconds, unit in screened[:SLOWEST]:
        assert seconds < 2.0, f"{unit!r} repeated for 32 KB took {seconds:.1f} s"
        # Four times as much may take four times as long; twice that, and a little, for a busy machine.
        for attempt in (1, 2):
            first, _, last = (cpu(reader, text_of(unit, size)) for size in SIZES)
            if last <= 8 * first + 0.25:
                break
            assert attempt == 1, f"{unit!r}: {first:.3f} s for 1 MB, {last:.3f} s for 4 MB"
