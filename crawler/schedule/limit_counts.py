"""The limits of a run ([limits]): how much of each is used, and which one is reached.

They count from the run's start, or from the start that went on with it after an orderly stop, whether anything is
limited or not: a limit may come later. The figures are kept in the document `limits`, so that a scheduler that was
killed, or started again under another config, goes on counting. Reaching a limit is a decision: the scheduler records
it as the end of this part of the run, and the frontier stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass

import orjson

from crawler.model.settings import LimitSettings
from crawler.workspace.door import Workspace

_DOCUMENT = "limits"
_SAVE_EVERY = 5.0  # seconds


@dataclass(slots=True)
class _Used:
    """The figures that are kept. `pages_before` and `domains_before` were visited before the count began."""

    run: int = 0
    pages_before: int = 0
    domains_before: int = 0
    seconds: float = 0.0
    bytes: int = 0


class LimitCounts:
    """Counts what a run uses. `begin` comes first."""

    def __init__(self, limits: LimitSettings, workspace: Workspace) -> None:
        self._limits = limits
        self._workspace = workspace
        self._used = _Used()
        self._pages = 0  # visited in this run, as far as is known
        self._domains: set[str] = set()  # domains of this run that have had jobs
        self._counted_at = 0.0
        self._saved_at = 0.0
        self.has_barred = False  # domains wait that may not be opened

    @property
    def has_any(self) -> bool:
        return self._limits != LimitSettings()

    def begin(self, run: int, pages: int, domains: Iterable[str], now: float, *, is_renewed: bool) -> None:
        """Start to count, from what the map knows of this run. `is_renewed`: with the whole allowance again.

        Else `pages` and `domains` need not be known where nothing is limited.
        """
        self._pages, self._domains = pages, set(domains)
        self._counted_at = self._saved_at = now
        if is_renewed:
            self._used = _Used(run, pages, len(self._domains))
        elif self._used.run != run:
            self._used = self._read(run)
        self.save()

    def note_visits(self, count: int, size: int) -> None:
        self._pages += count
        self._used.bytes += size

    def note_domain(self, name: str) -> None:
        self._domains.add(name)

    def pages_left(self, outstanding: int) -> int | None:
        """Pages that may be released now; None: any number."""
        if not self._limits.max_pages:
            return None
        visited = self._pages - self._used.pages_before
        return max(0, self._limits.max_pages - visited - outstanding)

    def may_serve(self, name: str) -> bool:
        """May this domain have jobs? Those that have had some may go on."""
        most = self._limits.max_domains
        if not most or name in self._domains or len(self._domains) - self._used.domains_before < most:
            return True
        self.has_barred = True
        return False

    def left(self) -> dict[str, int]:
        """What is left of each limit that there is."""
        limits, used = self._limits, self._used
        rest = {
            "pages": (limits.max_pages, self._pages - used.pages_before),
            "domains": (limits.max_domains, len(self._domains) - used.domains_before),
            "seconds": (limits.max_duration, int(used.seconds)),
            "bytes": (limits.max_bytes, used.bytes),
        }
        return {name: max(0, limit - spent) for name, (limit, spent) in rest.items() if limit}

    def reached(self, now: float, outstanding: int) -> str | None:
        """The limit that ends the run now; None: none."""
        self._used.seconds += max(0.0, now - self._counted_at)
        self._counted_at = now
        if now - self._saved_at >= _SAVE_EVERY:
            self._saved_at = now
            self.save()
        limits = self._limits
        if limits.max_duration and self._used.seconds >= limits.max_duration:
            return f"max-duration = {limits.max_duration:,} s"
        if limits.max_bytes and self._used.bytes >= limits.max_bytes:
            return f"max-bytes = {limits.max_bytes:,}"
        if self.pages_left(outstanding) == 0 and not outstanding:
            return f"max-pages = {limits.max_pages:,}"
        return None

    def reached_domains(self) -> str:
        return f"max-domains = {self._limits.max_domains:,}"

    def _read(self, run: int) -> _Used:
        try:
            fields = orjson.loads(self._workspace.document(_DOCUMENT) or b"{}")
            found = _Used(**{name: fields[name] for name in _Used.__slots__})
        except (ValueError, KeyError, TypeError):
            return _Used(run)
        return found if found.run == run else _Used(run)

    def save(self) -> None:
        if self._used.run:  # it has begun
            self._workspace.write_document(_DOCUMENT, orjson.dumps(asdict(self._used)))
