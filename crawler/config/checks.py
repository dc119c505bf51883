"""PURE. Checks of single settings: each turns a TOML value into ours, or says what is allowed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Any

from crawler.engine.place import place_of
from crawler.model.urls import UrlError, normalize, wire_of
from crawler.rules.patterns import PatternError, key_pattern

Check = Callable[[Any], Any]

U32 = 2**32 - 1
U63 = 2**63 - 1

_NAME = re.compile(r"[A-Za-z0-9-]+")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]*")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_DOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_EMAIL = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+"
)
_NOT_IN_A_HOST = re.compile(r"[\s/\\:@?#\[\]%*<>^|]")
_TAG = re.compile(r"[\w-]{1,40}")
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_PROBE = re.compile(r"https://[A-Za-z0-9._-]+(?::\d{1,5})?/?|(?:[A-Za-z0-9._-]+|\[[0-9a-fA-F:.]+\]):\d{1,5}")
_MODE = re.compile(r"0?6[04][04]")
_FIELD = re.compile(r"[a-z][a-z0-9_-]*")
_LONGEST_NOTE = 500
_LONGEST_NAME = 40
_MOST_TAGS = 20
_MOST_PATTERNS = 100
_EXPRESSION = "'^https://example\\.com/blog/'"
_PARAMETER = re.compile(r"[^\s&=#*]*\*?")


class Bad(Exception):
    """A value that is not allowed. The text says what is."""


def whole_number(low: int, high: int, unit: str = "") -> Check:
    """A whole number in a range. True and 3.0 are none."""
    if high >= U32:
        allowed = f"a whole number{unit}, {low:,} or more"
    else:
        allowed = f"a whole number{unit} from {low:,} to {high:,}"

    def check(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise Bad(allowed)
        return value

    return check


_LEAST_LEASE, _LONGEST_LEASE = 5, 600  # seconds
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_DURATION = re.compile(r"(\d{1,9})\s*([smhd])(?:\s*(\d{1,9})\s*([smh]))?")
_SIZES = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SIZE = re.compile(r"(\d{1,15})\s*([a-z]{0,3})", re.I)


def seconds(value: Any) -> int:
    """A duration in words."""
    found = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None:
        raise Bad('a duration in quotes: a number and s, m, h or d, like "6h", "90m" or "1h 30m"')
    more = int(found[3]) * _UNITS[found[4]] if found[3] else 0
    total = int(found[1]) * _UNITS[found[2]] + more
    if total == 0:
        raise Bad('a duration of at least a second, like "6h"; leave the key out for no limit')
    return total


def seconds_or_none(value: Any) -> int:
    """A duration in words, or 0 for none."""
    return 0 if value == 0 and not isinstance(value, bool) else seconds(value)


def revisit_schedule(value: Any) -> str | int:
    """A word, or a duration."""
    if value in ("always", "adaptive"):
        return str(value)
    try:
        return seconds(value)
    except Bad:
        raise Bad('"always", "adaptive", or a duration like "30d" or "12h"') from None


def failure_words(value: Any) -> tuple[str, ...]:
    """Slugs of failures that count."""
    is_list = isinstance(value, list) and all(isinstance(word, str) and _SLUG.fullmatch(word) for word in value)
    if not is_list:
        raise Bad('a list of error slugs, like ["http-403", "http-5xx", "timeout"]')
    return tuple(dict.fromkeys(value))


def probes(value: Any) -> tuple[str, ...]:
    """Hosts that tell whether the network works."""
    if not isinstance(value, list) or not all(isinstance(text, str) and _PROBE.fullmatch(text) for text in value):
        raise Bad('a list of hosts that always answer, like ["https://example.com/", "192.0.2.1:53"]')
    return tuple(dict.fromkeys(value))


def size_in_bytes(value: Any) -> int:
    """A number of bytes, or a size in words."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= U63:
        return value
    found = _SIZE.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or found[2].lower() not in _SIZES:
        raise Bad('a whole number of bytes, or a size like "500 MB" or "2 GiB"')
    return int(found[1]) * _SIZES[found[2].lower()]


