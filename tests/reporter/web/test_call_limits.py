"""Calls a minute."""

from __future__ import annotations

import pytest

from reporter.web.call_limits import A_MINUTE, CallLimits, address_key
from reporter.web.routing import Bucket, Role


@pytest.mark.parametrize(("role", "limit"), [(Role.ANONYMOUS, 10), (Role.USER, 100), (Role.ADMIN, 500)])
def test_each_role_has_its_number_of_calls(role: Role, limit: int) -> None:
    limits = CallLimits()
    assert all(limits.refuse(Bucket.CALLS, role, "me") is None for _ in range(limit))
    assert limits.refuse(Bucket.CALLS, role, "me") is not None
    assert limits.refuse(Bucket.CALLS, role, "somebody else") is None


def test_seeds_have_ten_a_minute_for_admins_too() -> None:
    assert set(A_MINUTE[Bucket.SEEDS].values()) == {10}


def test_the_stream_and_health_have_a_bucket_of_their_own() -> None:
    limits = CallLimits()
    for _ in range(11):
        limits.refuse(Bucket.CALLS, Role.ANONYMOUS, "me")
    assert limits.refuse(Bucket.WATCH, Role.ANONYMOUS, "me") is None


def test_a_refused_call_does_not_prolong_the_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("time.time", lambda: now[0])
    limits = CallLimits()
    for _ in range(10):
        assert limits.refuse(Bucket.CALLS, Role.ANONYMOUS, "me") is None
        now[0] += 1
    assert limits.refuse(Bucket.CALLS, Role.ANONYMOUS, "me") == 50
    now[0] += 49
    assert limits.refuse(Bucket.CALLS, Role.ANONYMOUS, "me") == 1
    now[0] += 1.001
    assert limits.refuse(Bucket.CALLS, Role.ANONYMOUS, "me") is None


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("2001:db8:0:1:2:3:4:5", "20010db800000001::/64"),
        ("not an address", "not an address"),
    ],
)
def test_limits_go_by_the_network_of_an_ipv6_address(address: str, key: str) -> None:
    assert address_key(address).lstrip("0") == key.lstrip("0")
