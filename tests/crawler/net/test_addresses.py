"""Network safety (design): what must not be connected to, in every disguise, and who may connect anyway."""

from __future__ import annotations

import socket
from typing import Any

import ada_url
import pytest

from crawler.model.settings import NetworkSettings
from crawler.net.addresses import CACHED_HOSTS, AddressResolver, Unresolvable, forbidden_reason, matches, split_endpoint

FORBIDDEN = {
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "0.0.0.0": "unspecified",
    "0.1.2.3": "reserved",
    "10.0.0.1": "private",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.168.1.1": "private",
    "169.254.1.1": "link-local",
    "169.254.169.254": "cloud metadata",
    "100.64.0.1": "carrier-grade NAT",
    "100.127.255.255": "carrier-grade NAT",
    "100.100.100.200": "cloud metadata",
    "168.63.129.16": "cloud metadata",
    "192.0.0.192": "cloud metadata",
    "192.0.2.1": "documentation",
    "198.51.100.1": "documentation",
    "203.0.113.1": "documentation",
    "198.18.0.1": "benchmarking",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "broadcast",
    "::": "unspecified",
    "::1": "loopback",
    "fc00::1": "private",
    "fd12:3456::1": "private",
    "fd00:ec2::254": "cloud metadata",
    "fd20:ce::254": "cloud metadata",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "fec0::1": "site-local",
    "ff02::1": "multicast",
    "2001:db8::1": "documentation",
    "3fff::1": "documentation",
    "2001:2::1": "benchmarking",
    "2001:10::1": "reserved",
    "100::1": "reserved",
    "64:ff9b:1::1": "local-use NAT64",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:10.0.0.1": "private",
    "::ffff:a9fe:a9fe": "cloud metadata",
    "::7f00:1": "loopback",
    "::192.168.0.1": "private",
    "::8.8.8.8": "reserved",
    "::ffff:0:127.0.0.1": "reserved",
    "64:ff9b::10.1.2.3": "private",
    "64:ff9b::a9fe:a9fe": "cloud metadata",
    "2002:7f00:1::": "loopback",
    "2002:a00:1::1": "private",
    "2001:0:4136:e378:8000:63bf:80ff:fffe": "loopback",  # Teredo: the client's address is stored inverted
    "2001:0:a00:1::f7f7:f7f7": "private",  # Teredo: the server's
    "2607:f8b0::5efe:10.0.0.1": "private",  # ISATAP
    "not an address": "not an IP address",
    "": "not an IP address",
}
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "172.15.255.255",
    "172.32.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "11.0.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "2a00:1450:4001::200e",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
]


@pytest.mark.parametrize(("ip", "reason"), FORBIDDEN.items())
def test_forbidden_addresses_are_named(ip: str, reason: str) -> None:
    found = forbidden_reason(ip)
    assert found is not None
    assert found.startswith(reason)


@pytest.mark.parametrize("ip", PUBLIC)
def test_public_addresses_are_allowed(ip: str) -> None:
    assert forbidden_reason(ip) is None


@pytest.mark.parametrize(
    "spelling", ["2130706433", "0x7f.1", "127.1", "0177.0.0.1", "0x7f000001", "127.0.0.1.", "①②⑦.0.0.1", "%31%32%37.1"]
)
def test_odd_spellings_of_loopback_become_the_address_when_parsed(spelling: str) -> None:
    host = ada_url.URL(f"https://{spelling}/").hostname
    assert forbidden_reason(host.rstrip(".")) == "loopback"
    with pytest.raises(Unresolvable, match="address-blocked"):
        AddressResolver(NetworkSettings()).addresses(host, 443)


class FakeDns:
    """Stands for the system's resolver: answers from a table and counts the questions."""

    def __init__(self, **table: list[str] | Exception) -> None:
        self.table = table
        self.asked: list[str] = []

    def __call__(self, host: str, port: object, **_: Any) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        answer = self.table.get(host.partition(".")[0], socket.gaierror(socket.EAI_NONAME, "no"))
        if isinstance(answer, Exception):
            raise answer
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (ip, 0)) for ip in answer]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def slug_of(resolver: AddressResolver, host: str) -> str:
    with pytest.raises(Unresolvable) as caught:
        resolver.addresses(host, 443)
    return caught.value.slug


def test_a_name_gives_its_public_addresses_in_order() -> None:
    dns = FakeDns(good=["8.8.8.8", "2606:4700::1111", "8.8.8.8"])
    found = AddressResolver(NetworkSettings(), getaddrinfo=dns).addresses("good.example", 443)
    assert found == [("8.8.8.8", 443), ("2606:4700::1111", 443)]


def test_forbidden_addresses_among_public_ones_are_left_out() -> None:
    dns = FakeDns(mixed=["10.0.0.1", "8.8.8.8", "::1"])
    assert AddressResolver(NetworkSettings(), getaddrinfo=dns).addresses("mixed.example", 443) == [("8.8.8.8", 443)]


def test_a_name_with_only_forbidden_addresses_is_blocked_with_the_reason() -> None:
    resolver = AddressResolver(NetworkSettings(), getaddrinfo=FakeDns(inside=["10.0.0.1"]))
    with pytest.raises(Unresolvable) as caught:
        resolver.addresses("inside.example", 443)
    assert caught.value.slug == "address-blocked"
    assert caught.value.words == "10.0.0.1 is private"


