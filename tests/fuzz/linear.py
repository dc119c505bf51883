"""Inputs that make an expression slow, and the measure of how its cost grows: `make fuzz-linear`.

For every module with regular expressions over untrusted text, inputs are made of the very pieces that its expressions
look for: one piece repeated, two in turns, unclosed and cut short. `tests/test_linear.py` does this at small sizes,
where a quadratic reader needs 256 times as long for 16 times as much. Here the worst are tried at 1, 2 and 4 MB.
"""

from __future__ import annotations

import importlib
import itertools
import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any

from crawler.model import archives, content_types, page_claims, pagination, records, shown_text, urls
from crawler.model.messages import Response
from crawler.model.pagination import LIST_WORDS
from crawler.model.settings import TrapSettings, ValidationSettings
from crawler.net import client, codings, http1
from crawler.rules import page_priority, revisit_interval, subdomains, traps
from crawler.visit import (
    clean_text,
    encoding,
    flow,
    html,
    link_text,
    pure_scanner,
    references,
    robots,
    sitemap,
    validation,
)
from reporter import escape

SCREEN = 32 * 1024
SIZES = (1024 * 1024, 2 * 1024 * 1024, 4 * 1024 * 1024)
STEEPEST = 2  # inputs of each reader that are tried further because their cost grew most, besides the slowest one
REPEATS = 5  # the least of so many measurements counts: a busy machine only adds
ENOUGH = 0.05  # seconds; what takes longer is not measured again
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


def judged(raw: bytes, text: bytes = b"", status: int = 200) -> object:
    """The judgement of a page that shows so little that all of its markup is looked at."""
    found = html.Extracted(None, "https://a.test/", (), False, 0, text)
    return validation.Validator(ValidationSettings()).judge(Response(status, {}, raw), found)


def scan_all(raw: bytes, most: int, elements: tuple[str, ...]) -> object:
    return pure_scanner.scan(raw, most, False, elements, html.refresh_target, _LIMITS, True, LIST_WORDS)


def parse_with_hash(text: str) -> None:
    page = records.PageResult(1, "https://a.test/", "https://a.test/", "a.test", "", "processed", content_hash=text)
    with suppress(records.RecordError):
        records.parse(records.dump(page))


def header_value(text: str) -> None:
    with suppress(http1.BadResponse):
        client._checked(text)


