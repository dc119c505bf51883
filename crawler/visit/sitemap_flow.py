"""PURE. The visit of a sitemap, as a generator like that of a page (`flow.visit`).

A quality domain's sitemaps begin with its robots.txt (level 0), which costs a request only if it is not known: its
`Sitemap` lines, and `/sitemap.xml`; where that is no sitemap, `/sitemap_index.xml`. No further guessing. Each of them
is a visit of its own, and may name others.

The result carries the addresses that count, in parts of bounded length: replay needs no network. A redirect to another
address ends the visit, as a page's does, and names that address as a sitemap.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

from crawler.model.messages import NO_RETRIES, Response, RetryCounts
from crawler.model.records import SITEMAP_KEY, Job, PageResult, SitemapResult, changed
from crawler.model.settings import Config
from crawler.model.urls import UrlError, authority_of, normalize, resolve, wire_of
from crawler.visit.flow import KnownRobots, Reply, Wish, ask_for_file, ask_for_policy
from crawler.visit.sitemap import MAX_UNPACKED, Sitemap, counts, read_sitemap

USUAL_PLACE = "/sitemap.xml"
OTHER_PLACE = "/sitemap_index.xml"
MOST_URLS = 1000  # in one part
MOST_CHARACTERS = 256 * 1024  # likewise; a part is a line of the spool

SitemapVisit = Generator[Wish, Reply, SitemapResult]


def key_of(url: str) -> str:
    """The key of the job that reads the sitemap at this URL. Raises UrlError."""
    return SITEMAP_KEY + normalize(url, ())


def visit_sitemap(
    job: Job,
    config: Config,
    known: KnownRobots,
    is_listed: Callable[[str], bool],
    retry_counts: RetryCounts = NO_RETRIES,
) -> SitemapVisit:
    """Read one sitemap. All parts but the last are wishes, to be written to the journal."""
    nothing = SitemapResult(job.run, job.key, job.wire, job.domain, "", job.announced_by, job.level)
    if job.level == 0:
        policy = yield from ask_for_policy(job, config, known, is_listed, retry_counts)
        if isinstance(policy, PageResult):
            return _ended(nothing, policy)
        if policy.error is not None:
            return changed(nothing, error=policy.error)
        named = (*policy.rules.sitemaps, USUAL_PLACE)
        return changed(nothing, form="robots", sitemaps=_absolute(job.wire, named), entries=len(named))
    answer = yield from ask_for_file(job, config, known, is_listed, retry_counts, MAX_UNPACKED)
    if isinstance(answer, PageResult):
        return _with_other_place(_ended(nothing, answer))
    return (yield from _read(nothing, answer))


def _read(nothing: SitemapResult, answer: Response) -> SitemapVisit:
    result = changed(nothing, status=answer.status, bytes=len(answer.body))
    if not 200 <= answer.status <= 299:
        return _with_other_place(changed(result, error=f"http-{answer.status}"))
    found = read_sitemap(answer.body)
    if found.kind == "invalid":
        return _with_other_place(changed(result, form="invalid", error=f"no-sitemap: {found.error}"))
    *parts, last = _parts(changed(result, is_cut=found.is_cut or answer.is_cut or answer.is_truncated), found)
    yield from parts
    return last


def _parts(result: SitemapResult, found: Sitemap) -> Iterator[SitemapResult]:
    """The result in parts of bounded length; what belongs to all of it is in the last one."""
    wire, announced_by = result.wire, result.announced_by
    urls = [url for url in found.urls if counts(url, wire, announced_by)]
    sitemaps = _absolute(wire, [url for url in found.sitemaps if counts(url, wire, announced_by)])
    entries = len(found.urls) + len(found.sitemaps)
    left_out = entries - len(urls) - len(sitemaps)
    result = changed(result, form=found.kind)
    taken: list[str] = []
    size = 0
    for url in urls:
        if len(taken) == MOST_URLS or size + len(url) > MOST_CHARACTERS:
            yield _part(result, taken, found, is_last=False)
            taken, size = [], 0
        taken.append(url)
        size += len(url)
    last = _part(result, taken, found, is_last=True)
    yield changed(last, sitemaps=sitemaps, entries=entries, left_out=left_out)


def _part(result: SitemapResult, urls: list[str], found: Sitemap, *, is_last: bool) -> SitemapResult:
    dates = tuple(found.lastmod.get(url, "") for url in urls)
    part = changed(result, urls=tuple(urls), dates=dates if any(dates) else (), is_last=is_last)
    return part if is_last else changed(part, status=None, bytes=0)


def _ended(nothing: SitemapResult, page: PageResult) -> SitemapResult:
    """The same end in a sitemap's words."""
    redirect = page.redirect
    sitemaps = (redirect,) if redirect and counts(redirect, nothing.wire, nothing.announced_by) else ()
    error = page.error or (f"redirected: to {redirect[:200]}" if redirect else None)
    return changed(
        nothing, error=error, status=page.status, sitemaps=sitemaps, retries=page.retries, closes=page.closes
    )


def _with_other_place(result: SitemapResult) -> SitemapResult:
    """Where there is no sitemap in the usual place, the other one is tried."""
    is_usual = result.level == 1 and result.wire == f"https://{authority_of(result.wire)}{USUAL_PLACE}"
    if not is_usual or result.sitemaps or result.closes is not None:
        return result
    return changed(result, sitemaps=_absolute(result.wire, [OTHER_PLACE]))


def _absolute(base: str, addresses: list[str] | tuple[str, ...]) -> tuple[str, ...]:
    """The wire URLs of these addresses, each once."""
    found: dict[str, None] = {}
    for address in addresses:
        target = resolve(base, address)
        try:
            if target is not None:
                found[wire_of(target)] = None
        except UrlError:
            continue
    return tuple(found)
