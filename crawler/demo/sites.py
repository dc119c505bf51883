"""PURE. The parts of a demo website, and their rendering to bytes.

A terrain is anything with `certificates` and `answer`; the server asks it for every request and keeps the
little state there is (how often a URL was asked for) itself.
"""

from __future__ import annotations

import hashlib
import html
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Certificate:
    """One certificate of the server, chosen by SNI. A name may be `*.some.test`.

    fault: empty for a good one, else what a client will object to: `self-signed`, `wrong-name` or `expired`.
    """

    names: tuple[str, ...]
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of one response, ready for the wire.

    `first` are the first answers to this URL, for any method; every later answer is `data`.
    `delay` is how many seconds the server thinks about it. `etag` is that of `data`: a client that has the page
    already, and says so, is answered 304.
    """

    data: bytes
    first: tuple[bytes, ...] = ()
    delay: float = 0.0
    etag: str = ""


class Terrain(Protocol):
    """A set of websites. It is pickled on its way into the server's process."""

    @property
    def certificates(self) -> tuple[Certificate, ...]: ...

    def answer(self, host: str, method: str, target: str) -> Answer:
        """The answer to one request; `target` is the request line's, path and query."""
        ...


@dataclass(frozen=True, slots=True)
class Page:
    """One URL of a site. `links` are (href, words); `head_type` is what only HEAD says the content is."""

    path: str
    title: str = ""
    text: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    status: int = 200
    content_type: str = HTML
    head_type: str | None = None
    head_status: int | None = None
    location: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    extra_head: str = ""
    encoding: str = "utf-8"
    raw: bytes | None = None
    failures_first: int = 0
    answers_on: tuple[str, ...] = ()  # hosts of the site that serve it; empty: all of them


@dataclass(frozen=True, slots=True)
class Site:
    """The pages of one host (or of a host and its aliases, which serve the same)."""

    host: str
    name: str
    pages: tuple[Page, ...]
    menu: tuple[tuple[str, str], ...] = (("/", "Home"),)
    footer: tuple[tuple[str, str], ...] = ()
    robots: str | None = None  # None: there is no robots.txt
    robots_status: int = 200
    aliases: tuple[str, ...] = ()
    every_page: int | None = None  # the status of every page there is or is not
    fault: str = ""  # of its certificate

    @property
    def hosts(self) -> tuple[str, ...]:
        return (self.host, *self.aliases)


def response(
    status: int,
    body: bytes,
    content_type: str | None = HTML,
    headers: tuple[tuple[str, str], ...] = (),
    *,
    with_body: bool = True,
) -> bytes:
    """A whole HTTP/1.1 response; without its body it is the answer to HEAD."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {status} {phrase}", f"Content-Length: {len(body)}"]
    if content_type is not None:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name}: {value}" for name, value in headers]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return head + body if with_body else head


def render_page(site: Site, page: Page) -> bytes:
    """The HTML of a page, in its encoding. Titles and texts go in as they are: some are meant to be bad."""
    menu = "\n".join(f'      <li><a href="{href}">{words}</a></li>' for href, words in site.menu)
    links = "\n".join(f'      <li><a href="{href}">{words}</a></li>' for href, words in page.links)
    text = "\n".join(f"    <p>{paragraph}</p>" for paragraph in page.text)
    footer = " · ".join(f'<a href="{href}">{words}</a>' for href, words in site.footer)
    more = f'    <h2>Further on</h2>\n    <ul class="links">\n{links}\n    </ul>\n' if links else ""
    document = f"""<!DOCTYPE html>
<html lang="en">
<head>
<title>{page.title}</title>
<link rel="stylesheet" href="/style.css">
{page.extra_head}
</head>
<body>
  <header>
    <strong>{html.escape(site.name)}</strong>
    <nav><ul>
{menu}
    </ul></nav>
  </header>
  <main>
    <h1>{html.escape(site.name)}: {page.path.strip("/") or "welcome"}</h1>
{text}
{more}  </main>
  <footer><small>{html.escape(site.name)}, a place that exists only on this machine. {footer}</small></footer>
  <script src="/script.js"></script>
</body>
</html>
"""
    return document.encode(page.encoding, "xmlcharrefreplace")


@dataclass
class SiteTerrain:
    """A terrain of hand-written sites: every response is rendered once."""

    sites: tuple[Site, ...]
    _answers: dict[tuple[str, str, str], Answer] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._by_host = {host: site for site in self.sites for host in site.hosts}
        self._pages = {
            (host, page.path): page for site in self.sites for page in site.pages for host in _hosts(site, page)
        }

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        return tuple(Certificate(site.hosts, site.fault) for site in self.sites)

    def answer(self, host: str, method: str, target: str) -> Answer:
        known = self._answers.get((host, method, target))
        if known is None:
            known = self._answers[host, method, target] = self._render(host, method, target)
        return known

    def page(self, host: str, target: str) -> Page | None:
        """The page of a request target: by path and query if there is one, else by its path alone."""
        path = target.partition("?")[0]
        return self._pages.get((host, target)) or self._pages.get((host, path))

    def _render(self, host: str, method: str, target: str) -> Answer:
        get = method != "HEAD"
        site = self._by_host.get(host)
        if site is None:
            return Answer(response(421, b"no such site here\n", "text/plain", with_body=get))
        path = target.partition("?")[0]
        if path == "/robots.txt":
            if site.robots is None:
                return Answer(response(404, b"none\n", "text/plain", with_body=get))
            return Answer(
                response(site.robots_status, site.robots.encode(), "text/plain; charset=utf-8", with_body=get)
            )
        if site.every_page is not None:
            return Answer(response(site.every_page, b"not now\n", "text/plain", with_body=get))
        page = self.page(host, target)
        if page is None:
            lost = Page(path, f"Not found - {site.name}", ("There is nothing here.",))
            return Answer(response(404, render_page(site, lost), with_body=get))
        busy = response(503, b"<!DOCTYPE html><title>Busy</title>", HTML, with_body=get)
        return Answer(render_answer(site, page, method), (busy,) * page.failures_first, etag=etag_of(site, page))


def etag_of(site: Site, page: Page) -> str:
    """The ETag of a page; "": it has none."""
    if page.status != 200 or page.location is not None or page.content_type != HTML or page.raw is not None:
        return ""
    return f'"{hashlib.sha256(render_page(site, page)).hexdigest()[:16]}"'


def render_answer(site: Site, page: Page, method: str) -> bytes:
    """The page's answer to GET or HEAD after its `first` ones."""
    is_head = method == "HEAD"
    body = page.raw if page.raw is not None else b"" if page.location is not None else render_page(site, page)
    headers = page.headers if page.location is None else (("Location", page.location), *page.headers)
    if etag := etag_of(site, page):
        headers = (("ETag", etag), *headers)
    if is_head and page.head_status is not None:
        return response(page.head_status, b"", None, with_body=False)
    content_type = page.head_type if is_head and page.head_type is not None else page.content_type
    return response(page.status, body, content_type, headers, with_body=not is_head)


def _hosts(site: Site, page: Page) -> tuple[str, ...]:
    return page.answers_on or site.hosts
