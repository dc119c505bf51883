"""The summary's figures for a terminal or for a machine.

    stats(database: Path, by: str | None = None, as_json: bool = False) -> str

`by` is one of `BY` (domain, state, depth, error) or None for the overview; anything else is a ValueError. Raises
NoDatabase, NotAMap and NoSuchRun (`crawler.database.map_errors`; the last: nothing has run yet). The text ends with a
newline and fits a screen; the JSON is complete, has `"v": 1`, and is described in docs/outputs.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reporter.error_categories import ERROR_WORDS
from reporter.escape import counted, domain_words, json_text, plain
from reporter.figures import Figures, duration_words, is_listed, whole_seconds
from reporter.survey import survey

VERSION = 1
BY = ("domain", "state", "depth", "error")
_ROWS = 20  # of a list, on a terminal
_WIDTH = 30  # of a name


def stats(database: Path, by: str | None = None, as_json: bool = False) -> str:
    """The figures of the run that the map shows."""
    if by is not None and by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)}, not {by!r}")
    figures = survey(database, in_full=by is None and as_json)
    if as_json:
        return json_text(_shape(figures, by))
    return _text(figures, by)


# -- for machines -----------------------------------------------------------------------------------------------


def _shape(figures: Figures, by: str | None) -> dict[str, Any]:
    """The documented shape. Members may be added to version 1, never removed or given another meaning."""
    shape: dict[str, Any] = {"v": VERSION, "kind": "stats", "by": by, "run": asdict(figures.run)}
    shape["overall"] = asdict(figures.overall)
    if by in (None, "state"):
        shape["states"] = figures.states
    if by in (None, "depth"):
        shape["depths"] = [asdict(row) for row in figures.depths]
    if by in (None, "error"):
        shape["errors"] = [{"name": row.name, "count": row.count} for row in figures.errors]
        shape["error_slugs"] = figures.error_slugs
    if by == "domain":
        shape["domains"] = [_domain(row) for row in figures.domains]
    if by is None:
        shape |= _lists(figures)
    return shape


def _domain(row: Any) -> dict[str, Any]:
    fields = asdict(row)
    fields["class"] = fields.pop("klass")
    return fields


def _lists(figures: Figures) -> dict[str, Any]:
    return {
        "rate_limited": [asdict(row) for row in figures.rate_limited],
        "top_blacklisted": [asdict(row) for row in figures.top_blacklisted],
        "top_stubbed": [asdict(row) for row in figures.top_stubbed],
        "top_linked": [_domain(row) for row in figures.top_linked],
        "top_linking_back": [_domain(row) for row in figures.top_linking_back],
        "dead_links": figures.dead_links_total,
        "moved_links": figures.moved_links_total,
        "closed": [asdict(row) for row in figures.closed],
        "traps": [asdict(row) for row in figures.traps],
        "quarantined": [asdict(row) for row in figures.quarantined],
        "links_cut": {"pages": figures.cut_pages_total, "links": figures.links_cut},
    }


# -- for people -------------------------------------------------------------------------------------------------


def _text(figures: Figures, by: str | None) -> str:
    lines = [_run_line(figures), ""]
    if by == "domain":
        lines += _domains(figures)
    elif by == "state":
        lines += columns(("state", "pages"), ((name, f"{count:,}") for name, count in figures.states.items()))
        lines.append(_total(figures.overall.urls_known, "page"))
    elif by == "depth":
        lines += _depths(figures)
    elif by == "error":
        lines += _errors(figures)
    else:
        lines += _overview(figures)
    return "\n".join(lines) + "\n"


def _run_line(figures: Figures) -> str:
    run = figures.run
    parts = [f"Run {run.id}", plain(run.status), f"started {plain(whole_seconds(run.started))}"]
    if run.finished:
        parts.append(f"finished {plain(whole_seconds(run.finished))}")
    if run.seconds is not None:
        parts.append(duration_words(run.seconds))
    return " · ".join(parts)


def _overview(figures: Figures) -> list[str]:
    overall = figures.overall
    rows = [
        ("Pages crawled", overall.pages_crawled),
        ("Unique domains discovered", overall.domains_discovered),
        ("Total links recorded", overall.links),
        ("Blacklisted URLs found", overall.blacklisted),
        ("Stubbed URLs found", overall.stubbed),
        ("Errors encountered", overall.errors),
        ("Still waiting", overall.waiting),
        ("Beyond the depth limit", overall.beyond_max_depth),
        ("Over a domain's budget", overall.over_budget),
        ("Found, not followed", overall.not_followed),
        ("URLs seen in all", overall.urls_known),
    ]
    if overall.not_seen_again:
        rows.append(("Known from earlier runs, not seen in this one", overall.not_seen_again))
    lines = columns((), ((name, f"{count:,}") for name, count in rows))
    lines += ["", *_depths(figures)]
    if overall.errors:
        lines += ["", *columns(("error", "pages"), _error_rows(figures))]
    if figures.rate_limited:
        names = [domain_words(row.domain) for row in figures.rate_limited]
        more = f" and {counted(len(names) - 5, 'other')}" if len(names) > 5 else ""
        lines += ["", f"Rate-limited: {', '.join(names[:5])}{more}"]
    return lines


def _depths(figures: Figures) -> list[str]:
    shown, rest = figures.depths[:_ROWS], figures.depths[_ROWS:]
    rows = [
        (
            "none" if row.depth is None else f"{row.depth}",
            f"{row.crawled:,}",
            f"{row.known:,}",
            f"{row.new_domains:,}",
        )
        for row in shown
    ]
    return columns(("depth", "crawled", "known", "new domains"), rows) + _more(len(rest), "depth")


def _error_rows(figures: Figures) -> list[tuple[str, str]]:
    return [(ERROR_WORDS[row.name], f"{row.count:,}") for row in figures.errors if row.count]


def _errors(figures: Figures) -> list[str]:
    if not figures.overall.errors:
        return ["No errors."]
    lines = columns(("error", "pages"), _error_rows(figures))
    lines.append(_total(figures.overall.errors, "page"))
    slugs = list(figures.error_slugs.items())
    lines += ["", *columns(("as recorded", "pages"), ((plain(name, _WIDTH), f"{n:,}") for name, n in slugs[:_ROWS]))]
    return lines + _more(len(slugs) - _ROWS, "kind")


def _domains(figures: Figures) -> list[str]:
    rows = [
        (
            domain_words(row.domain, 2 * _WIDTH),
            row.klass,
            f"{row.crawled:,}",
            f"{row.known:,}",
            f"{row.errors:,}",
            f"{row.waiting:,}",
            _range(row.depth_low, row.depth_high),
        )
        for row in figures.domains[:_ROWS]
    ]
    lines = columns(("domain", "class", "crawled", "known", "errors", "waiting", "depth"), rows, texts=2)
    listed = sum(is_listed(row.klass) for row in figures.domains)
    lines += _more(len(figures.domains) - _ROWS, "domain")
    total = counted(len(figures.domains), "domain")
    return [*lines, "", f"{total} in all, of which {listed:,} blacklisted or stubbed"]


def _range(low: int | None, high: int | None) -> str:
    if low is None:
        return "-"
    return f"{low}" if low == high else f"{low}-{high}"


def _more(rest: int, what: str) -> list[str]:
    return [f"... and {counted(rest, f'more {what}')}"] if rest > 0 else []


def _total(count: int, what: str) -> str:
    return f"{counted(count, what)} in all"


def columns(head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1) -> list[str]:
    """Aligned columns: the first `texts` of them to the left, the others, numbers, to the right."""
    cells = [tuple(row) for row in rows]
    if head:
        cells.insert(0, tuple(head))
    if not cells:
        return []
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))]
    return [
        "  ".join(
            text.ljust(width) if index < texts else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
