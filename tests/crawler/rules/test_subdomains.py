"""Registered domains by the public suffix list, and the family of hosts under each."""

from __future__ import annotations

import pytest

from crawler.model.settings import Config, QualityEntry
from crawler.rules.subdomains import is_subdomain_family, is_under, named_hosts, registered_domain, subdomains_of


@pytest.mark.parametrize(
    ("host", "registered"),
    [
        ("a.b.example.com", "example.com"),
        ("example.com", "example.com"),
        ("a.example.co.uk", "example.co.uk"),
        ("someone.github.io", "someone.github.io"),  # a suffix under which anybody can register
        ("github.io", None),
        ("h7.quality.test", "quality.test"),
        ("127.0.0.1", None),
        ("[::1]", None),
        ("localhost", None),
        ("a..b", None),
        ("", None),
    ],
)
def test_the_registered_domain_of_a_host(host: str, registered: str | None) -> None:
    assert registered_domain(host) == registered


def test_a_family_of_hosts_has_a_name_that_no_family_of_pages_has() -> None:
    family = subdomains_of("example.com", 200)
    assert is_subdomain_family("example.com", family.name)
    assert not is_subdomain_family("example.com", "example.com/#")
    assert family.error == "trap-subdomains: 200 hosts under example.com were visited in this run"


def test_a_registered_domain_contains_its_hosts_but_not_those_of_a_suffix_below_it() -> None:
    assert is_under("example.com", "example.com") and is_under("example.com", "a.b.example.com")
    assert not is_under("example.com", "notexample.com")
    assert not is_under("github.io", "someone.github.io")


def test_hosts_that_the_config_names_are_its_seeds_and_its_entries_without_a_wildcard() -> None:
    config = Config(
        quality=(
            QualityEntry("*.example.com", ("https://www.start.example.com/",)),
            QualityEntry("one.example.org", ("https://one.example.org/",)),
        )
    )
    assert named_hosts(config) == {"start.example.com", "one.example.org"}
