"""Counters of a run in `logs/metrics-<run>.csv`: `timestamp,metric,value`, every ten seconds and at its end.

The counters are committed with the visits that they count, so they are exact over kills. The file is only appended to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import orjson

from crawler.model.records import PageResult
from crawler.model.settings import LogSettings
from crawler.workspace.door import LogFolder
from ingest.writing.store import Store

_META = "metrics"
_HEADER = b"timestamp,metric,value\r\n"
NAMES = (
    *("pages_fetched", "pages_rejected", "fetch_fail", "bytes_fetched", "links_found", "requests", "retries"),
    *("status_2xx", "status_3xx", "status_4xx", "status_5xx", "not_modified_304", "no_answer"),
)


def counted(result: PageResult) -> Counter[str]:
    """What one visit adds to the counters."""
    answer = result.ledger[-1].answer if result.ledger else result.status
    found = Counter(
        pages_fetched=1,
        pages_rejected=int(result.is_rejected),
        fetch_fail=int(result.error is not None),
        bytes_fetched=result.bytes_sent,
        links_found=len(result.hrefs),
        requests=len(result.ledger),
        retries=result.retries,
    )
    group = f"status_{answer // 100}xx" if isinstance(answer, int) else "no_answer"
    found[group if group in NAMES else "no_answer"] += 1
    found["not_modified_304"] += int(result.is_confirmed)
    return found


class RunMetrics:
    """`count` before every commit, `flush` when it is due. `gauges` are values of the moment."""

    def __init__(
        self, settings: LogSettings, folder: LogFolder, store: Store, gauges: Callable[[], dict[str, int]]
    ) -> None:
        self._every = settings.metrics_every
        self._folder = folder
        self._store = store
        self._gauges = gauges
        self._run, self._counters = self._restored()
        self._flushed_at: float | None = None
        self._is_flushed = True  # nothing was counted since

    def count(self, run: int) -> None:
        """Count the visits that the next commit applies."""
        if run != self._run:
            self._run, self._counters = run, Counter()
        visits = [page.visit for page in self._store.changes.done if page.visit is not None]
        visits = [visit for visit in visits if not visit.is_carried]
        if not visits:
            return
        for visit in visits:
            self._counters.update(counted(visit))
        self._store.changes.meta[_META] = orjson.dumps({"run": run, **self._counters}).decode()
        self._is_flushed = False

    def flush_if_due(self, now: float, wall: float) -> None:
        if self._flushed_at is None:
            self._flushed_at = now
        elif now - self._flushed_at >= self._every:
            self._flushed_at = now
            self.flush(wall)

    def flush(self, wall: float, *, is_last: bool = False) -> None:
        """Append all values as they are at this time. At the end: unless they are in the file already."""
        if not self._run or (is_last and self._is_flushed):
            return
        self._is_flushed = True
        values = {name: self._counters[name] for name in NAMES} | self._gauges()
        rows = b"".join(f"{int(wall)},{name},{value}\r\n".encode() for name, value in values.items())
        file = self._folder.file(f"logs/metrics-{self._run}.csv")
        try:
            size = file.open_at(file.size())
            file.append(rows if size else _HEADER + rows)
        finally:
            file.close()

    def _restored(self) -> tuple[int, Counter[str]]:
        run, _ = self._store.last_run()
        try:
            found = orjson.loads(self._store.meta(_META) or "{}")
            if found.pop("run", 0) == run:
                return run, Counter({str(name): int(value) for name, value in found.items()})
        except (ValueError, TypeError, AttributeError):
            pass
        return run, Counter()
