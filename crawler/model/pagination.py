"""PURE. Lists over several pages: which link of a page leads to the next one, by evidence in the addresses.

Evidence is a number that a word for "page" names, in the query (`page=2`, `start=50`) or in the path (`/page/2`,
`/page-2`, `/p2`). A bare number is none: `/article/1022` is an article, `?month=2024-07` a month,
`?offset=20240501120000` a moment (no page has over seven digits), and a cursor is opaque. What a site itself marks with
`rel=next` counts before all of this.

    number_in(key)                  the list that an address belongs to, and its number there
    next_pages(key, links, rel)     the next page where it is linked
    label_next(key, base, numbered, …)  the same, from the raw hrefs of a page
    page_beyond(key, links)         the page after the last one that is known, of a list with two members or more

Pages of a list agree in everything but the number. A list's first page often has no number at all, and often no other
parameter either: then its members are those that the path agrees with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from crawler.model.urls import Base, LinkResolver, domain_of

_PAGE_WORDS = (
    *("page", "paged", "pg", "p", "pn", "pp", "pagina", "pagenum", "page_num", "pagenumber", "page_number", "pageno"),
    *("page_no", "currentpage", "current_page", "seite", "strana", "sayfa", "paginanr", "pageindex", "page_index"),
)
_OFFSET_WORDS = ("start", "offset", "from", "skip", "startindex", "start_index", "firstresult", "st")
# A link without any of them is not looked at; digits at the end of a name do not count there.
LIST_WORDS = frozenset((*_PAGE_WORDS, *_OFFSET_WORDS, "pagen_"))
_QUERY = re.compile("|".join((*_PAGE_WORDS, *_OFFSET_WORDS, r"pagen_\d{1,3}")), re.IGNORECASE)
_OFFSET = re.compile("|".join(_OFFSET_WORDS), re.IGNORECASE)
_PATH = re.compile(r"(/(?:page|seite|pagina|strana|pg)[/_-]?|/p-?)(\d{1,7})((?:\.html?|\.php)?/?)\Z", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,7}\Z")
# A path that parsing and normalising do not change, except for a slash at its end.
_PLAIN = re.compile(r"(?:[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*)(?:/[A-Za-z0-9\-_~][A-Za-z0-9\-._~]*)*/?")
_LONGEST_PLAIN = 1000  # characters: no key is cut below that
_LINKS = LinkResolver()


class Member(NamedTuple):
    """One page of a list. `form` has `{n}` in the place of the number.

    `path` and `others` are what the pages of a list agree in. A number in the query: the path with the parameter's
    name, and the other parameters. A number in the path: nothing, and the two parts before the number.
    """

    form: str
    number: int
    is_offset: bool
    path: str
    others: tuple[str, ...]

    @property
    def is_query(self) -> bool:
        return bool(self.path)


def number_in(key: str) -> Member | None:
    """The list and the number that an address names; None: it names none, or it may be a list's first page."""
    path, _, query = key.partition("?")
    if query:
        parts = query.split("&")
        for place, part in enumerate(parts):
            name, _, value = part.partition("=")
            if _QUERY.fullmatch(name) and _NUMBER.match(value):
                others = tuple(sorted(_bare(each) for each in (*parts[:place], *parts[place + 1 :])))
                form = f"{path}?{'&'.join((*parts[:place], name + '={n}', *parts[place + 1 :]))}"
                return Member(form, int(value), _OFFSET.fullmatch(name) is not None, f"{path}?{name.lower()}", others)
    found = _PATH.search(path)
    if found is None:
        return None
    form = f"{path[: found.start(2)]}{{n}}{path[found.end(2) :]}{'?' if query else ''}{query}"
    return Member(form, int(found[2]), False, "", (path[: found.start(1)], found[1].lower()))


def _bare(parameter: str) -> str:
    return parameter.removesuffix("=")


def next_pages(key: str, links: Iterable[str], rel_next: Sequence[str] = ()) -> list[str]:
    """The links of the page `key` that lead to the next page of its list; none where there is no evidence."""
    marked = [link for link in dict.fromkeys(rel_next) if link != key]
    if marked:
        return marked[:1]
    here = number_in(key)
    members = [(link, member) for link in dict.fromkeys(links) if (member := number_in(link)) and link != key]
    if here is not None:
        same = [(link, member.number) for link, member in members if _is_same(here, member)]
        wanted = _following(here.number, [number for _, number in same], here.is_offset)
        return [link for link, number in same if number == wanted][:1]
    return _after_first(key, members)


def label_next(key: str, base: str, numbered: Sequence[str], rel_next: Sequence[str]) -> tuple[str, str] | None:
    """(wire URL, evidence) of the next page of the list that the page `key` belongs to; None: it is not linked.

    `numbered` are those raw hrefs of a page that may be pages of a list, `base` its base, as a parser wrote it.
    """
    marked = _resolved(key, base, rel_next) if rel_next else None
    if marked:
        found = next_pages(key, (), list(marked))
        return (marked[found[0]], "rel") if found else None
    links = _resolved(key, base, numbered) if numbered else None
    if not links:
        return None
    found = next_pages(key, links)
    return (links[found[0]], "address") if found else None


