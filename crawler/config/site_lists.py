"""Lists of sites that people have, as quality entries: text, CSV, OPML (feed readers) and browsers' bookmarks."""

from __future__ import annotations

import codecs
import csv
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from crawler.config.checks import Bad, domain_pattern
from crawler.model.errors import UsageError
from crawler.model.shown_text import plain
from crawler.model.urls import UrlError, domain_of, wire_of

_MOST_BYTES = 64 * 1024 * 1024
_LONGEST_LINE = 64 * 1024  # characters; longer than any URL
_OUTLINE = re.compile(r"<outline\b[^>]*>", re.I)
_ANCHOR = re.compile(r"<a\b[^>]*>", re.I)
_ATTRIBUTE = re.compile(r"""\b(htmlUrl|xmlUrl|url|href)\s*=\s*(?:"([^"]*)"|'([^']*)')""", re.I)


class SiteList(NamedTuple):
    """Domain → its seeds, in the order of the file, and the lines of a list that name no site."""

    sites: dict[str, list[str]]
    unread: list[str]


def read_sites(path: Path) -> SiteList:
    """The sites of a file. Raises UsageError."""
    unread: list[str] = []
    sites: dict[str, dict[str, None]] = {}
    try:
        urls = list(_urls(_text_of(path), unread))
    except csv.Error as problem:
        raise UsageError(f"{path} is no list that can be read: {problem}; is there a quote without its end?") from None
    for url in urls:
        try:
            domain = domain_pattern(domain_of(url))
        except Bad:
            unread.append(url)  # an address or a name that no list may hold
            continue
        sites.setdefault(domain, {})[url] = None
    if not sites:
        raise UsageError(f"{path} names no site: it should hold URLs or domains, one a line, a CSV, OPML or bookmarks")
    return SiteList({domain: list(seeds) for domain, seeds in sites.items()}, unread)


def _text_of(path: Path) -> str:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is too large for a list of sites (over 64 MiB)")
        data = path.read_bytes()
        # What Windows calls "Unicode" begins with a mark that says so.
        return data.decode("utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig")
    except OSError as problem:
        raise UsageError(f"cannot read {path}: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text; save it as UTF-8") from None


def _urls(text: str, unread: list[str]) -> Iterator[str]:
    """The https URLs of the sites in a file of any of the kinds. `unread` gets the lines of a list that name none."""
    if _OUTLINE.search(text):
        yield from _outline_urls(text)
    elif _ANCHOR.search(text):
        yield from (url for tag in _ANCHOR.findall(text) if (url := _wire(_attributes(tag).get("href", ""))))
    else:
        lines = [line.partition(" #")[0] for line in text.splitlines() if not line.lstrip().startswith("#")]
        lines = [line[:_LONGEST_LINE] for line in lines]  # no cell is longer than the reader takes
        is_head = len(lines) > 1
        for row in csv.reader(lines, delimiter=_delimiter(lines)):
            found = next((url for url in (_wire(cell.strip()) for cell in row) if url), None)
            if found is not None:
                yield found
            elif any(row) and not is_head:  # the first line may hold the names of columns
                unread.append(" ".join(row))
            is_head = False


def _outline_urls(text: str) -> Iterator[str]:
    """Of each feed the site it belongs to; if that is not named, the front page of the feed's host."""
    for tag in _OUTLINE.findall(text):
        found = _attributes(tag)
        url = _wire(found.get("htmlurl", "")) or _wire(found.get("url", ""))
        feed = _wire(found.get("xmlurl", ""))
        if url is None and feed is not None:
            url = "https://" + feed.removeprefix("https://").partition("/")[0] + "/"
        if url is not None:
            yield url


def _attributes(tag: str) -> dict[str, str]:
    return {name.lower(): html.unescape(one or other).strip() for name, one, other in _ATTRIBUTE.findall(tag)}


def _delimiter(lines: list[str]) -> str:
    return max(",;\t", key=(lines[0] if lines else "").count)


def _wire(text: str) -> str | None:
    """The https wire URL of a URL or a bare domain; None if it is neither."""
    if not text or any(letter.isspace() for letter in text):
        return None
    if "://" in text:
        scheme, _, text = text.partition("://")
        if scheme.lower() not in ("http", "https"):
            return None
    else:
        host = text.partition("/")[0]
        if ":" in host or "@" in host or "." not in host.strip("."):
            return None
    try:
        return wire_of("https://" + text)
    except UrlError:
        return None


def config_text(template: str, sites: dict[str, list[str]], source: Path) -> str:
    """The commented config with these sites as its quality list."""
    head, _, rest = template.partition("# -- Quality list")
    _, _, tail = rest.partition("# -- Rarely needed")
    lines = [f"# -- Quality list: the domains to explore fully, from {plain(source.name)}.", ""]
    for domain, seeds in sites.items():
        lines += ["[[quality]]", f'domain = "{domain}"']
        if seeds != [f"https://{domain}/"]:
            lines += ["seeds = [", *(f"    {_quoted(seed)}," for seed in seeds), "]"]
        lines.append("")
    lines += [
        "# -- Blacklist: never visited; links to them are counted.",
        "# [[blacklist]]",
        '# domain = "ads.example.net"',
        "# -- Stub list: never visited, but their pages are recorded.",
        "# [[stub]]",
        '# domain = "*.wiki.example"',
        "",
        "# -- Rarely needed",
    ]
    return head + "\n".join(lines) + tail


def _quoted(text: str) -> str:
    """A TOML string."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
