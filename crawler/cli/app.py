"""All commands with their help, and `run`, which turns errors into one sentence and an exit code.

Commands import heavy modules inside their functions, so that the help appears at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Annotated

import typer
import typer.main

from crawler.cli import (
    control_commands,
    crawl_commands,
    curator_commands,
    engine_commands,
    history_commands,
    keeping_commands,
    map_commands,
    setup_commands,
    stage_commands,
    store_commands,
    web_commands,
)
from crawler.cli.help_format import DefaultToCrawl, PlainCommand
from crawler.cli.options import version
from crawler.model.errors import SumiError, sentence

EXAMPLES = """\b
Examples:
  sumi-ripple demo                       crawl the built-in demo
  sumi-ripple init my.toml               write a commented config to start from
  sumi-ripple my.toml --dry-run          check it and show what it means
  sumi-ripple my.toml                    crawl; Ctrl-C saves, the same command resumes
  sumi-ripple status --watch             show what is running
  sumi-ripple pause; sumi-ripple resume  pause and go on
  sumi-ripple explain https://a.example/page my.toml
  sumi-ripple replay my.toml --into other.db

\b
Exit codes: 0 done, 1 failed, 2 bad usage or config, 130 interrupted (saved)."""

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


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"sumi-ripple {version()}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("-V", "--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A polite web-terrain mapper: walks outward from the domains you care about and records who links to whom."""


# -- the commands, in the order of the help --------------------------------------------------------------------

_command = partial(app.command, cls=PlainCommand)

