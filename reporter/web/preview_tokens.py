"""Tokens that a preview hands out and a deletion must bring: what is deleted is what was shown."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable

VALID = 600.0  # seconds
_MOST = 1000


class PreviewTokens:
    """A token is good for one deletion, by the same visitor, of exactly what was shown."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._tokens: dict[str, tuple[str, str, float]] = {}

    def make(self, who: str, what: str) -> str:
        token = secrets.token_urlsafe(18)
        now = self._clock()
        with self._lock:
            self._tokens = {key: each for key, each in self._tokens.items() if each[2] > now}
            while len(self._tokens) >= _MOST:
                del self._tokens[next(iter(self._tokens))]
            self._tokens[token] = who, what, now + VALID
        return token

    def take(self, token: str, who: str, what: str) -> bool:
        """Was this the token of such a preview? It is used up now."""
        with self._lock:
            found = self._tokens.pop(token, None)
        return found is not None and found[:2] == (who, what) and found[2] > self._clock()
