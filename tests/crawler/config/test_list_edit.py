"""Edits of a config's lists keep every comment and every other line."""

from __future__ import annotations

import difflib
import re
from collections import Counter

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

from crawler.config.list_edit import LISTS, EditError, Entry, put_in_list, put_note
from crawler.config.template import TEMPLATE

TAKING_TURNS = """\
# top
[crawler]
max-depth = 2 # near

[[quality]]
domain = "a.test"
seeds = [
    "https://a.test/",  # the front page
]
# about a

# -- those that shout

[[blacklist]]
domain = "ads.test" # why
note = '''
[[stub]]
'''

[[quality]]
domain = "late.test"
seeds = ["https://late.test/"]

# the end
"""
NEW = Entry("new.test", ("https://new.test/",), 'a "note"', ("tea",))


def changes(before: str, after: str) -> tuple[list[str], list[str]]:
    lines = list(difflib.ndiff(before.splitlines(), after.splitlines()))
    return [line[2:] for line in lines if line[0] == "-"], [line[2:] for line in lines if line[0] == "+"]


@pytest.mark.parametrize("text", [TEMPLATE, TAKING_TURNS, TAKING_TURNS.replace("\n", "\r\n")])
@pytest.mark.parametrize("name", LISTS)
def test_a_new_entry_adds_its_own_lines_and_changes_no_other(text: str, name: str) -> None:
    edited = put_in_list(text, name, NEW)
    removed, added = changes(text, edited.text)
    assert removed == [] and edited.left == ()
    assert [line for line in added if line] == [
        f"[[{name}]]",
        'domain = "new.test"',
        'seeds = ["https://new.test/"]',
        'note = "a \\"note\\""',
        'tags = ["tea"]',
    ]
    assert ("\r\n" in text) == ("\r\n" in edited.text) and "\r\n" not in re.sub("\r\n", "", edited.text)


def test_a_new_entry_stands_before_the_comment_of_the_list_that_follows() -> None:
    edited = put_in_list(TEMPLATE, "quality", NEW).text
    assert edited.index("new.test") < edited.index("# -- Blacklist") < edited.index("[[blacklist]]")


def test_an_entry_that_changes_its_list_takes_no_comment_with_it() -> None:
    edited = put_in_list(TAKING_TURNS, "stub", Entry("ads.test"))
    removed, added = changes(TAKING_TURNS, edited.text)
    assert edited.left == ("blacklist",)
    assert [line for line in removed if line] == [
        *("[[blacklist]]", 'domain = "ads.test" # why', "note = '''", "[[stub]]", "'''"),
    ]
    assert [line for line in added if line] == ["[[stub]]", 'domain = "ads.test"']
    assert "# -- those that shout" in edited.text and "# about a" in edited.text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('quality = [{domain = "a.test", seeds = ["https://a.test/"]}]\n', "by hand"),
        ('[[quality]]\ndomain = "NEW.test"\nseeds = ["https://new.test/"]\n', "already"),
    ],
)
def test_an_edit_that_cannot_be_made_exactly_is_refused(text: str, words: str) -> None:
    with pytest.raises(EditError, match=words):
        put_in_list(text, "quality", NEW)


COMMENTS = st.lists(st.sampled_from(["", "# a comment", "# [[quality]] is not a header here", "\t"]), max_size=3)
ENTRIES = st.lists(st.tuples(st.sampled_from(LISTS), st.integers(0, 5), COMMENTS), max_size=8)


@given(ENTRIES, st.sampled_from(LISTS), st.integers(0, 8), st.booleans())
def test_any_file_of_lists_says_the_same_after_an_edit_but_for_the_edit(
    entries: list[tuple[str, int, list[str]]], name: str, number: int, has_newline: bool
) -> None:
    seen: set[tuple[str, int]] = set()
    lines = ["[crawler]", "max-depth = 1"]
    for list_name, which, comments in entries:
        if (list_name, which) not in seen:
            seen.add((list_name, which))
            lines += [*comments, f"[[{list_name}]]", f'domain = "d{which}.test"  # {which}']
    text = "\n".join(lines) + ("\n" if has_newline else "")
    entry = Entry(f"d{number}.test")
    if (name, number) in seen:
        with pytest.raises(EditError, match="already"):
            put_in_list(text, name, entry)
        return
    after = put_in_list(text, name, entry).text
    wanted, found = tomli.loads(text), tomli.loads(after)
    for each in LISTS:
        rows = [row for row in wanted.get(each, []) if row["domain"] != entry.domain]
        assert found.get(each, []) == rows + ([{"domain": entry.domain}] if each == name else [])
    # Counted, not compared in their order: of several equal comments a diff may take one for another.
    removed = Counter(text.splitlines()) - Counter(after.splitlines())
    gone = {f"[[{each}]]" for each in LISTS} | {f'domain = "{entry.domain}"  # {number}', ""}
    assert set(map(str.strip, removed)) <= gone


@pytest.mark.parametrize("text", [TAKING_TURNS, TAKING_TURNS.replace("\n", "\r\n")])
def test_a_note_and_tags_are_put_to_an_entry_and_taken_away_again(text: str) -> None:
    """Every comment and every other line stays, and the line ends are the file's own."""
    edited = put_note(text, Entry("a.test", note="worth reading", tags=("tea", "old")))
    removed, added = changes(text, edited.text)
    assert (edited.name, removed) == ("quality", [])
    assert added == ['note = "worth reading"', 'tags = ["tea", "old"]']
    assert ("\r\n" in edited.text) == ("\r\n" in text) and edited.text.count("\r\n") in (0, edited.text.count("\n"))
    assert tomli.loads(put_note(edited.text, Entry("a.test")).text) == tomli.loads(text)
    removed, added = changes(text, put_note(text, Entry("ads.test", note="loud")).text)
    assert (removed, added) == (["note = '''", "[[stub]]", "'''"], ['note = "loud"'])


@pytest.mark.parametrize("text", ["", "[[quality]]\ndomain = '*.a.test'\n"])
def test_a_note_without_an_entry_of_its_own_is_refused(text: str) -> None:
    with pytest.raises(EditError, match="accept, reject or stub it first"):
        put_note(text, Entry("a.test", note="x"))
