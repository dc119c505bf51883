"""URL cases that others wrote: web-platform-tests, w3lib, crawler-commons (see the conformance folder's README)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from crawler.model.urls import LinkResolver, UrlError, normalize, resolve, wire_of
from tests.places import CONFORMANCE


def cases(name: str) -> list[dict[str, Any]]:
    path = CONFORMANCE / name
    if not path.is_file():
        pytest.skip(f"the conformance cases are not here: {path}")
    found: list[dict[str, Any]] = json.loads(path.read_text())
    assert len(found) > 400
    return found


def key_or_none(url: str | None) -> str | None:
    if url is None:
        return None
    try:
        return normalize(url)
    except UrlError:
        return None


def test_every_web_platform_case_resolves_as_in_browsers() -> None:
    resolver, wrong = LinkResolver(), []
    for case in cases("wpt_http_flat.json"):
        base, href, out = case["base"] or "", case["in"], case["out"]
        expected = normalize(out) if out is not None else None
        link = resolver.link(base, href)
        got = key_or_none(resolve(base, href)), link.key if link else None
        if got != (expected, expected):
            wrong.append((href, base, expected, got))
    assert wrong == []


def test_every_web_platform_serialisation_is_a_wire_url_but_for_scheme_userinfo_and_fragment() -> None:
    for case in cases("wpt_http_flat.json"):
        if case["out"] is not None:
            host = case["host"].rstrip(".") or case["host"]
            wire = wire_of(case["out"])
            assert wire.endswith((case["path"] + (case["search"] or ""), "?")), case
            assert wire.startswith(f"https://{host}") or case["host"].endswith("."), case


def test_every_marked_canonicalisation_case_holds() -> None:
    wrong = []
    for case in cases("url_canon_cases.json"):
        if case["core"] and case.get("holds_under_spec"):
            got, expected = key_or_none(case["in"]), key_or_none(case["out"])
            if got != expected:
                wrong.append((case["in"], expected, got))
    assert wrong == []


def test_every_canonicalisation_case_is_idempotent_or_refused_cleanly() -> None:
    for case in cases("url_canon_cases.json"):
        for text in (case["in"], case["out"]):
            key = key_or_none(text)
            assert key is None or normalize(key) == key, text
