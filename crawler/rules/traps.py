"""PURE. Crawler traps: URLs that a site generates without end.

There are two kinds of limits. A URL with a suspicious *shape* (too long, too deep, one segment many times) is a trap
by itself. Other URLs are suspicious only together: one path under endless queries, one form of path with endless
numbers. Such similar URLs are a *family*, and a family has a visit limit per run; pages beyond the limit are recorded
with the family's error, not dropped. The scheduler counts and closes families.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

from crawler.model.page_claims import longest_key, whole_length
from crawler.model.settings import TrapSettings
from crawler.model.shown_text import counted, cut

# A segment that is only a number, a date or an id, with at most a short word before it and a file ending.
_NUMBERED = r"(?:[A-Za-z]{1,16}[-_.=:]?)?\d+(?:[-_.:,T]\d+)*"
_HEX_ID = r"(?=[^/;]*\d)[0-9A-Fa-f]{8,}(?:-[0-9A-Fa-f]{4,}){0,4}"
_TOKEN = r"(?=[^/;]*\d)(?=[^/;]*[A-Z])(?=[^/;]*[a-z])[A-Za-z0-9_~-]{20,}"
_BRACKETED = r"\([A-Za-z]\([^/()]*\)\)"
_VARIABLE = re.compile(
    rf"(?<=/)(?:{_HEX_ID}|(?P<numbered>{_NUMBERED})|{_TOKEN}|{_BRACKETED})(?P<end>\.[A-Za-z0-9]{{1,5}})?(?=[/;]|$)"
)
_PARAMETER = re.compile(r";([A-Za-z_]{1,24})=[^/;]*")
_SUSPECT = re.compile(r"[0-9;(]")
_DIGITS = re.compile(r"\d+")


class Family(NamedTuple):
    """Similar URLs: their common name, the visits allowed in a run, and the error of the pages beyond."""

    name: str
    limit: int
    error: str


def shape_error(key: str, traps: TrapSettings) -> str | None:
    """The reason why this key alone is a trap (slug and words), or None."""
    length = whole_length(key)  # of a key that was too long to be stored
    if length is not None or (traps.max_url_length and len(key) > traps.max_url_length):
        longest = longest_key(traps.max_url_length)
        return f"trap-url-length: the URL has {length or len(key):,} characters, more than {longest:,}"
    most = key.count("/") - 2  # segments: those of "https://" are none, those of a query count here
    if (most <= traps.max_path_depth or not traps.max_path_depth) and (
        most <= traps.max_path_repeats or not traps.max_path_repeats
    ):
        return None  # as nearly every key
    path = _path(key)
    if path == "/":
        return None
    segments = path.split("/")[1:]
    if traps.max_path_depth and len(segments) > traps.max_path_depth:
        return f"trap-path-depth: the path has {len(segments)} segments, more than {traps.max_path_depth}"
    limit = traps.max_path_repeats
    if limit and len(segments) - len(set(segments)) >= limit:
        segment, count = Counter(segments).most_common(1)[0]
        if count > limit:
            return f"trap-path-repeats: {cut(segment, 120)!r} is in the path {count} times, more than {limit}"
    return None


def family_of(key: str, traps: TrapSettings) -> Family | None:
    """The family of similar URLs that a key belongs to, or None.

    A key with a query belongs to its path; one without to the form of its path, if that has numbers or ids.
    """
    head, mark, _ = key.partition("?")
    if mark:
        limit = traps.max_query_variants
        if not limit:
            return None
        name = head[8:]
        error = f"trap-query-variants: {counted(limit, 'visit')} of {cut(name, 120)} under other queries in this run"
        return Family(name + "?*", limit, error)
    limit = traps.max_similar_paths
    slash = key.find("/", 8)
    if not limit or not _SUSPECT.search(key, slash):
        return None
    path = key[slash:]
    form = _VARIABLE.sub(_blank, _PARAMETER.sub(r";\1=#", path))
    if form == path:
        return None
    name = key[8:slash] + form
    error = f"trap-similar-paths: {counted(limit, 'visit')} of the form {cut(name, 120)} in this run"
    return Family(name, limit, error)


def _blank(match: re.Match[str]) -> str:
    numbered, end = match["numbered"], match["end"] or ""
    return (_DIGITS.sub("#", numbered) if numbered else "#") + end


def _path(key: str) -> str:
    return key[key.find("/", 8) :].partition("?")[0]


__all__ = ["Family", "family_of", "shape_error"]
