"""The configuration: every rule of seed 000 §2.2, every mistake at once, and what is said about a valid one."""

from __future__ import annotations

import dataclasses
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crawler.config import checks
from crawler.config import load as config_module
from crawler.config.describe import describe
from crawler.config.last_used import write_last_used
from crawler.config.load import ConfigError, Mistake, load
from crawler.config.template import TEMPLATE
from crawler.config.warnings import warnings
from crawler.model import recorded_settings
from crawler.model.settings import (
    Config,
    CrawlerSettings,
    DiscoverySettings,
    EngineSettings,
    ExtractRule,
    GarbageRule,
    LimitSettings,
    LogSettings,
    NetworkSettings,
    OutputSettings,
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
from crawler.workspace.opening import open_workspace

QUALITY = '[[quality]]\ndomain = "example.com"\nseeds = ["https://example.com/"]\n'
SEED_000 = """
[crawler]
max-depth = 3
max-concurrent-pages-open = 10
minimum-time-on-page = 1000          # milliseconds between requests to same domain
max-domain-requests = 500            # per run, per domain

[user-agent]
crawler-name = "SumiRipple"
crawler-version = "1.0"
contact-url = "https://example.com/about-our-crawler"
contact-email = "crawler-admin@example.com"

[output]
database-path = "./sumi-ripple.db"
summary-path = "./crawl-summary.md"

[[quality]]
domain = "example.com"
seeds = [
    "https://example.com/",
    "https://example.com/blog/"
]

[[quality]]
domain = "*.another-site.org"        # Wildcard: matches all subdomains
seeds = [
    "https://blog.another-site.org/",
    "https://docs.another-site.org/getting-started"
]

[[blacklist]]
domain = "ads.example.net"
[[blacklist]]
domain = "*.tracking-service.com"
[[blacklist]]
domain = "known-spam-site.org"

[[stub]]
domain = "github.com"
[[stub]]
domain = "*.wikipedia.org"
[[stub]]
domain = "twitter.com"
"""


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def read(text: str, **options: Any) -> Config:
        path = tmp_path / "my.toml"
        path.write_text(text, encoding="utf-8")
        return load(path, **options)

    return read


@pytest.fixture
def mistakes(read: Any) -> Any:
    def mistakes(text: str, **options: Any) -> list[Mistake]:
        with pytest.raises(ConfigError) as caught:
            read(text, **options)
        for mistake in caught.value.mistakes:
            assert str(mistake) in str(caught.value)
        return caught.value.mistakes

    return mistakes


def one(found: list[Mistake]) -> Mistake:
    assert len(found) == 1, found
    return found[0]


# -- a good file -------------------------------------------------------------------------------------------


def test_section_2_1_the_example_loads(read: Any, tmp_path: Path) -> None:
    config = read(SEED_000)
    assert config.crawler == CrawlerSettings(3, 10, 1000, 500)
    assert config.user_agent.header == (
        "SumiRipple/1.0 (+https://example.com/about-our-crawler; crawler-admin@example.com)"
    )
    assert config.output == OutputSettings(tmp_path / "sumi-ripple.db", tmp_path / "crawl-summary.md")
    assert [entry.domain for entry in config.quality] == ["example.com", "*.another-site.org"]
    assert config.quality[1].seeds == (
        "https://blog.another-site.org/",
        "https://docs.another-site.org/getting-started",
    )
    assert config.blacklist == ("ads.example.net", "*.tracking-service.com", "known-spam-site.org")
    assert config.stub == ("github.com", "*.wikipedia.org", "twitter.com")
    assert config.source == tmp_path / "my.toml"


def test_only_the_quality_list_is_needed_and_the_rest_has_its_defaults(read: Any) -> None:
    config = read(QUALITY)
    assert config.crawler == CrawlerSettings(discovered_domain_requests=50)
    assert config.limits == LimitSettings()
    assert config.user_agent == UserAgentSettings()
    assert config.network == NetworkSettings()
    assert config.traps == TrapSettings()
    assert config.spool == SpoolSettings()
    assert config.discovery == DiscoverySettings()


def test_every_setting_has_a_key_in_kebab_case_and_no_key_lacks_a_setting() -> None:
    classes = {
        "crawler": CrawlerSettings,
        "user-agent": UserAgentSettings,
        "output": OutputSettings,
        "network": NetworkSettings,
        "traps": TrapSettings,
        "spool": SpoolSettings,
        "retention": RetentionSettings,
        "limits": LimitSettings,
        "logs": LogSettings,
        "resilience": ResilienceSettings,
        "validation": ValidationSettings,
        "discovery": DiscoverySettings,
        "store": StoreSettings,
        "engine": EngineSettings,
        "scope": ScopeSettings,
        "revisit": RevisitSettings,
    }
    assert set(config_module._TABLES) == set(classes)
    for name, cls in classes.items():
        fields = {field.name.replace("_", "-") for field in dataclasses.fields(cls)} - {"resolve"}
        assert set(config_module._TABLES[name]) - {"workspace-path"} == fields


def test_every_default_is_a_value_that_its_key_allows() -> None:
    config = Config()
    for name, table in config_module._TABLES.items():
        group = getattr(config, name.replace("-", "_"))
        for key, check in table.items():
            value = getattr(group, key.replace("-", "_"), None)
            if value is None or key == "max-duration":  # none, and nothing to write for that
                continue
            if check in (checks.seconds, checks.seconds_or_none, checks.lease_seconds):
                value = f"{value}s" if value else value
            value = list(value) if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
            check(value)


def test_all_keys_can_be_set(read: Any, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("certificates")
    config = read(
        'workspace = "elsewhere"\n'
        '[crawler]\nworkers = 4\nhead-requests = "auto"\non-429 = "wait"\nrobots-unreachable = "allow"\n'
        'obey-nofollow = false\ntracking-parameters = ["sid", "x_*"]\n'
        '[network]\nca-bundle = "ca.pem"\nallow-private-addresses = true\n'
        '[network.resolve]\n"a.test" = "127.0.0.1:1"\n"*.test" = "[::1]:8443"\n"*" = "10.0.0.1"\n'
        "[traps]\nmax-path-depth = 0\n[spool]\nresults = 2\n" + QUALITY
    )
    assert config.workspace == tmp_path / "elsewhere"
    assert (config.crawler.workers, config.crawler.head_requests, config.crawler.on_429) == (4, "auto", "wait")
    assert config.crawler.tracking_parameters == ("sid", "x_*")
    assert config.network.ca_bundle == tmp_path / "ca.pem"
    # The first match wins, so the order of the file is kept.
    assert config.network.resolve == (("a.test", "127.0.0.1:1"), ("*.test", "[::1]:8443"), ("*", "10.0.0.1"))
    assert config.traps.max_path_depth == 0
    assert config.spool.results == 2


# -- §2.2, rule by rule ------------------------------------------------------------------------------------

_RULES: list[tuple[str, str, list[str], list[str]]] = [
    ("crawler", "max-depth", ["0", "1", "4294967295"], ["-1", "true", "1.0", '"3"', "4294967296", "[]", "1979-05-27"]),
    ("crawler", "max-concurrent-pages-open", ["1", "100"], ["0", "101", "false", "-5", "10.5"]),
    ("crawler", "minimum-time-on-page", ["100", "3600000"], ["99", "0", "-1", "true", "1e3", '"1000"']),
    ("crawler", "max-domain-requests", ["1", "1000000"], ["0", "-1", "nan", "true"]),
    ("crawler", "workers", ["0", "64"], ["-1", "65"]),
    ("crawler", "head-requests", ['"always"', '"auto"', '"never"'], ['"sometimes"', "true", '""', '"Always"']),
    ("crawler", "on-429", ['"suspend"', '"wait"'], ['"go on"', "429"]),
    ("crawler", "robots-unreachable", ['"fail"', '"allow"'], ['"deny"', "false"]),
    ("crawler", "obey-nofollow", ["true", "false"], ["1", '"true"']),
    (
        "crawler",
        "tracking-parameters",
        ["[]", '["utm_*", "ref"]', '["*"]'],
        ['"ref"', "[1]", '["a*b"]', '[""]', '["a=b"]'],
    ),
    (
        "user-agent",
        "crawler-name",
        ['"SumiRipple"', '"a"', '"my-crawler-2"'],
        ['""', '"my crawler"', '"a_b"', '"a/b"', '"ümlaut"', "7", '"a\\n"'],
    ),
    ("user-agent", "crawler-version", ['"1.0"', '"2.0-beta"'], ['""', "1.0", '"1 0"', '"1.0\\n"', '"(1)"']),
    (
        "user-agent",
        "contact-url",
        ['""', '"https://example.com/bot"', '"http://example.com/"'],
        [
            '"example.com"',
            '"mailto:a@example.com"',
            '"https://"',
            '"https://a b/"',
            '"https://example.com/\\n"',
            '"https://u:p@example.com/"',
            '"https://bücher.example/"',
            "1",
        ],
    ),
    (
        "user-agent",
        "contact-email",
        ['""', '"a@example.com"', '"a.b+c@mail.example.co.uk"'],
        [
            '"a"',
            '"@example.com"',
            '"a@"',
            '"a@b"',
            '"a b@example.com"',
            '"a@example..com"',
            '"a@@example.com"',
            '"a@example.com\\n"',
            "1",
        ],
    ),
    ("output", "database-path", ['"x.db"', '"/tmp/x.db"'], ['""', '" "', "1", '"a\\u0000b"']),
    ("network", "allow-private-addresses", ["true", "false"], ["1", '"yes"']),
    ("network", "connect-timeout", ["1", "60000"], ["0", "-1", "true"]),
    ("network", "max-body-size", ["1024", "10485760"], ["0", "1023"]),
    ("traps", "max-url-length", ["0", "2000"], ["-1", "true"]),
    ("spool", "segment-size", ["1024", "16777216"], ["0", "1023", "true"]),
    ("spool", "results", ["0", "3"], ["-1", "false"]),
]


@pytest.mark.parametrize(
    ("table", "key", "good", "bad"), _RULES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_section_2_2_each_field_takes_what_is_allowed_and_nothing_else(
    read: Any, mistakes: Any, table: str, key: str, good: list[str], bad: list[str]
) -> None:
    for value in good:
        read(f"[{table}]\n{key} = {value}\n{QUALITY}")
    for value in bad:
        mistake = one(mistakes(f"[{table}]\n{key} = {value}\n{QUALITY}"))
        assert mistake.path == f"{table}.{key}", value
        assert mistake.found and mistake.allowed


@pytest.mark.parametrize(
    ("written", "pattern"),
    [
        ("example.com", "example.com"),
        ("*.example.com", "*.example.com"),
        ("EXAMPLE.com", "example.com"),
        ("*.Bücher.example", "*.xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("example.com.", "example.com"),
        ("localhost", "localhost"),
        ("*.test", "*.test"),
        ("my_host.example", "my_host.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("www.example.com", "www.example.com"),
    ],
)
def test_section_2_2_domain_is_a_domain_or_a_wildcard_pattern(read: Any, written: str, pattern: str) -> None:
    assert read(f'[[blacklist]]\ndomain = "{written}"\n{QUALITY}').blacklist == (pattern,)


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ('""', ""),
        ("7", ""),
        ('"*"', "only stand in front"),
        ('"*."', ""),
        ('"*.*.example.com"', "only stand in front"),
        ('"a.*.com"', "only stand in front"),
        ('"*example.com"', "only stand in front"),
        ('"example.*"', "only stand in front"),
        ('"https://example.com"', '"example.com"?'),
        ('"https://www.example.com/x"', '"example.com"?'),
        ('"example.com/path"', "without port and path"),
        ('"example.com:8443"', "without port and path"),
        ('"exa mple.com"', ""),
        ('"-example.com"', ""),
        ('"example-.com"', ""),
        ('"a..b"', ""),
        ('".example.com"', ""),
        ('"user@example.com"', ""),
        ('"example.com?x"', ""),
        ('"1.2.3.4.5"', ""),
        ('"*.127.0.0.1"', ""),
        ('"0x7f.1"', ""),
        ('"%41.com"', ""),
        ('"' + "a" * 64 + '.com"', ""),
        ('"' + "a." * 130 + 'com"', ""),
        ('"\\u202Eexample.com"', ""),
    ],
)
def test_section_2_2_what_is_no_domain_is_a_mistake(mistakes: Any, written: str, hint: str) -> None:
    mistake = one(mistakes(f"[[stub]]\ndomain = {written}\n{QUALITY}"))
    assert mistake.path == "stub[0].domain"
    assert hint in mistake.allowed


def quality(domain: str, seeds: str) -> str:
    return f'[[quality]]\ndomain = "{domain}"\nseeds = {seeds}\n'


@pytest.mark.parametrize("seeds", ["[]", '"https://example.com/"', "7", "{}"])
def test_section_2_2_seeds_are_a_list_that_is_not_empty(mistakes: Any, seeds: str) -> None:
    assert one(mistakes(quality("example.com", seeds))).path == "quality[0].seeds"


def test_a_quality_entry_without_seeds_starts_from_its_front_page(read: Any) -> None:
    assert read('[[quality]]\ndomain = "example.com"').quality[0].seeds == ("https://example.com/",)
    assert read('[[quality]]\ndomain = "*.example.com"').quality[0].seeds == ("https://example.com/",)


def test_seeds_may_come_from_a_file(read: Any, mistakes: Any, tmp_path: Path) -> None:
    (tmp_path / "urls.txt").write_text("# ours\nhttps://example.com/a\n\nhttps://example.com/b  # the second\n")
    entry = '[[quality]]\ndomain = "example.com"\nseeds-file = "urls.txt"\n'
    assert read(entry).quality[0].seeds == ("https://example.com/a", "https://example.com/b")
    both = entry + 'seeds = ["https://example.com/"]\n'
    assert read(both).quality[0].seeds == ("https://example.com/", "https://example.com/a", "https://example.com/b")
    (tmp_path / "urls.txt").write_text("# nothing\nhttps://other.test/\nexample.com\n")
    assert [mistake.path for mistake in mistakes(entry)] == [
        "quality[0].seeds-file, line 2",
        "quality[0].seeds-file, line 3",
    ]
    (tmp_path / "urls.txt").write_text("# nothing\n")
    assert "holds none" in one(mistakes(entry)).allowed
    (tmp_path / "urls.txt").unlink()
    assert "cannot be read" in one(mistakes(entry)).allowed


def test_limits_are_numbers_durations_and_sizes(read: Any, mistakes: Any) -> None:
    config = read(f'[limits]\nmax-pages = 5\nmax-domains = 6\nmax-duration = "1h 30m"\nmax-bytes = "2 GB"\n{QUALITY}')
    assert config.limits == LimitSettings(5, 6, 5400, 2 * 10**9)
    found = mistakes(f'[limits]\nmax-pages = -1\nmax-duration = 6\nmax-bytes = "2 apples"\n{QUALITY}')
    assert [mistake.path for mistake in found] == ["limits.max-pages", "limits.max-duration", "limits.max-bytes"]
    assert one(mistakes(f'[limits]\nmax-duration = "0s"\n{QUALITY}')).path == "limits.max-duration"


def test_a_single_budget_holds_for_all_domains_and_none_gives_others_a_tenth(read: Any) -> None:
    def budgets(text: str) -> tuple[int, int]:
        crawler = read(f"[crawler]\n{text}\n{QUALITY}").crawler
        return crawler.budget(is_quality=True), crawler.budget(is_quality=False)

    assert budgets("") == (500, 50)
    assert budgets("max-domain-requests = 300") == (300, 300)
    assert budgets("max-domain-requests = 300\ndiscovered-domain-requests = 9") == (300, 9)
    one_number = read(f"[crawler]\nmax-domain-requests = 500\n{QUALITY}")
    assert one_number.map_hash == dataclasses.replace(one_number, crawler=CrawlerSettings()).map_hash


def test_section_2_2_a_quality_entry_without_a_domain_is_a_mistake(mistakes: Any) -> None:
    assert one(mistakes('[[quality]]\nseeds = ["https://example.com/"]')).path == "quality[0].domain"


@pytest.mark.parametrize(
    ("seed", "hint"),
    [
        ("http://example.com/a?b", '"https://example.com/a?b"?'),
        ("HTTP://example.com", '"https://example.com/"?'),
        ("example.com/a", '"https://example.com/a"?'),
        ("//example.com/", ""),
        ("/a", ""),
        ("", ""),
        ("https:example.com", ""),
        ("https://", ""),
        ("https://exa mple.com/", ""),
        ("https://user:pass@example.com/", '"https://example.com/"?'),
        ("ftp://example.com/", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_section_2_2_seeds_are_valid_https_urls(mistakes: Any, seed: str, hint: str) -> None:
    mistake = one(mistakes(quality("example.com", f'["https://example.com/", "{seed}"]')))
    assert mistake.path == "quality[0].seeds[1]"
    assert mistake.allowed.startswith("an https URL")
    assert hint in mistake.allowed


def test_seeds_become_wire_urls(read: Any) -> None:
    config = read(quality("*.example.com", '["https://WWW.Example.com/Dir/#x", " https://b.example.com:443/?b&a "]'))
    assert config.quality[0].seeds == ("https://www.example.com/Dir/", "https://b.example.com/?b&a")


def test_every_seed_lies_inside_its_own_entry(read: Any, mistakes: Any) -> None:
    found = mistakes(
        quality("example.com", '["https://blog.example.com/", "https://www.example.com/", "https://example.org/"]')
    )
    assert [mistake.path for mistake in found] == ["quality[0].seeds[0]", "quality[0].seeds[2]"]
    assert all("example.com" in mistake.allowed for mistake in found)
    read(quality("*.example.com", '["https://a.b.example.com/", "https://example.com/", "https://www.example.com/"]'))
    read(quality("www.example.com", '["https://example.com/"]'))


def test_a_config_without_a_quality_list_is_a_mistake(mistakes: Any) -> None:
    for text in ("", "quality = []", "[crawler]\nmax-depth = 1"):
        assert one(mistakes(text)).path == "quality"


@pytest.mark.parametrize("target", ["127.0.0.1:8443", "127.0.0.1", "[::1]:1", "[::1]", "::1", "10.0.0.1:65535"])
def test_network_resolve_takes_addresses(read: Any, target: str) -> None:
    assert read(f'{QUALITY}[network.resolve]\n"*" = "{target}"').network.resolve == (("*", target),)


@pytest.mark.parametrize(
    "line",
    [
        '"*" = "localhost:8443"',
        '"*" = "127.0.0.1:0"',
        '"*" = "127.0.0.1:65536"',
        '"*" = "127.0.0.1:"',
        '"*" = "[::1]8443"',
        '"*" = "[::1]:"',
        '"*" = "[127.0.0.1]:1"',
        '"*" = "127.1:80"',
        '"*" = "127.0.0.1:８４"',
        '"*" = 8443',
        '"a*" = "127.0.0.1:1"',
        '"https://a.test" = "127.0.0.1:1"',
        'a.test = "127.0.0.1:1"',
    ],
)
def test_network_resolve_takes_nothing_else(mistakes: Any, line: str) -> None:
    assert one(mistakes(f"{QUALITY}[network.resolve]\n{line}")).path.startswith("network.resolve.")


def test_a_ca_bundle_that_is_not_there_is_a_mistake(mistakes: Any, tmp_path: Path) -> None:
    mistake = one(mistakes(f'[network]\nca-bundle = "ca.pem"\n{QUALITY}'))
    assert mistake.path == "network.ca-bundle"
    assert str(tmp_path / "ca.pem") in mistake.allowed


def test_database_and_summary_are_two_files_and_no_folders(mistakes: Any, tmp_path: Path) -> None:
    assert one(mistakes(f'[output]\nsummary-path = "./x/../sumi-ripple.db"\n{QUALITY}')).path == "output.summary-path"
    (tmp_path / "folder").mkdir()
    assert one(mistakes(f'[output]\ndatabase-path = "folder"\n{QUALITY}')).path == "output.database-path"


# -- every mistake at once ---------------------------------------------------------------------------------


def test_every_mistake_is_reported_at_once_with_its_path(mistakes: Any) -> None:
    found = mistakes(
        """
        crawlr = 1
        [crawler]
        max-depth = true
        minimum-time-on-page = 5
        max_domain_requests = 3
        [user-agent]
        crawler-name = "my crawler"
        contact-email = "nobody"
        [output]
        database-pat = "x"
        [network]
        ca-bundle = "missing.pem"
        [network.resolve]
        "*" = "here"
        [[quality]]
        domain = "example.com"
        seeds = ["https://example.com/"]
        [[quality]]
        domain = "*example.org"
        seeds = ["http://example.org/"]
        colour = "red"
        [[blacklist]]
        [[stub]]
        domain = "a b"
        """
    )
    assert sorted(mistake.path for mistake in found) == sorted(
        [
            "crawlr",
            "crawler.max-depth",
            "crawler.minimum-time-on-page",
            "crawler.max_domain_requests",
            "user-agent.crawler-name",
            "user-agent.contact-email",
            "output.database-pat",
            "network.ca-bundle",
            'network.resolve."*"',
            "quality[1].domain",
            "quality[1].seeds[0]",
            "quality[1].colour",
            "blacklist[0].domain",
            "stub[0].domain",
        ]
    )


def test_the_message_counts_and_lists_the_mistakes(read: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        read(f"[crawler]\nmax-depth = -1\nmax-dept = 2\n{QUALITY}")
    assert str(caught.value).splitlines() == [
        f"{tmp_path / 'my.toml'} has 2 mistakes:",
        '  crawler.max-dept: an unknown key; did you mean "max-depth"?',
        "  crawler.max-depth: found -1; allowed: a whole number, 0 or more",
    ]


@pytest.mark.parametrize(
    ("text", "path", "hint"),
    [
        ("crawlers = 1", "crawlers", 'did you mean "crawler"?'),
        ("[crawler]\nmax_depth = 1", "crawler.max_depth", 'did you mean "max-depth"?'),
        ("[crawler]\nMAX-DEPTH = 1", "crawler.MAX-DEPTH", 'did you mean "max-depth"?'),
        ("[crawler]\nca-bundle = 1", "crawler.ca-bundle", "did you mean [network] ca-bundle?"),
        ("[useragent]", "useragent", 'did you mean "user-agent"?'),
        ('[[stub]]\ndomain = "a.test"\ndomains = 1', "stub[0].domains", 'did you mean "domain"?'),
        ("[spool]\nzzzzz = 1", "spool.zzzzz", "the keys here are segment-size, results"),
        ('[spool]\n"a b\\u001b" = 1', 'spool."a b\\x1b"', "the keys here are"),
    ],
)
def test_unknown_keys_are_mistakes_with_a_suggestion(mistakes: Any, text: str, path: str, hint: str) -> None:
    mistake = one(mistakes(f"{text}\n{QUALITY}"))
    assert (mistake.path, mistake.found) == (path, "an unknown key")
    assert hint in mistake.allowed


@pytest.mark.parametrize(
    ("text", "path"),
    [
        (f"crawler = 3\n{QUALITY}", "crawler"),
        (f"[[crawler]]\n{QUALITY}", "crawler"),
        (f"{QUALITY}[network]\nresolve = 3", "network.resolve"),
        ('[quality]\ndomain = "example.com"', "quality"),
        (f"stub = [1]\n{QUALITY}", "stub"),
        (f'blacklist = "a.test"\n{QUALITY}', "blacklist"),
        (f"workspace = 1\n{QUALITY}", "workspace"),
    ],
)
def test_a_value_where_a_table_belongs_is_a_mistake(mistakes: Any, text: str, path: str) -> None:
    assert one(mistakes(text)).path == path


def test_what_was_found_is_shown_short_and_without_terminal_tricks(mistakes: Any) -> None:
    mistake = one(mistakes(f'[crawler]\nhead-requests = "\\u001b[2J{"x" * 500}"\n{QUALITY}'))
    assert len(mistake.found) < 100
    assert mistake.found.startswith('"\\x1b[2Jxxx')
    assert one(mistakes(f"[crawler]\nhead-requests = [1, true]\n{QUALITY}")).found == "[1, true]"
    assert one(mistakes(f"[crawler]\nhead-requests = {{a = 1}}\n{QUALITY}")).found == "a table"


# -- the file itself ---------------------------------------------------------------------------------------


def test_a_syntax_error_names_its_line(mistakes: Any) -> None:
    mistake = one(mistakes("[crawler]\nmax-depth = = 3\n"))
    assert mistake.path == "line 2, column 13"
    assert mistake.found == '"max-depth = = 3"'
    assert one(mistakes("[crawler]\na = 1\na = 2\n")).path.startswith("line 3")
    one(mistakes("[crawler"))
    one(mistakes('a = "'))


def test_a_file_that_is_not_there_gets_one_sentence_and_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / "none.toml")
    assert caught.value.mistakes == []
    assert str(caught.value).startswith("there is no config file ")
    assert "sumi-ripple init" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x7fELF\0\0\0", "binary file"),
        ("a = 'ü'".encode("latin-1"), "not UTF-8 text (line 1)"),
        (b"a = 1\n\xff\n", "not UTF-8 text (line 2)"),
        ("a = 1".encode("utf-16"), "binary file"),
        (b"a = " + b"[" * 20_000, "nested too deeply"),
        (b"a = " + b"9" * 5_000, "not usable TOML"),
    ],
)
def test_a_file_that_is_no_text_gets_one_sentence(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=re.escape(words)) as caught:
        load(path)
    assert "\n" not in str(caught.value)


def test_a_folder_an_endless_or_an_unreadable_file_gets_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder"):
        load(tmp_path)
    with pytest.raises(ConfigError, match="too large"):
        load("/dev/zero")
    with pytest.raises(ConfigError, match="cannot be read"):
        load("a\0b")
    loop = tmp_path / "loop.toml"
    loop.symlink_to(loop)
    with pytest.raises(ConfigError, match="cannot be read"):
        load(loop)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_bytes(b"\xef\xbb\xbf" + QUALITY.encode())
    assert load(path).quality[0].domain == "example.com"


@given(st.binary(max_size=200) | st.text(alphabet='[]=" .\nabcqualitydomainseeds*:/0', max_size=120).map(str.encode))
@settings(max_examples=150, deadline=None)
def test_no_file_content_gets_past_config_error(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.toml"
        path.write_bytes(content)
        with pytest.raises(ConfigError):
            load(path)


_VALUES = st.recursive(
    st.none().map(lambda _: "true")
    | st.integers(-10, 10).map(str)
    | st.sampled_from(['"x"', '"a.test"', "1.5", '""', "[]"]),
    lambda inner: st.lists(inner, max_size=2).map(lambda items: "[" + ", ".join(items) + "]"),
    max_leaves=3,
)
_KEYS = st.sampled_from(
    [
        *sorted({f"{table}.{key}" for table, keys in config_module._TABLES.items() for key in keys}),
        *("quality", "stub", "blacklist", "workspace", "network.resolve", "crawler.x"),
    ]
)


@given(st.dictionaries(_KEYS, _VALUES, max_size=4))
@settings(max_examples=200, deadline=None)
def test_wrong_types_anywhere_are_mistakes_and_not_crashes(entries: dict[str, str]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.toml"
        path.write_text("\n".join(f"{key} = {value}" for key, value in entries.items()))
        with pytest.raises(ConfigError) as caught:
            load(path)
        assert caught.value.mistakes


# -- paths and the command line ----------------------------------------------------------------------------


def test_relative_paths_start_from_the_config_file_and_the_workspace_option_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, here = tmp_path / "home", tmp_path / "here"
    home.mkdir()
    here.mkdir()
    (home / "ca.pem").write_text("x")
    path = home / "my.toml"
    path.write_text(f'[output]\ndatabase-path = "data/a.db"\n[network]\nca-bundle = "ca.pem"\n{QUALITY}')
    monkeypatch.chdir(here)
    config = load(Path("../home/my.toml"))
    assert config.source == path
    assert config.output.database_path == home / "data/a.db"
    assert config.output.summary_path == home / "crawl-summary.md"
    assert config.network.ca_bundle == home / "ca.pem"
    assert config.workspace == home / "workspace", "the workspace belongs to the config"
    open_workspace(here / "workspace").prepare()
    write_last_used(dataclasses.replace(config, workspace=here / "workspace"))
    assert load(path).workspace == here / "workspace", "a crawl of this config that lies here is found"
    path.write_text(f'[output]\nworkspace-path = "own"\n{QUALITY}')
    assert load(path).workspace == home / "own"
    assert load(path, workspace=Path("w")).workspace == here / "w"
    path.write_text(f'workspace = "w"\n{QUALITY}')
    assert load(path).workspace == home / "w"
    assert load(path, workspace=Path("/elsewhere")).workspace == Path("/elsewhere")


def test_absolute_paths_and_the_home_folder_are_understood(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    config = read(f'[output]\ndatabase-path = "/data/a.db"\nsummary-path = "~/s.md"\n{QUALITY}')
    assert config.output == OutputSettings(Path("/data/a.db"), Path("/home/somebody/s.md"))


def test_a_linked_config_file_means_the_folder_of_the_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "my.toml").write_text(QUALITY)
    (tmp_path / "link.toml").symlink_to(tmp_path / "real" / "my.toml")
    assert load(tmp_path / "link.toml").output.database_path == tmp_path / "sumi-ripple.db"


def test_workers_from_the_command_line_win_and_are_checked(read: Any, mistakes: Any) -> None:
    assert read(f"[crawler]\nworkers = 2\n{QUALITY}", workers=5).crawler.workers == 5
    assert one(mistakes(QUALITY, workers=0)).path == "--workers"
    assert one(mistakes(QUALITY, workers=1000)).path == "--workers"


def test_a_workspace_that_is_a_file_is_a_mistake(mistakes: Any, tmp_path: Path) -> None:
    (tmp_path / "w").write_text("")
    assert one(mistakes(QUALITY, workspace=tmp_path / "w")).path == "--workspace"
    assert one(mistakes(f'workspace = "w"\n{QUALITY}')).path == "workspace"


def test_a_config_travels_to_other_processes_unchanged(read: Any) -> None:
    config = read(SEED_000)
    again = pickle.loads(pickle.dumps(config))
    assert again == config
    assert (again.source, again.config_hash) == (config.source, config.config_hash)


def test_two_configs_of_the_same_text_have_the_same_hashes_wherever_they_lie(tmp_path: Path) -> None:
    configs = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.toml").write_text(SEED_000)
        configs.append(load(tmp_path / name / "x.toml"))
    assert configs[0].config_hash == configs[1].config_hash
    assert configs[0].map_hash == configs[1].map_hash


# -- warnings ----------------------------------------------------------------------------------------------

CONTACT = '[user-agent]\ncontact-url = "https://crawler.test/"\ncontact-email = "a@crawler.test"\n'


def test_a_harmless_config_has_no_warnings(read: Any) -> None:
    assert warnings(read(CONTACT + QUALITY + '[[blacklist]]\ndomain = "ads.example.com"')) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            '[[blacklist]]\ndomain = "*.example.com"',
            "the seed https://example.com/ will not be visited: the blacklist catches it (*.example.com)",
        ),
        ('[[stub]]\ndomain = "www.example.com"', "the stub list catches it"),
        (
            '[[blacklist]]\ndomain = "example.com"',
            "example.com is in the blacklist and in the quality list; the blacklist wins",
        ),
        (
            '[[blacklist]]\ndomain = "a.test"\n[[stub]]\ndomain = "a.test"',
            "a.test is in the blacklist and in the stub list",
        ),
        (
            '[[blacklist]]\ndomain = "*.a.test"\n[[stub]]\ndomain = "x.a.test"',
            "x.a.test (stub list) has no effect: *.a.test in the blacklist covers it",
        ),
        (
            '[[stub]]\ndomain = "*.a.test"\n[[stub]]\ndomain = "*.x.a.test"',
            "*.x.a.test and *.a.test overlap in the stub list",
        ),
        (
            quality("*.example.com", '["https://b.example.com/"]'),
            "overlap in the quality list; its pages get a depth for each",
        ),
        (quality("a.test", '["https://a.test/x", "https://a.test/x/"]'), "are the same page, https://a.test/x"),
        (quality("a.test", '["https://a.test/x", "https://a.test/x"]'), "https://a.test/x is there twice"),
        (quality("example.com", '["https://example.com/x"]'), "in the quality list twice; its seeds were put together"),
        ('[[stub]]\ndomain = "a.test"\n[[stub]]\ndomain = "A.test"', "a.test is there twice"),
        ('[[blacklist]]\ndomain = "*.com"', "every domain that ends in .com"),
        ('[[blacklist]]\ndomain = "*.co.uk"', "every domain that ends in .co.uk"),
        ('[[stub]]\ndomain = "*.github.io"', "every domain that ends in .github.io"),
        ("[crawler]\nminimum-time-on-page = 100", "10 times a second"),
        ("[crawler]\nmax-domain-requests = 1000000", "busy for 11.6 days"),
        ("[crawler]\nmax-depth = 50", "most of the web"),
        ("[network]\nallow-private-addresses = true", "allow-private-addresses"),
        ('[resilience]\nmax-memory = "20 MiB"', "max-memory = 20 MiB is about what a stage has when it starts"),
        ("[discovery]\nelsewhere = true\nsitemaps = false", "[discovery] elsewhere has no effect"),
    ],
)
def test_what_will_hurt_is_warned_about(read: Any, text: str, words: str) -> None:
    found = warnings(read(CONTACT + QUALITY + text))
    assert any(words in warning for warning in found), found
    assert all("\n" not in warning for warning in found)


def test_an_empty_contact_is_warned_about(read: Any) -> None:
    assert any("contact-url and contact-email are empty" in text for text in warnings(read(QUALITY)))
    half = '[user-agent]\ncontact-url = "https://crawler.test/"\n'
    assert any("contact-email is empty" in text for text in warnings(read(half + QUALITY)))


def test_seeds_given_twice_in_two_entries_of_one_domain_are_put_together(read: Any) -> None:
    config = read(QUALITY + quality("example.com", '["https://example.com/", "https://example.com/x"]'))
    assert len(config.quality) == 1
    assert config.quality[0].seeds == ("https://example.com/", "https://example.com/x")


def test_thousands_of_patterns_are_checked_in_time_and_warned_about_briefly(read: Any) -> None:
    lines = "".join(f'[[blacklist]]\ndomain = "*.s{n}.test"\n[[stub]]\ndomain = "x.s{n}.test"\n' for n in range(3000))
    found = warnings(read(CONTACT + QUALITY + lines))
    assert len(found) < 30
    assert any("2,980 more like these" in text for text in found)


# -- the template and --dry-run ----------------------------------------------------------------------------


def test_the_template_loads_and_is_what_the_defaults_say(read: Any) -> None:
    config = read(TEMPLATE)
    assert config.crawler == CrawlerSettings(discovered_domain_requests=50)
    assert [entry.domain for entry in config.quality] == ["example.com", "*.example.org"]
    assert all("still the example's" in warning for warning in warnings(config))


def test_what_the_template_only_mentions_is_right_too(read: Any, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("x")
    everything = re.sub(r'(?m)^# (\[|[a-z"*][^ ]* = )', r"\1", TEMPLATE)
    config = read(everything)
    assert config.crawler == CrawlerSettings(discovered_domain_requests=50)
    assert config.traps == TrapSettings()
    assert config.spool == SpoolSettings()
    assert dataclasses.replace(config.network, ca_bundle=None, resolve=()) == NetworkSettings()
    assert config.network.resolve == (("*.test", "127.0.0.1:8443"),)


def test_the_template_fits_a_terminal() -> None:
    assert max(len(line) for line in TEMPLATE.splitlines()) <= 110


def test_describe_shows_classes_seeds_user_agent_limits_places_and_network(read: Any, tmp_path: Path) -> None:
    text = describe(
        read(
            CONTACT
            + quality("*.example.com", '["https://www.example.com/a/?b=1&a=2"]')
            + '[[blacklist]]\ndomain = "ads.test"\n[[stub]]\ndomain = "wiki.test"\n'
            + '[network.resolve]\n"*.test" = "127.0.0.1:1"\n'
        )
    )
    for words in (
        "SumiRipple/1.0 (+https://crawler.test/; a@crawler.test)",
        "*.example.com",
        "ads.test",
        "wiki.test",
        "https://example.com/a?a=2&b=1   asked for as https://www.example.com/a/?b=1&a=2",
        "500 requests a domain",
        "1,000 ms",
        str(tmp_path / "sumi-ripple.db"),
        str(tmp_path / "crawl-summary.md"),
        str(tmp_path / "workspace"),
        "*.test → 127.0.0.1:1",
    ):
        assert words in text


def test_describe_fits_a_screen_even_for_a_large_config(read: Any) -> None:
    lists = "".join(
        f'[[blacklist]]\ndomain = "b{n}.test"\n{quality(f"q{n}.test", f"""["https://q{n}.test/"]""")}'
        for n in range(300)
    )
    resolve = "[network.resolve]\n" + "".join(f'"r{n}.test" = "127.0.0.1:1"\n' for n in range(50))
    lines = describe(read(lists + resolve)).splitlines()
    assert len(lines) <= 45
    assert any("… and 292 more" in line for line in lines)
    assert all(len(line) <= 130 for line in lines)


# -- validation and users' signs of garbage ----------------------------------------------------------------


def test_signs_of_garbage_are_read(read: Any) -> None:
    config = read(
        quality("a.test", '["https://a.test/"]')
        + '[validation]\nfollow-rejected = true\nignore = ["login-wall"]\n'
        + '[[garbage]]\nname = "paywall"\nselector = "div.paywall > p"\nverdict = "hard"\n'
        + '[[garbage]]\nname = "members"\ntext = "For members"\n'
    )
    assert config.validation == ValidationSettings(follow_rejected=True, ignore=("login-wall",))
    assert config.garbage == (
        GarbageRule("paywall", "hard", selector="div.paywall > p"),
        GarbageRule("members", "soft", text="For members"),
    )
    assert "garbage: rejected, its links followed · your own signs: paywall, members · ignored: login-wall" in describe(
        config
    )
    assert recorded_settings.restored(recorded_settings.flat(config), Config()).garbage == config.garbage
    assert recorded_settings.restored(recorded_settings.flat(config), Config()).validation == config.validation


@pytest.mark.parametrize(
    ("entry", "mistake"),
    [
        ('name = "x"\ntext = ""', "garbage[0].text: found"),
        ('name = "x"\nselector = "p[["', "garbage[0].selector: found"),
        ('name = "x"\nselector = "p:hover::nonsense()"', "garbage[0].selector: found"),
        ('name = "x"', "garbage[0]: found neither text nor selector"),
        ('name = "x"\ntext = "a"\nselector = "p"', "garbage[0]: found both text and selector"),
        ('name = "parked"\ntext = "a"', "garbage[0].name: found"),
        ('name = "A b"\ntext = "a"', "garbage[0].name: found"),
        ('text = "a"', "garbage[0].name: found nothing"),
        ('name = "x"\ntext = "a"\nverdict = "ok"', "garbage[0].verdict: found"),
        ('name = "x"\ntext = "a"\n[[garbage]]\nname = "x"\ntext = "b"', "garbage[1].name: found"),
    ],
)
def test_a_mistake_in_a_sign_of_garbage_is_named(read: Any, entry: str, mistake: str) -> None:
    with pytest.raises(ConfigError) as raised:
        read(quality("a.test", '["https://a.test/"]') + f"[[garbage]]\n{entry}\n")
    assert mistake in str(raised.value)
    assert len(raised.value.mistakes) == 1


def test_an_unknown_reason_to_ignore_is_named(read: Any) -> None:
    with pytest.raises(ConfigError, match="cloudflare-challenge, "):
        read(quality("a.test", '["https://a.test/"]') + '[validation]\nignore = ["boring"]\n')


def test_settings_of_validation_count_in_hashes_once_they_are_changed() -> None:
    plain = Config()
    follow = dataclasses.replace(plain, validation=ValidationSettings(follow_rejected=True))
    learn = dataclasses.replace(plain, validation=ValidationSettings(learn_404=True))
    sign = dataclasses.replace(plain, garbage=(GarbageRule("x", text="y"),))
    assert len({each.config_hash for each in (plain, follow, learn, sign)}) == 4
    assert follow.map_hash != plain.map_hash == learn.map_hash == sign.map_hash


# -- the store and users' own fields -----------------------------------------------------------------------


SITE = quality("a.test", '["https://a.test/"]')


def test_the_store_and_fields_are_read(read: Any) -> None:
    config = read(
        SITE
        + '[store]\nhtml = true\nfile-mode = "0640"\nnear-duplicates = true\n'
        + '[[page-type]]\nname = "post"\npattern = "/blog/"\n'
        + '[[extract]]\nname = "author"\nselector = "span.author"\ndomain = "*.Example.com"\npage-type = "post"\n'
        + '[[extract]]\nname = "date"\nselector = "//time/@datetime"\n'
    )
    assert config.store == StoreSettings(html=True, file_mode="0640", near_duplicates=True)
    assert config.extract == (
        ExtractRule("author", "span.author", "*.example.com", "post"),
        ExtractRule("date", "//time/@datetime"),
    )
    assert "kept: pages, nearly equal texts · fields: author, date" in describe(config)
    assert recorded_settings.restored(recorded_settings.flat(config), config) == dataclasses.replace(
        config, store=dataclasses.replace(config.store, file_mode="0600")
    )


def test_a_config_without_store_and_fields_has_the_hashes_that_it_had(read: Any) -> None:
    plain = read(SITE)
    assert plain.config_hash == read(SITE + '[store]\nfile-mode = "0644"\n').config_hash
    kept = read(SITE + "[store]\nhtml = true\n")
    assert kept.config_hash != plain.config_hash
    assert kept.map_hash == plain.map_hash, "what is kept decides nothing on the map"


@pytest.mark.parametrize(
    ("entry", "mistake"),
    [
        ('[store]\nhtml = "yes"\n', "store.html"),
        ("[store]\nfile-mode = 640\n", "store.file-mode"),
        ('[store]\nfile-mode = "0777"\n', "store.file-mode"),
        ('[[extract]]\nselector = "p"\n', "extract[0].name"),
        ('[[extract]]\nname = "A b"\nselector = "p"\n', "extract[0].name"),
        ('[[extract]]\nname = "a"\n', "extract[0].selector"),
        ('[[extract]]\nname = "a"\nselector = "p["\n', "extract[0].selector"),
        ('[[extract]]\nname = "a"\nselector = "//p["\n', "extract[0].selector"),
        ('[[extract]]\nname = "a"\nselector = "p"\ndomain = "a b"\n', "extract[0].domain"),
        ('[[extract]]\nname = "a"\nselector = "p"\npage-type = "post"\n', "extract[0].page-type"),
        ('[[extract]]\nname = "a"\nselector = "p"\nxpath = "//p"\n', "extract[0].xpath"),
    ],
)
def test_a_mistake_in_store_or_fields_is_named(read: Any, entry: str, mistake: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(SITE + entry)
    assert [found.path for found in caught.value.mistakes] == [mistake]


# -- [engine] ------------------------------------------------------------------------------------------------


def test_results_of_so_many_runs_stay_in_the_engine_and_others_go_to_a_folder(read: Any, tmp_path: Path) -> None:
    assert (read(QUALITY).engine.results, read(QUALITY).engine.archive) == (0, None)
    engine = read(QUALITY + '[engine]\nresults = 3\narchive = "kept"\n').engine
    assert (engine.results, engine.archive) == (3, tmp_path / "kept")


def test_an_archive_is_a_folder_or_a_place_for_one(mistakes: Any, tmp_path: Path) -> None:
    (tmp_path / "kept").write_bytes(b"")
    mistake = one(mistakes(QUALITY + '[engine]\narchive = "kept"\n'))
    assert mistake.path == "engine.archive" and "a folder, or a place for one" in mistake.allowed


def test_the_engine_is_a_url_that_nothing_shows(read: Any) -> None:
    config = read(QUALITY + '[engine]\nurl = "postgresql://crawl:s3cr3t@db.internal:5433/terrain"\n')
    assert config.engine.url.endswith("/terrain")
    assert "engine     terrain on db.internal, port 5433" in describe(config)
    assert "s3cr3t" not in describe(config) + repr(config)
    assert config.config_hash == read(QUALITY).config_hash


def test_a_lease_is_long_enough_for_a_busy_machine(read: Any) -> None:
    assert read(QUALITY).engine.lease == 30
    assert read(QUALITY + '[engine]\nlease = "6s"\n').engine.lease == 6
    for text in ('"4s"', '"11m"', "30"):
        with pytest.raises(ConfigError, match=r"engine\.lease: found .*; allowed: a duration"):
            read(QUALITY + f"[engine]\nlease = {text}\n")


@pytest.mark.parametrize(
    "line",
    [
        'url = "https://crawl:s3cr3t@db.internal/terrain"',
        'url = "postgresql://crawl:s3cr3t@db.internal"',
        'url = "postgresql://crawl:s3cr3t@db.internal:x/terrain"',
        'url = "postgresql://crawl:s3cr3t @db.internal/terrain"',
        'url = ["postgresql://crawl:s3cr3t@db.internal/terrain"]',
        'url = "postgresql://crawl:s3cr3t@db.internal/terrain',
        "url = postgresql://crawl:s3cr3t@db.internal/terrain",
    ],
)
def test_a_mistake_in_the_engines_url_does_not_show_it(read: Any, line: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read(QUALITY + f"[engine]\n{line}\n")
    assert "s3cr3t" not in str(refused.value)
    assert "engine.url: found something else; allowed: the URL of a PostgreSQL database" in str(refused.value) or (
        "TOML" in str(refused.value)
    )
