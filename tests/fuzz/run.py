"""`make fuzz SECONDS=…`: random but grammatical input for everything that reads the bytes of strangers.

    python -m tests.fuzz.run --seconds 60

Each input must be read without an unexpected error, within `MOST_CPU` seconds, and without the process growing by
more than `MOST_MEMORY`. The inputs are made by grammars of tags, headers, chunks, rules and URLs, so that they get
past the first checks. An input that breaks a rule is made as small as it can be and printed; it becomes a test.
"""

from __future__ import annotations

import argparse
import gzip
import resource
import sys
import time
import zlib
from collections.abc import Callable
from typing import Any

import brotli
from backports import zstd
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from crawler.model import archives, pagination, urls
from crawler.model.messages import Response
from crawler.model.settings import TrapSettings, ValidationSettings
from crawler.net import codings, http1
from crawler.rules import traps
from crawler.visit import html, robots, sitemap, validation

MOST_CPU = 2.0  # seconds for one input
MOST_MEMORY = 200 * 1024 * 1024  # bytes by which one input may raise the peak of the process
ROUND = 200  # inputs of one target before the next one

# -- grammars -----------------------------------------------------------------------------------------------------

noise = st.binary(max_size=20)
word = st.sampled_from(
    [b"a", b"base", b"title", b"meta", b"link", b"script", b"style", b"svg", b"math", b"template", b"!--", b"/a", b"p"]
)
name = st.sampled_from([b"href", b"rel", b"content", b"charset", b"name", b"http-equiv", b"download", b"x", b"\0"])
value = st.one_of(
    noise,
    st.sampled_from(
        [b"nofollow", b"refresh", b"0;url=/x", b"utf-16", b"gb18030", b"&#x41;&amp;&lt", b"//h/", b"http://[", b"%"]
    ),
)
attribute = st.builds(lambda n, q, v: n + b"=" + q + v + q, name, st.sampled_from([b'"', b"'", b""]), value)
tag = st.builds(
    lambda w, attributes, end: b"<" + w + b"".join(b" " + each for each in attributes) + end,
    word,
    st.lists(attribute, max_size=4),
    st.sampled_from([b">", b"/>", b"", b"-->", b" "]),
)
repeated = st.builds(lambda unit, times: unit * times, st.one_of(tag, noise, attribute), st.sampled_from([1, 2, 3000]))
page = st.lists(st.one_of(tag, noise, repeated), max_size=12).map(b"".join)
content_type = st.sampled_from(["text/html", "application/xhtml+xml", "text/html; charset=gbk", "text/html;charset="])

rule = st.builds(
    lambda key, sign, rest, end: key + sign + rest + end,
    st.sampled_from([b"User-agent", b"Disallow", b"Allow", b"Crawl-delay", b"Sitemap", b"#", b""]),
    st.sampled_from([b": ", b":", b" ", b""]),
    st.one_of(noise, st.sampled_from([b"*", b"/*a*b$", b"sumiripple", b"9" * 30, b"/" + b"*a" * 2000, b"%2f%"])),
    st.sampled_from([b"\n", b"\r", b"\r\n"]),
)
robots_file = st.lists(
    st.builds(lambda one, times: (one * times)[:300_000], rule, st.sampled_from([1, 1, 1, 2000])), max_size=8
).map(b"".join)

header = st.builds(
    lambda key, text: key + b": " + text + b"\r\n",
    st.sampled_from([b"Content-Length", b"Transfer-Encoding", b"Location", b"X-Robots-Tag", b"Connection", b" folded"]),
    st.one_of(noise, st.sampled_from([b"chunked", b"gzip, chunked", b"5", b"-1", b"9" * 40, b"a: nofollow", b","])),
)
chunk = st.builds(
    lambda size, extension, body: size + extension + b"\r\n" + body + b"\r\n",
    st.sampled_from([b"0", b"1", b"5", b"fffffffffffffff", b"x", b""]),
    st.sampled_from([b"", b";e", b" ;" + b"e" * 9000]),
    st.sampled_from([b"", b"x", b"hello"]),
)
answer = st.builds(
    lambda status, headers, body: b"HTTP/1.1 " + status + b" OK\r\n" + b"".join(headers) + b"\r\n" + b"".join(body),
    st.sampled_from([b"200", b"103", b"204", b"999", b"2", b"\xff"]),
    st.lists(header, max_size=6),
    st.lists(st.one_of(chunk, noise), max_size=8),
)

