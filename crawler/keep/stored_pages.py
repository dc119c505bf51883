"""Questions to the store that need the map or the results besides: whose page is a blob, and is every page there?

What was removed on purpose is written to `store/forgotten.jsonl` first, with the time, so that it is not reported as
missing. That ends with the next visit that stores the same content: results say so, and the file needs no change.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from pathlib import Path

import orjson

from crawler.database.ingest_progress import results_kept_from
from crawler.database.map_errors import MapError, NoDatabase
from crawler.database.page_copies import PageCopy, copies, copy_of
from crawler.database.reader import open_map
from crawler.model.errors import SumiError
from crawler.model.records import PageResult
from crawler.model.settings import Config
from crawler.store.blobs import BlobDamaged
from crawler.store.file_store import open_store
from crawler.store.packing import Packed, pack_blobs
from crawler.workspace.clock import now_text
from crawler.workspace.door import Held, RoleTaken, Workspace
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import read_records

_KEEPER = "store-keeper"
_ROLES = ("supervisor", "scheduler", "ingest", *(f"fetcher-{number:02d}" for number in range(1, 65)))


class NotKept(SumiError):
    """The page that was asked for is not in the store. The text says why."""


class CrawlAtWork(SumiError):
    """The store cannot be changed so while a crawl writes to it."""


class StoreInHand(SumiError):
    """Stored pages are being packed or removed by somebody else."""


# -- one page --------------------------------------------------------------------------------------------------


def page_content(config: Config, key: str, run: int | None = None) -> bytes:
    """The stored content of a page, of its last accepted visit or of a run. Raises NotKept, BlobDamaged."""
    copy = _last_copy(config, key) if run is None else _copy_in_run(config, key, run)
    if copy is None:
        raise NotKept(_no_visit(config, key, run))
    if copy.noarchive:  # content that an earlier visit stored may have the same hash
        earlier = "; --run N shows what an earlier run kept" if run is None else ""
        raise NotKept(f"{key} asked in run #{copy.run} not to be kept (noarchive){earlier}")
    body = open_store(config).get(copy.content_hash)
    if body is not None:
        return body
    if not copy.stored:
        raise NotKept(f"{key} was visited in run #{copy.run} without [store] html = true")
    if _is_removed(config, copy.content_hash):
        raise NotKept(f"the content of {key} was removed (store forget, prune)")
    raise NotKept(f"the content of {key} is missing from {open_store(config).root}")


def _last_copy(config: Config, key: str) -> PageCopy | None:
    with open_map(config.map_place) as reader:
        return copy_of(reader, key)


def _no_visit(config: Config, key: str, run: int | None) -> str:
    kept_from = None if run is None else results_kept_from(config.map_place)
    if run is not None and kept_from is not None and run < kept_from:
        return (
            f"what run #{run} saw of {key} is not known any more: the results of runs before #{kept_from} are gone"
            " (prune results, [spool] results); without --run its last accepted visit is shown"
        )
    when = "" if run is None else f" in run #{run}"
    return f"no visit of {key} was accepted{when}; `sumi-ripple explain` says what is known about it"


def _copy_in_run(config: Config, key: str, run: int) -> PageCopy | None:
    """As the results have it, or the map, where it is the last one of the page."""
    found = None
    for result in _results(open_workspace(config)):
        if result.run == run and result.key == key and result.content_hash is not None:
            found = _copy(result)
    if found is None:
        with suppress(MapError):
            last = _last_copy(config, key)
            return last if last is not None and last.run == run else None
    return found


def _results(workspace: Workspace) -> Iterator[PageResult]:
    for writer in workspace.results.writers():
        reader = workspace.results.reader(writer)
        try:
            for result, _ in read_records(reader, PageResult):
                yield result
        finally:
            reader.close()


def _copy(result: PageResult) -> PageCopy:
    digest, is_stored, size, at = result.content_hash or "", result.stored, result.bytes, result.visited_at
    return PageCopy(result.key, result.domain, result.run, digest, is_stored, result.noarchive, size, at)


def _all_copies(config: Config) -> Iterator[PageCopy]:
    """Of all runs: those that the map has, and those that the results have."""
    with suppress(NoDatabase):
        yield from _copies_in_map(config)
    yield from _copies_in_results(config)


def _copies_in_map(config: Config) -> Iterator[PageCopy]:
    with open_map(config.map_place) as reader:
        yield from copies(reader)


def _copies_in_results(config: Config) -> Iterator[PageCopy]:
    for result in _results(open_workspace(config)):
        if result.content_hash is not None:
            yield _copy(result)


# -- the whole store -------------------------------------------------------------------------------------------


@dataclass
class Findings:
    """What `store verify` found. `missing` are (URL, hash). `spare`: damaged copies of contents that are whole
    elsewhere; `packs`: packs that cannot be opened, so that nobody knows what was in them.
    """

    blobs: int = 0
    named: int = 0
    damaged: list[BlobDamaged] = field(default_factory=list)
    spare: list[BlobDamaged] = field(default_factory=list)
    packs: list[BlobDamaged] = field(default_factory=list)
    missing: list[tuple[str, str]] = field(default_factory=list)
    strangers: list[Path] = field(default_factory=list)
    forgotten: int = 0

    @property
    def is_sound(self) -> bool:
        return not (self.damaged or self.spare or self.packs or self.missing or self.strangers)


def verify(config: Config) -> Findings:
    """Read every blob and compare it with its name; look for every page that a result or the map names."""
    store, found = open_store(config), Findings()
    for digest in store.hashes():
        found.blobs += 1
        problems = store.damage_of(digest)
        if problems and store.is_whole(digest):
            found.spare += problems
        else:
            found.damaged += problems
    found.packs = list(store.packs.damaged.values())
    found.strangers = list(store.strangers())
    gone, there = forgotten(config), set[str]()
    absent: dict[str, tuple[str, float]] = {}  # hash → a URL, and when the content was last stored
    for copy in _all_copies(config):
        digest = copy.content_hash
        if not copy.stored or digest in there:
            continue
        if digest not in absent and store.has(digest):
            there.add(digest)
            continue
        url, stored_at = absent.get(digest, (copy.url, 0.0))
        absent[digest] = url, max(stored_at, _seconds(copy.visited_at))
    for digest, (url, stored_at) in absent.items():
        if stored_at <= gone.get(digest, -1.0):
            found.forgotten += 1
        else:
            found.missing.append((url, digest))
    found.named = len(there) + len(absent)
    return found


def _is_removed(config: Config, digest: str) -> bool:
    """Was this content removed on purpose, and not stored again since?"""
    removed_at = forgotten(config).get(digest)
    return removed_at is not None and not any(
        copy.stored and copy.content_hash == digest and _seconds(copy.visited_at) > removed_at
        for copy in _all_copies(config)
    )


def _seconds(time: str) -> float:
    """Seconds since 1970; 0: it is no time."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except (ValueError, TypeError):
        return 0.0


