"""Which failures are believed, which are made again, which have to wait."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.resilience.network_state import NetworkState
from crawler.resilience.suspicion import GOOD_HOSTS, WITNESS_NS, Evidence, Interval, Verdict, judge

MS = 1_000_000
FAILED = Interval(10_000 * MS, 10_020 * MS)
CALM = NetworkState()


def evidence(*successes: Interval) -> Evidence:
    made = Evidence(5)
    for request in successes:
        made.add_success("a.test", request)
    return made


def at(start_ms: int, end_ms: int) -> Interval:
    return Interval(start_ms * MS, end_ms * MS)


@pytest.mark.parametrize(
    ("successes", "is_witnessed"),
    [
        ([at(9_900, 9_990), at(10_030, 10_090)], True),
        ([at(9_900, 9_990)], False),  # the network may have gone since
        ([at(10_030, 10_090)], False),  # … or have come back just then
        ([at(9_000, 9_700), at(10_030, 10_090)], False),  # too long before
        ([at(9_900, 9_990), at(10_300, 10_310)], False),  # too long after
    ],
)
def test_a_failure_between_two_near_successes_is_the_sites(successes: list[Interval], is_witnessed: bool) -> None:
    found = evidence(*successes)
    assert found.has_witnesses(FAILED) is is_witnessed
    expected = Verdict.BELIEVE if is_witnessed else Verdict.WAIT
    assert judge(FAILED, is_confirmed=False, evidence=found, state=CALM) is expected


def test_a_success_says_nothing_about_name_servers() -> None:
    """A connection that was kept needs none."""
    found = evidence(at(9_900, 9_990), at(10_030, 10_090))
    name = FAILED._replace(is_name=True)
    assert judge(name, is_confirmed=True, evidence=found, state=NetworkState(proof_ns=FAILED.end)) is Verdict.WAIT
    proved = NetworkState(names_proof_ns=FAILED.end)
    assert judge(name, is_confirmed=True, evidence=found, state=proved) is Verdict.BELIEVE


def test_a_long_failure_needs_a_success_near_its_end() -> None:
    long = at(10_000, 40_000)
    assert not evidence(at(9_900, 9_990), at(12_000, 12_050)).has_witnesses(long)
    assert evidence(at(12_000, 12_050), at(39_900, 39_950)).has_witnesses(long)


TABLE = [
    (NetworkState(is_waiting=True, proof_ns=FAILED.end), True, Verdict.WAIT),
    (NetworkState(out_from_ns=FAILED.start, out_until_ns=FAILED.end, proof_ns=FAILED.end), True, Verdict.AGAIN),
    (NetworkState(out_from_ns=1, out_until_ns=FAILED.start - 1), True, Verdict.WAIT),
    (NetworkState(proof_ns=FAILED.end - 1), True, Verdict.WAIT),
    (NetworkState(proof_ns=FAILED.end), False, Verdict.AGAIN),
    (NetworkState(proof_ns=FAILED.end), True, Verdict.BELIEVE),
]


@pytest.mark.parametrize(("state", "is_confirmed", "expected"), TABLE)
def test_what_becomes_of_a_failure_without_witnesses(
    state: NetworkState, is_confirmed: bool, expected: Verdict
) -> None:
    assert judge(FAILED, is_confirmed=is_confirmed, evidence=evidence(), state=state) is expected


def test_different_domains_that_fail_in_a_row_are_suspicious_until_one_answers() -> None:
    found = Evidence(3)
    for number in (1, 2, 2, 2):
        found.add_failure(f"{number}.test", FAILED)
    assert not found.is_suspicious, "two domains, however often"
    found.add_failure("3.test", Interval(FAILED.start - 5, FAILED.end))
    assert found.is_suspicious
    assert found.failing_since_ns == FAILED.start - 5
    found.add_success("4.test", FAILED)
    assert not found.is_suspicious and not found.failing_since_ns


def test_good_hosts_are_the_newest() -> None:
    found = Evidence(3)
    for number in range(20):
        found.add_success(f"{number}.test", FAILED)
    assert list(found.good_hosts) == [f"{number}.test" for number in range(20 - GOOD_HOSTS, 20)]


@given(
    st.integers(0, 10_000),
    st.integers(2 * WITNESS_NS // MS + 1, 5_000),
    st.lists(st.tuples(st.integers(0, 20_000), st.integers(0, 200)), max_size=30),
    st.integers(0, 100),
)
def test_no_failure_in_an_outage_that_is_longer_than_the_witnesses_are_near_is_believed(
    out_from: int, lasts: int, requests: list[tuple[int, int]], place: int
) -> None:
    """Whatever succeeded before and after: nothing succeeds that was on the wire during the outage."""
    out_until = out_from + lasts
    successes = [at(s, s + d) for s, d in requests if s + d < out_from or s > out_until]
    failed = at(begin := out_from + lasts * place // 101, begin + 1)
    assert not evidence(*successes).has_witnesses(failed)
