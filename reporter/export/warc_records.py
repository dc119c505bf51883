"""PURE. Records of WARC/1.1 (ISO 28500:2017) and lines of a CDXJ index.

Everything is a function of its input: the same export is the same bytes. Each record is a gzip member of its own, as
readers expect that jump to an offset.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

import orjson

VERSION = "WARC/1.1"
IDENTICAL = "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
_LEVEL = 6
# The body is kept decoded: what told of its coding on the wire is kept under another name.
_OF_THE_WIRE = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_NEVER = frozenset({"set-cookie", "set-cookie2", "cookie"})
_DIGITS = frozenset("0123456789")


@dataclass(frozen=True, slots=True)
class Origin:
    """The record that a revisit refers to."""

    uri: str
    date: str


def payload_digest(body: bytes) -> str:
    """The label that readers of WARC compare payloads by."""
    return f"sha1:{base64.b32encode(hashlib.sha1(body, usedforsecurity=False).digest()).decode()}"


def info_record(filename: str, date: str, fields: Mapping[str, str]) -> bytes:
    """The first record of a file: who made it, and how."""
    block = _lines(fields.items())
    head = {"WARC-Filename": filename, "Content-Type": "application/warc-fields"}
    return _record("warcinfo", date, _id("warcinfo", filename, date), head, block)


def response_record(uri: str, date: str, status: int, headers: Mapping[str, str], body: bytes, digest: str) -> bytes:
    """A page as it was answered, its body decoded."""
    block = http_head(status, headers, len(body)) + body
    head = {
        "WARC-Target-URI": uri,
        "WARC-Payload-Digest": digest,
        "WARC-Block-Digest": payload_digest(block),
        "Content-Type": "application/http; msgtype=response",
    }
    return _record("response", date, _id("response", uri, date), head, block)


def sent_again_record(
    uri: str, date: str, status: int, headers: Mapping[str, str], origin: Origin, digest: str
) -> bytes:
    """A visit that was sent what an earlier record holds: the headers of this visit, and where the body is."""
    return _revisit(uri, date, IDENTICAL, http_head(status, headers, None), origin, digest)


def not_modified_record(uri: str, date: str, origin: Origin, digest: str) -> bytes:
    """A visit to which the server said that nothing has changed (304).

    Its block is empty, as the standard allows: players take status and headers from the record that this one refers to.
    With a 304 in the block pywb would show an empty page.
    """
    return _revisit(uri, date, NOT_MODIFIED, b"", origin, digest)


def _revisit(uri: str, date: str, profile: str, block: bytes, origin: Origin, digest: str) -> bytes:
    head = {
        "WARC-Target-URI": uri,
        "WARC-Profile": profile,
        "WARC-Refers-To-Target-URI": origin.uri,
        "WARC-Refers-To-Date": origin.date,
        "WARC-Payload-Digest": digest,
        "WARC-Block-Digest": payload_digest(block),
        **({"Content-Type": "application/http; msgtype=response"} if block else {}),
    }
    return _record("revisit", date, _id("revisit", uri, date), head, block)


def http_head(status: int, headers: Mapping[str, str], length: int | None) -> bytes:
    """Status line and headers. `length`: of the body that follows; None: none does."""
    kept = []
    for name, value in headers.items():
        plain = name.lower()
        if plain in _NEVER:
            continue
        kept.append((f"X-Archive-Orig-{name}" if plain in _OF_THE_WIRE else name, value))
    if length is not None:
        kept.append(("Content-Length", str(length)))
    return f"HTTP/1.1 {status} {_phrase(status)}\r\n".encode() + _lines(kept) + b"\r\n"


def cdxj_line(
    uri: str, date: str, mime: str, status: int, digest: str, place: tuple[str, int, int], *, is_revisit: bool
) -> str:
    """The line of one record in a CDXJ index; `place` is its file, offset and length."""
    filename, offset, length = place
    fields = {
        "url": uri,
        "mime": "warc/revisit" if is_revisit else mime,
        **({} if is_revisit else {"status": str(status)}),
        "digest": digest.removeprefix("sha1:"),
        "length": str(length),
        "offset": str(offset),
        "filename": filename,
    }
    stamp = "".join(character for character in date if character in _DIGITS)[:14]
    return f"{surt(uri)} {stamp} {orjson.dumps(fields).decode()}"


def surt(uri: str) -> str:
    """The sort key of a URL in CDXJ indexes: `com,example)/path?query`, in lower case, without `www.`."""
    parts = urlsplit(uri.lower())
    host = parts.hostname or ""
    first, _, rest = host.partition(".")
    if rest and first.startswith("www") and (first == "www" or first[3:].isdecimal()):
        host = rest
    key = host if _is_address(host) else ",".join(reversed(host.split(".")))
    if parts.port and (parts.scheme, parts.port) not in (("https", 443), ("http", 80)):
        key += f":{parts.port}"
    path = parts.path or "/"
    if len(path) > 1:
        path = path.rstrip("/") or "/"
    query = "&".join(sorted(parts.query.split("&"))) if parts.query else ""
    return f"{key}){path}" + (f"?{query}" if query else "")


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


def _record(kind: str, date: str, identity: str, head: Mapping[str, str], block: bytes) -> bytes:
    named = {"WARC-Type": kind, "WARC-Record-ID": identity, "WARC-Date": date, **head}
    lines = _lines([*named.items(), ("Content-Length", str(len(block)))])
    return gzip.compress(f"{VERSION}\r\n".encode() + lines + b"\r\n" + block + b"\r\n\r\n", _LEVEL, mtime=0)


def _lines(fields: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(f"{_one_line(name)}: {_one_line(value)}\r\n".encode("utf-8", "replace") for name, value in fields)


def _one_line(text: str) -> str:
    """No value may begin another header."""
    return " ".join(text.split("\r")).replace("\n", " ").replace("\0", "").strip()


def _id(*parts: str) -> str:
    """A name for a record that is the same in every export of it: a UUID of version 8, made of a hash."""
    raw = bytearray(hashlib.sha256("\n".join(parts).encode()).digest()[:16])
    raw[6] = raw[6] & 0x0F | 0x80
    raw[8] = raw[8] & 0x3F | 0x80
    text = raw.hex()
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}>"


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
