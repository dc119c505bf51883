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
    from collections.abc import Callable, Iterator

    import psycopg

    from crawler.engine.schemas import Schema
    from crawler.model.settings import Config
    from crawler.workspace.files.file_workspace import FileWorkspace
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace
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
def _connected(path: Path) -> Iterator[tuple[psycopg.Connection[Any], Config]]:
    """A connection to the engine that a config names, and the config."""
    from crawler.engine.engine_connection import connect

    config = _with_engine(path, None)
    with connect(config.engine.url, "command") as connection:
        yield connection, config


@engine_commands.command("init", cls=PlainCommand)
def init(config: ConfigArgument) -> None:
    """Make the schema of the workspace in the engine's database, or bring it up to date. What is there stays.

    The map's schema is made by its first ingest, which brings an older one up to date, too.
    """
    from crawler.engine.schemas import upgrade

    with _connected(config) as (connection, loaded):
        for schema in _schemas():
            steps = upgrade(connection, schema)
            done = "is up to date" if not steps else "is made" if steps == schema.newest else "is brought up to date"
            show(f"{schema.name} {done} (version {schema.newest}) in {connection.info.dbname}.")
        show(_map_there(loaded))


@engine_commands.command("check", cls=PlainCommand)
def check(config: ConfigArgument) -> None:
    """Check that the engine can be reached, its schemas are those of this program, and its settings keep promises.

    Exit code 1: it cannot be used as it is.
    """
    from crawler.engine.place import place_of
    from crawler.engine.schemas import require
    from crawler.engine.server_facts import server_facts

    with _connected(config) as (connection, loaded):
        facts = server_facts(connection)
        encryption = facts.encryption or "none"
        show(f"Engine       {place_of(loaded.engine.url, os.environ)}")
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
            show(f"Map          {_map_there(loaded)}")
        except SumiError as problem:
            problems.append(str(problem))
        for caution in facts.cautions():
            show(f"Caution      {caution}")
        if problems or facts.is_standby:
            raise SumiError("; ".join(problems) or "the engine is a standby")


def _map_there(config: Config) -> str:
    """What is in the map's place. Raises NotAMap where that is another program's, or of a format that is not read."""
    from crawler.database.presence import format_of

    version = format_of(config.map_place)
    return f"{LIVE} is made by the first ingest." if version is None else f"{LIVE}, format {version}"


@engine_commands.command("import", cls=PlainCommand)
def import_workspace(config: ConfigArgument, workspace: WorkspaceOption = None) -> None:
    """Take a workspace of files and its map into the engine, which must be empty. The files stay as they are.

    It takes effect as a whole, at its end: one that was cut off is simply repeated.
    """
    from crawler.workspace.files.file_workspace import FileWorkspace
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace
    from crawler.workspace.postgres.workspace_transfer import import_files
    from ingest.whole_maps import remove_left

    loaded = _with_engine(config, workspace)
    source = FileWorkspace(loaded.workspace)
    if not source.results.writers():
        raise UsageError(f"there is nothing to import: no results in {loaded.workspace}")
    target = EngineWorkspace(loaded.workspace, loaded.engine.url, loaded.engine.archive, lease=loaded.engine.lease)
    told: list[str] = []
    try:
        target.prepare()
        if _is_imported(loaded, source, target):
            show(f"The engine {target.session.place} has this crawl already, and its map: nothing was changed.")
            return
        _require_no_map(loaded.map_place, target)
        making = _map_in_engine(loaded.output.database_path, loaded.map_place, told)
        moved = import_files(source, target, making, _change_for(loaded))
        remove_left(loaded.map_place)
    finally:
        target.close()
    _say_moved(moved, "the engine")
    show("\n".join(told))