def yes_or_no(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Bad("true or false")
    return value


def file_mode(value: Any) -> str:
    """Permissions of files, in octal digits."""
    if not isinstance(value, str) or not _MODE.fullmatch(value):
        raise Bad('permissions in octal, in quotes: "0600" (you alone), "0640" (your group reads) or "0644" (all read)')
    return value


def one_of(*words: str) -> Check:
    allowed = "one of " + ", ".join(f'"{word}"' for word in words)

    def check(value: Any) -> str:
        if value not in words or not isinstance(value, str):
            raise Bad(allowed)
        return value

    return check


def crawler_name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise Bad("a name of letters, digits and hyphens (a to z, A to Z, 0 to 9, -), not empty")
    return value


def crawler_version(value: Any) -> str:
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise Bad('a version in quotes, like "1.0": letters, digits, dots and hyphens, not empty')
    return value


def contact_url(value: Any) -> str:
    allowed = 'an http or https URL in plain ASCII, like "https://example.com/about-our-crawler", or ""'
    if not isinstance(value, str):
        raise Bad(allowed)
    if value:
        try:
            normalize(value)
        except UrlError:
            raise Bad(allowed) from None
        # It goes into a header as it stands, so it must be able to.
        if not value.startswith(("http://", "https://")) or not _is_header_text(value) or _has_userinfo(value):
            raise Bad(allowed)
    return value


def contact_email(value: Any) -> str:
    if not isinstance(value, str) or (value and not _EMAIL.fullmatch(value)):
        raise Bad('an e-mail address, like "crawler-admin@example.com", or ""')
    return value


def path_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise Bad("a path, not empty; a relative one starts from the config file's folder")
    return value


def tracking_parameters(value: Any) -> tuple[str, ...]:
    allowed = 'a list of parameter names, with * only at the end, like ["utm_*", "fbclid"]'
    if not isinstance(value, list):
        raise Bad(allowed)
    for name in value:
        if not isinstance(name, str) or not name or not _PARAMETER.fullmatch(name):
            raise Bad(allowed)
    return tuple(dict.fromkeys(value))


def note(value: Any) -> str:
    """A curator's note about an entry of a list."""
    if not isinstance(value, str) or len(value) > _LONGEST_NOTE or not value.replace("\n", " ").isprintable():
        raise Bad(f"a note in quotes, of at most {_LONGEST_NOTE} printable characters")
    return value


def tags(value: Any) -> tuple[str, ...]:
    """Words that group entries of the lists."""
    allowed = f'a list of at most {_MOST_TAGS} words of letters, digits, - and _, like ["tea", "to-read"]'
    if not isinstance(value, list) or len(value) > _MOST_TAGS:
        raise Bad(allowed)
    for tag in value:
        if not isinstance(tag, str) or not _TAG.fullmatch(tag):
            raise Bad(allowed)
    return tuple(dict.fromkeys(value))


def rejection_reasons(value: Any) -> tuple[str, ...]:
    """Reasons for a rejection that do not count."""
    from crawler.visit.validation import REASONS  # few configs name one, and it brings all that reads pages

    allowed = f"a list of reasons: {', '.join(sorted(REASONS))}"
    if not isinstance(value, list) or any(not isinstance(each, str) or each not in REASONS for each in value):
        raise Bad(allowed)
    return tuple(dict.fromkeys(value))


def garbage_name(value: Any) -> str:
    """The name of a user's sign of garbage, which is the reason's slug."""
    from crawler.visit.validation import REASONS

    if not isinstance(value, str) or len(value) > _LONGEST_NAME or not _SLUG.fullmatch(value) or value in REASONS:
        raise Bad('a name of small letters, digits and hyphens that is no reason of our own, like "paywall"')
    return value


def garbage_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NOTE:
        raise Bad(f"a text that the page shows, of 1 to {_LONGEST_NOTE} characters")
    return value


def selector(value: Any) -> str:
    """A CSS selector."""
    from crawler.visit.selector_rules import fault  # lxml and parsel, for those alone who write a selector

    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NOTE:
        raise Bad('a CSS selector, like "div.paywall"')
    problem = fault(value)
    if problem is not None:
        raise Bad(f'a CSS selector, like "div.paywall" ({problem})')
    return value


def field_name(value: Any) -> str:
    """The name of a user-defined field."""
    if not isinstance(value, str) or len(value) > _LONGEST_NAME or not _FIELD.fullmatch(value):
        raise Bad(f'a name of lower-case letters, digits, - and _, {_LONGEST_NAME} at the most, like "author"')
    return value


def field_selector(value: Any) -> str:
    """A CSS or XPath selector of a user-defined field."""
    from crawler.visit.page_fields import field_fault

    allowed = 'a CSS selector, like "span.author" or "time::attr(datetime)", or an XPath, like "//article/p[1]"'
    if not isinstance(value, str) or not value.strip() or len(value) > _LONGEST_NOTE:
        raise Bad(allowed)
    problem = field_fault(value)
    if problem is not None:
        raise Bad(f"{allowed} ({problem})")
    return value


def key_patterns(value: Any) -> tuple[str, ...]:
    """A list of regular expressions over keys."""
    allowed = f"a list of at most {_MOST_PATTERNS:,} regular expressions, like {_EXPRESSION}"
    if not isinstance(value, list) or len(value) > _MOST_PATTERNS:
        raise Bad(allowed)
    return tuple(dict.fromkeys(pattern_text(each) for each in value))


def pattern_text(value: Any) -> str:
    """A regular expression over keys."""
    if not isinstance(value, str):
        raise Bad(f"a regular expression in quotes, like {_EXPRESSION}")
    try:
        key_pattern(value)
    except PatternError as problem:
        raise Bad(f"a regular expression of RE2, like {_EXPRESSION} ({problem})") from None
    return value


def rule_name(value: Any) -> str:
    """The name of a page type or a cap."""
    if not isinstance(value, str) or len(value) > _LONGEST_NAME or not _SLUG.fullmatch(value):
        raise Bad('a name of small letters, digits and hyphens, like "issue-list"')
    return value


USUAL_EVENTS = (
    *("run-finished", "run-failed", "limit-reached", "alert-raised", "alert-cleared"),
    *("outage-begun", "outage-over"),
)
_LEAST_SECRET = 16  # characters


def hook_events(value: Any) -> tuple[str, ...]:
    """Events that a hook is told of."""
    if not isinstance(value, list) or not value or any(each not in USUAL_EVENTS for each in value):
        raise Bad(f"a list of events: {', '.join(USUAL_EVENTS)}")
    return tuple(dict.fromkeys(value))


def hook_url(value: Any) -> str:
    """Where a hook is posted to."""
    allowed = 'an http or https URL, like "https://example.com/hooks/crawl"'
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or _has_userinfo(value):
        raise Bad(f"{allowed}, without user name and password")
    if _quietly_key(value) is None or not value.isascii() or not value.isprintable() or " " in value:
        raise Bad(allowed)
    return value


def hook_secret(value: Any) -> str:
    """The key of a hook's signature."""
    if not isinstance(value, str) or len(value) < _LEAST_SECRET or not value.isprintable():
        raise Bad(f"a secret of at least {_LEAST_SECRET} characters, known to you and the receiver")
    return value


def engine_url(value: Any) -> str:
    """The URL of a PostgreSQL database; empty: files and SQLite. It may hold a password, so no mistake shows it."""
    allowed = 'the URL of a PostgreSQL database, like "postgresql://crawl@db.example/terrain"'
    if value == "":
        return ""
    if not isinstance(value, str) or not value.isprintable() or " " in value:
        raise Bad(allowed)
    try:
        place = place_of(value)
    except ValueError as problem:
        raise Bad(f"{allowed} ({problem})") from None
    if not place.database:
        raise Bad(f"{allowed} (it names no database)")
    return value


def lease_seconds(value: Any) -> int:
    """How long a process may be silent. A shorter lease would run out while a machine is merely busy."""
    found = seconds(value)
    if not _LEAST_LEASE <= found <= _LONGEST_LEASE:
        raise Bad(f'a duration from "{_LEAST_LEASE}s" to "{_LONGEST_LEASE // 60}m"')
    return found


def command(value: Any) -> tuple[str, ...]:
    """A local command with its arguments."""
    is_list = isinstance(value, list) and bool(value) and all(isinstance(each, str) and each for each in value)
    if not is_list or not value[0].startswith("/") or any("\0" in each for each in value):
        raise Bad('a command as a list, with its whole path, like ["/usr/sbin/sendmail", "-t"]')
    return tuple(value)


def mail_address(value: Any) -> str:
    if not isinstance(value, str) or not _EMAIL.fullmatch(value):
        raise Bad('an e-mail address, like "crawler-admin@example.com"')
    return value


def hook_name_of(place: str, taken: Iterable[str]) -> str:
    """A name for a hook without one: its host or command, with a number where that is taken. URLs may be secrets."""
    base = (
        re.sub("[^a-z0-9]+", "-", place.partition("://")[2].partition("/")[0].lower() or place.lower()).strip("-")
        or "hook"
    )
    names = [base, *(f"{base}-{number}" for number in range(2, 1000))]
    return next(name for name in names if name not in set(taken))


def part_path(value: Any) -> str:
    """The path of a part of a site, as keys have it, without a slash at its end."""
    allowed = 'a path that begins with a slash, like "/~lab/"'
    if not isinstance(value, str) or not value.startswith("/") or not set("?#\\").isdisjoint(value):
        raise Bad(allowed)
    key = _quietly_key("https://example.com" + value)
    path = (key or "").removeprefix("https://example.com")
    if key is None or len(value) > _LONGEST_NOTE or not path.strip("/"):
        raise Bad(f"{allowed}; leave it out for the whole site")
    return path


def _quietly_key(url: str) -> str | None:
    try:
        return normalize(url, ())
    except UrlError:
        return None


def domain_pattern(value: Any) -> str:
    """A domain, or `*.` and a domain, in lower case and punycode."""
    allowed = 'a domain like "example.com", or "*.example.com" for it and all its subdomains'
    if not isinstance(value, str) or not value:
        raise Bad(allowed)
    star = "*." if value.startswith("*.") else ""
    base = value.removeprefix("*.")
    if "://" in base:
        try:
            suggestion = star + normalize(base)[8:].partition("/")[0].partition(":")[0]
        except UrlError:
            raise Bad(f"{allowed}; no scheme") from None
        raise Bad(f'{allowed}; without scheme and path: "{suggestion}"?')
    if "*" in base:
        raise Bad(f"{allowed}; the * may only stand in front, followed by a dot")
    if ":" in base or "/" in base:
        raise Bad(f"{allowed}; without port and path")
    host = _ascii_host(base)
    if host is None or (star and _is_address(host)):
        raise Bad(allowed)
    return star + host


def _ascii_host(text: str) -> str | None:
    """A host name as keys write it (IDN in punycode), or None."""
    if _NOT_IN_A_HOST.search(text):
        return None
    try:
        host = wire_of(f"https://{text}/")[8:-1]
    except UrlError:
        return None
    if len(host) > 253 or not _DOMAIN.fullmatch(host):
        return None
    if _is_address(host) and host != text:
        return None  # an address in disguise: write it plainly
    return host


def host_pattern(value: str) -> str:
    """The left side of [network.resolve]."""
    if value == "*":
        return value
    try:
        return domain_pattern(value)
    except Bad:
        raise Bad('a host, "*.example.com" for a domain and all its subdomains, or "*" for every host') from None


def endpoint(value: Any) -> str:
    """The right side of [network.resolve]: an address, with or without a port."""
    allowed = 'an IP address and a port, like "127.0.0.1:8443" or "[::1]:8443", or an IP address alone'
    if not isinstance(value, str):
        raise Bad(allowed)
    address, port = value, ""
    if value.startswith("["):
        address, _, port = value[1:].partition("]")
        if port and not port.startswith(":"):
            raise Bad(allowed)
        port = port[1:] or ("" if not port else "-")
    elif value.count(":") == 1:
        address, _, port = value.partition(":")
        port = port or "-"
    try:
        (IPv6Address if value.startswith("[") or ":" in address else IPv4Address)(address)
    except AddressValueError:
        raise Bad(allowed) from None
    if port and not (port.isascii() and port.isdigit() and 1 <= int(port[:6]) <= 65535):
        raise Bad(allowed)
    return value


def seed(value: Any) -> str:
    """A URL to start from, as its wire URL."""
    allowed = 'an https URL, like "https://example.com/"'
    if not isinstance(value, str):
        raise Bad(allowed)
    text = value.strip()
    if text[:5].lower() == "http:":
        suggestion = _quietly_wire("https:" + text[5:])
        raise Bad(f'an https URL: "{suggestion}"?' if suggestion else allowed)
    if text[:6].lower() != "https:":
        suggestion = None if ":" in text.partition("/")[0] or not text else _quietly_wire("https://" + text)
        raise Bad(f'{allowed}: "{suggestion}"?' if suggestion and "." in text.partition("/")[0] else allowed)
    wire = _quietly_wire(text)
    if wire is None or not text[6:].startswith("//"):
        raise Bad(allowed)
    if _has_userinfo(text):
        raise Bad(f'{allowed}, without user name and password: "{wire}"?')
    return wire


def _quietly_wire(url: str) -> str | None:
    try:
        return wire_of(url)
    except UrlError:
        return None


def _is_header_text(text: str) -> bool:
    return text.isascii() and text.isprintable() and not any(character in text for character in " ()\\")


def _has_userinfo(url: str) -> bool:
    return "@" in re.split(r"[/\\?#]", url.partition("//")[2], maxsplit=1)[0]


def _is_address(host: str) -> bool:
    try:
        IPv4Address(host)
    except AddressValueError:
        return False
    return True
