"""Two maps of single runs, compared row by row. Memory holds a page and its links at a time, and the changes listed.

*New*: never seen up to the first of the two runs, as far as the live map knows. *Returned*: seen before that run, and
not in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from crawler.database.reader import MapReader, open_map
from crawler.model.map_place import MapPlace
from crawler.model.states import ERRORS, PageState, slug_of
from reporter.diff.run_changes import Change, Changes, ComparedRun, Kind
from reporter.queries.run_pages import (
    DomainFacts,
    EarlierRuns,
    PageFacts,
    domains_cut_short,
    domains_in_order,
    page_count,
    pages_in_order,
    targets,
)
from reporter.queries.successive_runs import NotTheSamePages, open_successive_runs

Progress = Callable[[int, int], None]
Facts = TypeVar("Facts", PageFacts, DomainFacts)
_STEP = 2000  # pages between two reports of progress
_PERMANENT = (301, 308)


def compare(
    before: tuple[ComparedRun, Path],
    after: tuple[ComparedRun, Path],
    live: MapPlace,
    rules: tuple[str, ...] = (),
    progress: Progress | None = None,
) -> Changes:
    """The changes from one run to another. Each comes with the map of that run alone; `live` is the map of all runs."""
    found = Changes(before[0], after[0], rules)
    with open_map(before[1]) as old, open_map(after[1]) as new, open_map(live) as history:
        known = EarlierRuns(history, before[0].number)
        found.cut_short = tuple(sorted({*domains_cut_short(old), *domains_cut_short(new)}))
        _compare_domains(found, domains_in_order(old), domains_in_order(new), known.has_domain)
        _compare_pages(found, old, new, known, progress)
    found.sort()
    return found


def compare_successive(
    before: ComparedRun, after: ComparedRun, live: Path, copy: Path, rules: tuple[str, ...] = ()
) -> Changes | None:
    """The same for the newest run and the one before it, without building the map of either.

    `copy` is the map as the run before left it. None: the live map was built anew since, and numbers its pages
    differently.
    """
    found = Changes(before, after, rules)
    with open_successive_runs(live, copy, before.number, after.number) as runs:
        found.cut_short = tuple(sorted(runs.domains_cut_short()))
        _compare_domains(found, *runs.domains(), runs.has_older_domain)
        try:
            for was, now, is_older in runs.pages():
                _compare_page(found, was, now, is_older)
        except NotTheSamePages:
            return None
        for link in runs.links():
            kind = Kind.LINK_VANISHED if link.is_gone else Kind.LINK_RETURNED if link.is_older else Kind.LINK_NEW
            found.add(Change(kind, link.source, link.target))
    found.sort()
    return found


def _compare_domains(
    found: Changes, old: Iterator[DomainFacts], new: Iterator[DomainFacts], is_older: Callable[[str], bool]
) -> None:
    for was, now in _side_by_side(old, new, lambda row: (0, row.domain)):
        if was is None:
            assert now is not None
            kind = Kind.DOMAIN_RETURNED if is_older(now.domain) else Kind.DOMAIN_NEW
            found.add(Change(kind, now.domain, after=now.klass))
        elif now is None:
            found.add(Change(Kind.DOMAIN_VANISHED, was.domain, before=was.klass))
        else:
            if was.klass != now.klass:
                found.add(Change(Kind.DOMAIN_CLASS, now.domain, before=was.klass, after=now.klass))
            if was.depth != now.depth:
                found.add(Change(Kind.DOMAIN_REACH, now.domain, before=_depth(was.depth), after=_depth(now.depth)))


def _depth(depth: int | None) -> str:
    return "no followed path" if depth is None else f"depth {depth}"


def _compare_pages(
    found: Changes, old: MapReader, new: MapReader, known: EarlierRuns, progress: Progress | None
) -> None:
    total = page_count(old) + page_count(new)
    done = 0
    pairs = _side_by_side(pages_in_order(old), pages_in_order(new), lambda row: (row.hash, row.url))
    for number, (was, now) in enumerate(pairs):
        _compare_page(found, was, now, was is None and now is not None and known.has_page(now.hash))
        _compare_links(found, old, new, was, now, known)
        done += (was is not None) + (now is not None)
        if progress is not None and number % _STEP == 0:
            progress(done, total)
    if progress is not None:
        progress(total, total)


def _compare_page(found: Changes, was: PageFacts | None, now: PageFacts | None, is_older: bool) -> None:
    """`is_older`: a page that is not in the first run was known before it."""
    if was is None or now is None:
        if now is not None:
            found.add(Change(Kind.PAGE_RETURNED if is_older else Kind.PAGE_NEW, now.url, after=now.state))
        elif was is not None:
            found.add(Change(Kind.PAGE_VANISHED, was.url, before=was.state))
        return
    is_moved = now.redirect is not None and now.status in _PERMANENT and now.redirect != was.redirect
    if was.state == PageState.PROCESSED and now.state in ERRORS:
        found.add(Change(Kind.PAGE_DIED, now.url, before=was.title, after=_error(now)))
    elif was.state in ERRORS and now.state == PageState.PROCESSED:
        found.add(Change(Kind.PAGE_CAME_BACK, now.url, before=_error(was), after=now.title))
    if was.state == PageState.PROCESSED and now.state == PageState.PROCESSED:
        if is_moved:
            found.add(Change(Kind.PAGE_MOVED, now.url, before=was.redirect, after=now.redirect))
        elif was.title != now.title:
            found.add(Change(Kind.PAGE_TITLE, now.url, before=was.title, after=now.title))


def _error(page: PageFacts) -> str:
    return slug_of(page.error) or page.state.replace("_", "-")


def _compare_links(
    found: Changes,
    old: MapReader,
    new: MapReader,
    was: PageFacts | None,
    now: PageFacts | None,
    known: EarlierRuns,
) -> None:
    before = targets(old, was.id) if was is not None else {}
    after = targets(new, now.id) if now is not None else {}
    for target, hash_ in after.items() if now is not None else ():
        if target not in before:
            assert now is not None
            kind = Kind.LINK_RETURNED if known.has_link(now.hash, hash_) else Kind.LINK_NEW
            found.add(Change(kind, now.url, target))
    for target in before:
        if target not in after:
            assert was is not None
            found.add(Change(Kind.LINK_VANISHED, was.url, target))


def _side_by_side(
    first: Iterator[Facts], second: Iterator[Facts], key: Callable[[Facts], tuple[int, str]]
) -> Iterator[tuple[Facts | None, Facts | None]]:
    """Rows of two sorted streams: those with equal keys together, the others alone."""
    a, b = next(first, None), next(second, None)
    while a is not None or b is not None:
        if b is None or (a is not None and key(a) < key(b)):
            yield a, None
            a = next(first, None)
        elif a is None or key(b) < key(a):
            yield None, b
            b = next(second, None)
        else:
            yield a, b
            a, b = next(first, None), next(second, None)
