"""The commands over the engine: init, check, stats, import, export. docs/scale.md tells more."""

from __future__ import annotations

import os
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawler.cli.help_format import PlainCommand
from crawler.cli.options import ConfigArgument, JsonOption, WorkspaceOption, load_config, show
from crawler.model.errors import SumiError, UsageError
from crawler.model.map_place import LIVE, MapPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

    from crawler.engine.schemas import Schema
    from crawler.model.settings import Config
    from crawler.workspace.postgres.workspace_transfer import Transferred

engine_commands = typer.Typer(
    name="engine",
    help="PostgreSQL in place of files and SQLite, where [engine] url names one. docs/scale.md tells more.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _schemas() -> tuple[Schema, ...]:
    from crawler.workspace.postgres.workspace_schema import WORKSPACE

    return (WORKSPACE,)


def _with_engine(path: Path, workspace: Path | None) -> Config:
    config = load_config(path, workspace)
    if not config.engine.url:
        raise UsageError(f'{path} names no engine; add [engine] with url = "postgresql://user@host/database"')
    return config


@contextmanager
def _connected(path: Path) -> Iterator[psycopg.Connection[Any]]:
    from crawler.engine.engine_connection import connect

    config = _with_engine(path, None)
    with connect(config.engine.url, "command") as connection:
        yield connection


@engine_commands.command("init", cls=PlainCommand)
def init(config: ConfigArgument) -> None:
    """Make the schema of the workspace in the engine's database, or bring it up to date. What is there stays.

    The map's schema is made by its first ingest, which brings an older one up to date, too.
    """
    from crawler.engine.schemas import upgrade

    with _connected(config) as connection:
        for schema in _schemas():
            steps = upgrade(connection, schema)
            done = "is up to date" if not steps else "is made" if steps == schema.newest else "is brought up to date"
            show(f"{schema.name} {done} (version {schema.newest}) in {connection.info.dbname}.")
    show(_map_words(load_config(config)))


@engine_commands.command("check", cls=PlainCommand)
def check(config: ConfigArgument) -> None:
    """Check that the engine can be reached, its schemas are those of this program, and its settings keep promises.

    Exit code 1: it cannot be used as it is.
    """
    from crawler.engine.place import place_of
    from crawler.engine.schemas import require
    from crawler.engine.server_facts import server_facts

    with _connected(config) as connection:
        facts = server_facts(connection)
        encryption = facts.encryption or "none"
        show(f"Engine       {place_of(load_config(config).engine.url, os.environ)}")
        show(f"Version      PostgreSQL {facts.version}")
        show(f"Encryption   {encryption}")
        show(f"Connections  {facts.connections} of {facts.max_connections}")
        problems = []
        for schema in _schemas():
            try:
                require(connection, schema)
                show(f"Schema       {schema.name}, version {schema.newest}")
            except SumiError as problem:
                problems.append(str(problem))
        try:
            show(f"Map          {_map_words(load_config(config))}")
        except SumiError as problem:
            problems.append(str(problem))
        for caution in facts.cautions():
            show(f"Caution      {caution}")
        if problems or facts.is_standby:
            raise SumiError("; ".join(problems) or "the engine is a standby")


def _map_words(config: Config) -> str:
    """What is in the map's place. Raises NotAMap where that is another program's, or of a format that is not read."""
    from crawler.database.presence import format_of

    version = format_of(config.map_place)
    return f"{LIVE} is made by the first ingest." if version is None else f"{LIVE}, format {version}"


@engine_commands.command("import", cls=PlainCommand)
def import_workspace(config: ConfigArgument, workspace: WorkspaceOption = None) -> None:
    """Take a workspace of files and its map into the engine, which must be empty. The files stay as they are."""
    from crawler.workspace.files.file_workspace import FileWorkspace
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace
    from crawler.workspace.postgres.workspace_transfer import import_files

    loaded = _with_engine(config, workspace)
    source = FileWorkspace(loaded.workspace)
    if not source.results.writers():
        raise UsageError(f"there is nothing to import: no results in {loaded.workspace}")
    _require_no_map(loaded.map_place)
    target = EngineWorkspace(loaded.workspace, loaded.engine.url, loaded.engine.archive)
    try:
        _say_moved(import_files(source, target), "the engine")
    finally:
        target.close()
    _copy_map(loaded.output.database_path, loaded.map_place)


@engine_commands.command("export", cls=PlainCommand)
def export_workspace(
    config: ConfigArgument,
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="A new or empty folder.", show_default=False)],
) -> None:
    """Bring the workspace and the map of the engine into a folder of files. The engine stays as it is.

    To go on from there, leave [engine] out of the config, and name the folder and the map in it in [output].
    """
    from crawler.workspace.files.file_workspace import FileWorkspace
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace
    from crawler.workspace.postgres.workspace_transfer import export_files

    loaded = _with_engine(config, None)
    source = EngineWorkspace(loaded.workspace, loaded.engine.url, loaded.engine.archive)
    try:
        _say_moved(export_files(source, FileWorkspace(into.absolute())), str(into))
    finally:
        source.close()
    _copy_map(loaded.map_place, into.absolute() / loaded.output.database_path.name)


