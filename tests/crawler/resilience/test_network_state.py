"""The shared document: written and read back, damaged, of another boot."""

from __future__ import annotations

import pytest

from crawler.resilience.network_state import NetworkState, dump, read

STATE = NetworkState(
    *(True, 1, 2, 2, 3, 4, "2026-01-01T00:00:00Z", ("network: …",), 7, ("a.test",), ("b.test", "c.test"), 1, "boot")
)


def test_it_is_read_as_it_was_written() -> None:
    assert read(dump(STATE), "boot") == STATE


def test_of_another_boot_only_the_hosts_count() -> None:
    calm = NetworkState(run=7, hosts=("a.test",), earlier_hosts=("b.test", "c.test"), boot="other")
    assert read(dump(STATE), "other") == calm


@pytest.mark.parametrize("content", [None, b"", b"{}", b"[]", b'{"v":1}', b'{"v":2}', b"\xff", dump(STATE)[:-1]])
def test_what_cannot_be_read_is_calm(content: bytes | None) -> None:
    assert read(content, "boot") == NetworkState(boot="boot")


def test_an_outage_that_is_not_over_has_no_end() -> None:
    assert not NetworkState(out_from_ns=5).was_out(6)
    assert NetworkState(out_from_ns=5, out_until_ns=7).was_out(6)
