"""What a new crawl starts from: a config whose seeds are in a file of their own, and that file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from crawler.config.load import ConfigError, read_text
from crawler.config.template import TEMPLATE

SEEDS_FILE = "seeds.txt"
_SEEDS_IN_TEMPLATE = """domain = "example.com"              # without seeds, it starts from https://example.com/
                                    # seeds-file = "urls.txt" takes them from a file, one a line
"""
_WITH_SEEDS_FILE = f'''domain = "example.com"
seeds-file = "{SEEDS_FILE}"            # one URL a line, beside this file; all inside of the domain
'''


def starting_text() -> str:
    """The text of a new config, with a seeds file."""
    assert _SEEDS_IN_TEMPLATE in TEMPLATE
    return TEMPLATE.replace(_SEEDS_IN_TEMPLATE, _WITH_SEEDS_FILE)


def seeds_text(domain: str) -> str:
    """The text of a new seeds file for a domain of the quality list."""
    return f"# The pages to start from, one URL a line, all inside of {domain}\nhttps://{domain.removeprefix('*.')}/\n"


def missing_seed_files(path: Path) -> list[tuple[Path, str]]:
    """(file, domain) of the seeds files that a config names and that are not there. Raises ConfigError."""
    try:
        top: dict[str, Any] = tomli.loads(read_text(path))
    except (tomli.TOMLDecodeError, RecursionError):
        return []  # loading it says what is wrong
    entries = top.get("quality")
    found: list[tuple[Path, str]] = []
    for entry in entries if isinstance(entries, list) else ():
        name, domain = (entry.get("seeds-file"), entry.get("domain")) if isinstance(entry, dict) else (None, None)
        if isinstance(name, str) and isinstance(domain, str) and not (path.absolute().parent / name).exists():
            found.append((path.absolute().parent / name, domain))
    return found


def write_new(path: Path, text: str) -> bool:
    """Write a file that is not there yet; False: it is there, and stays as it is. Raises ConfigError."""
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
    except OSError as problem:
        raise ConfigError(path, sentence=f"cannot write {path}: {problem.strerror}") from None
    return True