def test_allow_private_addresses_lets_them_pass() -> None:
    network = NetworkSettings(allow_private_addresses=True)
    resolver = AddressResolver(network, getaddrinfo=FakeDns(inside=["10.0.0.1"]))
    assert resolver.addresses("inside.example", 443) == [("10.0.0.1", 443)]
    assert resolver.addresses("[::1]", 8443) == [("::1", 8443)]


def test_literal_addresses_are_checked_and_not_looked_up() -> None:
    dns = FakeDns()
    resolver = AddressResolver(NetworkSettings(), getaddrinfo=dns)
    assert resolver.addresses("8.8.8.8", 443) == [("8.8.8.8", 443)]
    assert slug_of(resolver, "[::ffff:7f00:1]") == "address-blocked"
    assert dns.asked == []


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        (socket.gaierror(socket.EAI_NONAME, "x"), "dns"),
        (socket.gaierror(socket.EAI_NODATA, "x"), "dns"),
        (socket.gaierror(socket.EAI_FAIL, "x"), "dns"),
        (socket.gaierror(socket.EAI_AGAIN, "x"), "dns-temporary"),
        (UnicodeError("label too long"), "dns"),
        (OSError("resolver broke"), "dns-temporary"),
    ],
)
def test_failed_lookups_have_their_own_slugs(error: Exception, slug: str) -> None:
    assert slug_of(AddressResolver(NetworkSettings(), getaddrinfo=FakeDns(broken=error)), "broken.example") == slug


def test_answers_are_kept_for_the_configured_time_and_no_longer() -> None:
    dns, clock = FakeDns(good=["8.8.8.8"]), Clock()
    resolver = AddressResolver(NetworkSettings(dns_cache_time=60_000), getaddrinfo=dns, clock=clock)
    for clock.now in (0.0, 59.9):
        resolver.addresses("good.example", 443)
    assert len(dns.asked) == 1
    clock.now = 60.0
    resolver.addresses("good.example", 443)
    assert len(dns.asked) == 2


def test_failures_are_kept_for_a_short_time_only() -> None:
    dns, clock = FakeDns(), Clock()
    resolver = AddressResolver(NetworkSettings(), getaddrinfo=dns, clock=clock)
    for clock.now in (0.0, 29.0, 31.0):
        assert slug_of(resolver, "nowhere.example") == "dns"
    assert len(dns.asked) == 2


def test_an_answer_that_turns_private_is_never_handed_out() -> None:
    """DNS rebinding: the answer is checked each time it comes in, and only checked addresses leave."""
    dns, clock = FakeDns(shifty=["8.8.8.8"]), Clock()
    resolver = AddressResolver(NetworkSettings(dns_cache_time=1000), getaddrinfo=dns, clock=clock)
    assert resolver.addresses("shifty.example", 443) == [("8.8.8.8", 443)]
    dns.table["shifty"] = ["127.0.0.1"]
    assert resolver.addresses("shifty.example", 443) == [("8.8.8.8", 443)]
    clock.now = 2.0
    assert slug_of(resolver, "shifty.example") == "address-blocked"


def test_the_cache_has_a_limit() -> None:
    resolver = AddressResolver(NetworkSettings(), getaddrinfo=lambda *_, **__: [(0, 0, 0, "", ("8.8.8.8", 0))])
    for i in range(CACHED_HOSTS + 50):
        resolver.addresses(f"h{i}.example", 443)
    assert len(resolver._cache) == CACHED_HOSTS


def test_mapped_hosts_are_not_looked_up_nor_checked_and_the_first_match_wins() -> None:
    dns = FakeDns()
    network = NetworkSettings(resolve=(("a.test", "127.0.0.1:1"), ("*.test", "[::1]:2"), ("*", "10.0.0.1")))
    resolver = AddressResolver(network, getaddrinfo=dns)
    assert resolver.addresses("a.test", 443) == [("127.0.0.1", 1)]
    assert resolver.addresses("A.TEST.", 443) == [("127.0.0.1", 1)]
    assert resolver.addresses("b.test", 443) == [("::1", 2)]
    assert resolver.addresses("test", 443) == [("::1", 2)]
    assert resolver.addresses("example.com", 8443) == [("10.0.0.1", 8443)]
    assert dns.asked == []


@pytest.mark.parametrize(
    ("pattern", "host", "expected"),
    [
        ("*", "anything.at.all", True),
        ("*.test", "test", True),
        ("*.test", "a.b.test", True),
        ("*.test", "notatest", False),
        ("*.test", "a.test.com", False),
        ("a.test", "a.test", True),
        ("a.test", "b.a.test", False),
    ],
)
def test_resolve_patterns(pattern: str, host: str, expected: bool) -> None:
    assert matches(pattern, host) is expected


@pytest.mark.parametrize(
    ("text", "endpoint"),
    [
        ("1.2.3.4:5", ("1.2.3.4", 5)),
        ("1.2.3.4", ("1.2.3.4", 443)),
        ("[::1]:5", ("::1", 5)),
        ("[::1]", ("::1", 443)),
        ("::1", ("::1", 443)),
    ],
)
def test_endpoints_of_the_resolve_table(text: str, endpoint: tuple[str, int]) -> None:
    assert split_endpoint(text, 443) == endpoint
