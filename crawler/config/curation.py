"""A curator's decisions, written into the config file: accept, reject and stub a domain, put a note and tags to its
entry, and take that back.

The file is replaced as a whole, after the new text was loaded like any config. Every edit is kept in the workspace's
document `edits` before it is made, with the text before and after it: undo puts the text before it back, if nobody has
changed the file since.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from crawler.config import checks
from crawler.config.list_edit import EditError, Entry, put_in_list, put_note
from crawler.config.load import ConfigError, load_text, read_text
from crawler.model.settings import Config
from crawler.model.shown_text import cut, domain_words
from crawler.rules.lists import Classifier
from crawler.workspace.atomic import write_atomically
from crawler.workspace.clock import now_text
from crawler.workspace.door import Workspace
from crawler.workspace.opening import open_workspace

_DOCUMENT = "edits"
_KEPT = 50  # edits that can be undone
_BOM = "\ufeff"
LIST_OF = {"accept": "quality", "reject": "blacklist", "stub": "stub"}
NOTE = "note"  # the command of a decision that changes note and tags alone
CLASS_OF = {"quality": "quality", "blacklist": "blacklisted", "stub": "stubbed"}


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision about a domain. `command`: accept, reject, stub; or note: note and tags of its entry become these."""

    command: str
    domain: str
    note: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Made:
    """A decision that is in the file now: the config before and after it, and the lists that the domain left."""

    domain: str
    list_name: str
    left: tuple[str, ...]
    before: Config
    after: Config


def decide(config: Config, decision: Decision) -> Made:
    """Write a decision into the file of `config`. Raises EditError and ConfigError; then nothing was changed."""
    path = _file_of(config)
    workspace = open_workspace(config)
    workspace.prepare()
    role = workspace.take_role("curator")
    try:
        text = read_text(path)
        made, new = _made(config, decision, text)
        _remember(workspace, _read(workspace), decision.command, made.domain, path, text, new)
        _write(path, new)
    finally:
        role.release()
    return made


def foresee(config: Config, decision: Decision) -> Made:
    """The config as it would be after a decision; nothing is written. Raises EditError and ConfigError."""
    return _made(config, decision, read_text(_file_of(config)))[0]


def _made(config: Config, decision: Decision, text: str) -> tuple[Made, str]:
    """The decision, and the text of the file that it makes of this one."""
    entry = _entry(decision)
    edited = put_note(text, entry) if decision.command == NOTE else put_in_list(text, LIST_OF[decision.command], entry)
    after = _loaded(_file_of(config), edited.text, config)
    if decision.command != NOTE:
        _require_effect(config, after, entry.domain, edited.name)
    return Made(entry.domain, edited.name, edited.left, config, after), edited.text


def decisions(config: Config) -> list[tuple[str, str, str]]:
    """(time, command, domain) of the decisions about this file that are on record, newest first."""
    path = str(_file_of(config))
    edits = [edit for edit in _read(open_workspace(config)) if edit["path"] == path]
    return [(str(edit.get("at", "")), str(edit["command"]), str(edit["domain"])) for edit in reversed(edits)]


def undo(config: Config, domain: str | None) -> tuple[str, str, Config]:
    """Take the newest decision back; returns its command, its domain and the config as it is then. Raises EditError.

    A `domain` must be that of the newest decision.
    """
    path = _file_of(config)
    workspace = open_workspace(config)
    workspace.prepare()
    role = workspace.take_role("curator")
    try:
        text = read_text(path)
        edits = _read(workspace)
        while edits and edits[-1]["path"] == str(path) and edits[-1]["before"] == text:
            edits.pop()  # recorded, but the program was killed before it wrote the file; or undone and not recorded yet
        if not edits or edits[-1]["path"] != str(path):
            raise EditError(f"there is nothing to undo: no decision about {path} is on record in {workspace.name}")
        last = edits.pop()
        command, decided = str(last["command"]), str(last["domain"])
        if domain is not None and _pattern(domain) != decided:
            raise EditError(
                f"the newest decision is `{command} {decided}`; undo that first, by --undo without a domain"
            )
        if last["after"] != text:
            raise EditError(
                f"{path} was changed after `{command} {decided}`, so that is not undone; "
                + (f"take {decided} out of [[{LIST_OF[command]}]] by hand" if command in LIST_OF else "do it by hand")
            )
        after = _loaded(path, str(last["before"]), config)
        _write(path, str(last["before"]))
        workspace.write_document(_DOCUMENT, _dump(edits))
    finally:
        role.release()
    return command, decided, after


