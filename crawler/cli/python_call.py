"""The Python call: `sumi_ripple.crawl(config)` crawls in this process and returns a handle on the map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crawler.database.map_handle import Map
    from crawler.model.settings import Config


def crawl(
    config: str | Path | Mapping[str, Any],
    *,
    workspace: str | Path | None = None,
    is_fresh: bool = False,
    is_next_run: bool = False,
) -> Map:
    """Crawl until the run is complete, in this process; returns a handle on the map. Raises SumiError, ConfigError.

    `config` is the path of a config file, or what such a file holds as a dictionary, whose paths begin at the current
    folder. An interrupted run is resumed; `is_next_run` and `is_fresh` are the options of `sumi-ripple crawl`.

    Log lines go to the logger `sumi`. Ctrl-C saves and raises KeyboardInterrupt; the same call goes on.
    """
    from crawler.cli.history_commands import changes_for_summary
    from crawler.config.places import require_places
    from crawler.database.map_handle import Map
    from crawler.net.tls import check_ca_bundle
    from crawler.supervise.crawl import Verbosity, in_a_library
    from crawler.supervise.crawl import crawl as run_crawl
    from crawler.supervise.exit_rules import INTERRUPTED
    from reporter.summary.close import close_run

    load = partial(_load, config, Path(workspace) if workspace is not None else None)
    loaded = replace(load(), starts_next_run=is_next_run)
    check_ca_bundle(loaded.network)
    require_places(loaded)
    code = run_crawl(
        loaded,
        partial(close_run, changes_of=changes_for_summary),
        is_fresh=is_fresh,
        verbosity=Verbosity(is_quiet=True),
        load_again=load if loaded.source is not None else None,
        runner=in_a_library,
    )
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return Map(loaded.map_place, code)


def _load(config: str | Path | Mapping[str, Any], workspace: Path | None) -> Config:
    from crawler.config.load import load, load_values

    if isinstance(config, Mapping):
        return load_values(config, workspace=workspace)
    return load(Path(config), workspace=workspace)
