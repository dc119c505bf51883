"""Exceptions of a request, turned into a stable slug and words for people: by types and codes, never by texts."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Callable

from crawler.model.messages import LOCAL_SHORTAGE
from crawler.net.codings import BadEncoding, TooCostly
from crawler.net.connection import BadHostName
from crawler.net.http1 import BadResponse, EarlyClose, TooLarge
from crawler.net.resolver import Unresolvable

SPARE_MEMORY = 4 * 1024 * 1024  # bytes, more than a TLS handshake takes

# All that a server, a network or a name server can cause. Any other exception is a mistake in this program.
EXPECTED = (
    Unresolvable,
    BadHostName,
    EarlyClose,
    BadResponse,
    TooLarge,
    BadEncoding,
    TooCostly,
    OSError,
    ValueError,  # also UnicodeError
    MemoryError,
)


def is_memory_short() -> bool:
    """Can this process not allocate a few megabytes any more?"""
    try:
        bytearray(SPARE_MEMORY)
    except MemoryError:
        return True
    return False


def describe(error: Exception, *, is_memory_short: Callable[[], bool] = is_memory_short) -> tuple[str, str]:
    """Slug and words of an error in `EXPECTED`. A shortage of this machine is never told as the server's fault."""
    if isinstance(error, MemoryError):
        return LOCAL_SHORTAGE, "this machine has no memory left"
    if isinstance(error, OSError) and error.errno in SHORTAGE_WORDS and not isinstance(error, ssl.SSLError):
        return LOCAL_SHORTAGE, SHORTAGE_WORDS[error.errno]
    if isinstance(error, Unresolvable):
        return error.slug, error.words
    if isinstance(error, TimeoutError):
        return "timeout", "no complete answer in time"
    if isinstance(error, BadHostName):
        return "tls", "no certificate can contain this host name"
    if isinstance(error, ssl.SSLError):
        # An allocation that fails inside OpenSSL comes out as any error: a key that is "too weak", a bad signature.
        if getattr(error, "reason", None) in _OUT_OF_MEMORY or is_memory_short():
            return LOCAL_SHORTAGE, "this machine has no memory left for TLS"
        return "tls", _tls_words(error)
    if isinstance(error, EarlyClose):
        return ("early-close" if error.got else "connection-reset"), str(error)
    for kind, slug in _BY_TYPE.items():
        if isinstance(error, kind):
            return slug, str(error)
    if isinstance(error, OSError):
        known = CONNECTION_WORDS.get(error.errno or 0)
        return known or ("connection-failed", (error.strerror or type(error).__name__).lower())
    return "bad-response", f"could not be read ({type(error).__name__})"


_BY_TYPE: dict[type[Exception], str] = {
    BadResponse: "bad-response",
    TooLarge: "too-large",
    BadEncoding: "bad-encoding",
    TooCostly: "too-costly",
}

VERIFY_WORDS = {
    9: "the certificate is not valid yet",
    10: "the certificate has expired",
    18: "the certificate is self-signed",
    19: "the certificate chain ends in an unknown self-signed certificate",
    20: "the certificate is from an unknown issuer",
    21: "the certificate is from an unknown issuer, or its chain is incomplete",
    23: "the certificate was revoked",
    24: "the certificate is from an issuer that is no authority",
    26: "the certificate is not meant for servers",
    62: "the certificate is for another host",
    64: "the certificate is for another address",
    66: "the certificate's key is too weak",
    68: "the certificate's signature is too weak",
}
REASON_WORDS = {
    "UNSUPPORTED_PROTOCOL": "the server speaks only an old version of TLS",
    "TLSV1_ALERT_PROTOCOL_VERSION": "the server speaks only an old version of TLS",
    "WRONG_SSL_VERSION": "the server speaks only an old version of TLS",
    "VERSION_TOO_LOW": "the server speaks only an old version of TLS",
    "WRONG_VERSION_NUMBER": "the server does not speak TLS on this port",
    "HTTP_REQUEST": "the server does not speak TLS on this port",
    "RECORD_LAYER_FAILURE": "the server does not speak TLS on this port",
    "SSLV3_ALERT_HANDSHAKE_FAILURE": "the server and this crawler have no common way to encrypt",
    "NO_CIPHERS_AVAILABLE": "the server and this crawler have no common way to encrypt",
    "DH_KEY_TOO_SMALL": "the server's key exchange is too weak",
    "EE_KEY_TOO_SMALL": "the certificate's key is too weak",
    "UNSAFE_LEGACY_RENEGOTIATION_DISABLED": "the server needs unsafe renegotiation",
    "TLSV1_UNRECOGNIZED_NAME": "the server does not know this host",
    "UNEXPECTED_EOF_WHILE_READING": "the server closed the connection during the handshake",
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the server wants a client certificate",
}


def _tls_words(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return VERIFY_WORDS.get(error.verify_code) or f"the certificate is not trusted ({error.verify_message})"
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return "the server closed the connection during the handshake"
    reason = getattr(error, "reason", None) or ""  # errors that the ssl module raises by itself have none
    return REASON_WORDS.get(reason) or reason.lower().replace("_", " ") or "the handshake failed"


CONNECTION_WORDS: dict[int, tuple[str, str]] = {
    errno.ECONNREFUSED: ("connection-refused", "the server refuses connections"),
    errno.ECONNRESET: ("connection-reset", "the server reset the connection"),
    errno.EPIPE: ("connection-reset", "the server closed the connection"),
    errno.ECONNABORTED: ("connection-reset", "the connection was aborted"),
    errno.EHOSTUNREACH: ("connection-failed", "there is no route to the server"),
    errno.ENETUNREACH: ("connection-failed", "there is no route to the server's network"),
    errno.EADDRNOTAVAIL: ("connection-failed", "no local address or port is free for this"),
}
SHORTAGE_WORDS: dict[int | None, str] = {
    errno.EMFILE: "too many open files in this process",
    errno.ENFILE: "too many open files on this machine",
    errno.ENOMEM: "this machine has no memory left",
    errno.ENOBUFS: "this machine has no memory left for connections",
}
_OUT_OF_MEMORY = frozenset({"MALLOC_FAILURE"})
