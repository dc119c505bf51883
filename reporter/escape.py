"""PURE. Text from strangers, made harmless for the place where it is shown: Markdown, a terminal, XML, CSV, JSON.

Titles, URLs and error messages come from strangers. None of them may end a table cell, start a link, an image or
a command, colour a terminal, or turn the reading direction of the text next to them.
"""

from __future__ import annotations

import re
from typing import Any

import orjson

from crawler.model.shown_text import BLANKS, MOST, plain

_MARKUP = re.compile(r"([\\`*_{}\[\]()<>#+!|~&$^=@:\"'])")
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


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
        line = "".join([each for each in BLANKS.sub(" ", text) if each.isprintable()])
    return "'" + line if line.startswith(_FORMULA) or text.startswith(_FORMULA) else line


def json_text(value: Any) -> str:
    """Indented JSON with a newline at its end."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"
