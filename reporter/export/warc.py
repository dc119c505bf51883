"""Stored pages as a WARC file with its CDXJ index, for web archives' tools.

Every visit whose page is in the store is a record: a `response` with the page, or a `revisit` that refers to an earlier
record of this file, where the server said that nothing changed (304) or sent what an earlier visit had brought. So each
file can be read by itself. The same results and store give the same bytes.

Where the results of a visit are gone, and the page was carried into a later run because it was not due, the decision to
carry it tells the visit's time and the headers that matter: it becomes the record, unless one run is asked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from crawler.config.checks import Bad, domain_pattern
from crawler.database.ingest_progress import results_kept_from
from crawler.model.records import PageResult, Revalidation
from crawler.model.settings import Config
from crawler.rules.lists import matches
from crawler.store.blobs import BlobDamaged, BlobStore, NotAHash
from crawler.workspace.door import ResultLogs
from crawler.workspace.opening import open_workspace
from crawler.workspace.reading import read_records
from reporter.export.graph import ExportError, replaced
from reporter.export.warc_records import (
    Origin,
    cdxj_line,
    info_record,
    not_modified_record,
    payload_digest,
    response_record,
    sent_again_record,
)

SUFFIXES = (".warc.gz", ".warc")


@dataclass(frozen=True, slots=True)
class ExportedWarc:
    """The records that were written. `missing`: visits whose page is no longer in the store, or is damaged there."""

    responses: int
    revisits: int
    missing: int
    files: tuple[Path, Path]


@dataclass(slots=True)
class _Counts:
    responses: int = 0
    revisits: int = 0
    missing: int = 0


def index_path(target: Path) -> Path:
    """The place of the index: beside the file, under its name."""
    name = next(target.name.removesuffix(suffix) for suffix in SUFFIXES if target.name.endswith(suffix))
    return target.with_name(f"{name}.cdxj")


def export_warc(
    config: Config, store: BlobStore, target: Path, program: str, *, run: int | None = None, domain: str | None = None
) -> ExportedWarc:
    """Write all stored visits, or those of one run or of the domains of a pattern. Raises SumiError.

    Records of one member each are compressed by themselves, so the file's name ends in .gz.
    """
    if not target.name.endswith(".warc.gz"):
        raise ExportError(f"{target}: a WARC file is compressed record by record; give a name that ends in .warc.gz")
    pattern = _pattern(domain) if domain is not None else None
    results = open_workspace(config).results
    counts = _Counts()
    lines: list[str] = []
    index = index_path(target)
    with ExitStack() as files:
        streams = [files.enter_context(replaced(path)) for path in (target, index)]
        info = {
            "software": program,
            "format": "WARC File Format 1.1",
            "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
            "robots": "obey",
            "http-header-user-agent": config.user_agent.header,
        }
        offset = -1
        for result in _stored_visits(results, run, pattern):
            if offset < 0:
                offset = streams[0].write(info_record(target.name, result.visited_at, info))
                writer = _Writer(store, target.name, counts)
            for record, line in writer.records(result, offset):
                offset += streams[0].write(record)
                lines.append(line)
        if not lines:
            raise ExportError(_nothing(config, counts, run, pattern))
        streams[1].write("\n".join([*sorted(lines), ""]).encode())
    return ExportedWarc(counts.responses, counts.revisits, counts.missing, (target, index))


class _Writer:
    """Makes the record of one visit after the other; knows which pages the file holds already."""

    def __init__(self, store: BlobStore, filename: str, counts: _Counts) -> None:
        self._store = store
        self._filename = filename
        self._counts = counts
        self._written: dict[str, tuple[Origin, str]] = {}  # by content hash: where it is, and its digest

    def records(self, result: PageResult, offset: int) -> Iterator[tuple[bytes, str]]:
        """The record of a visit, and its line in the index; none if its page is gone."""
        assert result.content_hash is not None
        uri = result.answered_by or result.wire
        headers, at = _headers_of(result), result.visited_at
        status = 200  # where the first visit of a page in this file is a 304, the stored answer is what it confirmed
        known = self._written.get(result.content_hash)
        if known is not None:
            origin, digest = known
            if result.is_confirmed:
                record = not_modified_record(uri, at, origin, digest)
            else:
                record = sent_again_record(uri, at, status, headers, origin, digest)
            self._counts.revisits += 1
        else:
            try:
                body = self._store.get(result.content_hash)
            except (BlobDamaged, NotAHash):
                body = None
            if body is None:
                self._counts.missing += 1
                return
            digest = payload_digest(body)
            record = response_record(uri, at, status, headers, body, digest)
            self._written[result.content_hash] = (Origin(uri, at), digest)
            self._counts.responses += 1
        mime = (result.content_type or "text/html").partition(";")[0].strip().lower()
        place = (self._filename, offset, len(record))
        yield record, cdxj_line(uri, at, mime, status, digest, place, is_revisit=known is not None)


def _stored_visits(results: ResultLogs, run: int | None, pattern: str | None) -> Iterator[PageResult]:
    """The visits whose page was stored, by run and clock; each once. One whose results are gone is told by the first
    decision to carry its page into a later run.
    """
    seen: set[int] = set()
    streams = [_visits(results, writer) for writer in results.writers()]
    for result in heapq.merge(*streams, key=lambda result: (result.run, result.at, result.key)):
        if not result.stored or result.content_hash is None or (result.is_carried and run is not None):
            continue
        if (run is not None and result.run != run) or (pattern and not matches(pattern, result.domain)):
            continue
        visit = hash((result.visited_at, result.key))
        identity = visit if result.is_carried else hash((result.run, result.key))
        if identity not in seen:
            seen |= {identity, visit}
            yield result


def _visits(results: ResultLogs, writer: str) -> Iterable[PageResult]:
    reader = results.reader(writer)
    try:
        for result, _ in read_records(reader, PageResult):
            yield result
    finally:
        reader.close()


def _headers_of(result: PageResult) -> dict[str, str]:
    """The headers of the answer, as far as they are known."""
    if isinstance(result.headers, dict):
        return result.headers
    found = dict(result.revalidation.headers) if isinstance(result.revalidation, Revalidation) else {}
    known = {"content-type": result.content_type, "etag": result.etag, "last-modified": result.last_modified}
    return {name: value for name, value in known.items() if value} | found


def _pattern(text: str) -> str:
    try:
        return domain_pattern(text)
    except Bad as problem:
        raise ExportError(f"{text!r} is no domain that can be exported; allowed: {problem}") from None


def _nothing(config: Config, counts: _Counts, run: int | None, pattern: str | None) -> str:
    if counts.missing:
        return f"none of {counts.missing:,} stored pages is in the store of {config.workspace} any more"
    asked = f" of {pattern}" if pattern is not None else ""
    where = f"run {run}" if run is not None else "the results that are there"
    kept_from = results_kept_from(config.map_place)
    gone = (
        f"the results of runs before run {kept_from} are gone (prune results, [spool] results), and with them what they"
        " visited"
        if kept_from is not None
        else "[store] html = true keeps the pages of the next visits"
    )
    return f"no visit{asked} in {where} of {config.workspace} brought a page that was stored; {gone}"
