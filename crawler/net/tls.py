"""TLS: whom to trust, how strictly, and the sessions that make a second handshake with a host cheap.

Every setting that differs between versions of Python is set here, so that a config finds the same pages on each.
"""

from __future__ import annotations

import ssl
import threading
from collections import OrderedDict

import certifi

from crawler.model.errors import UsageError
from crawler.model.settings import NetworkSettings

KEPT_SESSIONS = 2048  # hosts whose TLS session is kept


def tls_context(network: NetworkSettings) -> ssl.SSLContext:
    """The TLS settings of every connection: TLS 1.2 or newer, certificate and host name verified."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # Not VERIFY_X509_STRICT, a default of `create_default_context` from Python 3.13 on: it refuses authorities whose
    # certificate lacks a key usage extension, as company and home-made ones often do. Browsers accept those.
    context.verify_flags = ssl.VerifyFlags.VERIFY_X509_TRUSTED_FIRST
    context.load_default_certs()
    if context.cert_store_stats()["x509_ca"] == 0:  # a machine without a trust store, such as a small container
        context.load_verify_locations(cafile=certifi.where())
    if network.ca_bundle is not None:
        context.load_verify_locations(cafile=str(network.ca_bundle))
    return context


def check_ca_bundle(network: NetworkSettings) -> None:
    """Raises UsageError if the config names a file that holds no certificate."""
    if network.ca_bundle is None:
        return
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    why = ""
    try:
        context.load_verify_locations(cafile=str(network.ca_bundle))
    except ssl.SSLError:
        why = "there is no certificate in it that can be read"
    except OSError as problem:
        why = problem.strerror or "it cannot be read"
    if why:
        raise UsageError(
            f"[network] ca-bundle: {network.ca_bundle} cannot be used: {why}; name a PEM file with"
            " -----BEGIN CERTIFICATE-----, or leave the key out to trust the system's certificates alone"
        )


class TlsSessions:
    """The newest TLS session of each host. A ticket is used once: TLS 1.3 issues a new one each time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, ssl.SSLSession] = OrderedDict()
        self._lock = threading.Lock()

    def pop(self, host: str) -> ssl.SSLSession | None:
        with self._lock:
            return self._kept.pop(host, None)

    def keep(self, host: str, session: ssl.SSLSession | None) -> None:
        if session is None:
            return
        with self._lock:
            self._kept[host] = session
            while len(self._kept) > KEPT_SESSIONS:
                self._kept.popitem(last=False)
