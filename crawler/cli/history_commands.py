"""The commands that look back over the runs of a crawl. None of them sends a request."""

from __future__ import annotations

import typer

from crawler.cli.map_commands import MapArgument, database_of
from crawler.cli.options import JsonOption


def runs(config: MapArgument, as_json: JsonOption = False) -> None:
    """List the runs: when, how long, how they ended, their figures, and the settings that changed in between."""
    from reporter.runs_list import as_json as in_json
    from reporter.runs_list import as_text, list_runs

    found = list_runs(database_of(config))
    typer.echo(in_json(found) if as_json else as_text(found), nl=False)
