"""Packing and forgetting stored pages: one at a time, beside a crawl or not, whatever state the map is in."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from crawler.keep.stored_pages import (
    CrawlAtWork,
    NotKept,
    StoreInHand,
    forget,
    forgotten,
    pack,
    page_content,
    verify,
)
from crawler.model.records import Carried, PageResult, changed
from crawler.model.settings import Config, StoreSettings
from crawler.store.file_store import open_store
from crawler.workspace.door import RoleTaken
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.store.test_packing import damage_in_pack
from tests.ingest.test_loop import write

SOON = -10.0  # seconds of age: everything is old enough


@pytest.fixture
def config(tmp_path: Path) -> Config:
    config = Config(workspace=tmp_path / "workspace", store=StoreSettings(html=True))
    return replace(config, output=replace(config.output, database_path=tmp_path / "map.db"))


@pytest.fixture
def digests(config: Config) -> list[str]:
    """Contents of 25 pages each of two sites."""
    store = open_store(config, writer="test")
    found = [store.put(f"<title>{number}</title>".encode()) for number in range(50)]
    keys = [f"https://{'ab'[number % 2]}.test/{number}" for number in range(50)]
    results = [
        PageResult(1, key, key, key[8:14], "", "processed", status=200, content_hash=digest, stored=True)
        for key, digest in zip(keys, found, strict=True)
    ]
    write(config, "fetcher-01", results)
    return found


def test_stored_pages_are_packed_by_site_though_the_map_is_only_being_made(config: Config, digests: list[str]) -> None:
    config.output.database_path.write_bytes(b"")
    done = pack(config, SOON)
    assert (done.blobs, done.packs) == (50, 2), "the results say whose they are"
    assert all(open_store(config).get(digest) for digest in digests)


def test_one_command_at_a_time_packs_or_removes_stored_pages(config: Config, digests: list[str]) -> None:
    workspace = FileWorkspace(config.workspace)
    held = workspace.take_role("store-keeper")
    for deed in (lambda: pack(config, SOON), lambda: forget(config, lambda copy: True)):
        with pytest.raises(StoreInHand, match="wait until it is done"):
            deed()
    held.release()
    assert set(open_store(config).hashes()) == set(digests)


def test_stored_pages_are_packed_beside_a_crawl_but_not_forgotten(config: Config, digests: list[str]) -> None:
    workspace = FileWorkspace(config.workspace)
    for role in ("supervisor", "fetcher-02"):
        held = workspace.take_role(role)
        with pytest.raises(CrawlAtWork, match="sumi-ripple stop"):
            forget(config, lambda copy: True)
        held.release()
    held = workspace.take_role("supervisor")
    assert pack(config, SOON).blobs == 50
    held.release()

    def is_meant(copy: object) -> bool:
        with pytest.raises(RoleTaken):
            workspace.take_role("supervisor")  # no crawl can begin meanwhile
        return getattr(copy, "domain", "") == "a.test"

    done = forget(config, is_meant)
    assert (done.pages, done.removed, done.shared) == (25, 25, 0)
    assert {digest for digest in digests if open_store(config).has(digest)} == set(digests[1::2])
    assert forgotten(config).keys() == set(digests[0::2])


def test_a_reader_finds_a_pack_that_follows_another_before_the_clock_of_the_folder_ticks(
    config: Config, digests: list[str]
) -> None:
    reader, writer = open_store(config), open_store(config, writer="fetcher-01")
    pack(config, SOON)
    tick = (2**62 // 10**9 * 10**9,) * 2  # later than any look at it, so that no look is long after it
    os.utime(writer.packs.folder, ns=tick)
    assert all(reader.get(digest) for digest in digests)
    new = writer.put(b"<title>50</title>")
    assert pack(config, SOON).blobs == 1 and not writer.is_loose(new)
    os.utime(writer.packs.folder, ns=tick)
    assert reader.get(new) is not None


def test_a_damaged_copy_of_a_page_that_is_whole_elsewhere_is_named_once_until_it_is_packed_again(
    config: Config, digests: list[str]
) -> None:
    pack(config, SOON)
    store = open_store(config, writer="test")
    place = damage_in_pack(store, digests[0])
    found = verify(config)
    assert [problem.digest for problem in found.damaged] == digests[:1] and not found.spare
    store.put(b"<title>0</title>", is_anew=True)
    found = verify(config)
    assert ([problem.place for problem in found.spare], found.damaged, found.missing) == ([str(place)], [], [])
    assert found.blobs == found.named == 50 and not found.is_sound
    assert pack(config, SOON).left_out == 1
    assert verify(config).is_sound and len(list(open_store(config).hashes())) == 50


def visited(digest: str, run: int, at: str, **members: object) -> PageResult:
    key = "https://a.test/3"
    result = PageResult(run, key, key, "a.test", at, "processed", status=200, content_hash=digest, stored=True)
    return changed(result, **members)


def test_a_page_that_was_forgotten_and_stored_again_is_missed_when_it_is_gone(config: Config) -> None:
    """A carried page was not stored again: its time is that of the visit before."""
    store = open_store(config, writer="test")
    digest = store.put(b"<title>3</title>")
    write(config, "fetcher-01", [visited(digest, 1, "2025-01-01T00:00:00.000Z")])
    assert forget(config, lambda copy: True).removed == 1
    carried = Carried("2025-01-01T00:00:00.000Z", "2099-01-01T00:00:00.000Z")
    write(config, "scheduler", [visited(digest, 2, "2098-01-01T00:00:00.000Z", carried=carried)])
    found = verify(config)
    assert (found.missing, found.forgotten, found.is_sound) == ([], 1, True)
    with pytest.raises(NotKept, match="was removed"):
        page_content(config, "https://a.test/3", 1)

    store.put(b"<title>3</title>")
    write(config, "fetcher-02", [visited(digest, 3, "2098-02-01T00:00:00.000Z")])
    assert verify(config).is_sound and page_content(config, "https://a.test/3", 1) == b"<title>3</title>"
    store.path_of(digest).unlink()
    found = verify(config)
    assert (found.missing, found.forgotten, found.is_sound) == ([("https://a.test/3", digest)], 0, False)
    with pytest.raises(NotKept, match="is missing from"):
        page_content(config, "https://a.test/3", 3)


def test_a_page_that_came_to_ask_not_to_be_kept_is_not_shown_and_an_earlier_run_is(config: Config) -> None:
    """A 304 with `X-Robots-Tag: noarchive`: the content is the one that an earlier run stored."""
    digest = open_store(config, writer="test").put(b"<title>3</title>")
    write(config, "fetcher-01", [visited(digest, 1, "2025-01-01T00:00:00.000Z")])
    asking = visited(digest, 2, "2025-01-02T00:00:00.000Z", stored=False, noarchive=True)
    write(config, "fetcher-02", [asking])
    assert page_content(config, "https://a.test/3", 1) == b"<title>3</title>"
    with pytest.raises(NotKept, match=r"asked in run #2 not to be kept \(noarchive\)"):
        page_content(config, "https://a.test/3", 2)
