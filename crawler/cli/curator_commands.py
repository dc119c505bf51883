"""The curator's commands: which domains deserve a decision, and the decisions themselves. None sends a request."""

from __future__ import annotations

from typing import Annotated

import typer

from crawler.cli.map_commands import MapArgument, database_of
from crawler.cli.options import JsonOption
from crawler.model.errors import UsageError

CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


def candidates(
    config: MapArgument,
    as_json: JsonOption = False,
    as_csv: CsvOption = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="Show at most N.")] = 20,
) -> None:
    """Rank the discovered domains by how many different quality domains link to them.

    Each with the title of its front page, pages that link there, and why no more of it was crawled.
    """
    from reporter import candidate_views
    from reporter.candidates import candidates as find

    if as_json and as_csv:
        raise UsageError("give only one of --json and --csv")
    found = find(database_of(config), limit)
    if as_json:
        text = candidate_views.as_json(found)
    elif as_csv:
        text = candidate_views.as_csv(found)
    else:
        text = candidate_views.as_text(found, str(config))
    typer.echo(text, nl=False)