def _resolved(key: str, base: str, hrefs: Sequence[str]) -> dict[str, str]:
    """Key → wire URL of these hrefs, as far as they lead to the domain of the page `key`."""
    links: dict[str, str] = {}
    others: list[str] = []
    for href in hrefs:
        found = _below(key, base, href)
        if found is None:
            others.append(href)
        else:
            links.setdefault(*found)
    if others:
        domain = domain_of(key)
        for address in Base(base).addresses(others):
            link = _LINKS.link_to(address)
            if link is not None and link.domain == domain:
                links.setdefault(link.key, link.wire)
    return links


def _below(key: str, base: str, href: str) -> tuple[str, str] | None:
    """(key, wire URL) of an href that names a file beside or below the base, on this page's own site; None: of others.

    Most marked pages are such files, and this costs a third of resolving them by the URL standard.
    """
    site = key[: key.find("/", 8) + 1]
    if base.startswith(site):
        begin = len(site)
    elif base.startswith(f"https://www.{site[8:]}"):
        begin = len(site) + 4
    else:
        return None
    path = base[begin : base.rfind("/") + 1] + href
    if not href or not _PLAIN.fullmatch(path) or len(path) > _LONGEST_PLAIN:
        return None
    return site + path.removesuffix("/"), base[:begin] + path


def page_beyond(key: str, links: Iterable[str]) -> str | None:
    """The address after the last known page of a list, if `key` is that page and its list has two members or more."""
    here = number_in(key)
    if here is None:
        return None
    known = {here.number}
    has_first = False
    for link in links:
        member = number_in(link)
        if member is not None and _is_same(here, member):
            known.add(member.number)
        elif member is None and _is_first(here, link):
            has_first = True
    if here.is_offset and has_first:
        known.add(0)
    if here.number < max(known) or len(known) + (has_first and not here.is_offset) < 2:
        return None
    step = _step(sorted(known)) if here.is_offset else 1
    if not step or len(str(here.number + step)) > 7:
        return None
    return here.form.replace("{n}", str(here.number + step))


def _is_same(here: Member, other: Member) -> bool:
    """Are these pages of one list? In a path form the query plays no part."""
    return here.path == other.path and here.others == other.others


def _is_first(here: Member, link: str) -> bool:
    """Can this address, which has no number, be the first page of the list?"""
    path, _, query = link.partition("?")
    if not here.is_query:
        return path.rstrip("/") == here.others[0].rstrip("/")
    rest = tuple(sorted(_bare(part) for part in query.split("&") if part))
    return path == here.path.partition("?")[0] and rest == here.others


def _following(number: int, known: list[int], is_offset: bool) -> int | None:
    """The number of the page that follows; of offsets the least one above."""
    if not is_offset:
        return number + 1
    return min((each for each in known if each > number), default=None)


def _after_first(key: str, members: list[tuple[str, Member]]) -> list[str]:
    """The second page of a list whose first one has no number."""
    path, _, query = key.partition("?")
    own = {_bare(part) for part in query.split("&") if part}
    lists: dict[tuple[str, tuple[str, ...], bool], list[tuple[int, str]]] = {}
    for link, member in members:
        if member.is_query:
            fits = member.path.partition("?")[0] == path
        else:
            fits = member.others[0].rstrip("/") == path.rstrip("/")
        if fits:
            lists.setdefault((member.path, member.others, member.is_offset), []).append((member.number, link))
    # The list that shares most parameters with the page, then the longest one.
    ranked = sorted(lists.items(), key=lambda item: (-len(own.intersection(item[0][1])), -len(item[1])))
    for (name, _, is_offset), found in ranked:
        second = _second_offset(sorted(found)) if is_offset else _second_page(sorted(found), is_query=bool(name))
        if second is not None:
            return [second]
    return []


def _second_offset(found: list[tuple[int, str]]) -> str | None:
    """The least offset above zero, if the next one is twice as large, or there is no other."""
    if found[0][0] == 0:
        found = found[1:]
    return found[0][1] if found and (len(found) == 1 or found[1][0] == 2 * found[0][0]) else None


def _second_page(found: list[tuple[int, str]], *, is_query: bool) -> str | None:
    """Page 2; in a query also page 1, which may count from zero. In a path, page 1 is the first page itself."""
    by_number = dict(found)
    return by_number.get(1, by_number.get(2)) if is_query else by_number.get(2)


def _step(offsets: list[int]) -> int:
    """The distance between the offsets of neighbouring pages; 0: they do not agree."""
    steps = {after - before for before, after in pairwise(offsets)}
    return min(steps) if steps and all(step % min(steps) == 0 for step in steps) else 0
