"""A plain site for whole crawls: a front page, sections, and leaves that only their section links to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from crawler.demo.server import Served
from crawler.demo.sites import Page, Site, SiteTerrain
from tests.pipeline.crawling import PATIENCE
from tests.places import ROOT


def site_of(host: str, pages: int, sections: int, links: tuple[str, ...] = ()) -> Site:
    """A site of so many pages. `links`: pages elsewhere that the front page links to."""
    leaves = pages - sections - 1
    front = tuple((f"/section/{number}", "Section") for number in range(sections))
    made = [Page("/", "Front page", links=(*front, *((link, "Elsewhere") for link in links)))]
    for number in range(sections):
        own = tuple((f"/leaf/{leaf}", "Leaf") for leaf in range(number, leaves, sections))
        made.append(Page(f"/section/{number}", f"Section {number}", links=own))
    made += [Page(f"/leaf/{leaf}", f"Leaf {leaf}", ("A page like any other.",)) for leaf in range(leaves)]
    return Site(host, host, tuple(made))


def terrain_of(*sites: Site) -> SiteTerrain:
    return SiteTerrain(sites)


def config_for(folder: Path, served: Served, quality: tuple[str, ...], crawler: str = "", more: str = "") -> Path:
    """A config for quality domains that are served here; everything lies in the folder."""
    lists = "".join(f'[[quality]]\ndomain = "{domain}"\n' for domain in quality)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "my.toml"
    path.write_text(
        f"""
[crawler]
minimum-time-on-page = 100
head-requests = "never"
workers = 1
{crawler}
[user-agent]
contact-url = "https://a.test/about"
contact-email = "me@a.test"
[network]
ca-bundle = "{served.ca_path}"
[network.resolve]
"*" = "127.0.0.1:{served.port}"
{more}
{lists}"""
    )
    return path


def crawl_quickly(config: Path, *words: str) -> str:
    """A whole crawl with next to no delay between requests; returns what it said."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.quick_crawl", str(config), *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout
