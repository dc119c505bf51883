"""Stored pages go when nobody needs them; those that are needed only by name."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.keep.old_blobs import prune_blobs
from crawler.model.records import PageResult
from crawler.model.settings import Config, RetentionSettings, StoreSettings
from crawler.store.file_store import FileStore, open_store
from crawler.store.packing import pack_blobs
from crawler.workspace.door import WorkspaceError
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.ingest.test_loop import write

DAY = 86_400
NOW = 1_735_689_600.0  # 2025-01-01


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(
        workspace=tmp_path / "workspace", store=StoreSettings(html=True), retention=RetentionSettings(blobs=30 * DAY)
    )
    return replace(config, output=replace(config.output, database_path=tmp_path / "map.db"))


def stored(config: Config, body: bytes, days: int) -> str:
    """A page that was put into the store so many days ago."""
    store = open_store(config, writer="test")
    digest = store.put(body)
    os.utime(store.path_of(digest), (NOW - days * DAY,) * 2)
    return digest


def named(digest: str, date: str) -> PageResult:
    key = f"https://a.test/{digest[:8]}"
    at = f"{date}T00:00:00.000Z"
    return PageResult(1, key, key, "a.test", at, "processed", status=200, content_hash=digest, stored=True)


def left(store: FileStore) -> set[str]:
    return set(store.hashes())


def test_pages_that_nothing_names_go_and_needed_ones_only_by_name(config: Config) -> None:
    orphan, fresh = stored(config, b"orphan", 31), stored(config, b"fresh", 29)
    needed, confirmed = stored(config, b"needed", 90), stored(config, b"confirmed", 90)
    write(config, "fetcher-01", [named(needed, "2024-10-03"), named(confirmed, "2024-10-03")])
    write(config, "fetcher-02", [named(confirmed, "2024-12-31"), named("../../x", "2024-10-03")])
    store = open_store(config)
    assert not prune_blobs(replace(config, retention=RetentionSettings()), is_named=True, now=NOW).removals
    unnamed = prune_blobs(config, is_named=False, now=NOW)
    (removal,) = unnamed.removals
    assert removal.name == "1 stored page" and "1 stored page stay: a replay" in unnamed.stays[0]
    removal.remove()
    assert left(store) == {fresh, needed, confirmed} and orphan not in left(store)
    (removal,) = prune_blobs(config, is_named=True, now=NOW).removals
    removal.remove()
    assert left(store) == {fresh, confirmed}, "a visit of yesterday confirmed that one"


def test_pages_in_packs_go_too_and_their_neighbours_stay(config: Config) -> None:
    bodies = {stored(config, b"<p>page %d</p>" % number, 31): number for number in range(20)}
    store = open_store(config)
    assert pack_blobs(store, lambda digest: "a.test", NOW).blobs == 20
    for pack in store.packs.all():
        os.utime(pack.path, (NOW - 31 * DAY,) * 2)
    kept = {digest for digest, number in bodies.items() if number % 2}
    write(config, "fetcher-01", [named(digest, "2024-12-31") for digest in sorted(kept)])
    (removal,) = prune_blobs(config, is_named=True, now=NOW).removals
    assert removal.name == "10 stored pages"
    removal.remove()
    store = open_store(config)
    assert left(store) == kept
    assert all(store.get(digest) == b"<p>page %d</p>" % bodies[digest] for digest in kept)


def test_no_page_goes_while_a_fetcher_is_at_work(config: Config) -> None:
    stored(config, b"orphan", 31)
    workspace = FileWorkspace(config.workspace)
    workspace.prepare()
    (removal,) = prune_blobs(config, is_named=False, now=NOW).removals
    role = workspace.take_role("fetcher-01")
    with pytest.raises(WorkspaceError, match="fetcher-01 is at work"):
        removal.remove()
    role.release()
    assert len(left(open_store(config))) == 1
    removal.remove()
    assert not left(open_store(config))
