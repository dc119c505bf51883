"""PURE. What a page says about a link: its text, and the `rel` of all its links to one address together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

LONGEST_TEXT = 120  # characters of a link's text, and of its rel
_MOST_WORDS = 16  # of a rel
# By these a page does not vouch for what it links to. It does if one of its links there is without.
_RESERVATIONS = frozenset({"nofollow", "sponsored", "ugc"})


class LinkContext(NamedTuple):
    """The text and the rel of a link; empty where the page has none, or where nobody asked for them."""

    text: str = ""
    rel: str = ""

    @property
    def words(self) -> str:
        """For people: `"Read more", rel nofollow`."""
        return ", ".join([*([f'"{self.text}"'] if self.text else []), *([f"rel {self.rel}"] if self.rel else [])])


def merged_rel(rels: Sequence[str]) -> str:
    """The words of these rels, each once, in lower case, in the order of their appearance.

    A word counts if one of the links has it; `nofollow`, `sponsored` and `ugc` only if all of them do.
    """
    words = [dict.fromkeys(rel.lower().split()) for rel in rels]
    every = dict.fromkeys(word for found in words for word in found)
    kept = [word for word in every if word not in _RESERVATIONS or all(word in found for found in words)]
    text = " ".join(kept[:_MOST_WORDS])
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT + 1].rpartition(" ")[0]


def merged(contexts: Sequence[LinkContext]) -> LinkContext:
    """Several links of a page to one address as one: the first text that is not empty, and `merged_rel`."""
    if len(contexts) == 1:
        return contexts[0]
    return LinkContext(next((each.text for each in contexts if each.text), ""), merged_rel([c.rel for c in contexts]))


__all__ = ["LONGEST_TEXT", "LinkContext", "merged", "merged_rel"]
