"""Who is signed in. A session's id is in a cookie; here and in `workspace/web/sessions.json` only its hash is kept.

A session ends after 24 hours, when it is signed out, and when its account is removed or gets another password. When its
account gets another role, it goes on under a new id.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from crawler.workspace.atomic import read_own, write_atomically
from reporter.web.routing import Role
from reporter.web.web_accounts import OWNER, WebAccounts, hash_of, role_of

SESSION_SECONDS = 24 * 3600
_MOST = 10_000  # sessions; the oldest give way


class Session(msgspec.Struct, frozen=True):
    account: str
    until: float
    generation: int = 0
    role_changes: int = 0


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who calls. `name` is the account, "" for nobody; `new_id`: the session's id from now on, if it was renewed."""

    name: str = ""
    role: Role = Role.ANONYMOUS
    address: str = ""
    session: str = ""  # the hash of its id, or of the bearer token
    by_cookie: bool = False
    new_id: str | None = None

    @property
    def key(self) -> str:
        """Whom limits count for."""
        return f"account:{self.name}" if self.name else f"address:{self.address}"


class WebSessions:
    def __init__(self, root: Path, accounts: WebAccounts, clock: Callable[[], float] = time.time) -> None:
        self._path = root / "web" / "sessions.json"
        self._accounts = accounts
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions = self._read()

    def begin(self, account: str, old: str = "") -> str:
        """A new session; returns its id. `old`: the hash of the session that it replaces."""
        found = self._accounts.find(account)
        with self._lock:
            self._sessions.pop(old, None)
            made = self._add(account, found.generation if found else 0, found.role_changes if found else 0)
            self._write()
        return made

    def end(self, session: str) -> None:
        with self._lock:
            if self._sessions.pop(session, None) is not None:
                self._write()

    def visitor(self, session_id: str, address: str) -> Visitor | None:
        """The visitor with this session; None: there is none, or it has ended."""
        hashed = hash_of(session_id)
        with self._lock:
            session = self._sessions.get(hashed)
            if session is None:
                return None
            account = None if session.account == OWNER else self._accounts.find(session.account)
            is_over = session.account != OWNER and (account is None or account.generation != session.generation)
            if is_over or session.until <= self._clock():
                del self._sessions[hashed]
                self._write()
                return None
            new_id = None
            if account is not None and account.role_changes != session.role_changes:
                del self._sessions[hashed]
                new_id = self._add(session.account, account.generation, account.role_changes, session.until)
                hashed = hash_of(new_id)
                self._write()
            role = Role.ADMIN if account is None else role_of(account.role)
        return Visitor(session.account, role, address, hashed, by_cookie=True, new_id=new_id)

    def is_valid(self, session: str) -> bool:
        """Has the session of this hash not ended? For a stream, which outlives the check at its start."""
        with self._lock:
            found = self._sessions.get(session)
            if found is None or found.until <= self._clock():
                return False
            if found.account == OWNER:
                return True
            account = self._accounts.find(found.account)
            return account is not None and account.generation == found.generation

    def _add(self, account: str, generation: int, role_changes: int, until: float | None = None) -> str:
        now = self._clock()
        self._sessions = {key: each for key, each in self._sessions.items() if each.until > now}
        while len(self._sessions) >= _MOST:
            del self._sessions[next(iter(self._sessions))]
        session_id = secrets.token_urlsafe(32)
        made = Session(account, until or now + SESSION_SECONDS, generation, role_changes)
        self._sessions[hash_of(session_id)] = made
        return session_id

    def _read(self) -> dict[str, Session]:
        try:
            return msgspec.json.decode(read_own(self._path), type=dict[str, Session])
        except (OSError, ValueError):
            return {}  # nobody is signed in then

    def _write(self) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(self._path, msgspec.json.encode(self._sessions))
