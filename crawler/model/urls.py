"""PURE. URLs: the key that a page is known by, the wire form that is requested, and the links of a page.

Parsing is WHATWG's, by ada, because links are written for browsers. From there:

- the **key** is the page's identity: https; no userinfo, fragment, trailing dot, default port or leading
  `www.`; no trailing slash (the root aside); escapes of unreserved characters decoded, all others in upper
  case; no tracking parameters, the rest sorted by name, then value. Normalising a key changes nothing.
- the **wire URL** is what a browser would ask for: https, no userinfo, no fragment, no trailing dot on the
  host (the same DNS name either way); everything else as the site wrote it.

Decisions that the specification leaves open:

- `www.` goes, and goes repeatedly, as long as what remains still has a dot in it: `www.example.com` is
  `example.com`, but `www.com` stays itself.
- `http://h:80/` and `http://h:443/` both are `https://h/`. `https://h:80/` is not: it names a TLS port
  other than the default one, which may be another server.
- a `%` that begins no escape is the character itself and becomes `%25`; a raw character that RFC 3986 does
  not allow (`|`, `[`, `{`, …) is escaped. Both spellings mean the same to every server.
- `+`, `%20`, `%26`, `%3D`, `%2F` and the like are never decoded or swapped: they can mean something else.
- empty pieces of a query (`a=1&&b=2`) carry nothing and go; `a` and `a=` are kept apart.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from crawler.model.page_claims import LONGEST_KEY, cut_domain, cut_key
from crawler.model.settings import TRACKING_PARAMETERS
from crawler.model.whatwg import PARSER, encoded

_href = PARSER.href
_joined = PARSER.join
_blake2b = hashlib.blake2b
_unhashed = _blake2b(digest_size=8).copy  # a copy is cheaper than a new object
_integer = struct.Struct(">q").unpack

_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_HEX = "0123456789abcdefABCDEF"
_ESCAPES = {
    f"%{high}{low}": plain if (plain := chr(int(high + low, 16))) in _UNRESERVED else f"%{high}{low}".upper()
    for high in _HEX
    for low in _HEX
}
# Either an escape, or a character that is not allowed in a path or query (a lone % among them).
_UNTIDY = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!$&'()*+,;=:@/?]")
_is_tidy = re.compile(r"[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*").fullmatch
_LONGEST_HOST = 300  # more than DNS allows
_MOST_SITES = 20_000  # sites whose parts are remembered; some 400 bytes each


class UrlError(ValueError):
    """Not the URL of a page: it does not parse, or is neither http nor https."""


class Link(NamedTuple):
    """One link of a page, resolved. `hash` is `hash64(key)`."""

    key: str
    wire: str
    domain: str
    hash: int


# -- from a serialised URL to key, wire and domain ----------------------------------------------------------


class _Tracking:
    """Tracking parameters, prepared for matching: exact names, and prefixes written with a trailing `*`."""

    __slots__ = ("is_in", "names", "prefixes")

    def __init__(self, patterns: Iterable[str]) -> None:
        patterns = tuple(patterns)
        self.names = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
        self.prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
        # Most queries contain none of them: one search over the whole query shows it.
        words = [*map(re.escape, self.prefixes), *(re.escape(name) + "(?![^=&])" for name in self.names)]
        self.is_in = re.compile(rf"(?:^|&)(?:{'|'.join(words)})" if words else r"(?!)").search


_tracking = lru_cache(maxsize=64)(_Tracking)


def _tidy_one(match: re.Match[str]) -> str:
    text = match[0]
    return _ESCAPES.get(text) or "".join([f"%{byte:02X}" for byte in text.encode()])


def _split(href: str) -> tuple[str, str, str] | None:
    """(host, port with its colon or "", path and query) of a serialised URL; None unless it is http(s).

    Userinfo, fragment, trailing dots and https's default port are gone from the parts.
    """
    if href.startswith("https://"):
        begin = 8
    elif href.startswith("http://"):
        begin = 7
    else:
        return None
    slash = href.index("/", begin)
    host = href[begin:slash]
    rest = href[slash:]
    if "#" in rest:
        rest = rest[: rest.index("#")]
    if "@" in host:
        host = host[host.rindex("@") + 1 :]
    port = ""
    if ":" in host and not host.endswith("]"):
        host, _, digits = host.rpartition(":")
        if digits != "443":
            port = ":" + digits
    if host.endswith("."):
        return _without_dots(host, port, rest)
    return host, port, rest


def _without_dots(host: str, port: str, rest: str) -> tuple[str, str, str]:
    """The parts without trailing dots. The host may be an address in disguise (`0x7f.1..`), so it is parsed again.

    Where the rest does not parse (`..`, `foo.09..`) the host stays as it was: no such name exists.
    """
    bare = host.rstrip(".")
    again = _href(f"https://{bare}/") if bare else None
    return again[8:-1] if again else host, port, rest


def without_www(host: str) -> str:
    """The host without leading `www.`s, as far as something with a dot in it remains."""
    if not host.startswith("www.") or host.endswith("."):
        return host
    start = 0
    while host.startswith("www.", start) and host.find(".", start + 4) > start + 4:
        start += 4
    return host[start:]


def _key_path(rest: str, tracking: _Tracking) -> str:
    """Path and query of the key."""
    if not _is_tidy(rest):
        rest = _UNTIDY.sub(_tidy_one, rest)
    path, mark, query = rest.partition("?")
    if path.endswith("/"):
        path = path.rstrip("/") or "/"
    if mark and (query := _key_query(query, tracking)):
        return f"{path}?{query}"
    return path


def _key_query(query: str, tracking: _Tracking) -> str:
    pieces = query.split("&")
    if tracking.is_in(query):
        names, prefixes = tracking.names, tracking.prefixes
        pieces = [
            piece
            for piece in pieces
            if (name := piece.partition("=")[0]) not in names and not name.startswith(prefixes)
        ]
    if len(pieces) == 1:
        return pieces[0]
    # With a character before all others in the place of the first "=", texts sort by name, then value.
    pieces = [piece.replace("=", "\0", 1) for piece in pieces if piece]
    pieces.sort()
    return "&".join(pieces).replace("\0", "=")


def _parts(href: str, tracking: _Tracking) -> tuple[str, str, str] | None:
    """(key, wire, domain) of a serialised URL; None unless it is http(s)."""
    split = _split(href)
    if split is None:
        return None
    host, port, rest = split
    domain = without_www(host) if host.startswith("www.") else host
    key = f"https://{domain}{port}{_key_path(rest, tracking)}"
    wire = f"https://{host}{port}{rest}"
    return key, key if wire == key else wire, domain


# -- one URL -----------------------------------------------------------------------------------------------


def normalize(url: str, tracking: Sequence[str] = TRACKING_PARAMETERS) -> str:
    """The key of a page. Raises UrlError, and nothing else."""
    href = _href(url)
    parts = _parts(href, _tracking(tuple(tracking))) if href else None
    if parts is None:
        raise UrlError(f"not an http(s) URL: {url[:200]!r}")
    return parts[0]


def wire_of(url: str) -> str:
    """The URL to request for this one. Raises UrlError."""
    href = _href(url)
    split = _split(href) if href else None
    if split is None:
        raise UrlError(f"not an http(s) URL: {url[:200]!r}")
    return "https://" + "".join(split)


def resolve(base: str, href: str) -> str | None:
    """The absolute URL of `href` on a page at `base`; None if that is no http(s) URL."""
    data = encoded(base)
    # Under a base that is no URL, absolute links still have a meaning.
    joined = _joined(data, href) if data and _href(base) else _href(href)
    return joined if joined and joined.startswith(("https://", "http://")) else None


def authority_of(wire: str) -> str:
    """`host:port`, or `host` alone for the default port, of a key or wire URL."""
    end = wire.find("/", 8)
    return wire[8:end] if end > 0 else wire[8:]


def host_of(wire: str) -> str:
    """The host of a wire URL (or key), without port; robots.txt and certificates are per host."""
    authority = authority_of(wire)
    return authority if ":" not in authority or authority.endswith("]") else authority[: authority.rindex(":")]


def domain_of(key: str) -> str:
    """The domain of a key or wire URL: its host without `www.`; pacing, budgets and classes are per domain."""
    return without_www(host_of(key))


def hash64(text: str, probe: int = 0) -> int:
    """A signed 64-bit hash of a text, the same on every machine (SQLite's integers are signed).

    `probe` gives further, unrelated hashes of the same text, for two texts with the same hash.
    """
    data = text.encode("utf-8", "surrogatepass")
    if probe:
        digest = _blake2b(data, digest_size=8, salt=probe.to_bytes(8, "big")).digest()
    else:
        hashing = _unhashed()
        hashing.update(data)
        digest = hashing.digest()
    return _integer(digest)[0]  # type: ignore[no-any-return]


# -- the links of pages ------------------------------------------------------------------------------------

_ABSOLUTE = ("https://", "http://")
# An href that begins with one of these is no path but `//host`, as browsers read it.
_NOT_A_PATH = ("//", "/\\", "/\t", "/\n", "/\r")
_DOTTED = ("../", "./")
_PLAIN_START = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~%")
_new_tuple = tuple.__new__

# A path that parsing and normalising do not change, except for a slash at its end. No segment begins with a dot.
_is_plain = re.compile(r"(?:/[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*)*/?").fullmatch

Address = str | tuple[str, str]  # the meaning of an href on any page: a URL, or (base, href)


class Base:
    """The base URL of a page's hrefs. Under a base that is no URL only absolute hrefs have a meaning.

    Nearly every href can be made absolute by putting the base's origin (`/path`) or directory (`path`) in front.
    Only the few others (`//host`, `?query`, `#fragment`, an empty one, one with a colon) need WHATWG's rules, and
    their meaning differs under every base. `./` and `../` at the beginning are resolved here: documentation is full of
    them, the same page gets the same address from every directory, and most such addresses need no parsing.
    """

    __slots__ = ("_directory", "_origin", "_whole")

    def __init__(self, url: str) -> None:
        href = _href(url) if url else None
        if href is None or not href.startswith(_ABSOLUTE):
            self._whole = self._origin = self._directory = ""
            return
        self._whole = whole = href.partition("#")[0]
        path = whole.partition("?")[0]
        self._origin = whole[: whole.index("/", 8)]
        self._directory = path[: path.rindex("/") + 1]

    @property
    def parts(self) -> tuple[str, str, str]:
        """What is put in front of hrefs: its origin, its directory; and the whole of it. Empty if it is no URL."""
        return self._origin, self._directory, self._whole

    def addresses(self, hrefs: Iterable[str]) -> list[Address]:
        """One address for each href. Cheap: the same link on two pages gets the same address."""
        origin, directory, whole = self._origin, self._directory, self._whole
        if not whole:
            return [href if href.startswith(_ABSOLUTE) else ("", href) for href in hrefs]
        found: list[Address] = []
        add = found.append
        for href in hrefs:
            if href.startswith("/") and not href.startswith(_NOT_A_PATH):
                add(origin + href)
            elif href.startswith(_ABSOLUTE):
                add(href)
            elif href and href[0] in _PLAIN_START and ":" not in href:
                add(directory + href if href[0] != "." else self._below(href))
            else:
                add((whole, href))
        return found

    def _below(self, href: str) -> str:
        """The address of a path that may begin with `./` or `../`, without those. At the root, `../` stays there."""
        directory, end, at = self._directory, len(self._directory), 0
        while href.startswith(_DOTTED, at):  # by places: a copy for each of ten thousand `../` would be quadratic
            if href[at + 1] == ".":
                at += 3
                if end - 1 > len(self._origin):
                    end = directory.rindex("/", 0, end - 1) + 1
            else:
                at += 2
        return directory[:end] + href[at:]


def _made(site: tuple[str, str, str], path: str, rest: str, longest: int, address: str = "", hash_: int = 0) -> Link:
    """The Link of a page on a site (see `LinkResolver._site`), by the path of its key and what is asked for there.

    Where the key is the address itself, `hash_` is its hash. A key over `longest` is cut; a wire URL over it that has a
    shorter key (most of it is tracking parameters, say) is the key.
    """
    domain, key, wire = site
    text = key + path
    if len(text) > longest:
        text = cut_key(text, hash64(text))
        return Link(text, text, cut_domain(domain, hash64(domain)), hash64(text))
    if len(wire) + len(rest) > longest:
        wire, rest = key, path
    if text == address:
        text = address  # one text in memory, not two
    else:
        hash_ = hash64(text)
    return _new_tuple(Link, (text, text if path == rest and key is wire else wire + rest, domain, hash_))


_RESOLVING = 1  # goes up when an address may lead elsewhere than it did: a repaired parser, another rule for keys


class LinkResolver:
    """Addresses → Links: the page that is meant, under one set of tracking parameters and one longest key."""

    def __init__(self, tracking: Sequence[str] = TRACKING_PARAMETERS, longest: int = LONGEST_KEY) -> None:
        self._tracking = _Tracking(tracking)
        self.longest = longest
        self.rules = (_RESOLVING, longest, *tracking)  # all that decides where an address leads
        self.sites: dict[str, tuple[str, str, str]] = {}  # `https://host:port` → what `_site` says of it

    def link(self, base: str, href: str) -> Link | None:
        """The link of `href` on a page at `base`; None if it leads to no page."""
        (address,) = Base(base).addresses((href,))
        return self.link_to(address)

    def link_to(self, address: Address) -> Link | None:
        """The page at an address; None if there can be none."""
        if isinstance(address, str):
            return self.link_at(address, hash64(address))
        base, href = address
        return self._link(_joined(base.encode(), href) if base else _href(href))

    def link_at(self, address: str, hash_: int) -> Link | None:
        """The page at an absolute address whose hash is known; mostly it is the hash of the key, too."""
        return self._plain_link(address, hash_) or self._link(_href(address))

    def _plain_link(self, address: str, hash_: int) -> Link | None:
        """The Link of a plain path on a site that was parsed before: ada would not change it. None for any other."""
        slash = address.find("/", 8)
        site = self.sites.get(address[:slash])
        if site is None or not _is_plain(address, slash):
            return None
        rest = address[slash:]
        path = rest[:-1] if rest.endswith("/") and rest != "/" else rest
        return _made(site, path, rest, self.longest, address, hash_)

    def _link(self, href: str | None) -> Link | None:
        """The Link of a serialised URL. The parts that depend on the site alone are computed once per site."""
        if href is None or not href.startswith(_ABSOLUTE):
            return None
        slash = href.index("/", 8)
        site = href[:slash]
        rest = href[slash:]
        if "#" in rest:
            rest = rest[: rest.index("#")]
        return _made(self.sites.get(site) or self._site(site), _key_path(rest, self._tracking), rest, self.longest)

    def _site(self, site: str) -> tuple[str, str, str]:
        """(domain, beginning of the keys, beginning of the wire URLs) of `https://host:port`."""
        host, port, _ = _split(site + "/") or (site, "", "")
        domain = without_www(host)
        key, wire = f"https://{domain}{port}", f"https://{host}{port}"
        found = domain, key, key if wire == key else wire
        if len(site) <= _LONGEST_HOST:
            if len(self.sites) >= _MOST_SITES:
                self.sites.clear()
            self.sites[site] = found
        return found


__all__ = [
    "Address",
    "Base",
    "Link",
    "LinkResolver",
    "UrlError",
    "authority_of",
    "domain_of",
    "hash64",
    "host_of",
    "normalize",
    "resolve",
    "wire_of",
    "without_www",
]
