"""The files that a config names (seeds, certificates), and the config's text with other paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import tomli

from crawler.config.load import read_text
from crawler.model.settings import Config


@dataclass(frozen=True, slots=True)
class NamedPath:
    """A path as the config writes it, the place that it means, and its name in a copy of the config's folder."""

    text: str
    place: Path
    inside: str

    @property
    def is_moved(self) -> bool:
        """Does the copy of the config have to name another place?"""
        return PurePosixPath(self.text) != PurePosixPath(self.inside)


def named_paths(config: Config) -> dict[str, NamedPath]:
    """What the config names, by its key: the files that it reads, and the places that it writes to."""
    assert config.source is not None
    top = tomli.loads(read_text(config.source))
    folder = config.source.parent
    output = _table(top.get("output"))
    found: dict[str, NamedPath] = {}
    taken: set[str] = {config.source.name}

    def add(key: str, text: str, default: str) -> None:
        place = folder / Path(text or default).expanduser()
        found[key] = NamedPath(text, place, _inside(folder, place, taken))

    add("database", str(output.get("database-path", "")), config.output.database_path.name)
    add("summary", str(output.get("summary-path", "")), config.output.summary_path.name)
    if text := str(output.get("workspace-path", "")):
        add("workspace", text, "")
    if bundle := _table(top.get("network")).get("ca-bundle"):
        add("ca-bundle", str(bundle), "")
    for number, entry in enumerate(top.get("quality", ())):
        if file := _table(entry).get("seeds-file"):
            add(f"quality[{number}].seeds-file", str(file), "")
    return found


def with_other_paths(text: str, moved: Mapping[str, str]) -> str:
    """The text of a config with other paths in place of these, wherever they stand as strings."""
    for old, new in moved.items():
        for quote in ('"', "'"):
            text = text.replace(f"{quote}{old}{quote}", f'"{new}"')
    return text


def _inside(folder: Path, place: Path, taken: set[str]) -> str:
    """A name below the folder: where the place is, or, for one elsewhere, a name of its own."""
    try:
        name = Path(*place.absolute().parts).relative_to(folder.absolute()).as_posix()
        is_below = ".." not in name
    except ValueError:
        is_below = False
    if not is_below:
        name, number = place.name, 1
        while name in taken:
            number += 1
            name = f"{place.stem}-{number}{place.suffix}"
    taken.add(name)
    return name


def _table(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