# -- checks ----------------------------------------------------------------------------------------------------


def _file_of(config: Config) -> Path:
    assert config.source is not None, "the config was loaded from a file"
    return config.source.resolve()


def _entry(decision: Decision) -> Entry:
    domain = _pattern(decision.domain)
    try:
        note, tags = checks.note(decision.note), checks.tags(list(decision.tags))
    except checks.Bad as problem:
        raise EditError(f"a note or tag that is not allowed; allowed: {problem}") from None
    seeds = (f"https://{domain.removeprefix('*.')}/",) if decision.command == "accept" else ()
    return Entry(domain, seeds, note, tags)


def _pattern(text: str) -> str:
    try:
        return str(checks.domain_pattern(text))
    except checks.Bad as problem:
        raise EditError(f"{cut(text, 100)!r} is not a domain; give {cut(str(problem), 200)}") from None


def _loaded(path: Path, text: str, config: Config) -> Config:
    """The config that the text would be, in the workspace that is in use."""
    try:
        return load_text(path, text, workspace=config.workspace)
    except ConfigError as problem:
        wrong = "; ".join(str(mistake) for mistake in problem.mistakes) or str(problem)
        raise EditError(f"{path} is left as it is, because it would not be a valid config then: {wrong}") from None


def _require_effect(before: Config, after: Config, domain: str, name: str) -> None:
    """Raise EditError if the domain's class would not be the one that was asked for, or is that already."""
    base = domain.removeprefix("*.")
    was, now = Classifier(before).classify(base), Classifier(after).classify(base)
    is_in_part = bool(was.parts) and not was.origins  # then it may be accepted as a whole
    if not domain.startswith("*.") and was.klass == CLASS_OF[name] and not is_in_part:
        raise EditError(f'{domain_words(domain)} is {was.klass} already, by "{was.rule}" in [[{name}]]')
    if now.klass != CLASS_OF[name]:
        strong = {"blacklisted": "blacklist", "stubbed": "stub"}[now.klass]
        raise EditError(
            f'{domain_words(domain)} would stay {now.klass}: "{now.rule}" in [[{strong}]] catches it;'
            " take that out of the file first"
        )


# -- the file and the record of edits --------------------------------------------------------------------------


def _write(path: Path, text: str) -> None:
    content = path.read_bytes()
    has_bom = content.startswith(_BOM.encode())
    new = (_BOM if has_bom else "") + text
    try:
        write_atomically(path, new.encode("utf-8"), mode=path.stat().st_mode & 0o7777)
    except OSError as problem:
        raise EditError(f"{path} cannot be written: {problem.strerror}; nothing was changed") from None


def _read(workspace: Workspace) -> list[dict[str, Any]]:
    try:
        found = orjson.loads(workspace.document(_DOCUMENT) or b"")
        edits = found["edits"]
        return [edit for edit in edits if {"command", "domain", "path", "before", "after"} <= edit.keys()]
    except (ValueError, KeyError, TypeError, AttributeError):
        return []


def _remember(
    workspace: Workspace, edits: list[dict[str, Any]], command: str, domain: str, path: Path, before: str, after: str
) -> None:
    edit = {"at": now_text(), "command": command, "domain": domain, "path": str(path)}
    edits.append({**edit, "before": before, "after": after})
    workspace.write_document(_DOCUMENT, _dump(edits[-_KEPT:]))


def _dump(edits: list[dict[str, Any]]) -> bytes:
    return orjson.dumps({"v": 1, "edits": edits})
