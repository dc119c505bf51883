"""Every branch of a visit, without a socket: a small driver answers the generator from a script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.messages import NO_RETRIES, Answer, BodyWanted, Failure, Pause, Request, Response, RetryCounts
from crawler.model.records import UNSET, Closure, DomainEvent, Job, PageResult, RobotsResult
from crawler.model.settings import Config, CrawlerSettings, NetworkSettings, ResilienceSettings, ValidationSettings
from crawler.visit.flow import Refusal, looks_like_page, number_of, retry_after, visit
from crawler.visit.robots import Policy, parse

HTML = {"content-type": "text/html; charset=utf-8"}
PAGE = b'<title>A page</title><a href="/next">next</a>'
JOB = Job(1, "https://example.com/dir", "https://example.com/dir", "example.com")
SPENT = Refusal(Closure("request-limit", 9, 9))


def response(
    status: int = 200, headers: dict[str, str] | None = None, body: bytes = b"", is_cut: bool = False
) -> Response:
    return Response(status, HTML if headers is None else headers, body, is_cut)


def to(location: str, status: int = 301) -> Response:
    return Response(status, {"location": location})


OK_HEAD = response()
OK_GET = response(body=PAGE)


class Walk:
    """One visit, walked to its end, or to its pause number `cut_at`. Answers come from a list, in order, or from a
    function of the request."""

    def __init__(
        self,
        *answers: Answer | Refusal,
        job: Job = JOB,
        known: dict[str, Policy] | None = None,
        respond: Callable[[Request], Answer | Refusal] | None = None,
        listed: tuple[str, ...] = (),
        retry_counts: RetryCounts = NO_RETRIES,
        cut_at: int = 0,
        validation: ValidationSettings = ValidationSettings(),  # noqa: B008
        resilience: ResilienceSettings = ResilienceSettings(),  # noqa: B008
        learns_404: bool = False,
        **settings: object,
    ) -> None:
        config = Config(
            crawler=replace(CrawlerSettings(), **settings),
            network=NetworkSettings(max_body_size=1000),
            validation=validation,
            resilience=resilience,
        )
        if known is None:
            known = {"example.com": Policy(), "www.example.com": Policy()}
        script = list(answers)
        self.requests: list[Request] = []
        self.pauses: list[Pause] = []
        self.robots: list[RobotsResult] = []
        self.events: list[DomainEvent] = []
        flow = visit(job, config, known.get, lambda domain: domain in listed, retry_counts, learns_404=learns_404)
        reply: Answer | Refusal | None = None
        try:
            while True:
                wish = flow.send(reply)
                reply = None
                if isinstance(wish, Pause):
                    self.pauses.append(wish)
                    if len(self.pauses) == cut_at:
                        return
                elif isinstance(wish, RobotsResult):
                    self.robots.append(wish)
                elif isinstance(wish, DomainEvent):
                    self.events.append(wish)
                else:
                    self.requests.append(wish)
                    assert len(self.requests) < 100, "this visit never ends"
                    reply = respond(wish) if respond else script.pop(0)
        except StopIteration as end:
            self.result: PageResult = end.value
        assert not script, "the visit left answers unused"

    @property
    def asked(self) -> list[str]:
        return [f"{request.method} {request.url}" for request in self.requests]

    @property
    def ended(self) -> tuple[str, str | None]:
        """State and slug."""
        error = self.result.error
        return self.result.state, error.split(":")[0].split(",")[0] if error else None


# -- §10.2: the request flow -------------------------------------------------------------------------------


def test_head_then_get_then_links() -> None:
    walk = Walk(OK_HEAD, replace(OK_GET, headers={**HTML, "last-modified": "Mon, 1 Jan 2024 00:00:00 GMT"}))
    assert walk.asked == ["HEAD https://example.com/dir", "GET https://example.com/dir"]
    assert walk.requests[1].wanted is BodyWanted.HTML
    assert walk.requests[1].limit == 1000
    result = walk.result
    assert walk.ended == ("processed", None)
    assert (result.title, result.hrefs, result.base) == ("A page", ("/next",), "https://example.com/dir")
    assert (result.status, result.content_type, result.bytes) == (200, "text/html; charset=utf-8", len(PAGE))
    assert result.last_modified == "Mon, 1 Jan 2024 00:00:00 GMT"
    assert (result.run, result.key, result.wire, result.domain) == (1, JOB.key, JOB.wire, JOB.domain)


def test_a_head_that_is_not_html_is_a_content_mismatch() -> None:
    walk = Walk(response(headers={"content-type": "application/pdf"}))
    assert walk.ended == ("content_mismatch", "content-mismatch")
    assert walk.result.content_type == "application/pdf"
    assert walk.result.status == 200


def test_a_head_that_promises_html_and_a_get_that_is_not_is_a_content_mismatch() -> None:
    walk = Walk(OK_HEAD, response(headers={"content-type": "image/png"}))
    assert walk.ended == ("content_mismatch", "content-mismatch")
    assert "HEAD said text/html, GET sent image/png" in str(walk.result.error)


def test_a_get_without_head_that_is_not_html_is_a_content_mismatch() -> None:
    walk = Walk(response(headers={"content-type": "image/png"}), head_requests="never")
    assert walk.ended == ("content_mismatch", "content-mismatch")


def test_a_head_without_a_type_says_nothing_and_get_decides() -> None:
    assert Walk(response(headers={}), OK_GET).ended == ("processed", None)
    assert Walk(response(headers={}), response(headers={}, body=b"\x89PNG....")).ended[0] == "content_mismatch"
    assert Walk(response(headers={}), response(headers={}, body=b"<html><a href=x>")).ended[0] == "processed"


@pytest.mark.parametrize("status", [405, 501])
def test_a_refused_head_falls_back_to_get(status: int) -> None:
    walk = Walk(response(status), OK_GET)
    assert walk.asked == ["HEAD https://example.com/dir", "GET https://example.com/dir"]
    assert walk.ended == ("processed", None)
    assert walk.pauses == []


@pytest.mark.parametrize(
    "slug", ["timeout", "bad-response", "early-close", "connection-reset", "too-large", "bad-encoding"]
)
def test_a_head_that_is_not_answered_properly_falls_back_to_get(slug: str) -> None:
    walk = Walk(Failure(slug, "no"), OK_GET)
    assert walk.ended == ("processed", None)
    assert walk.result.retries == 0


def test_head_may_be_left_out() -> None:
    assert Walk(OK_GET, head_requests="never").asked == ["GET https://example.com/dir"]


def test_head_auto_asks_only_where_the_url_does_not_look_like_a_page() -> None:
    assert Walk(OK_GET, head_requests="auto").asked == ["GET https://example.com/dir"]
    url = "https://example.com/a.bin"
    walk = Walk(OK_HEAD, OK_GET, job=Job(1, url, url, "example.com"), head_requests="auto")
    assert walk.asked[0] == f"HEAD {url}"


@pytest.mark.parametrize(
    ("url", "is_page"),
    [
        ("https://a.test/", True),
        ("https://a.test/x", True),
        ("https://a.test/x.html?file=a.pdf", True),
        ("https://a.test/x.PHP", True),
        ("https://a.test/.well-known", True),
        ("https://a.test/x.pdf", False),
        ("https://a.test/v1.2", False),
    ],
)
def test_what_looks_like_a_page(url: str, is_page: bool) -> None:
    assert looks_like_page(url) is is_page


# -- §4.3, row by row --------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [404, 410])
def test_404_and_410_are_dead_links_at_once(status: int) -> None:
    for walk in (Walk(response(status)), Walk(OK_HEAD, response(status))):
        assert walk.ended == ("dead_link", f"http-{status}")
        assert walk.result.status == status
        assert walk.pauses == []


def test_429_is_rate_limited_at_once_and_closes_the_domain() -> None:
    walk = Walk(response(429, {"retry-after": "1"}))
    assert walk.ended == ("rate_limited", "http-429")
    assert walk.result.closes == Closure("rate-limited", 0)
    assert walk.pauses == []


def test_5xx_is_tried_three_times_more_with_5_seconds_between() -> None:
    walk = Walk(OK_HEAD, *[response(503)] * 4)
    assert walk.ended == ("failed", "http-503")
    assert [pause.seconds for pause in walk.pauses] == [5, 5, 5]
    assert walk.result.retries == 3
    assert walk.result.status == 503


def test_a_5xx_that_passes_is_a_page_like_any_other() -> None:
    walk = Walk(response(500), OK_HEAD, response(502), OK_GET)
    assert walk.ended == ("processed", None)
    assert walk.result.retries == 2


def test_a_timeout_is_tried_three_times_more_with_5_seconds_between() -> None:
    walk = Walk(OK_HEAD, *[Failure("timeout", "no answer")] * 4)
    assert walk.ended == ("failed", "timeout")
    assert [pause.seconds for pause in walk.pauses] == [5, 5, 5]


@pytest.mark.parametrize("slug", ["connection-refused", "tls", "dns", "address-blocked"])
def test_refused_tls_dns_and_blocked_are_unreachable_at_once(slug: str) -> None:
    for walk in (Walk(Failure(slug, "no")), Walk(OK_HEAD, Failure(slug, "no"))):
        assert walk.ended == ("unreachable", slug)
        assert walk.pauses == []


def test_a_redirect_loop_fails_with_its_reason() -> None:
    walk = Walk(to("https://www.example.com/dir"), to("https://example.com/dir"))
    assert walk.ended == ("failed", "redirect-loop")


def test_more_than_ten_redirects_fail_with_their_reason() -> None:
    def respond(request: Request) -> Answer:
        return to(f"{request.url}/")  # the key has no trailing slashes

    walk = Walk(respond=respond)
    assert walk.ended == ("failed", "redirect-limit")
    assert len(walk.requests) == 11


@pytest.mark.parametrize("target", ["https://blacklisted.test/x", "https://stub.test/y"])
def test_a_redirect_to_a_listed_domain_stops_there_and_names_its_target(target: str) -> None:
    """The ingest, which knows the lists, marks the target; nothing is asked of it here."""
    walk = Walk(to(target), listed=("blacklisted.test", "stub.test"))
    assert walk.ended == ("processed", None)
    assert walk.result.redirect == target
    assert len(walk.requests) == 1


# -- other answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 401, 403, 418, 451])
def test_other_4xx_fail_at_once(status: int) -> None:
    walk = Walk(response(status))
    assert walk.ended == ("failed", f"http-{status}")
    assert walk.pauses == []


@pytest.mark.parametrize("status", [100, 304, 305, 999])
def test_odd_statuses_fail_with_their_number(status: int) -> None:
    assert Walk(OK_HEAD, response(status)).ended == ("failed", f"http-{status}")


@pytest.mark.parametrize("status", [201, 203, 206])
def test_other_2xx_with_html_are_processed(status: int) -> None:
    walk = Walk(OK_HEAD, replace(OK_GET, status=status))
    assert walk.ended == ("processed", None)
    assert walk.result.status == status
    assert walk.result.hrefs == ("/next",)


def test_an_empty_answer_is_a_page_without_links() -> None:
    for answer in (response(204, {}), response(200, {}), response(200)):
        walk = Walk(OK_HEAD, answer)
        assert walk.ended == ("processed", None)
        assert walk.result.hrefs == ()


def test_a_body_over_the_limit_fails_as_too_large() -> None:
    assert Walk(OK_HEAD, replace(OK_GET, is_cut=True)).ended == ("failed", "too-large")
    assert Walk(OK_HEAD, Failure("too-large", "headers")).ended == ("failed", "too-large")


def test_a_broken_encoding_fails_at_once() -> None:
    walk = Walk(OK_HEAD, Failure("bad-encoding", "gzip"))
    assert walk.ended == ("failed", "bad-encoding")
    assert walk.pauses == []


@pytest.mark.parametrize(
    ("slug", "state"),
    [
        ("bad-response", "failed"),
        ("early-close", "failed"),
        ("connection-reset", "unreachable"),
        ("connection-failed", "unreachable"),
        ("dns-temporary", "unreachable"),
    ],
)
def test_what_may_pass_is_tried_again_and_then_has_its_state(slug: str, state: str) -> None:
    walk = Walk(*[Failure(slug, "no")] * 4, head_requests="never")
    assert walk.ended == (state, slug)
    assert len(walk.pauses) == 3
    assert walk.result.status is None


def test_retries_and_their_delay_are_settings() -> None:
    walk = Walk(response(503), response(503), retries=1, retry_delay=250, head_requests="never")
    assert [pause.seconds for pause in walk.pauses] == [0.25]


def test_retry_after_on_503_is_a_minimum() -> None:
    walk = Walk(response(503, {"retry-after": "60"}), OK_GET, head_requests="never")
    assert [pause.seconds for pause in walk.pauses] == [60]
    walk = Walk(response(503, {"retry-after": "1"}), OK_GET, head_requests="never")
    assert [pause.seconds for pause in walk.pauses] == [5]


def test_a_retry_after_beyond_the_limit_is_not_waited_for() -> None:
    walk = Walk(response(503, {"retry-after": "999999"}), head_requests="never")
    assert walk.ended == ("failed", "http-503")
    assert walk.pauses == []


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 7 "}, 7.0),
        ({"retry-after": "Mon, 01 Jan 2024 00:01:00 GMT", "date": "Mon, 01 Jan 2024 00:00:00 GMT"}, 60.0),
        ({"retry-after": "Mon, 01 Jan 2024 00:00:00 GMT", "date": "Mon, 01 Jan 2024 00:01:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 01 Jan 2024 00:01:00 GMT"}, None),
        ({"retry-after": "soon", "date": "Mon, 01 Jan 2024 00:00:00 GMT"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "١٢"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_by_the_servers_own_clock(
    headers: dict[str, str], seconds: float | None
) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("date", ["", "not a date", "Thu, 99 Foo 2026 00:00:00 GMT"])
def test_a_retry_after_as_a_date_without_a_date_is_read_against_our_clock(date: str) -> None:
    headers = {"retry-after": "Thu, 01 Jan 1970 01:00:00 GMT", "date": date}
    assert retry_after(headers, 3000.0) == 600.0
    assert retry_after(headers, 4000.0) == 0.0, "a date that has passed"
    assert retry_after(headers) is None


def test_a_429_is_waited_out_once_where_the_config_says_so() -> None:
    limited = response(429, {"retry-after": "30"})
    walk = Walk(limited, OK_HEAD, OK_GET, on_429="wait")
    assert walk.ended == ("processed", None)
    assert [pause.seconds for pause in walk.pauses] == [30]
    again = Walk(limited, OK_HEAD, limited, on_429="wait")
    assert again.ended == ("rate_limited", "http-429")
    assert again.result.closes is None, "the circuit breaker decides about the domain"


@pytest.mark.parametrize("resilience", [{"breaker_failures": 0}, {"breaker_counts": ("timeout",)}])
def test_a_second_429_closes_the_domain_where_no_breaker_counts_it(resilience: dict[str, Any]) -> None:
    limited = response(429, {"retry-after": "30"})
    again = Walk(limited, limited, on_429="wait", resilience=ResilienceSettings(**resilience))
    assert again.ended == ("rate_limited", "http-429")
    assert again.result.closes == Closure("rate-limited", 0)


def test_a_429_is_not_waited_out_beyond_the_limit_and_closes_the_domain() -> None:
    walk = Walk(response(429, {"retry-after": "301"}), on_429="wait", max_retry_after=300_000)
    assert walk.ended == ("rate_limited", "http-429")
    assert walk.pauses == []
    assert walk.result.closes == Closure("rate-limited", 0)
    longer = Walk(response(429), response(429, {"retry-after": "301"}), on_429="wait", max_retry_after=300_000)
    assert longer.result.closes == Closure("rate-limited", 0), "the second answer asks for a longer pause"


@given(
    st.lists(st.sampled_from(["ok", "502", "429", "timeout"]), max_size=8),
    st.lists(st.integers(1, 3), max_size=6),
    st.integers(0, 3),
)
def test_a_visit_that_is_cut_off_at_its_pauses_ends_as_if_it_had_not_been(
    weather: list[str], cuts: list[int], retries: int
) -> None:
    """The same answers, whoever asks: HEAD is left out, so that a visit made again asks for nothing twice."""
    answers = {"ok": OK_GET, "502": response(502), "429": response(429), "timeout": Failure("timeout", "no answer")}

    def walk_through(cuts: list[int]) -> tuple[list[str], PageResult, int]:
        coming = iter([*weather, *["502"] * 20])
        asked: list[str] = []
        counts, pauses = NO_RETRIES, 0
        for cut in [*cuts, 0]:
            walk = Walk(
                respond=lambda _: answers[next(coming)],
                retry_counts=counts,
                cut_at=cut,
                retries=retries,
                on_429="wait",
                head_requests="never",
            )
            asked += walk.asked
            pauses += len(walk.pauses)
            if hasattr(walk, "result"):
                break
            counts = walk.pauses[-1].retry_counts
        return asked, walk.result, pauses

    assert walk_through(cuts) == walk_through([])


def test_tries_for_robots_txt_go_on_counting_for_the_host_they_were_made_for() -> None:
    first = Walk(*[response(503)] * 2, known={}, cut_at=2)
    assert [event.event for event in first.events] == ["deferred"]
    counts = first.pauses[-1].retry_counts
    assert (counts.job, counts.robots_tries) == (number_of(JOB), 2)
    again = Walk(*[response(503)] * 2, known={}, retry_counts=counts)
    assert [pause.seconds for pause in again.pauses] == [20]
    assert again.ended == ("failed", "robots-unreachable")
    assert again.events == []
    fewer = Walk(response(503), known={}, retry_counts=counts, robots_retries=1)
    assert fewer.ended == ("failed", "robots-unreachable")
    other = Walk(*[response(503)] * 4, known={}, retry_counts=counts._replace(robots_host=counts.robots_host ^ 1))
    assert [pause.seconds for pause in other.pauses] == [5, 10, 20]


def test_a_spent_budget_ends_the_visit_and_closes_the_domain() -> None:
    for walk in (Walk(SPENT), Walk(OK_HEAD, SPENT)):
        assert walk.ended == ("request_limit_hit", "request-limit")
        assert walk.result.closes == SPENT.closes


def test_a_domain_that_was_closed_meanwhile_ends_the_visit_in_the_closures_state() -> None:
    assert Walk(Refusal(Closure("rate-limited", 4))).ended[0] == "rate_limited"
    assert Walk(Refusal(Closure("crawl-delay", 1, 5))).ended[0] == "failed"


# -- §6.4: redirects ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "location",
    [
        "https://www.example.com/dir",
        "https://example.com/dir/",
        "/dir/",
        "dir/",
        "//www.example.com/dir",
        "https://example.com/dir?utm_source=x",
        "https://user:secret@www.example.com/dir#part",
    ],
)
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_that_keeps_the_key_is_followed_here(location: str, status: int) -> None:
    walk = Walk(to(location, status), OK_HEAD, OK_GET)
    assert walk.ended == ("processed", None)
    assert walk.requests[0].method == walk.requests[1].method == "HEAD"
    assert walk.requests[1].url == walk.requests[2].url != JOB.wire
    assert "secret" not in walk.requests[1].url
    assert "#" not in walk.requests[1].url


def test_a_redirect_to_http_of_the_same_page_is_a_loop_because_only_https_is_asked() -> None:
    assert Walk(to("http://example.com/dir")).ended == ("failed", "redirect-loop")


def test_a_get_may_be_redirected_where_head_was_not() -> None:
    walk = Walk(OK_HEAD, to("/dir/"), OK_GET)
    assert walk.asked[-1] == "GET https://example.com/dir/"
    assert walk.result.base == "https://example.com/dir/"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/elsewhere", "https://example.com/elsewhere"),
        ("https://other.test/", "https://other.test/"),
        ("//other.test/x", "https://other.test/x"),
        ("http://other.test/x", "https://other.test/x"),
        ("https://me:pw@other.test/x#y", "https://other.test/x"),
        ("?page=2", "https://example.com/dir?page=2"),
    ],
)
def test_a_redirect_that_leaves_the_key_ends_the_visit_with_its_target(location: str, target: str) -> None:
    walk = Walk(to(location, 302))
    assert walk.ended == ("processed", None)
    assert (walk.result.status, walk.result.redirect) == (302, target)
    assert walk.result.hrefs == ()


@pytest.mark.parametrize(
    "location", ["", "  ", "mailto:a@b.test", "javascript:1", "https://", "https://[::1", "ftp://x/y", "http://a b/"]
)
def test_a_redirect_to_nowhere_fails(location: str) -> None:
    assert Walk(to(location)).ended == ("failed", "bad-redirect")


@pytest.mark.parametrize(
    "location", ["ftp://me:secret@x/y", "https://me:secret@", "//me:secret@[x", "https:\\\\me:secret@/"]
)
def test_userinfo_of_a_redirect_to_nowhere_is_not_told(location: str) -> None:
    walk = Walk(to(location))
    assert walk.result.error is not None and walk.result.error.startswith("bad-redirect")
    assert "secret" not in walk.result.error
    robots = Walk(respond=lambda request: to(location, 302), known={}, robots_retries=1)
    assert robots.ended == ("failed", "robots-unreachable")
    assert "secret" not in (robots.result.error or "")


def test_userinfo_of_links_is_not_recorded_and_the_links_mean_the_same() -> None:
    page = (
        b'<base href="https://me:secret@example.com/deep/"><a href="http://me:secret@other.test/x?mail=a@b#c">'
        b'<a href="//secret@other.test"><a href="/@friend"><a href="a@b"><a href="https://me:secret@[bad">'
    )
    walk = Walk(OK_HEAD, response(body=page))
    assert walk.result.base == "https://example.com/deep/"
    assert walk.result.hrefs[:4] == ("https://other.test/x?mail=a@b", "https://other.test/", "/@friend", "a@b")
    assert "secret" not in repr(walk.result)


def test_300_is_a_redirect_only_with_a_location() -> None:
    assert Walk(to("/elsewhere", 300)).result.redirect == "https://example.com/elsewhere"
    assert Walk(response(300)).ended == ("failed", "http-300")


# -- links and their rules ---------------------------------------------------------------------------------


def test_a_refresh_header_is_a_link() -> None:
    walk = Walk(OK_HEAD, replace(OK_GET, headers={**HTML, "refresh": "3; url=/later"}))
    assert walk.result.hrefs == ("/next", "/later")


def test_a_meta_refresh_is_a_link() -> None:
    body = b'<meta http-equiv="refresh" content="0;url=/moved">'
    assert Walk(OK_HEAD, response(body=body)).result.hrefs == ("/moved",)


@pytest.mark.parametrize(
    ("header", "is_nofollow"),
    [
        ("nofollow", True),
        ("none", True),
        ("noindex", False),
        ("otherbot: nofollow", False),
        ("SumiRipple: nofollow", True),
    ],
)
def test_x_robots_tag_nofollow_is_recorded(header: str, is_nofollow: bool) -> None:
    walk = Walk(OK_HEAD, replace(OK_GET, headers={**HTML, "x-robots-tag": header}))
    assert walk.result.nofollow is is_nofollow


def test_meta_robots_nofollow_is_recorded_with_the_links() -> None:
    walk = Walk(OK_HEAD, response(body=b'<meta name="robots" content="nofollow">' + PAGE))
    assert walk.result.nofollow
    assert walk.result.hrefs == ("/next",)


def test_a_page_with_too_many_links_is_cut_and_says_so() -> None:
    body = b"".join(b'<a href="/%d">x</a>' % number for number in range(8))
    walk = Walk(OK_HEAD, response(body=body), max_links_per_page=5)
    assert len(walk.result.hrefs) == 5
    assert walk.result.links_cut == 3


# -- robots.txt --------------------------------------------------------------------------------------------

ROBOTS = "GET https://example.com/robots.txt"


def robots_file(text: str, status: int = 200) -> Response:
    return Response(status, {"content-type": "text/plain"}, text.encode())


def test_robots_txt_is_asked_for_before_the_page_and_what_it_said_is_reported() -> None:
    walk = Walk(robots_file("User-agent: *\nCrawl-delay: 0.5\nDisallow: /x\n"), OK_HEAD, OK_GET, known={})
    assert walk.asked[0] == ROBOTS
    assert walk.requests[0].wanted is BodyWanted.ANYTHING
    (learned,) = walk.robots
    assert (learned.host, learned.outcome, learned.status, learned.crawl_delay) == ("example.com", "parsed", 200, 0.5)
    assert learned.body is not None and "Disallow: /x" in learned.body
    assert walk.ended == ("processed", None)


def test_a_known_robots_txt_is_not_asked_for_again() -> None:
    assert ROBOTS not in Walk(OK_HEAD, OK_GET).asked


def test_a_page_that_robots_txt_denies_fails_without_being_asked_for() -> None:
    walk = Walk(robots_file("User-agent: *\nDisallow: /dir\n"), known={})
    assert walk.ended == ("failed", "robots-denied")
    assert "'Disallow: /dir'" in str(walk.result.error)
    assert walk.asked == [ROBOTS]


def test_a_hop_to_another_host_asks_that_hosts_robots_first() -> None:
    walk = Walk(
        to("https://www.example.com/dir"),
        robots_file("User-agent: *\nDisallow: /\n"),
        known={"example.com": Policy()},
    )
    assert walk.asked == ["HEAD https://example.com/dir", "GET https://www.example.com/robots.txt"]
    assert walk.ended == ("failed", "robots-denied")


def test_a_port_has_a_robots_txt_of_its_own() -> None:
    url = "https://example.com:8443/x"
    walk = Walk(robots_file(""), OK_HEAD, OK_GET, job=Job(1, url, url, "example.com"))
    assert walk.asked[0] == "GET https://example.com:8443/robots.txt"
    assert walk.robots[0].host == "example.com:8443"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_4xx_robots_txt_allows_all(status: int) -> None:
    walk = Walk(response(status), OK_HEAD, OK_GET, known={})
    assert walk.robots[0].outcome == "allow-all"
    assert walk.ended == ("processed", None)


@pytest.mark.parametrize(
    "failing",
    [
        response(429),
        response(500),
        response(503),
        Failure("timeout", "x"),
        Failure("connection-reset", "x"),
        Failure("dns-temporary", "x"),
        response(304),
        to(""),
    ],
)
def test_what_may_pass_defers_the_domain_with_growing_pauses_and_then_fails_its_pages(failing: Answer) -> None:
    walk = Walk(*[failing] * 4, known={})
    assert [pause.seconds for pause in walk.pauses] == [5, 10, 20]
    assert walk.ended == ("failed", "robots-unreachable")
    assert [robots.outcome for robots in walk.robots] == ["unreachable"]
    assert [event.event for event in walk.events] == ["deferred"]


def test_a_deferred_robots_txt_that_comes_after_all_is_read() -> None:
    walk = Walk(response(503), robots_file(""), OK_HEAD, OK_GET, known={})
    assert walk.ended == ("processed", None)
    assert len(walk.pauses) == 1


def test_retry_after_on_robots_txt_is_a_minimum() -> None:
    walk = Walk(response(503, {"retry-after": "90"}), robots_file(""), OK_HEAD, OK_GET, known={})
    assert [pause.seconds for pause in walk.pauses] == [90]


def test_unreachable_robots_may_be_taken_as_leave_by_config() -> None:
    walk = Walk(*[response(503)] * 4, OK_HEAD, OK_GET, known={}, robots_unreachable="allow")
    assert walk.ended == ("processed", None)
    assert walk.robots[0].outcome == "unreachable"


def test_the_verdict_of_an_unreachable_robots_txt_holds_for_later_pages_without_a_request() -> None:
    walk = Walk(known={"example.com": Policy(error="robots-unreachable: http-503")})
    assert walk.ended == ("failed", "robots-unreachable")
    assert walk.requests == []


@pytest.mark.parametrize("slug", ["connection-refused", "tls", "dns", "address-blocked"])
def test_a_host_that_cannot_be_reached_for_robots_makes_its_pages_unreachable_at_once(slug: str) -> None:
    walk = Walk(Failure(slug, "no"), known={})
    assert walk.ended == ("unreachable", slug)
    assert walk.robots[0].error == f"{slug}: no"
    later = Walk(known={"example.com": Policy(error=f"{slug}: no")}, robots_unreachable="allow")
    assert later.ended == ("unreachable", slug)
    assert later.requests == []


def test_robots_redirects_are_followed_across_hosts_up_to_five_times() -> None:
    hops = [to(f"https://h{number}.test/robots.txt") for number in range(5)]
    walk = Walk(*hops, robots_file("User-agent: *\nDisallow: /dir\n"), known={})
    assert walk.asked[5] == "GET https://h4.test/robots.txt"
    assert walk.robots[0].host == "example.com"
    assert walk.ended == ("failed", "robots-denied")


def test_robots_redirects_beyond_five_or_in_a_circle_mean_that_there_is_none() -> None:
    """RFC 9309 §2.3.1.2"""
    hops = [to(f"https://h{number}.test/robots.txt") for number in range(6)]
    assert Walk(*hops, OK_HEAD, OK_GET, known={}).robots[0].outcome == "allow-all"
    assert Walk(to("/robots.txt"), OK_HEAD, OK_GET, known={}).robots[0].outcome == "allow-all"


def test_a_robots_redirect_to_a_listed_domain_is_not_followed() -> None:
    walk = Walk(to("https://listed.test/robots.txt"), known={}, listed=("listed.test",))
    assert walk.asked == [ROBOTS]
    assert walk.ended == ("failed", "robots-unreachable")


def test_a_foreign_host_that_refuses_a_robots_redirect_is_waited_for_like_any_trouble() -> None:
    answers = [to("https://h.test/robots.txt"), Failure("connection-refused", "no")] * 4
    assert Walk(*answers, known={}).ended == ("failed", "robots-unreachable")


def test_a_budget_spent_on_robots_ends_the_visit() -> None:
    walk = Walk(SPENT, known={})
    assert walk.ended == ("request_limit_hit", "request-limit")
    assert len(walk.robots) == 1


def test_a_spent_budget_of_a_foreign_domain_leaves_robots_unreachable() -> None:
    walk = Walk(to("https://h.test/robots.txt"), Refusal(Closure("request-limit", 9, 9), is_own=False), known={})
    assert walk.ended == ("failed", "robots-unreachable")
    assert walk.result.closes is None


def test_a_crawl_delay_over_the_limit_closes_the_domain_and_is_never_shortened() -> None:
    walk = Walk(robots_file("User-agent: *\nCrawl-delay: 121\n"), known={})
    assert walk.ended == ("failed", "crawl-delay-too-long")
    assert walk.result.closes == Closure("crawl-delay", 0, 120_000)
    assert walk.asked == [ROBOTS]
    at_limit = Walk(OK_HEAD, OK_GET, known={"example.com": Policy(crawl_delay=120.0)})
    assert at_limit.ended == ("processed", None)


def test_only_500_kib_of_robots_txt_are_asked_for() -> None:
    walk = Walk(robots_file(""), OK_HEAD, OK_GET, known={})
    assert walk.requests[0].limit == 500 * 1024


def test_the_crawlers_own_group_counts() -> None:
    rules = parse("User-agent: *\nDisallow: /\nUser-agent: SumiRipple\nAllow: /\n")
    assert Walk(OK_HEAD, OK_GET, known={"example.com": Policy(rules)}).ended == ("processed", None)


# -- validation --------------------------------------------------------------------------------------------


def judged(walk: Walk) -> tuple[str | None, str | None]:
    result = walk.result
    return result.validation, result.rejection_reason and result.rejection_reason.partition(":")[0]


def test_a_page_is_judged_with_its_visit() -> None:
    walk = Walk(OK_HEAD, OK_GET)
    assert judged(walk) == ("ok", None)
    assert not walk.result.is_rejected
    assert judged(Walk(OK_HEAD, OK_GET, validation=ValidationSettings(enabled=False))) == (None, None)
    assert judged(Walk(to("https://other.test/"))) == (None, None)
    assert judged(Walk(response(headers={"content-type": "image/png"}))) == (None, None)


def test_a_rejected_page_keeps_its_state_title_and_links_but_nothing_to_compare_with() -> None:
    shell = b"<title>app</title><div id=app></div><script></script><link rel=canonical href=/other>"
    walk = Walk(OK_HEAD, response(200, {**HTML, "last-modified": "Mon, 1 Jan 2024 00:00:00 GMT"}, shell))
    assert judged(walk) == ("soft", "needs-rendering")
    result = walk.result
    assert (result.state, result.error, result.title, result.status) == ("processed", None, "app", 200)
    assert (result.hrefs, result.last_modified, result.bytes) == (("/other",), None, len(shell))
    assert result.is_rejected and not result.is_hard_garbage


def test_a_refusal_keeps_its_state_and_says_whose_it_is() -> None:
    challenge = response(403, {**HTML, "cf-mitigated": "challenge"})
    walk = Walk(challenge)
    assert walk.ended == ("failed", "http-403")
    assert judged(walk) == ("hard", "cloudflare-challenge")
    assert walk.result.is_hard_garbage
    blocked = response(403, body=b"<title>403 Forbidden</title><h1>403 Forbidden</h1>")
    walk = Walk(blocked, head_requests="never")
    assert (walk.ended, judged(walk), walk.result.bytes) == (("failed", "http-403"), ("hard", "block-page"), 0)
    limited = response(429, body=b"<p>Rate limit exceeded")
    walk = Walk(limited, head_requests="never")
    assert (walk.ended[0], judged(walk)) == ("rate_limited", ("hard", "block-page"))
    busy = response(503, body=b"<title>Just a moment...</title>")
    walk = Walk(busy, busy, head_requests="never", retries=1)
    assert (walk.ended, judged(walk)) == (("failed", "http-503"), ("hard", "block-page"))
    assert judged(Walk(response(403))) == (None, None)


def test_missing_pages_and_small_good_ones_carry_the_print_of_their_text() -> None:
    lost = b"<title>Lost</title><p>Nothing is at this place, we are sorry."
    missing = Walk(response(404, body=lost), head_requests="never")
    assert (missing.ended, judged(missing)) == (("dead_link", "http-404"), (None, None))
    assert missing.result.text_print is not None
    assert Walk(OK_HEAD, response(body=lost)).result.text_print == missing.result.text_print
    assert Walk(response(404)).result.text_print is None
    assert Walk(OK_HEAD, response(body=b"")).result.text_print is None
    learning = Walk(response(404), response(404, body=lost), learns_404=True)
    assert learning.asked == ["HEAD https://example.com/dir", "GET https://example.com/dir"]
    assert (learning.ended, learning.result.text_print) == (missing.ended, missing.result.text_print)


def test_texts_of_links_are_in_the_result_where_the_config_asks_for_them() -> None:
    body = b"<a href=/1 rel=me>one</a><a href=/2>two</a><a href=/3></a>"
    page = replace(OK_GET, body=body, headers={**HTML, "refresh": "9; url=/4"})
    result = Walk(OK_HEAD, page, link_text=True).result
    assert (result.hrefs, result.texts, result.rels) == (("/1", "/2", "/3", "/4"), ("one", "two"), ("me",))
    silent = Walk(OK_HEAD, page).result
    assert (silent.hrefs, silent.texts, silent.rels) == (result.hrefs, UNSET, UNSET)
