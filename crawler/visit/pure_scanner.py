"""PURE. The scanner in Python: the twin of `_scanner.c`, for where nothing was compiled. `scanner` has the contract.

Regular expressions do the walking. Each is possessive throughout, so that no byte is tried in a second way.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from crawler.visit.references import in_attribute

Element = tuple[int, str, dict[str, str]]
Link = tuple[int, int, int, str | None]
Place = tuple[int, int]
_Lists = tuple[list[int], list[int], bytes | None, Place]
Found = tuple[bytes | None, bytes | None, list[str], int, list[Element], bytes, list[Link], *_Lists]
Limits = tuple[int, int, int, int]  # longest address, longest value, most elements, longest text

_SPACES = b"\t\n\x0c\r "
_BLANKS = b"\t\n\v\x0c\r "  # around text that is shown
_S = rb"\t\n\x0c\r "  # the same inside of a pattern
_QUOTED_OR_BARE = rb"\"([^\"]*+)(?:\"|\Z)|'([^']*+)(?:'|\Z)|([^%b>\"'][^%b>]*+)" % (_S, _S)
_VALUE = re.sub(rb"(?<!\\)\((?!\?)", b"(?:", _QUOTED_OR_BARE)
_ASSIGNED = rb"(?:[%b]*+=[%b]*+(?:%%b)?+)?+" % (_S, _S)
_ATTRIBUTE = rb"[^%b/>][^%b/>=]*+" % (_S, _S) + _ASSIGNED % _VALUE
_SEPARATORS = rb"[%b/]*+" % _S
_TO_THE_END = rb"(?:%b%b)*+%b" % (_SEPARATORS, _ATTRIBUTE, _SEPARATORS)
_AFTER_NAME = rb"[%b/>]" % _S

TAG_NAME = re.compile(rb"[^%b/>]*+" % _S)
REST_OF_TAG = re.compile(_TO_THE_END + rb"(>?)")
_COMMENT_END = re.compile(rb"--!?>")
_PREFIXES = rb"(?:[^%b/><:]*+:)*+" % _S  # of a name in XML
_DOCTYPE_MARK = re.compile(rb"[\"'\[\]>]|<!--|<\?")

_OUTSIDE = bytes(range(0x21))  # stripped from both ends of an address by the URL standard
_INSIDE = b"\t\n\r"  # and removed anywhere
_FOREIGN_SCHEME = re.compile(rb"(?!https?:)[a-z][a-z0-9+.\-]*+:", re.IGNORECASE)
_CANONICAL = re.compile(rb"(?:\A|[%b])canonical(?:\Z|[%b])" % (_S, _S), re.IGNORECASE)
_PAGE = re.compile(rb"(?:\A|[%b])(?:canonical|next)(?:\Z|[%b])" % (_S, _S), re.IGNORECASE)
_NEXT = re.compile(rb"(?:\A|[%b])next(?:\Z|[%b])" % (_S, _S), re.IGNORECASE)
_TRAILING = re.compile(rb"[\x00-\x20]++\Z")

_MOST_USES = 4  # links with one address that are reported; the first ones say most of it
_LONGEST_REL = 512  # bytes as written
_DIGITS = b"0123456789"
_MOST_DIGITS = 7  # of a page's number
_LONGEST_WORD = 16  # bytes of a word for a page
_PAGE_SUFFIXES = (b".html", b".htm", b".php")

_RAW = frozenset({b"script", b"style", b"xmp", b"iframe", b"noembed", b"noframes", b"textarea", b"title"})
_ATTRIBUTES = {
    b"a": (b"href", b"download"),
    b"area": (b"href", b"rel", b"download"),
    b"base": (b"href",),
    b"link": (b"href", b"rel", b"hreflang", b"type"),
    b"meta": (b"name", b"property", b"http-equiv", b"content", b"charset"),
    b"html": (b"lang",),
    b"template": (b"shadowrootmode",),
    b"annotation-xml": (b"encoding",),
    b"font": (b"color", b"face", b"size"),
}
_REPORTABLE = frozenset({"a", "area", "link", "meta", "html"})

# Foreign content: a frame is the name of what opened it. `svg` and `math` hold foreign elements; the others are
# integration points, where HTML goes on inside of them.
_FOREIGN = (b"svg", b"math")
_INTEGRATION = {
    b"svg": frozenset({b"foreignobject", b"desc", b"title"}),
    b"math": frozenset({b"mi", b"mo", b"mn", b"ms", b"mtext"}),
}
_FRAMES = {name: name for name in (*_FOREIGN, *_INTEGRATION[b"svg"], *_INTEGRATION[b"math"], b"annotation-xml")}
_HTML_ENCODINGS = frozenset({b"text/html", b"application/xhtml+xml"})
# A start tag that ends foreign content, by the HTML standard.
_BREAKOUT = frozenset(
    b"b big blockquote body br center code dd div dl dt em embed h1 h2 h3 h4 h5 h6 head hr i img li listing menu meta "
    b"nobr ol p pre ruby s small span strong strike sub sup table tt u ul var".split()
)
# End tags that close an element around foreign content, and that content with it. The elements left out are never open,
# or stay open.
_CLOSERS = (_BREAKOUT - frozenset({b"body", b"head", b"hr", b"img", b"embed", b"meta"})) | frozenset(
    b"td th tr tbody thead tfoot section article aside nav main header footer form button label fieldset figure "
    b"figcaption details summary caption address select".split()
)


def scan(
    data: bytes,
    most: int,
    is_xml: bool,
    elements: tuple[str, ...],
    refresh: Callable[[str], str | None],
    limits: Limits,
    has_links: bool,
    list_words: frozenset[str] | None,
) -> Found:
    """As `scanner.scan`; the title and base are as written, without references resolved."""
    return _Scan(data, most, is_xml, elements, refresh, limits, has_links, list_words).run()


def address_of(href: bytes) -> bytes | None:
    """The address that an href without references names: no fragment, no spaces around; None: it is no link."""
    return _address_and_mark(href)[0]


def _address_and_mark(href: bytes) -> tuple[bytes | None, bytes]:
    """The address, and the `#` if a fragment follows it."""
    href = href.strip(_OUTSIDE)
    if b"\n" in href or b"\t" in href or b"\r" in href:
        href = href.translate(None, _INSIDE)
    address, mark, _ = href.partition(b"#")
    if not address or _FOREIGN_SCHEME.match(address):
        return None, mark
    if mark and address[-1] <= 0x20:  # part of the address, and stripped later unless it is escaped
        address = _TRAILING.sub(lambda found: b"".join(b"%%%02X" % byte for byte in found[0]), address)
    return address, mark


@lru_cache(maxsize=64)
def _between(is_xml: bool, elements: tuple[str, ...], ends: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """Input that is skipped outside of foreign content and templates: text, and tags without interest.

    `ends`: elements whose ends are of interest.
    """
    names = {b"a", b"base", b"h1", b"link", b"meta", b"plaintext", b"template", *_FOREIGN, *_RAW}
    names |= {name.encode() for name in elements}
    prefix = rb"(?:[^%b/>:]*+:)*+" % _S if is_xml else b""
    wanted = rb"%b(?i:%b)%b" % (prefix, b"|".join(sorted(names)), _AFTER_NAME)
    other = rb"(?!%b(?i:%b)%b)" % (prefix, b"|".join(ends), _AFTER_NAME) if ends else b""
    tag = rb"(?:/%b[A-Za-z]|(?=[A-Za-z])(?!%b))[^%b/>]*+%b>" % (other, wanted, _S, _TO_THE_END)
    return re.compile(rb"(?:[^<]++|<(?:%b|(?![A-Za-z/!?])))*+" % tag)


@lru_cache(maxsize=64)
def attribute_pattern(names: tuple[bytes, ...]) -> re.Pattern[bytes]:
    """The next of these attributes (groups 1 to 4), or a tag's end (separators in 5, `>` in 6)."""
    wanted = b"|".join(names)
    others = rb"(?:%b(?!(?i:%b)[%b/>=])%b)*+" % (_SEPARATORS, wanted, _S, _ATTRIBUTE)
    one = rb"%b((?i:%b))(?=[%b/>=])%b" % (_SEPARATORS, wanted, _S, _ASSIGNED % (rb"(?:%b)" % _QUOTED_OR_BARE))
    return re.compile(rb"%b(?:%b|(%b)(>?))" % (others, one, _SEPARATORS) if names else rb"()()()()%b" % _END_OF_TAG)


