"""The command line: commands parse, call, print. Heavy modules are imported by the command that needs them."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler import steering
from crawler.errors import SumiError, UsageError, sentence
from crawler.shell import (
    ConfigArgument,
    DefaultToCrawl,
    JsonOption,
    PlainCommand,
    QuietOption,
    VerboseOption,
    WorkersOption,
    WorkspaceOption,
    complete_config,
)

if TYPE_CHECKING:
    from crawler.settings import Config

EXAMPLES = """\b
Examples:
  sumi-ripple demo                       crawl the built-in demo terrain
  sumi-ripple init my.toml               write a commented config to start from
  sumi-ripple my.toml --dry-run          check it, and see what it means
  sumi-ripple my.toml                    crawl; Ctrl-C saves, the same command goes on
  sumi-ripple status --watch             what is going on
  sumi-ripple pause; sumi-ripple resume  hold on, go on
  sumi-ripple explain https://a.example/page my.toml
  sumi-ripple replay my.toml --into other.db

\b
Exit codes: 0 done, 1 failed, 2 bad usage or config, 130 interrupted (state saved)."""

app = typer.Typer(
    cls=DefaultToCrawl,
    name="sumi-ripple",
    help="A polite web-terrain mapper: walks outward from the domains you care about and records who links to whom.",
    epilog=EXAMPLES,
    no_args_is_help=True,
    subcommand_metavar="[COMMAND] CONFIG ...",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


# -- what several commands need --------------------------------------------------------------------------


def _load(path: Path, workspace: Path | None = None, workers: int | None = None) -> Config:
    from crawler.config import load

    return load(path, workspace=workspace, workers=workers)


def _log_to_stderr(verbose: int, quiet: bool) -> int:
    from crawler.logs import configure, level_of

    level = level_of(verbose, quiet)
    configure(level)
    return level


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"sumi-ripple {version()}")
        raise typer.Exit


def version() -> str:
    from importlib import metadata

    try:
        return metadata.version("sumi-ripple")
    except metadata.PackageNotFoundError:
        return "1.0.0"


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("-V", "--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A polite web-terrain mapper: walks outward from the domains you care about and records who links to whom."""


# -- crawling -------------------------------------------------------------------------------------------------


@app.command(
    cls=PlainCommand,
    short_help="All stages, until the run is complete (the default).",
    epilog="\b\nExamples:\n  sumi-ripple my.toml\n  sumi-ripple my.toml -v --workers 4\n  sumi-ripple my.toml --fresh",
)
def crawl(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with an interrupted run; this is what happens anyway.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start from nothing; what was crawled before is moved aside, never deleted.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the config and show what would be crawled.")
    ] = False,
    stats: Annotated[bool, typer.Option("--stats", help="Show figures from the database and exit.")] = False,
    export_summary: Annotated[
        bool, typer.Option("--export-summary", help="Write the summary from the database and exit.")
    ] = False,
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Crawl: all stages, until the run is complete (the default command).

    An interrupted run is resumed; after a completed one the next run starts on the same database.
    """
    if resume and fresh:
        raise UsageError("--resume and --fresh contradict each other: give one of them")
    if sum((dry_run, stats, export_summary)) > 1:
        raise UsageError("give only one of --dry-run, --stats and --export-summary")
    if verbose and quiet:
        raise UsageError("-v and -q contradict each other: give one of them")
    loaded = _load(config, workspace, workers)
    if dry_run:
        _show_dry_run(loaded)
    elif stats:
        from reporter.stats import stats as figures

        typer.echo(figures(loaded.output.database_path), nl=False)
    elif export_summary:
        _write_summary(loaded)
    else:
        raise typer.Exit(_crawl(loaded, verbose, quiet, fresh))


def _crawl(config: Config, verbose: int, quiet: bool, fresh: bool, *, is_ours: bool = False) -> int:
    """Crawl with a config of the user's, or with one of ours, which needs no warnings."""
    import logging

    from crawler.config import warnings
    from crawler.crawl import Manner
    from crawler.crawl import crawl as run_crawl
    from reporter.summary import write_summary

    _log_to_stderr(verbose, quiet)
    log = logging.getLogger("sumi.crawl")
    log.info("Starting Sumi-Ripple v%s", version().removesuffix(".0"))
    log.info(
        "Loaded configuration with %d quality domains, %d blacklisted, %d stubbed",
        len(config.quality),
        len(config.blacklist),
        len(config.stub),
    )
    for warning in [] if is_ours else warnings(config):
        log.warning("%s", warning)
    return run_crawl(config, write_summary, is_fresh=fresh, manner=Manner(verbose, quiet))


