"""What messages call a crawl, and the commands for it that work where the message is read.

A crawl in files is its workspace folder. One in an engine is the engine's database: the folder has only what this
machine alone needs, and another machine has another one. Commands for it take the config, on any machine.
"""

from __future__ import annotations

import os

from crawler.engine.place import place_of
from crawler.model.settings import Config


def crawl_name(config: Config) -> str:
    """The place of a crawl: `/srv/crawl/workspace`, or `the engine terrain on db.internal`. Without a password."""
    return f"the engine {place_of(config.engine.url, os.environ)}" if config.engine.url else str(config.workspace)


def crawl_command(word: str, config: Config) -> str:
    """A command for this crawl, to be typed as it is: `sumi-ripple status my.toml`."""
    if config.engine.url:
        return f"sumi-ripple {word} {config.source or 'CONFIG'}"
    return f"sumi-ripple {word} --workspace {config.workspace}"
