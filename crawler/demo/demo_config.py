"""The configuration of the demo crawl, written as a TOML file that a user may read and copy."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crawler.demo.server import Served
from crawler.demo.terrain import BLACKLIST, QUALITY, REFUSED_HOST, STUB
from crawler.workspace.atomic import write_atomically

CONFIG_NAME = "demo.toml"


@dataclass(frozen=True, slots=True)
class DemoLimits:
    """Settings that tests and measurements change. Times in milliseconds."""

    max_depth: int = 2
    max_concurrent_pages_open: int = 16
    minimum_time_on_page: int = 100
    max_domain_requests: int = 40  # only the long scroll needs more
    workers: int = 2
    retry_delay: int = 200
    robots_retry_delay: int = 200
    max_query_variants: int = 4


def write_demo_config(folder: Path, served: Served, limits: DemoLimits = DemoLimits()) -> Path:  # noqa: B008
    """Write `demo.toml` into `folder` for a running demo server; database and summary will lie next to it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CONFIG_NAME
    write_atomically(path, demo_toml(served, limits).encode(), durable=False)
    return path


def demo_toml(served: Served, limits: DemoLimits) -> str:
    """The text of the demo's configuration."""
    quality = "\n".join(
        f"[[quality]]\ndomain = {_text(domain)}\nseeds = [{', '.join(_text(seed) for seed in seeds)}]\n"
        for domain, seeds in QUALITY.items()
    )
    blacklist = "\n".join(f"[[blacklist]]\ndomain = {_text(domain)}\n" for domain in BLACKLIST)
    stub = "\n".join(f"[[stub]]\ndomain = {_text(domain)}\n" for domain in STUB)
    return f"""# The demo terrain: invented websites, served by Sumi-Ripple itself on this machine.
# Rewritten for every demo crawl; copy it before you change it.

[crawler]
max-depth = {limits.max_depth}                      # steps away from a quality domain
max-concurrent-pages-open = {limits.max_concurrent_pages_open}     # requests on the wire at one time
minimum-time-on-page = {limits.minimum_time_on_page}         # milliseconds between two requests to one domain
max-domain-requests = {limits.max_domain_requests}           # per run and domain; long-scroll.test needs more
workers = {limits.workers}                        # fetcher processes
retry-delay = {limits.retry_delay}                  # milliseconds; on the real web 5000 is kinder
robots-retry-delay = {limits.robots_retry_delay}           # the same for robots.txt, doubled from try to try

[traps]
max-query-variants = {limits.max_query_variants}             # chart-room.test has a calendar without end

[resilience]
breaker-cooldown = "1s"            # tired-ferry.test fails five times in a row; on the real web a minute is kinder
breaker-longest-cooldown = "2s"

[discovery]
pagination = "speculate"           # ledger.press-garden.test forgot the link to a page of its journal
archives = true                    # and has a page for a month that nothing links

[store]
html = true                        # the pages themselves: sumi-ripple store cat URL

[user-agent]
crawler-name = "SumiRipple"
crawler-version = "1.0"
contact-url = "https://tea-almanac.test/about-crawlers"
contact-email = "crawler@tea-almanac.test"

[output]
database-path = "sumi-ripple.db"
summary-path = "crawl-summary.md"
workspace-path = "."

# These names exist nowhere but here: every one leads to the demo's own server, whose certificates come from a
# throw-away authority. Behind one name there is a port where nothing listens.
[network]
ca-bundle = {_text(str(served.ca_path))}

[network.resolve]
"{REFUSED_HOST}" = "{served.address}:{served.closed_port}"
"*" = "{served.address}:{served.port}"

# -- the lists ------------------------------------------------------------------------------------------

{quality}
{blacklist}
{stub}"""


def _text(value: str) -> str:
    """A TOML string. What TOML escapes it escapes as JSON does, and these values hold nothing else."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
