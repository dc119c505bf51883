"""The limits that each run had, as recorded with it: a request is judged by those in force when it was sent.

A limit that is changed later neither excuses an earlier request nor condemns it. Runs of earlier versions recorded no
settings; they are judged by the present config, and `lines` says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime

from crawler.model import recorded_settings
from crawler.model.records import RunEvent
from crawler.model.settings import Config
from crawler.rules.lists import Classifier, DomainClass
from crawler.workspace.door import ResultLogs
from crawler.workspace.log import Line
from crawler.workspace.reading import read_records

_WRITER = "scheduler"  # the result log that holds the run events


@dataclass(slots=True)
class Limits:
    """The limits of one config."""

    config: Config
    classifier: Classifier = field(init=False)

    def __post_init__(self) -> None:
        self.classifier = Classifier(self.config)

    @property
    def minimum_ms(self) -> int:
        return self.config.crawler.minimum_time_on_page

    @property
    def may_ignore_robots(self) -> bool:
        """May pages be requested whose robots.txt cannot be read?"""
        return self.config.crawler.robots_unreachable == "allow"

    def budget(self, domain: str) -> int:
        """Requests that a domain may have in a run."""
        is_quality = self.classifier.classify(domain).klass is DomainClass.QUALITY
        return self.config.crawler.budget(is_quality=is_quality)

    def is_listed(self, domain: str) -> bool:
        return self.classifier.classify(domain).klass.is_listed

    def words(self) -> str:
        crawler = self.config.crawler
        other = crawler.budget(is_quality=False)
        more = "" if other == crawler.max_domain_requests else f" ({other:,} if discovered)"
        whole = [f"{name.replace('_', '-')} = {limit:,}" for name, limit in asdict(self.config.limits).items() if limit]
        return f"{self.minimum_ms:,} ms between requests, {crawler.max_domain_requests:,} requests a domain{more}" + (
            f", {', '.join(whole)} for the run" if whole else ""
        )


class RunLimits:
    """The limits by run and time."""

    def __init__(self, config: Config, events: list[RunEvent]) -> None:
        self._present = Limits(config)
        self._by_run: dict[int, list[tuple[int, Limits]]] = {}
        made: dict[str, Limits] = {}
        for event in events:
            values = recorded_settings.read(event.settings) if event.settings else None
            if values is None:
                continue
            if event.settings not in made:
                made[event.settings] = Limits(recorded_settings.restored(values, config))
            self._by_run.setdefault(event.run, []).append((milliseconds(event.at), made[event.settings]))

    def at(self, run: int, at_ms: int) -> Limits:
        """The limits that a request of this run, sent at this time, was bound by."""
        known = self._by_run.get(run)
        if known is None:
            return self._present
        found = known[0][1]
        for since, limits in known:
            if since <= at_ms:
                found = limits
        return found

    def lines(self, runs: set[int], dropped_before: int = 0) -> Iterator[str]:
        """The limits that these runs are judged by, in words; equal ones together. Records of runs before
        `dropped_before` may have been dropped.
        """
        by_words: dict[str, list[int]] = {}
        for run in sorted(runs):
            held = dict.fromkeys(limits.words() for _, limits in self._by_run.get(run, ()))
            if held:
                by_words.setdefault(", then ".join(held), []).append(run)
        for words, numbers in by_words.items():
            yield f"limits recorded with {_runs(numbers)}: {words}."
        unknown = sorted(runs - self._by_run.keys())
        gone = [run for run in unknown if run < dropped_before]
        taken = f"those of the present config are taken: {self._present.words()}."
        if gone:
            yield f"limits of {_runs(gone)} are gone with the results that were dropped; {taken}"
        if unknown[len(gone) :]:
            rest = _runs(unknown[len(gone) :])
            yield f"limits of {rest} were not recorded by the version that made the crawl; {taken}"


def read_run_limits(results: ResultLogs, config: Config) -> RunLimits:
    """The limits that the run events in the result logs carry."""
    if _WRITER not in results.writers():
        return RunLimits(config, [])
    reader = results.reader(_WRITER)
    try:
        records: Iterator[tuple[RunEvent, Line]] = read_records(reader, RunEvent)
        return RunLimits(config, [event for event, _ in records])
    finally:
        reader.close()


def _runs(numbers: list[int]) -> str:
    return f"run{'' if len(numbers) == 1 else 's'} {', '.join(str(number) for number in numbers)}"


def milliseconds(text: str) -> int:
    """The milliseconds of a record's time; 0 where it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