def _show_dry_run(config: Config) -> None:
    from crawler.config import describe, warnings
    from crawler.pool import fetcher_count

    typer.echo(describe(config))
    typer.echo(f"  fetchers that would start: {fetcher_count(config)}")
    found = warnings(config)
    if found:
        typer.echo("\nWarnings")
        for warning in found:
            typer.echo(f"  {warning}")
    typer.echo("\nNothing was asked of any site.")


def _write_summary(config: Config) -> None:
    from reporter.summary import write_summary

    write_summary(config.output.database_path, config.output.summary_path)
    typer.echo(f"Summary written to {config.output.summary_path}")


@app.command(
    cls=PlainCommand,
    short_help="Crawl the built-in demo terrain, on this machine alone.",
    epilog="\b\nExample:\n  sumi-ripple demo --workers 2",
)
def demo(
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start from nothing.")] = False,
    keep_serving: Annotated[
        bool, typer.Option("--keep-serving", help="Leave the demo's server running afterwards, until Ctrl-C.")
    ] = False,
) -> None:
    """Crawl the built-in demo terrain: a small web that is served from this machine alone."""
    from crawler.demo.config import write_demo_config
    from crawler.demo.server import serve_terrain
    from crawler.demo.terrain import demo_terrain

    folder = (workspace or Path("workspace")) / "demo"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"cannot use {folder} for the demo: {problem.strerror}") from None
    folder = folder.resolve()
    with serve_terrain(demo_terrain(), folder) as served:
        path = write_demo_config(folder, served)
        config = _load(path, folder, workers)
        if not quiet:
            typer.echo(f"The demo terrain is served on 127.0.0.1:{served.port}; its config is {path}")
        code = _crawl(config, verbose, quiet, fresh, is_ours=True)
        if code == 0 and not quiet:
            from reporter.stats import stats as figures

            typer.echo("\n" + figures(config.output.database_path), nl=False)
        if keep_serving:
            _serve_on(served.port, served.ca_path)
    raise typer.Exit(code)


def _serve_on(port: int, ca_path: Path) -> None:
    typer.echo(f"Still serving on 127.0.0.1:{port} (its CA: {ca_path}); Ctrl-C ends it. To look at a page:")
    typer.echo(f"  curl --cacert {ca_path} --connect-to ::127.0.0.1:{port} https://tea-almanac.test/")
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        pass


@app.command(cls=PlainCommand, epilog="\b\nExample:\n  sumi-ripple init my.toml")
def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The config to write.", show_default=False)],
) -> None:
    """Write a commented config to start from."""
    from crawler.config import TEMPLATE

    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError:
        raise UsageError(f"{path} exists already; it stays as it is") from None
    except OSError as problem:
        raise UsageError(f"cannot write {path}: {problem.strerror}") from None
    typer.echo(f"Wrote {path}. Put your domains in, then: sumi-ripple {path} --dry-run")


# -- one stage alone ------------------------------------------------------------------------------------------


def _ready_stage(config: Config, stage: str) -> None:
    """Before a stage is started by hand: leftovers of an earlier stop go, and the settings are noted."""
    import logging

    from crawler import snapshot
    from crawler.glance import look
    from crawler.supervisor import remove_stop_flags
    from crawler.workspace import Workspace

    workspace = Workspace(config.workspace)
    workspace.prepare()
    snapshot.require_own_workspace(config)
    if not any(found.is_running for found in look(workspace).stages):
        removed = remove_stop_flags(workspace)
        if removed:
            logging.getLogger("sumi.cli").warning("Removed flag files of an earlier stop: %s", ", ".join(removed))
    elif workspace.is_flagged("stop", stage):
        raise SumiError(f"the stages in {workspace.root} have been told to stop; to take that back: sumi-ripple resume")
    snapshot.write(config)


