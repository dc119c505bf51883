"""PURE. HTTP/1.1 answers, read from any source of bytes: no sockets, no clock.

Strict where two readers could disagree about where an answer ends (chunk sizes, lengths that contradict each
other), lenient where browsers are (bare line feeds, folded lines, spaces before a colon, nonsense lines).
Nothing here grows without bound: heads, chunk lines, trailers and interim answers all have limits.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

LONGEST_HEAD = 128 * 1024  # bytes of a status line with all its headers
LONGEST_LINE = 8 * 1024  # of a chunk's size with its extensions
LONGEST_TRAILER = 64 * 1024
MOST_INTERIM = 16  # 1xx answers before the real one
MOST_CHUNKS = 200_000

_STATUS_LINE = re.compile(rb"HTTP/(\d)(?:\.(\d+))?[ \t]+([1-9]\d\d)(?![^ \t\r\n])")
_HEAD_END = re.compile(rb"\n\r?\n")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;.*)?\Z", re.DOTALL)
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_ESCAPABLE = re.compile(rb"[\x80-\xff]")
_SINGLE = frozenset({"location", "refresh", "etag", "last-modified"})  # never lists: the first of several counts


class BadResponse(Exception):
    """Bytes that are not HTTP."""


class TooLarge(Exception):
    """An answer with a part longer than any honest server sends."""


class EarlyClose(Exception):
    """The connection ended before the answer did. `got` is how many bytes of the answer had come."""

    def __init__(self, words: str, got: int) -> None:
        super().__init__(words)
        self.got = got


class Head:
    """A status line and its headers; names in lower case, repeated ones joined with ", "."""

    __slots__ = ("headers", "is_keep_alive", "status")

    def __init__(self, status: int, version: tuple[int, int], headers: dict[str, str]) -> None:
        self.status = status
        self.headers = headers
        wishes = headers.get("connection", "").lower()
        if version >= (1, 1):
            self.is_keep_alive = "close" not in wishes
        else:
            self.is_keep_alive = "keep-alive" in wishes


class Source:
    """Bytes from a connection, with a buffer for those that came early.

    `receive` gives the next bytes, or none at the end of the connection.
    """

    __slots__ = ("_receive", "buffer", "total")

    def __init__(self, receive: Callable[[], bytes]) -> None:
        self._receive = receive
        self.buffer = b""
        self.total = 0

    def more(self) -> bytes:
        data = self._receive()
        self.total += len(data)
        return data

    def line(self, limit: int) -> bytes:
        """Up to and without the next line end."""
        buffer = self.buffer
        start = 0
        while (end := buffer.find(b"\n", start)) < 0:
            start = len(buffer)
            if start > limit:
                raise TooLarge("a line without end")
            data = self.more()
            if not data:
                raise EarlyClose("the connection ended in the middle of a line", self.total)
            buffer += data
        self.buffer = buffer[end + 1 :]
        if end > limit:
            raise TooLarge("a line without end")
        return buffer[: end - 1] if buffer[end - 1 : end] == b"\r" else buffer[:end]


def read_head(source: Source) -> Head:
    """The final answer's head; interim (1xx) answers are passed over."""
    for _ in range(MOST_INTERIM + 1):
        head = _parse_head(_head_bytes(source))
        if head.status >= 200:
            return head
        if head.status == 101:
            raise BadResponse("the server switched to another protocol")
    raise BadResponse("interim answers without end")


def _head_bytes(source: Source) -> bytes:
    buffer = source.buffer
    scanned = 0
    while True:
        if buffer[:1] in (b"\r", b"\n"):
            buffer = buffer.lstrip(b"\r\n")
            scanned = 0
        if buffer and not (buffer.startswith(b"HTTP/") or b"HTTP/".startswith(buffer[:5])):
            raise BadResponse("the answer does not begin with an HTTP status line")
        match = _HEAD_END.search(buffer, scanned)
        if match is not None and match.end() <= LONGEST_HEAD:
            source.buffer = buffer[match.end() :]
            return buffer[: match.start()]
        if len(buffer) > LONGEST_HEAD or source.total > LONGEST_HEAD * 2:
            raise TooLarge(f"headers of more than {LONGEST_HEAD // 1024} KiB")
        scanned = max(0, len(buffer) - 2)
        data = source.more()
        if not data:
            where = "inside the headers" if buffer else "without an answer"
            raise EarlyClose(f"the connection ended {where}", source.total)
        buffer += data