@dataclass
class StoreFigures:
    """What `store stats` shows. Bytes on disk are those of the files, without the rest of their last blocks.

    `known`: contents whose size the map knows; `content_bytes` is their sum.
    """

    loose: int = 0
    loose_bytes: int = 0
    packs: int = 0
    packed: int = 0
    pack_bytes: int = 0
    pages: int = 0
    page_bytes: int = 0
    known: int = 0
    content_bytes: int = 0
    noarchive: int = 0
    domains: list[tuple[str, int, int]] = field(default_factory=list)  # (domain, pages, bytes), the largest first

    @property
    def blobs(self) -> int:
        return self.loose + self.packed

    @property
    def bytes(self) -> int:
        return self.loose_bytes + self.pack_bytes


def figures(config: Config, most_domains: int = 10) -> StoreFigures:
    """Count the store, and the pages of the map whose content it has."""
    store, found = open_store(config), StoreFigures()
    for digest in store.loose_hashes():
        found.loose += 1
        found.loose_bytes += store.path_of(digest).stat().st_size
    for pack in store.packs.all():
        found.packs += 1
        found.packed += len(pack)
        found.pack_bytes += pack.size
    sizes: dict[str, int] = {}
    pages: Counter[str] = Counter()
    domains: Counter[str] = Counter()
    try:
        with open_map(config.map_place) as reader:
            for copy in copies(reader):
                found.noarchive += copy.noarchive
                if copy.stored and store.has(copy.content_hash):
                    found.pages += 1
                    found.page_bytes += copy.bytes
                    sizes[copy.content_hash] = copy.bytes
                    pages[copy.domain] += 1
                    domains[copy.domain] += copy.bytes
    except NoDatabase:
        pass
    found.known, found.content_bytes = len(sizes), sum(sizes.values())
    largest = sorted(domains.items(), key=lambda item: (-item[1], item[0]))[:most_domains]
    found.domains = [(domain, pages[domain], size) for domain, size in largest]
    return found


# -- changes ---------------------------------------------------------------------------------------------------


@dataclass
class Forgotten:
    """What `store forget` did: pages that were meant, blobs removed, and blobs that other pages have too."""

    pages: int = 0
    removed: int = 0
    shared: int = 0


@dataclass(frozen=True, slots=True)
class Forgetting:
    """What `forget` would remove. `going` are hash → URL; `bytes` those of the files that would go, packs aside."""

    pages: int
    going: dict[str, str]
    shared: int
    bytes: int

    @property
    def print(self) -> str:
        """The same for plans that remove the same."""
        return sha256(" ".join(sorted(self.going)).encode()).hexdigest()


