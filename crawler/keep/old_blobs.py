"""Stored pages that may go by `[retention] blobs`.

A page's age counts from the last visit that brought or confirmed it. Without their name only those go that nothing
needs: neither a result that is kept, nor the map for its next visit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import datetime
from functools import partial

from crawler.database.stored_hashes import hashes_in_map
from crawler.keep.stored_pages import note_removed, take_keeper
from crawler.model.records import PageResult
from crawler.model.removal import Pruning, Removal
from crawler.model.settings import Config
from crawler.model.shown_text import age_words, counted
from crawler.store.blobs import checked_hash
from crawler.store.file_store import open_store
from crawler.workspace.door import Workspace, WorkspaceError
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import read_records


def prune_blobs(config: Config, *, is_named: bool, now: float | None = None) -> Pruning:
    """What would go. Without their name (`is_named`) pages stay that a replay or a revisit needs."""
    limit = config.retention.blobs
    if not limit:
        return Pruning()
    before = (time.time() if now is None else now) - limit
    store = open_store(config)
    seen = _last_seen(open_workspace(config))
    needed = seen.keys() | hashes_in_map(config.map_place)
    found: list[str] = []
    size = kept = 0
    for digest in store.hashes():
        raw = bytes.fromhex(digest)
        written_at, bytes_on_disk = store.age_and_size(digest)
        if seen.get(raw, written_at) >= before:
            continue
        if raw in needed and not is_named:
            kept += 1
            continue
        found.append(digest)
        size += bytes_on_disk
    removals = []
    if found:
        why = f"not seen for {age_words(limit)} ([retention] blobs)" + ("" if is_named else ", and nothing names them")
        remove = partial(_remove, config, found)
        removals.append(Removal("blobs", counted(len(found), "stored page"), size, why, remove))
    words = (
        f"blobs: {counted(kept, 'stored page')} stay: a replay from the store or a revisit needs them; to remove them:"
    )
    return Pruning(tuple(removals), (f"{words} sumi-ripple prune blobs",) if kept else ())


def _last_seen(workspace: Workspace) -> dict[bytes, float]:
    """By content hash: when a visit last brought or confirmed a stored page, as far as results are kept."""
    seen: dict[bytes, float] = {}
    for raw, at in _named(workspace):
        if seen.get(raw, 0.0) < at:
            seen[raw] = at
    return seen


def _named(workspace: Workspace) -> Iterator[tuple[bytes, float]]:
    for writer in workspace.results.writers():
        reader = workspace.results.reader(writer)
        try:
            for result, _ in read_records(reader, PageResult):
                if result.stored and result.content_hash is not None:
                    with suppress(ValueError):  # a forged result
                        raw = bytes.fromhex(checked_hash(result.content_hash))
                        yield raw, datetime.fromisoformat(result.visited_at).timestamp()
        finally:
            reader.close()


def _remove(config: Config, digests: list[str]) -> None:
    """Not while a crawl is at work: a fetcher that finds a page in the store does not write it again."""
    workspace = open_workspace(config)
    at_work = [role for role in workspace.roles() if role.startswith("fetcher") and workspace.is_role_taken(role)]
    if at_work:
        raise WorkspaceError(
            f"stored pages are not removed while {at_work[0]} is at work in {workspace.name}; stop it first"
        )
    with ExitStack() as held:
        held.callback(workspace.take_role("supervisor").release)
        held.callback(take_keeper(workspace).release)
        note_removed(config, ((digest, "") for digest in digests))
        open_store(config).remove_all(frozenset(digests))
