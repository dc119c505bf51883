"""A backup made a crawl again, in a folder of its own. The map has the digest of the backup, and the crawl goes on."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from crawler.config.last_used import write_last_used
from crawler.config.load import load, read_text
from crawler.database.completed_map import copy_path
from crawler.database.digest import digest
from crawler.database.ingest_progress import closed_domains
from crawler.keep.backup import COMPLETED, CONFIG, MAP, WORKSPACE, verify
from crawler.keep.manifest import BackupError, Manifest
from crawler.keep.named_files import with_other_paths
from crawler.model.errors import UsageError, sentence
from crawler.model.settings import Config
from crawler.workspace.atomic import OWNER_ONLY_FOLDER
from crawler.workspace.opening import open_keeping, open_workspace
from crawler.workspace.runs import Run, RunStatus, write_run

_SCRATCH = ".restoring"


@dataclass(frozen=True, slots=True)
class Restored:
    """A crawl that was restored. `is_workspace_named`: commands need --workspace; `notes` are for people."""

    config: Config
    manifest: Manifest
    is_workspace_named: bool
    notes: tuple[str, ...]


def restore(backup: Path, folder: Path) -> Restored:
    """Bring a backup back into an empty folder. Raises SumiError; the backup stays as it is."""
    manifest = verify(backup)
    if folder.exists() and (not folder.is_dir() or any(path.name != _SCRATCH for path in folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder, and restore replaces nothing; name another with --into")
    scratch = folder / _SCRATCH
    try:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(OWNER_ONLY_FOLDER, parents=True)
        notes = _build(backup, manifest, scratch)
        database = Path(manifest.database).parts[0]
        for path in sorted(scratch.iterdir(), key=lambda path: path.name == database):  # the map is what makes it whole
            path.rename(folder / path.name)
        scratch.rmdir()
    except OSError as problem:
        raise BackupError(f"the backup cannot be restored to {folder}: {sentence(problem)}") from None
    source, workspace = folder / manifest.config, folder / manifest.workspace
    config = load(source)
    is_named = config.workspace.resolve() != workspace.resolve()  # the folder may be named by way of `..` or a link
    if is_named:
        config = load(source, workspace=workspace.absolute())
    if config.output.database_path.resolve() != (folder / manifest.database).resolve():
        notes.append(f"set [output] database-path in {source} to {folder / manifest.database}: its map is there now")
    _make_ready(config, manifest, folder / manifest.database)
    found = digest(folder / manifest.database)
    if found != manifest.digest:
        raise BackupError(f"the restored map has the digest {found}, and the backup's is {manifest.digest}")
    return Restored(config, manifest, is_named, tuple(notes))


def _build(backup: Path, manifest: Manifest, scratch: Path) -> list[str]:
    """Everything under its name in the folder of the config; returns what people should know."""
    notes = []
    shutil.copytree(backup / CONFIG, scratch, dirs_exist_ok=True)
    source = scratch / manifest.config
    if manifest.moved:
        source.write_text(with_other_paths(read_text(source), manifest.moved), "utf-8")
        notes += [f"{manifest.config} named {old}; it names {new} now" for old, new in manifest.moved.items()]
    database = scratch / manifest.database
    database.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(backup / MAP, database)
    if (backup / COMPLETED).exists():
        copy_path(database).parent.mkdir()
        shutil.copyfile(backup / COMPLETED, copy_path(database))
    workspace = scratch / manifest.workspace
    shutil.copytree(backup / WORKSPACE, workspace, dirs_exist_ok=True)
    if manifest.store == "reference":
        store = Path(manifest.store_path)
        if store.is_dir():
            shutil.copytree(store, workspace / "store", dirs_exist_ok=True)
        else:
            notes.append(f"the stored pages were not in the backup and are no longer at {store}")
    return notes


def _make_ready(config: Config, manifest: Manifest, database: Path) -> None:
    workspace = open_workspace(config)
    workspace.prepare()
    _, closed = closed_domains(database, manifest.run, is_uncut=True)
    open_keeping(config.workspace).settle(manifest.run, [domain for domain, _ in closed])
    if manifest.run:
        write_run(workspace, Run(manifest.run, RunStatus(manifest.status)))
    write_last_used(config)