def _require_no_map(place: MapPlace) -> None:
    """Before anything is moved. Raises SumiError."""
    from ingest.map_transfer import TransferError
    from ingest.whole_maps import exists

    if exists(place):
        raise TransferError(f"there is a map already, {place}; move it aside first with: sumi-ripple reset CONFIG")


def _copy_map(source: MapPlace, target: MapPlace) -> None:
    """Copy a map, if there is one, and see that the copy says the same. Raises SumiError."""
    from crawler.database.digest import digest
    from crawler.database.presence import is_there
    from crawler.model.shown_text import counted
    from ingest.map_transfer import copy_whole_map

    if not is_there(source):
        show("There is no map to take along: the next crawl makes it from the results.")
        return
    pages = copy_whole_map(source, target)
    if (before := digest(source)) != (now := digest(target)):
        raise SumiError(f"the copy {target} has the digest {now}, and the map {source} has {before}")
    show(f"The map is in {target}: {counted(pages, 'page')}, digest {now}.")


def _say_moved(moved: Transferred, where: str) -> None:
    from crawler.model.shown_text import counted

    show(
        f"{counted(moved.lines, 'line')} of {counted(moved.logs, 'result log')}, {counted(moved.domains, 'gate')} and "
        f"{counted(moved.documents, 'document')} are in {where}. Every domain waits its delay first."
    )


@engine_commands.command("stats", cls=PlainCommand)
def stats(config: ConfigArgument, as_json: JsonOption = False) -> None:
    """Show what is in the engine: processes and leases, logs, tables and their sizes."""
    from dataclasses import asdict

    import orjson

    from crawler.engine.schemas import require
    from crawler.engine.server_facts import schema_sizes
    from crawler.workspace.postgres.engine_figures import engine_figures

    with _connected(config) as connection:
        for schema in _schemas():
            require(connection, schema)
        figures = engine_figures(connection)
        names = [*(schema.name for schema in _schemas()), LIVE]  # the map is made by its first ingest
        sizes = {name: schema_sizes(connection, name) for name in names}
    if as_json:
        tables = [
            {"schema": schema, "table": table, "rows": rows, "bytes": size}
            for schema, rows_of in sizes.items()
            for table, rows, size in rows_of
        ]
        typer.echo(orjson.dumps(asdict(figures) | {"tables": tables}, option=orjson.OPT_INDENT_2).decode())
        return
    lines = [
        f"Processes   {figures.processes:,} on {figures.machines:,} machines; roles taken: "
        f"{', '.join(figures.roles) or 'none'}",
        f"Domains     {figures.domains:,} gates, {figures.leased:,} leased, {figures.in_flight:,} requests out",
        f"Jobs        {figures.windows:,} windows of {figures.job_domains:,} domains",
        *(f"Log         {name}: {size:,} bytes in {count:,} segments" for name, (count, size) in figures.logs.items()),
        *(
            f"Archived    {name}: {size:,} bytes in {count:,} segments"
            for name, (count, size) in figures.archived.items()
        ),
    ]
    for name, tables_of in sizes.items():
        lines += [f"Table       {name}.{table}: about {rows:,} rows, {size:,} bytes" for table, rows, size in tables_of]
    typer.echo("\n".join(lines))