PRESSES: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": lambda raw: brotli.compress(raw, quality=1),
    "zstd": zstd.compress,
}
stack = st.lists(st.sampled_from(sorted(PRESSES)), min_size=1, max_size=3)
plain = st.builds(lambda unit, times: unit * times, noise, st.sampled_from([1, 100, 100_000]))

url_part = st.one_of(
    st.text(max_size=8),
    st.sampled_from(["www.", "%2e", "%", "..", "//", "\\", "?a=1&utm_x=2", "#", "@", ":", "[::1]", "xn--", "1", ";p="]),
)
url = st.lists(st.builds(lambda part, times: part * times, url_part, st.sampled_from([1, 1, 500])), max_size=8).map(
    "".join
)

sitemap_tag = st.builds(
    lambda slash, prefix, tag_name, attributes, end: b"<" + slash + prefix + tag_name + attributes + end,
    st.sampled_from([b"", b"/"]),
    st.sampled_from([b"", b"", b"x:", b"image:"]),
    st.sampled_from([b"urlset", b"sitemapindex", b"url", b"sitemap", b"loc", b"lastmod", b"rss", b"item", b"link"]),
    st.sampled_from([b"", b" xmlns='u'", b" xmlns:x='v'", b" rel='alternate' href='/h'", b" a", b" a='&b;'"]),
    st.sampled_from([b">", b"/>", b"", b"<"]),
)
sitemap_text = st.one_of(
    noise,
    st.sampled_from(
        [
            *(b"https://a.test/1", b"\nhttps://a.test/2\n", b"2024-05-06T07:08Z", b"&amp;", b"&x;", b"<![CDATA[ a ]]>"),
            *(
                b"<!-- c -->",
                b"<!DOCTYPE urlset [<!ENTITY x 'y'>]>",
                b"<?xml version='1.0' encoding='utf-16'?>",
                b"]]>",
            ),
        ]
    ),
)
sitemap_body = st.builds(
    lambda start, parts: start + b"".join(parts),
    st.sampled_from([b"<urlset>", b"<sitemapindex>", b"<rss><channel>", b"<feed>", b"", b"\xef\xbb\xbf ", b"\xff\xfe"]),
    st.lists(
        st.builds(lambda unit, n: unit * n, st.one_of(sitemap_tag, sitemap_text), st.sampled_from([1, 1, 3000])),
        max_size=14,
    ),
)

list_href = st.lists(
    st.one_of(
        st.sampled_from(
            ["?page=", "&start=", "/page/", "/p", "1", "2", "20", "99999999", "/", "page-", "&a=b", "?", "="]
        ),
        st.text(max_size=4),
    ),
    max_size=6,
).map("".join)

# -- targets ------------------------------------------------------------------------------------------------------


def read_page(raw: bytes, kind: str) -> None:
    found = html.extract(raw, kind, "https://a.test/b/", 1000, agent="SumiRipple")
    validation.Validator(ValidationSettings()).judge(Response(200, {}, raw), found)
    validation.text_print(found, "https://a.test/b/")
    assert len(found.hrefs) <= 1001
    assert found.title is None or len(found.title) <= html.LONGEST_TITLE


def read_robots(raw: bytes, path: str) -> None:
    whole, own = robots.parse(raw), robots.parse(raw, "SumiRipple")
    wire = "https://a.test/" + path
    assert own.allows(wire, "SumiRipple") == whole.allows(wire, "SumiRipple")
    assert own.crawl_delay("SumiRipple") == whole.crawl_delay("SumiRipple")


def read_answer(raw: bytes, step: int) -> None:
    pieces = iter([*(raw[start : start + step] for start in range(0, len(raw), step)), b"", b"", b""])
    source = http1.Source(lambda: next(pieces, b""))
    try:
        head = http1.read_head(source)
        for _ in http1.Body(source, head, "GET").pieces():
            pass
    except (http1.BadResponse, http1.TooLarge, http1.EarlyClose):
        pass


