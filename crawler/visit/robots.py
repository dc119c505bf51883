"""PURE. robots.txt by RFC 9309: text in, answers out. No clock, no network.

Why this is not protego, which does nearly all of it: it lets an unknown line end a group of user agents and
compares the whole value of a `User-agent` line (`foo bar` is not `foo` to it), where RFC 9309 §2.2.1 and the
recorded cases of google/robotstxt say otherwise; it cannot name the line that decides, which `explain` shows; and
it makes a regular expression of each path, where a hostile file can choose one that backtracks for minutes.
Matching here goes piece by piece between the wildcards, each found once from the left, so its time is bounded.
A test compares both on every recorded case.

Reading:
- a group is the agents named by `User-agent` lines up to the first rule, and its rules; unknown lines, `Sitemap`
  and `Crawl-delay` end no group (§2.2.4: other records must not interfere); groups of one agent are one group;
- a product token is matched whole, whatever the case; `*` counts only where no group names the agent;
- the longest path that matches decides, `Allow` wins a tie; `*` and a final `$` are the only special characters;
- both sides are brought to one percent-encoding before they are compared (§2.2.2);
- `Crawl-delay` is not in the RFC: it holds for the agents named so far in its group; the longest one counts.

Time and memory grow with the file's length and no faster: the rules of a group are kept once, however many agents it
names, and with `agent` given, only the groups that concern that agent are kept.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from crawler.model.records import RobotsResult

MAX_BYTES = 500 * 1024  # the rest of a longer file is not read (§2.5)
FRESH_SECONDS = 24 * 3600  # §2.4
LONGEST_DELAY = 4_000_000.0  # seconds; a longer Crawl-delay is read as this one, whose milliseconds fit 32 bits

_RULES = {
    "allow": True,
    "disallow": False,
    "dissallow": False,
    "dissalow": False,
    "disalow": False,
    "diasllow": False,
    "disallaw": False,
}
_AGENT = {"user-agent", "useragent", "user agent"}
_MOST_SITEMAPS = 500  # that are kept; a sitemap can name more of them
_LONGEST_SITEMAP = 2048  # characters of its address
_DELAY = {"crawl-delay", "crawldelay", "crawl delay"}
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_LINE = re.compile(r"[^\r\n]+")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]*)?|\.[0-9]+")
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})|(%|[^A-Za-z0-9\-._~:/?#\[\]@!&'()+,;=%]+)")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_PATH = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#;]*")


class Verdict(StrEnum):
    """The meaning of a status code of /robots.txt (§2.3.1)."""

    PARSE = "parse"
    ALLOW_ALL = "allow-all"
    DEFER = "defer"


def verdict_of_status(status: int) -> Verdict:
    """2xx is read; 4xx means there is none; temporary trouble (429, 5xx, a redirect to nowhere) is retried later."""
    if 200 <= status < 300:
        return Verdict.PARSE
    if 400 <= status < 500 and status != 429:
        return Verdict.ALLOW_ALL
    return Verdict.DEFER


@dataclass(frozen=True, slots=True)
class Rule:
    """One `Allow` or `Disallow` line. `pieces` is its path between the wildcards, in normal percent-encoding."""

    is_allow: bool
    line: str
    length: int
    pieces: tuple[str, ...]
    is_anchored: bool

    def matches(self, path: str) -> bool:
        first = self.pieces[0]
        if not path.startswith(first):
            return False
        place = len(first)
        if len(self.pieces) == 1:
            return not self.is_anchored or place == len(path)
        for piece in self.pieces[1:-1]:
            found = path.find(piece, place)
            if found < 0:
                return False
            place = found + len(piece)
        last = self.pieces[-1]
        if self.is_anchored:
            return len(path) - len(last) >= place and path.endswith(last)
        return path.find(last, place) >= 0


class _Group:
    """The lines that follow some `User-agent` lines. Every agent named in those lines refers to the same group."""

    __slots__ = ("delays", "rules")

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.delays: list[float] = []


_Agent = list[tuple[_Group, int]]  # the groups that name an agent, each with the number of delays before its name


class Rules:
    """One parsed robots.txt."""

    __slots__ = ("_agents", "count", "sitemaps")

    def __init__(self, agents: dict[str, _Agent], sitemaps: Iterable[str] = ()) -> None:
        self._agents = agents
        self.sitemaps = tuple(sitemaps)  # as written, each once: they belong to no group
        groups = {id(group): group for agent in agents.values() for group, _ in agent}
        self.count = sum(len(group.rules) for group in groups.values())  # rules that are kept, each once

    def allows(self, url: str, agent: str) -> bool:
        """May `agent` (a product token) request this URL? /robots.txt itself may always be asked for."""
        deciding = self._deciding(url, agent)
        return deciding is None or deciding.is_allow

    def rule_for(self, url: str, agent: str) -> str | None:
        """The line that decides about this URL, or None where none does (and so it is allowed)."""
        deciding = self._deciding(url, agent)
        return None if deciding is None else deciding.line

    def crawl_delay(self, agent: str) -> float | None:
        """Seconds between requests that the site asks of `agent`."""
        delays = [max(group.delays[before:], default=None) for group, before in self._agent(agent)]
        return max((delay for delay in delays if delay is not None), default=None)

    def _agent(self, agent: str) -> _Agent:
        return self._agents.get(agent.lower()) or self._agents.get("*") or []

    def _deciding(self, url: str, agent: str) -> Rule | None:
        groups = [group for group, _ in self._agent(agent) if group.rules]
        if not groups:
            return None
        path = path_of(url)
        if path == "/robots.txt":
            return None
        best: Rule | None = None
        for group in groups:
            for rule in group.rules:
                is_better = best is None or rule.length > best.length or (rule.length == best.length and rule.is_allow)
                if is_better and rule.matches(path):
                    best = rule
        return best


ALLOW_ALL = Rules({})


def parse(body: bytes | str, agent: str | None = None) -> Rules:
    """The rules of a robots.txt, whatever it holds: no input is an error.

    With `agent`, only the groups of that agent and of `*` are kept. Without, those of all agents, for people.
    """
    return _parse(text_of(body), agent)


@lru_cache(maxsize=1)  # a file that was just read is asked for its delay, by the visit, and by the cache
def _parse(text: str, agent: str | None) -> Rules:
    wanted = None if agent is None else {agent.lower(), "*"}
    agents: dict[str, _Agent] = {}
    named: set[str] = set()  # the agents of the group that is being read, as far as they are wanted
    group = _Group()
    has_rules = False
    sitemaps: dict[str, None] = {}
    for line in _LINE.finditer(text):
        split = _split(line[0])
        if split is None:
            continue
        name, value = split
        if name in _AGENT:
            if has_rules:
                named, group, has_rules = set(), _Group(), False
            token = _token_of(value)
            if token is not None and token not in named and (wanted is None or token in wanted):
                named.add(token)
                agents.setdefault(token, []).append((group, len(group.delays)))
        elif name in _DELAY:
            delay = _delay_of(value)
            if delay is not None and named:
                group.delays.append(delay)
        elif name in _RULES:
            has_rules = True
            if value and named:  # an empty path says nothing
                group.rules.extend(_rules_of(_RULES[name], value, line[0]))
        elif name == "sitemap" and 0 < len(value) <= _LONGEST_SITEMAP and len(sitemaps) < _MOST_SITEMAPS:
            sitemaps[value] = None
    return Rules(agents, sitemaps)


def sitemaps_of(body: bytes | str) -> tuple[str, ...]:
    """The addresses of its `Sitemap` lines, wherever they stand."""
    return parse(body).sitemaps


def text_of(body: bytes | str) -> str:
    """The part of a robots.txt that counts, as text: without BOM, up to 500 KiB and the last whole line of those.

    What is not UTF-8 is read as Latin-1, so that storing the text and parsing it again changes nothing.
    """
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    if len(raw) > MAX_BYTES:
        raw = raw[:MAX_BYTES]
        cut = max(raw.rfind(b"\n"), raw.rfind(b"\r"))
        raw = raw[: cut + 1] if cut >= 0 else raw
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def path_of(url: str) -> str:
    """Path and query of a URL in normal percent-encoding, which the rules are matched against."""
    place = _PATH.match(url)
    path = url[place.end() :] if place else url
    path = path.partition("#")[0]
    if not path.startswith("/"):
        path = "/" + path
    return _normal(path)


def _normal(text: str) -> str:
    """One spelling for one path: unreserved characters plain, all else that is no delimiter as %XX."""
    return _ESCAPE.sub(_spell, text.encode("utf-8", "surrogatepass")).decode("ascii")


def _spell(match: re.Match[bytes]) -> bytes:
    code = match[1]
    if code is None:
        return b"%" + match[2].hex("%").upper().encode()
    value = int(code, 16)
    return bytes((value,)) if value in _UNRESERVED else b"%" + code.upper()


def _split(line: str) -> tuple[str, str] | None:
    """Name and value of a line, or None. The colon may be missing between two words: people forget it."""
    text = line.partition("#")[0].strip(" \t\x00\x0b\x0c")
    name, colon, value = text.partition(":")
    if colon:
        return name.strip().lower(), value.strip(" \t")
    words = text.split()
    return (words[0].lower(), words[1]) if len(words) == 2 else None


def _token_of(value: str) -> str | None:
    if value == "*" or value[:2] in ("* ", "*\t"):
        return "*"
    match = _TOKEN.match(value)
    return match[0].lower() if match else None


def _delay_of(value: str) -> float | None:
    match = _NUMBER.match(value)
    return min(float(match[0]), LONGEST_DELAY) if match else None


def _rules_of(is_allow: bool, value: str, line: str) -> list[Rule]:
    """The rule of a line. Permission for an index page is permission for its folder, as large crawlers read it."""
    rules = [_rule_of(is_allow, value, line)]
    folder, slash, page = value.rpartition("/")
    if is_allow and slash and page.startswith("index.htm"):
        rules.append(_rule_of(True, f"{folder}/$", line))
    return rules


def _rule_of(is_allow: bool, value: str, line: str) -> Rule:
    is_anchored = value.endswith("$")
    pieces = [_normal(piece) for piece in value[: -1 if is_anchored else None].split("*")]
    if not is_anchored and len(pieces) > 1:
        while len(pieces) > 2 and not pieces[-1]:
            pieces.pop()
    length = len(value.encode("utf-8", "surrogatepass"))
    return Rule(is_allow, line.strip()[:200], length, tuple(pieces), is_anchored)


# -- what is known of a host ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Policy:
    """The permissions of a host's robots.txt. `error`: it could not be read, and its pages get this error."""

    rules: Rules = ALLOW_ALL
    crawl_delay: float | None = None
    error: str | None = None

    @property
    def crawl_delay_ms(self) -> int:
        """The delay in whole milliseconds, never a fraction shorter than asked for."""
        return 0 if self.crawl_delay is None else math.ceil(min(self.crawl_delay, LONGEST_DELAY) * 1000)


def policy_of(result: RobotsResult, agent: str | None = None) -> Policy:
    """The policy of a recorded answer, for one agent or for all."""
    if result.outcome == "parsed":
        return Policy(parse(result.body or "", agent), result.crawl_delay)
    if result.outcome == "unreachable":
        return Policy(error=result.error or "robots-unreachable: robots.txt could not be read")
    return Policy()
