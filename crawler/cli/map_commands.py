"""The commands that read an earlier crawl, from its database or its result spools. None of them sends a request."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.options import (
    ConfigArgument,
    JsonOption,
    QuietOption,
    WorkspaceOption,
    complete_config,
    default_workspace,
    load_config,
    log_to_stderr,
    show,
    version,
)
from crawler.model.errors import SumiError, UsageError
from crawler.model.map_place import EngineMap, MapPlace

if TYPE_CHECKING:
    from crawler.keep.read_again import PagesReadAgain
    from crawler.model.settings import Config
    from reporter.explain.domain_facts import DomainExplanation
    from reporter.explain.facts import Explanation

MapArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG", help="The config file, or a database.", autocompletion=complete_config, show_default=False
    ),
]


OptionalConfigArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CONFIG]",
        help="The config file. [default: the one that ./workspace, or the demo in it, was last crawled with]",
        autocompletion=complete_config,
        show_default=False,
    ),
]


def database_of(path: Path, workspace: Path | None = None) -> MapPlace:
    """The map, given its path, the URL of its engine, or a config."""
    if (url := engine_url(path)) is not None:
        return EngineMap(url)
    if _is_database(path):
        return path
    if path.suffix in (".db", ".sqlite", ".sqlite3") and not path.exists():
        raise UsageError(f"there is no database at {path}")
    if path.is_file() and path.suffix != ".toml" and not _is_toml(path):
        raise UsageError(f"{path} is neither a database of Sumi-Ripple nor a config file")
    return load_config(path, workspace).map_place


def _is_database(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def engine_url(path: Path) -> str | None:
    """The URL of an engine that a person gave where a path may stand; None: it is a path."""
    scheme, slashes, rest = str(path).partition(":/")  # a Path has one slash left of the two
    return f"{scheme}://{rest}" if slashes and scheme in ("postgresql", "postgres") else None


def is_config(path: Path) -> bool:
    """Does a path that may name either name a config, and not a database?"""
    return not _is_database(path) and (path.suffix == ".toml" or _is_toml(path))


def _is_toml(path: Path) -> bool:
    import tomli

    try:
        tomli.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return True


RunOption = Annotated[
    int | None,
    typer.Option(
        "--run",
        metavar="N",
        min=1,
        help="Show this run. [default: the newest that is completed, or else the newest]",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class AskedMap:
    """The database that a question goes to. `rules` are those of the run it shows.

    `is_live`: it is the one that the ingest writes. `is_of_one_run`: it knows the run that was asked for and no other.
    """

    path: MapPlace
    rules: Config
    is_live: bool
    is_of_one_run: bool = False


def asked_map(config: Config, run: int | None) -> AskedMap:
    """The map of this run; without one, that of the last completed run (or of the first). Raises NoSuchRun."""
    from crawler.database.completed_map import completed_run, copy_place, shown_map
    from crawler.database.run_log import recorded_runs
    from ingest.run_maps import map_of_run, rules_of_run

    database = config.map_place
    if run is None:
        shown = shown_map(database)
        if shown.note:
            show(shown.note, err=True)
        return AskedMap(shown.path, rules_of_run(config, shown.run) if shown.run else config, shown.run is None)
    runs = recorded_runs(database)
    found = runs.find(run)
    if found == runs.runs[-1]:
        return AskedMap(database, config, is_live=True)
    rules = rules_of_run(config, found)
    if not runs.runs[-1].is_completed and found == completed_run(runs):
        return AskedMap(copy_place(database), rules, is_live=False)
    progress = Progress()
    try:
        return AskedMap(map_of_run(config, run, progress), rules, is_live=False, is_of_one_run=True)
    finally:
        progress.end()


def map_at(path: Path, workspace: Path | None = None, run: int | None = None) -> tuple[MapPlace, bool]:
    """The database to read, and whether it holds that run alone. `path` is a config, or a database without --run.

    A database that is named is read as it is.
    """
    if run is not None and not is_config(path):
        raise UsageError("--run needs the config file: the run is rebuilt from its result spools")
    if not is_config(path):
        return database_of(path, workspace), False
    asked = asked_map(load_config(path, workspace), run)
    return asked.path, asked.is_of_one_run


def report(
    config: ConfigArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for the end of the run first.")] = False,
    run: RunOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Write the summary of the database; of an earlier run, into a file of its own (crawl-summary.run-N.md)."""
    loaded = load_config(config, workspace)
    if run is not None:
        asked = asked_map(loaded, run)
        if not asked.is_live:
            from reporter.summary.write import write_summary

            path = loaded.output.summary_path
            path = path.with_name(f"{path.stem}.run-{run}{path.suffix}")
            write_summary(asked.path, path, notes=loaded.entry_notes)
            typer.echo(f"Summary written to {path}")
            return
    if wait:
        from crawler.workspace.opening import open_workspace
        from crawler.workspace.runs import RunStatus, read_run

        while (now := read_run(open_workspace(loaded))) is None or now.status is not RunStatus.COMPLETED:
            time.sleep(0.5)
    write_summary_of(loaded, run)


