"""The commands that crawl (crawl, demo), and the one that writes a config to start from (init)."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.early_start import begin_to_start, ctrl_c_ends_at_once
from crawler.cli.map_commands import asked_map, write_summary_of
from crawler.cli.options import (
    ConfigArgument,
    QuietOption,
    VerboseOption,
    WorkersOption,
    WorkspaceOption,
    load_config,
    log_to_stderr,
    show,
    version,
)
from crawler.model.errors import UsageError

if TYPE_CHECKING:
    from crawler.demo.server import Served
    from crawler.model.settings import Config
    from crawler.supervise.crawl import Ending


UnifiedOption = Annotated[
    bool, typer.Option("--unified", help="Run all stages in this one process: for small machines and tests.")
]


def crawl(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted run; this is the default.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from nothing; the earlier crawl is moved aside, never deleted.")
    ] = False,
    next_run: Annotated[
        bool, typer.Option("--next-run", help="Start the next run, even if the last one was interrupted.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the config, show what it means, and exit.")] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Show the figures of the database and exit.")] = False,
    export_summary: Annotated[
        bool, typer.Option("--export-summary", help="Write the summary of the database and exit.")
    ] = False,
    unified: UnifiedOption = False,
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Crawl: run all stages until the run is complete. This is the default command.

    An interrupted run is resumed; after a completed run the next one starts on the same database.
    """
    if next_run and (resume or fresh):
        raise UsageError("--next-run contradicts --resume and --fresh; give one of them")
    if resume and fresh:
        raise UsageError("--resume and --fresh contradict each other; give one of them")
    if sum((dry_run, stats, export_summary)) > 1:
        raise UsageError("give only one of --dry-run, --stats and --export-summary")
    if verbose and quiet:
        raise UsageError("-v and -q contradict each other; give one of them")
    if unified and workers:
        raise UsageError("--unified contradicts --workers: one process does it all")
    if not (dry_run or stats or export_summary or unified):
        begin_to_start()
    with ctrl_c_ends_at_once():
        loaded = load_config(config, workspace, workers)
        if not (stats or export_summary):
            _require_usable(loaded)
    if dry_run:
        _show_dry_run(loaded)
    elif stats:
        from crawler.observe.wrapping import terminal_width
        from reporter.stats import stats as figures

        width = terminal_width(sys.stdout)
        show(figures(asked_map(loaded, None).path, name=str(config), width=width))
    elif export_summary:
        write_summary_of(loaded)
    else:
        again = partial(_load_usable, config, workspace, workers)
        loaded = replace(loaded, starts_next_run=next_run)
        raise typer.Exit(_crawl(loaded, verbose, quiet, fresh, load_again=again, is_unified=unified))


def _require_usable(config: Config) -> None:
    """Raise SumiError for what can be seen to be wrong before anything is started."""
    from crawler.config.places import require_places
    from crawler.net.tls import check_ca_bundle

    check_ca_bundle(config.network)
    require_places(config)


def _load_usable(path: Path, workspace: Path | None, workers: int | None) -> Config:
    """The config as its file is now. Raises SumiError."""
    loaded = load_config(path, workspace, workers)
    _require_usable(loaded)
    return loaded


def _crawl(
    config: Config,
    verbose: int,
    quiet: bool,
    fresh: bool,
    *,
    load_again: Callable[[], Config],
    is_demo: bool = False,
    is_unified: bool = False,
) -> int:
    """Crawl with the user's config, or with the demo's, which needs no warnings."""
    import logging

    with ctrl_c_ends_at_once():
        from crawler.config.warnings import warnings
        from crawler.supervise.crawl import Verbosity, in_one_process
        from crawler.supervise.crawl import crawl as run_crawl

    log_to_stderr(verbose, quiet)
    log = logging.getLogger("sumi.crawl")
    log.info("Starting Sumi-Ripple v%s", version().removesuffix(".0"))
    log.info(
        "Loaded configuration with %d quality domains, %d blacklisted, %d stubbed",
        len(config.quality),
        len(config.blacklist),
        len(config.stub),
    )
    for warning in [] if is_demo else warnings(config):
        log.warning("%s", warning)
    return run_crawl(
        config,
        _close_run,
        is_fresh=fresh,
        verbosity=Verbosity(verbose, quiet),
        load_again=load_again,
        runner=in_one_process if is_unified else None,
        load_ending=_load_ending,
    )


