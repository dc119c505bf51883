"""Issue 19, revisits: a page that is in the store is asked for with its validators, and a 304 is read from there."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from msgspec.structs import replace as with_members

from crawler.model.messages import Request, Response, StoredPage
from crawler.model.records import UNSET, Job, PageResult, Revalidation, Validators
from crawler.model.settings import Config, NetworkSettings, StoreSettings
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
        self, *answers: Response, known: Validators | None = KNOWN, stored: bytes | None = PAGE, config: Config = CONFIG
    ) -> None:
        self.requests: list[Request] = []
        script = list(answers)
        flow = visit(JOB, config, lambda host: Policy(), lambda domain: False, asked_as=7, validators=known)
        reply: Response | bytes | None = None
        try:
            while True:
                wish = flow.send(reply)
                if isinstance(wish, StoredPage):
                    assert known is not None and wish.content_hash == known.content_hash
                    reply = stored
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


def test_pages_without_validators_or_with_headers_too_long_to_keep_give_none() -> None:
    for headers in (HEADERS, {**HEADERS, "etag": '"a"', "x-robots-tag": "x" * (MOST_HEADERS + 1)}):
        result = Revisit(Response(200, HEADERS), Response(200, headers, PAGE), known=None).result
        assert result.content_hash is not None and result.revalidation is UNSET
    noarchive = {**SENT.headers, "x-robots-tag": "noarchive"}
    assert Revisit(Response(200, HEADERS), Response(200, noarchive, PAGE), known=None).result.revalidation is UNSET
