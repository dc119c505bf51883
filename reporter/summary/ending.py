"""PURE. The last words of a crawl: failed seeds first, then the figures, the files, and the commands worth knowing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from crawler.model.shown_text import counted, plain, url_words
from reporter.figures import Figures, duration_words
from reporter.verdict import verdict

_SEEDS_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Names:
    """Arguments for the commands that are shown, as a shell reads them."""

    config: str  # the config file, for the commands that read the map
    crawl: str  # the same with --workspace, if the user gave one
    failed_url: str | None = None  # a page that failed


def seed_lines(figures: Figures, names: Names) -> list[str]:
    """The failed seeds, one a line."""
    lines = []
    for seed in figures.failed_seeds[:_SEEDS_SHOWN]:
        through = f" (it redirects to {url_words(seed.target)})" if seed.target else ""
        lines.append(f"  {url_words(seed.url)}  {seed.why}{through}")
    rest = len(figures.failed_seeds) - len(lines)
    if rest > 0:
        lines.append(f"  … and {rest:,} more: sumi-ripple stats {names.config} --by seed --all")
    return lines


def figures_line(figures: Figures) -> str:
    """The figures of the run in one line."""
    overall = figures.overall
    rejected = f" ({overall.rejected:,} of them rejected)" if overall.rejected else ""
    return (
        f"{counted(overall.pages_crawled, 'page')} crawled{rejected}, {overall.errors:,} failed,"
        f" {overall.waiting:,} waiting, {overall.urls_known:,} known; {counted(overall.links, 'link')},"
        f" {counted(overall.domains_discovered, 'domain')}"
    )


def ending_lines(
    figures: Figures, names: Names, files: Sequence[tuple[str, str]], stopped_by: str | None = None
) -> list[str]:
    """The last words. `stopped_by`: the reason why the run is not complete; `files`: (name, path)."""
    run = figures.run
    bad_news = verdict(figures)
    lines = [bad_news, *seed_lines(figures, names)] if bad_news else []
    time = f", in {duration_words(run.seconds)}" if run.seconds is not None else ""
    lines.append(f"Run #{run.id} is complete." if stopped_by is None else f"Run #{run.id}: {stopped_by}.")
    lines.append(f"  {figures_line(figures)}{time}")
    width = max((len(name) for name, _ in files), default=0)
    lines += [f"  {name:<{width}}  {path}" for name, path in files]
    return [*lines, "Next:", *_commands(figures, names, is_over=stopped_by is None)]


def _commands(figures: Figures, names: Names, *, is_over: bool) -> list[str]:
    failed = figures.failed_seeds[0].url if figures.failed_seeds else names.failed_url
    # Without it, the last completed run is shown.
    this_run = f" --run {figures.run.id}" if not is_over and figures.run.id > 1 else ""
    rows = []
    if not is_over:
        rows.append(("go on with this run", f"sumi-ripple {names.crawl}"))
    rows.append(("figures by domain", f"sumi-ripple stats {names.config} --by domain{this_run}"))
    if failed:
        rows.append(("why a page failed", f"sumi-ripple explain {quoted(plain(failed))} {names.crawl}{this_run}"))
    if figures.overall.pages_crawled:
        rows.append(("the map for Gephi", f"sumi-ripple export {names.config} map.gexf{this_run}"))
    rows.append(("the next run", f"sumi-ripple {names.crawl}{'' if is_over else ' --next-run'}"))
    width = max(len(words) for words, _ in rows)
    return [f"  {words:<{width}}  {command}" for words, command in rows[:4]]


def quoted(word: str) -> str:
    """A word as a shell takes it."""
    is_plain = all(letter.isalnum() or letter in "@%+=:,./-_" for letter in word)
    return word if word and is_plain and word.isascii() else "'" + word.replace("'", "'\"'\"'") + "'"