def _parse_head(raw: bytes) -> Head:
    lines = raw.split(b"\n")
    match = _STATUS_LINE.match(lines[0])
    if match is None:
        raise BadResponse("the status line is not one of HTTP")
    headers: dict[str, str] = {}
    name = ""
    for line in lines[1:]:
        if line[:1] in (b" ", b"\t"):
            if name:
                headers[name] = f"{headers[name]} {_text(name, line)}".strip()
            continue
        key, colon, value = line.partition(b":")
        name = key.strip().lower().decode("latin-1") if colon else ""
        if not name or not name.isprintable():
            name = ""
            continue
        text = _text(name, value)
        if name not in headers:
            headers[name] = text
        elif name in _SINGLE:
            name = ""
        elif name == "x-robots-tag" and _names_agent(headers[name]) and not _names_agent(text):
            # Directives for all agents go first: after a named agent they would read as meant for that one.
            headers[name] = f"{text}, {headers[name]}"
        else:
            headers[name] = f"{headers[name]}, {text}"
    return Head(int(match[3]), (int(match[1]), int(match[2] or 0)), headers)


def _names_agent(value: str) -> bool:
    return ":" in value.partition(",")[0]


def _text(name: str, value: bytes) -> str:
    """A header's value as text that is safe to keep: UTF-8 if it is that, else Latin-1; no controls.

    An ETag with some is none: it is sent back byte for byte, or not at all.
    """
    value = value.strip()
    if value.isascii():
        text = value.decode("ascii")
        if text.isprintable():
            return text
    elif name == "etag":
        text = value.decode("latin-1")
    elif name == "location":  # browsers escape its bytes as they are
        text = _ESCAPABLE.sub(lambda found: b"%%%02X" % found[0][0], value).decode("ascii")
    else:
        try:
            text = value.decode("utf-8")
        except UnicodeDecodeError:
            text = value.decode("latin-1")
    safe = _UNPRINTABLE.sub("", text)
    return safe if safe == text or name != "etag" else ""


class Body:
    """The wire bytes of an answer's body. After the last of `pieces`, `is_exact` says whether the
    connection is at the end of this answer and can carry another one."""

    def __init__(self, source: Source, head: Head, method: str) -> None:
        self._source = source
        self.is_exact = False
        self.transfer_codings: list[str] = []
        self.length: int | None = None  # None: not known beforehand
        self.is_chunked = False
        self.is_complete = False  # every byte of the body has come, though perhaps not all of the trailer
        if method == "HEAD" or head.status in (204, 304):
            self.length = 0
            return
        transfer = head.headers.get("transfer-encoding")
        if transfer is not None:
            names = [name.strip().lower() for name in transfer.split(",")]
            names = [name for name in names if name and name != "identity"]
            if names and names[-1] == "chunked":
                self.is_chunked = True
                names.pop()
            self.transfer_codings = names
            if self.is_chunked or names:
                return
        self.length = _content_length(head.headers.get("content-length"))

    def pieces(self) -> Iterator[bytes]:
        """The body without its framing. Raises BadResponse, TooLarge or EarlyClose."""
        if self.is_chunked:
            yield from self._chunks()
        elif self.length is None:
            yield from self._until_close()
        elif self.length:
            yield from self._exactly(self.length)
        else:
            self.is_exact = not self._source.buffer

    def _until_close(self) -> Iterator[bytes]:
        source = self._source
        data, source.buffer = source.buffer, b""
        while True:
            if data:
                yield data
            data = source.more()
            if not data:
                return

    def _exactly(self, length: int) -> Iterator[bytes]:
        source = self._source
        yield from self._take(length)
        self.is_exact = not source.buffer

    def _take(self, length: int) -> Iterator[bytes]:
        source = self._source
        left = length
        data, source.buffer = source.buffer, b""
        while True:
            if len(data) >= left:
                source.buffer = data[left:]
                yield data[:left]
                return
            if data:
                left -= len(data)
                yield data
            data = source.more()
            if not data:
                raise EarlyClose(f"the connection ended {left} bytes before the end of the body", source.total)

    def _chunks(self) -> Iterator[bytes]:
        source = self._source
        for _ in range(MOST_CHUNKS):
            match = _CHUNK_SIZE.match(source.line(LONGEST_LINE))
            if match is None:
                raise BadResponse("a chunk without a valid size")
            size = int(match[1], 16)
            if size == 0:
                self.is_complete = True
                self._skip_trailer()
                self.is_exact = not source.buffer
                return
            yield from self._take(size)
            if source.line(LONGEST_LINE):
                raise BadResponse("a chunk longer than its size")
        raise TooLarge("more chunks than any honest body has")

    def _skip_trailer(self) -> None:
        size = 0
        while line := self._source.line(LONGEST_LINE):
            size += len(line)
            if size > LONGEST_TRAILER:
                raise TooLarge(f"a trailer of more than {LONGEST_TRAILER // 1024} KiB after the body")


def _content_length(value: str | None) -> int | None:
    """None if there is no usable one: the body then ends with the connection."""
    if value is None:
        return None
    values = {part.strip() for part in value.split(",")}
    if len(values) > 1:
        raise BadResponse("Content-Length headers that contradict each other")
    (only,) = values
    return int(only) if only.isascii() and only.isdigit() and len(only) < 19 else None
