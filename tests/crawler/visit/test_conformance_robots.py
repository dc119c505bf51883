"""The recorded robots cases of the public suites (see the README of the conformance folder)."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from protego import Protego

from crawler.visit.robots import Verdict, parse, verdict_of_status
from tests.places import CONFORMANCE

EXCLUDED = {
    "conflict",
    "agent-is-full-header",
    "agent-star-or-empty",
    "agent-not-rfc-token",
    "empty-url",
    "ua-prefix-mode",
}

pytestmark = pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the conformance cases are not here")


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((CONFORMANCE / name).read_bytes())
    return found


def is_marked(case: dict[str, Any]) -> bool:
    tags = set(case["tags"])
    return (case["consensus"] and not tags & EXCLUDED) or "rfc9309" in tags


def body_of(case: dict[str, Any]) -> bytes:
    if "robots_b64" in case:
        return base64.b64decode(case["robots_b64"])
    return str(case["robots"]).encode()


def test_every_marked_robots_case_holds() -> None:
    marked = [case for case in cases("robots_cases.json") if is_marked(case)]
    wrong = [
        case["id"] for case in marked if parse(body_of(case)).allows(case["url"], case["agent"]) != case["allowed"]
    ]
    assert len(marked) > 600
    assert wrong == []


def test_protego_would_not_do_for_the_reasons_that_the_module_gives() -> None:
    wrong = []
    for case in cases("robots_cases.json"):
        if is_marked(case):
            rules = Protego.parse(body_of(case).decode("utf-8", "replace"))
            if rules.can_fetch(case["url"], case["agent"]) != case["allowed"]:
                wrong.append(case["id"])
    assert wrong


def test_every_status_case_holds() -> None:
    for case in cases("robots_http_status_cases.json"):
        verdict = verdict_of_status(case["status"])
        assert (verdict is Verdict.DEFER) == case["defer"], case
        assert (verdict is not Verdict.DEFER) == case["allowed"], case
