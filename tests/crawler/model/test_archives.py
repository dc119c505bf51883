"""Archives that the addresses of a site's own pages show."""

from __future__ import annotations

import pytest

from crawler.model.archives import archives_shown

A = "https://a.test"


@pytest.mark.parametrize(
    ("wire", "shown"),
    [
        (f"{A}/2023/05/frost", [(f"{A}/{{year}}", f"{A}/2023"), (f"{A}/{{year}}/{{month}}", f"{A}/2023/05")]),
        (
            f"{A}/blog/2023/05/14/frost/",
            [(f"{A}/blog/{{year}}", f"{A}/blog/2023/")] * 1 + [(f"{A}/blog/{{year}}/{{month}}", f"{A}/blog/2023/05/")],
        ),
        (f"{A}/2023/05", [(f"{A}/{{year}}", f"{A}/2023")]),
        (f"{A}/2023/frost?x=1", [(f"{A}/{{year}}", f"{A}/2023")]),
        (f"{A}/archives/old", [(f"{A}/archives", f"{A}/archives")]),
        (f"{A}/sitemap/b", [(f"{A}/sitemap", f"{A}/sitemap")]),
        (f"{A}/archive", []),
        (f"{A}/2023", []),
        (f"{A}/2023-05-14/frost", []),
        (f"{A}/article/20231/x", []),
        (f"{A}/2023/13/x", [(f"{A}/{{year}}", f"{A}/2023")]),
        (f"{A}/3023/05/x", []),
        (f"{A}/?y=/2023/05/x", []),
    ],
)
def test_an_address_shows_the_archives_above_it_and_no_others(wire: str, shown: list[tuple[str, str]]) -> None:
    assert [tuple(found) for found in archives_shown(wire)] == shown
