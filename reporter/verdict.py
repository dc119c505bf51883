"""PURE. Did a run reach anything? The bad news in one sentence, for the top of every output."""

from __future__ import annotations

from collections import Counter

from crawler.model.shown_text import counted
from reporter.error_categories import reasons_line
from reporter.figures import Figures


def is_success(figures: Figures) -> bool:
    """Did the run crawl anything, and did not every seed fail?"""
    return figures.overall.pages_crawled > 0 and not _has_every_seed_failed(figures)


def verdict(figures: Figures) -> str | None:
    """The bad news in one sentence; None if no seed failed and pages were crawled."""
    crawled, failed, seeds = figures.overall.pages_crawled, len(figures.failed_seeds), figures.seeds
    reasons = reasons_line(Counter(seed.why for seed in figures.failed_seeds))
    if _has_every_seed_failed(figures):
        what = "the only seed failed" if seeds == 1 else f"all {seeds:,} seeds failed"
    elif failed:
        what = f"{failed:,} of {counted(seeds, 'seed')} failed"
    else:
        return None if crawled else "0 pages crawled."
    return f"{counted(crawled, 'page')} crawled: {what}: {reasons}."


def _has_every_seed_failed(figures: Figures) -> bool:
    return figures.seeds > 0 and len(figures.failed_seeds) == figures.seeds
