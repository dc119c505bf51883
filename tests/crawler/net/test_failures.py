"""Slugs and words come from types and codes."""

from __future__ import annotations

import errno
import os
import ssl

import pytest

from crawler.net.codings import BadEncoding, TooCostly
from crawler.net.connection import BadHostName
from crawler.net.failures import CONNECTION_WORDS, EXPECTED, REASON_WORDS, VERIFY_WORDS, describe
from crawler.net.http1 import BadResponse, EarlyClose, TooLarge
from crawler.net.resolver import Unresolvable


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, "the text is not looked at")
    error.reason = reason
    return error


def certificate_error(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "the text is not looked at")
    error.verify_code, error.verify_message = code, "in OpenSSL's words"
    return error


@pytest.mark.parametrize(
    ("error", "slug"),
    [
        (Unresolvable("dns", "x has no address"), "dns"),
        (Unresolvable("address-blocked", "x is private"), "address-blocked"),
        (TimeoutError(), "timeout"),
        (OSError(errno.ETIMEDOUT, "x"), "timeout"),
        (BadHostName(), "tls"),
        (ssl.SSLError(1, "x"), "tls"),
        (ssl.SSLEOFError(8, "x"), "tls"),
        (ssl.SSLZeroReturnError(6, "x"), "tls"),
        (EarlyClose("x", 0), "connection-reset"),
        (EarlyClose("x", 1), "early-close"),
        (BadResponse("x"), "bad-response"),
        (TooLarge("x"), "too-large"),
        (BadEncoding("x"), "bad-encoding"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "x"), "connection-refused"),
        (ConnectionResetError(errno.ECONNRESET, "x"), "connection-reset"),
        (BrokenPipeError(errno.EPIPE, "x"), "connection-reset"),
        (OSError(errno.ENETUNREACH, "x"), "connection-failed"),
        (OSError(errno.EPROTO, os.strerror(errno.EPROTO)), "connection-failed"),
        (OSError("without a number"), "connection-failed"),
        (ValueError("x"), "bad-response"),
        (UnicodeDecodeError("utf-8", b"x", 0, 1, "x"), "bad-response"),
        (MemoryError(), "local-shortage"),
        (OSError(errno.EMFILE, "x"), "local-shortage"),
        (OSError(errno.ENFILE, "x"), "local-shortage"),
        (OSError(errno.ENOMEM, "x"), "local-shortage"),
        (TooCostly("x"), "too-costly"),
    ],
)
def test_every_expected_error_has_its_slug_and_words(error: Exception, slug: str) -> None:
    assert isinstance(error, EXPECTED)
    found, words = describe(error)
    assert found == slug
    assert words


@pytest.mark.parametrize(("number", "expected"), CONNECTION_WORDS.items())
def test_connection_errors_go_by_their_number(number: int, expected: tuple[str, str]) -> None:
    assert describe(OSError(number, "another text")) == expected


@pytest.mark.parametrize(("reason", "words"), REASON_WORDS.items())
def test_tls_errors_go_by_their_reason(reason: str, words: str) -> None:
    assert describe(tls_error(reason)) == ("tls", words)


def test_a_reason_that_is_not_listed_is_told_as_it_is() -> None:
    assert describe(tls_error("SOMETHING_NEW")) == ("tls", "something new")


@pytest.mark.parametrize(("code", "words"), VERIFY_WORDS.items())
def test_certificate_errors_go_by_their_code(code: int, words: str) -> None:
    assert describe(certificate_error(code)) == ("tls", words)


def test_a_code_that_is_not_listed_is_told_in_openssl_s_words() -> None:
    assert describe(certificate_error(999)) == ("tls", "the certificate is not trusted (in OpenSSL's words)")


def test_a_mistake_in_the_program_is_not_expected() -> None:
    assert not isinstance(AttributeError(), EXPECTED)


def test_a_failure_in_tls_while_memory_is_short_is_a_local_shortage() -> None:
    """OpenSSL reports a failed allocation as any error: here as a key that is too weak."""
    error = tls_error("EE_KEY_TOO_SMALL")
    assert describe(error, is_memory_short=lambda: True)[0] == "local-shortage"
    assert describe(error, is_memory_short=lambda: False) == ("tls", "the certificate's key is too weak")
    assert describe(tls_error("MALLOC_FAILURE"), is_memory_short=lambda: False)[0] == "local-shortage"
