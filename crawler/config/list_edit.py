"""PURE. Edits of the lists in a config's text: an entry is added or removed, every other character stays.

The text is cut at its table headers, and each piece is read by itself: tomlkit would put lists that take turns
([[quality]], [[stub]], [[quality]]) into another order. A comment after a blank line belongs to the table that follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import tomli
import tomlkit
from tomlkit.items import AoT, Table, Whitespace

from crawler.config import checks
from crawler.model.errors import UsageError
from crawler.model.shown_text import domain_words

LISTS = ("quality", "blacklist", "stub")
_HEADER = re.compile(r"^[ \t]*\[", re.M)


class EditError(UsageError):
    """The edit cannot be made; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A new entry of a list."""

    domain: str
    seeds: tuple[str, ...] = ()
    note: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edited:
    """The new text, the list with the entry, and the lists that the domain has left."""

    text: str
    name: str
    left: tuple[str, ...]


def put_in_list(text: str, name: str, entry: Entry) -> Edited:
    """The text with `entry` in [[name]], and no entry of the same domain in another list. Raises EditError."""
    pieces = _pieces(text)
    if any(_holds(piece, name, entry.domain) for piece in pieces):
        raise EditError(f"{domain_words(entry.domain)} is in [[{name}]] already")
    left = tuple(other for other in LISTS if any(_holds(piece, other, entry.domain) for piece in pieces))
    kept = []
    for piece in pieces:
        is_leaving = any(_holds(piece, other, entry.domain) for other in left)
        kept.append(_cut(piece, at_comment=True)[1] if is_leaving else piece)
    new = "".join(_added(kept, name, entry, "\r\n" if "\r\n" in text else "\n"))
    _check(text, new, name, entry)
    return Edited(new, name, left)


def put_note(text: str, entry: Entry) -> Edited:
    """The text with another note and other tags at the entry of a domain; empty ones are removed. Raises EditError."""
    pieces = _pieces(text)
    places = [(at, name) for at, piece in enumerate(pieces) for name in LISTS if _holds(piece, name, entry.domain)]
    if not places:
        raise EditError(
            f"{domain_words(entry.domain)} has no entry of its own in a list; accept, reject or stub it first"
        )
    at, name = places[0]
    pieces[at] = _noted(pieces[at], name, entry, "\r\n" if "\r\n" in text else "\n")
    new = "".join(pieces)
    wanted = tomli.loads(text)
    for each in wanted[name]:
        if _is_of(each, entry.domain):
            _set_note(each, entry)
    if _read(new) != wanted:
        raise EditError(
            f"the entry of {entry.domain} is written in a way that this program does not edit; do it by hand"
        )
    return Edited(new, name, ())


def _noted(piece: str, name: str, entry: Entry, newline: str) -> str:
    """The lines of an entry with its note and tags after its own keys; what follows a blank line stays behind them."""
    own, tail = _cut(piece)
    document = tomlkit.parse(own)
    _set_note(document[name][0], entry)
    new = tomlkit.dumps(document).replace("\r\n", "\n").replace("\n", newline)
    return new + (newline if tail and not new.endswith("\n") else "") + tail


def _set_note(table: Any, entry: Entry) -> None:
    for key, value in (("note", entry.note), ("tags", list(entry.tags))):
        if value:
            table[key] = value
        else:
            table.pop(key, None)


def _added(pieces: list[str], name: str, entry: Entry, newline: str) -> list[str]:
    """The pieces with the entry after the last one of its list, or at the end of the file."""
    block = _rendered(name, entry).replace("\n", newline)
    last = max((index for index, piece in enumerate(pieces) if _read(piece).keys() == {name}), default=None)
    if last is None:
        before = "".join(pieces)
        gap = "" if not before or before.endswith(newline * 2) else newline if before.endswith(newline) else newline * 2
        return [before, gap, block]
    own, tail = _cut(pieces[last])
    gap = newline if own.endswith("\n") else newline * 2
    return [*pieces[:last], own, gap, block, tail, *pieces[last + 1 :]]


def _rendered(name: str, entry: Entry) -> str:
    table = tomlkit.table()
    table.add("domain", entry.domain)
    if entry.seeds:
        table.add("seeds", list(entry.seeds))
    if entry.note:
        table.add("note", entry.note)
    if entry.tags:
        table.add("tags", list(entry.tags))
    entries = tomlkit.aot()
    entries.append(table)
    document = tomlkit.document()
    document.add(name, entries)
    return tomlkit.dumps(document).strip("\n") + "\n"


# -- pieces of a text: from one table header to the next -------------------------------------------------------


def _pieces(text: str) -> list[str]:
    """The text cut at its table headers. A line that begins like one inside a long value is none."""
    pieces: list[str] = []
    start = 0
    for found in _HEADER.finditer(text):
        if found.start() > start and _is_whole(text[start : found.start()]):
            pieces.append(text[start : found.start()])
            start = found.start()
    return [*pieces, text[start:]]


def _is_whole(piece: str) -> bool:
    try:
        tomli.loads(piece)
    except tomli.TOMLDecodeError:
        return False
    return True


def _read(piece: str) -> dict[str, Any]:
    try:
        return tomli.loads(piece)
    except tomli.TOMLDecodeError:
        return {}


def _holds(piece: str, name: str, domain: str) -> bool:
    """Is this piece the entry of that domain in that list?"""
    found = _read(piece)
    entries = found.get(name)
    if found.keys() != {name} or not isinstance(entries, list) or len(entries) != 1 or not isinstance(entries[0], dict):
        return False
    try:
        return checks.domain_pattern(entries[0].get("domain")) == domain
    except checks.Bad:
        return False


def _cut(piece: str, *, at_comment: bool = False) -> tuple[str, str]:
    """An entry in two: its own lines, and those after the first blank line, which belong to the next table.

    With `at_comment`, a comment right after its last key is no line of its own: no comment is ever removed.
    """
    table = next(iter(tomlkit.parse(piece).values()))
    body = (table[0] if isinstance(table, AoT) else table).value.body if isinstance(table, AoT | Table) else []
    last = max((index for index, (key, _) in enumerate(body) if key is not None), default=-1)
    after = range(last + 1, len(body))
    blank = next((i for i in after if at_comment or isinstance(body[i][1], Whitespace)), len(body))
    tail = "".join(item.as_string() for _, item in body[blank:])
    return (piece[: -len(tail)], tail) if tail and piece.endswith(tail) else (piece, "")


def _check(before: str, after: str, name: str, entry: Entry) -> None:
    """The new text says what the old one said, and the edit. Raises EditError: a file is never written on a guess."""
    wanted = tomli.loads(before)
    for other in LISTS:
        found = wanted.get(other)
        if isinstance(found, list):
            wanted[other] = [each for each in found if not _is_of(each, entry.domain)]
    added = {"domain": entry.domain, "seeds": list(entry.seeds), "note": entry.note, "tags": list(entry.tags)}
    wanted.setdefault(name, []).append({key: value for key, value in added.items() if value})
    try:
        is_so = {key: value for key, value in tomli.loads(after).items() if value != []} == {
            key: value for key, value in wanted.items() if value != []
        }
    except tomli.TOMLDecodeError:
        is_so = False
    if not is_so:
        raise EditError(
            f"the lists are not written as [[quality]], [[blacklist]] and [[stub]] tables; put {entry.domain} into "
            f"{name} by hand"
        )


def _is_of(table: Any, domain: str) -> bool:
    try:
        return isinstance(table, dict) and checks.domain_pattern(table.get("domain")) == domain
    except checks.Bad:
        return False
