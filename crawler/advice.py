"""What a person wants to know of a valid configuration: what will hurt, what it means, how to begin one. PURE."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crawler.classify import Classifier, DomainClass, PatternList
from crawler.settings import Config
from crawler.urls import domain_of, normalize, without_www

_SMALL_DELAY = 500
_LARGE_BUDGET = 100_000
_LARGE_DEPTH = 8
_MOST_OF_A_KIND = 20
_WIDTH = 100


# -- warnings ----------------------------------------------------------------------------------------------


def warnings(config: Config) -> list[str]:
    """What is allowed but will hurt, one sentence each, the worst first."""
    return [
        *_at_most(_caught_seeds(config)),
        *_at_most(_in_two_lists(config)),
        *_at_most(_overlaps(config)),
        *_at_most(_same_seeds(config)),
        *config.notes,
        *_wide_patterns(config),
        *_contact(config),
        *_limits(config),
    ]


def _at_most(found: Iterable[str]) -> list[str]:
    lines = list(found)
    rest = len(lines) - _MOST_OF_A_KIND
    return lines if rest <= 0 else [*lines[:_MOST_OF_A_KIND], f"… and {rest:,} more like these"]


def _caught_seeds(config: Config) -> Iterable[str]:
    classifier = Classifier(config)
    lists = {DomainClass.BLACKLISTED: "blacklist", DomainClass.STUBBED: "stub list"}
    for index, entry in enumerate(config.quality):
        for seed in entry.seeds:
            verdict = classifier.classify(domain_of(seed))
            if verdict.klass in lists:
                yield (
                    f"quality[{index}]: the seed {seed} will not be visited: the {lists[verdict.klass]}"
                    f" catches it ({verdict.rule})"
                )


def _in_two_lists(config: Config) -> Iterable[str]:
    """The same pattern in two lists: only the first of blacklist, stub, quality counts."""
    winners: dict[str, str] = {}
    for name, patterns in _lists(config):
        for pattern in patterns:
            winner = winners.setdefault(_plain(pattern), name)
            if winner != name:
                yield f"{pattern} is in the {winner} and in the {name}; the {winner} wins"


def _overlaps(config: Config) -> Iterable[str]:
    """Patterns that another one covers wholly: without effect below a stronger list, superfluous in their own."""
    earlier: list[tuple[str, PatternList]] = []
    for name, patterns in _lists(config):
        own = PatternList(patterns)
        for pattern in patterns:
            for other, stronger in earlier:
                cover = _cover(stronger, pattern)
                if cover and _plain(cover) != _plain(pattern):
                    yield f"{pattern} ({name}) has no effect: {cover} in the {other} covers it"
            cover = _cover(own, pattern)
            if cover and cover != pattern:
                effect = "its pages get a depth for each" if name == "quality list" else "one of them is enough"
                yield f"{pattern} and {cover} overlap in the {name}; {effect}"
        earlier.append((name, own))


def _cover(patterns: PatternList, pattern: str) -> str | None:
    """A pattern of the list that contains all that `pattern` contains, other than itself."""
    is_wild = pattern.startswith("*.")
    for index in patterns.all_matches(pattern.removeprefix("*.")):
        found = patterns.patterns[index]
        if found != pattern and (found.startswith("*.") or not is_wild):
            return found
    return None


def _same_seeds(config: Config) -> Iterable[str]:
    seen: dict[str, str] = {}
    for index, entry in enumerate(config.quality):
        for seed in entry.seeds:
            key = normalize(seed, config.crawler.tracking_parameters)
            other = seen.setdefault(key, seed)
            if other != seed:
                yield f"quality[{index}]: the seeds {other} and {seed} are the same page, {key}"


def _wide_patterns(config: Config) -> Iterable[str]:
    for name, patterns in _lists(config):
        for pattern in patterns:
            if pattern.startswith("*.") and "." not in pattern[2:] and pattern not in ("*.localhost", "*.test"):
                yield f"{pattern} ({name}) means every domain that ends in .{pattern[2:]}"


def _contact(config: Config) -> Iterable[str]:
    agent = config.user_agent
    values = {"contact-url": agent.contact_url, "contact-email": agent.contact_email}
    missing = [name for name, value in values.items() if not value]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        yield (
            f"[user-agent] {' and '.join(missing)} {verb} empty: site owners who see the crawler in their logs"
            " should be able to reach you"
        )
    for name, value in values.items():
        host = domain_of(normalize(value)) if name == "contact-url" and value else value.rpartition("@")[2]
        if host in ("example.com", "example.org", "example.net"):
            yield f"[user-agent] {name} is still the example's: {value}"


def _limits(config: Config) -> Iterable[str]:
    crawler = config.crawler
    if crawler.minimum_time_on_page < _SMALL_DELAY:
        yield (
            f"[crawler] minimum-time-on-page = {crawler.minimum_time_on_page} asks a site up to"
            f" {1000 / crawler.minimum_time_on_page:.3g} times a second; 1000 is kind to strangers"
        )
    if crawler.max_domain_requests > _LARGE_BUDGET:
        days = crawler.max_domain_requests * crawler.minimum_time_on_page / 86_400_000
        yield (
            f"[crawler] max-domain-requests = {crawler.max_domain_requests:,} may keep one domain busy for"
            f" {days:,.1f} days"
        )
    if crawler.max_depth > _LARGE_DEPTH:
        yield f"[crawler] max-depth = {crawler.max_depth:,} is most of the web; 2 or 3 is usual"
    if config.network.allow_private_addresses:
        yield "[network] allow-private-addresses lets any page lead the crawler into this machine's own network"


def _lists(config: Config) -> Sequence[tuple[str, tuple[str, ...]]]:
    """The lists, the strongest first."""
    quality = tuple(entry.domain for entry in config.quality)
    return ("blacklist", config.blacklist), ("stub list", config.stub), ("quality list", quality)


def _plain(pattern: str) -> str:
    star = "*." if pattern.startswith("*.") else ""
    return star + without_www(pattern.removeprefix("*."))


# -- what a config means -----------------------------------------------------------------------------------


def describe(config: Config) -> str:
    """The configuration as `--dry-run` shows it, on one screen."""
    crawler, network, output = config.crawler, config.network, config.output
    workers = crawler.workers or "as many as fit"
    lines = [
        f"Configuration  {config.source or '(none)'}",
        f"User agent     {config.user_agent.header}",
        "",
        "Classes (the first match wins)",
        _row("blacklist", config.blacklist),
        _row("stub", config.stub),
        _row("quality", [entry.domain for entry in config.quality]),
        "",
        *_seed_lines(config),
        "",
        "Limits",
        f"  depth {crawler.max_depth:,} · {_count(crawler.max_domain_requests, 'request')} a domain and run"
        f" · {crawler.minimum_time_on_page:,} ms between two requests to a domain",
        f"  {_count(crawler.max_concurrent_pages_open, 'page')} open at once · workers: {workers}"
        f" · {_count(crawler.max_active_domains, 'domain')} active at once",
        f"  HEAD {crawler.head_requests} · on 429 {crawler.on_429} · robots.txt unreachable:"
        f" {crawler.robots_unreachable} · {_count(crawler.retries, 'retry', 'retries')},"
        f" {crawler.retry_delay:,} ms apart",
        f"  tracking parameters removed: {_cut(', '.join(crawler.tracking_parameters), 68) or 'none'}",
        "",
        "Places",
        f"  database   {output.database_path}",
        f"  summary    {output.summary_path}",
        f"  workspace  {config.workspace}",
        "",
        "Network",
        f"  private addresses: {'allowed' if network.allow_private_addresses else 'refused'}"
        f" · CA bundle: {network.ca_bundle or 'the system’s'}",
        *_some([f"  {pattern} → {target}" for pattern, target in network.resolve], 4),
    ]
    return "\n".join(lines)


def _row(name: str, patterns: Sequence[str]) -> str:
    text = f"  {name:<10} {len(patterns):>6,}"
    return f"{text}  {_cut(', '.join(patterns), _WIDTH - len(text) - 2)}" if patterns else text


def _seed_lines(config: Config) -> list[str]:
    rows = []
    for entry in config.quality:
        for seed in entry.seeds:
            key = normalize(seed, config.crawler.tracking_parameters)
            rows.append(f"  {key}" + (f"   asked for as {seed}" if seed != key else ""))
    return [f"Seeds ({len(rows):,})", *_some(rows, 8)]


def _some(rows: list[str], most: int) -> list[str]:
    return rows if len(rows) <= most + 1 else [*rows[:most], f"  … and {len(rows) - most:,} more"]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _count(number: int, one: str, many: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# -- how to begin ------------------------------------------------------------------------------------------

TEMPLATE = """\
# Sumi-Ripple: what to crawl, and how politely.
# Check it with `sumi-ripple crawl THIS-FILE --dry-run`, then leave --dry-run out.
# Only the quality list is needed; everything else is shown with its default.

