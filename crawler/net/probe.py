"""The probe: does the network work? A connection, with its TLS handshake where it has one, and no request."""

from __future__ import annotations

import ssl
from typing import NamedTuple

from crawler.model.settings import NetworkSettings
from crawler.net.addresses import split_endpoint
from crawler.net.connection import Connector
from crawler.net.deadline import Deadline
from crawler.net.failures import EXPECTED, describe
from crawler.net.hub import BlockingWaiter
from crawler.net.resolver import AddressResolver
from crawler.net.tls import tls_context

LONGEST = 5.0  # seconds for each step, unless the config allows less
_OF_THE_CLOCK = frozenset({9, 10})  # OpenSSL's codes: not valid yet, expired


class Probed(NamedTuple):
    """`slug` and `words` say why a target was not reached; None: it was."""

    target: str
    slug: str | None = None
    words: str = ""
    is_clock: bool = False  # its certificate is not valid at this time

    @property
    def is_reached(self) -> bool:
        return self.slug is None


def probe(target: str, network: NetworkSettings) -> Probed:
    """Connect to `https://host/`, `host` (both with a TLS handshake) or `host:port` (without)."""
    waiter = BlockingWaiter()
    seconds = min(network.connect_timeout / 1000, LONGEST)
    is_tls = "://" in target or ":" not in target
    host, port = _origin(target)
    resolver = AddressResolver(network)
    try:
        deadline = Deadline(3 * seconds, seconds)
        endpoints = resolver.addresses(host, port, waiter, seconds)
        connector = Connector(tls_context(network), waiter, seconds)
        if is_tls:
            connector.connect((host, port), endpoints, deadline).close()
        else:
            connector.dial(endpoints, deadline).close()
    except EXPECTED as error:
        is_clock = isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in _OF_THE_CLOCK
        return Probed(target, *describe(error), is_clock)
    finally:
        resolver.close()
    return Probed(target)


def _origin(target: str) -> tuple[str, int]:
    name = target.partition("://")[2].partition("/")[0] if "://" in target else target
    return split_endpoint(name, 443)
