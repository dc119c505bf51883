"""PURE. What a hook says: the JSON of an event, its signature, and the same as an e-mail."""

from __future__ import annotations

import hashlib
import hmac
from typing import Any

import orjson

EVENTS = (
    *("run-finished", "run-failed", "limit-reached", "alert-raised", "alert-cleared"),
    *("outage-begun", "outage-over", "test"),
)
SIGNATURE = "Sumi-Signature"


def body_of(event: str, number: int, at: str, facts: dict[str, Any]) -> bytes:
    """The JSON of an event. Members may be added to version 1, never removed."""
    return orjson.dumps({"v": 1, "kind": "hook", "event": event, "delivery": number, "at": at, **facts})


def signature(secret: str, timestamp: int, body: bytes) -> str:
    """`t=…,v1=…`: HMAC-SHA-256 over the timestamp, a dot and the body. The receiver checks both, and the age."""
    digest = hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={timestamp},v1={digest}"


def mail_of(body: bytes, to: str, sender: str) -> bytes:
    """The event as a message for `sendmail -t` and its like."""
    from email.message import EmailMessage  # few crawls send any

    facts = orjson.loads(body)
    message = EmailMessage()
    message["To"] = to
    message["From"] = sender
    words = str(facts.get("words", "")).splitlines()
    message["Subject"] = f"Sumi-Ripple: {facts['event']}" + (f": {words[0][:120]}" if words else "")
    lines = [f"{name}: {value}" for name, value in facts.items() if name not in ("v", "kind")]
    message.set_content("\n".join(lines) + "\n")
    return message.as_bytes()