[crawler]
max-depth = 3                       # steps away from a quality domain
max-concurrent-pages-open = 10      # requests on the wire at one time, over all domains (1 to 100)
minimum-time-on-page = 1000         # milliseconds between two requests to one domain (100 or more)
max-domain-requests = 500           # per run and domain, robots.txt and retries included
# workers = 0                       # fetcher processes; 0: as many as fit this machine
# head-requests = "always"          # always | auto (only where a URL does not look like a page) | never
# on-429 = "suspend"                # suspend the domain for this run | wait as Retry-After asks, then go on
# max-retry-after = 300000          # milliseconds; with "wait", a longer Retry-After suspends
# retries = 3                       # after server errors and timeouts
# retry-delay = 5000                # milliseconds between them
# robots-unreachable = "fail"       # fail its pages | allow everything
# max-crawl-delay = 120000          # milliseconds; a domain whose robots.txt asks for more is skipped
# obey-nofollow = true              # of a whole page (meta robots, X-Robots-Tag)
# max-links-per-page = 10000
# tracking-parameters = ["utm_*", "fbclid", "gclid", "mc_eid", "ref", "source"]

[user-agent]                        # who you are, for the owners of the sites you visit
crawler-name = "SumiRipple"         # letters, digits and hyphens
crawler-version = "1.0"
contact-url = "https://example.com/about-our-crawler"
contact-email = "crawler-admin@example.com"