def plan_forgetting(config: Config, is_meant: Callable[[PageCopy], bool]) -> Forgetting:
    """Find the content of these pages, of every run. What another page shows as well is kept for that one."""
    meant: dict[str, str] = {}  # hash → URL
    others: set[str] = set()
    urls: set[str] = set()
    for copy in _all_copies(config):
        if is_meant(copy):
            meant[copy.content_hash] = copy.url
            urls.add(copy.url)
        else:
            others.add(copy.content_hash)
    store = open_store(config)
    there = {digest: url for digest, url in meant.items() if store.has(digest)}
    going = {digest: url for digest, url in there.items() if digest not in others}
    return Forgetting(len(urls), going, len(there) - len(going), sum(_file_size(store.path_of(each)) for each in going))


def forget(config: Config, is_meant: Callable[[PageCopy], bool]) -> Forgotten:
    """Remove the content of these pages, of every run. Raises CrawlAtWork, StoreInHand."""
    with _changing_alone(config):
        return _carry_out(config, plan_forgetting(config, is_meant))


def carry_out(config: Config, plan: Forgetting) -> Forgotten:
    """Remove what a plan names. Raises CrawlAtWork, StoreInHand."""
    with _changing_alone(config):
        return _carry_out(config, plan)


def _carry_out(config: Config, plan: Forgetting) -> Forgotten:
    store, done = open_store(config), Forgotten(plan.pages, shared=plan.shared)
    note_removed(config, plan.going.items())
    done.removed = store.remove_all(plan.going.keys())
    if plan.going:
        store.sync()
    return done


def _file_size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0  # it is in a pack


def pack(config: Config, min_age: float) -> Packed:
    """Pack the blobs that are older than so many seconds, by the sites that they are of. A crawl may go on."""
    role = take_keeper(open_workspace(config))
    try:
        sites = _sites(config)
        return pack_blobs(open_store(config), lambda digest: sites.get(digest, ""), time.time() - min_age)
    finally:
        role.release()


def _sites(config: Config) -> dict[str, str]:
    """The site of each content. A map that does not answer, because a crawl is making it, is not needed for that."""
    sites: dict[str, str] = {}
    for found in (_copies_in_map, _copies_in_results):
        with suppress(MapError):
            sites |= {copy.content_hash: copy.domain for copy in found(config)}
    return sites


def forgotten(config: Config) -> dict[str, float]:
    """Hashes of the blobs that were removed on purpose, with the time of the last removal in seconds since 1970."""
    try:
        lines = _note_file(config).read_bytes().splitlines()
    except FileNotFoundError:
        return {}
    found: dict[str, float] = {}
    for line in lines:
        try:
            entry = orjson.loads(line)
            digest, at = str(entry["hash"]), _seconds(entry["at"])
        except (ValueError, KeyError, TypeError):  # a line that a power cut tore
            continue
        found[digest] = max(at, found.get(digest, 0.0))
    return found


def note_removed(config: Config, going: Iterable[tuple[str, str]]) -> None:
    """Note, durably, that these (hash, URL) are about to be removed on purpose."""
    at = now_text()
    lines = [orjson.dumps({"at": at, "hash": digest, "url": url}) for digest, url in going]
    if not lines:
        return
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(_note_file(config), flags, 0o600)
    with os.fdopen(descriptor, "ab") as file:
        file.write(b"\n".join(lines) + b"\n")
        file.flush()
        os.fsync(descriptor)


def _note_file(config: Config) -> Path:
    return config.workspace / "store" / "forgotten.jsonl"


@contextmanager
def _changing_alone(config: Config) -> Iterator[None]:
    """While no crawl is at work, none can begin, and nobody else packs or removes stored pages."""
    workspace = open_workspace(config)
    if any(workspace.is_role_taken(role) for role in _ROLES):
        raise CrawlAtWork(f"a crawl is at work in {config.workspace}; stop it first: sumi-ripple stop")
    with ExitStack() as held:
        held.callback(workspace.take_role("supervisor").release)
        held.callback(take_keeper(workspace).release)
        yield


def take_keeper(workspace: Workspace) -> Held:
    """Be the only one who packs or removes stored pages, until released. Raises StoreInHand."""
    try:
        return workspace.take_role(_KEEPER)
    except RoleTaken:
        raise StoreInHand(
            f"another command packs or removes stored pages of {workspace.name}; wait until it is done"
        ) from None


__all__ = [
    "CrawlAtWork",
    "Findings",
    "Forgetting",
    "Forgotten",
    "NotKept",
    "carry_out",
    "figures",
    "forget",
    "forgotten",
    "note_removed",
    "pack",
    "page_content",
    "plan_forgetting",
    "verify",
]
