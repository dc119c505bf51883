"""Network safety (design): addresses that must not be connected to, in every disguise."""

from __future__ import annotations

import ada_url
import pytest

from crawler.net.addresses import forbidden_reason, matches, split_endpoint

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
