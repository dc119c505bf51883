"""The summary's figures for a terminal or for a machine.

    stats(database: MapPlace, by: str | None = None, as_json: bool = False, *, is_uncut=False, name=None) -> str

`by` is one of `BY` or None for the overview; anything else is a ValueError. Raises NoDatabase, NotAMap and NoSuchRun
(`crawler.database.map_errors`; the last: nothing has run yet).
The text ends with a newline and fits a screen, unless `is_uncut`; a list that is cut ends with the command that shows
the rest, in which `name` stands for the config. The JSON is complete, has `"v": 1`, and is described in
docs/outputs.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from crawler.model.map_place import MapPlace
from crawler.model.shown_text import counted, domain_words, plain, text_words, url_words
from crawler.model.shown_text import cut as cut_text
from reporter.error_categories import ERROR_WORDS
from reporter.escape import json_text
from reporter.figures import Figures, FixableLink, duration_words, is_listed, whole_seconds
from reporter.survey import survey
from reporter.verdict import verdict

VERSION = 1
BY = ("domain", "state", "depth", "error", "seed", "link", "cut", "rejection", "type", "scope", "cap")
_LONG = ("link", "cut", "rejection", "type", "scope", "cap")  # lists that need more than counting
_ROWS = 20  # of a list, on a terminal
_LEAST_DOMAIN = 20  # columns for a domain's name


def stats(
    database: MapPlace,
    by: str | None = None,
    as_json: bool = False,
    *,
    is_uncut: bool = False,
    name: str | None = None,
    width: int | None = 100,
) -> str:
    """The figures of the run that the map shows. `width`: columns of the terminal; None: nothing is cut to fit."""
    if by is not None and by not in BY:
        raise ValueError(f"by must be one of {', '.join(BY)}, not {by!r}")
    in_full = by in _LONG or (by is None and as_json)
    figures = survey(database, in_full=in_full, is_uncut=by in _LONG)
    if as_json:
        return json_text(_shape(figures, by))
    rest = f"sumi-ripple stats {name or database} --by {by} --all"
    return _text(figures, by, _Cut(None if is_uncut else _ROWS, rest, width))


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
    if by in (None, "seed"):
        shape["seeds"] = {
            "all": figures.seeds,
            "waiting": figures.seeds_waiting,
            "failed": [asdict(row) for row in figures.failed_seeds],
        }
    if by == "link":
        shape["links"] = [{"fate": fate, **asdict(link)} for fate, link in _links_to_mend(figures)]
    if by == "cut":
        shape["cut_pages"] = [asdict(row) for row in figures.cut_pages]
    if by in (None, "rejection"):
        shape["rejections"] = [asdict(row) for row in figures.rejections]
    if by in (None, "type"):
        shape["page_types"] = [asdict(row) for row in figures.page_types]
    if by in (None, "scope"):
        shape["scope"] = [asdict(row) for row in figures.scope]
    if by in (None, "cap"):
        shape["caps"] = [asdict(row) for row in figures.caps]
    if by == "rejection":
        shape["rejected"] = [asdict(row) for row in figures.rejected]
    if by is None:
        shape["unlinked"] = [asdict(row) for row in figures.unlinked]
        shape["guessed"] = [asdict(row) for row in figures.guessed]
        shape |= _lists(figures)
    return shape


def _links_to_mend(figures: Figures) -> Iterator[tuple[str, FixableLink]]:
    """(fate, link) of all links worth mending."""
    yield from (("gone", link) for link in figures.dead_links)
    yield from (("unreachable", link) for link in figures.unreachable_links)
    yield from (("moved", link) for link in figures.moved_links)


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
        "unreachable_links": figures.unreachable_links_total,
        "moved_links": figures.moved_links_total,
        "closed": [asdict(row) for row in figures.closed],
        "breakers": [asdict(row) for row in figures.breakers],
        "traps": [asdict(row) for row in figures.traps],
        "quarantined": [asdict(row) for row in figures.quarantined],
        "links_cut": {"pages": figures.cut_pages_total, "links": figures.links_cut},
        "truncated": {"pages": figures.truncated_total, "urls": figures.truncated_pages},
    }


# -- for people -------------------------------------------------------------------------------------------------


class _Cut(NamedTuple):
    """How many rows of a list are shown (None: all), the command that shows the rest, the columns there are."""

    rows: int | None
    command: str
    width: int | None = None

    def name(self, text: str) -> str:
        """A name in a table, as long as the columns allow."""
        return plain(text) if self.width is None else plain(text, max(16, (self.width - 60) // 2))

    def more(self, total: int, what: str) -> list[str]:
        """The last line of a list that is cut."""
        rest = 0 if self.rows is None else total - self.rows
        return [f"... and {counted(rest, f'more {what}')}: {self.command}"] if rest > 0 else []


def _text(figures: Figures, by: str | None, cut: _Cut) -> str:
    lines = [_run_line(figures), ""]
    if by == "domain":
        lines += _domains(figures, cut)
    elif by == "state":
        lines += columns(("state", "pages"), ((name, f"{count:,}") for name, count in figures.states.items()))
        lines.append(_total(figures.overall.urls_known, "page"))
    elif by == "depth":
        lines += _depths(figures, cut)
    elif by == "error":
        lines += _errors(figures, cut)
    elif by == "seed":
        lines += _seeds(figures, cut)
    elif by == "link":
        lines += _links(figures, cut)
    elif by == "rejection":
        lines += _rejected(figures, cut)
    elif by == "type":
        lines += _types(figures, cut)
    elif by == "scope":
        lines += _scope(figures, cut)
    elif by == "cap":
        lines += _caps(figures, cut)
    elif by == "cut":
        rows = [(url_words(row.url), f"{row.links_cut:,}") for row in figures.cut_pages]
        lines += columns(("page", "links left out"), rows[: cut.rows]) + cut.more(len(rows), "page")
        lines.append(_total(figures.cut_pages_total, "page"))
    else:
        lines += _overview(figures, cut)
    return "\n".join(lines) + "\n"


def _run_line(figures: Figures) -> str:
    run = figures.run
    parts = [f"Run {run.id}", plain(run.status), f"started {plain(whole_seconds(run.started))}"]
    if run.finished:
        parts.append(f"finished {plain(whole_seconds(run.finished))}")
    if run.seconds is not None:
        parts.append(duration_words(run.seconds))
    return " · ".join(parts)


def _overview(figures: Figures, cut: _Cut) -> list[str]:
    overall = figures.overall
    bad_news = verdict(figures)
    rows = [
        ("Pages crawled", overall.pages_crawled),
        *([("Of them rejected", overall.rejected)] if overall.rejected else []),
        ("Unique domains discovered", overall.domains_discovered),
        ("Total links recorded", overall.links),
        ("Blacklisted URLs found", overall.blacklisted),
        ("Stubbed URLs found", overall.stubbed),
        ("Pages failed", overall.errors),
        ("Pages waiting", overall.waiting),
        ("Beyond the depth limit", overall.beyond_max_depth),
        ("Over a domain's budget", overall.over_budget),
        ("Found, not followed", overall.not_followed),
        ("Pages known", overall.urls_known),
    ]
    if overall.out_of_scope:
        rows.insert(-1, ("Out of scope", overall.out_of_scope))
    if overall.not_seen_again:
        rows.append(("Known from earlier runs, not seen in this one", overall.not_seen_again))
    lines = [bad_news, ""] if bad_news else []
    lines += columns((), ((name, f"{count:,}") for name, count in rows))
    lines += ["", *_depths(figures, cut._replace(command=cut.command.replace("--by None", "--by depth")))]
    if overall.errors:
        lines += ["", *columns(("error", "pages"), _error_rows(figures))]
    if figures.rate_limited:
        names = [domain_words(row.domain) for row in figures.rate_limited]
        rest = cut.command.replace("--by None --all", "--json")
        more = f" and {counted(len(names) - 5, 'other')}: {rest}" if len(names) > 5 else ""
        lines += ["", f"Rate-limited: {', '.join(names[:5])}{more}"]
    return lines


def _depths(figures: Figures, cut: _Cut) -> list[str]:
    rows = [
        (
            "none" if row.depth is None else f"{row.depth}",
            f"{row.crawled:,}",
            f"{row.known:,}",
            f"{row.new_domains:,}",
        )
        for row in figures.depths
    ]
    return columns(("depth", "crawled", "known", "new domains"), rows[: cut.rows]) + cut.more(len(rows), "depth")


def _error_rows(figures: Figures) -> list[tuple[str, str]]:
    return [(ERROR_WORDS[row.name], f"{row.count:,}") for row in figures.errors if row.count]


def _seeds(figures: Figures, cut: _Cut) -> list[str]:
    if not figures.failed_seeds:
        return [f"None of {counted(figures.seeds, 'seed')} failed."]
    rows = [(url_words(seed.url), seed.why) for seed in figures.failed_seeds]
    lines = columns(("failed seed", "why"), rows[: cut.rows], texts=2) + cut.more(len(rows), "seed")
    return [*lines, f"{len(rows):,} of {counted(figures.seeds, 'seed')} failed"]


def _links(figures: Figures, cut: _Cut) -> list[str]:
    """Links on quality domains that are worth mending; each with the pages that it is found on."""
    found = list(_links_to_mend(figures))
    if not found:
        return ["No link worth mending."]
    lines = []
    for fate, link in found[: cut.rows]:
        end = f"permanently redirects to {plain(link.target)}" if link.target else f"{_FATES[fate]}: {link.why}"
        rest = link.pages - len(link.examples)
        lines.append(f"{url_words(link.url)}  {end}")
        lines += [f"    found on {url_words(url)}" for url in link.examples]
        lines += [f"    and on {counted(rest, 'more page')} of {domain_words(link.domain)}"] if rest > 0 else []
    return [*lines, *cut.more(len(found), "link"), _total(len(found), "link")]


def _rejected(figures: Figures, cut: _Cut) -> list[str]:
    """Answers that were no pages: challenges, shells, parked domains and the like."""
    if not figures.rejections:
        return ["No page was rejected."]
    rows = ((plain(row.reason), row.word, f"{row.pages:,}") for row in figures.rejections)
    lines = columns(("rejected for", "", "pages"), rows, texts=2)
    lines += ["", *(f"{plain(page.url)}  {page.word}: {plain(page.reason)}" for page in figures.rejected[: cut.rows])]
    return [*lines, *cut.more(len(figures.rejected), "page"), _total(len(figures.rejected), "page")]


def _types(figures: Figures, cut: _Cut) -> list[str]:
    if not figures.page_types:
        return ["No page is of a [[page-type]]."]
    rows = [(plain(row.name or "none of them"), f"{row.crawled:,}", f"{row.known:,}") for row in figures.page_types]
    return columns(("page type", "crawled", "known"), rows[: cut.rows]) + cut.more(len(rows), "type")


def _scope(figures: Figures, cut: _Cut) -> list[str]:
    if not figures.scope:
        return ["No page is out of scope."]
    rows = [(f"{row.pages:,}", text_words(row.rule)) for row in figures.scope]
    lines = columns(("pages", "out of scope by"), rows[: cut.rows], texts=0, last_is_text=True)
    return [*lines, *cut.more(len(rows), "rule"), _total(figures.overall.out_of_scope, "page")]


def _caps(figures: Figures, cut: _Cut) -> list[str]:
    if not figures.caps:
        return ["No cap was reached."]
    rows = [(plain(row.name), url_words(row.value), f"{row.pages:,}") for row in figures.caps]
    return columns(("cap reached", "for", "pages left out"), rows[: cut.rows], texts=2) + cut.more(len(rows), "cap")


_FATES = {"gone": "gone", "unreachable": "not reachable today", "moved": "moved"}


def _errors(figures: Figures, cut: _Cut) -> list[str]:
    if not figures.overall.errors:
        return ["No page failed."]
    lines = columns(("error", "pages"), _error_rows(figures))
    lines.append(_total(figures.overall.errors, "page"))
    slugs = [(cut.name(slug), f"{count:,}") for slug, count in figures.error_slugs.items()]
    lines += ["", *columns(("as recorded", "pages"), slugs[: cut.rows])]
    return lines + cut.more(len(slugs), "kind")


def _domains(figures: Figures, cut: _Cut) -> list[str]:
    shown = figures.domains[: cut.rows]
    rows = [
        (
            domain_words(row.domain),
            row.klass,
            f"{row.crawled:,}",
            f"{row.known:,}",
            f"{row.errors:,}",
            f"{row.waiting:,}",
            _range(row.depth_low, row.depth_high),
            plain(row.why or "") if not is_listed(row.klass) else "",
        )
        for row in shown
    ]
    heads = ("domain", "class", "crawled", "known", "failed", "waiting", "depth", "why no page")
    lines = columns(heads, rows, texts=2, last_is_text=True)
    if cut.width is not None and any(len(line) > cut.width for line in lines):
        lines = _narrow_domains(heads, rows, cut.width)
    listed = sum(is_listed(row.klass) for row in figures.domains)
    lines += cut.more(len(figures.domains), "domain")
    total = counted(len(figures.domains), "domain")
    return [*lines, "", f"{total} in all, of which {listed:,} blacklisted or stubbed"]


def _narrow_domains(heads: Sequence[str], rows: Sequence[tuple[str, ...]], width: int) -> list[str]:
    """The same where there is less room: reasons on lines of their own, and as few columns as it takes."""
    kept = [0, 1, 2, 3, 4, 5, 6]
    for least in (6, 5, 1):  # depth, waiting and class go first
        room = width - sum(2 + max(len(row[index]) for row in [tuple(heads), *rows]) for index in kept[1:])
        if room >= _LEAST_DOMAIN:
            break
        kept.remove(least)
    texts = 2 if 1 in kept else 1
    room = width - sum(2 + max(len(row[index]) for row in [tuple(heads), *rows]) for index in kept[1:])
    cells = [(cut_text(row[0], max(room, _LEAST_DOMAIN)), *(row[index] for index in kept[1:])) for row in rows]
    first, *others = columns([heads[index] for index in kept], cells, texts=texts)
    lines = [first]
    for line, row in zip(others, rows, strict=True):
        lines += [line, f"    {row[-1]}"] if row[-1] else [line]
    return lines


def _range(low: int | None, high: int | None) -> str:
    if low is None:
        return "-"
    return f"{low}" if low == high else f"{low}-{high}"


def _total(count: int, what: str) -> str:
    return f"{counted(count, what)} in all"


def columns(
    head: Sequence[str], rows: Iterable[Sequence[str]], texts: int = 1, *, last_is_text: bool = False
) -> list[str]:
    """Aligned columns: the first `texts` of them (and the last) to the left, the others, numbers, to the right."""
    cells = [tuple(row) for row in rows]
    if head:
        cells.insert(0, tuple(head))
    if not cells:
        return []
    widths = [max(len(row[index]) for row in cells) for index in range(len(cells[0]))]
    return [
        "  ".join(
            text.ljust(width) if index < texts or (last_is_text and index == len(widths) - 1) else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