@app.command(cls=PlainCommand, short_help="The scheduler alone: keeps the run, releases jobs.")
def schedule(
    config: ConfigArgument, verbose: VerboseOption = 0, quiet: QuietOption = False, workspace: WorkspaceOption = None
) -> None:
    """The scheduler alone: starts or resumes the run and releases jobs."""
    from crawler.scheduler import run_scheduler

    _log_to_stderr(verbose, quiet)
    loaded = _load(config, workspace)
    _ready_stage(loaded, "scheduler")
    raise typer.Exit(run_scheduler(loaded))


@app.command(cls=PlainCommand, short_help="Fetchers alone: visit what is released.")
def fetch(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Fetchers alone: visit what is released. May be started in several terminals."""
    from crawler.pool import run_pool

    level = _log_to_stderr(verbose, quiet)
    loaded = _load(config, workspace, workers)
    _ready_stage(loaded, "fetcher")
    raise typer.Exit(run_pool(loaded, workers, log_level=level))


@app.command(cls=PlainCommand)
def ingest(
    config: ConfigArgument,
    verbose: VerboseOption = 0,
    quiet: QuietOption = False,
    drain: Annotated[bool, typer.Option("--drain", help="Take in what is there, then end.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """The ingest alone: takes results into the database."""
    from ingest.loop import run_ingest

    _log_to_stderr(verbose, quiet)
    loaded = _load(config, workspace)
    _ready_stage(loaded, "ingest")
    raise typer.Exit(run_ingest(loaded, drain=drain))


@app.command(cls=PlainCommand)
def report(
    config: ConfigArgument,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the run is complete.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """The reporter alone: writes the summary from the database."""
    loaded = _load(config, workspace)
    if wait:
        from crawler.runs import RunStatus, read_run
        from crawler.workspace import Workspace

        while (run := read_run(Workspace(loaded.workspace))) is None or run.status is not RunStatus.COMPLETED:
            time.sleep(0.5)
    _write_summary(loaded)


# -- the map --------------------------------------------------------------------------------------------------


def _database(path: Path, workspace: Path | None = None) -> Path:
    """The database that a user means by a config or by the database itself."""
    try:
        with path.open("rb") as file:
            if file.read(16) == b"SQLite format 3\0":
                return path
    except OSError:
        pass
    if path.suffix in (".db", ".sqlite", ".sqlite3") and not path.exists():
        raise UsageError(f"there is no database at {path}")
    if path.is_file() and path.suffix != ".toml" and not _is_toml(path):
        raise UsageError(f"{path} is neither a database of Sumi-Ripple nor a TOML config")
    return _load(path, workspace).output.database_path


def _is_toml(path: Path) -> bool:
    import tomli

    try:
        tomli.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return True


MapArgument = Annotated[
    Path,
    typer.Argument(
        metavar="CONFIG", help="The TOML config, or a database.", autocompletion=complete_config, show_default=False
    ),
]


@app.command(
    cls=PlainCommand,
    short_help="Draw the map anew from the result spools.",
    epilog="\b\nExample:\n  sumi-ripple replay my.toml --into other.db",
)
def replay(
    config: ConfigArgument,
    into: Annotated[Path, typer.Option("--into", metavar="FILE", help="The new database.", show_default=False)],
    until: Annotated[
        str | None,
        typer.Option("--until", metavar="TIME", help="Leave out what was recorded later, e.g. 2025-01-15T10:30:00Z."),
    ] = None,
    run: Annotated[int | None, typer.Option("--run", metavar="N", min=1, help="Only this run.")] = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="Say how the new map differs from the config's database.")
    ] = False,
    workspace: WorkspaceOption = None,
    quiet: QuietOption = False,
) -> None:
    """Draw the map anew from the result spools, into a new database; nothing is asked of any site.

    Change the lists, max-depth or the tracking parameters in the config first, and see the map as it would be.
    """
    from ingest.replay import replay as run_replay

    _log_to_stderr(0, quiet)
    loaded = _load(config, workspace)
    live = loaded.output.database_path
    until_text = _time(until) if until is not None else None
    if into.exists():
        raise UsageError(f"{into} exists already; name a file that does not, replay never writes over a map")
    progress = _Progress() if not quiet else None
    try:
        found = run_replay(
            loaded,
            into,
            until=until_text,
            run=run,
            progress=progress,
            compare=live if compare and live.exists() else None,
        )
    finally:
        if progress is not None:
            progress.end()
    if not quiet:
        for line in found.lines():
            typer.echo(line)
        typer.echo(f"The map is in {into}")


def _time(text: str) -> str:
    """A time as the records write it: RFC 3339, UTC, milliseconds."""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"--until {text!r} is not a time; write it like 2025-01-15T10:30:00Z") from None
    if moment.tzinfo is None:
        moment = moment.astimezone()
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Progress:
    """Percent on a terminal, nothing elsewhere."""

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


@app.command(cls=PlainCommand, epilog="\b\nExample:\n  sumi-ripple digest sumi-ripple.db")
def digest(
    database: Annotated[Path, typer.Argument(metavar="DATABASE", help="A map (or its config).", show_default=False)],
    parts: Annotated[bool, typer.Option("--parts", help="One line for each kind of row.")] = False,
) -> None:
    """One line: a hash of the map, free of ids and clocks. Equal maps have equal digests."""
    from ingest.digest import digest as digest_of
    from ingest.digest import parts as parts_of

    path = _database(database)
    if not path.exists():
        raise UsageError(f"there is no database at {path}")
    if parts:
        for name, value in parts_of(path).items():
            typer.echo(f"{value}  {name}")
    else:
        typer.echo(digest_of(path))


@app.command(cls=PlainCommand, epilog="\b\nExample:\n  sumi-ripple stats my.toml --by domain")
def stats(
    config: MapArgument,
    by: Annotated[
        str | None, typer.Option("--by", metavar="WHAT", help="domain, state, depth or error.", show_default=False)
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """The figures of the summary, as a table or as JSON."""
    from reporter.stats import BY
    from reporter.stats import stats as figures

    if by is not None and by not in BY:
        raise UsageError(f"--by {by}: give one of {', '.join(BY)}")
    typer.echo(figures(_database(config), by, as_json), nl=False)


@app.command(
    cls=PlainCommand,
    short_help="Why a URL is as it is in the map.",
    epilog="\b\nExample:\n  sumi-ripple explain https://example.com/page my.toml",
)
def explain(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="URL [CONFIG]",
            help="The URL; and the config, if it is not the one that ./workspace was last crawled with.",
            autocompletion=complete_config,
            show_default=False,
        ),
    ],
    as_json: JsonOption = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Why a URL is as it is in the map: class, state, depths with a shortest path, robots, who links to it.

    And what would have to change for it to be crawled. For a URL never seen: what would happen to it.
    """
    from crawler.urls import UrlError
    from reporter.explain import explain as explain_url

    configs = [word for word in words if word.endswith(".toml")]
    urls = [word for word in words if word not in configs]
    if len(urls) != 1 or len(configs) > 1:
        raise UsageError("give one URL, and one config (a .toml file) at most")
    config = _load(Path(configs[0]), workspace) if configs else _last_config(workspace)
    try:
        found = explain_url(config, config.output.database_path, urls[0])
    except UrlError as problem:
        raise UsageError(f"{problem}; write it out in full, like https://example.com/page") from None
    typer.echo(found.json() if as_json else found.text(), nl=False)


def _last_config(given: Path | None) -> Config:
    """The config that a workspace was last crawled with."""
    from crawler import snapshot
    from crawler.workspace import Workspace

    place = Workspace(given) if given else steering.meant_here(Workspace(Path("workspace").absolute()))
    found = snapshot.read(place)
    if found is None or not found.get("source"):
        raise UsageError(f"which config? {place.root} has not been crawled with one yet, so name it")
    return _load(Path(found["source"]), place.root)


@app.command(
    cls=PlainCommand,
    short_help="The map as GEXF, GraphML, CSV or JSON lines.",
    epilog="\b\nExamples:\n  sumi-ripple export my.toml map.gexf\n"
    "  sumi-ripple export my.toml --format jsonl --level domain > domains.jsonl",
)
def export(
    config: MapArgument,
    target: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="Where to; its ending names the format. [default: standard output]"),
    ] = None,
    format: Annotated[
        str | None, typer.Option("--format", metavar="NAME", help="gexf, graphml, csv or jsonl.", show_default=False)
    ] = None,
    level: Annotated[str, typer.Option("--level", metavar="LEVEL", help="page or domain.")] = "page",
    depth: Annotated[
        int | None, typer.Option("--depth", metavar="N", min=0, help="Least depth N or less.", show_default=False)
    ] = None,
    classes: Annotated[
        list[str] | None,
        typer.Option("--class", metavar="CLASS", help="quality, discovered, stubbed or blacklisted; may be repeated."),
    ] = None,
    states: Annotated[
        list[str] | None, typer.Option("--state", metavar="STATE", help="A state of pages; may be repeated.")
    ] = None,
    domain: Annotated[
        str | None,
        typer.Option("--domain", metavar="PATTERN", help="example.com, or *.example.com.", show_default=False),
    ] = None,
    run: Annotated[
        int | None, typer.Option("--run", metavar="N", min=1, help="Known in this run.", show_default=False)
    ] = None,
) -> None:
    """The map as a file for other tools: pages or domains, and who links to whom."""
    from reporter.export import FORMATS, Filters
    from reporter.export import export as write_export

    name = format or (target.suffix.removeprefix(".") if target else "jsonl")
    if name not in FORMATS:
        raise UsageError(f"{name or 'no ending'}: which format? Give --format {', '.join(FORMATS)}")
    filters = Filters(depth, tuple(classes or ()), tuple(states or ()), domain, run)
    found = write_export(
        _database(config), target if target else sys.stdout.buffer, format=name, level=level, filters=filters
    )
    if target:
        files = " and ".join(str(path) for path in found.files)
        typer.echo(f"Wrote {found.nodes:,} {level}s and {found.edges:,} links to {files}")
    else:
        sys.stdout.buffer.flush()


