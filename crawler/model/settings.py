"""PURE. The settings as values, which `crawler.config` reads from a TOML file. Every default is defined here, once."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import orjson

from crawler.model.map_place import EngineMap, MapPlace

TRACKING_PARAMETERS = ("utm_*", "fbclid", "gclid", "mc_eid", "ref", "source")


@dataclass(frozen=True, slots=True)
class CrawlerSettings:
    """[crawler]. Times in milliseconds, as the TOML has them."""

    max_depth: int = 3
    max_concurrent_pages_open: int = 10
    minimum_time_on_page: int = 1000
    max_domain_requests: int = 500  # of a quality domain, per run
    discovered_domain_requests: int | None = None  # of any other domain; None: max_domain_requests holds for all
    workers: int = 0  # fetcher processes; 0: as many as fit the cores
    max_active_domains: int = 256  # domains with released jobs at one time
    jobs_per_domain: int = 0  # released jobs a domain may have waiting; 0: as its pace asks for
    head_requests: str = "always"  # always | auto | never
    on_429: str = "suspend"  # suspend | wait
    max_retry_after: int = 300_000  # a longer Retry-After is not waited for
    retries: int = 3
    retry_delay: int = 5000
    robots_unreachable: str = "fail"  # fail | allow
    robots_retries: int = 3
    robots_retry_delay: int = 5000  # the first pause; each further one is twice as long
    max_crawl_delay: int = 120_000  # a domain that asks for more is skipped
    obey_nofollow: bool = True  # page-level meta robots / X-Robots-Tag
    max_links_per_page: int = 10_000
    tracking_parameters: tuple[str, ...] = TRACKING_PARAMETERS
    link_text: bool = False  # results carry the text and rel of every link
    order: str = "depth"  # depth | priority: what decides first which page is visited next

    def budget(self, *, is_quality: bool) -> int:
        """Requests to a domain in one run."""
        if is_quality or self.discovered_domain_requests is None:
            return self.max_domain_requests
        return self.discovered_domain_requests


@dataclass(frozen=True, slots=True)
class LimitSettings:
    """[limits], for a run from its start (or from the start that goes on with it) on. 0: no limit."""

    max_pages: int = 0  # pages visited
    max_domains: int = 0  # domains visited
    max_duration: int = 0  # seconds
    max_bytes: int = 0  # of page bodies, decoded


@dataclass(frozen=True, slots=True)
class ResilienceSettings:
    """[resilience]. Times in seconds."""

    breaker_failures: int = 5  # visits of a domain that fail in a row and open its breaker; 0: it never opens
    breaker_cooldown: int = 60  # the first; each further one is twice as long
    breaker_longest_cooldown: int = 3600
    breaker_successes: int = 2  # trials in a row that close it again
    breaker_counts: tuple[str, ...] = ("http-403", "http-429", "http-5xx", "timeout", "hard")  # failures that count
    breaker_last_wait: int = 60  # a longer cooldown is not waited for when the run has nothing else to do
    suspicion: int = 5  # domains that fail in a row, with no success between; then nothing is sent before a diagnosis
    probe: tuple[str, ...] = ()  # hosts that always answer, besides those that did in this run
    probe_every: int = 30  # while the network is out
    give_up_after: int = 86_400  # seconds of waiting for the network; 0: never
    stall_after: int = 300  # seconds without progress though work is due; 0: never
    max_memory: int = 0  # bytes of a stage; 0: no limit

    def counts(self, slug: str) -> bool:
        """Is this a failure that opens a breaker? `http-5xx` stands for all of its kind."""
        kind = f"{slug[:6]}xx" if slug.startswith("http-") and len(slug) == 8 else slug
        return self.breaker_failures > 0 and (slug in self.breaker_counts or kind in self.breaker_counts)


@dataclass(frozen=True, slots=True)
class UserAgentSettings:
    """[user-agent]"""

    crawler_name: str = "SumiRipple"
    crawler_version: str = "1.0"
    contact_url: str = ""
    contact_email: str = ""

    @property
    def header(self) -> str:
        """The User-Agent on the wire: `Name/1.0 (+url; email)`, without what is empty."""
        contact = "; ".join(part for part in (self.contact_url and f"+{self.contact_url}", self.contact_email) if part)
        name = f"{self.crawler_name}/{self.crawler_version}"
        return f"{name} ({contact})" if contact else name


@dataclass(frozen=True, slots=True)
class OutputSettings:
    """[output]. Paths are absolute here; in the TOML they are relative to the file."""

    database_path: Path = Path("sumi-ripple.db")
    summary_path: Path = Path("crawl-summary.md")


@dataclass(frozen=True, slots=True)
class NetworkSettings:
    """[network]. Times in milliseconds."""

    ca_bundle: Path | None = None
    allow_private_addresses: bool = False
    connect_timeout: int = 10_000
    read_timeout: int = 30_000
    total_timeout: int = 120_000  # for one whole response
    max_body_size: int = 10 * 1024 * 1024  # decoded bytes
    processing_timeout: int = 20_000  # for reading one page, beyond `total_timeout`; common pages take milliseconds
    parse_memory: int = 256 * 1024 * 1024  # bytes for bodies that are read at one time, in each fetcher
    dns_cache_time: int = 300_000
    max_idle_connections: int = 1000  # kept alive in each fetcher: as many as it may have domains at work
    resolve: tuple[tuple[str, str], ...] = ()  # (host pattern, "address:port"), first match wins


@dataclass(frozen=True, slots=True)
class TrapSettings:
    """[traps]. 0 turns a limit off."""

    max_url_length: int = 2000
    max_path_depth: int = 24  # segments
    max_path_repeats: int = 3  # how often one segment may occur in a path
    max_query_variants: int = 200  # visits of one path under different queries, per run
    max_similar_paths: int = 5000  # visits of paths that differ only in numbers or ids, per run
    max_subdomains: int = 200  # hosts visited under one registered domain, per run; few sites have more than dozens


@dataclass(frozen=True, slots=True)
class DiscoverySettings:
    """[discovery]: ways to find pages besides links."""

    sitemaps: bool = True  # of quality domains
    pagination: str = "off"  # off | label: note the next page of a list, where it is linked | speculate: try it, too
    max_list_guesses: int = 20  # pages beyond the last linked one of a list, per run
    archives: bool = False  # of quality domains: try the years and months that addresses of their pages show
    max_archive_pages: int = 50  # of a domain, per run
    elsewhere: bool = False  # outside of quality domains too: pages of sitemaps and lists that are within reach

    @property
    def tries_pages(self) -> bool:
        """Is the address of every page that a run meets looked at, for pages to try without a link?"""
        return self.pagination == "speculate" or self.archives


DAY = 86_400  # seconds


@dataclass(frozen=True, slots=True)
class RevisitSettings:
    """[revisit]: when a page is due again (`crawler.rules.revisit_interval`). Times in seconds."""

    schedule: str | int = "always"  # always: with every run | adaptive | so many seconds after its last visit
    first_interval: int = 7 * DAY  # adaptive: after the first visit, when nothing is known of the page
    shortest_interval: int = DAY
    longest_interval: int = 60 * DAY

    @property
    def plans(self) -> bool:
        """Are there pages that are not due?"""
        return self.schedule != "always"


@dataclass(frozen=True, slots=True)
class SpoolSettings:
    """[spool]"""

    segment_size: int = 16 * 1024 * 1024
    results: int = 0  # keep the result segments of this many runs; 0: of all (replay needs them)
    # Backpressure: fetchers slow down from half of a limit on, and wait at it. 0: no limit.
    max_backlog: int = 100_000  # results that wait to be applied: minutes of work for the ingest
    max_backlog_bytes: int = 1024 * 1024 * 1024  # of them
    min_free_disk: int = 128 * 1024 * 1024  # bytes, for the workspace and for the map


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """[retention]: lifetimes, which `sumi-ripple prune` applies. In seconds, results in runs. 0: it is kept."""

    results: int = 0  # those of so many runs are kept
    blobs: int = 0  # stored pages, from the last visit that brought or confirmed them
    logs: int = 0
    metadata: int = 0  # lines of metadata/crawl_metadata.jsonl
    quarantine: int = 0  # spool lines that were set aside
    summaries: int = 0  # of single runs
    run_maps: int = 0  # maps of single runs, which are made again from results
    aside: int = 0  # crawls and maps that --fresh or a change of rules moved aside


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """[store]: the pages themselves (`crawler.store`)."""

    html: bool = False  # keep the body of every accepted page
    file_mode: str = "0600"  # the permissions of what is kept, in octal
    near_duplicates: bool = False  # compute a SimHash of every page's text, with or without `html`


@dataclass(frozen=True, slots=True)
class LogSettings:
    """[logs]: files for people and other programs, in the workspace."""

    pages: bool = True  # logs/pages-<run>.csv, a row a visit
    metadata: bool = True  # metadata/crawl_metadata.jsonl, a record a visit, over all runs
    metrics: bool = True  # logs/metrics-<run>.csv
    metrics_every: int = 10  # seconds

    @property
    def has_page_log(self) -> bool:
        return self.pages or self.metadata


@dataclass(frozen=True, slots=True)
class ValidationSettings:
    """[validation]: answers that are no pages (`crawler.visit.validation`)."""

    enabled: bool = True
    follow_rejected: bool = False  # follow the links of a page that was rejected
    learn_404: bool = False  # GET a dead link where HEAD would do, until a domain's own 404 is known: for its soft ones
    ignore: tuple[str, ...] = ()  # reasons that reject nothing


@dataclass(frozen=True, slots=True)
class GarbageRule:
    """One [[garbage]]: a user's own sign of a page that is none, by its text or by a CSS selector."""

    name: str  # the slug of the reason
    verdict: str = "soft"  # soft | hard
    text: str = ""
    selector: str = ""


