"""PURE. Counters of all visits of a map, as the ingest keeps them and monitoring reads them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import orjson

META = "visit_counters"  # their name in the map
BUCKETS_MS = (10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)  # upper ends of durations


@dataclass(slots=True)
class VisitCounts:
    outcomes: Counter[str] = field(default_factory=Counter)  # by the state that the visit ended in
    codes: Counter[str] = field(default_factory=Counter)  # of HTTP answers: pages, robots.txt, sitemaps, redirects
    failures: Counter[str] = field(default_factory=Counter)  # requests without an answer, by slug
    robots_denials: int = 0
    bytes: int = 0
    durations: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS_MS) + 1))  # of requests; the last: longer
    duration_ms: int = 0

    @classmethod
    def read(cls, text: str | None) -> VisitCounts:
        """From the map's note; all zero where there is none, or none that can be read."""
        try:
            found = orjson.loads(text or "{}")
            counters = {name: Counter(_numbers(found.get(name, {}))) for name in ("outcomes", "codes", "failures")}
            durations = [int(number) for number in found.get("durations", [])]
            sums = {name: int(found.get(name, 0)) for name in ("robots_denials", "bytes", "duration_ms")}
        except (ValueError, TypeError, AttributeError):
            return cls()
        whole = durations if len(durations) == len(BUCKETS_MS) + 1 else [0] * (len(BUCKETS_MS) + 1)
        return cls(**counters, durations=whole, **sums)  # type: ignore[arg-type]

    def as_json(self) -> dict[str, Any]:
        names = ("outcomes", "codes", "failures", "robots_denials", "bytes", "durations", "duration_ms")
        return {name: getattr(self, name) for name in names}

    def answers(self) -> dict[str, int]:
        """The few numbers that alerts go by, for the heartbeat."""
        return {
            "all": sum(self.codes.values()) + sum(self.failures.values()),
            "server_errors": sum(count for code, count in self.codes.items() if code.startswith("5")),
            "rate_limited": self.codes["429"],
            "timeouts": self.failures["timeout"],
        }


def _numbers(found: dict[str, Any]) -> dict[str, int]:
    return {str(name): int(value) for name, value in found.items()}
