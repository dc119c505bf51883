"""What a config would do with a URL, without a map and without a look-up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crawler.model.settings import Config, NetworkSettings
from reporter.explain.url_check import UrlChecker

LITERALS = {
    "http://127.0.0.1/": "127.0.0.1 is loopback",
    "http://127.1/": "127.0.0.1 is loopback",
    "http://169.254.169.254/latest": "169.254.169.254 is cloud metadata",
    "https://[::1]/": "[::1] is loopback",
    "https://[::ffff:10.0.0.1]/": "is private (IPv4-mapped 10.0.0.1)",
}


@pytest.mark.parametrize("url", LITERALS)
def test_an_address_that_is_not_public_is_not_visited_unless_the_config_lets_it_in(url: str) -> None:
    refused = UrlChecker(Config()).check(url)
    assert not refused.is_visited and (refused.because or "").startswith("address-blocked: ")
    assert LITERALS[url] in (refused.because or "")
    for network in (NetworkSettings(allow_private_addresses=True), NetworkSettings(resolve=(("*", "127.0.0.1:8443"),))):
        assert UrlChecker(replace(Config(), network=network)).check(url).is_visited


@pytest.mark.parametrize("url", ["https://1.1.1.1/", "https://[2606:4700::1111]/", "https://localhost.test/"])
def test_public_addresses_and_all_names_would_be_visited(url: str) -> None:
    assert UrlChecker(Config()).check(url).is_visited
