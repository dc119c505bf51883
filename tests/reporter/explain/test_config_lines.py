"""Explain names the line of the config that decides."""

from __future__ import annotations

from pathlib import Path

from crawler.config import load as configuration
from reporter.explain.explanation import explain


def test_the_config_line_that_decides_is_named(tmp_path: Path) -> None:
    source = tmp_path / "my.toml"
    source.write_text(
        '[[quality]]\ndomain = "q.test"\nseeds = ["https://q.test/"]\n\n'
        '[[stub]]\ndomain = "other.test"\n\n'
        '[[blacklist]]\n# ours\n"domain" = \'*.ADS.test\'\n\n[[stub]]\ndomain = "*.ads.test"\n'
    )
    config = configuration.load(source)
    facts = explain(config, None, "https://x.ads.test/page")
    assert (facts.klass, facts.rule, facts.rule_list, facts.rule_line) == ("blacklisted", "*.ads.test", "blacklist", 10)
    assert '[[blacklist]] domain = "*.ads.test" (my.toml:10)' in facts.text()
    assert "the domain would be stubbed" in facts.text()
    assert explain(config, None, "https://q.test/").rule_line == 2
    assert explain(config, None, "https://other.test/").rule_line == 6
