"""Issue 19, revisits: a page that is in the store is asked for with its validators, and a 304 is read from there."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as with_members

from crawler.model.messages import PageNote, Request, Response, StoredPage
from crawler.model.records import UNSET, Job, PageResult, Revalidation, Validators
from crawler.model.settings import (
    Config,
    CrawlerSettings,
    DiscoverySettings,
    ExtractRule,
    GarbageRule,
    NetworkSettings,
    StoreSettings,
    UserAgentSettings,
)
from crawler.visit.flow import MOST_HEADERS, visit
from crawler.visit.robots import Policy

URL = "https://example.com/dir"
PAGE = b'<title>A page</title><h1>Once</h1><a href="/next">next</a>'
DATE = "Mon, 01 Jan 2024 00:00:00 GMT"
HEADERS = {"content-type": "text/html; charset=utf-8", "x-robots-tag": "nofollow", "content-language": "nl"}
JOB = Job(2, URL, URL, "example.com")
KNOWN = Validators(hashlib.sha256(PAGE).hexdigest(), URL, 7, '"abc"', DATE, HEADERS)
CONFIG = Config(store=StoreSettings(html=True), network=NetworkSettings(max_body_size=1000))
SENT = Response(200, {**HEADERS, "etag": '"abc"', "last-modified": DATE}, PAGE)
BOTH = (("If-None-Match", '"abc"'), ("If-Modified-Since", DATE))


class Revisit:
    """One visit to its end. `stored`: what the store answers."""

    def __init__(
        self,
        *answers: Response,
        known: Validators | None = KNOWN,
        stored: bytes | None = PAGE,
        config: Config = CONFIG,
        job: Job = JOB,
        code: bytes = b"",
        note: bytes = b"",
        fields: tuple[ExtractRule, ...] = (),
    ) -> None:
        self.requests: list[Request] = []
        self.has_read = False  # the stored page
        self.note: bytes | None = None
        script = list(answers)
        flow = visit(
            *(job, config, lambda host: Policy(), lambda domain: False),
            asked_as=7,
            validators=known,
            reading_code=code,
            note=note,
            fields=fields,
        )
        reply: Response | bytes | None = None
        try:
            while True:
                wish = flow.send(reply)
                if isinstance(wish, StoredPage):
                    assert known is not None and wish.content_hash == known.content_hash
                    reply = stored
                    self.has_read = True
                elif isinstance(wish, PageNote):
                    self.note, reply = wish.note, None
                else:
                    assert isinstance(wish, Request)
                    self.requests.append(wish)
                    reply = script.pop(0)
        except StopIteration as end:
            self.result: PageResult = end.value
        assert not script

    @property
    def asked(self) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
        return [(request.method, request.conditions) for request in self.requests]


def visited() -> PageResult:
    """The page as an unconditional visit finds it."""
    return Revisit(Response(200, HEADERS), SENT, known=None).result


def test_a_304_is_one_conditional_get_without_a_head_and_tells_all_that_a_200_would() -> None:
    walk = Revisit(Response(304, {"etag": '"abc"', "date": DATE}))
    assert walk.asked == [("GET", BOTH)]
    unlike = {"headers": UNSET}
    assert with_members(walk.result, **unlike) == with_members(visited(), **unlike)
    assert walk.result.nofollow and walk.result.language == "nl", "though the 304 does not say so"
    assert walk.result.status == 200 and walk.result.revalidation == Revalidation(7, HEADERS)
    assert isinstance(walk.result.headers, dict) and walk.result.headers["date"] == DATE


def test_a_header_of_the_304_about_the_page_replaces_the_stored_one() -> None:
    walk = Revisit(Response(304, {"x-robots-tag": "all", "content-type": "application/octet-stream"}))
    assert (walk.result.state, walk.result.nofollow) == ("processed", False)
    assert walk.result.content_type == HEADERS["content-type"], "but its type is that of the page"


def test_a_changed_page_is_read_as_it_was_sent() -> None:
    body = PAGE.replace(b"Once", b"Twice")
    walk = Revisit(replace(SENT, body=body, headers={**SENT.headers, "etag": '"def"'}))
    assert walk.asked == [("GET", BOTH)]
    assert (walk.result.heading, walk.result.etag) == ("Twice", '"def"')
    assert walk.result.revalidation == Revalidation(7, HEADERS)


def test_after_an_identical_page_in_spite_of_its_etag_only_the_date_is_asked_for() -> None:
    """Servers that add -gzip to an ETag do not know it again."""
    first = Revisit(SENT).result
    assert first.revalidation == Revalidation(7, HEADERS, is_etag_vain=True)
    vain = with_members(KNOWN, is_etag_vain=True)
    second = Revisit(Response(304, {"etag": '"other"'}), known=vain)
    assert second.asked == [("GET", BOTH[1:])]
    assert second.result.revalidation == first.revalidation, "it stays so while the page does"


def test_an_etag_that_proved_false_and_has_no_date_beside_it_is_not_sent_until_the_page_has_changed() -> None:
    vain = with_members(KNOWN, is_etag_vain=True, last_modified="")
    dateless = replace(SENT, headers={**HEADERS, "etag": '"abc"'})
    walk = Revisit(Response(200, HEADERS), dateless, known=vain)
    assert walk.asked == [("HEAD", ()), ("GET", ())], "as if it had no validators"
    assert walk.result.revalidation == Revalidation(7, HEADERS, is_etag_vain=True)
    other = replace(dateless, body=PAGE.replace(b"Once", b"Twice"))
    assert Revisit(Response(200, HEADERS), other, known=vain).result.revalidation == Revalidation(7, HEADERS)


def test_a_date_that_cannot_be_sent_back_as_it_came_is_not_sent() -> None:
    odd = "Пн, 01 янв 2024 00:00:00 GMT"
    assert Revisit(Response(304, {}), known=with_members(KNOWN, last_modified=odd)).asked == [("GET", BOTH[:1])]
    sent = Response(200, {**HEADERS, "last-modified": odd}, PAGE)
    assert Revisit(Response(200, HEADERS), sent, known=None).result.revalidation is UNSET


def test_a_redirect_in_answer_to_an_etag_does_not_prove_it_false() -> None:
    there = Response(301, {"location": f"{URL}/"})
    walk = Revisit(there, SENT)
    assert [(request.url, request.conditions) for request in walk.requests] == [(URL, BOTH), (f"{URL}/", ())]
    assert walk.result.revalidation == Revalidation(7, HEADERS)


def test_a_condition_that_a_server_takes_amiss_is_left_out() -> None:
    """412 is for requests that change something (RFC 9110, 15.5.13); some servers send it all the same."""
    walk = Revisit(Response(412, {}), SENT)
    assert walk.asked == [("GET", BOTH), ("GET", ())]
    assert walk.result.state == "processed"
    assert Revisit(Response(200, HEADERS), Response(412, {}), known=None).result.error == "http-412"


def test_a_304_with_another_strong_etag_is_asked_again_once_without_condition() -> None:
    walk = Revisit(Response(304, {"etag": '"def"'}), SENT)
    assert walk.asked == [("GET", BOTH), ("GET", ())]
    assert walk.result.state == "processed" and walk.result.revalidation == Revalidation(7, HEADERS, is_etag_vain=True)
    assert len(Revisit(Response(304, {"etag": 'W/"def"'})).requests) == 1, "a weak one proves nothing"
    assert len(Revisit(Response(304, {"etag": '"abc"'}), known=with_members(KNOWN, etag='W/"abc"')).requests) == 1


def test_a_304_nobody_asked_for_is_a_failure() -> None:
    walk = Revisit(Response(304, {"etag": '"def"'}), Response(304, {}))
    assert (walk.result.state, walk.result.error) == ("failed", "http-304")
    assert Revisit(Response(200, HEADERS), Response(304, {}), known=None).result.error == "http-304"


def test_a_page_that_is_gone_from_the_store_is_asked_for_again() -> None:
    walk = Revisit(Response(304, {}), SENT, stored=None)
    assert walk.asked == [("GET", BOTH), ("GET", ())]
    assert walk.result.revalidation == Revalidation(7, HEADERS), "its ETag is not to blame"


def test_validators_are_sent_to_the_address_only_that_gave_them() -> None:
    there = "https://www.example.com/dir"
    known = with_members(KNOWN, url=there)
    walk = Revisit(Response(301, {"location": there}), Response(304, {}), known=known)
    assert [(request.url, request.conditions) for request in walk.requests] == [(URL, ()), (there, BOTH)]
    assert walk.result.answered_by == there


def test_a_stored_page_over_todays_limit_is_too_large_as_if_it_had_been_sent() -> None:
    small = replace(CONFIG, network=NetworkSettings(max_body_size=20))
    assert str(Revisit(Response(304, {}), config=small).result.error).startswith("too-large")


def test_pages_with_headers_too_long_to_keep_cannot_be_asked_for_conditionally() -> None:
    headers = {**HEADERS, "etag": '"a"', "x-robots-tag": "x" * (MOST_HEADERS + 1)}
    result = Revisit(Response(200, HEADERS), Response(200, headers, PAGE), known=None).result
    assert result.content_hash is not None and result.revalidation is UNSET
    noarchive = {**SENT.headers, "x-robots-tag": "noarchive"}
    assert Revisit(Response(200, HEADERS), Response(200, noarchive, PAGE), known=None).result.revalidation is UNSET


def test_how_a_page_without_validators_was_answered_is_told_and_asks_for_nothing() -> None:
    """Its headers say how to read it again; a job with them has no condition."""
    result = Revisit(Response(200, HEADERS), Response(200, HEADERS, PAGE), known=None).result
    assert result.revalidation == Revalidation(7, HEADERS) and (result.etag, result.last_modified) == (None, None)
    known = with_members(KNOWN, etag="", last_modified="")
    walk = Revisit(Response(200, HEADERS), Response(200, HEADERS, PAGE), known=known)
    assert [conditions for _, conditions in walk.asked] == [(), ()]


# -- what was noted beside the page ----------------------------------------------------------------------------------

LINKED = (
    PAGE + b"<p>" + b"A long story about tea. " * 60 + b"".join(b"<a href=/%d?q=\xc3\xa9>x</a>" % n for n in range(30))
)
LONG = Response(200, {**HEADERS, "etag": '"abc"', "last-modified": DATE}, LINKED)
ROOMY = replace(CONFIG, network=NetworkSettings(max_body_size=10_000))
OF_LINKED = with_members(KNOWN, content_hash=hashlib.sha256(LINKED).hexdigest())
SAME = Response(304, {"etag": '"abc"', "date": DATE})


def noted(headers: dict[str, str] = LONG.headers, body: bytes = LINKED) -> Revisit:
    """The visit of a page that leaves a note."""
    answer = Response(200, headers, body)
    return Revisit(Response(200, HEADERS), answer, known=None, config=ROOMY, code=b"1")


def noted_again(note: bytes | None, **settings: Any) -> Revisit:
    """The visit that finds it unchanged."""
    usual: dict[str, Any] = {"known": OF_LINKED, "stored": LINKED, "config": ROOMY, "code": b"1"}
    return Revisit(SAME, **{**usual, "note": note or b"", **settings})


def test_a_304_whose_page_has_a_note_gives_the_same_result_without_a_look_at_the_page() -> None:
    first = noted()
    assert first.note
    told = noted_again(first.note, stored=None)
    assert not told.has_read and told.note is None and told.requests[0].conditions == BOTH
    read = noted_again(b"")
    assert read.has_read
    assert told.result == read.result
    assert with_members(told.result, headers=UNSET) == with_members(first.result, headers=UNSET)
    assert told.result.bytes == len(LINKED) and len(told.result.hrefs) == 31


def test_a_note_is_the_same_for_every_address_of_a_page_and_its_links_are_those_of_the_address() -> None:
    note = noted().note
    elsewhere = Job(2, "https://b.example/x", "https://b.example/x", "b.example")
    known = with_members(OF_LINKED, url=elsewhere.wire)
    told = noted_again(note, job=elsewhere, known=known)
    assert not told.has_read
    assert told.result == noted_again(b"", job=elsewhere, known=known).result
    assert told.result.base == "https://b.example/x"


@pytest.mark.parametrize(
    "change",
    [
        {"code": b"2"},
        {"config": replace(ROOMY, crawler=CrawlerSettings(link_text=True))},
        {"config": replace(ROOMY, crawler=CrawlerSettings(max_links_per_page=3))},
        {"config": replace(ROOMY, user_agent=UserAgentSettings(crawler_name="Other"))},
        {"config": replace(ROOMY, store=StoreSettings(html=True, near_duplicates=True))},
        {"config": replace(ROOMY, discovery=DiscoverySettings(pagination="label"))},
    ],
)
def test_a_note_that_was_made_in_another_way_is_not_believed_and_made_anew(change: dict[str, Any]) -> None:
    note = noted().note
    other = noted_again(note, **change)
    assert other.has_read and other.note and other.note != note
    assert other.result == noted_again(b"", **change).result
    assert not noted_again(other.note, **change).has_read


def test_a_note_of_another_type_is_not_believed_and_stays() -> None:
    """Two servers may send the same page with two types: they would renew each other's note in turn."""
    known = with_members(OF_LINKED, headers={**HEADERS, "content-type": "text/html; charset=iso-8859-1"})
    other = noted_again(noted().note, known=known)
    assert other.has_read and other.note is None
    assert other.result.hrefs != noted_again(b"").result.hrefs, "its query is escaped in another encoding"


