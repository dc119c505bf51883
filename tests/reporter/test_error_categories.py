"""Errors that are counted together."""

from __future__ import annotations

import pytest

from reporter.error_categories import _BY_SLUG, ALWAYS_SHOWN, ERROR_WORDS, category_of


@pytest.mark.parametrize(
    ("state", "error", "category"),
    [
        ("dead_link", "http-404", "dead-links"),
        ("dead_link", "http-410: Gone", "gone"),
        ("dead_link", None, "dead-links"),
        ("rate_limited", None, "rate-limited"),
        ("unreachable", "dns-temporary: no answer", "dns"),
        ("failed", "http-503", "server-errors"),
        ("failed", "http-403", "client-errors"),
        ("failed", "trap-path-depth: 40 segments", "traps"),
        ("content_mismatch", None, "content-mismatch"),
        ("content_mismatch", "too-large", "too-large"),
        ("failed", None, "other"),
        ("failed", "never-heard-of", "other"),
    ],
)
def test_an_error_is_counted_in_its_row(state: str, error: str | None, category: str) -> None:
    assert category_of(state, error) == category


def test_every_category_has_words() -> None:
    assert set(_BY_SLUG.values()) | set(ALWAYS_SHOWN) <= ERROR_WORDS.keys()
