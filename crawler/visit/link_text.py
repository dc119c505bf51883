"""PURE. The text of a link: what its content says to a reader, on one line.

Text and the `alt` of images count; scripts, styles, templates and comments do not. Tags within a word (`<b>`) join what
is around them, all other tags part it. Only the beginning of a long content is read, so each link costs a bounded
amount of work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from crawler.model.link_context import LONGEST_TEXT
from crawler.visit.clean_text import cleaned
from crawler.visit.pure_scanner import REST_OF_TAG, TAG_NAME, attribute_pattern
from crawler.visit.references import in_attribute, in_text

LONGEST_CONTENT = 16 * 1024  # bytes: an inline picture of a few kilobytes may stand before the text

_UNREAD = frozenset({b"script", b"style", b"template", b"iframe", b"noembed", b"noframes"})
_UNREAD_END = {name: re.compile(rb"</%b" % name, re.IGNORECASE) for name in _UNREAD}
_INLINE = frozenset(
    b"a abbr b bdi bdo big cite code del dfn em font i ins kbd mark nobr q s samp small span strike strong sub sup"
    b" tspan tt u var wbr".split()
)
_ALT = attribute_pattern((b"alt",))


def link_text(data: bytes, start: int, end: int, *, is_xml: bool = False, longest: int = LONGEST_TEXT) -> str:
    """The text of the link whose content is at these offsets of a page in UTF-8; "" if it has none."""
    content = data[start : min(end, start + LONGEST_CONTENT)]
    text = b"".join(_pieces(content, is_xml)) if b"<" in content else in_text(content)
    return cleaned(text.decode("utf-8", "replace"), longest)


def _pieces(content: bytes, is_xml: bool) -> Iterator[bytes]:
    position, end = 0, len(content)
    while position < end:
        mark = content.find(b"<", position)
        if mark != position:
            yield in_text(content[position : mark if mark >= 0 else end])
        if mark < 0:
            return
        after = content[mark + 1 : mark + 2]
        if after.isalpha():
            name, position = _name(content, mark + 1, is_xml)
            if name == b"img":
                alt, position = _alt(content, position)
                yield b" " + in_attribute(alt) + b" "
                continue
            position = _behind_tag(content, position)
            if name in _UNREAD:
                found = _UNREAD_END[name].search(content, position)
                position = end if found is None else _behind_tag(content, found.end())
            if name not in _INLINE:
                yield b" "
        elif after == b"/" and content[mark + 2 : mark + 3].isalpha():
            name, position = _name(content, mark + 2, is_xml)
            position = _behind_tag(content, position)
            if name not in _INLINE:
                yield b" "
        elif content.startswith(b"<!--", mark):
            position = _behind(content, b"-->", mark + 4)
        elif is_xml and content.startswith(b"<![CDATA[", mark):
            position = _behind(content, b"]]>", mark + 9)
            yield content[mark + 9 : position].removesuffix(b"]]>")
        elif after in (b"!", b"?", b"/"):
            position = _behind(content, b">", mark + 2)
        else:
            yield b"<"
            position = mark + 1


def _name(content: bytes, position: int, is_xml: bool) -> tuple[bytes, int]:
    found = TAG_NAME.match(content, position)
    assert found is not None
    name = found[0].lower()
    return (name.rpartition(b":")[2] if is_xml else name), found.end()


def _alt(content: bytes, position: int) -> tuple[bytes, int]:
    """The first `alt` of a tag, and the place behind the tag."""
    found = _ALT.match(content, position)
    assert found is not None
    alt = b"" if found[6] is not None else found[2] or found[3] or found[4] or b""
    return alt, found.end() if found[6] is not None else _behind_tag(content, found.end())


def _behind_tag(content: bytes, position: int) -> int:
    found = REST_OF_TAG.match(content, position)
    return len(content) if found is None else found.end()


def _behind(content: bytes, text: bytes, position: int) -> int:
    found = content.find(text, position)
    return len(content) if found < 0 else found + len(text)
