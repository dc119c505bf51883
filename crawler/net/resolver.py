"""Hosts to addresses that may be connected to.

The connection uses the very address that was checked here, so an answer that changes later changes nothing.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address

from crawler.model.settings import NetworkSettings
from crawler.net.addresses import Endpoint, forbidden_reason, matches, split_endpoint
from crawler.net.dns import DnsClient, Found, LookupFailure, NameLookup
from crawler.net.hub import SocketWaiter

CACHED_HOSTS = 10_000
NEGATIVE_SECONDS = 30.0  # a name that does not exist is asked again after this
TEMPORARY_SECONDS = 3.0  # a name server that did not answer is asked again after this


class Unresolvable(Exception):
    """A host that cannot, or must not, be connected to. `slug` and `words` as in `crawler.model.messages.Failure`."""

    def __init__(self, slug: str, words: str) -> None:
        super().__init__(f"{slug}: {words}")
        self.slug = slug
        self.words = words


Checked = list[str] | Unresolvable


class AddressResolver:
    """Hosts to checked addresses, with a cache. For every thread.

    Invariant: `addresses` returns an address only if `forbidden_reason` passed it, or the user allowed it
    (`allow-private-addresses`, or a line of `[network.resolve]`).
    """

    def __init__(
        self,
        network: NetworkSettings,
        *,
        dns: NameLookup | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._mapped = network.resolve
        self._allows_private = network.allow_private_addresses
        self._keep = network.dns_cache_time / 1000
        self._dns = dns or DnsClient()
        self._clock = clock
        self._cache: OrderedDict[str, tuple[float, Checked]] = OrderedDict()
        self._lock = threading.Lock()

    def addresses(self, host: str, port: int, waiter: SocketWaiter, seconds: float) -> list[Endpoint]:
        """Endpoints of this host, best first; never empty. Raises `Unresolvable`, at the latest after `seconds`."""
        found = self.known(host, port)
        if found is not None:
            return found
        name = _name_of(host)
        try:
            answer = waiter.wait_for_callback(partial(self._ask, name), seconds)
        except TimeoutError:
            # c-ares goes on for a while: a late answer replaces this one in the cache.
            answer = self._remember(name, LookupFailure.NO_ANSWER)
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

    def forget_failures(self) -> None:
        """Ask for names again that could not be resolved."""
        with self._lock:
            for name in [name for name, (_, answer) in self._cache.items() if isinstance(answer, Unresolvable)]:
                del self._cache[name]

    def close(self) -> None:
        """Cancel the look-ups under way; later ones fail as temporary."""
        self._dns.close()

    def _ask(self, name: str, done: Callable[[Checked], None]) -> None:
        self._dns.look_up(name, lambda found: done(self._remember(name, found)))

    def _remember(self, name: str, found: Found) -> Checked:
        """Check an answer and keep it for as long as its kind allows."""
        answer, keep = self._judge(name, found)
        with self._lock:
            self._cache[name] = (self._clock() + min(self._keep, keep), answer)
            self._cache.move_to_end(name)
            while len(self._cache) > CACHED_HOSTS:
                self._cache.popitem(last=False)
        return answer

    def _judge(self, name: str, found: Found) -> tuple[Checked, float]:
        if found is LookupFailure.NO_ANSWER:
            return Unresolvable("dns-temporary", f"no name server answered for {name}"), TEMPORARY_SECONDS
        if found is LookupFailure.NOT_A_NAME:
            return Unresolvable("dns", f"{name} is not a host name"), NEGATIVE_SECONDS
        answer = self._check(name, [] if isinstance(found, LookupFailure) else found)
        return answer, NEGATIVE_SECONDS if isinstance(answer, Unresolvable) else self._keep

    def _check(self, name: str, found: list[str]) -> Checked:
        if not found:
            return Unresolvable("dns", f"{name} has no address")
        if self._allows_private:
            return found
        reasons = {ip: forbidden_reason(ip) for ip in found}
        allowed = [ip for ip, reason in reasons.items() if reason is None]
        if not allowed:
            words = "; ".join(f"{ip} is {reason}" for ip, reason in list(reasons.items())[:3])
            return Unresolvable("address-blocked", words)
        return allowed


def _name_of(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _endpoints(answer: Checked, port: int) -> list[Endpoint]:
    if isinstance(answer, Unresolvable):
        raise Unresolvable(answer.slug, answer.words)
    return [(ip, port) for ip in answer]
