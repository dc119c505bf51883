"""A TLS 1.3 server that floods its client with session tickets, as fast as a client can take them and faster.

OpenSSL makes its tickets one by one, more slowly than a client reads them. So the handshake is OpenSSL's, and from
there on the records are made here: the server's traffic secret is in the key log, and one record of 16 KB holds some
800 tickets. A client that reads its socket through `SSL_read` gets no data, and is not given back control, for as long
as they come: a `recv` with a timeout of 2 s returned after 15 s, when the server ended.
"""

from __future__ import annotations

import hmac
import os
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

_HANDSHAKE = 22  # content type
_LONGEST_RECORD = 16_384 - 256
# NewSessionTicket: lifetime, age_add, nonce, ticket, no extensions (RFC 8446, 4.6.1)
_BODY = struct.pack("!II", 7200, 1) + b"\x01\x00" + b"\x00\x01t" + b"\x00\x00"
TICKET = b"\x04" + len(_BODY).to_bytes(3, "big") + _BODY


def _expand_label(secret: bytes, label: bytes, length: int, digest: str) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446, 7.1); one round is enough for keys and nonces."""
    full = b"tls13 " + label
    info = length.to_bytes(2, "big") + bytes([len(full)]) + full + b"\x00" + b"\x01"
    return hmac.new(secret, info, digest).digest()[:length]


def _traffic_secret(key_log: Path) -> bytes:
    for line in key_log.read_text().splitlines():
        if line.startswith("SERVER_TRAFFIC_SECRET_0 "):
            return bytes.fromhex(line.split()[2])
    raise ValueError("no secret of TLS 1.3 in the key log")


def records(sock: ssl.SSLSocket, key_log: Path, plain: bytes) -> Iterator[bytes]:
    """This text as handshake records of the server, one after the other, without end."""
    name = (sock.cipher() or ("",))[0]
    digest = "sha384" if name.endswith("SHA384") else "sha256"
    secret = _traffic_secret(key_log)
    key_length = 16 if "AES_128" in name else 32
    key = _expand_label(secret, b"key", key_length, digest)
    nonce = int.from_bytes(_expand_label(secret, b"iv", 12, digest), "big")
    seal = ChaCha20Poly1305(key) if "CHACHA20" in name else AESGCM(key)
    inner = plain + bytes([_HANDSHAKE])
    header = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
    for number in range(1 << 62):
        yield header + seal.encrypt((nonce ^ number).to_bytes(12, "big"), inner, header)


def prepare(context: ssl.SSLContext, folder: Path) -> Path:
    """Make a context for one connection to flood; returns its key log."""
    key_log = folder / f"keys-{os.urandom(8).hex()}"
    context.num_tickets = 0  # its own ones would count as records
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.keylog_filename = str(key_log)
    return key_log


def flood(sock: ssl.SSLSocket, key_log: Path) -> Iterator[int]:
    """Send tickets over a connection that has sent no data yet; yields the bytes sent so far, until OSError."""
    sent = 0
    for record in records(sock, key_log, TICKET * (_LONGEST_RECORD // len(TICKET))):
        rest = memoryview(record)
        while rest:
            done = socket.socket.send(sock, rest)  # past the TLS layer
            sent += done
            rest = rest[done:]
        yield sent
