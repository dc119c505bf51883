"""Sitemaps: recorded cases of other readers' suites, and what none of them tells."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from crawler.model.urls import normalize, resolve
from crawler.visit.robots import sitemaps_of
from crawler.visit.sitemap import Sitemap, counts, date_of, read_sitemap
from tests.places import CONFORMANCE


def cases(member: str) -> list[Any]:
    path = CONFORMANCE / "sitemap_cases.json"
    if not path.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"the conformance cases are not at {CONFORMANCE}"))]
    return [pytest.param(case, id=case["name"]) for case in json.loads(path.read_bytes()) if member in case]


def _bytes(case: dict[str, Any]) -> bytes:
    return base64.b64decode(case["body"]) if case.get("b64") else case["body"].encode()


def _whole(date: str) -> str:
    """With the fields that were not written, as the cases have it."""
    day, time = date.partition("T")[::2]
    day += "-01-01"[len(day) - 4 :]
    return f"{day}T{time[:5]}:00Z" if time and time[5:6] != ":" else f"{day}T{time}" if time else day


def _read(case: dict[str, Any]) -> dict[str, Any]:
    body, url = _bytes(case), case["url"]
    if url.endswith("/robots.txt"):
        named = [resolve(url, text) for text in sitemaps_of(body)]
        return {"kind": "robots", "urls": [], "sitemaps": list(dict.fromkeys(named)), "lastmod": {}}
    found = read_sitemap(body)
    lastmod = {address: _whole(date) for address, date in found.lastmod.items()}
    return {"kind": found.kind, "urls": list(found.urls), "sitemaps": list(found.sitemaps), "lastmod": lastmod}


@pytest.mark.parametrize("case", cases("expect"))
def test_a_recorded_sitemap_is_read_as_other_readers_read_it(case: dict[str, Any]) -> None:
    allowed = [case["expect"], *case.get("alternatives", [])]
    found = _read(case)
    assert any(
        all(found[name] == reading[name] for name in ("kind", "urls", "sitemaps", "lastmod") if name in reading)
        for reading in allowed
    ), found


@pytest.mark.parametrize("case", cases("scope"))
def test_an_address_counts_on_the_sitemaps_host_and_on_the_one_that_announced_it(case: dict[str, Any]) -> None:
    found = read_sitemap(_bytes(case))
    accepted = [
        url for url in (*found.urls, *found.sitemaps) if counts(url, case["url"], case["scope"]["announced_by"][0])
    ]
    assert [normalize(url) for url in accepted] == [normalize(url) for url in case["scope"]["accepted"]]


URLSET = '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'


def _urlset(count: int) -> bytes:
    return (URLSET + "".join(f"<url><loc>https://a.test/{n}</loc></url>" for n in range(count)) + "</urlset>").encode()


def test_a_compressed_sitemap_that_was_cut_off_is_read_as_far_as_it_came() -> None:
    packed = gzip.compress(_urlset(5000), compresslevel=0)
    found = read_sitemap(packed[: len(packed) // 2])
    assert found.kind == "urlset"
    assert 2000 < len(found.urls) < 3000
    assert found.urls == tuple(f"https://a.test/{n}" for n in range(len(found.urls)))


@pytest.mark.parametrize("length", range(len(_urlset(3)) + 1))
def test_at_every_cut_only_whole_addresses_are_found(length: int) -> None:
    whole = tuple(f"https://a.test/{n}" for n in range(3))
    found = read_sitemap(_urlset(3)[:length])
    assert found.urls == whole[: len(found.urls)]


def test_entries_and_bytes_beyond_the_limits_are_left_out() -> None:
    assert read_sitemap(_urlset(10), most_entries=4) == Sitemap(
        "urlset", tuple(f"https://a.test/{n}" for n in range(4)), is_cut=True
    )
    cut = read_sitemap(gzip.compress(_urlset(100_000)), most_bytes=100_000)
    assert cut.is_cut and 0 < len(cut.urls) < 5000
    assert len(read_sitemap(_urlset(60_000)).urls) == 50_000


@pytest.mark.parametrize(
    "body",
    [
        b"<!DOCTYPE urlset><urlset/>",
        b"<?xml version='1.0'?><!-- x --><?y z?>\n<!DOCTYPE urlset [<!ENTITY a 'b'>]><urlset/>",
        "\ufeff<?xml version='1.0' encoding='utf-16'?><!DOCTYPE urlset><urlset/>".encode("utf-16-le"),
        b"<!-- " + b"x" * 200_000 + b" --><!DOCTYPE urlset><urlset/>",
    ],
)
def test_a_document_type_is_refused(body: bytes) -> None:
    found = read_sitemap(body)
    assert found.kind == "invalid"
    assert found.error is not None and "document type" in found.error


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
def test_wide_encodings_are_read(encoding: str) -> None:
    body = f'<?xml version="1.0" encoding="{encoding[:6]}"?>{URLSET}<url><loc>https://a.test/ü</loc></url></urlset>'
    assert read_sitemap(body.encode(encoding)).urls == ("https://a.test/ü",)


def test_an_entity_is_never_followed() -> None:
    body = (
        URLSET + "<url><loc>https://a.test/&secret;</loc></url><url><loc>https://a.test/b</loc></url></urlset>"
    ).encode()
    assert read_sitemap(body).urls in (("https://a.test/b",), ("https://a.test/", "https://a.test/b"))


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("2024", "2024"),
        ("2024-05", "2024-05"),
        (" 2024-05-06 ", "2024-05-06"),
        ("2024-05-06T07:08Z", "2024-05-06T07:08Z"),
        ("2024-05-06T23:30:01.5-02:00", "2024-05-07T01:30:01.5Z"),
        ("2024-05-06T07:08:09", "2024-05-06T07:08:09"),
        ("Mon, 06 May 2024 07:08:09 +0200", "2024-05-06T05:08:09Z"),
        ("2024-13-01", None),
        ("2024-02-30", None),
        ("0001-01-01T00:00:00+10:00", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_a_date_is_kept_as_precisely_as_it_was_written(written: str, kept: str | None) -> None:
    assert date_of(written) == kept