@dataclass(frozen=True, slots=True)
class ScopeSettings:
    """[scope]: regular expressions over keys (`crawler.rules.patterns`). What `deny` matches is not visited; with an
    `allow`, nothing else is.
    """

    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExtractRule:
    """One [[extract]]: a field that is read from pages by a CSS or XPath selector."""

    name: str
    selector: str
    domain: str = ""  # a pattern; "": all
    page_type: str = ""  # "": all


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """[engine]: the database that takes the place of files and SQLite; without a URL these are used. Like a path it is
    in no hash and no record, and like a secret it is never shown.
    """

    url: str = field(default="", repr=False)
    lease: int = 30  # seconds that a process may be silent before others take over its work
    results: int = 0  # those of so many runs stay in the engine, older ones go to the archive; 0: all stay
    archive: Path | None = None  # the folder for them; None: archive/results in the workspace's folder


@dataclass(frozen=True, slots=True)
class PageTypeRule:
    """One [[page-type]]: pages whose key the pattern matches are of this type; the first match counts."""

    name: str
    pattern: str


@dataclass(frozen=True, slots=True)
class CapRule:
    """One [[cap]]: visits of matching pages in a run, together or for each value of a captured group."""

    name: str
    pattern: str
    max_pages: int
    per: str = ""  # the group, by its name or number


