"""Accounts, bearer tokens and single-use links, in `workspace/web/accounts.json`, which only its owner can read.

Passwords are kept as argon2 hashes, tokens and links as SHA-256 (they are random and long). There is no account, no
password and no secret before somebody makes one. `sumi-ripple user` and the server write the file, one at a time.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from crawler.model.errors import SumiError
from crawler.workspace.atomic import read_own, write_atomically
from crawler.workspace.clock import now_text
from crawler.workspace.door import RoleTaken, Workspace
from reporter.web.routing import Role

if TYPE_CHECKING:
    from argon2 import PasswordHasher

OWNER = "owner"  # who came in by a single-use link: the person at this machine
LINK_SECONDS = 15 * 60
SHORTEST_PASSWORD = 10
_LONGEST_PASSWORD = 1000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_TOKEN = "sumi_"


class AccountError(SumiError):
    """An account cannot be made or changed; the text says why."""


class Token(msgspec.Struct, frozen=True):
    """A bearer token. `hash` is the SHA-256 of it."""

    name: str
    hash: str
    created: str


class Account(msgspec.Struct, frozen=True):
    """`generation` counts changes that end its sessions, `role_changes` those that only renew them."""

    name: str
    role: str
    password: str  # argon2
    created: str
    generation: int = 0
    role_changes: int = 0
    tokens: tuple[Token, ...] = ()


class _Link(msgspec.Struct, frozen=True):
    hash: str
    until: float


class _File(msgspec.Struct, frozen=True):
    v: int = 1
    accounts: tuple[Account, ...] = ()
    links: tuple[_Link, ...] = ()


class WebAccounts:
    """The accounts of one workspace. Read again whenever the file has changed."""

    def __init__(self, workspace: Workspace, root: Path, clock: Callable[[], float] = time.time) -> None:
        self._workspace = workspace
        self._path = root / "web" / "accounts.json"
        self._clock = clock
        self._stamp: tuple[int, int] | None = None
        self._file = _File()

    # -- questions -------------------------------------------------------------------------------------

    def all(self) -> tuple[Account, ...]:
        return self._read().accounts

    def find(self, name: str) -> Account | None:
        return next((account for account in self.all() if account.name == name), None)

    def by_token(self, token: str) -> tuple[Account, Token] | None:
        wanted = hash_of(token)
        for account in self.all():
            for each in account.tokens:
                if secrets.compare_digest(each.hash, wanted):
                    return account, each
        return None

    def has_token(self, hashed: str) -> bool:
        """Is there a bearer token of this hash?"""
        return any(each.hash == hashed for account in self.all() for each in account.tokens)

    # -- changes ---------------------------------------------------------------------------------------

    def add(self, name: str, role: Role, password: str) -> None:
        if _NAME.fullmatch(name) is None or name == OWNER:
            raise AccountError(
                f"{name[:80]!r} cannot be the name of an account: give lower-case letters, digits, dots and dashes,"
                f" at most 64, and not {OWNER!r}"
            )
        require_password(password)
        hashed = hasher().hash(password)
        with self._changing() as file:
            if any(account.name == name for account in file.accounts):
                raise AccountError(
                    f"there is an account {name} already; to change it: sumi-ripple user password {name}"
                )
            made = Account(name, role.word, hashed, now_text())
            self._write(msgspec.structs.replace(file, accounts=(*file.accounts, made)))

    def remove(self, name: str) -> None:
        with self._changing() as file:
            self._require(file, name)
            left = tuple(account for account in file.accounts if account.name != name)
            self._write(msgspec.structs.replace(file, accounts=left))

    def set_password(self, name: str, password: str) -> None:
        require_password(password)
        hashed = hasher().hash(password)
        self._change(name, lambda old: {"password": hashed, "generation": old.generation + 1})

    def set_role(self, name: str, role: Role) -> None:
        self._change(name, lambda old: {"role": role.word, "role_changes": old.role_changes + 1})

    def add_token(self, name: str, label: str) -> str:
        """Make a bearer token; it is shown this once and cannot be read again."""
        token = _TOKEN + secrets.token_urlsafe(32)
        made = Token(label or "token", hash_of(token), now_text())
        self._change(name, lambda old: {"tokens": (*old.tokens, made)})
        return token

    def remove_tokens(self, name: str) -> None:
        self._change(name, lambda old: {"tokens": ()})

    def add_link(self) -> str:
        """The token of a link that signs the owner in, once, within a quarter of an hour."""
        token = secrets.token_urlsafe(32)
        with self._changing() as file:
            link = _Link(hash_of(token), self._clock() + LINK_SECONDS)
            self._write(msgspec.structs.replace(file, links=(*self._valid(file), link)))
        return token

    def use_link(self, token: str) -> bool:
        """Was it valid? It is not from now on."""
        wanted = hash_of(token)
        if not any(secrets.compare_digest(link.hash, wanted) for link in self._valid(self._read())):
            return False
        with self._changing() as file:
            valid = self._valid(file)
            left = tuple(link for link in valid if not secrets.compare_digest(link.hash, wanted))
            self._write(msgspec.structs.replace(file, links=left))
            return len(left) < len(valid)

    def _valid(self, file: _File) -> tuple[_Link, ...]:
        return tuple(link for link in file.links if link.until > self._clock())

    def _change(self, name: str, members: Callable[[Account], dict[str, object]]) -> None:
        with self._changing() as file:
            self._require(file, name)
            changed = tuple(
                msgspec.structs.replace(account, **members(account)) if account.name == name else account
                for account in file.accounts
            )
            self._write(msgspec.structs.replace(file, accounts=changed))

    def _require(self, file: _File, name: str) -> None:
        if not any(account.name == name for account in file.accounts):
            raise AccountError(f"there is no account {name[:80]!r}; to make it: sumi-ripple user add {name[:80]}")

    # -- the file --------------------------------------------------------------------------------------

    def _read(self) -> _File:
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return _File()
        stamp = found.st_mtime_ns, found.st_ino
        if stamp != self._stamp:
            try:
                self._file = msgspec.json.decode(read_own(self._path), type=_File)
            except (ValueError, OSError) as problem:
                raise AccountError(f"{self._path} cannot be read: {problem}; mend it, or delete it") from None
            self._stamp = stamp
        return self._file

    def _write(self, file: _File) -> None:
        write_atomically(self._path, msgspec.json.format(msgspec.json.encode(file)))
        self._stamp = None

    @contextmanager
    def _changing(self) -> Iterator[_File]:
        """The file as it is, while nobody else changes it."""
        self._workspace.prepare()
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        for attempt in range(40):
            try:
                role = self._workspace.take_role("accounts")
                break
            except RoleTaken:
                if attempt == 39:
                    raise
        try:
            yield self._read()
        finally:
            role.release()


def require_password(password: str) -> None:
    if not SHORTEST_PASSWORD <= len(password) <= _LONGEST_PASSWORD:
        raise AccountError(f"a password has {SHORTEST_PASSWORD} to {_LONGEST_PASSWORD} characters")


def hasher() -> PasswordHasher:
    """argon2id with the parameters that its authors recommend."""
    from argon2 import PasswordHasher

    return PasswordHasher()


def is_password(hashed: str, password: str) -> bool:
    """Costs what a hash costs, whatever the answer."""
    from argon2.exceptions import InvalidHashError, VerificationError

    try:
        return hasher().verify(hashed, password[:_LONGEST_PASSWORD])
    except (VerificationError, InvalidHashError):
        return False


def hash_of(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def role_of(word: str) -> Role:
    """The role that an account's word names; anything else has none."""
    return {"user": Role.USER, "admin": Role.ADMIN}.get(word, Role.ANONYMOUS)
