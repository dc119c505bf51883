"""Stored pages are read again with today's rules; what happened stays as it was recorded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from crawler.keep.read_again import HAPPENED, PagesReadAgain
from crawler.model.records import UNSET, Carried, Exchange, PageResult, Revalidation, changed
from crawler.model.settings import Config, CrawlerSettings, ExtractRule, GarbageRule, StoreSettings
from crawler.store.file_store import FileStore, open_store

PAGE = b"<title>Tea</title><h1>Leaves</h1><p>" + b"word " * 300 + b'</p><a href="/a">first</a><a href="b">second</a>'
SAID = {
    *("state", "error", "title", "base", "hrefs", "nofollow", "links_cut", "redirect", "validation"),
    *("rejection_reason", "text_print", "texts", "rels", "next_page", "next_by", "noarchive", "description"),
    *("language", "canonical", "heading", "text_hash", "simhash", "fields"),
}


@pytest.fixture
def config(tmp_path: Path) -> Config:
    return Config(workspace=tmp_path / "workspace", store=StoreSettings(html=True))


@pytest.fixture
def store(config: Config) -> FileStore:
    return open_store(config, writer="test")


def recorded(store: FileStore, body: bytes = PAGE) -> PageResult:
    """A result of another time: its code found another title, and no link."""
    return PageResult(
        run=3,
        key="https://a.test/x",
        wire="https://www.a.test/x/",
        domain="a.test",
        at="2025-01-01T00:00:00.000Z",
        state="processed",
        status=200,
        content_type="text/html; charset=utf-8",
        title="An old title",
        retries=1,
        bytes=len(body),
        boot="ab",
        ledger=(Exchange(1, 2, "GET", "www.a.test", 200, 5, "a.test"),),
        content_hash=store.put(body),
        stored=True,
        headers={"content-type": "text/html; charset=utf-8", "x-robots-tag": "nofollow"},
    )


def test_every_member_of_a_result_either_happened_or_was_said_by_the_page() -> None:
    members = set(PageResult.__struct_fields__)
    assert not {*HAPPENED} & SAID
    assert members == {*HAPPENED} | SAID, "say of a new member which it is: recorded, or read again"


def test_what_the_page_says_is_new_and_what_happened_is_as_recorded(config: Config, store: FileStore) -> None:
    before = recorded(store)
    again = PagesReadAgain(config, store)
    after = again(before)
    assert (after.title, after.hrefs, after.heading) == ("Tea", ("/a", "b"), "Leaves")
    assert after.nofollow, "the header that was kept says so"
    assert [getattr(after, name) for name in HAPPENED] == [getattr(before, name) for name in HAPPENED]
    assert (again.read, again.missing, again.others) == (1, 0, 0)


def test_a_page_that_another_address_of_its_key_answered_is_read_there(config: Config, store: FileStore) -> None:
    before = changed(recorded(store), answered_by="https://a.test/x")
    after = PagesReadAgain(config, store)(before)
    assert (after.title, after.base, after.wire) == ("Tea", "https://a.test/x", "https://www.a.test/x/")


def test_a_carried_page_is_read_as_its_last_visit_was_answered(config: Config, store: FileStore) -> None:
    visit = changed(recorded(store), answered_by="https://a.test/x")
    carried = changed(
        visit,
        run=4,
        answered_by=None,
        headers=UNSET,
        ledger=(),
        carried=Carried("2025-01-01T00:00:00.000Z", "2025-02-01T00:00:00.000Z"),
    )
    again = PagesReadAgain(config, store)
    assert again(carried) is carried, "how its page was answered is not known"
    again(visit)
    after = again(carried)
    assert (after.title, after.base, after.nofollow) == ("Tea", "https://a.test/x", True)
    assert (after.run, after.carried, after.ledger) == (4, carried.carried, ())


def test_a_carried_page_whose_visit_is_gone_is_read_as_the_map_had_noted_its_answer(
    config: Config, store: FileStore
) -> None:
    """`prune results` leaves the decision to carry it, which brings the address and the headers that matter."""
    noted = Revalidation(7, {"content-type": "text/html", "x-robots-tag": "nofollow", "refresh": "0;url=/next"})
    carried = changed(
        recorded(store),
        run=4,
        answered_by="https://a.test/x",
        headers=UNSET,
        carried=Carried("2025-01-01T00:00:00.000Z", "2025-02-01T00:00:00.000Z"),
        revalidation=noted,
    )
    wanting = replace(config, extract=(ExtractRule("headline", "h1::text"),))
    again = PagesReadAgain(wanting, store)
    after = again(carried)
    assert (after.title, after.base, after.nofollow) == ("Tea", "https://a.test/x", True)
    assert after.fields == {"headline": ("Leaves",)} and "/next" in after.hrefs
    assert again(changed(carried, revalidation=UNSET)).title == "An old title"
    assert again.lines() == [
        "1 page read again from the store",
        "1 stored page with a visit whose results, and headers, are gone (prune results, [spool] results): as recorded",
    ]


def test_a_new_rule_judges_stored_pages_too(config: Config, store: FileStore) -> None:
    rule = GarbageRule("leaves", "soft", text="word word")
    after = PagesReadAgain(replace(config, garbage=(rule,)), store)(recorded(store))
    assert after.validation == "soft" and (after.rejection_reason or "").startswith("leaves")


def test_a_new_field_is_read_from_pages_that_were_stored_before_it(config: Config, store: FileStore) -> None:
    wanting = replace(config, extract=(ExtractRule("headline", "h1::text"),))
    assert PagesReadAgain(wanting, store)(recorded(store)).fields == {"headline": ("Leaves",)}


def test_link_texts_can_be_had_afterwards(config: Config, store: FileStore) -> None:
    wanting = replace(config, crawler=CrawlerSettings(link_text=True))
    assert PagesReadAgain(wanting, store)(recorded(store)).texts == ("first", "second")


def test_results_without_a_stored_page_stay_as_they_are(config: Config, store: FileStore) -> None:
    again = PagesReadAgain(config, store)
    result = recorded(store)
    gone = recorded(store, b"<title>gone</title>")
    store.path_of(gone.content_hash or "").unlink()
    damaged = recorded(store, b"<title>damaged</title>" * 50)
    place = store.path_of(damaged.content_hash or "")
    place.write_bytes(place.read_bytes()[:-1] + b"x")
    others = (changed(result, stored=False), changed(result, content_hash=None, stored=False))
    for each in (gone, damaged, *others):
        assert again(each) is each
    assert (again.read, again.missing, again.others) == (0, 2, 2)