@dataclass(frozen=True, slots=True)
class HookRule:
    """One [[hook]]: who is told of which events, by a POST to `url` or an e-mail to a command. It is in no hash and no
    record: it decides nothing, and the secret stays in the file.
    """

    name: str
    events: tuple[str, ...]
    url: str = ""
    secret: str = field(default="", repr=False)
    command: tuple[str, ...] = ()
    to: str = ""
    sender: str = ""


@dataclass(frozen=True, slots=True)
class QualityEntry:
    """One [[quality]]: a pattern and the wire URLs to start from. With a path it is a part of a site."""

    domain: str
    seeds: tuple[str, ...]
    path: str = ""  # as in keys, without a slash at its end: /~lab
    scope: ScopeSettings = ScopeSettings()  # for the pages inside the entry, besides [scope]

    @property
    def name(self) -> str:
        """The origin that depths name: `uni.example`, or `uni.example/~lab/` for a part of it."""
        return f"{self.domain}{self.path}/" if self.path else self.domain


@dataclass(frozen=True, slots=True)
class EntryNote:
    """A curator's words about an entry of a list. They decide nothing, and are in no hash of the settings."""

    list_name: str  # quality | blacklist | stub
    domain: str
    note: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Config:
    """A whole, valid configuration. Patterns are lower-case punycode, `*.` in front for wildcards."""

    crawler: CrawlerSettings = CrawlerSettings()
    user_agent: UserAgentSettings = UserAgentSettings()
    output: OutputSettings = OutputSettings()
    network: NetworkSettings = NetworkSettings()
    traps: TrapSettings = TrapSettings()
    spool: SpoolSettings = SpoolSettings()
    retention: RetentionSettings = RetentionSettings()
    logs: LogSettings = LogSettings()
    limits: LimitSettings = LimitSettings()
    resilience: ResilienceSettings = ResilienceSettings()
    validation: ValidationSettings = ValidationSettings()
    garbage: tuple[GarbageRule, ...] = ()
    discovery: DiscoverySettings = DiscoverySettings()
    revisit: RevisitSettings = RevisitSettings()
    store: StoreSettings = StoreSettings()
    engine: EngineSettings = EngineSettings()
    scope: ScopeSettings = ScopeSettings()
    page_types: tuple[PageTypeRule, ...] = ()
    extract: tuple[ExtractRule, ...] = ()
    caps: tuple[CapRule, ...] = ()
    hooks: tuple[HookRule, ...] = ()
    quality: tuple[QualityEntry, ...] = ()
    blacklist: tuple[str, ...] = ()
    stub: tuple[str, ...] = ()
    workspace: Path = Path("workspace")
    is_workspace_given: bool = field(default=False, compare=False)  # by --workspace: commands have to repeat it
    source: Path | None = field(default=None, compare=False)
    entry_notes: tuple[EntryNote, ...] = field(default=(), compare=False)
    starts_next_run: bool = field(default=False, compare=False)  # --next-run: do not go on with an interrupted run
    notes: tuple[str, ...] = field(default=(), compare=False)  # what was put right while loading

    @property
    def map_place(self) -> MapPlace:
        """Where the map is: in the engine, if one is named, or in its file."""
        return (
            EngineMap(self.engine.url, files=self.output.database_path)
            if self.engine.url
            else self.output.database_path
        )

    @property
    def config_hash(self) -> str:
        """SHA-256 of every setting (paths and the like aside), as `runs.config_hash` keeps it."""
        everything: dict[str, object] = {
            "crawler": _crawler(self.crawler),
            "user-agent": self.user_agent,
            "traps": _traps(self.traps),
            "quality": _quality(self.quality),
            "blacklist": self.blacklist,
            "stub": self.stub,
        }
        if self.limits != LimitSettings():
            everything["limits"] = self.limits
        if self.resilience != ResilienceSettings():
            everything["resilience"] = self.resilience
        if self.validation != ValidationSettings() or self.garbage:
            everything["validation"] = (self.validation, self.garbage)
        if self.discovery != DiscoverySettings():
            everything["discovery"] = self.discovery
        if self.revisit != RevisitSettings():
            everything["revisit"] = self.revisit
        if (store := replace(self.store, file_mode=StoreSettings().file_mode)) != StoreSettings():
            everything["store"] = store
        if self.extract:
            everything["extract"] = self.extract
        everything |= self._page_rules
        return _hash(everything)

    @property
    def map_hash(self) -> str:
        """SHA-256 of the settings that decide the map of given results: where it differs, the map is rebuilt."""
        rules: dict[str, object] = {
            "max-depth": self.crawler.max_depth,
            "max-domain-requests": self.crawler.max_domain_requests,
            "max-crawl-delay": self.crawler.max_crawl_delay,
            "obey-nofollow": self.crawler.obey_nofollow,
            "tracking": self.crawler.tracking_parameters,
            "traps": _traps(self.traps),
            "quality": _quality(self.quality),
            "blacklist": self.blacklist,
            "stub": self.stub,
        }
        other = self.crawler.budget(is_quality=False)
        if other != self.crawler.max_domain_requests:  # one number for all has the hash that it always had
            rules["discovered-domain-requests"] = other
        if self.validation.follow_rejected:
            rules["follow-rejected"] = True
        if self.discovery.elsewhere:
            rules["elsewhere"] = True
        return _hash(rules | self._page_rules)

    @property
    def _page_rules(self) -> dict[str, object]:
        """Rules about single pages, where there are any: they are younger than the hashes."""
        rules: dict[str, object] = {"scope": self.scope, "page-types": self.page_types, "caps": self.caps}
        return {name: value for name, value in rules.items() if value and value != ScopeSettings()}


def _crawler(crawler: CrawlerSettings) -> dict[str, object]:
    """The settings that count in a hash: not how many do the work, and what is younger only once it is changed."""
    values = asdict(replace(crawler, workers=0))
    for name, default in (("link_text", False), ("order", "depth")):
        if values[name] == default:
            del values[name]
    return values


def _quality(entries: tuple[QualityEntry, ...]) -> list[dict[str, object]]:
    """The entries as they count in a hash: a path and rules of their own are younger than it."""
    return [
        {name: value for name, value in asdict(entry).items() if name in ("domain", "seeds") or value != usual[name]}
        for usual in (asdict(QualityEntry("", ())),)
        for entry in entries
    ]


def _traps(traps: TrapSettings) -> dict[str, object]:
    """The limits that count in a hash. One that is younger than the hash counts once it is changed: maps that were made
    before it was there stay as they are.
    """
    values = asdict(traps)
    if traps.max_subdomains == TrapSettings().max_subdomains:
        del values["max_subdomains"]
    return values


def _hash(value: object) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)).hexdigest()
