"""A curator's decisions: preview by replay, the decision itself, the decisions made, and undo."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from crawler.config.curation import NOTE, Decision, decide, decisions, foresee, undo
from crawler.model.settings import Config
from crawler.rules.lists import EntryNotes
from reporter.web.problems import Problem
from reporter.web.routing import Answer, Call

_Tag = Annotated[str, msgspec.Meta(max_length=100)]


class Curation(msgspec.Struct, forbid_unknown_fields=True):
    decision: Literal["accept", "reject", "stub", "note"]
    domain: Annotated[str, msgspec.Meta(max_length=1000)]
    note: Annotated[str, msgspec.Meta(max_length=2000)] = ""
    tags: Annotated[tuple[_Tag, ...], msgspec.Meta(max_length=50)] = ()

    def made(self) -> Decision:
        return Decision(self.decision, self.domain, self.note, self.tags)


class Undo(msgspec.Struct, forbid_unknown_fields=True):
    domain: Annotated[str, msgspec.Meta(max_length=1000)] | None = None


def preview(call: Call) -> Answer:
    """What the map would become, worked out by a replay of the results under the config with the decision."""
    if call.body.decision == NOTE:
        return Answer(_note_preview(call))
    if not call.face.replays.acquire(timeout=1):
        raise Problem(503, "replay-under-way", "another preview is being worked out", retry_after=5)
    try:
        lines, warnings = call.face.tools.preview(call.face.config, call.body.made())
    finally:
        call.face.replays.release()
    return Answer({"lines": lines, "warnings": warnings})


def _note_preview(call: Call) -> dict[str, list[str]]:
    """A note changes no page: what would change in the file."""
    made = foresee(call.face.config, call.body.made())
    before, after = (_noted(each, made.domain) for each in (made.before, made.after))
    lines = [f"{name}: {before[name]} → {after[name]}" for name in before if before[name] != after[name]]
    return {"lines": [*lines, "no page changes: notes and tags are for people, filters and exports"], "warnings": []}


def _noted(config: Config, pattern: str) -> dict[str, str]:
    found = EntryNotes(config).of(pattern.removeprefix("*."))
    note, tags = (found.note, ", ".join(found.tags)) if found else ("", "")
    return {"note": note or "none", "tags": tags or "none"}


def curate(call: Call) -> Answer:
    """Write the decision into the config file. It takes effect with the next crawl, or a reload."""
    made = decide(call.face.config, call.body.made())
    return Answer({"domain": made.domain, "list": made.list_name, "left": list(made.left)})


def take_back(call: Call) -> Answer:
    """Undo the newest decision."""
    command, domain, _ = undo(call.face.config, call.body.domain)
    return Answer({"decision": command, "domain": domain})


def curation_log(call: Call) -> Answer:
    """The decisions that can be undone, newest first; only the newest one can be undone at once."""
    found = decisions(call.face.config)
    return Answer({"decisions": [{"at": at, "decision": word, "domain": domain} for at, word, domain in found]})
