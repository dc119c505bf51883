"""The waiting pages of each domain, counted as the frontier's rows come and go."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable


class WaitingCounts:
    """Numbers of waiting pages by domain. Nothing is counted before `load`: a replay has no use for them."""

    def __init__(self) -> None:
        self._pages: dict[int, int] | None = None

    @property
    def is_loaded(self) -> bool:
        return self._pages is not None

    def load(self, pages: Iterable[tuple[int, int]]) -> None:
        """Start from these (domain, waiting pages)."""
        self._pages = dict(pages)

    def forget(self) -> None:
        """The rows are not known any more: they are counted again when somebody asks."""
        self._pages = None

    def clear(self) -> None:
        """No page waits."""
        if self._pages is not None:
            self._pages = {}

    def add(self, domains: Iterable[int], sign: int = 1) -> None:
        """One page for each of these domains begins to wait; with -1, no longer waits."""
        if self._pages is None:
            return
        for domain, count in Counter(domains).items():
            left = self._pages.get(domain, 0) + sign * count
            if left > 0:
                self._pages[domain] = left
            else:
                self._pages.pop(domain, None)

    def by_domain(self) -> dict[int, int]:
        """Every domain with waiting pages. `load` comes first."""
        assert self._pages is not None
        return self._pages
