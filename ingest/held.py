"""Results that came before the path to their page was known: kept, and applied when the page opens."""

from __future__ import annotations

from crawler.model.records import PageResult, parse
from ingest.writing.store import Store


class HeldResults:
    """`hashes` are those of the keys of pages with a held result of this run."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.hashes: set[int] = set()

    def enter_run(self, run: int) -> None:
        self.hashes = self._store.held_hashes(run)

    def hold(self, hash_: int, run: int, line: bytes) -> None:
        self.hashes.add(hash_)
        self._store.changes.held[hash_] = (run, line)

    def release(self, hash_: int) -> PageResult | None:
        """The held result, which then is held no longer; None if there is none."""
        if hash_ not in self.hashes:
            return None
        result = parse(self._store.held_line(hash_))
        assert isinstance(result, PageResult)
        self.hashes.discard(hash_)
        self._store.changes.unheld.append(hash_)
        return result
