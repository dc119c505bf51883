"""PURE. Text from strangers, made harmless for the place where it is shown: Markdown, a terminal, XML, CSV, JSON.

Titles, URLs and error messages come from strangers. None of them may end a table cell, start a link, an image or
a command, colour a terminal, or turn the reading direction of the text next to them.
"""

from __future__ import annotations

import re
from typing import Any

import orjson
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
_BLANKS = re.compile(r"[\s\u2028\u2029\x85]+")
_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$^=@:\"'])")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def plain(text: str, most: int = MOST) -> str:
    """One line of visible characters: blanks joined, invisible ones shown as �, the rest of a long text cut off."""
    if text.isascii() and text.isprintable() and len(text) <= most:
        return text.strip(" ") if "  " not in text else _BLANKS.sub(" ", text).strip(" ")
    line = _HOSTILE.sub("\ufffd", _UNSEEN.sub("", _BLANKS.sub(" ", text[: 4 * most]))).strip(" ")
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
    """A domain for people: `blätterwald.test (xn--bltterwald-r5a.test)`. Letters that look alike differ in punycode."""
    shown = unicode_domain(domain)
    return plain(domain, most) if shown is None else plain(f"{shown} ({domain})", most)


def markdown(text: str, most: int = MOST) -> str:
    """Text for a line or a table cell of Markdown, every character of which means itself."""
    line = _MARKUP.sub(r"\\\1", plain(text, most))
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", re.sub(r"^-", r"\\-", line))


def code(text: str, most: int = MOST) -> str:
    """Text as code, for a table cell or elsewhere: no links, no mentions, exactly what it says.

    Three characters cannot be written in code within a table on every renderer and are shown escaped, as URLs do:
    the pipe, the backtick, and the backslash (which would escape what follows).
    """
    line = plain(text, most).replace("|", "%7C").replace("`", "%60").replace("\\", "%5C")
    return f"`{line}`" if line else ""


def xml(text: str) -> str:
    """Text for an XML attribute or element, on one line: forbidden characters are gone, markup is escaped."""
    legal = _NOT_XML.sub("", text)
    for raw, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;")):
        legal = legal.replace(raw, escaped)
    return legal.replace("\t", "&#9;").replace("\n", "&#10;").replace("\r", "&#13;")


def cell(text: str) -> str:
    """Text for a CSV cell that no spreadsheet reads as a formula. Controls are gone; newlines are blanks."""
    line = text
    if not text.isprintable():
        line = "".join([each for each in _BLANKS.sub(" ", text) if each.isprintable()])
    return "'" + line if line.startswith(_FORMULA) or text.startswith(_FORMULA) else line


def json_text(value: Any) -> str:
    """Indented JSON with a newline at its end."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"


def counted(number: int, one: str, many: str | None = None) -> str:
    """`1 page`, `1,245 pages`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
