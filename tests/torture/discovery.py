"""A small web of pages that no link leads to: sitemaps in several parts, lists with a forgotten link, archives.

Three sites alike. Each has a sitemap index of two sitemaps with 2,300 addresses, which are three parts of a result
each; 8 of them are pages, the others have the form of a trap and are never requested. Its list links three pages and
has six. Its entries show two months that have pages, one of which lists an entry that nothing else mentions, and a year
that has none.

A fourth site is none of the list of quality. The others link its list, which goes on after its last link, and one of
them announces its sitemap; both are walked, because the config asks for what is within reach.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from crawler.demo.demo_config import DemoLimits
from crawler.demo.server import Served
from crawler.demo.sites import Page, Site, SiteTerrain

HOSTS = ("shelf.test", "drawer.test", "attic.test")
ELSEWHERE = "cellar.test"
ENTRIES = 2300  # of each of two sitemaps
_IN_LETTERS = str.maketrans("0123456789", "abcdefghij")
_SPACE = "http://www.sitemaps.org/schemas/sitemap/0.9"


def discovery_terrain() -> SiteTerrain:
    return SiteTerrain((*(_site(host) for host in HOSTS), _elsewhere()))


def _page(host: str, path: str, *links: str) -> Page:
    text = f"What stands under {path.translate(_IN_LETTERS)}."  # pages that differ in digits alone show the same
    return Page(path, f"{path} of {host}", (text,), tuple((link, link) for link in links))


def _listed(host: str, *addresses: str, root: str = "urlset", item: str = "url") -> bytes:
    inside = "".join(f"<{item}><loc>https://{host}{address}</loc></{item}>" for address in addresses)
    return f'<{root} xmlns="{_SPACE}">{inside}</{root}>'.encode()


def _elsewhere() -> Site:
    return Site(
        ELSEWHERE,
        ELSEWHERE,
        pages=(
            _page(ELSEWHERE, "/list", "/list/page/2"),
            *(_page(ELSEWHERE, f"/list/page/{number}", "/list", f"/jar/{number}") for number in range(2, 5)),
            *(_page(ELSEWHERE, f"/hidden/{number}", "/list", f"/behind/{number}") for number in range(6)),
            Page(
                "/jars.xml",
                content_type="text/xml",
                raw=_listed(ELSEWHERE, *(f"/hidden/{number}" for number in range(6))),
            ),
        ),
    )


def _site(host: str) -> Site:
    page, listed = partial(_page, host), partial(_listed, host)
    hidden = [[f"/hidden/{part}/{number}" for number in range(4)] for part in (1, 2)]
    traps = [[f"/x/x/x/x/{part}/{number}" for number in range(ENTRIES - 4)] for part in (1, 2)]
    return Site(
        host,
        host,
        robots=f"User-agent: *\nAllow: /\nSitemap: https://{host}/sitemap.xml\n"
        + (f"Sitemap: https://{ELSEWHERE}/jars.xml\n" if host == HOSTS[0] else ""),
        pages=(
            page("/", "/list", "/2019/04/last", f"https://{ELSEWHERE}/list"),
            page("/list", "/list/page/2", "/list/page/3", "/2019/03/first"),
            *(page(f"/list/page/{number}", "/list", f"/story/{number}") for number in range(2, 7)),
            *(page(f"/story/{number}") for number in range(2, 7)),
            *(page(path) for path in ("/2019/04/last", "/2019/03/first", "/2019/03/unsigned")),
            page("/2019/04", "/2019/04/last"),
            page("/2019/03", "/2019/03/first", "/2019/03/unsigned"),
            *(page(path) for paths in hidden for path in paths),
            Page(
                "/sitemap.xml",
                content_type="text/xml",
                raw=listed("/sitemap-1.xml", "/sitemap-2.xml", root="sitemapindex", item="sitemap"),
            ),
            *(
                Page(f"/sitemap-{part}.xml", content_type="text/xml", raw=listed(*traps[part - 1], *hidden[part - 1]))
                for part in (1, 2)
            ),
        ),
    )


def write_discovery_config(folder: Path, served: Served, limits: DemoLimits) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    quality = "\n".join(f'[[quality]]\ndomain = "{host}"\nseeds = ["https://{host}/"]\n' for host in HOSTS)
    path = folder / "discovery.toml"
    path.write_text(
        f"""
[crawler]
minimum-time-on-page = {limits.minimum_time_on_page}
max-concurrent-pages-open = {limits.max_concurrent_pages_open}
max-domain-requests = {limits.max_domain_requests}
workers = {limits.workers}
head-requests = "never"

[traps]
max-path-repeats = 3

[resilience]
breaker-cooldown = "1s"

[discovery]
pagination = "speculate"
archives = true
elsewhere = true

[output]
workspace-path = "."

[network]
ca-bundle = "{served.ca_path}"

[network.resolve]
"*" = "127.0.0.1:{served.port}"

{quality}"""
    )
    return path