_command(
    short_help="Run all stages until the run is complete (the default).",
    epilog="\b\nExamples:\n  sumi-ripple my.toml\n  sumi-ripple my.toml -v --workers 4\n  sumi-ripple my.toml --fresh",
)(crawl_commands.crawl)
_command(
    short_help="Crawl the built-in demo, on this machine only.",
    epilog="\b\nExample:\n  sumi-ripple demo --workers 2",
)(crawl_commands.demo)
_command(
    short_help="Write a commented config to start from.",
    epilog="\b\nExamples:\n  sumi-ripple init my.toml\n  sumi-ripple init my.toml --from bookmarks.html",
)(crawl_commands.init)
_command(
    short_help="Make a config, its seeds file and the folders of its workspace.",
    epilog="\b\nExample:\n  sumi-ripple configure my.toml",
)(setup_commands.configure)
_command(
    short_help="Empty a workspace: move its crawl aside, or delete it.",
    epilog="\b\nExamples:\n  sumi-ripple reset my.toml\n  sumi-ripple reset my.toml --purge --yes",
)(setup_commands.reset)
_command(short_help="Run the scheduler alone.")(stage_commands.schedule)
_command(short_help="Run fetchers alone.")(stage_commands.fetch)
_command(short_help="Run the ingest alone.")(stage_commands.ingest)
_command(short_help="Write the summary of the database.")(map_commands.report)
_command(
    short_help="Rebuild the map from the result spools.",
    epilog="\b\nExample:\n  sumi-ripple replay my.toml --into other.db",
)(map_commands.replay)
_command(
    short_help="Print a hash of the map.",
    epilog="\b\nExample:\n  sumi-ripple digest sumi-ripple.db",
)(map_commands.digest)
_command(epilog="\b\nExample:\n  sumi-ripple stats my.toml --by domain")(map_commands.stats)
_command(
    short_help="List the runs with their figures.",
    epilog="\b\nExample:\n  sumi-ripple runs my.toml",
)(history_commands.runs)
_command(
    short_help="Show what changed from one run to another.",
    epilog="\b\nExamples:\n  sumi-ripple diff my.toml\n  sumi-ripple diff my.toml 1 3 --csv > changes.csv",
)(history_commands.diff)
_command(
    short_help="Rank domains that may deserve a place in your lists.",
    epilog="\b\nExamples:\n  sumi-ripple candidates my.toml --limit 5\n"
    "  sumi-ripple candidates my.toml --csv > candidates.csv",
)(curator_commands.candidates)
_command(
    short_help="Put a domain into the quality list.",
    epilog='\b\nExamples:\n  sumi-ripple accept example.org my.toml --note "found on a.example" --tag tea\n'
    "  sumi-ripple accept --undo my.toml",
)(curator_commands.accept)
_command(short_help="Put a domain into the blacklist.")(curator_commands.reject)
_command(short_help="Put a domain into the stub list.")(curator_commands.stub)
_command(
    short_help="Explain the state of a URL.",
    epilog="\b\nExample:\n  sumi-ripple explain https://example.com/page my.toml",
)(map_commands.explain)
_command(
    short_help="Print the figures of a crawl for Prometheus.",
    epilog="\b\nExample:\n  sumi-ripple metrics my.toml --output /var/lib/node_exporter/crawler.prom",
)(map_commands.metrics)
_command(
    short_help="Show and repeat what hooks sent.",
    epilog="\b\nExamples:\n  sumi-ripple hooks my.toml\n  sumi-ripple hooks my.toml --test",
)(map_commands.hooks)
_command(
    name="check-url",
    short_help="Show what the config would do with URLs.",
    epilog="\b\nExample:\n  sumi-ripple check-url https://example.com/page https://b.example/ my.toml",
)(map_commands.check_url)
_command(
    short_help="Export the map as GEXF, GraphML, CSV, JSON lines or Parquet.",
    epilog="\b\nExamples:\n  sumi-ripple export my.toml map.gexf\n"
    "  sumi-ripple export my.toml --format jsonl --level domain > domains.jsonl\n"
    "  sumi-ripple export my.toml near.gexf --level domain --around example.com --steps 2",
)(map_commands.export)
_command(
    name="map",
    short_help="Write the domain map as one HTML page.",
    epilog="\b\nExample:\n  sumi-ripple map my.toml map.html",
)(map_commands.draw_map)
_command(short_help="Check that the crawl was polite.")(map_commands.audit)
_command(
    short_help="Copy a whole crawl while it goes on.",
    epilog="\b\nExamples:\n  sumi-ripple backup /backups/monday my.toml\n  sumi-ripple backup /backups/monday --verify",
)(keeping_commands.backup)
_command(
    short_help="Make a backup a crawl again.",
    epilog="\b\nExample:\n  sumi-ripple restore /backups/monday --into crawl-2",
)(keeping_commands.restore)
_command(
    short_help="Show what each part takes on disk.",
    epilog="\b\nExample:\n  sumi-ripple storage my.toml",
)(keeping_commands.storage)
app.add_typer(
    engine_commands.engine_commands, short_help="PostgreSQL for many machines: init, check, stats, import, export."
)
app.add_typer(store_commands.store_commands, short_help="The stored pages: cat, stats, verify, forget, pack.")
_command(
    short_help="Remove what is older than [retention] allows.",
    epilog="\b\nExamples:\n  sumi-ripple prune my.toml --dry-run\n  sumi-ripple prune results my.toml --yes",
)(keeping_commands.prune)
_command(
    short_help="Archive old visits as compressed tables, or open an archive.",
    epilog="\b\nExamples:\n  sumi-ripple archive my.toml --before 2025-01-31\n"
    "  sumi-ripple archive open workspace/archive/before-2025-01-31",
)(keeping_commands.archive)
_command(
    short_help="Show what is running, paused or waiting, and why.",
    epilog="\b\nExamples:\n  sumi-ripple status\n  sumi-ripple status my.toml --watch",
)(control_commands.status)
_command(
    short_help="Pause all stages, or one.",
    epilog="\b\nExamples:\n  sumi-ripple pause\n  sumi-ripple pause my.toml fetcher",
)(control_commands.pause)
_command(
    short_help="Open the web face on the map and the crawl.",
    epilog="\b\nExamples:\n  sumi-ripple serve my.toml\n  sumi-ripple serve --demo",
)(web_commands.serve)
app.add_typer(web_commands.user_commands, short_help="The accounts of the web face.")
_command(short_help="Resume after a pause.")(control_commands.resume)
_command(short_help="Stop all stages, or one, after saving.")(control_commands.stop)
_command(
    short_help="Read the config again, without stopping the crawl.",
    epilog="\b\nExample:\n  sumi-ripple reload my.toml",
)(control_commands.reload)


# -- errors ---------------------------------------------------------------------------------------------------


def run(arguments: Sequence[str]) -> int:
    """Run a command; returns the exit code. An error that the user can fix is one sentence on standard error."""
    try:
        built()(list(arguments), prog_name="sumi-ripple")
    except SystemExit as end:
        return _code(end.code)
    except (SumiError, OSError) as problem:
        return _report_error(problem)
    return 0


@cache
def built() -> Callable[..., object]:
    """The commands as click knows them. Building them takes 35 ms; those who run several commands pay once."""
    return typer.main.get_command(app)


def _code(code: object) -> int:
    return code if isinstance(code, int) else 0 if code is None else 1


def _report_error(problem: Exception) -> int:
    from crawler.engine.advice import advised
    from crawler.observe.wrapping import fitted, terminal_width

    words = advised(sentence(problem), names_check=False)
    sys.stderr.write(fitted(f"sumi-ripple: {words}", terminal_width(sys.stderr)) + "\n")
    return problem.exit_code if isinstance(problem, SumiError) else 1
