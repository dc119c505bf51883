"""Hosts become checked addresses: checks, cache, and hosts that are not looked up at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

import ada_url
import pytest

from crawler.model.messages import Failure, Request
from crawler.model.settings import NetworkSettings
from crawler.net.addresses import Endpoint
from crawler.net.client import HttpClient
from crawler.net.dns import Found, LookupFailure
from crawler.net.hub import BlockingWaiter
from crawler.net.resolver import CACHED_HOSTS, AddressResolver, Unresolvable


class FakeDns:
    """Stands for the name servers: answers from a table and counts the questions."""

    def __init__(self, **table: list[str] | LookupFailure) -> None:
        self.table = table
        self.asked: list[str] = []

    def look_up(self, name: str, done: Callable[[Found], None]) -> None:
        self.asked.append(name)
        done(self.table.get(name.partition(".")[0], LookupFailure.NO_SUCH_NAME))

    def close(self) -> None:
        pass


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def addresses(resolver: AddressResolver, host: str, port: int) -> list[Endpoint]:
    return resolver.addresses(host, port, BlockingWaiter(), 60.0)


def slug_of(resolver: AddressResolver, host: str) -> str:
    with pytest.raises(Unresolvable) as caught:
        addresses(resolver, host, 443)
    return caught.value.slug


def test_a_name_gives_its_public_addresses_in_order() -> None:
    dns = FakeDns(good=["8.8.8.8", "2606:4700::1111"])
    found = addresses(AddressResolver(NetworkSettings(), dns=dns), "good.example", 443)
    assert found == [("8.8.8.8", 443), ("2606:4700::1111", 443)]


def test_forbidden_addresses_among_public_ones_are_left_out() -> None:
    dns = FakeDns(mixed=["10.0.0.1", "8.8.8.8", "::1"])
    assert addresses(AddressResolver(NetworkSettings(), dns=dns), "mixed.example", 443) == [("8.8.8.8", 443)]


def test_a_name_with_only_forbidden_addresses_is_blocked_with_the_reason() -> None:
    resolver = AddressResolver(NetworkSettings(), dns=FakeDns(inside=["10.0.0.1"]))
    with pytest.raises(Unresolvable) as caught:
        addresses(resolver, "inside.example", 443)
    assert caught.value.slug == "address-blocked"
    assert caught.value.words == "10.0.0.1 is private"


def test_allow_private_addresses_lets_them_pass() -> None:
    network = NetworkSettings(allow_private_addresses=True)
    resolver = AddressResolver(network, dns=FakeDns(inside=["10.0.0.1"]))
    assert addresses(resolver, "inside.example", 443) == [("10.0.0.1", 443)]
    assert addresses(resolver, "[::1]", 8443) == [("::1", 8443)]


@pytest.mark.parametrize("spelling", ["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "127.0.0.1.", "%31%32%37.1"])
def test_odd_spellings_of_loopback_are_blocked(spelling: str) -> None:
    host = ada_url.URL(f"https://{spelling}/").hostname
    assert slug_of(AddressResolver(NetworkSettings(), dns=FakeDns()), host) == "address-blocked"


def test_literal_addresses_are_checked_and_not_looked_up() -> None:
    dns = FakeDns()
    resolver = AddressResolver(NetworkSettings(), dns=dns)
    assert addresses(resolver, "8.8.8.8", 443) == [("8.8.8.8", 443)]
    assert slug_of(resolver, "[::ffff:7f00:1]") == "address-blocked"
    assert dns.asked == []


@pytest.mark.parametrize(
    ("failure", "slug"),
    [
        (LookupFailure.NO_SUCH_NAME, "dns"),
        (LookupFailure.NOT_A_NAME, "dns"),
        (LookupFailure.NO_ANSWER, "dns-temporary"),
    ],
)
def test_failed_lookups_have_their_own_slugs(failure: LookupFailure, slug: str) -> None:
    assert slug_of(AddressResolver(NetworkSettings(), dns=FakeDns(broken=failure)), "broken.example") == slug


def test_answers_are_kept_for_the_configured_time_and_no_longer() -> None:
    dns, clock = FakeDns(good=["8.8.8.8"]), Clock()
    resolver = AddressResolver(NetworkSettings(dns_cache_time=60_000), dns=dns, clock=clock)
    for clock.now in (0.0, 59.9):
        addresses(resolver, "good.example", 443)
    assert len(dns.asked) == 1
    clock.now = 60.0
    addresses(resolver, "good.example", 443)
    assert len(dns.asked) == 2


def test_failures_are_kept_for_a_short_time_only() -> None:
    dns, clock = FakeDns(), Clock()
    resolver = AddressResolver(NetworkSettings(), dns=dns, clock=clock)
    for clock.now in (0.0, 29.0, 31.0):
        assert slug_of(resolver, "nowhere.example") == "dns"
    assert len(dns.asked) == 2


def test_an_answer_that_turns_private_is_never_handed_out() -> None:
    """DNS rebinding: the answer is checked each time it comes in, and only checked addresses leave."""
    dns, clock = FakeDns(shifty=["8.8.8.8"]), Clock()
    resolver = AddressResolver(NetworkSettings(dns_cache_time=1000), dns=dns, clock=clock)
    assert addresses(resolver, "shifty.example", 443) == [("8.8.8.8", 443)]
    dns.table["shifty"] = ["127.0.0.1"]
    assert addresses(resolver, "shifty.example", 443) == [("8.8.8.8", 443)]
    clock.now = 2.0
    assert slug_of(resolver, "shifty.example") == "address-blocked"


def test_the_cache_has_a_limit() -> None:
    resolver = AddressResolver(
        NetworkSettings(), dns=FakeDns(**{f"h{i}": ["8.8.8.8"] for i in range(CACHED_HOSTS + 50)})
    )
    for i in range(CACHED_HOSTS + 50):
        addresses(resolver, f"h{i}.example", 443)
    assert len(resolver._cache) == CACHED_HOSTS


def test_mapped_hosts_are_not_looked_up_nor_checked_and_the_first_match_wins() -> None:
    dns = FakeDns()
    network = NetworkSettings(resolve=(("a.test", "127.0.0.1:1"), ("*.test", "[::1]:2"), ("*", "10.0.0.1")))
    resolver = AddressResolver(network, dns=dns)
    assert addresses(resolver, "a.test", 443) == [("127.0.0.1", 1)]
    assert addresses(resolver, "A.TEST.", 443) == [("127.0.0.1", 1)]
    assert addresses(resolver, "b.test", 443) == [("::1", 2)]
    assert addresses(resolver, "test", 443) == [("::1", 2)]
    assert addresses(resolver, "example.com", 8443) == [("10.0.0.1", 8443)]
    assert dns.asked == []


@pytest.mark.parametrize(("connect", "total"), [(2_000, 60_000), (60_000, 2_000)])
def test_a_lookup_may_take_no_longer_than_a_connection_nor_than_the_request(connect: int, total: int) -> None:
    given: list[float] = []

    class Waiter(BlockingWaiter):
        def wait_for_callback(self, begin: object, seconds: float) -> NoReturn:
            given.append(seconds)
            raise TimeoutError

    network = NetworkSettings(connect_timeout=connect, total_timeout=total)
    resolver = AddressResolver(network, dns=FakeDns())
    with HttpClient(network, "SumiRipple/1.0", resolver=resolver, waiter=Waiter()) as client:
        answer = client.send(Request("HEAD", "https://silent.example/"))
    assert isinstance(answer, Failure)
    assert answer.message == "dns-temporary: no name server answered for silent.example"
    assert len(given) == 1
    assert 0 < given[0] <= 2.0
