"""A TOML file → a frozen Config, or every mistake in it at once.

    config = load(Path("my.toml"))          # raises ConfigError
    for warning in warnings(config): ...    # valid, but likely to be regretted

Each mistake names its key path, the value found and the values allowed. Keys are those of the dataclasses in
`crawler.model.settings`, in kebab-case; every key is optional except the quality list.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import tomli

from crawler.config import checks
from crawler.config.checks import U32, U63, Bad, Check, whole_number
from crawler.config.describe import describe
from crawler.config.last_used import is_crawl_of
from crawler.config.template import TEMPLATE
from crawler.config.warnings import warnings
from crawler.engine.place import without_credentials
from crawler.model.errors import UsageError
from crawler.model.settings import (
    CapRule,
    Config,
    CrawlerSettings,
    DiscoverySettings,
    EngineSettings,
    EntryNote,
    ExtractRule,
    GarbageRule,
    HookRule,
    LimitSettings,
    LogSettings,
    NetworkSettings,
    OutputSettings,
    PageTypeRule,
    QualityEntry,
    ResilienceSettings,
    RetentionSettings,
    RevisitSettings,
    ScopeSettings,
    SpoolSettings,
    StoreSettings,
    TrapSettings,
    UserAgentSettings,
    ValidationSettings,
)
from crawler.model.shown_text import counted, cut
from crawler.model.urls import domain_of, normalize
from crawler.rules.lists import is_below, matches
from crawler.rules.patterns import key_pattern

_MOST_BYTES = 16 * 1024 * 1024
_MOST_WORKERS = 64
_LEAST_BUDGET = 20  # requests: robots.txt, and HEAD and GET of a handful of pages
_MS = " of milliseconds"

_TABLES: dict[str, dict[str, Check]] = {
    "crawler": {
        "max-depth": whole_number(0, U32),
        "max-concurrent-pages-open": whole_number(1, 100),
        "minimum-time-on-page": whole_number(100, U63, _MS),
        "max-domain-requests": whole_number(1, U32),
        "discovered-domain-requests": whole_number(1, U32),
        "workers": whole_number(0, _MOST_WORKERS),
        "max-active-domains": whole_number(1, 100_000),
        "jobs-per-domain": whole_number(0, 10_000),
        "head-requests": checks.one_of("always", "auto", "never"),
        "on-429": checks.one_of("suspend", "wait"),
        "max-retry-after": whole_number(0, U63, _MS),
        "retries": whole_number(0, 100),
        "retry-delay": whole_number(0, U63, _MS),
        "robots-unreachable": checks.one_of("fail", "allow"),
        "robots-retries": whole_number(0, 100),
        "robots-retry-delay": whole_number(0, U63, _MS),
        "max-crawl-delay": whole_number(0, U63, _MS),
        "obey-nofollow": checks.yes_or_no,
        "max-links-per-page": whole_number(1, 10_000_000),
        "tracking-parameters": checks.tracking_parameters,
        "link-text": checks.yes_or_no,
        "order": checks.one_of("depth", "priority"),
    },
    "user-agent": {
        "crawler-name": checks.crawler_name,
        "crawler-version": checks.crawler_version,
        "contact-url": checks.contact_url,
        "contact-email": checks.contact_email,
    },
    "output": {
        "database-path": checks.path_text,
        "summary-path": checks.path_text,
        "workspace-path": checks.path_text,
    },
    "limits": {
        "max-pages": whole_number(0, U32),
        "max-domains": whole_number(0, U32),
        "max-duration": checks.seconds,
        "max-bytes": checks.size_in_bytes,
    },
    "resilience": {
        "breaker-failures": whole_number(0, 1000),
        "breaker-cooldown": checks.seconds,
        "breaker-longest-cooldown": checks.seconds,
        "breaker-successes": whole_number(1, 1000),
        "breaker-counts": checks.failure_words,
        "breaker-last-wait": checks.seconds_or_none,
        "suspicion": whole_number(1, 1000),
        "probe": checks.probes,
        "probe-every": checks.seconds,
        "give-up-after": checks.seconds_or_none,
        "stall-after": checks.seconds_or_none,
        "max-memory": checks.size_in_bytes,
    },
    "network": {
        "ca-bundle": checks.path_text,
        "allow-private-addresses": checks.yes_or_no,
        "connect-timeout": whole_number(1, 3_600_000, _MS),
        "read-timeout": whole_number(1, 3_600_000, _MS),
        "total-timeout": whole_number(1, 86_400_000, _MS),
        "max-body-size": whole_number(1024, 2**31 - 1, " of bytes"),
        "processing-timeout": whole_number(1000, 3_600_000, _MS),
        "parse-memory": whole_number(16 * 1024 * 1024, 2**40, " of bytes"),
        "dns-cache-time": whole_number(0, U63, _MS),
        "max-idle-connections": whole_number(0, 10_000),
    },
    "traps": {
        "max-url-length": whole_number(0, U32),
        "max-path-depth": whole_number(0, U32),
        "max-path-repeats": whole_number(0, U32),
        "max-query-variants": whole_number(0, U32),
        "max-similar-paths": whole_number(0, U32),
        "max-subdomains": whole_number(0, U32),
    },
    "validation": {
        "enabled": checks.yes_or_no,
        "follow-rejected": checks.yes_or_no,
        "learn-404": checks.yes_or_no,
        "ignore": checks.rejection_reasons,
    },
    "discovery": {
        "sitemaps": checks.yes_or_no,
        "pagination": checks.one_of("off", "label", "speculate"),
        "max-list-guesses": whole_number(1, 1000),
        "archives": checks.yes_or_no,
        "max-archive-pages": whole_number(1, 10_000),
        "elsewhere": checks.yes_or_no,
    },
    "revisit": {
        "schedule": checks.revisit_schedule,
        "first-interval": checks.seconds,
        "shortest-interval": checks.seconds,
        "longest-interval": checks.seconds,
    },
    "store": {
        "html": checks.yes_or_no,
        "file-mode": checks.file_mode,
        "near-duplicates": checks.yes_or_no,
    },
    "logs": {
        "pages": checks.yes_or_no,
        "metadata": checks.yes_or_no,
        "metrics": checks.yes_or_no,
        "metrics-every": checks.seconds,
    },
    "engine": {
        "url": checks.engine_url,
        "lease": checks.lease_seconds,
        "results": whole_number(0, U32, " of runs"),
        "archive": checks.path_text,
    },
    "scope": {
        "allow": checks.key_patterns,
        "deny": checks.key_patterns,
    },
    "spool": {
        "segment-size": whole_number(1024, 2**31 - 1, " of bytes"),
        "results": whole_number(0, U32),
        "max-backlog": whole_number(0, U32),
        "max-backlog-bytes": checks.size_in_bytes,
        "min-free-disk": checks.size_in_bytes,
    },
    "retention": {
        "results": whole_number(0, U32, " of runs"),
        "blobs": checks.seconds_or_none,
        "logs": checks.seconds_or_none,
        "metadata": checks.seconds_or_none,
        "quarantine": checks.seconds_or_none,
        "summaries": checks.seconds_or_none,
        "run-maps": checks.seconds_or_none,
        "aside": checks.seconds_or_none,
    },
}
_LISTS = {
    "quality": ("domain", "path", "seeds", "seeds-file", "allow", "deny", "note", "tags"),
    "blacklist": ("domain", "note", "tags"),
    "stub": ("domain", "note", "tags"),
    "garbage": ("name", "text", "selector", "verdict"),
    "extract": ("name", "selector", "domain", "page-type"),
    "page-type": ("name", "pattern"),
    "cap": ("name", "pattern", "max-pages", "per"),
    "hook": ("name", "url", "events", "secret", "command", "to", "from"),
}
_SECRETS = ("engine.url",)  # a mistake in one does not show it
_UNKNOWN = "an unknown key"
_MOST_ORIGINS = 2**16 - 1  # the map numbers them in 16 bits
_TOP = (*_TABLES, *_LISTS, "workspace")


class Mistake(NamedTuple):
    """One mistake: its place, the value found there, the values allowed there."""

    path: str
    found: str
    allowed: str

    def __str__(self) -> str:
        if self.found == _UNKNOWN:
            return f"{self.path}: {self.found}; {self.allowed}"
        return f"{self.path}: found {self.found}; allowed: {self.allowed}"


class ConfigError(UsageError):
    """The configuration cannot be used. `mistakes` holds every one; the text lists them all, for people."""

    def __init__(self, source: Path | str, mistakes: Iterable[Mistake] = (), sentence: str | None = None) -> None:
        self.source = Path(source)
        self.mistakes = list(mistakes)
        head = sentence or f"{source} has {counted(len(self.mistakes), 'mistake')}:"
        super().__init__("\n".join([head, *(f"  {mistake}" for mistake in self.mistakes)]))


def load(path: Path | str, *, workspace: Path | None = None, workers: int | None = None) -> Config:
    """The configuration in a TOML file. Raises ConfigError.

    `workspace` and `workers` come from the command line and win over the file.
    """
    path = Path(path)
    return load_text(path, read_text(path), workspace=workspace, workers=workers)


def load_text(path: Path, text: str, *, workspace: Path | None = None, workers: int | None = None) -> Config:
    """The configuration that this text would be in the file `path`. Raises ConfigError."""
    return _Loader(path).config(_parse(path, text), workspace, workers)


def load_values(values: Mapping[str, Any], *, workspace: Path | None = None) -> Config:
    """The configuration that a file with these tables and keys would be, in the current folder. Raises ConfigError."""
    found = _Loader(Path("the given config")).config(dict(values), workspace, None)
    return replace(found, source=None)


# -- the file ----------------------------------------------------------------------------------------------


def read_text(path: Path) -> str:
    """The text of a config file, without a byte order mark. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except FileNotFoundError:
        hint = f"`sumi-ripple init {path}` writes one to start from"
        raise ConfigError(path, sentence=f"there is no config file {path}; {hint}") from None
    except IsADirectoryError:
        raise ConfigError(path, sentence=f"{path} is a folder, not a config file") from None
    except (OSError, ValueError) as problem:
        words = getattr(problem, "strerror", None) or str(problem)
        raise ConfigError(path, sentence=f"the config file {path} cannot be read: {words}") from None
    if len(content) > _MOST_BYTES:
        raise ConfigError(path, sentence=f"{path} is too large for a config file (over 16 MiB)")
    if b"\0" in content:
        raise ConfigError(path, sentence=f"{path} is a binary file, not a TOML config")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        sentence = f"{path} is not UTF-8 text (line {line}); save it as UTF-8"
        raise ConfigError(path, sentence=sentence) from None


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as problem:
        line = without_credentials(text.split("\n")[problem.lineno - 1].strip()) if problem.lineno else ""
        where = f"line {problem.lineno}, column {problem.colno}"
        raise ConfigError(path, [Mistake(where, _show(line), f"TOML ({problem.msg})")]) from None
    except (RecursionError, ValueError) as problem:
        words = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
        raise ConfigError(path, sentence=f"{path} is not usable TOML: {words}") from None


