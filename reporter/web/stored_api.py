"""Deletion of what was kept of pages: the stored content of a page, of a domain, or of all, as `store forget` does it.

The map and the results stay: they say what was seen, and a replay must find the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import msgspec

from crawler.config.checks import Bad, domain_pattern
from crawler.database.page_copies import PageCopy
from crawler.keep.stored_pages import Forgetting, carry_out, plan_forgetting
from crawler.rules.lists import matches
from reporter.web.map_api import Text, url_key
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call


class StoredQuery(msgspec.Struct, forbid_unknown_fields=True):
    """Exactly one of the three."""

    url: Text = ""
    domain: Text = ""
    all: bool = False


class ForgetQuery(StoredQuery, forbid_unknown_fields=True):
    token: Annotated[str, msgspec.Meta(max_length=100)] = ""


def forget_preview(call: Call) -> Answer:
    """What would be deleted now, and the token that the deletion must bring within ten minutes."""
    words, plan = _planned(call)
    token = call.face.previews.make(call.visitor.key, f"{words} {plan.print}")
    return Answer({"token": token, "pages": plan.pages, "contents": len(plan.going), **_rest(plan)})


def forget_pages(call: Call) -> Answer:
    """Delete what the preview showed: 409 if that is something else by now, or a crawl is at work."""
    words, plan = _planned(call)
    if not call.face.previews.take(call.query.token, call.visitor.key, f"{words} {plan.print}"):
        raise Problem(409, "no-preview", "see first what would go: GET /api/admin/pages/preview gives the token")
    done = carry_out(call.face.config, plan)
    return Answer({"pages": done.pages, "contents": done.removed, **_rest(plan)})


def _rest(plan: Forgetting) -> dict[str, int]:
    return {"shared_contents": plan.shared, "bytes": plan.bytes}


def _planned(call: Call) -> tuple[str, Forgetting]:
    """The pages in words, and what would go. It takes a look at every result, so one at a time is worked out."""
    words, is_meant = _meant(call)
    if not call.face.replays.acquire(timeout=1):
        raise Problem(503, "replay-under-way", "another answer that reads all results is worked out", retry_after=5)
    try:
        return words, plan_forgetting(call.face.config, is_meant)
    finally:
        call.face.replays.release()


def _meant(call: Call) -> tuple[str, Callable[[PageCopy], bool]]:
    query = call.query
    if [bool(query.url), bool(query.domain), query.all].count(True) != 1:
        raise Problem(422, "which-pages", "say which pages: url=, domain= (*.example.org: with subdomains) or all=true")
    if query.all:
        return "all", lambda copy: True
    if query.url:
        key = url_key(call.face, query.url)
        return f"url {key}", lambda copy: copy.url == key
    try:
        pattern = domain_pattern(query.domain)
    except Bad as problem:
        raise Problem(422, "no-domain", f"{query.domain[:100]!r} is not a domain; give {problem}") from None
    return f"domain {pattern}", lambda copy: matches(pattern, copy.domain)
