"""A backup's account of itself: `backup.json`, written last, and `SHA256SUMS`, which `sha256sum -c` reads.

The checksums cover every file but these two. `backup.json` has the checksum of the list, and one of itself.

A folder without `backup.json` is no backup: the copy was cut off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

import orjson

from crawler.model.errors import SumiError, UsageError, sentence
from crawler.workspace.atomic import write_atomically

NAME = "backup.json"
SUMS = "SHA256SUMS"
FORMAT = 1
_CHUNK = 1 << 20


class BackupError(SumiError):
    """The backup cannot be made, or is not whole; the text says why."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The facts about a backup. Paths are relative to the config's folder; `store`: whole, reference or none."""

    made_at: str
    program: str
    config: str
    database: str
    summary: str
    workspace: str
    run: int
    status: str
    digest: str
    store: str
    store_path: str
    moved: dict[str, str]  # texts in the config that name other places → what they become when it is restored
    sums: str = ""  # the SHA-256 of SHA256SUMS
    v: int = FORMAT

    @property
    def seal(self) -> str:
        """The SHA-256 of all of these."""
        return hashlib.sha256(orjson.dumps(asdict(self), option=orjson.OPT_SORT_KEYS)).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Raises UsageError for a folder that is none, and BackupError."""
    try:
        fields = orjson.loads((folder / NAME).read_bytes())
        if fields["v"] != FORMAT:
            raise BackupError(f"{folder} is a backup of format {fields['v']!r}, and this program reads {FORMAT}")
        seal = fields.pop("seal", None)
        manifest = Manifest(**fields)
        if not all(_is_below(name) for name in (manifest.config, manifest.database, manifest.workspace)):
            raise BackupError(f"the backup {folder} is damaged: its {NAME} names places outside of it")
        if seal != manifest.seal:
            raise BackupError(f"the backup {folder} is damaged: {NAME}: not as it was written; use another backup")
        return manifest
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(f"{folder} is no backup: it has no {NAME}, or its copy was cut off; make a new one") from None
    except OSError as problem:
        raise BackupError(f"the backup {folder} cannot be read: {sentence(problem)}") from None
    except (ValueError, KeyError, TypeError):
        raise BackupError(f"the backup {folder} is damaged: its {NAME} cannot be read; use another backup") from None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the account of a backup that is complete, durably."""
    fields = {**asdict(manifest), "seal": manifest.seal}
    write_atomically(folder / NAME, orjson.dumps(fields, option=orjson.OPT_INDENT_2))


def write_sums(folder: Path) -> str:
    """Write the checksums of all files of a backup; returns the checksum of that list."""
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in _names(folder)]
    content = "".join(lines).encode()
    write_atomically(folder / SUMS, content)
    return hashlib.sha256(content).hexdigest()


def damaged_files(folder: Path, manifest: Manifest) -> list[str]:
    """One line for each file of a backup that is not as it was written, is missing, or was added."""
    try:
        content = (folder / SUMS).read_bytes()
    except OSError as problem:
        return [f"{SUMS}: {sentence(problem)}"]
    if hashlib.sha256(content).hexdigest() != manifest.sums:
        return [f"{SUMS}: not as it was written"]
    links = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_symlink()]
    if links:
        return [f"{links[0]}: a symlink, which no backup has"]
    known = dict(line.split("  ", 1)[::-1] for line in content.decode().splitlines())
    found = []
    for name, value in known.items():
        try:
            if sha256_of(folder / name) != value:
                found.append(f"{name}: not as it was written")
        except OSError as problem:
            found.append(f"{name}: {problem.strerror}")
    return found + [f"{name}: not part of the backup" for name in _names(folder) if name not in known]


def sha256_of(path: Path) -> str:
    total = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            total.update(chunk)
    return total.hexdigest()


def _is_below(name: str) -> bool:
    """Does a path, as a backup names it, stay below the folder that it is restored to?"""
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in (NAME, SUMS):
            yield path.relative_to(folder).as_posix()
