"""A config from the lists that people have."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.config.load import load
from crawler.config.site_lists import config_text, read_sites
from crawler.config.template import TEMPLATE
from crawler.model.errors import UsageError

TEXT = "# my sites\nexample.com\nhttp://www.example.org/blog/  # a blog\n\nexample.org\nmailto:me@a.test\nnot a site\n"
CSV = 'name;address;note\nOne;https://example.com/;"a; b"\nTwo;example.org/blog;\nThree;;\n'
OPML = (
    '<opml><body><outline text="Group"><outline type="rss" htmlUrl="https://example.com/?a=1&amp;b=2"'
    " xmlUrl=\"https://example.com/feed.xml\"/><outline xmlUrl='https://example.org/feeds/all.xml'/></outline></body></opml>"
)
BOOKMARKS = (
    '<!DOCTYPE NETSCAPE-Bookmark-file-1>\n<DL><p><DT><A HREF="https://example.com/" ADD_DATE="1">One</A>\n'
    '<DT><A HREF="javascript:void(0)">No</A><DT><A HREF="place:sort=8">No</A><DT><A HREF="http://example.org/x">Two</A>'
)


@pytest.mark.parametrize(
    ("name", "text", "sites"),
    [
        (
            "list.txt",
            TEXT,
            {
                "example.com": ["https://example.com/"],
                "example.org": ["https://www.example.org/blog/", "https://example.org/"],
            },
        ),
        (
            "sites.csv",
            CSV,
            {"example.com": ["https://example.com/"], "example.org": ["https://example.org/blog"]},
        ),
        (
            "feeds.opml",
            OPML,
            {"example.com": ["https://example.com/?a=1&b=2"], "example.org": ["https://example.org/"]},
        ),
        (
            "bookmarks.html",
            BOOKMARKS,
            {"example.com": ["https://example.com/"], "example.org": ["https://example.org/x"]},
        ),
    ],
)
def test_a_list_becomes_a_config_that_can_be_loaded(
    name: str, text: str, sites: dict[str, list[str]], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_sites(path).sites == sites
    config = tmp_path / "my.toml"
    config.write_text(config_text(TEMPLATE, sites, path))
    loaded = load(config)
    assert {entry.domain: list(entry.seeds) for entry in loaded.quality} == sites
    assert loaded.blacklist == loaded.stub == ()


@pytest.mark.parametrize(
    "content", [b"", b"nothing here\n", b"\xff\xfe\x00", b"\xe9", b"x" * 300_000, b'"' + b"a\n" * 100_000]
)
def test_a_file_that_names_no_site_is_one_sentence(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"list\.txt"):
        read_sites(path)
    with pytest.raises(UsageError, match="cannot read"):
        read_sites(tmp_path / "none.txt")


def test_a_list_in_the_encoding_that_windows_calls_unicode_is_read(tmp_path: Path) -> None:
    path = tmp_path / "list.txt"
    path.write_bytes("https://example.com/\nbücher.example\n".encode("utf-16"))
    assert list(read_sites(path).sites) == ["example.com", "xn--bcher-kva.example"]


def test_lines_that_name_no_site_are_told_and_the_names_of_columns_are_not(tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text("name,url\na,https://example.com/\nb,none\n,\n# c\n")
    assert read_sites(path).unread == ["b none"]
    path.write_text("\n".join(f"https://example.com/{number}" for number in range(20_000)))
    found = read_sites(path)
    assert len(found.sites["example.com"]) == 20_000 and not found.unread