@app.command(cls=PlainCommand, short_help="Prove from the spools that the crawl was polite.")
def audit(config: ConfigArgument, workspace: WorkspaceOption = None) -> None:
    """Prove from the spools that the crawl was polite, or name every violation."""
    from crawler.audit import audit as run_audit
    from crawler.workspace import Workspace

    loaded = _load(config, workspace)
    if not Workspace(loaded.workspace).result_writers():
        raise SumiError(f"there are no result spools in {loaded.workspace}: nothing has been crawled there yet")
    found = run_audit(loaded)
    for line in found.lines():
        typer.echo(line)
    raise typer.Exit(0 if found.is_clean else 1)


# -- steering -------------------------------------------------------------------------------------------------

app.command(
    cls=PlainCommand,
    short_help="What is running, paused, waiting, and why.",
    epilog="\b\nExamples:\n  sumi-ripple status\n  sumi-ripple status my.toml --watch",
)(steering.status)
app.command(cls=PlainCommand, epilog="\b\nExamples:\n  sumi-ripple pause\n  sumi-ripple pause my.toml fetcher")(
    steering.pause
)
app.command(cls=PlainCommand, short_help="Go on after a pause.")(steering.resume)
app.command(cls=PlainCommand, short_help="Finish what is in flight, save and end.")(steering.stop)


# -- errors ---------------------------------------------------------------------------------------------------


def run(arguments: Sequence[str]) -> int:
    """Run a command; errors that a person can mend are one sentence on standard error. Returns the exit code."""
    try:
        app(list(arguments), prog_name="sumi-ripple")
    except SystemExit as end:
        return _code(end.code)
    except (SumiError, OSError) as problem:
        return _complain(problem)
    except Exception as problem:
        if type(problem).__module__ == "sqlite3":
            return _complain(SumiError(f"the database cannot be used: {problem}"))
        raise
    return 0


def _code(code: object) -> int:
    return code if isinstance(code, int) else 0 if code is None else 1


def _complain(problem: Exception) -> int:
    sys.stderr.write(f"sumi-ripple: {sentence(problem)}\n")
    return problem.exit_code if isinstance(problem, SumiError) else 1