# -- from TOML to settings ---------------------------------------------------------------------------------


class _Loader:
    """Turns the dicts of one file into settings and collects every mistake."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._folder = _absolute(path.parent)
        self._mistakes: list[Mistake] = []
        self._notes: list[str] = []
        self._entry_notes: dict[tuple[str, str], EntryNote] = {}

    def config(self, top: dict[str, Any], workspace: Path | None, workers: int | None) -> Config:
        self._know(top, _TOP, "")
        tables = {name: self._table(top, name) for name in _TABLES}
        tables["network"]["resolve"] = self._resolve(top)
        own_workspace = tables["output"].pop("workspace_path", None)
        crawler = CrawlerSettings(**_with_budgets(tables["crawler"]))
        if workers is not None:
            crawler = replace(crawler, workers=self._workers(workers))
        quality = self._quality(top)
        blacklist, stub = self._patterns(top, "blacklist"), self._patterns(top, "stub")
        garbage = self._garbage(top)
        page_types, caps = self._page_types(top), self._caps(top)
        extract = self._extract(top, {rule.name for rule in page_types})
        hooks = self._hooks(top)
        output, network = self._output(tables["output"]), self._network(tables["network"])
        revisit = self._revisit(tables["revisit"])
        engine = self._engine(tables["engine"])
        home = self._workspace(top, workspace, own_workspace, output.database_path)
        if self._mistakes:
            raise ConfigError(self._path, self._mistakes)
        return Config(
            crawler=crawler,
            user_agent=UserAgentSettings(**tables["user-agent"]),
            output=output,
            network=network,
            traps=TrapSettings(**tables["traps"]),
            spool=SpoolSettings(**tables["spool"]),
            logs=LogSettings(**tables["logs"]),
            retention=RetentionSettings(**tables["retention"]),
            limits=LimitSettings(**tables["limits"]),
            resilience=ResilienceSettings(**tables["resilience"]),
            validation=ValidationSettings(**tables["validation"]),
            garbage=garbage,
            discovery=DiscoverySettings(**tables["discovery"]),
            revisit=revisit,
            store=StoreSettings(**tables["store"]),
            engine=engine,
            scope=ScopeSettings(**tables["scope"]),
            page_types=page_types,
            extract=extract,
            caps=caps,
            hooks=hooks,
            quality=quality,
            blacklist=blacklist,
            stub=stub,
            workspace=home,
            is_workspace_given=workspace is not None,
            source=_absolute(self._path),
            notes=tuple(self._notes),
            entry_notes=tuple(self._entry_notes.values()),
        )

    # -- the plain tables ------------------------------------------------------------------------------

    def _table(self, top: dict[str, Any], name: str) -> dict[str, Any]:
        """The checked values of one table, by field name; mistakes are left out and collected."""
        table = self._dict(top.get(name, {}), name)
        known = _TABLES[name]
        self._know(table, (*known, "resolve") if name == "network" else tuple(known), name)
        values = {}
        for key, value in table.items():
            if key in known:
                checked = self._check(known[key], value, f"{name}.{key}")
                if checked is not None:
                    values[key.replace("-", "_")] = checked
        return values

    def _resolve(self, top: dict[str, Any]) -> tuple[tuple[str, str], ...]:
        network = top.get("network")
        table = network.get("resolve", {}) if isinstance(network, dict) else {}
        pairs = []
        for pattern, value in self._dict(table, "network.resolve").items():
            if isinstance(value, dict) and pattern != "*":
                # `example.com = …` without quotes is example → com in TOML.
                self._wrong(f"network.resolve.{_key(pattern)}", value, f'a pattern in quotes: "{pattern}.…" = "…"')
                continue
            host = self._check(checks.host_pattern, pattern, f"network.resolve.{_key(pattern)}")
            target = self._check(checks.endpoint, value, f"network.resolve.{_key(pattern)}")
            if host is not None and target is not None:
                pairs.append((host, target))
        return tuple(pairs)

    def _output(self, values: dict[str, Any]) -> OutputSettings:
        defaults = OutputSettings()
        database = self._file("output.database-path", values.get("database_path", str(defaults.database_path)))
        summary = self._file("output.summary-path", values.get("summary_path", str(defaults.summary_path)))
        if database == summary:
            self._wrong("output.summary-path", str(summary), "another file than output.database-path")
        return OutputSettings(database, summary)

    def _revisit(self, values: dict[str, Any]) -> RevisitSettings:
        found = RevisitSettings(**values)
        if not found.shortest_interval <= found.longest_interval:
            self._wrong(
                "revisit.shortest-interval",
                values.get("shortest_interval", found.shortest_interval),
                f"at most revisit.longest-interval, {found.longest_interval:,} seconds",
            )
        return found

    def _file(self, path: str, text: str) -> Path:
        place = self._place(text)
        if place.is_dir():
            self._wrong(path, text, "a file; there is a folder at that place")
        return place

    def _network(self, values: dict[str, Any]) -> NetworkSettings:
        bundle = values.get("ca_bundle")
        if bundle is not None:
            values["ca_bundle"] = place = self._place(bundle)
            if not place.is_file():
                self._wrong("network.ca-bundle", bundle, f"a file of certificates (PEM); there is none at {place}")
        return NetworkSettings(**values)

    def _engine(self, values: dict[str, Any]) -> EngineSettings:
        archive = values.get("archive")
        if archive is not None:
            values["archive"] = place = self._place(archive)
            if place.exists() and not place.is_dir():
                self._wrong("engine.archive", archive, f"a folder, or a place for one; {place} is something else")
        return EngineSettings(**values)

    def _workspace(self, top: dict[str, Any], given: Path | None, own: str | None, database: Path) -> Path:
        """--workspace, else [output] workspace-path, else `workspace` beside the config file.

        A crawl of this config that lies in ./workspace is found too: that was the default once.
        """
        if given is not None:
            path, text, place = "--workspace", str(given), _absolute(given.expanduser())
        elif own is not None:
            path, text, place = "output.workspace-path", own, self._place(own)
        elif "workspace" in top:
            path, text = "workspace", self._check(checks.path_text, top["workspace"], "workspace")
            place = self._place(text) if text is not None else Path()
        else:
            path, text, place = "workspace", "workspace", self._folder / "workspace"
            here = _absolute(Path("workspace"))
            if here != place and not is_crawl_of(place, database) and is_crawl_of(here, database):
                place = here
        if text is not None and place.exists() and not place.is_dir():
            self._wrong(path, text, f"a folder, or a place for one; {place} is something else")
        return place

    def _workers(self, workers: int) -> int:
        checked = self._check(whole_number(1, _MOST_WORKERS), workers, "--workers")
        return 0 if checked is None else int(checked)

    # -- the lists -------------------------------------------------------------------------------------

    def _quality(self, top: dict[str, Any]) -> tuple[QualityEntry, ...]:
        entries: dict[str, QualityEntry] = {}
        tables = self._entries(top, "quality")
        if not tables and "quality" not in top:
            self._mistakes.append(Mistake("quality", "nothing", "at least one [[quality]] with a domain and its seeds"))
        for path, table in tables:
            part = self._check(checks.part_path, table["path"], f"{path}.path") if "path" in table else ""
            pattern = self._domain(path, table, part or "")
            scope = self._scope(path, table)
            seeds = self._seeds(path, table, pattern, part or "")
            if pattern is None or part is None:
                continue
            entry = QualityEntry(pattern, tuple(seeds), part, scope)
            before = entries.get(entry.name)
            if before is not None:
                self._notes.append(f"{path}: {entry.name} is in the quality list twice; its seeds were put together")
                entry = _together(before, entry)
            entries[entry.name] = entry
        if len(entries) > _MOST_ORIGINS:
            self._wrong("quality", tables, f"at most {_MOST_ORIGINS:,} entries; a wildcard may stand for many")
        return tuple(entries.values())

    def _scope(self, path: str, table: dict[str, Any]) -> ScopeSettings:
        names = [name for name in ("allow", "deny") if name in table]
        found = {name: self._check(checks.key_patterns, table[name], f"{path}.{name}") for name in names}
        return ScopeSettings(**{name: patterns for name, patterns in found.items() if patterns is not None})

    def _seeds(self, path: str, table: dict[str, Any], pattern: str | None, part: str) -> list[str]:
        """The seeds of an entry, listed and from its file; without either, the front page of its domain or part."""
        places: list[tuple[str, Any]] = []
        found = table.get("seeds")
        if found is not None and (not isinstance(found, list) or not found):
            self._wrong(f"{path}.seeds", found, 'a list of https URLs, not empty, like ["https://example.com/"]')
            return []
        places += [(f"{path}.seeds[{index}]", value) for index, value in enumerate(found or [])]
        if "seeds-file" in table:
            places += self._seeds_of_file(f"{path}.seeds-file", table["seeds-file"])
        elif found is None and pattern is not None:
            places.append((f"{path}.seeds", f"https://{pattern.removeprefix('*.')}{part}/"))
        seeds: list[str] = []
        for place, value in places:
            seed = self._check(checks.seed, value, place)
            if seed is None:
                continue
            if pattern is not None and not matches(pattern, domain_of(seed)):
                self._wrong(place, value, f"a URL inside this entry's domain, {pattern}")
            elif part and not is_below(part, normalize(seed)):
                self._wrong(place, value, f"a URL inside this entry's path, {part}/")
            elif seed in seeds:
                self._notes.append(f"{place}: {seed} is there twice")
            else:
                seeds.append(seed)
        return seeds

    def _seeds_of_file(self, path: str, value: Any) -> list[tuple[str, Any]]:
        """(place, URL) of a file with one URL a line; `#` begins a comment."""
        text = self._check(checks.path_text, value, path)
        if text is None:
            return []
        place = self._place(text)
        try:
            lines = place.read_text("utf-8-sig").splitlines()
        except (OSError, ValueError) as problem:
            words = getattr(problem, "strerror", None) or "it is not UTF-8 text"
            self._wrong(path, value, f"a file with one URL a line; {place} cannot be read: {words}")
            return []
        urls = [(number, line.partition(" #")[0].strip()) for number, line in enumerate(lines, 1)]
        found = [(f"{path}, line {number}", url) for number, url in urls if url and not url.startswith("#")]
        if not found:
            self._wrong(path, value, f"a file with one URL a line; {place} holds none")
        return found

    def _patterns(self, top: dict[str, Any], name: str) -> tuple[str, ...]:
        patterns: dict[str, None] = {}
        for path, table in self._entries(top, name):
            pattern = self._domain(path, table)
            if pattern in patterns:
                self._notes.append(f"{path}: {pattern} is there twice")
            elif pattern is not None:
                patterns[pattern] = None
        return tuple(patterns)

    def _garbage(self, top: dict[str, Any]) -> tuple[GarbageRule, ...]:
        rules: dict[str, GarbageRule] = {}
        for path, table in self._entries(top, "garbage"):
            name = self._check(checks.garbage_name, table.get("name"), f"{path}.name")
            verdict = self._check(checks.one_of("soft", "hard"), table.get("verdict", "soft"), f"{path}.verdict")
            sign = {}
            for key, check in (("text", checks.garbage_text), ("selector", checks.selector)):
                if key in table:
                    sign[key] = self._check(check, table[key], f"{path}.{key}")
            if len(sign) != 1:
                found = "both text and selector" if sign else "neither text nor selector"
                self._mistakes.append(Mistake(path, found, "one of them; two signs are two entries"))
            elif name in rules:
                self._wrong(f"{path}.name", name, "a name that no other [[garbage]] has")
            elif name is not None and verdict is not None and None not in sign.values():
                rules[name] = GarbageRule(name, verdict, **sign)
        return tuple(rules.values())

    def _page_types(self, top: dict[str, Any]) -> tuple[PageTypeRule, ...]:
        rules: list[PageTypeRule] = []
        for path, table in self._entries(top, "page-type"):
            name = self._check(checks.rule_name, table.get("name"), f"{path}.name")
            pattern = self._check(checks.pattern_text, table.get("pattern"), f"{path}.pattern")
            if name is not None and pattern is not None:
                rules.append(PageTypeRule(name, pattern))
        return tuple(dict.fromkeys(rules))

    def _extract(self, top: dict[str, Any], types: set[str]) -> tuple[ExtractRule, ...]:
        rules: list[ExtractRule] = []
        for path, table in self._entries(top, "extract"):
            name = self._check(checks.field_name, table.get("name"), f"{path}.name")
            selector = self._check(checks.field_selector, table.get("selector"), f"{path}.selector")
            domain = self._check(checks.domain_pattern, table["domain"], f"{path}.domain") if "domain" in table else ""
            page_type = table.get("page-type", "")
            if page_type != "" and page_type not in types:
                known = ", ".join(f'"{word}"' for word in sorted(types)) or "there is none yet"
                self._wrong(f"{path}.page-type", page_type, f"the name of a [[page-type]]: {known}")
            elif name is not None and selector is not None and domain is not None:
                rules.append(ExtractRule(name, selector, domain, page_type))
        return tuple(dict.fromkeys(rules))

    def _caps(self, top: dict[str, Any]) -> tuple[CapRule, ...]:
        rules: dict[str, CapRule] = {}
        for path, table in self._entries(top, "cap"):
            name = self._check(checks.rule_name, table.get("name"), f"{path}.name")
            pattern = self._check(checks.pattern_text, table.get("pattern"), f"{path}.pattern")
            most = self._check(whole_number(1, U32), table.get("max-pages"), f"{path}.max-pages")
            groups = key_pattern(pattern).groups if pattern is not None else ()
            per = table.get("per", "")
            per = str(per) if isinstance(per, int) and not isinstance(per, bool) else per
            if pattern is not None and "per" in table and (not isinstance(per, str) or per not in groups):
                known = ", ".join(f'"{group}"' for group in groups) or "the pattern has none, like (?P<user>[^/]+)"
                self._wrong(f"{path}.per", table["per"], f"a captured group of the pattern: {known}")
            elif name in rules:
                self._wrong(f"{path}.name", name, "a name that no other [[cap]] has")
            elif name is not None and pattern is not None and most is not None:
                rules[name] = CapRule(name, pattern, most, per)
        return tuple(rules.values())

    def _hooks(self, top: dict[str, Any]) -> tuple[HookRule, ...]:
        rules: dict[str, HookRule] = {}
        for path, table in self._entries(top, "hook"):
            events = self._check(checks.hook_events, table.get("events", list(checks.USUAL_EVENTS)), f"{path}.events")
            if ("url" in table) == ("command" in table):
                found = "both url and command" if "url" in table else "neither url nor command"
                self._mistakes.append(Mistake(path, found, "one of them: a POST, or an e-mail to a local command"))
                continue
            keys = {"url": checks.hook_url, "secret": checks.hook_secret, "command": checks.command}
            keys |= {"to": checks.mail_address, "from": checks.mail_address}
            values: dict[str, Any] = {}
            for key, check in keys.items():
                if key == "secret" and key in table:  # a mistake in a secret does not show it
                    values[key] = self._check_secret(table[key], path)
                elif key in table or (key in ("to", "from") and "command" in table):
                    values[key] = self._check(check, table.get(key), f"{path}.{key}")
            usual = checks.hook_name_of(str(values.get("url") or (values.get("command") or ("",))[0]), rules)
            name = self._check(checks.rule_name, table["name"], f"{path}.name") if "name" in table else usual
            if name in rules:
                self._wrong(f"{path}.name", name, "a name that no other [[hook]] has")
            elif name is not None and events is not None and None not in values.values():
                rules[name] = HookRule(
                    name, events, **{"sender" if key == "from" else key: value for key, value in values.items()}
                )
        return tuple(rules.values())

    def _check_secret(self, value: Any, path: str) -> str | None:
        try:
            return checks.hook_secret(value)
        except Bad as problem:
            self._mistakes.append(Mistake(f"{path}.secret", "something else", str(problem)))
            return None

    def _domain(self, path: str, table: dict[str, Any], part: str = "") -> str | None:
        pattern: str | None = self._check(checks.domain_pattern, table.get("domain"), f"{path}.domain")
        note = self._check(checks.note, table.get("note", ""), f"{path}.note")
        tags = self._check(checks.tags, table.get("tags", []), f"{path}.tags")
        if pattern is not None and (note or tags):
            name = path.partition("[")[0]
            entry = f"{pattern}{part}/" if part else pattern
            self._entry_notes.setdefault((name, entry), EntryNote(name, entry, note or "", tags or ()))
        return pattern

    def _entries(self, top: dict[str, Any], name: str) -> list[tuple[str, dict[str, Any]]]:
        found = top.get(name, [])
        if isinstance(found, dict) or not isinstance(found, list) or not all(isinstance(e, dict) for e in found):
            self._wrong(name, found, f"a list of tables: write [[{name}]], with two brackets, before each entry")
            return []
        if name == "quality" and not found and name in top:
            self._wrong(name, found, "at least one [[quality]] with a domain and its seeds")
        entries = [(f"{name}[{index}]", table) for index, table in enumerate(found)]
        for path, table in entries:
            self._know(table, _LISTS[name], path)
        return entries

    # -- the small print -------------------------------------------------------------------------------

    def _check(self, check: Check, value: Any, path: str) -> Any:
        try:
            return check(value)
        except Bad as problem:
            if path in _SECRETS:
                self._mistakes.append(Mistake(path, "something else", str(problem)))
            else:
                self._wrong(path, value, str(problem))
            return None

    def _dict(self, value: Any, path: str) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        self._wrong(path, value, f"a table: [{path}]")
        return {}

    def _know(self, table: dict[str, Any], known: tuple[str, ...], path: str) -> None:
        for key in table:
            if key not in known:
                place = f"{path}.{_key(key)}" if path else _key(key)
                self._mistakes.append(Mistake(place, _UNKNOWN, _instead(key, known, path)))

    def _place(self, text: str) -> Path:
        return _absolute(self._folder / Path(text).expanduser())

    def _wrong(self, path: str, found: Any, allowed: str) -> None:
        self._mistakes.append(Mistake(path, _show(found), allowed))


def _with_budgets(values: dict[str, Any]) -> dict[str, Any]:
    """Where neither budget is given, domains that are not in the quality list get a tenth of the default.

    A single number holds for all domains, as it always did.
    """
    if "max_domain_requests" in values or "discovered_domain_requests" in values:
        return values
    return {**values, "discovered_domain_requests": max(CrawlerSettings().max_domain_requests // 10, _LEAST_BUDGET)}


def _together(one: QualityEntry, other: QualityEntry) -> QualityEntry:
    """An entry that the file has twice: all seeds and all rules of both."""
    scope = ScopeSettings(
        tuple(dict.fromkeys((*one.scope.allow, *other.scope.allow))),
        tuple(dict.fromkeys((*one.scope.deny, *other.scope.deny))),
    )
    return replace(one, seeds=tuple(dict.fromkeys((*one.seeds, *other.seeds))), scope=scope)


def _absolute(path: Path) -> Path:
    """Without `..`, but with its symbolic links: a linked config file means the folder where the link lies."""
    return Path(os.path.normpath(path.absolute()))


def _instead(key: str, known: tuple[str, ...], path: str) -> str:
    """The known key that an unknown one resembles, as a hint."""
    plain = key.lower().replace("_", "-")
    close = difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
    if close:
        return f'did you mean "{close[0]}"?'
    homes = [name for name, table in _TABLES.items() if plain in table and name != path]
    if homes:
        return f"did you mean [{homes[0]}] {plain}?"
    return "the keys here are " + ", ".join(known)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _show(name)


def _show(value: Any) -> str:
    """A value as it may be printed: short, one line, no terminal tricks."""
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        if not value or len(value) > 5 or any(isinstance(item, (list, dict)) for item in value):
            return "an empty list" if not value else f"a list of {len(value):,}"
        return f"[{', '.join(_show(item) for item in value)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        short = cut(value, 80)
        return '"' + "".join(c if c.isprintable() and c != '"' else ascii(c)[1:-1] for c in short) + '"'
    text = str(value)
    return cut(text, 40)


__all__ = ["TEMPLATE", "ConfigError", "Mistake", "describe", "load", "load_text", "read_text", "warnings"]
