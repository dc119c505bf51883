"""The commands over the engine: init, check, stats. docs/scale.md tells more."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from crawler.cli.help_format import PlainCommand
from crawler.cli.options import ConfigArgument, JsonOption, load_config, show
from crawler.model.errors import SumiError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import psycopg

    from crawler.engine.schemas import Schema

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


@contextmanager
def _connected(path: Path) -> Iterator[psycopg.Connection[Any]]:
    from crawler.engine.engine_connection import connect

    config = load_config(path)
    if not config.engine.url:
        raise UsageError(f'{path} names no engine; add [engine] with url = "postgresql://user@host/database"')
    with connect(config.engine.url, "command") as connection:
        yield connection


@engine_commands.command("init", cls=PlainCommand)
def init(config: ConfigArgument) -> None:
    """Make the schemas in the engine's database, or bring them up to date. What is there stays."""
    from crawler.engine.schemas import upgrade

    with _connected(config) as connection:
        for schema in _schemas():
            steps = upgrade(connection, schema)
            done = "is up to date" if not steps else "is made" if steps == schema.newest else "is brought up to date"
            show(f"{schema.name} {done} (version {schema.newest}) in {connection.info.dbname}.")


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
        show(f"Engine       {place_of(load_config(config).engine.url)}")
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
        for caution in facts.cautions():
            show(f"Caution      {caution}")
        if problems or facts.is_standby:
            raise SumiError("; ".join(problems) or "the engine is a standby")


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
        sizes = {schema.name: schema_sizes(connection, schema.name) for schema in _schemas()}
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
    ]
    for name, tables_of in sizes.items():
        lines += [f"Table       {name}.{table}: about {rows:,} rows, {size:,} bytes" for table, rows, size in tables_of]
    typer.echo("\n".join(lines))