def write_summary_of(config: Config, run: int | None = None) -> None:
    from crawler.cli.history_commands import changes_for_summary
    from reporter.summary.close import write_summaries
    from reporter.survey import survey

    database = asked_map(config, run).path
    figures = survey(database)
    written = write_summaries(config, figures, changes_for_summary(config, database))
    if written.kept:
        typer.echo(
            f"Run {figures.run.id} crawled nothing: its summary is {written.own}; {written.summary} is kept as it is"
        )
    else:
        typer.echo(f"Summary written to {written.summary}")


def replay(
    into: Annotated[
        Path,
        typer.Option(
            "--into",
            metavar="FILE",
            help="The new database: a file, or postgresql://… for the engine.",
            show_default=False,
        ),
    ],
    config: OptionalConfigArgument = None,
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Leave out later results, e.g. 2025-01-15T10:30:00Z."),
    ] = None,
    run: Annotated[int | None, typer.Option("--run", metavar="N", min=1, help="Only results of this run.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="List the differences between the new map and the config's database.")
    ] = False,
    logs: Annotated[
        Path | None,
        typer.Option(
            "--logs",
            metavar="DIR",
            help="Make the page logs again too ([logs]), in this new folder: logs/pages-<run>.csv and metadata/.",
            show_default=False,
        ),
    ] = None,
    from_store: Annotated[
        bool,
        typer.Option("--from-store", help="Read stored pages again, with today's extraction and rules."),
    ] = False,
    workspace: WorkspaceOption = None,
    quiet: QuietOption = False,
) -> None:
    """Rebuild the map from the result spools, in a new database. No request is sent.

    To see the map under other rules, change the lists, max-depth or the tracking parameters in the config first.
    """
    from crawler.database.presence import is_there
    from crawler.workspace.opening import open_log_folder
    from ingest.replay import replay as run_replay

    log_to_stderr(0, quiet)
    loaded = load_config(config, workspace) if config else last_config(workspace)
    live = loaded.map_place
    until_text = _time(until) if until is not None else None
    target = EngineMap(url) if (url := engine_url(into)) is not None else into
    if isinstance(target, Path) and target.exists():
        raise UsageError(f"{into} exists already; name a new file: replay never overwrites one")
    if logs is not None and (logs.exists() or not loaded.logs.has_page_log):
        why = "exists already; name a new folder" if logs.exists() else "would stay empty: [logs] asks for no page log"
        raise UsageError(f"{logs} {why}")
    renew = _pages_read_again(loaded) if from_store else None
    progress = Progress() if not quiet else None
    try:
        found = run_replay(
            loaded,
            target,
            until=until_text,
            run=run,
            progress=progress,
            compare=live if compare and is_there(live) else None,
            logs=open_log_folder(logs) if logs is not None else None,
            renew=renew,
        )
    finally:
        if progress is not None:
            progress.end()
    if not quiet:
        for line in [*found.lines(), *(renew.lines() if renew else ())]:
            typer.echo(line)
        typer.echo(f"The map is in {target}" + (f", its logs are in {logs}" if logs is not None else ""))


