"""Stored pages as WARC, read again by warcio; `test_pywb` serves the same files by pywb."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from crawler.model.records import UNSET, Carried, Exchange, PageResult, Revalidation, RunEvent, changed
from crawler.model.settings import Config, StoreSettings
from crawler.store.file_store import FileStore, open_store
from reporter.export.graph import ExportError
from reporter.export.warc import ExportedWarc, export_warc
from reporter.export.warc_records import http_head, surt
from tests.ingest.test_loop import write

HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-encoding": "gzip",
    "content-length": "77",
    "etag": '"v1"',
    "set-cookie": "secret=1",
    "x-odd": "a\r\nWARC-Type: forged",
}
CONFIRMED = (Exchange(1, 2, "GET", "www.a.test", 304, 5, "a.test"),)
FIRST, SECOND = b"<title>one</title>\r\n\r\nWARC/1.1", b"<title>two</title>"


def visit(store: FileStore, run: int, path: str, body: bytes, **members: Any) -> PageResult:
    return PageResult(
        run,
        f"https://a.test/{path}",
        f"https://www.a.test/{path}",
        "a.test",
        f"2025-01-0{run}T10:00:00.5{run}0Z",
        "processed",
        status=200,
        content_type="text/html; charset=utf-8",
        bytes=len(body),
        content_hash=store.put(body),
        stored=True,
        headers=HEADERS,
        **members,
    )


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(workspace=tmp_path / "workspace", store=StoreSettings(html=True))


@pytest.fixture
def exported(config: Config, tmp_path: Path) -> tuple[ExportedWarc, Path]:
    """Two runs: a page, one that stays as it was (304), one that is sent again, one that moves to other content."""
    store = open_store(config, writer="test")
    gone = visit(store, 2, "gone", b"<title>gone</title>")
    store.path_of(gone.content_hash or "").unlink()
    write(config, "scheduler", [RunEvent(1, "2025-01-01T00:00:00.000Z", "started")])
    first = visit(store, 1, "x", FIRST)
    write(config, "fetcher-01", [first, visit(store, 1, "y", SECOND), first])
    other = visit(store, 2, "z", b"<title>three</title>", answered_by="https://a.test/z")
    plain = changed(visit(store, 2, "plain", b""), stored=False, content_hash=None)
    write(config, "fetcher-02", [visit(store, 2, "x", FIRST, ledger=CONFIRMED), visit(store, 2, "y", SECOND), other])
    write(config, "fetcher-03", [gone, plain])
    target = tmp_path / "out.warc.gz"
    return export_warc(config, store, target, "Sumi-Ripple/1.0"), target


def records(path: Path) -> Iterator[Any]:
    with path.open("rb") as file:
        yield from ArchiveIterator(file, check_digests="raise")


def test_warcio_reads_every_record_with_its_digest(exported: tuple[ExportedWarc, Path]) -> None:
    made, target = exported
    assert (made.responses, made.revisits, made.missing) == (3, 2, 1)
    found = []
    for record in records(target):
        body = record.content_stream().read()
        found.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), body))
        assert record.rec_headers.protocol == "WARC/1.1"
        if record.rec_type == "response":
            headers = record.http_headers
            assert headers.get_header("set-cookie") is None and headers.get_header("content-encoding") is None
            assert headers.get_header("x-archive-orig-content-encoding") == "gzip"
            assert headers.get_header("content-length") == str(len(body)) and headers.get_header("etag") == '"v1"'
    assert found[0][0] == "warcinfo"
    assert found[1:] == [
        ("response", "https://www.a.test/x", FIRST),
        ("response", "https://www.a.test/y", SECOND),
        ("revisit", "https://www.a.test/x", b""),
        ("revisit", "https://www.a.test/y", b""),
        ("response", "https://a.test/z", b"<title>three</title>"),
    ]


def test_a_304_and_a_page_that_was_sent_again_have_their_own_profiles(exported: tuple[ExportedWarc, Path]) -> None:
    revisits = [record for record in records(exported[1]) if record.rec_type == "revisit"]
    heads = [record.rec_headers.get_header for record in revisits]
    assert [head("WARC-Profile").rpartition("/")[2] for head in heads] == [
        "server-not-modified",
        "identical-payload-digest",
    ]
    assert heads[0]("Content-Length") == "0", "players take the headers of the page itself"
    assert revisits[1].http_headers.get_statuscode() == "200"
    assert [head("WARC-Refers-To-Target-URI") for head in heads] == ["https://www.a.test/x", "https://www.a.test/y"]
    assert [head("WARC-Refers-To-Date") for head in heads] == ["2025-01-01T10:00:00.510Z"] * 2


def test_each_line_of_the_index_leads_to_its_record(exported: tuple[ExportedWarc, Path]) -> None:
    made, target = exported
    lines = made.files[1].read_text().splitlines()
    assert lines == sorted(lines) and len(lines) == 5
    content = target.read_bytes()
    for line in lines:
        key, stamp, text = line.split(" ", 2)
        fields = orjson.loads(text)
        start, length = int(fields["offset"]), int(fields["length"])
        record = gzip.decompress(content[start : start + length])
        assert record.startswith(b"WARC/1.1\r\n") and f"WARC-Target-URI: {fields['url']}\r\n".encode() in record
        assert key == surt(fields["url"]) and len(stamp) == 14
        assert (fields["mime"] == "warc/revisit") == (b"WARC-Type: revisit" in record)


def test_the_same_export_is_the_same_bytes_and_one_run_stands_by_itself(
    exported: tuple[ExportedWarc, Path], config: Config, tmp_path: Path
) -> None:
    again = tmp_path / "again" / "out.warc.gz"
    store = open_store(config)
    export_warc(config, store, again, "Sumi-Ripple/1.0")
    assert again.read_bytes() == exported[1].read_bytes()
    alone = export_warc(config, store, tmp_path / "second.warc.gz", "x", run=2, domain="*.a.test")
    assert (alone.responses, alone.revisits) == (3, 0), "a 304 whose page is in no earlier record brings the page"
    assert "revisit" not in [record.rec_type for record in records(alone.files[0])]
    for options in ({"run": 9}, {"domain": "b.test"}, {"domain": "a b"}):
        with pytest.raises(ExportError):
            export_warc(config, store, tmp_path / "none.warc.gz", "x", **options)
    assert not (tmp_path / "none.warc.gz").exists()


def test_a_carried_page_whose_visit_is_gone_is_a_record_of_that_visit(config: Config, tmp_path: Path) -> None:
    """`prune results` leaves the decisions to carry a page, which tell the visit's time and the headers that matter."""
    store = open_store(config, writer="test")
    noted = Revalidation(7, {"content-type": "text/html; charset=utf-8", "x-robots-tag": "nofollow"})
    before = visit(store, 1, "x", FIRST, etag='"v1"', revalidation=noted)
    decision = changed(before, headers=UNSET, carried=Carried(before.at, before.at))
    decisions = [changed(decision, run=run, at=f"2025-01-0{run}T10:00:00.000Z") for run in (2, 3)]
    write(config, "scheduler", decisions)
    made = export_warc(config, store, tmp_path / "out.warc.gz", "x")
    assert (made.responses, made.revisits) == (1, 0), "one visit, however often it was carried"
    bodies = [(record, record.content_stream().read()) for record in records(tmp_path / "out.warc.gz")]
    record, body = bodies[1]
    assert body == FIRST and record.rec_headers.get_header("WARC-Date") == before.at
    names = ("etag", "x-robots-tag", "content-type")
    assert [record.http_headers.get_header(name) for name in names] == ['"v1"', "nofollow", HEADERS["content-type"]]
    target = tmp_path / "none.warc.gz"
    with pytest.raises(ExportError, match=r"no visit in run 3 of .* brought a page that was stored; "):
        export_warc(config, store, target, "x", run=3)
    write(config, "fetcher-01", [before])
    again = export_warc(config, store, tmp_path / "again.warc.gz", "x")
    assert (again.responses, again.revisits) == (1, 0), "the visit itself, where its results are there"
    with pytest.raises(ExportError, match=r"no visit of b\.test in the results that are there of .*; \[store\] html"):
        export_warc(config, store, target, "x", domain="b.test")


@given(st.dictionaries(st.text(min_size=1), st.text()), st.integers(100, 599))
def test_no_header_of_a_page_can_begin_another(headers: dict[str, str], status: int) -> None:
    head = http_head(status, headers, 5)
    assert head.endswith(b"\r\n\r\n") and head.count(b"\r\n") <= len(headers) + 3
    assert b"\n" not in head.replace(b"\r\n", b"") and b"\r" not in head.replace(b"\r\n", b"")