_END_OF_TAG = rb"(?:%b%b)*+(%b)(>?)" % (_SEPARATORS, _ATTRIBUTE, _SEPARATORS)


@lru_cache(maxsize=16)
def _raw_end(is_xml: bool, name: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"</%b%b(?=%b)" % (_PREFIXES if is_xml else b"", name, _AFTER_NAME), re.IGNORECASE)


@lru_cache(maxsize=2)
def _script_mark(is_xml: bool) -> re.Pattern[bytes]:
    prefixes = _PREFIXES if is_xml else b""
    return re.compile(rb"(<!--)|(-->)|<(/?)%bscript(?=%b)" % (prefixes, _AFTER_NAME), re.IGNORECASE)


def _may_be_numbered(address: bytes, words: frozenset[str]) -> bool:
    """May this be a page of a list? A word for a page names a number in it, or it is nothing but a number."""
    path, _, query = address.partition(b"?")
    for part in query.split(b"&"):
        name = part.rstrip(_DIGITS)
        if 1 <= len(part) - len(name) <= _MOST_DIGITS and name.endswith(b"=") and _is_list_word(name[:-1], words):
            return True
    path = path.removesuffix(b"/")
    suffix = next((suffix for suffix in _PAGE_SUFFIXES if path.lower().endswith(suffix) and path[len(suffix) :]), b"")
    path = path[: len(path) - len(suffix)]
    before = path.rstrip(_DIGITS)
    if not 1 <= len(path) - len(before) <= _MOST_DIGITS:
        return False
    if before in (b"", b"./", b"../"):
        return True
    before = before[:-1] if before.endswith((b"/", b"_", b"-")) else before
    return _is_list_word(before.rpartition(b"/")[2], words)