def _close_run(config: Config, stopped_by: str | None, is_summary_due: bool) -> Ending:
    """The summary and the last words."""
    from crawler.cli.history_commands import changes_for_summary
    from reporter.summary.close import close_run

    return close_run(config, stopped_by, is_summary_due, changes_of=changes_for_summary)


def _load_ending() -> None:
    """Import what `_close_run` needs: not before the start, which would wait for it, nor at the end."""
    from importlib import import_module

    for name in ("crawler.database.run_log", "ingest.run_maps", "reporter.diff.diff_views", "reporter.summary.close"):
        import_module(name)


def _show_dry_run(config: Config) -> None:
    from crawler.config.describe import describe
    from crawler.config.estimate import estimate_lines
    from crawler.config.warnings import warnings
    from crawler.supervise.stages import fetcher_count

    show(describe(config, os.environ))
    show(f"  fetcher processes: {fetcher_count(config)}")
    show("\nHow long a run may take")
    for line in estimate_lines(config):
        show(f"  {line}")
    found = warnings(config)
    if found:
        show("\nWarnings")
        for warning in found:
            show(f"  {warning}")
    show("\nNo request was sent.")


def demo(
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from nothing; the earlier crawl is moved aside, never deleted.")
    ] = False,
    keep_serving: Annotated[
        bool, typer.Option("--keep-serving", help="Keep the demo's server running after the crawl, until Ctrl-C.")
    ] = False,
) -> None:
    """Crawl the built-in demo: a small web that is served on this machine only."""
    with _served_demo_at(workspace) as (served, path, folder):
        config = load_config(path, folder, workers)
        if not quiet:
            typer.echo(f"The demo is served on 127.0.0.1:{served.port}; its config is {path}")
        again = partial(_load_usable, path, folder, workers)
        code = _crawl(config, verbose, quiet, fresh, load_again=again, is_demo=True)
        if keep_serving:
            _keep_serving(served.port, served.ca_path)
    raise typer.Exit(code)


@contextmanager
def _served_demo_at(workspace: Path | None) -> Iterator[tuple[Served, Path, Path]]:
    """The demo's sites, its config and its workspace, while they are served."""
    with ctrl_c_ends_at_once():
        from crawler.demo.demo_config import write_demo_config
        from crawler.demo.server import serve_terrain
        from crawler.demo.terrain import demo_terrain

    folder = (workspace or Path("workspace")) / "demo"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"cannot use {folder} for the demo: {problem.strerror}") from None
    folder = folder.resolve()
    with serve_terrain(demo_terrain(), folder) as served:
        yield served, write_demo_config(folder, served), folder


@contextmanager
def served_demo(workspace: Path | None, workers: int | None) -> Iterator[Config]:
    """The demo's config while its sites are served."""
    with _served_demo_at(workspace) as (_, path, folder):
        yield load_config(path, folder, workers)


def crawl_demo(config: Config) -> int:
    """Crawl the demo whose sites are served."""
    assert config.source is not None
    again = partial(_load_usable, config.source, config.workspace, config.crawler.workers or None)
    return _crawl(config, 0, False, False, load_again=again, is_demo=True)


def _keep_serving(port: int, ca_path: Path) -> None:
    typer.echo(f"The demo is still served on 127.0.0.1:{port}, until Ctrl-C. To see one of its pages:")
    typer.echo(f"  curl --cacert {ca_path} --connect-to ::127.0.0.1:{port} https://tea-almanac.test/")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        pass


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The config file to write.", show_default=False)],
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="LIST",
            help="Take the sites from this file: URLs or domains one a line, CSV, OPML, or a browser's bookmarks.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write a commented config to start from, with your own sites if you have a list of them."""
    from crawler.config.site_lists import config_text, read_sites
    from crawler.config.template import TEMPLATE
    from crawler.model.shown_text import counted, plain

    listed = read_sites(source) if source else None
    text = TEMPLATE if listed is None or source is None else config_text(TEMPLATE, listed.sites, source)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{path} exists already and is left as it is; name another file") from None
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    if listed is None:
        typer.echo(f"Wrote {path}. Add your domains, then run: sumi-ripple {path} --dry-run")
    else:
        seeds = sum(map(len, listed.sites.values()))
        found = f"{counted(len(listed.sites), 'domain')} and {counted(seeds, 'seed')}"
        typer.echo(f"Wrote {path} with {found}. Check it: sumi-ripple {path} --dry-run")
        if listed.unread:
            lines = f"{counted(len(listed.unread), 'line')} of {source} named no site"
            typer.echo(f"Warning: {lines}, the first: {plain(listed.unread[0], 80)}", err=True)
