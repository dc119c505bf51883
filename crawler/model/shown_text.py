"""PURE. Text for people, on one line: figures with their nouns, strangers' text made harmless, domains and URLs.

Domains and URLs are kept and exchanged in punycode; people also get the letters that it stands for.
"""

from __future__ import annotations

import re

from ada_url import idna

MOST = 300  # characters of a text that is shown; the rest is cut off

# Controls (C0, DEL, C1), marks of reading direction, tags, and code points that are no characters: shown as �.
_HOSTILE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
# Characters without width that join letters or select their form: left out.
_UNSEEN = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0]"
)
BLANKS = re.compile(r"[\s\u2028\u2029\x85]+")
_BETWEEN_NAMES = re.compile(r"([\s\"'`(),;]+)")
_LEAST = 40  # characters of a URL that are shown beside a long domain


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 page`, `1,245 pages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def cut(text: str, width: int) -> str:
    """The text, no longer than this: what is cut off shows as `…`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def plain(text: str, most: int = MOST) -> str:
    """One line of visible characters: blanks joined, invisible ones shown as �, the rest of a long text cut off."""
    if text.isascii() and text.isprintable() and len(text) <= most:
        return text.strip(" ") if "  " not in text else BLANKS.sub(" ", text).strip(" ")
    line = _HOSTILE.sub("\ufffd", _UNSEEN.sub("", BLANKS.sub(" ", text[: 4 * most]))).strip(" ")
    return line if len(line) <= most and len(text) <= 4 * most else line[: most - 1] + "…"


def unicode_domain(domain: str) -> str | None:
    """An internationalised domain in Unicode; None for a domain that is plain ASCII, or that cannot be decoded."""
    if "xn--" not in domain:
        return None
    try:
        found = idna.decode(domain)
        if idna.encode(found).decode("ascii") != domain:
            return None
    except (ValueError, UnicodeError):
        return None
    text = plain(found)
    return text if text != domain and "\ufffd" not in text else None


def domain_words(domain: str, most: int = MOST) -> str:
    """A domain for people: `blätterwald.test (xn--bltterwald-r5a.test)`. Letters that look alike differ in punycode.

    A pattern too: `*.blätterwald.test (*.xn--bltterwald-r5a.test)`.
    """
    base = domain.removeprefix("*.")
    shown = unicode_domain(base)
    if shown is None:
        return plain(domain, most)
    return plain(f"{domain[: len(domain) - len(base)]}{shown} ({domain})", most)


def url_words(url: str, most: int = MOST) -> str:
    """A URL for people: `https://blätterwald.test/x (xn--bltterwald-r5a.test)`."""
    scheme, mark, rest = url.partition("://")
    end = min((rest.index(each) for each in "/?#:" if each in rest), default=len(rest))
    host, path = rest[:end], rest[end:]
    shown = unicode_domain(host) if mark else None
    if shown is None:
        return plain(url, most)
    beside = f" ({host})"
    return plain(f"{scheme}{mark}{shown}{path}", max(_LEAST, most - len(beside))) + beside


def text_words(text: str, most: int = MOST) -> str:
    """A sentence for people: every domain and URL in it as `domain_words` and `url_words` show them."""
    if "xn--" not in text:
        return plain(text, most)
    pieces = _BETWEEN_NAMES.split(text[: 4 * most])
    return plain("".join([_name_words(piece) if "xn--" in piece else piece for piece in pieces]), most)


def _name_words(name: str) -> str:
    return url_words(name) if "://" in name else domain_words(name)


def size_words(number: int) -> str:
    """A number of bytes for people: `12 MiB`."""
    size = float(number)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:,.0f} {unit}"
        size /= 1024
    return f"{size:,.1f} GiB"


def age_words(seconds: int) -> str:
    """A lifetime for people: `30 days`, `12 hours`."""
    for unit, size in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds % size == 0:
            return counted(seconds // size, unit)
    return counted(seconds, "second")
