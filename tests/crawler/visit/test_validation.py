"""Garbage is rejected, good pages never: the signatures, their limits, and users' own signs."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.demo.terrain import demo_terrain
from crawler.model.messages import Response
from crawler.model.settings import GarbageRule, ValidationSettings
from crawler.model.validity import Validity
from crawler.visit import signatures
from crawler.visit.html import Extracted, extract
from crawler.visit.signatures import texts_of
from crawler.visit.validation import REASONS, THIN, Validation, Validator, text_print
from tests.crawler.demo.demo_states import MASKED
from tests.places import CONFORMANCE

TYPE = "text/html; charset=utf-8"
URL = "https://a.test/some/page"
RIVER = "The river came up over the lower field again, and nobody slept much. "
DEFAULT = Validator(ValidationSettings())


def read(body: bytes, validator: Validator = DEFAULT) -> Extracted:
    return extract(body, TYPE, URL, 10_000, longest_text=validator.longest_text)


def judge(
    body: str, status: int = 200, headers: dict[str, str] | None = None, validator: Validator = DEFAULT
) -> Validation | None:
    data = body.encode()
    return validator.judge(Response(status, {"content-type": TYPE, **(headers or {})}, data), read(data, validator))


def slug(found: Validation | None) -> str | None:
    return None if found is None else f"{found.word} {(found.reason or '').partition(':')[0]}".strip()


def page(title: str = "", body: str = "", head: str = "") -> str:
    return f"<!DOCTYPE html><html><head><title>{title}</title>{head}</head><body>{body}</body></html>"


# --- the public cases


def _cases() -> list[dict[str, object]]:
    path = CONFORMANCE / "garbage_cases.json"
    return json.loads(path.read_text()) if path.exists() else []


CASES = _cases()


@pytest.mark.skipif(not CASES, reason=f"the conformance cases are not at {CONFORMANCE}")
def test_all_public_cases_hold() -> None:
    wrong = []
    for case in CASES:
        found = judge(str(case["body"]), int(str(case["status"])), dict(case["headers"]))  # type: ignore[call-overload]
        if (found.word if found else None) != case["expect"]:
            wrong.append((case["name"], case["expect"], found))
    assert wrong == []
    assert len(CASES) >= 59


# --- hard


@pytest.mark.parametrize("proof", signatures.HEADER_PROOFS, ids=lambda proof: proof.name)
def test_a_header_proves_a_challenge_whatever_the_page_says(proof: signatures.HeaderProof) -> None:
    status = (proof.statuses or (200,))[0]
    value = (proof.values or ("anything",))[0].upper()
    found = judge(page("A page", RIVER * 100), status, {proof.header: f" {value} "})
    assert slug(found) == f"hard {proof.name}"
    if proof.values:
        assert slug(judge(page("A page", RIVER * 100), 200, {proof.header: "protected"})) == "ok"


@pytest.mark.parametrize("mark", signatures.MARKUP, ids=lambda mark: mark.name)
def test_the_markup_of_a_challenge_counts_on_a_thin_page_or_with_a_blocking_status(mark: signatures.Markup) -> None:
    markup = " ".join(piece.decode() for piece in mark.pieces)
    script = f"<script>/* {markup} */</script>"
    assert slug(judge(page("Shop", script + "<p>Wait.</p>"))) == f"hard {mark.name}"
    assert slug(judge(page("Shop", script + RIVER * 20), 503)) == f"hard {mark.name}"
    assert slug(judge(page("Shop", script + RIVER * 40))) == "ok", "a page with content"
    links = "".join(f"<a href=/{number}>x</a>" for number in range(9))
    assert slug(judge(page("Shop", script + links))) == "ok", "a page with links"
    for piece in mark.pieces[1:]:
        rest = markup.replace(piece.decode(), "")
        assert slug(judge(page("Shop", f"<p>Wait for it.</p><script>/* {rest} */</script>"))) == "ok"


def test_a_block_title_needs_a_phrase_or_an_error_status() -> None:
    said = "<p>Please verify you are human.</p>"
    assert slug(judge(page("Access  Denied", said))) == "hard block-page"
    assert slug(judge(page("Access Denied", "<h1>Access Denied</h1><p>A poem of eleven lines.</p>"))) == "ok"
    assert slug(judge(page("Access Denied: a book", said))) == "ok"
    assert slug(judge(page("Access Denied", said + RIVER * 20))) == "ok"
    assert slug(judge(page("Access Denied", "<h1>No.</h1>"), 403)) == "hard block-page"
    assert slug(judge(page("Members", "<h1>Please knock.</h1>"), 403)) is None
    assert slug(judge(page("Service Unavailable", "<p>Back at noon.</p>"), 503)) is None
    assert slug(judge(page("Oops", "<p>Rate limit exceeded</p>"), 500)) is None


def test_a_missing_page_is_neither_good_nor_garbage() -> None:
    assert judge(page("403 Forbidden", "Access denied"), 404) is None
    assert DEFAULT.judge(Response(404, {"cf-mitigated": "challenge"}), None) is not None
    assert DEFAULT.judge(Response(403, {}), None) is None


# --- soft


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", "soft empty"),
        (" \n ", "soft empty"),
        (page("Title", ""), "soft empty"),
        (page("Title", "<!-- nothing --><style>a{}</style>"), "soft empty"),
        (page("Title", "<noscript>Please enable JavaScript</noscript>"), "soft empty"),
        (page("Title", "<div id=root></div><script src=a.js></script>"), "soft needs-rendering"),
        (page("Title", "<div id=root><p>Loading…</p></div><script src=a.js></script>"), "soft needs-rendering"),
        (page("T", "<app-root></app-root><p>Loading</p><script src=a.js></script>"), "soft needs-rendering"),
        (
            page("T", "<noscript><a href=/x>No scripts?</a></noscript><div id=app></div><script>1</script>"),
            "soft needs-rendering",
        ),
        (page("T", "<p>Bitte JavaScript aktivieren!</p><script src=a.js></script>"), "soft needs-rendering"),
        # … and what looks like it.
        (page("T", "<div id=root>Loading<a href=/x>on</a></div><script src=a.js></script>"), "ok"),
        (page("T", "<div id=root><p>Closed on Monday.</p></div><script></script>"), "ok"),
        (page("T", "<p>You need to enable JavaScript</p><a href=/text>The page as text</a><script></script>"), "ok"),
        (page("T", "<p>Enable JavaScript to play.</p><canvas></canvas><script></script>"), "ok"),
        (page("T", "<p>Please enable JavaScript.</p>"), "ok"),  # no script is there to run
        (page("T", "<img src=a.png>"), "ok"),
        (page("T", "<svg><path d=x></svg>"), "ok"),
        ("<title>T</title><frameset><frame src=a.html></frameset>", "ok"),
        (page("T", "", '<meta http-equiv="refresh" content="0; url=/x">'), "ok"),
        (page("T", "<xmp>Text</xmp><script src=strapdown.js></script>"), "ok"),
        (page("T", "<script>never closed " + RIVER * 3), "soft needs-rendering"),
        (page("T", "<noscript>never closed " + RIVER * 3), "ok"),
    ],
)  # fmt: skip
def test_pages_that_show_nothing(body: str, expected: str) -> None:
    assert slug(judge(body)) == expected


def test_a_refresh_header_sends_its_visitors_on() -> None:
    assert slug(judge(page("T", ""), 200, {"refresh": "0; url=/x"})) == "ok"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (page("name.test", "<p>Buy this domain</p>"), "soft parked"),
        (page("Name", "<p>This domain is for sale! Buy this domain.</p>"), "soft parked"),
        (page("x", '<script src="https://www.sedoparking.com/a.js"></script><p>Related links</p>'), "soft parked"),
        ('<html><script>window.onload=function(){window.location.href="/lander"}</script></html>', "soft parked"),
        (page("A car", "<p>It was parked by the river, in the public domain.</p>"), "ok"),
        (page("Domains", "<p>How a parked domain earns money.</p>"), "ok"),
        (page("x", '<a href="https://sedoparking.com/">Their offer</a> is about a domain.'), "ok"),
        (page("x", "<script src=https://notsedoparking.com/a.js></script><p>Hello.</p>"), "ok"),
        (page("Log in - Site", "<form><input type=password><button>Go</button></form>"), "soft login-wall"),
        (page("Site", "<form>Sign in <input name=u><input type='password'></form>"), "soft login-wall"),
        (page("Join", "<form>Sign in <input type=password><input type=password></form>"), "ok"),
        (page("Site", "<form>Log in <input type=password></form>" + RIVER * 4), "ok"),
        (page("Log in", "<form><input type=password></form>" + RIVER * 8), "ok"),
        (page("Page not found | Site", "<p>The page you requested is gone.</p>" + RIVER * 20), "soft soft-404"),
        (page("404", "<p>It could not be found.</p>"), "soft soft-404"),
        (page("404", "<p>It could not be found.</p>" + RIVER * 20), "ok"),
        (page("Not found", "<h1>Not found</h1><p>A song by the band.</p>"), "ok"),
        (page("Why pages are not found", "<p>The page you requested does not exist.</p>"), "ok"),
        (page("Seite nicht gefunden – Amt", "<p>Die Seite wurde nicht gefunden.</p>"), "soft soft-404"),
    ],
)  # fmt: skip
def test_parked_domains_logins_and_soft_404s(body: str, expected: str) -> None:
    assert slug(judge(body)) == expected


PHRASES = [
    *texts_of(signatures.BLOCK_PHRASES + signatures.ERROR_PHRASES + signatures.NEEDS_SCRIPTS),
    *texts_of(signatures.NOT_FOUND_PHRASES + signatures.PARKING_PHRASES + signatures.LOGIN_WORDS),
]
MARKS = [
    "<p>",
    "</p>",
    "<noscript>",
    "</noscript>",
    "<script>1</script>",
    "<input type=password>",
    "<div id=app>",
    RIVER,
]
TITLES = ["", "Notes", "About Access Denied", "Access Denied", "403 Forbidden error? | Forum", "Log in", "a.test"]


@given(st.lists(st.sampled_from(PHRASES + MARKS), max_size=30), st.sampled_from(TITLES))
def test_phrases_reject_no_page_with_content(parts: list[str], title: str) -> None:
    body = page(title, f"<article>{RIVER * 15}</article>" + " ".join(parts))
    assert len(read(body.encode()).text) >= THIN
    assert slug(judge(body)) == "ok"


@given(st.binary(max_size=400), st.sampled_from([200, 202, 403, 404, 429, 503]))
def test_any_bytes_are_judged(body: bytes, status: int) -> None:
    found = DEFAULT.judge(Response(status, {}, body), read(body))
    assert found is None or found.word in Validity


# --- the configuration


def test_validation_can_be_switched_off_as_a_whole_and_by_reason() -> None:
    assert judge("", validator=Validator(ValidationSettings(enabled=False))) is None
    lenient = Validator(ValidationSettings(ignore=("empty", "login-wall")))
    assert slug(judge("", validator=lenient)) == "ok"
    assert slug(judge(page("T", "<script>1</script>"), validator=lenient)) == "soft needs-rendering"
    assert {"empty", "login-wall", "soft-404", "needs-rendering", "cloudflare-challenge"} <= REASONS


def test_users_add_signs_by_text_and_by_selector() -> None:
    rules = (
        GarbageRule("subscribers", "soft", text="Subscribe  to READ this"),
        GarbageRule("wall", "hard", selector="div.paywall > p"),
    )
    validator = Validator(ValidationSettings(), rules)
    long = page("An article", RIVER * 4000 + "<p>Subscribe\nto <b>read</b> this &amp; that</p>")
    assert judge(long, validator=validator) == (Validity.SOFT, "subscribers: it says 'Subscribe  to READ this'")
    walled = page("An article", RIVER + "<div class='a paywall'><p>x</div>")
    assert judge(walled, validator=validator) == (Validity.HARD, "wall: div.paywall > p matches")
    assert slug(judge(page("Other", RIVER), validator=validator)) == "ok"
    assert slug(judge(page("Other", RIVER), 500, validator=validator)) is None
    assert slug(judge("", validator=validator)) == "soft empty"


# --- likeness to a real 404


def test_a_page_has_the_print_of_another_that_differs_in_its_address_and_in_digits() -> None:
    def print_of(url: str, text: str) -> int | None:
        return text_print(extract(page("Lost", text).encode(), TYPE, url, 10), url)

    one = print_of("https://a.test/shop/blue%20vase?id=1", "We looked for /shop/blue vase on 3 May, in vain.")
    two = print_of("https://a.test/shop/lamp", "We looked for /shop/lamp on 11 May, in vain.")
    other = print_of("https://a.test/shop/lamp", "We looked for a lamp on 11 May, and found it.")
    assert one is not None and one == two != other
    assert abs(one) < 2**62
    assert print_of("https://a.test/x", "short") is None
    assert print_of("https://a.test/x", RIVER * 100) is None


# --- no good page is rejected


def test_no_page_of_the_demo_is_rejected_but_those_that_are_meant_to_be() -> None:
    terrain = demo_terrain()
    rejected, judged = set(), 0
    for site in terrain.sites:
        for place in site.pages:
            head, _, body = terrain.answer(site.host, "GET", place.path).data.partition(b"\r\n\r\n")
            if head.startswith(b"HTTP/1.1 200 ") and place.content_type.startswith("text/html"):
                found = DEFAULT.judge(Response(200, {}, body), read(body))
                judged += 1
                if found is not None and found.word is not Validity.OK:
                    rejected.add(f"{site.host}{place.path}")
    assert judged > 400
    assert {f"https://{place}" for place in rejected} == set(MASKED)
