"""The visit of a sitemap: robots.txt first, one GET, and a result that needs nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from crawler.model.messages import BodyWanted, Failure, Pause, Request, Response
from crawler.model.records import Closure, Job, RobotsResult, SitemapResult, dump
from crawler.model.settings import Config
from crawler.visit import sitemap_flow
from crawler.visit.flow import Refusal, Wish
from crawler.visit.robots import ALLOW_ALL, Policy, parse
from crawler.visit.sitemap_flow import key_of, visit_sitemap

HOME = "https://www.a.test/"
OPEN = Policy(ALLOW_ALL)


def job(url: str, level: int = 1, announced_by: str = "a.test") -> Job:
    return Job(1, key_of(url), url, "a.test", -1, "sitemap", announced_by, level)


def walk(
    wanted: Job, answers: list[Any], policy: Policy | None = OPEN
) -> tuple[list[Wish], list[SitemapResult], SitemapResult]:
    """The wishes of a visit with these answers, the parts before its result, and its result."""
    steps = visit_sitemap(wanted, Config(), lambda host: policy, lambda domain: False)
    wishes: list[Wish] = []
    parts: list[SitemapResult] = []
    reply: Any = None
    waiting = iter(answers)
    while True:
        try:
            wish = steps.send(reply)
        except StopIteration as end:
            return wishes, parts, end.value
        reply = next(waiting) if isinstance(wish, Request) else None
        (parts if isinstance(wish, SitemapResult) else wishes).append(wish)  # type: ignore[arg-type]


def urlset(*urls: str) -> bytes:
    return ("<urlset>" + "".join(f"<url><loc>{url}</loc></url>" for url in urls) + "</urlset>").encode()


def test_a_known_robots_txt_names_the_sitemaps_without_a_request() -> None:
    policy = Policy(parse("Sitemap: /one.xml\nUser-agent: *\nDisallow: /\nSitemap: https://cdn.test/two.xml.gz"))
    wishes, _, result = walk(job(HOME + "robots.txt", 0), [], policy)
    assert wishes == []
    assert (result.form, result.error) == ("robots", None)
    assert result.sitemaps == (HOME + "one.xml", "https://cdn.test/two.xml.gz", HOME + "sitemap.xml")


def test_an_unknown_robots_txt_is_asked_for_and_recorded_first() -> None:
    answer = Response(200, {}, b"Sitemap: /s.xml")
    wishes, _, result = walk(job(HOME + "robots.txt", 0), [answer], None)
    assert isinstance(wishes[0], Request) and wishes[0].url == HOME + "robots.txt"
    assert isinstance(wishes[1], RobotsResult)
    assert result.sitemaps == (HOME + "s.xml", HOME + "sitemap.xml")


def test_a_sitemap_is_one_get_without_a_head_and_whatever_its_type() -> None:
    body = urlset(HOME + "1", "https://a.test/2", "https://elsewhere.test/3")
    wishes, parts, result = walk(job(HOME + "s.xml"), [Response(200, {"content-type": "text/html"}, body)])
    assert [(wish.method, wish.wanted) for wish in wishes if isinstance(wish, Request)] == [("GET", BodyWanted.FILE)]
    assert parts == []
    assert (result.form, result.urls, result.entries, result.left_out) == (
        "urlset",
        (HOME + "1", "https://a.test/2"),
        3,
        1,
    )


def test_robots_txt_can_forbid_a_sitemap() -> None:
    wishes, _, result = walk(job(HOME + "s.xml"), [], Policy(parse("User-agent: *\nDisallow: /s.xml")))
    assert wishes == []
    assert result.error is not None and result.error.startswith("robots-denied")


def test_a_long_sitemap_comes_in_parts_of_bounded_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap_flow, "MOST_URLS", 3)
    urls = tuple(f"{HOME}{n}" for n in range(8))
    _, parts, last = walk(job(HOME + "s.xml"), [Response(200, {}, urlset(*urls))])
    assert [len(part.urls) for part in (*parts, last)] == [3, 3, 2]
    assert sum((part.urls for part in (*parts, last)), ()) == urls
    assert [part.is_last for part in (*parts, last)] == [False, False, True]
    assert (last.entries, [part.entries for part in parts]) == (8, [0, 0])
    monkeypatch.undo()
    long = [f"{HOME}{n}/{'x' * 1500}" for n in range(2000)]
    _, parts, last = walk(job(HOME + "s.xml"), [Response(200, {}, urlset(*long))])
    assert all(len(dump(part)) < 2 * sitemap_flow.MOST_CHARACTERS for part in (*parts, last))


@pytest.mark.parametrize(
    "answer", [Response(404, {}), Response(200, {}, b"<html></html>"), Response(403, {}), Response(410, {})]
)
def test_without_a_sitemap_in_the_usual_place_the_other_one_is_tried(answer: Response) -> None:
    _, _, result = walk(job(HOME + "sitemap.xml"), [answer])
    assert result.error is not None
    assert result.sitemaps == (HOME + "sitemap_index.xml",)
    _, _, other = walk(job(HOME + "sitemap_index.xml"), [answer])
    assert other.sitemaps == ()


def test_a_redirect_to_another_address_names_it_as_a_sitemap() -> None:
    moved = Response(301, {"location": "/wp-sitemap.xml"})
    assert walk(job(HOME + "sitemap.xml"), [moved])[2].sitemaps == (HOME + "wp-sitemap.xml",)
    away = Response(301, {"location": "https://elsewhere.test/sitemap.xml"})
    assert walk(job(HOME + "s.xml"), [away])[2].sitemaps == ()
    same = [Response(301, {"location": "https://a.test/s.xml"}), Response(200, {}, urlset(HOME))]
    assert walk(job(HOME + "s.xml"), same)[2].urls == (HOME,)


def test_retries_and_the_budget_are_those_of_a_page() -> None:
    wishes, _, result = walk(job(HOME + "s.xml"), [Response(503, {})] * 4)
    assert sum(isinstance(wish, Pause) for wish in wishes) == 3
    assert (result.error, result.retries) == ("http-503", 3)
    _, _, refused = walk(job(HOME + "s.xml"), [Refusal(Closure("request-limit", 5, 5))])
    assert refused.closes == Closure("request-limit", 5, 5)
    _, _, limited = walk(job(HOME + "sitemap.xml"), [Response(429, {})])
    assert limited.closes == Closure("rate-limited", 0)
    assert limited.sitemaps == ()
    _, _, gone = walk(job(HOME + "s.xml"), [Failure("dns", "no such name")])
    assert gone.error == "dns: no such name"