def _pages_read_again(config: Config) -> PagesReadAgain:
    """Raises UsageError where nothing was ever stored."""
    from crawler.keep.read_again import PagesReadAgain
    from crawler.store.file_store import open_store

    store = open_store(config)
    if next(store.hashes(), None) is None:
        raise UsageError(
            f"no page is stored in {config.workspace}; [store] html = true keeps the pages of the next visits"
        )
    return PagesReadAgain(config, store)


def _time(text: str) -> str:
    """A time in the format of the records: RFC 3339, UTC, milliseconds."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--until {text!r} is not a time; write it like 2025-01-15T10:30:00Z") from None
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Progress:
    """Shows the percentage done on a terminal, nothing elsewhere."""

    def __init__(self) -> None:
        self._shown = -1
        self._is_on = sys.stderr.isatty()

    def __call__(self, done: int, total: int) -> None:
        percent = 100 * done // total if total else 100
        if self._is_on and percent != self._shown:
            self._shown = percent
            sys.stderr.write(f"\r{percent:3d} %")
            sys.stderr.flush()

    def end(self) -> None:
        if self._shown >= 0:
            sys.stderr.write("\r      \r")
            sys.stderr.flush()


def digest(
    database: Annotated[
        Path, typer.Argument(metavar="DATABASE", help="A database, or its config file.", show_default=False)
    ],
    parts: Annotated[bool, typer.Option("--parts", help="Print one hash for each kind of row.")] = False,
) -> None:
    """Print a hash of the map, without ids and times. Equal maps have equal digests."""
    from crawler.database.digest import digest as digest_of
    from crawler.database.digest import parts as parts_of

    path = database_of(database)
    if isinstance(path, Path) and not path.exists():
        raise UsageError(f"there is no database at {path}")
    if parts:
        for name, value in parts_of(path).items():
            typer.echo(f"{value}  {name}")
    else:
        typer.echo(digest_of(path))


def stats(
    config: MapArgument,
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            metavar="GROUP",
            help="Group by domain, state, depth or error; or list failed seeds (seed), links worth mending (link), "
            "pages with too many links (cut), rejected pages (rejection), types of pages (type), rules that leave "
            "pages out (scope), caps that were reached (cap).",
            show_default=False,
        ),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Show lists in full.")] = False,
    as_json: JsonOption = False,
    run: RunOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Show the figures of the summary, as a table or as JSON."""
    from crawler.observe.wrapping import terminal_width
    from reporter.stats import BY
    from reporter.stats import stats as figures

    if by is not None and by not in BY:
        raise UsageError(f"--by {by}: give one of {', '.join(BY)}")
    database = map_at(config, workspace, run)[0]
    text = figures(database, by, as_json, is_uncut=everything, name=str(config), width=terminal_width(sys.stdout))
    if as_json:
        typer.echo(text, nl=False)
    else:
        show(text)