[output]                            # relative paths start from this file's folder
database-path = "./sumi-ripple.db"
summary-path = "./crawl-summary.md"

# -- Quality list: the domains to explore fully. "*.example.org" means example.org and all its subdomains.

[[quality]]
domain = "example.com"
seeds = [
    "https://example.com/",
]

[[quality]]
domain = "*.example.org"
seeds = [
    "https://blog.example.org/",
    "https://docs.example.org/getting-started",
]

# -- Blacklist: never visited; links to them are counted. It wins over the other lists.

[[blacklist]]
domain = "ads.example.net"

[[blacklist]]
domain = "*.tracking.example"

# -- Stub list: never visited, but their pages are recorded.

[[stub]]
domain = "*.wiki.example"

# -- Rarely needed -----------------------------------------------------------------------------------

# [network]
# ca-bundle = "ca.pem"              # trusted besides the system's certificates
# allow-private-addresses = false
# connect-timeout = 10000           # milliseconds, as are the next two
# read-timeout = 30000
# total-timeout = 120000            # for one whole response
# max-body-size = 10485760          # bytes, decoded

# [network.resolve]                 # like curl --connect-to: host pattern → address; the first match wins
# "*.test" = "127.0.0.1:8443"

# [traps]                           # 0 turns a limit off
# max-url-length = 2000
# max-path-depth = 24               # segments
# max-path-repeats = 3              # how often one segment may be in a path
# max-query-variants = 200          # visits of one path under different queries, per run
# max-similar-paths = 5000          # visits of paths that differ only in numbers or ids, per run

# [spool]
# segment-size = 16777216           # bytes
# results = 0                       # keep the results of this many runs; 0: of all (replay needs them)
"""

__all__ = ["TEMPLATE", "describe", "warnings"]
