"""Which addresses may be connected to, and how a host becomes one.

`forbidden_reason` is pure. `AddressResolver` asks DNS, keeps its answers for a while and lets only checked addresses
out: whoever connects uses the very address that was checked, so an answer that changes later changes nothing.
"""

from __future__ import annotations

import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

from crawler.model.settings import NetworkSettings

Endpoint = tuple[str, int]

CACHED_HOSTS = 10_000
NEGATIVE_SECONDS = 30.0  # a name that does not exist is asked again after this
TEMPORARY_SECONDS = 3.0  # a name server that did not answer is asked again after this

METADATA = {
    IPv4Address("169.254.169.254"),
    IPv4Address("169.254.170.2"),
    IPv4Address("100.100.100.200"),
    IPv4Address("192.0.0.192"),
    IPv4Address("168.63.129.16"),  # looks public, answers only inside Azure
    IPv6Address("fd00:ec2::254"),
    IPv6Address("fd20:ce::254"),
}

# The first match names the reason, so the narrower network stands first.
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
    """Why must nothing be sent to this address? None: it is a public one."""
    try:
        address = ip_address(ip.partition("%")[0])
    except ValueError:
        return "not an IP address"
    if isinstance(address, IPv4Address):
        return _forbidden_v4(address)
    return _forbidden_v6(address)


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


class Unresolvable(Exception):
    """A host that cannot, or must not, be connected to. `slug` and `words` as in `crawler.model.messages.Failure`."""

    def __init__(self, slug: str, words: str) -> None:
        super().__init__(f"{slug}: {words}")
        self.slug = slug
        self.words = words


def matches(pattern: str, host: str) -> bool:
    """Does a pattern of `[network.resolve]` mean this host? `*.test` means `test` and all below it."""
    if pattern == "*":
        return True
    if pattern.startswith("*."):
        return host == pattern[2:] or host.endswith(pattern[1:])
    return host == pattern


def split_endpoint(text: str, port: int) -> Endpoint:
    """`1.2.3.4:8443`, `[::1]:8443`, or an address alone, which keeps `port`."""
    if text.startswith("["):
        inside, _, behind = text[1:].partition("]")
        return inside, int(behind[1:]) if behind.startswith(":") else port
    if text.count(":") == 1:
        address, _, number = text.partition(":")
        return address, int(number)
    return text, port


def _name_of(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _endpoints(answer: list[str] | Unresolvable, port: int) -> list[Endpoint]:
    if isinstance(answer, Unresolvable):
        raise Unresolvable(answer.slug, answer.words)
    return [(ip, port) for ip in answer]


GetAddrInfo = Callable[..., list[tuple[Any, ...]]]


class AddressResolver:
    """Hosts to checked addresses; safe to use from many threads.

    Invariant: an address leaves `addresses` only if `forbidden_reason` passed it, or the user let it in
    (`allow-private-addresses`, or a line of `[network.resolve]`).
    """

    def __init__(
        self,
        network: NetworkSettings,
        *,
        getaddrinfo: GetAddrInfo = socket.getaddrinfo,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mapped = network.resolve
        self._allows_private = network.allow_private_addresses
        self._keep = network.dns_cache_time / 1000
        self._getaddrinfo = getaddrinfo
        self._clock = clock
        self._cache: OrderedDict[str, tuple[float, list[str] | Unresolvable]] = OrderedDict()
        self._lock = threading.Lock()

    def addresses(self, host: str, port: int) -> list[Endpoint]:
        """Where to connect for this host, best first; never empty. Raises `Unresolvable`. May take its time."""
        found = self.known(host, port)
        if found is not None:
            return found
        name = _name_of(host)
        now = self._clock()
        answer, keep = self._ask(name)
        with self._lock:
            self._cache[name] = (now + keep, answer)
            self._cache.move_to_end(name)
            while len(self._cache) > CACHED_HOSTS:
                self._cache.popitem(last=False)
        return _endpoints(answer, port)

    def known(self, host: str, port: int) -> list[Endpoint] | None:
        """The same, if no name server has to be asked for it; else None."""
        name = _name_of(host)
        for pattern, endpoint in self._mapped:
            if matches(pattern, name):
                return [split_endpoint(endpoint, port)]
        try:
            literal = ip_address(name)
        except ValueError:
            with self._lock:
                entry = self._cache.get(name)
                if entry is None or self._clock() >= entry[0]:
                    return None
                self._cache.move_to_end(name)
            return _endpoints(entry[1], port)
        return _endpoints(self._check(name, [str(literal)]), port)

    def _ask(self, name: str) -> tuple[list[str] | Unresolvable, float]:
        """The answer and how long it may be kept."""
        try:
            rows = self._getaddrinfo(name, None, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            if error.errno in (socket.EAI_AGAIN, socket.EAI_MEMORY, socket.EAI_SYSTEM):
                words = f"no name server answered for {name}"
                return Unresolvable("dns-temporary", words), min(self._keep, TEMPORARY_SECONDS)
            return Unresolvable("dns", f"{name} has no address"), min(self._keep, NEGATIVE_SECONDS)
        except (UnicodeError, ValueError):
            return Unresolvable("dns", f"{name} is not a host name"), min(self._keep, NEGATIVE_SECONDS)
        except OSError:
            return Unresolvable("dns-temporary", f"{name} could not be looked up"), TEMPORARY_SECONDS
        found = list(dict.fromkeys(str(row[4][0]) for row in rows))
        try:
            return self._check(name, found), self._keep
        except Unresolvable as refused:
            return refused, min(self._keep, NEGATIVE_SECONDS)

    def _check(self, name: str, found: list[str]) -> list[str]:
        if not found:
            raise Unresolvable("dns", f"{name} has no address")
        if self._allows_private:
            return found
        reasons = {ip: forbidden_reason(ip) for ip in found}
        allowed = [ip for ip, reason in reasons.items() if reason is None]
        if not allowed:
            told = "; ".join(f"{ip} is {reason}" for ip, reason in list(reasons.items())[:3])
            raise Unresolvable("address-blocked", told)
        return allowed
