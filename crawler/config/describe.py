"""PURE. A valid configuration in words, for `--dry-run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crawler.engine.place import place_of
from crawler.model.settings import Config
from crawler.model.shown_text import age_words, counted, cut, domain_words, url_words
from crawler.model.urls import normalize

_WIDTH = 100


def describe(config: Config, environ: Mapping[str, str] | None = None) -> str:
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
        _row("quality", [entry.name for entry in config.quality]),
        "",
        *_seed_lines(config),
        "",
        "Limits",
        f"  depth {crawler.max_depth:,} · {counted(crawler.max_domain_requests, 'request')} a domain and run"
        f"{_other_budget(config)} · {crawler.minimum_time_on_page:,} ms between two requests to a domain",
        f"  {counted(crawler.max_concurrent_pages_open, 'page')} open at once · workers: {workers}"
        f" · {counted(crawler.max_active_domains, 'domain')} active at once",
        f"  HEAD {crawler.head_requests} · on 429 {crawler.on_429} · robots.txt unreachable:"
        f" {crawler.robots_unreachable} · {counted(crawler.retries, 'retry', 'retries')},"
        f" {crawler.retry_delay:,} ms apart",
        f"  tracking parameters removed: {cut(', '.join(crawler.tracking_parameters), 68) or 'none'}",
        f"  garbage: {_garbage(config)}",
        *_page_rules(config),
        f"  besides links: {_besides_links(config)} · pagination: {config.discovery.pagination}",
        f"  pages are visited again: {_again(config)}",
        "",
        "Places",
        f"  database   {config.map_place}",
        f"  summary    {output.summary_path}",
        f"  workspace  {config.workspace}",
        *([f"  engine     {place_of(config.engine.url, environ)}"] if config.engine.url else []),
        "",
        "Network",
        f"  private addresses: {'allowed' if network.allow_private_addresses else 'refused'}"
        f" · CA bundle: {network.ca_bundle or 'the system’s'}",
        f"  one answer: {network.total_timeout:,} ms, {network.max_body_size:,} bytes · reading it:"
        f" {network.processing_timeout:,} ms, {network.parse_memory // 1_048_576:,} MiB in each fetcher",
        *_some([f"  {pattern} → {target}" for pattern, target in network.resolve], 4, config),
    ]
    return "\n".join(lines)


def _garbage(config: Config) -> str:
    settings = config.validation
    if not settings.enabled:
        return "not looked for"
    text = f"rejected, its links {'followed' if settings.follow_rejected else 'not followed'}"
    if config.garbage:
        text += f" · your own signs: {cut(', '.join(rule.name for rule in config.garbage), 50)}"
    return text + (f" · ignored: {', '.join(settings.ignore)}" if settings.ignore else "")


def _page_rules(config: Config) -> list[str]:
    """Scope, page types and caps, as far as there are any."""
    scopes = [config.scope, *(entry.scope for entry in config.quality)]
    lines = []
    if any(scope.allow or scope.deny for scope in scopes):
        allow, deny = (sum(len(getattr(scope, name)) for scope in scopes) for name in ("allow", "deny"))
        lines.append(f"  scope: {counted(allow, 'rule')} that allow, {counted(deny, 'rule')} that deny")
    if config.page_types:
        lines.append(f"  page types: {cut(', '.join(dict.fromkeys(rule.name for rule in config.page_types)), 80)}")
    for cap in config.caps:
        per = f" for each {cap.per}" if cap.per else ""
        lines.append(f"  cap {cap.name}: {counted(cap.max_pages, 'page')} a run{per}")
    return lines + _kept(config)


def _kept(config: Config) -> list[str]:
    """What is kept of pages besides the map."""
    kinds = {"pages": config.store.html, "nearly equal texts": config.store.near_duplicates}
    kept = ", ".join(word for word, is_on in kinds.items() if is_on)
    fields = cut(", ".join(dict.fromkeys(rule.name for rule in config.extract)), 80)
    words = [f"{name}: {text}" for name, text in (("kept", kept), ("fields", fields)) if text]
    return [f"  {' · '.join(words)}"] if words else []


def _besides_links(config: Config) -> str:
    settings = config.discovery
    ways = {"sitemaps": settings.sitemaps, "archives": settings.archives}
    words = " and ".join(name for name, is_on in ways.items() if is_on)
    if not words:
        return "nothing"
    return f"{words} of quality domains{', and pages elsewhere within reach' if settings.elsewhere else ''}"


def _again(config: Config) -> str:
    settings = config.revisit
    if isinstance(settings.schedule, int):
        return f"{age_words(settings.schedule)} after their last visit"
    if settings.schedule == "always":
        return "with every run"
    shortest, longest = age_words(settings.shortest_interval), age_words(settings.longest_interval)
    return f"as they change, {shortest} to {longest} after their last visit"


def _other_budget(config: Config) -> str:
    other = config.crawler.budget(is_quality=False)
    return "" if other == config.crawler.max_domain_requests else f" ({other:,} if discovered)"


def _row(name: str, patterns: Sequence[str]) -> str:
    text = f"  {name:<10} {len(patterns):>6,}"
    return f"{text}  {cut(', '.join(map(domain_words, patterns)), _WIDTH - len(text) - 2)}" if patterns else text


def _seed_lines(config: Config) -> list[str]:
    rows = []
    for entry in config.quality:
        for seed in entry.seeds:
            key = normalize(seed, config.crawler.tracking_parameters)
            rows.append(f"  {url_words(key)}" + (f"   asked for as {url_words(seed)}" if seed != key else ""))
    return [f"Seeds ({len(rows):,})", *_some(rows, 8, config)]


def _some(rows: list[str], most: int, config: Config) -> list[str]:
    where = f", in {config.source}" if config.source else ""
    return rows if len(rows) <= most + 1 else [*rows[:most], f"  … and {len(rows) - most:,} more{where}"]
