"""explain example.org: the facts of a whole domain, in words and as JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from crawler.model.settings import EntryNote
from reporter.explain.domain_explanation import explain_domain
from tests.reporter.terrain import config_for


def test_a_discovered_domain_is_explained_with_its_pages_and_referrers(database: Path) -> None:
    facts = explain_domain(config_for(("q.test", "*.wild.test")), database, "friend.test")
    assert (facts.crawled, facts.pages, facts.depth, facts.title) == (2, 2, 1, "A friend")
    assert (facts.quality_domains, facts.links) == (2, 2)
    text = facts.text()
    assert "class         discovered: it is in none of the lists\n" in text
    assert "pages         2 of 2 pages crawled\n" in text
    assert "linked from   2 quality domains, 2 links\n" in text
    assert "https://q.test/ -> https://friend.test/\n" in text
    assert text.endswith("To decide: sumi-ripple accept|reject|stub friend.test my.toml\n")


def test_a_domain_that_was_closed_says_why(database: Path) -> None:
    facts = explain_domain(config_for(), database, "slow.test")
    assert facts.closed == "rate-limited" and facts.requests == 45
    assert "0 of 3 pages crawled; 3 pages held back after a 429" in facts.text()
    assert "requests      45 in run 1; closed early: rate-limited" in facts.text()


def test_a_listed_domain_shows_its_rule_and_note(database: Path) -> None:
    config = replace(
        config_for(blacklist=("*.test",)), entry_notes=(EntryNote("blacklist", "*.test", "noise", ("loud",)),)
    )
    text = explain_domain(config, database, "ads.test").text()
    assert 'blacklisted, by [[blacklist]] domain = "*.test"' in text
    assert "note          noise [loud]\n" in text
    assert '"*.test" must leave [[blacklist]] first' in text


def test_an_unknown_domain_is_explained_by_the_config_alone(tmp_path: Path, database: Path) -> None:
    for place in (None, tmp_path / "none.db"):
        assert "never seen: nothing has been crawled yet" in explain_domain(config_for(), place, "new.test").text()
    facts = explain_domain(config_for(), database, "xn--bltterwald-r5a.test")
    assert not facts.is_known and facts.text().startswith("blätterwald.test (xn--bltterwald-r5a.test)\n")
    assert json.loads(facts.json())["unicode"] == "blätterwald.test"
