"""PURE. Changes for a terminal, as JSON, as CSV, and as a section of the summary."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import Any

from crawler.model.shown_text import counted, domain_words, plain, url_words
from reporter.diff.run_changes import LISTED, Change, Changes, ComparedRun, Kind
from reporter.escape import cell, code, json_text, markdown
from reporter.figures import whole_seconds

VERSION = 1
SUMMARY_ROWS = 10  # of a list in the summary
_THINGS = ("domain", "page", "link")
_TURNS = ("new", "vanished", "returned")
_HEADS = {
    Kind.PAGE_DIED: "Pages that died",
    Kind.PAGE_CAME_BACK: "Pages that came back",
    Kind.PAGE_MOVED: "Pages that moved",
    Kind.PAGE_TITLE: "Pages with another title",
    Kind.DOMAIN_CLASS: "Domains of another class",
    Kind.DOMAIN_REACH: "Domains at another depth",
    Kind.DOMAIN_NEW: "New domains",
    Kind.DOMAIN_VANISHED: "Vanished domains",
    Kind.DOMAIN_RETURNED: "Returned domains",
    Kind.PAGE_NEW: "New pages",
    Kind.PAGE_VANISHED: "Vanished pages",
    Kind.PAGE_RETURNED: "Returned pages",
    Kind.LINK_NEW: "New links",
    Kind.LINK_VANISHED: "Vanished links",
    Kind.LINK_RETURNED: "Returned links",
}
_IN_SUMMARY = tuple(_HEADS)[:9]


# -- for a terminal ----------------------------------------------------------------------------------------------


def as_text(found: Changes, limit: int) -> str:
    """A table of counts, then at most `limit` changes of each kind."""
    lines = [f"{_run_words(found.before)} -> {_run_words(found.after)}"]
    lines += [f"  {plain(rule, 120)}" for rule in found.rules]
    lines += ["", f"{'':<10}{'new':>10}{'vanished':>10}{'returned':>10}"]
    for thing in _THINGS:
        counts = "".join(f"{found.counts[Kind(f'{thing}-{turn}')]:>10,}" for turn in _TURNS)
        lines.append(f"{thing + 's':<10}{counts}")
    if not found.counts:
        lines += ["", "Nothing changed."]
    elif found.cut_short:
        lines += ["", _cut_short_words(found, [domain_words(name) for name in found.cut_short[:3]])]
    for kind, head in _HEADS.items():
        count = found.counts[kind]
        if count:
            lines += ["", f"{head} ({count:,})"]
            lines += [f"  {_change_words(change)}" for change in found.lists[kind][:limit]]
            if count > limit:
                lines.append(f"  ... and {count - limit:,} more: --limit {count}")
    return "\n".join(lines) + "\n"


def _cut_short_words(found: Changes, names: list[str]) -> str:
    rest = len(found.cut_short) - len(names)
    listed = ", ".join(names) + (f" and {rest:,} more" if rest else "")
    ran_out = counted(len(found.cut_short), "domain")
    return (
        f"The request budget of {ran_out} ran out in one of these runs ({listed}): what is new or vanished there, and"
        " where it links to, may only not have been visited."
    )


def _run_words(run: ComparedRun) -> str:
    return f"Run {run.number} ({plain(run.status)}, {plain(whole_seconds(run.started))})"


def _change_words(change: Change) -> str:
    if change.target is not None:
        return f"{url_words(change.name, 200)} -> {url_words(change.target, 200)}"
    name = domain_words(change.name) if change.kind.startswith("domain") else url_words(change.name, 200)
    if change.before is not None and change.after is not None:
        return f"{name}: {plain(change.before, 100)} -> {plain(change.after, 100)}"
    value = change.after if change.after is not None else change.before
    return name if value is None else f"{name}: {plain(value, 100)}"


# -- for machines ------------------------------------------------------------------------------------------------


def as_json(found: Changes) -> str:
    shape: dict[str, Any] = {"v": VERSION, "kind": "diff"}
    shape["before"], shape["after"] = asdict(found.before), asdict(found.after)
    shape["rules"] = list(found.rules)
    shape["cut_short"] = list(found.cut_short)
    shape["counts"] = {kind.value: found.counts[kind] for kind in Kind}
    shape["listed_at_most"] = LISTED
    shape["changes"] = [
        {"change": change.kind.value, "name": change.name, "target": change.target}
        | {"was": change.before, "is": change.after}
        for kind in Kind
        for change in found.lists.get(kind, ())
    ]
    return json_text(shape)


def as_csv(found: Changes) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("change", "name", "target", "was", "is"))
    for kind in Kind:
        for change in found.lists.get(kind, ()):
            texts = (change.kind.value, change.name, change.target, change.before, change.after)
            writer.writerow([cell(each or "") for each in texts])
    return text.getvalue()


# -- a section of the summary ------------------------------------------------------------------------------------


def as_section(found: Changes) -> str:
    """Markdown: the counts, and the first changes of the kinds that a curator acts on."""
    lines = [f"## Changes Since Run {found.before.number}", "", "| | New | Vanished | Returned |"]
    lines.append("|---|---:|---:|---:|")
    for thing in _THINGS:
        counts = " | ".join(f"{found.counts[Kind(f'{thing}-{turn}')]:,}" for turn in _TURNS)
        lines.append(f"| {thing.capitalize()}s | {counts} |")
    if found.counts and found.cut_short:
        lines += ["", _cut_short_words(found, [markdown(domain_words(name)) for name in found.cut_short[:3]])]
    if found.rules:
        lines += ["", "Settings that changed: " + "; ".join(code(rule, 120) for rule in found.rules[:SUMMARY_ROWS])]
    for kind in _IN_SUMMARY:
        listed = found.lists.get(kind, [])[:SUMMARY_ROWS]
        if listed:
            lines += ["", f"### {_HEADS[kind]} ({found.counts[kind]:,})"]
            lines += [f"- {_change_in_markdown(change)}" for change in listed]
            if found.counts[kind] > len(listed):
                command = f"sumi-ripple diff CONFIG {found.before.number} {found.after.number}"
                lines.append(f"- ... and {found.counts[kind] - len(listed):,} more: `{command}`")
    return "\n".join(lines)


def _change_in_markdown(change: Change) -> str:
    name = markdown(domain_words(change.name)) if change.kind.startswith("domain") else code(url_words(change.name))
    is_url = change.kind is Kind.PAGE_MOVED
    shown = [
        code(url_words(each)) if is_url else markdown(each, 100)
        for each in (change.before, change.after)
        if each is not None
    ]
    return f"{name}: {' → '.join(shown)}" if shown else name
