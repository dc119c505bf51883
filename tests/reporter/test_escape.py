"""Hostile text stays text, wherever it is shown."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from crawler.model.shown_text import plain
from reporter.escape import cell, code, markdown, xml
from reporter.summary.markdown import table
from reporter.summary.write import render
from tests.reporter.terrain import MapBuilder

_SPECIAL = "|`\\<>[]()!*_~#&$@^=:+-'\"\n\r\t\x00\x1b\x7f\x9b\u202e\u2066\u200b\u2028\ufeff\ud800\uffff{}.1a é"
_TEXTS = st.text(st.one_of(st.sampled_from(_SPECIAL), st.characters()), max_size=60)
_RENDERER = MarkdownIt("commonmark").enable("table")

HOSTILE = [
    "a | b",
    "a \\| b",
    "a \\",
    "`code`",
    "``` | ```",
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](https://evil.test/beacon.png)",
    "line\nbreak\r\n| new | row |",
    "\x1b]0;owned\x07\x1b[31mred",
    "\x9b31mred",
    "right\u202eto left\u2066",
    "&lt;b&gt; &#124; &amp;",
    "# heading",
    "- list",
    "1. list",
    "***bold***",
    "@someone #1 https://evil.test/ www.evil.test",
    "=HYPERLINK(1)",
    "",
    "   ",
]


def cells_of(markdown_text: str) -> list[list[Token]]:
    """The inline tokens of every body cell."""
    tokens = _RENDERER.parse(markdown_text)
    inside = False
    cells: list[list[Token]] = []
    for token in tokens:
        if token.type == "tbody_open":
            inside = True
        elif token.type == "inline" and inside:
            cells.append(token.children or [])
    return cells


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_text_fills_its_cell_and_nothing_else(text: str) -> None:
    shown = table(("A", "B", "C"), [(markdown(text), code(text), "end")])
    cells = cells_of(shown)
    assert len(cells) == 3
    assert {token.type for token in cells[0]} <= {"text", "text_special"}
    assert "".join(token.content for token in cells[0]) == plain(text)
    assert {token.type for token in cells[1]} <= {"code_inline"}
    assert [token.content for token in cells[2]] == ["end"]


@settings(max_examples=400, deadline=None)
@given(_TEXTS, _TEXTS)
def test_no_text_breaks_out_of_a_table(one: str, other: str) -> None:
    shown = table(("A", "B", "C"), [(markdown(one), code(other), "end"), (code(one), markdown(other), "end")])
    cells = cells_of(shown)
    assert len(cells) == 6
    assert all(cells[index][0].content == "end" for index in (2, 5))
    for tokens in cells:
        assert {token.type for token in tokens} <= {"text", "text_special", "code_inline"}
    assert "".join(token.content for token in cells[0]) == plain(one)


@settings(max_examples=200, deadline=None)
@given(_TEXTS)
def test_no_text_breaks_out_of_a_line(text: str) -> None:
    tokens = _RENDERER.parse(f"- {markdown('x' + text)} (1 page)\n- end")
    assert [token.type for token in tokens].count("list_item_open") == 2
    assert [token.type for token in tokens].count("bullet_list_open") == 1


@settings(max_examples=300, deadline=None)
@given(_TEXTS)
def test_what_is_shown_on_a_terminal_is_one_line_of_visible_characters(text: str) -> None:
    shown = plain(text)
    assert all(each.isprintable() or each == "\ufffd" or ord(each) > 0x2FF for each in shown)
    assert not set(shown) & set("\x1b\x9b\x00\n\r\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")
    shown.encode()


@settings(max_examples=300, deadline=None)
@given(_TEXTS)
def test_any_text_survives_xml_as_far_as_xml_allows(text: str) -> None:
    root = ElementTree.fromstring(f'<a b="{xml(text)}">{xml(text)}</a>'.encode())
    legal = "".join(
        each
        for each in text
        if each in "\t\n\r" or 0x20 <= ord(each) <= 0xD7FF or 0xE000 <= ord(each) <= 0xFFFD or ord(each) > 0xFFFF
    )
    assert root.get("b") == legal
    assert (root.text or "") == legal


@settings(max_examples=300, deadline=None)
@given(st.lists(_TEXTS, min_size=1, max_size=4))
def test_no_csv_cell_is_a_formula_or_ends_early(texts: list[str]) -> None:
    stream = io.StringIO()
    csv.writer(stream).writerow([cell(text) for text in texts] + ["end"])
    (row,) = csv.reader(io.StringIO(stream.getvalue()))
    assert len(row) == len(texts) + 1
    assert row[-1] == "end"
    for shown in row:
        assert not shown.startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1", "\n=1", "＝1"])
def test_formulas_are_marked_as_text(text: str) -> None:
    assert cell(text).startswith("'")


def test_long_texts_are_cut() -> None:
    assert plain("x" * 1000) == "x" * 299 + "…"
    assert len(plain("\u202e" * 100_000)) == 300


def test_a_summary_of_hostile_names_keeps_every_cell_in_place(tmp_path: Path) -> None:
    """Keys and hosts are tidy when the ingest makes them; the summary does not rely on it."""
    b = MapBuilder(tmp_path / "map.db")
    b.page("https://q.test/")
    for number, text in enumerate(HOSTILE):
        url = f"https://evil.test/{number}?{text}"
        b.page(url, "stubbed", "stubbed")
        b.link("https://q.test/", url)
        dead = f"https://q.test/{number}?{text}"
        b.page(dead, "dead_link", status_code=404, title=text)
        b.link("https://q.test/", dead)
        b.page(f"https://found{number}.test/", title=text)
        b.link("https://q.test/", f"https://found{number}.test/")
        b.domain(f"{number}{text}", closed_reason="rate-limited", closed_at_request=1, rate_limited=1)
        b.db.execute("INSERT INTO quarantine VALUES (?, 1, 0, ?, 1)", (f"w{number}", text))
        b.db.execute("INSERT INTO closed_families VALUES (?, 1, ?, ?, ?, '')", (number, "q.test", text, text))
    rendered = render(b.save())
    tokens = _RENDERER.parse(rendered)
    kinds = {token.type for token in tokens} | {child.type for token in tokens for child in token.children or []}
    assert kinds.isdisjoint({"image", "link_open", "html_block", "fence", "code_block", "blockquote_open"})
    html = {child.content for token in tokens for child in token.children or [] if child.type == "html_inline"}
    assert html <= {"<br>"}
    for block in re.findall(r"(?:^\|.*\n)+", rendered, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1, block
    heads = [token for token in tokens if token.type == "heading_open" and token.tag == "h2"]
    assert len(heads) == 11
    assert "\x1b" not in rendered and "\u202e" not in rendered
