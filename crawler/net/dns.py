"""Name servers, asked through c-ares (`pycares`): a look-up never blocks the caller and can be cancelled.

c-ares reads /etc/hosts and /etc/resolv.conf (name servers, search list, `options`), in the order of nsswitch.conf, and
follows changes to them. Other sources of nsswitch.conf (mDNS, LDAP, `myhostname`) are not asked. `getaddrinfo` would
ask them, but it blocks a thread for as long as a name server is silent, and nothing can end it.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, Protocol

import pycares


class LookupFailure(Enum):
    """The reason why a look-up brought no address."""

    NO_SUCH_NAME = auto()
    NOT_A_NAME = auto()
    NO_ANSWER = auto()  # no name server gave a usable answer: it may do so later


_FINAL = {
    pycares.errno.ARES_ENOTFOUND: LookupFailure.NO_SUCH_NAME,
    pycares.errno.ARES_ENODATA: LookupFailure.NO_SUCH_NAME,
    pycares.errno.ARES_EBADNAME: LookupFailure.NOT_A_NAME,
    pycares.errno.ARES_EBADSTR: LookupFailure.NOT_A_NAME,
}

Found = list[str] | LookupFailure


class NameLookup(Protocol):
    """A source of addresses. `done` is called once, from any thread, possibly before `look_up` returns."""

    def look_up(self, name: str, done: Callable[[Found], None]) -> None: ...

    def close(self) -> None: ...


class DnsClient:
    """Looks names up over the network. For every thread.

    The channel and its thread are made for the first look-up: a crawl of mapped hosts needs neither.
    `servers` (`address` or `address:port`) replace those of /etc/resolv.conf.
    """

    def __init__(self, servers: Sequence[str] = ()) -> None:
        self._servers = tuple(servers)
        self._channel: pycares.Channel | None = None
        self._lock = threading.Lock()
        self._is_closed = False

    def look_up(self, name: str, done: Callable[[Found], None]) -> None:
        """Ask for all addresses of a name. c-ares gives up by itself after its tries, within half a minute."""

        def on_answer(result: Any, error: int | None) -> None:
            done(_found(result, error))

        try:
            channel = self._open()
            if channel is None:
                return done(LookupFailure.NO_ANSWER)
            channel.getaddrinfo(name, None, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM, callback=on_answer)
        except (UnicodeError, ValueError):
            done(LookupFailure.NOT_A_NAME)
        except (pycares.AresError, RuntimeError):  # no channel could be made; or it was closed in the meantime
            done(LookupFailure.NO_ANSWER)

    def close(self) -> None:
        """Cancel every look-up under way (their callers hear NO_ANSWER) and end the thread."""
        with self._lock:
            self._is_closed = True
            channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()

    def _open(self) -> pycares.Channel | None:
        with self._lock:
            if self._channel is None and not self._is_closed:
                # Not with `lookups=`: pycares 5.2 frees that text before c-ares has read it.
                self._channel = pycares.Channel(servers=self._servers or None)
            return self._channel


def _found(result: Any, error: int | None) -> Found:
    if error is not None:
        return _FINAL.get(error, LookupFailure.NO_ANSWER)
    addresses = (node.addr[0] for node in result.nodes)
    return list(dict.fromkeys(text.decode("ascii") if isinstance(text, bytes) else text for text in addresses))
