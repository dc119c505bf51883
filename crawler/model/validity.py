"""PURE. The validity of an answer as a page: the words of `pages.validation`."""

from __future__ import annotations

from enum import StrEnum


class Validity(StrEnum):
    OK = "ok"
    SOFT = "soft"  # no content: an empty body, a shell that needs scripts, a parked domain, a login form, a soft 404
    HARD = "hard"  # the site refuses or tests its visitors: a challenge, a block page


REJECTED = frozenset({Validity.SOFT, Validity.HARD})
NEEDS_RENDERING = "needs-rendering"  # the reason's slug where a browser would show more
SOFT_404 = "soft-404"