@pytest.mark.parametrize(
    "change",
    [
        {"fields": (ExtractRule("author", "p"),)},
        {"config": replace(ROOMY, garbage=(GarbageRule("ours", "soft", selector="p.none"),))},
        {"config": replace(ROOMY, garbage=(GarbageRule("ours", "soft", text="no such text"),))},
        {"known": with_members(OF_LINKED, headers={})},  # nothing says that it is HTML: its bytes do
        {"code": b""},
    ],
)
def test_a_page_whose_bytes_are_looked_into_is_read_whatever_is_noted(change: dict[str, Any]) -> None:
    assert noted_again(noted().note, **change).has_read
    assert noted_again(b"", **change).note is None


def test_a_thin_page_has_no_note_for_its_markup_is_judged() -> None:
    assert Revisit(Response(200, HEADERS), SENT, known=None, code=b"1").note is None


def test_a_page_that_is_not_kept_or_not_accepted_leaves_no_note() -> None:
    assert noted(LONG.headers | {"x-robots-tag": "noarchive"}).note is None
    rejected = noted(LONG.headers | {"cf-mitigated": "challenge"})
    assert rejected.result.is_rejected and rejected.note is None


def test_a_noted_page_over_todays_limit_is_too_large_all_the_same() -> None:
    small = noted_again(noted().note, config=CONFIG)
    assert str(small.result.error).startswith("too-large") and not small.has_read


def test_a_changed_page_has_a_note_of_its_own() -> None:
    body = LINKED.replace(b"Once", b"Twice")
    changed = replace(LONG, body=body, headers={**LONG.headers, "etag": '"def"'})
    walk = Revisit(changed, known=OF_LINKED, config=ROOMY, code=b"1", note=noted().note or b"")
    assert walk.result.heading == "Twice" and walk.note == noted(body=body).note != noted().note
