"""Kills the process that imports it at a chosen moment: before, after or in the middle of a write.

Loaded by Python itself (through PYTHONPATH) in every process of a tortured crawl. The environment names a folder
of tokens, one file each, called `<role>@<deed>@<when>@<count>`: the role's process dies at its count-th such deed.
A token is used up by the one who dies of it, so that the process started in its place lives on.
"""

from __future__ import annotations

import os
import signal
import sqlite3
from collections import Counter
from multiprocessing import process
from pathlib import Path

DEEDS = {b'{"': "write", b"\x28\xb5": "blob"}  # by the first bytes: a line of a spool, a frame of the store
_TOKENS = os.environ.get("SUMI_RIPPLE_TORTURE")


def _role() -> str:
    name = process.current_process().name
    return "supervisor" if name == "MainProcess" else name.split("-")[0]


class _Executioner:
    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.due: dict[tuple[str, str, int], set[str]] = {}
        for token in self.folder.iterdir():
            role, deed, when, count = token.name.split("@")
            self.due.setdefault((deed, when, int(count)), set()).add(role)

    def is_due(self, deed: str, when: str) -> bool:
        """Is it this process's turn? (Then its token is gone.)"""
        self.counts[deed, when] += 1
        count = self.counts[deed, when]
        role = _role()
        if role not in self.due.get((deed, when, count), ()):
            return False
        try:
            (self.folder / f"{role}@{deed}@{when}@{count}").unlink()
        except FileNotFoundError:
            return False
        return True

    def pass_by(self, deed: str, when: str) -> None:
        if self.is_due(deed, when):
            os.kill(os.getpid(), signal.SIGKILL)


def _install(executioner: _Executioner) -> None:
    write, pwrite, fsync, replace = os.write, os.pwrite, os.fsync, os.replace
    kill, connect = os.kill, sqlite3.connect

    def watched_write(descriptor, data):
        deed = DEEDS.get(bytes(data[:2]))
        if deed is None:  # bells and terminals are of no interest
            return write(descriptor, data)
        deeds = [deed, *(kind for kind in ("guess", "sitemap") if f'"kind":"{kind}"'.encode() in bytes(data))]
        for deed in deeds:
            executioner.pass_by(deed, "before")
        if sum(executioner.is_due(deed, "torn") for deed in deeds):  # each of them counts
            write(descriptor, data[: len(data) // 2])
            kill(os.getpid(), signal.SIGKILL)
        written = write(descriptor, data)
        for deed in deeds:
            executioner.pass_by(deed, "after")
        return written

    def watched(deed, act):
        def wrapper(*arguments, **options):
            executioner.pass_by(deed, "before")
            result = act(*arguments, **options)
            executioner.pass_by(deed, "after")
            return result

        return wrapper

    class WatchedConnection(sqlite3.Connection):
        def execute(self, sql, *parameters):
            if sql != "COMMIT":
                return super().execute(sql, *parameters)
            executioner.pass_by("commit", "before")
            result = super().execute(sql, *parameters)
            executioner.pass_by("commit", "after")
            return result

    os.write = watched_write
    os.pwrite = watched("pwrite", pwrite)
    os.fsync = watched("fsync", fsync)
    os.replace = watched("replace", replace)
    sqlite3.connect = lambda *arguments, **options: connect(*arguments, **{"factory": WatchedConnection, **options})


if _TOKENS and Path(_TOKENS).is_dir():
    _install(_Executioner(_TOKENS))


_NO_NAMES = os.environ.get("SUMI_RIPPLE_NO_NAMES")


def _watch_names(flag: Path) -> None:
    """While this file is there, no name server answers. Connections that are open already need none."""
    from crawler.net.resolver import AddressResolver, Unresolvable

    addresses = AddressResolver.addresses

    def watched_addresses(self, host, *arguments):
        if flag.exists():
            raise Unresolvable("dns-temporary", f"no name server answered for {host}")
        return addresses(self, host, *arguments)

    AddressResolver.addresses = watched_addresses


if _NO_NAMES:
    _watch_names(Path(_NO_NAMES))