READERS: dict[str, dict[str, Reader]] = {
    "crawler.visit.html": {
        "page": data(page),
        "page in gb18030": data(partial(page, charset="gb18030")),
        "links in big5": data(lambda raw: page(b'<a href="?' + raw[:60_000] + b'">', charset="big5")),
        "refresh": html.refresh_target,
        "nofollow": html.header_says_nofollow,
    },
    "crawler.visit.encoding": {
        "late meta": data(lambda raw: encoding.find_encoding(b" " * 1024 + raw + b" charset=", None)),
        "prescan": data(lambda raw: encoding.find_encoding(raw, None)),
        "xml": data(lambda raw: encoding.find_encoding(b"<?xml " + raw, None)),
    },
    "crawler.visit.validation": {
        "markup": data(judged),
        "markup of a login": data(lambda raw: judged(raw, b"log in")),
        "error": data(lambda raw: judged(raw, raw[:1000], 503)),
        "user's text": lambda text: validation.plain(text),
        "own names": lambda text: validation._own_names("https://a.test/" + text[:16_000]),
    },
    "crawler.visit.references": {"attribute": data(references.in_attribute), "text": data(references.in_text)},
    "crawler.model.content_types": {
        "type": content_types.media_type,
        "charset": content_types.charset_of,
        "sniff": data(lambda raw: content_types.is_html(None, raw)),
    },
    "crawler.visit.pure_scanner": {
        "scan": data(lambda raw: scan_all(raw, 10_000, ("meta",))),
        "address": data(lambda raw: scan_all(b"<a href=" + raw, 10, ())),
    },
    "crawler.visit.robots": {
        "file": lambda text: robots.parse(text),
        "rules": lambda text: robots.parse(f"User-agent: *\nDisallow: /{text}").allows("https://a.test/x", "x"),
        "path": lambda text: robots.path_of("https://a.test/" + text),
        "match": lambda text: robots.parse("User-agent: *\nDisallow: /*a*b*c*d$").allows("https://a.test/" + text, "x"),
    },
    "crawler.model.pagination": {
        "query": lambda text: pagination.label_next(
            "https://a.test/?page=1", "https://a.test/", ["?page=2&" + text], ()
        ),
        "path": lambda text: pagination.label_next("https://a.test/", "https://a.test/", ["/page/2" + text], ()),
        "hrefs": lambda text: pagination.label_next("https://a.test/", "https://a.test/", text.split("/"), ()),
        "marks": data(lambda raw: html.extract(raw, None, "https://a.test/", 100, wants_next=True)),
    },
    "crawler.model.archives": {
        "path": lambda text: archives.archives_shown("https://a.test/" + text[:2000]),
        "long": lambda text: archives.archives_shown("https://a.test/" + text),
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
    "crawler.net.client": {"validator": header_value},
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
    "crawler.rules.page_priority": {
        "kind": lambda text: page_priority.kind_of("https://a.test/archive" + text, "a.test"),
    },
    "crawler.rules.revisit_interval": {
        "date": revisit_interval.span_of,
        "moment": lambda text: revisit_interval.span_of("2026-11-18T10:00:00." + text),
    },
    "crawler.rules.subdomains": {"registered": lambda text: subdomains.registered_domain(text[:LONGEST_HOST])},
    "crawler.model.records": {"content hash": parse_with_hash},
    "crawler.model.page_claims": {"length": page_claims.whole_length},
    "crawler.visit.clean_text": {"title": lambda text: clean_text.cleaned(text, 10**9)},
    "crawler.visit.link_text": {
        "text": data(lambda raw: link_text.link_text(raw, 0, len(raw))),
        "whole": data(lambda raw: list(link_text._pieces(raw, True))),
    },
    "crawler.model.shown_text": {
        "plain": lambda text: shown_text.plain(text, 10**9),
        "names": lambda text: shown_text.text_words("xn--a " + text, 10**9),
        "url": lambda text: shown_text.url_words("https://xn--a/" + text, 10**9),
    },
    "reporter.escape": {
        "markdown": lambda text: escape.markdown(text, 10**9),
        "code": lambda text: escape.code(text, 10**9),
        "xml": escape.xml,
        "cell": escape.cell,
    },
}
_LIMITS = (64 * 1024, 80 * 1024, 10_000, 2048)


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
    """The CPU seconds that a reader needs for a text: the least of several measurements, if they are short."""
    least = float("inf")
    for _ in range(REPEATS):
        start = time.process_time()
        reader(text)
        least = min(least, time.process_time() - start)
        if least > ENOUGH:
            break
    return least


def suspects(reader: Reader, units: list[str], size: int = SCREEN) -> list[str]:
    """The slowest unit at this size, and those whose cost grew most from a sixteenth of it."""
    costs = {unit: (cpu(reader, text_of(unit, size // 16)), cpu(reader, text_of(unit, size))) for unit in units}
    slowest = max(costs, key=lambda unit: costs[unit][1])
    steepest = sorted(costs, key=lambda unit: costs[unit][1] / (costs[unit][0] + 1e-6), reverse=True)
    return list(dict.fromkeys([slowest, *steepest[:STEEPEST]]))


def main() -> int:
    """Each reader with its worst inputs at full size; 1 if any of them grows faster than its input."""
    steep = 0
    for module, readers in READERS.items():
        for name, reader in readers.items():
            for unit in suspects(reader, inputs_of(module)):
                first, second, last = (cpu(reader, text_of(unit, size)) for size in SIZES)
                # Four times as much may take four times as long; twice that, and a little, for a busy machine.
                is_steep = last > 8 * first + 0.25
                steep += is_steep
                verdict = "  GROWS FASTER THAN ITS INPUT" if is_steep else ""
                print(f"{module} {name}: {unit!r}: {first:.3f} s, {second:.3f} s, {last:.3f} s{verdict}", flush=True)
    print(f"{steep} inputs grow faster than their size" if steep else "CPU grows no faster than the input")
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
