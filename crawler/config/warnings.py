"""PURE. Warnings about a valid configuration: settings that a person will regret."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from crawler.model.settings import Config
from crawler.model.shown_text import size_words
from crawler.model.urls import domain_of, normalize, without_www
from crawler.rules.lists import Classifier, DomainClass, PatternList
from crawler.rules.page_rules import PageRules
from crawler.rules.subdomains import is_public_suffix

_SMALL_DELAY = 500
_LARGE_BUDGET = 100_000
_LARGE_DEPTH = 8
_SMALL_MEMORY = 256 * 1024 * 1024
_MOST_OF_A_KIND = 20


def warnings(config: Config) -> list[str]:
    """One sentence for each setting that is valid but harmful, the worst first."""
    return [
        *_at_most(_caught_seeds(config)),
        *_at_most(_seeds_out_of_scope(config)),
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


def _seeds_out_of_scope(config: Config) -> Iterable[str]:
    rules = PageRules(config)
    for index, entry in enumerate(config.quality if rules.has_scope else ()):
        for seed in entry.seeds:
            rule = rules.scope_rule(normalize(seed, config.crawler.tracking_parameters), domain_of(seed))
            if rule is not None:
                yield f"quality[{index}]: the seed {seed} will not be visited: it is out of scope ({rule})"


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
            if (
                pattern.startswith("*.")
                and pattern not in ("*.localhost", "*.test")
                and is_public_suffix(pattern.removeprefix("*."))
            ):
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
    memory = config.resilience.max_memory
    if 0 < memory < _SMALL_MEMORY:
        yield (
            f"[resilience] max-memory = {size_words(memory)} is about what a stage has when it starts; the crawl may"
            f" end with exit code 70 again and again ({size_words(_SMALL_MEMORY)} or more is usual)"
        )
    discovery = config.discovery
    if discovery.elsewhere and not discovery.sitemaps and discovery.pagination != "speculate":
        yield '[discovery] elsewhere has no effect without sitemaps = true or pagination = "speculate"'
    if config.network.allow_private_addresses:
        yield "[network] allow-private-addresses lets any page lead the crawler into this machine's own network"


def _lists(config: Config) -> Sequence[tuple[str, tuple[str, ...]]]:
    """The lists, the strongest first."""
    quality = tuple(entry.domain for entry in config.quality)
    return ("blacklist", config.blacklist), ("stub list", config.stub), ("quality list", quality)


def _plain(pattern: str) -> str:
    star = "*." if pattern.startswith("*.") else ""
    return star + without_www(pattern.removeprefix("*."))