@engine_commands.command("export", cls=PlainCommand)
def export_workspace(
    config: ConfigArgument,
    into: Annotated[Path, typer.Option("--into", metavar="DIR", help="A new or empty folder.", show_default=False)],
) -> None:
    """Bring the workspace and the map of the engine into a folder of files. The engine stays as it is.

    The folder is there when it is whole: an export that was cut off is simply repeated. To go on from there, leave
    [engine] out of the config, and name the folder and the map in it in [output].
    """
    from dataclasses import replace

    from crawler.model.settings import EngineSettings
    from crawler.workspace.files.file_workspace import FileWorkspace
    from crawler.workspace.files.whole_folder import whole_folder
    from crawler.workspace.postgres.engine_workspace import EngineWorkspace
    from crawler.workspace.postgres.workspace_transfer import export_files
    from crawler.workspace.unfinished import require_no_unfinished_import

    loaded = _with_engine(config, None)
    name = loaded.output.database_path.name
    place = into.resolve()
    there = replace(
        loaded,
        engine=EngineSettings(),
        workspace=place,
        output=replace(loaded.output, database_path=place / name),
    )
    source = EngineWorkspace(loaded.workspace, loaded.engine.url, loaded.engine.archive, lease=loaded.engine.lease)
    told: list[str] = []
    try:
        require_no_unfinished_import(source)
        if not source.results.writers():
            raise UsageError(f"there is nothing to export: no results in the engine {source.session.place}")
        with whole_folder(place) as folder:
            moved = export_files(
                *(source, FileWorkspace(folder)),
                lambda: told.append(_copied_map(loaded.map_place, folder / name, place / name)),
                _change_for(there),
            )
    finally:
        source.close()
    _say_moved(moved, str(into))
    show("\n".join(told))


def _change_for(config: Config) -> Callable[[str, bytes], bytes]:
    """Lets the document about the last crawl say where the crawl is now."""
    from crawler.config.last_used import DOCUMENT, with_places_of

    return lambda name, content: with_places_of(content, config) if name == DOCUMENT else content


def _is_imported(config: Config, source: FileWorkspace, target: EngineWorkspace) -> bool:
    """Has the engine all of this, and nothing else? Then an import was cut off after its very end."""
    from crawler.database.digest import digest
    from crawler.database.presence import is_there
    from crawler.workspace.postgres.workspace_transfer import is_same_crawl

    if not is_same_crawl(source, target):
        return False
    places = (config.output.database_path, config.map_place)
    here, there = (digest(place) if is_there(place) else None for place in places)
    return here == there


def _require_no_map(place: MapPlace, target: EngineWorkspace) -> None:
    """Before anything is moved. Raises SumiError."""
    from crawler.workspace.postgres.workspace_transfer import held_words
    from ingest.map_transfer import TransferError
    from ingest.whole_maps import exists

    if exists(place):
        raise TransferError(held_words(target))


_NO_MAP = "There is no map to take along: the next crawl makes it from the results."


@contextmanager
def _map_in_engine(source: MapPlace, target: MapPlace, told: list[str]) -> Iterator[Callable[[Any], None]]:
    """A copy of the map, if there is one, that says the same; given is the step that moves it to its place."""
    from crawler.database.presence import is_there
    from ingest.map_transfer import whole_copy
    from ingest.whole_maps import remove_left, step_in_place

    remove_left(target)
    if not is_there(source):
        told.append(_NO_MAP)
        yield lambda connection: None
        return
    with whole_copy(source, target) as copy:
        told.append(_map_words(source, copy.place, target, copy.pages))
        yield lambda connection: connection.execute(step_in_place(copy.place, target))


def _copied_map(source: MapPlace, place: MapPlace, target: MapPlace) -> str:
    """Copy a map, if there is one, to a place that will be `target`; returns what to say."""
    from crawler.database.presence import is_there
    from ingest.map_transfer import copy_whole_map

    if not is_there(source):
        return _NO_MAP
    return _map_words(source, place, target, copy_whole_map(source, place))


def _map_words(source: MapPlace, copy: MapPlace, target: MapPlace, pages: int) -> str:
    """What to say of a copy that says the same as its source. Raises SumiError if it does not."""
    from crawler.database.digest import digest
    from crawler.model.shown_text import counted

    if (before := digest(source)) != (now := digest(copy)):
        raise SumiError(f"the copy of the map has the digest {now}, and the map {source} has {before}; nothing is kept")
    return f"The map is in {target}: {counted(pages, 'page')}, digest {now}."


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

    with _connected(config) as (connection, _):
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