def _is_list_word(name: bytes, words: frozenset[str]) -> bool:
    name = name.rstrip(_DIGITS)
    is_word = len(name) <= _LONGEST_WORD and name.replace(b"_", b"a").isalpha()
    return is_word and name.lower().decode() in words


class _Scan:
    """One pass. `position` arguments point at a `<`; each reading returns where to go on, the end of input at most."""

    def __init__(
        self,
        data: bytes,
        most: int,
        is_xml: bool,
        elements: tuple[str, ...],
        refresh: Callable[[str], str | None],
        limits: Limits,
        has_links: bool,
        list_words: frozenset[str] | None,
    ) -> None:
        self._data = data
        self._end = len(data)
        self._most = most
        self._is_xml = is_xml
        self._elements = frozenset(elements) & _REPORTABLE
        self._refresh = refresh
        self._longest_address, self._longest_value, self._most_elements, longest_text = limits
        self._longest_text = min(longest_text, len(data))
        self._has_links = has_links
        self._list_words = list_words
        # The ends of links are of interest where their content is.
        ends = (b"a", b"h1") if has_links else (b"h1",)
        self._between = _between(is_xml, tuple(sorted(self._elements)), ends)
        self._patterns = {name: attribute_pattern(names) for name, names in _ATTRIBUTES.items()}
        if has_links or list_words is not None or "a" in self._elements:
            self._patterns[b"a"] = attribute_pattern((b"href", b"download", b"rel"))
        self._none = attribute_pattern(())
        self._title: bytes | None = None
        self._base: bytes | None = None
        self._canonical: bytes | None = None
        self._heading: int | None = None  # where the content of the first `<h1>` begins, and ends
        self._heading_end: int | None = None
        self._addresses: dict[bytes, int] = {}  # each with its number
        self._left_out: set[int] = set()  # hashes are enough to count
        self._records: list[Element] = []
        self._shown = bytearray()
        self._noscript_at: int | None = None  # the text's length where a `<noscript>` began
        self._links: list[Link] = []
        self._marked: list[int] = []  # numbers of addresses with rel=next
        self._uses: dict[int, int] = {}  # of addresses, by number
        self._open_link: tuple[int, int, str | None] | None = None  # (number of its address, its content, its rel)
        self._frames: list[bytes] = []
        self._open = {b"svg": 0, b"math": 0}
        self._templates = 0
        self._frames_at_template = 0

    def run(self) -> Found:
        data, end = self._data, self._end
        position = 0
        while position < end:
            if self._frames or self._templates or self._is_reading_text():
                start, position = position, data.find(b"<", position)
                self._add_text(start, end if position < 0 else position)
                if position < 0:
                    break
            else:
                found = self._between.match(data, position)
                position = end if found is None else found.end()
            position = self._markup(position)
        self._end_link(end)
        addresses = [address.decode("utf-8", "replace") for address in self._addresses]
        shown, left_out = bytes(self._shown), len(self._left_out)
        return (
            *(self._title, self._base, addresses, left_out, self._records, shown, self._links),
            *(self._numbered(), self._marked, self._canonical, self._heading_place()),
        )

    def _numbered(self) -> list[int]:
        words = self._list_words
        if words is None:
            return []
        return [number for address, number in self._addresses.items() if _may_be_numbered(address, words)]

    def _heading_place(self) -> Place:
        if self._heading is None:
            return -1, -1
        return self._heading, self._end if self._heading_end is None else self._heading_end

    def _is_reading_text(self) -> bool:
        return len(self._shown) < self._longest_text or self._noscript_at is not None

    def _add_text(self, start: int, end: int) -> None:
        """Add the text up to `end`, without the space around it, behind one blank."""
        room = self._longest_text - len(self._shown)
        if room > 0 and not self._templates and (piece := self._data[start:end].strip(_BLANKS)):
            self._shown += (b" " + piece if self._shown else piece)[:room]

    def _markup(self, position: int) -> int:
        mark = self._data[position + 1 : position + 2]
        if mark.isalpha():
            return self._start_tag(position)
        if mark == b"/":
            after = self._data[position + 2 : position + 3]
            if after.isalpha():
                return self._end_tag(position)
            return self._behind(b">", position + 2) if after else self._end
        if mark == b"!":
            return self._declaration(position)
        if mark == b"?":
            return self._behind(b"?>" if self._is_xml else b">", position + 2)
        return position + 1

    def _behind(self, text: bytes, position: int) -> int:
        found = self._data.find(text, position)
        return self._end if found < 0 else found + len(text)

    def _declaration(self, position: int) -> int:
        data = self._data
        if data.startswith(b"<!--", position):
            if self._is_xml:
                return self._behind(b"-->", position + 4)
            if data.startswith(b">", position + 4):
                return position + 5
            if data.startswith(b"->", position + 4):
                return position + 6
            found = _COMMENT_END.search(data, position + 4)
            return self._end if found is None else found.end()
        if data.startswith(b"<![CDATA[", position) and (self._is_xml or self._frames):
            return self._behind(b"]]>", position + 9)
        if self._is_xml:
            return self._xml_doctype(position + 2)
        return self._behind(b">", position + 2)

    def _xml_doctype(self, position: int) -> int:
        """A DOCTYPE may hold declarations in brackets, which hold quotes, comments and instructions."""
        is_inside = False
        while (found := _DOCTYPE_MARK.search(self._data, position)) is not None:
            mark, position = found[0], found.end()
            if mark in (b'"', b"'"):
                position = self._behind(mark, position)
            elif mark == b"<!--":
                position = self._behind(b"-->", position)
            elif mark == b"<?":
                position = self._behind(b"?>", position)
            elif mark == b">" and not is_inside:
                return position
            elif mark != b">":
                is_inside = mark == b"["
        return self._end

    def _name(self, position: int) -> tuple[bytes, int]:
        found = TAG_NAME.match(self._data, position)
        assert found is not None
        name = found[0].lower()
        return (name.rpartition(b":")[2] if self._is_xml else name), found.end()

    def _end_tag(self, position: int) -> int:
        start = position
        name, position = self._name(position + 2)
        if name == b"a" and not self._templates:
            self._end_link(start)
        if name == b"h1" and not self._templates and self._heading is not None and self._heading_end is None:
            self._heading_end = start
        position = self._behind_tag(position)
        if position < self._end or self._data.endswith(b">"):
            if name == b"noscript" and self._noscript_at is not None:
                del self._shown[self._noscript_at :]  # browsers that run scripts do not show it
                self._noscript_at = None
            else:
                self._close(name)
        return position

    def _behind_tag(self, position: int) -> int:
        found = REST_OF_TAG.match(self._data, position)
        return self._end if found is None else found.end()

    def _close(self, name: bytes) -> None:
        frames = self._frames
        if name in _FOREIGN:
            if self._open[name]:
                while self._pop() != name:
                    pass
        elif frames and frames[-1] == name:
            self._pop()
        elif name in _CLOSERS:
            self._leave_foreign()
        elif name == b"template" and self._templates:
            self._templates -= 1
            while not self._templates and len(frames) > self._frames_at_template:
                self._pop()

    def _push(self, name: bytes) -> None:
        self._frames.append(_FRAMES[name])  # one object for all frames of a name
        if name in _FOREIGN:
            self._open[name] += 1

    def _pop(self) -> bytes:
        name = self._frames.pop()
        if name in _FOREIGN:
            self._open[name] -= 1
        return name

    def _leave_foreign(self) -> None:
        while self._frames and self._frames[-1] in _FOREIGN:
            self._pop()

    def _start_tag(self, start: int) -> int:
        data = self._data
        name, position = self._name(start + 1)
        pattern = self._patterns.get(name, self._none)
        values: dict[bytes, bytes] = {}
        while True:
            found = pattern.match(data, position)
            assert found is not None
            position = found.end()
            if found[6] is not None:
                break
            attribute = found[1].lower()
            if attribute not in values:
                value = found[2] or found[3] or found[4] or b""
                values[attribute] = value[: self._longest_value + 1]  # one more tells that it was longer
        if not found[6]:
            return self._end  # the input ends inside of the tag, which then is none
        is_closed = found[5].endswith(b"/")
        if self._frames and self._frames[-1] in _FOREIGN:
            if name not in _BREAKOUT and not (name == b"font" and values):
                self._foreign(start, name, values, is_closed, position)
                return position
            self._leave_foreign()
        return self._html(start, name, values, is_closed, position)

    def _foreign(self, start: int, name: bytes, values: dict[bytes, bytes], is_closed: bool, position: int) -> None:
        if name == b"a":
            self._anchor(start, values, position, is_closed)
        elif not is_closed and (name in _FOREIGN or self._is_integration_point(name, values)):
            self._push(name)

    def _is_integration_point(self, name: bytes, values: dict[bytes, bytes]) -> bool:
        holder = self._frames[-1]
        if name == b"annotation-xml" and holder == b"math":
            return self._resolved(values.get(b"encoding", b"")).lower() in _HTML_ENCODINGS
        return name in _INTEGRATION[holder]

    def _html(self, start: int, name: bytes, values: dict[bytes, bytes], is_closed: bool, position: int) -> int:
        if name == b"a":
            self._anchor(start, values, position, self._is_xml and is_closed)
        elif name in _RAW:
            if not (self._is_xml and is_closed):
                return self._raw_text(name, position)
            if name == b"title" and self._title is None and not self._templates:
                self._title = b""
        elif name in _FOREIGN:
            if not is_closed:
                self._push(name)
        elif name == b"template":
            if not (self._is_xml and is_closed):
                self._open_template(values)
        elif name == b"plaintext":
            return position if self._is_xml else self._end
        elif name == b"noscript":
            if not (self._is_xml and is_closed) and not self._templates and self._noscript_at is None:
                self._noscript_at = len(self._shown)
        elif name == b"h1":
            if self._heading is None and not self._templates:
                self._heading = position
                self._heading_end = position if self._is_xml and is_closed else None
        elif not self._templates:
            self._document_element(start, name, values)
        return position

    def _open_template(self, values: dict[bytes, bytes]) -> None:
        if self._templates:
            self._templates += 1
        elif self._resolved(values.get(b"shadowrootmode", b"")).lower() not in (b"open", b"closed"):
            self._templates = 1
            self._frames_at_template = len(self._frames)

    def _raw_text(self, name: bytes, position: int) -> int:
        if name == b"script":
            found = self._script_end(position)
        else:
            found = _raw_end(self._is_xml, name).search(self._data, position)
        end = self._end if found is None else found.start()
        if name == b"title" and self._title is None and not self._templates:
            self._title = self._data[position : min(end, position + self._longest_value)]
        return self._end if found is None else self._behind_tag(found.end())

    def _script_end(self, position: int) -> re.Match[bytes] | None:
        """The beginning of a script's end tag. Inside `<!-- <script> -->` an end tag ends only the inner script."""
        pattern = _script_mark(self._is_xml)
        is_escaped = is_nested = False
        while (found := pattern.search(self._data, position)) is not None:
            position = found.end()
            if found[1]:
                is_escaped = True
                position = found.start() + 2  # its dashes may be those of a `-->`
            elif found[2]:
                is_escaped = is_nested = False
            elif found[3]:
                if not is_nested:
                    return found
                is_nested = False
            elif is_escaped:
                is_nested = True
        return None

    def _document_element(self, start: int, name: bytes, values: dict[bytes, bytes]) -> None:
        if name == b"base":
            if self._base is None and b"href" in values:
                self._base = values[b"href"][: self._longest_value]
        elif name == b"link":
            rel = self._resolved(values.get(b"rel", b""))
            if b"href" in values and self._canonical is None and _CANONICAL.search(rel):
                self._canonical = values[b"href"][: self._longest_value]
            if b"href" in values and _PAGE.search(rel):
                self._end_link(start)
                number = self._add_href(values[b"href"])
                self._mark_next(number, values)
                self._begin_link(number, start, values)
                self._end_link(start)
        elif name == b"meta":
            self._meta(values)
        self._report(start, name, values)

    def _anchor(self, start: int, values: dict[bytes, bytes], content: int, has_no_content: bool) -> None:
        """A link inside of another one ends that."""
        if self._templates:
            return
        self._end_link(start)
        if b"href" in values and b"download" not in values:
            number = self._add_href(values[b"href"])
            self._mark_next(number, values)
            self._begin_link(number, content, values)
            if has_no_content:
                self._end_link(content)
        self._report(start, b"a", values)

    def _mark_next(self, number: int | None, values: dict[bytes, bytes]) -> None:
        if (
            self._list_words is not None
            and number is not None
            and _NEXT.search(self._resolved(values.get(b"rel", b"")))
        ):
            self._marked.append(number)

    def _begin_link(self, number: int | None, content: int, values: dict[bytes, bytes]) -> None:
        if not self._has_links or number is None or self._uses.get(number, 0) >= _MOST_USES:
            return
        self._uses[number] = self._uses.get(number, 0) + 1
        rel = self._text(values[b"rel"][:_LONGEST_REL]) if b"rel" in values else None
        self._open_link = (number, content, rel)

    def _end_link(self, end: int) -> None:
        if self._open_link is not None:
            number, content, rel = self._open_link
            self._links.append((number, content, end, rel))
            self._open_link = None

    def _meta(self, values: dict[bytes, bytes]) -> None:
        kind = self._resolved(values.get(b"http-equiv", b"")).strip(_SPACES).lower()
        if kind == b"refresh" and values.get(b"content"):
            target = self._refresh(self._text(values[b"content"]))
            if target is not None:
                self._add(target.encode("utf-8", "replace"), is_cut=False)

    def _add_href(self, value: bytes) -> int | None:
        is_cut = len(value) > self._longest_value
        return self._add(self._resolved(value), is_cut=is_cut)

    def _add(self, href: bytes, *, is_cut: bool) -> int | None:
        """The number of the address, if it is kept."""
        address, mark = _address_and_mark(href)
        if address is None:
            return None
        if is_cut and not mark:  # only the beginning of an address, and never the same as a whole one
            self._left_out.add(hash(address + b"#"))
            return None
        number = self._addresses.get(address)
        if number is not None:
            return number
        if len(self._addresses) < self._most and len(address) <= self._longest_address:
            return self._addresses.setdefault(address, len(self._addresses))
        self._left_out.add(hash(address))
        return None

    def _report(self, start: int, name: bytes, values: dict[bytes, bytes]) -> None:
        tag = name.decode("latin-1")
        if tag in self._elements and values and len(self._records) < self._most_elements:
            self._records.append((start, tag, {key.decode(): self._text(value) for key, value in values.items()}))

    def _text(self, value: bytes) -> str:
        return self._resolved(value).decode("utf-8", "replace")

    def _resolved(self, value: bytes) -> bytes:
        return in_attribute(value[: self._longest_value])
