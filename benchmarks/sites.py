"""Websites from folders of HTML, laid out over many hosts.

The folders are documentation that is on the machine, or a drawn terrain written to disk. A host serves one whole
folder, so that its links stay on it, and a crawl visits `pages` of its pages: the start page, and every fourth page
of those found first when walking breadth-first from there. The crawl's seeds, the bare loop's list and Scrapy's
start requests are the same URLs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from benchmarks.census import PageCount, count_page, links_within

SUFFIX = ".docs.test"
SPREAD = 4  # hosts of a site share its start page; beyond it, one in four has the same pages
PLACES = (
    "/usr/share/doc/python3-doc/html",
    "/usr/share/doc/python3.*/html",
    "/usr/share/doc/postgresql-doc-*/html",
    "/usr/share/doc/sqlite3",
    "/usr/share/doc/sqlite3-doc/html",
    "/usr/share/doc/python-django-doc/html",
    "/usr/share/cppreference/doc/html/en",
    "/usr/share/doc/cppreference-doc-en-html/html",
)
ADVICE = (
    "No documentation was found under /usr/share/doc; on Debian: apt install python3-doc postgresql-doc "
    "sqlite3-doc python-django-doc cppreference-doc-en-html, or name folders of HTML with SITES=dir,dir."
)
_KEPT = "/~!$&'()*+,;=:@"  # characters that a URL's path has as they are


@dataclass(frozen=True, slots=True)
class Site:
    """A folder of HTML. `pages` are paths relative to `root`, breadth-first from the start page."""

    root: Path
    pages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """One host name: the folder it serves, and the pages that are to be visited."""

    name: str
    root: Path
    pages: tuple[str, ...]

    def urls(self) -> list[str]:
        return [f"https://{self.name}/{quote(page, safe=_KEPT)}" for page in self.pages]


@dataclass(frozen=True, slots=True)
class Layout:
    """Hosts and their pages."""

    hosts: tuple[Host, ...]

    def urls(self) -> list[str]:
        """Every page, hosts interleaved, as a crawl of many domains would meet them."""
        by_host = [host.urls() for host in self.hosts]
        most = max((len(urls) for urls in by_host), default=0)
        return [urls[turn] for turn in range(most) for urls in by_host if turn < len(urls)]

    def first(self, hosts: int) -> Layout:
        return Layout(self.hosts[:hosts])

    def counts(self) -> list[PageCount]:
        """Every page counted, as often as it is visited."""
        known: dict[tuple[Path, str], PageCount] = {}
        found = []
        for host in self.hosts:
            for page in host.pages:
                where = host.root, page
                if where not in known:
                    known[where] = count_page(page, (host.root / page).read_bytes())
                found.append(known[where])
        return found


def find_documentation(places: Iterable[str] = PLACES) -> list[Path]:
    """Folders of documentation on this machine, each once, whatever their versions."""
    found: dict[Path, None] = {}
    for place in places:
        for folder in sorted(Path("/").glob(place.lstrip("/"))):
            if folder.is_dir() and any(folder.glob("*.html")):
                found[folder.resolve()] = None
    return list(found)


def read_site(root: Path, pages: int) -> Site:
    """Walk a folder breadth-first from its start page until there are enough pages; the rest follows by name."""
    everything = sorted(str(path.relative_to(root)) for path in root.rglob("*.html") if path.is_file())
    if not everything:
        return Site(root, ())
    start = "index.html" if "index.html" in everything else min(everything, key=lambda path: (path.count("/"), path))
    there, found = set(everything), {start: None}
    waiting = [start]
    for page in waiting:
        if len(found) >= pages:
            break
        for link in links_within(page, (root / page).read_bytes()):
            path = unquote(link)
            if path in there and path not in found:
                found[path] = None
                waiting.append(path)
    for path in everything if len(found) < pages else ():
        found[path] = None
    return Site(root, tuple(found)[:pages])


def read_sites(roots: Iterable[Path], pages: int) -> list[Site]:
    """The folders that have at least `pages` pages."""
    sites = [read_site(root, 1 + (pages - 1) * SPREAD) for root in roots]
    return [site for site in sites if len(site.pages) >= pages]


def lay_out_whole(roots: Iterable[Path], hosts: int, most: int) -> Layout:
    """Whole sites: each host has every page of its folder. Folders with more pages than `most` are left out; if all
    have, the smallest is taken.
    """
    sizes = {root: sum(path.is_file() for path in root.rglob("*.html")) for root in roots}  # to walk one takes longer
    roots = sorted((root for root, size in sizes.items() if size), key=sizes.__getitem__)
    chosen = [read_site(root, sizes[root]) for root in roots if sizes[root] <= most or root is roots[0]]
    if not chosen:
        return Layout(())
    return Layout(
        tuple(
            Host(f"w{number}{SUFFIX}", site.root, site.pages)
            for number, site in ((number, chosen[number % len(chosen)]) for number in range(hosts))
        )
    )


def lay_out(sites: list[Site], hosts: int, pages: int) -> Layout:
    """Deal the sites out to hosts in turn, each with `pages` pages of its site."""
    return Layout(
        tuple(
            Host(f"h{number}{SUFFIX}", site.root, choose(site.pages, number // len(sites), pages))
            for number, site in ((number, sites[number % len(sites)]) for number in range(hosts))
        )
    )


def choose(pages: tuple[str, ...], turn: int, count: int) -> tuple[str, ...]:
    """The start page and `count - 1` others: every SPREAD-th where there are enough, another set for another turn."""
    start, others = pages[0], pages[1:]
    step = max(1, min(SPREAD, len(others) // max(1, count - 1)))
    return (start, *others[turn % step :: step][: count - 1])
