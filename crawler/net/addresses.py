"""PURE. Addresses that must not be connected to, in every disguise, and the patterns of `[network.resolve]`."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from crawler.model.settings import NetworkSettings

Endpoint = tuple[str, int]

METADATA = {
    IPv4Address("169.254.169.254"),
    IPv4Address("169.254.170.2"),
    IPv4Address("100.100.100.200"),
    IPv4Address("192.0.0.192"),
    IPv4Address("168.63.129.16"),  # looks public, answers only inside Azure
    IPv6Address("fd00:ec2::254"),
    IPv6Address("fd20:ce::254"),
}

# The first match names the reason, so the narrower network comes first.
FORBIDDEN_V4 = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/32", "unspecified"),
        ("0.0.0.0/8", "reserved"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "reserved"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("255.255.255.255/32", "broadcast"),
        ("240.0.0.0/4", "reserved"),
    )
)

FORBIDDEN_V6 = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b:1::/48", "local-use NAT64"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
        ("2001:2::/48", "benchmarking"),
        ("2001:10::/28", "reserved"),
        ("2001:20::/28", "reserved"),
        ("2001:db8::/32", "documentation"),
        ("3fff::/20", "documentation"),
    )
)

MAPPED = IPv6Network("::ffff:0:0/96")
COMPATIBLE = IPv6Network("::/96")
NAT64 = IPv6Network("64:ff9b::/96")
SIX_TO_FOUR = IPv6Network("2002::/16")
TEREDO = IPv6Network("2001::/32")
GLOBAL_UNICAST = IPv6Network("2000::/3")
ISATAP = {0x00005EFE, 0x02005EFE}


def forbidden_reason(ip: str) -> str | None:
    """The reason why nothing may be sent to this address; None for a public one."""
    try:
        address = ip_address(ip.partition("%")[0])
    except ValueError:
        return "not an IP address"
    if isinstance(address, IPv4Address):
        return _forbidden_v4(address)
    return _forbidden_v6(address)


def blocked_literal(network: NetworkSettings, host: str) -> str | None:
    """The reason why nothing may be sent to a host that is written as an address; None: it may, or it is a name, whose
    addresses are checked when it is resolved.
    """
    name = host.strip("[]")
    try:
        ip_address(name)
    except ValueError:
        return None
    if network.allow_private_addresses or any(matches(pattern, name) for pattern, _ in network.resolve):
        return None
    return forbidden_reason(name)


def _forbidden_v4(address: IPv4Address) -> str | None:
    if address in METADATA:
        return "cloud metadata"
    return next((reason for network, reason in FORBIDDEN_V4 if address in network), None)


def _forbidden_v6(address: IPv6Address) -> str | None:
    if address in METADATA:
        return "cloud metadata"
    for network, reason in FORBIDDEN_V6:
        if address in network:
            return reason
    for disguise, inner in _embedded(address):
        if reason_inside := _forbidden_v4(inner):
            return f"{reason_inside} ({disguise} {inner})"
    if address in MAPPED or address in NAT64 or address in GLOBAL_UNICAST:
        return None
    return "reserved"


def _embedded(address: IPv6Address) -> list[tuple[str, IPv4Address]]:
    """The IPv4 addresses that traffic to this IPv6 address may end up at."""
    number = int(address)
    low = IPv4Address(number & 0xFFFFFFFF)
    if address in MAPPED:
        return [("IPv4-mapped", low)]
    if address in COMPATIBLE:
        return [("IPv4-compatible", low)]
    if address in NAT64:
        return [("NAT64", low)]
    if address in TEREDO:
        server = IPv4Address((number >> 64) & 0xFFFFFFFF)
        return [("Teredo", server), ("Teredo", IPv4Address(~number & 0xFFFFFFFF))]
    found = []
    if address in SIX_TO_FOUR:
        found.append(("6to4", IPv4Address((number >> 80) & 0xFFFFFFFF)))
    if (number >> 32) & 0xFFFFFFFF in ISATAP:
        found.append(("ISATAP", low))
    return found


def matches(pattern: str, host: str) -> bool:
    """Does this pattern of `[network.resolve]` match the host? `*.test` matches `test` and every name below it."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host == pattern[2:] or host.endswith(pattern[1:])
    return host == pattern


def split_endpoint(text: str, port: int) -> Endpoint:
    """Address and port of `1.2.3.4:8443` or `[::1]:8443`; an address alone gets `port`."""
    if text.startswith("["):
        address, _, rest = text[1:].partition("]")
        return address, int(rest[1:]) if rest.startswith(":") else port
    if text.count(":") == 1:
        address, _, number = text.partition(":")
        return address, int(number)
    return text, port