def metrics(
    config: ConfigArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            metavar="FILE",
            help="Write to this file, as a whole or not at all: for the node exporter's textfile collector.",
            show_default=False,
        ),
    ] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Print the figures of a crawl for Prometheus: counters, stages, what waits and why. Nothing is disturbed."""
    from crawler.cli.options import version
    from crawler.workspace.atomic import write_atomically
    from crawler.workspace.opening import open_workspace
    from reporter.metrics.collector import metrics_text

    loaded = load_config(config, workspace)
    text = metrics_text(open_workspace(loaded), loaded.map_place, version())
    if output is None:
        typer.echo(text.decode(), nl=False)
        return
    if output.suffix != ".prom":
        raise UsageError(f"{output}: the node exporter reads files whose names end in .prom")
    try:
        write_atomically(output, text, mode=0o644)
    except OSError as problem:
        raise UsageError(f"{output} cannot be written: {problem.strerror or problem}") from None


def hooks(
    config: ConfigArgument,
    resend: Annotated[
        int | None, typer.Option("--resend", metavar="N", min=1, help="Send delivery N again.", show_default=False)
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Send a test event to every hook.")] = False,
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Show what [[hook]] sent: the last deliveries, with their answers. Exit code 1 if one that was sent now failed."""
    from dataclasses import asdict

    import orjson

    from crawler.hooks.delivery import HookSender
    from crawler.hooks.outbox import Outbox
    from crawler.workspace.opening import open_workspace

    loaded = load_config(config, workspace)
    opened = open_workspace(loaded)
    outbox, sent = Outbox(opened), []
    if (test or resend is not None) and not loaded.hooks:
        raise UsageError(f"{config} has no [[hook]]")
    if test or resend is not None:
        opened.prepare()
        if resend is not None and outbox.again(resend) is None:
            raise UsageError(f"there is no delivery {resend}; `sumi-ripple hooks {config}` lists the last ones")
        if test:
            outbox.put(loaded.hooks, "test", {"words": "a test of the hook"})
        sent = HookSender(loaded, opened).send_pending()
    found = outbox.deliveries()
    if as_json:
        shape = {"v": 1, "kind": "hooks", "deliveries": [asdict(each) for each in found]}
        typer.echo(orjson.dumps(shape).decode())
    else:
        for each in found[-20:]:
            words = f"  {each.answer}" if each.answer else ""
            show(f"{each.number:>6}  {each.at}  {each.event:<14} {each.hook}  {each.state}{words}")
        if not found:
            show("Nothing has been sent.")
    if any(each.state != "delivered" for each in sent):
        raise typer.Exit(1)


def check_url(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="URL... CONFIG",
            help="The URLs, and the config file as the last word.",
            autocompletion=complete_config,
            show_default=False,
        ),
    ],
    as_json: JsonOption = False,
) -> None:
    """Show what the config would do with URLs, and by which rule: class, scope, traps, page type, caps.

    Exit code 0 if all of them would be visited, 1 if one would not. Nothing is requested, and no map is needed.
    """
    from crawler.model.urls import UrlError
    from reporter.explain import url_check

    *urls, config = words
    if not urls:
        raise UsageError("give one or more URLs, and the config file as the last word")
    checker = url_check.UrlChecker(load_config(Path(config)))
    try:
        checks = [checker.check(url) for url in urls]
    except UrlError as problem:
        raise UsageError(f"{problem}; give URLs like https://example.com/page") from None
    if as_json:
        typer.echo(url_check.as_json(checks), nl=False)
    else:
        show(url_check.as_text(checks))
    if not all(check.is_visited for check in checks):
        raise typer.Exit(1)


