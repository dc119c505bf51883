"""ada by its private and by its public names: both parse alike, and the private ones are still there."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.model.whatwg import PARSER, direct_parser, public_parser

ROOT = Path(__file__).parents[3]
PIECES = [
    "https://",
    "http:",
    "//",
    "/",
    "\\",
    "a",
    "b.test",
    "?",
    "#",
    "@",
    ":",
    "80",
    "..",
    "%7f",
    "é",
    "\ud800",
    " ",
]
urls = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join)


def test_the_private_names_of_ada_are_still_there() -> None:
    assert PARSER.is_direct, (
        f"ada-url {metadata.version('ada-url')} lacks names of ada_url._ada_wrapper that crawler/model/whatwg.py uses: "
        "URLs are parsed through its public functions, at half the speed. Adapt direct_parser to the new names."
    )


@given(urls)
def test_both_parsers_serialise_alike(url: str) -> None:
    assert direct_parser().href(url) == public_parser().href(url)


@given(st.sampled_from(["https://a.test/b/c?d", "http://a.test/", "https://é.test/x/", "nonsense"]), urls)
def test_both_parsers_join_alike(base: str, href: str) -> None:
    assert direct_parser().join(base.encode(), href) == public_parser().join(base.encode(), href)


@pytest.mark.parametrize(
    "module",
    [
        "sys.modules['ada_url._ada_wrapper'] = None",
        "sys.modules['ada_url._ada_wrapper'] = SimpleNamespace(ffi=None, lib=None)",
    ],
    ids=["no such module", "no such name"],
)
def test_without_the_private_names_urls_are_parsed_all_the_same(module: str) -> None:
    code = (
        "import sys\n"
        "from types import SimpleNamespace\n"
        "import ada_url\n"
        f"sys.modules['ada_url._ada_wrapper'] = {module}\n"
        "from crawler.model.urls import normalize, resolve\n"
        "from crawler.model.whatwg import PARSER\n"
        "print(PARSER.is_direct, normalize('HTTP://www.Example.com/a/../b/'), resolve('https://a.test/x/', '../y'))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "https://example.com/b", "https://a.test/y"]
