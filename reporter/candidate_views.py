"""PURE. Candidates for a terminal, as JSON and as CSV."""

from __future__ import annotations

import csv
import io
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from crawler.model.shown_text import counted, domain_words, plain, unicode_domain
from reporter.escape import cell, json_text

if TYPE_CHECKING:
    from reporter.candidates import Candidates
    from reporter.figures import Candidate

VERSION = 1
_COLUMNS = ("rank", "domain", "unicode", "class", "quality_domains", "links", "depth", "title", "crawled", "known")


def as_text(found: Candidates, config: str) -> str:
    """A few lines for each candidate. `config` is the name that the commands at the end are given."""
    if not found.rows:
        return f"Run {found.run}: no discovered domain is linked to by a quality domain.\n"
    lines: list[str] = []
    for rank, row in enumerate(found.rows, 1):
        lines += [*_entry(rank, row), ""]
    if found.total > len(found.rows):
        rest = counted(found.total - len(found.rows), "more candidate")
        lines.append(f"... and {rest}: sumi-ripple candidates {config} --limit {found.total}")
    if found.run > 1:
        lines.append(f"Figures are of all runs up to run {found.run}; the pages that are named link there in that one.")
    lines.append(f"To decide: sumi-ripple accept|reject|stub {found.rows[0].domain} {config}")
    return "\n".join(lines) + "\n"


def _entry(rank: int, row: Candidate) -> list[str]:
    depth = "no followed path" if row.depth is None else f"depth {row.depth}"
    linked = f"{counted(row.quality_domains, 'quality domain')}, {counted(row.links, 'link')}, {depth}"
    lines = [f"{rank:>3}. {domain_words(row.domain)}: {linked}"]
    if row.title:
        lines.append(f"     title        {plain(row.title, 100)}")
    lines.append(f"     crawled      {crawled_words(row)}")
    for index, referrer in enumerate(row.referrers):
        name = "linked from" if index == 0 else ""
        lines.append(f"     {name:<13}{referrer.words}")
    return lines


def crawled_words(row: Candidate) -> str:
    """`3 of 5 pages; 2 pages beyond the depth limit`."""
    return "; ".join([f"{row.crawled:,} of {counted(row.known, 'page')}", *(plain(words) for words in row.why)])


def as_json(found: Candidates) -> str:
    rows = [_shape(rank, row) for rank, row in enumerate(found.rows, 1)]
    return json_text(
        {"v": VERSION, "kind": "candidates", "run": found.run, "total": found.total, "candidates": rows},
    )


def _shape(rank: int, row: Candidate) -> dict[str, Any]:
    fields = asdict(row)
    fields["class"] = fields.pop("klass")
    return {"rank": rank, "unicode": unicode_domain(row.domain), **fields}


def as_csv(found: Candidates) -> str:
    """One line for each candidate, with its reasons and referrers as texts."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_COLUMNS, "why", "referrers", "link_texts"))
    for rank, row in enumerate(found.rows, 1):
        shape = _shape(rank, row)
        fields = [shape[name] for name in _COLUMNS]
        fields += ["; ".join(row.why), " ".join(referrer.page for referrer in row.referrers)]
        fields.append("; ".join(referrer.text for referrer in row.referrers if referrer.text))
        writer.writerow(["" if each is None else cell(each) if isinstance(each, str) else each for each in fields])
    return text.getvalue()