def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="URL [CONFIG]",
            help="The URL, or a bare domain; and the config file, unless it is the one that ./workspace was last"
            " crawled with.",
            autocompletion=complete_config,
            show_default=False,
        ),
    ],
    everything: Annotated[bool, typer.Option("--all", help="Name every page that links there.")] = False,
    as_json: JsonOption = False,
    run: RunOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Explain a URL's state in the map: class, state, depths with a shortest path, robots.txt, links to it.

    Also says what would have to change for it to be crawled. A URL that was never found is explained too. A bare
    domain (example.org) is explained as a whole.
    """
    from crawler.model.urls import UrlError
    from reporter.explain.domain_explanation import explain_domain
    from reporter.explain.explanation import explain as explain_url

    configs = [word for word in words if word.endswith(".toml")]
    urls = [word for word in words if word not in configs]
    if len(urls) != 1 or len(configs) > 1:
        raise UsageError("give one URL and at most one config (a .toml file)")
    config = load_config(Path(configs[0]), workspace) if configs else last_config(workspace)
    asked = asked_map(config, run)
    config, database = asked.rules, asked.path
    domain = _bare_domain(urls[0])
    if domain is not None:
        facts = explain_domain(config, database, domain)
        _show_facts(facts, as_json, everything)
        return
    try:
        found = explain_url(config, database, urls[0], is_uncut=everything)
    except UrlError as problem:
        raise UsageError(f"{problem}; write the whole URL, like https://example.com/page") from None
    _show_facts(found, as_json, everything)


def _show_facts(facts: Explanation | DomainExplanation, as_json: bool, is_uncut: bool) -> None:
    if as_json:
        typer.echo(facts.json(), nl=False)
    else:
        show(facts.text(is_uncut=is_uncut))


def _bare_domain(word: str) -> str | None:
    """The domain that a word without scheme and path names, as keys write it; None for anything else."""
    from crawler.config import checks
    from crawler.model.urls import without_www

    try:
        pattern = str(checks.domain_pattern(word))
    except checks.Bad:
        return None
    return None if pattern.startswith("*.") or "." not in pattern else without_www(pattern)


def last_config(given: Path | None) -> Config:
    """The config that a workspace was last crawled with. Raises UsageError."""
    from crawler.config.last_used import last_used_source
    from crawler.workspace.opening import open_workspace

    root = given or default_workspace(Path("workspace").absolute())
    source = last_used_source(open_workspace(root))
    if source is None:
        raise UsageError(f"which config? nothing has been crawled in {root} yet, so name a config file")
    return load_config(source, root)


def export(
    config: MapArgument,
    target: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The file to write; its ending names the format. [default: standard output]"
        ),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="gexf, graphml, csv, jsonl, parquet or warc. [default: by the ending of FILE, else jsonl]",
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        str, typer.Option("--level", metavar="LEVEL", help="Export pages (page) or domains (domain).")
    ] = "page",
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", min=0, help="Only up to depth N.", show_default=False)
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option(
            "--class",
            metavar="CLASS",
            help="Only this class: quality, discovered, stubbed or blacklisted; may be repeated.",
        ),
    ] = None,
    states: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="Only pages in this state; may be repeated.")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain", metavar="PATTERN", help="Only this domain: example.com, or *.example.com.", show_default=False
        ),
    ] = None,
    run: RunOption = None,
    workspace: WorkspaceOption = None,
    around: Annotated[
        str | None,
        typer.Option(
            "--around", metavar="DOMAIN", help="Only this domain and those linked with it.", show_default=False
        ),
    ] = None,
    steps: Annotated[
        int | None,
        typer.Option(
            "--steps", metavar="N", min=0, help="With --around: up to N steps away. [default: 1]", show_default=False
        ),
    ] = None,
    no_self_loops: Annotated[
        bool, typer.Option("--no-self-loops", help="Leave out links from a page, or domain, to itself.")
    ] = False,
) -> None:
    """Export the map for other tools: pages or domains, and the links between them."""
    if format == "warc" or (format is None and target is not None and ".warc" in target.suffixes[-2:]):
        unfit = [
            name
            for name, is_given in (
                *(("--level", level != "page"), ("--depth", depth is not None), ("--class", bool(classes))),
                *(("--state", bool(states)), ("--around", around is not None), ("--steps", steps is not None)),
            )
            if is_given
        ]
        if unfit:
            raise UsageError(f"{unfit[0]} does not fit a WARC file, which takes --run and --domain alone")
        _export_warc(config, target, run, domain, workspace)
        return
    from crawler.model.shown_text import counted
    from crawler.rules.lists import EntryNotes
    from reporter.export.graph import FORMATS, Filters
    from reporter.export.graph import export as write_export
    from reporter.export.nearest import require_something

    name = format or (target.suffix.removeprefix(".") if target else "jsonl")
    if name not in FORMATS:
        raise UsageError(f"{name or 'a file without an ending'} is not a format; the formats are {', '.join(FORMATS)}")
    if target is not None and (target.suffix == ".toml" or _is_database(target)):
        raise UsageError(f"{target} is a config or a database, which an export never replaces; give another file")
    if steps is not None and around is None:
        raise UsageError("--steps counts from a domain: give it with --around DOMAIN")
    is_database = run is not None and config.suffix != ".toml" and not _is_toml(config)
    database, is_own = (database_of(config), False) if is_database else map_at(config, workspace, run)
    filters = Filters(
        depth=depth,
        classes=tuple(classes or ()),
        states=tuple(states or ()),
        domain=domain,
        run=None if is_own else run,
        around=around,
        steps=1 if steps is None else steps,
        self_loops=not no_self_loops,
    )
    require_something(database, filters)
    found = write_export(
        database,
        target if target else sys.stdout.buffer,
        format=name,
        level=level,
        filters=filters,
        notes=EntryNotes(load_config(config, workspace)) if is_config(config) else None,
    )
    if target:
        files = " and ".join(str(path) for path in found.files)
        typer.echo(f"Wrote {counted(found.nodes, level)} and {counted(found.edges, 'link')} to {files}")
    else:
        sys.stdout.buffer.flush()


def _export_warc(
    config: Path, target: Path | None, run: int | None, domain: str | None, workspace: Path | None
) -> None:
    from crawler.model.shown_text import counted
    from crawler.store.file_store import open_store
    from reporter.export.warc import export_warc

    if target is None:
        raise UsageError("a WARC file has an index beside it: give it a file name that ends in .warc.gz")
    if not is_config(config):
        raise UsageError("a WARC file is made of results and stored pages: give the config file, not a database")
    loaded = load_config(config, workspace)
    program = f"Sumi-Ripple/{version()}"
    made = export_warc(loaded, open_store(loaded), target, program, run=run, domain=domain)
    files = " and ".join(str(path) for path in made.files)
    typer.echo(f"Wrote {counted(made.responses, 'response')} and {counted(made.revisits, 'revisit')} to {files}")
    if made.missing:
        show(
            f"{counted(made.missing, 'visit')} left out: the page is no longer in the store, or damaged there", err=True
        )


def draw_map(
    config: MapArgument,
    target: Annotated[
        Path, typer.Argument(metavar="FILE", help="The page to write, e.g. map.html.", show_default=False)
    ],
    domains: Annotated[
        int, typer.Option("--domains", metavar="N", help="Show at most so many domains, 1 to 5000.")
    ] = 2000,
    run: RunOption = None,
) -> None:
    """Write the domain map as one HTML page, to be opened by a double click: no server, no network.

    Quality domains are shown first, then those that the most different quality domains link to.
    """
    from crawler.model.shown_text import counted
    from reporter.map.map_data import MOST_DOMAINS
    from reporter.map.map_page import write_map

    if target.suffix.lower() not in (".html", ".htm"):
        raise UsageError(f"{target} is not the name of a page; give one that ends in .html")
    if not 1 <= domains <= MOST_DOMAINS:
        raise UsageError(f"--domains {domains}: give a number from 1 to {MOST_DOMAINS}")
    found = write_map(map_at(config, run=run)[0], target, most=domains)
    typer.echo(
        f"Wrote {target}: showing {found.domains:,} of {counted(found.domains_known, 'domain')} and {found.links:,} of"
        f" {found.links_known:,} links between them"
    )


def audit(
    config: OptionalConfigArgument = None,
    everything: Annotated[
        bool, typer.Option("--all", help="List every violation, however many there are. [default: the first 1,000]")
    ] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Check from the ledgers in the result spools that the crawl was polite; list the violations."""
    from crawler.observe.audit import audit as run_audit
    from crawler.workspace.opening import open_workspace

    loaded = load_config(config, workspace) if config else last_config(workspace)
    if not open_workspace(loaded).results.writers():
        raise SumiError(f"there are no result spools in {loaded.workspace}; nothing has been crawled there yet")
    place = f" --workspace {workspace}" if workspace else ""
    command = f"sumi-ripple audit {f'{config} ' if config else ''}--all{place}"
    found = run_audit(loaded, is_uncut=everything, command=command)
    for line in found.lines():
        show(line)
    raise typer.Exit(0 if found.is_clean else 1)
