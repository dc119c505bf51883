"""Log lines."""

from __future__ import annotations

import pytest

from crawler.observe.logs import escape_line


@pytest.mark.parametrize("text", ["\x1b[2J", "a\nb", "\x9b31m", "\x07", "\u202eevil", "\r", "\u2028"])
def test_nothing_that_a_terminal_would_obey_gets_into_a_log_line(text: str) -> None:
    assert escape_line(text).isprintable()
    assert escape_line("Crawling https://ä.test/ 漢字") == "Crawling https://ä.test/ 漢字"
