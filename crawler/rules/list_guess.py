"""PURE. Is there a page after the last one of a list, or above the pages of a month? Whether it is tried, and when no
more are.

A list whose last linked page names no next one may go on: sites forget the link. Two of its pages must be linked, and
its last page must be a page. Then the address after it is tried; what comes of that decides whether the one after that
is, too. The first end that applies counts.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import NamedTuple

from crawler.model.list_member import ListMember
from crawler.model.pagination import number_in, page_beyond
from crawler.model.states import PageState, slug_of


class Guess(NamedTuple):
    """The address to try."""

    wire: str


class End(NamedTuple):
    """No more of this list are tried, for this reason."""

    reason: str


def next_guess(
    members: Sequence[ListMember], firsts: Sequence[str], guesses: int, limit: int, missing: Container[int] = ()
) -> Guess | End | None:
    """What to do about a list; None: nothing.

    `members` are its pages with a number (the last ones, if there are many), `firsts` the keys of pages without one
    that name a page of the list as their next. `guesses` have been made in this run. `missing` are the prints of what
    the domain shows for missing pages.
    """
    if not members:
        return None
    last = max(members, key=lambda member: member.number)
    if last.is_guess:
        if last.state == PageState.QUEUED:
            return None  # it is outstanding
        reason = end_of(last, [member for member in members if member is not last], missing)
        if reason is not None:
            return End(reason)
    elif end_of(last, (), missing) is not None:
        return None  # the site's own links lead to the end
    linked = [member.key for member in members if member.is_linked]
    beyond = page_beyond(last.key, [*linked, *firsts])
    if last.has_next or len(linked) + bool(firsts) < 2 or beyond is None:
        return None
    if guesses >= limit:
        return End("limit")
    return Guess(_like(last, beyond))


def next_archive_guess(
    tried: Sequence[ListMember], url: str | None, guesses: int, limit: int, missing: Container[int] = ()
) -> Guess | End | None:
    """What to do about a form of archives; None: nothing.

    `tried` are its pages that this run tried, `url` the next one to try. One that is not there ends the form: the site
    has no such pages. `guesses` have been made in this domain and run.
    """
    if any(member.state == PageState.QUEUED for member in tried):
        return None  # it is outstanding
    for member in tried:
        reason = end_of(member, (), missing)
        if reason is not None:
            return End(reason)
    if url is None:
        return None
    return Guess(url) if guesses < limit else End("limit")


def end_of(member: ListMember, others: Sequence[ListMember], missing: Container[int] = ()) -> str | None:
    """Why a list ends with this page; None: it may go on."""
    if member.state == PageState.DEAD_LINK:
        return "dead-link"
    if member.is_redirected:
        return "redirect"
    if member.rejection is not None:
        return "soft-404" if slug_of(member.rejection) == "soft-404" else "failed"
    if member.state != PageState.PROCESSED:
        return "failed"
    if member.text_print is not None and member.text_print in missing:
        return "soft-404"
    if member.text_print is not None and any(other.text_print == member.text_print for other in others):
        return "same-text"
    return "nothing-new" if member.found == 0 else None


def _like(last: ListMember, key: str) -> str:
    """The address as the site would write it: in the form of the last page's, which may have a slash or `www.`."""
    form, number = number_in(last.wire), number_in(key)
    return form.form.replace("{n}", str(number.number)) if form is not None and number is not None else key