def read_coded(applied: list[str], raw: bytes, cut: int, flip: int) -> None:
    data = raw
    for coding in applied:
        data = PRESSES[coding](data)
    if flip:
        place = flip % max(1, len(data))
        data = data[:place] + bytes([(data[place] if data else 0) ^ 0x55]) + data[place + 1 :]
    collector = codings.Collector(applied, 1_000_000)
    try:
        for start in range(0, len(data), cut):
            if not collector.feed(data[start : start + cut]):
                break
    except (codings.BadEncoding, codings.TooCostly):
        return
    assert len(collector.body()) <= 1_000_000
    assert flip or collector.is_cut or collector.body() == raw


def read_url(text: str) -> None:
    try:
        key = urls.normalize("https://" + text)
    except urls.UrlError:
        return
    assert urls.normalize(key) == key
    traps.family_of(key, TrapSettings())
    traps.shape_error(key, TrapSettings())
    urls.LinkResolver().link(key, text)


def read_a_sitemap(raw: bytes, is_packed: bool, cut: int) -> None:
    body = gzip.compress(raw, 1) if is_packed else raw
    found = sitemap.read_sitemap(body[: len(body) - cut if cut < len(body) else None], most_entries=500)
    assert len(found.urls) + len(found.sitemaps) <= 500
    assert (found.kind == "invalid") == (found.error is not None)
    assert all(0 < len(address) <= sitemap.LONGEST_ADDRESS for address in (*found.urls, *found.sitemaps))
    for address in found.urls:
        sitemap.counts(address, "https://a.test/sitemap.xml", "b.test")


def label_lists(page_url: str, hrefs: list[str]) -> None:
    try:
        key = urls.normalize("https://a.test/" + page_url)
    except urls.UrlError:
        return
    found = pagination.label_next(key, key, hrefs, hrefs[:1])
    assert found is None or urls.domain_of(found[0]) == urls.domain_of(key)
    guess = pagination.page_beyond(key, [urls.normalize(key + href) for href in hrefs if "[" not in href])
    assert guess is None or guess != key
    for archive in archives.archives_shown(key):
        assert key.startswith((archive.url.rstrip("/") + "/", archive.url + "?"))


TARGETS: dict[str, tuple[Callable[..., None], tuple[st.SearchStrategy[Any], ...]]] = {
    "extraction": (read_page, (page, content_type)),
    "robots": (read_robots, (robots_file, st.text(max_size=10))),
    "http": (read_answer, (answer, st.sampled_from([1, 7, 4096]))),
    "decoding": (read_coded, (stack, plain, st.sampled_from([1000, 65536]), st.integers(0, 500))),
    "urls": (read_url, (url,)),
    "lists": (label_lists, (list_href, st.lists(list_href, max_size=8))),
    "sitemaps": (read_a_sitemap, (sitemap_body, st.booleans(), st.integers(0, 40))),
}


class Costly(AssertionError):
    """An input that took too much."""


def _peak() -> int:
    """Bytes that this process has held at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def bounded(target: Callable[..., None]) -> Callable[..., None]:
    def run(*arguments: Any) -> None:
        before = _peak()
        start = time.process_time()
        target(*arguments)
        seconds = time.process_time() - start
        if seconds > MOST_CPU:
            raise Costly(f"{seconds:.1f} s of CPU")
        growth = _peak() - before
        if growth > MOST_MEMORY:
            raise Costly(f"{growth >> 20} MB")

    return run


def fuzz(label: str, number: int, examples: int) -> None:
    """So many inputs for one target; raises what the smallest failing one raised, and hypothesis prints it."""
    target, strategies = TARGETS[label]
    check = bounded(target)

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        print_blob=False,
    )
    @given(st.tuples(*strategies))
    def attempt(arguments: tuple[Any, ...]) -> None:
        check(*arguments)

    attempt()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    wanted = parser.parse_args()
    end = time.monotonic() + wanted.seconds
    number = wanted.seed
    tried = dict.fromkeys(TARGETS, 0)
    while time.monotonic() < end:
        for label in TARGETS:
            fuzz(label, number, ROUND)
            tried[label] += ROUND
        number += 1
    print(", ".join(f"{label}: {count:,} inputs" for label, count in tried.items()), f"(seeds to {number - 1})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
