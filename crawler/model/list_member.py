"""PURE. A page of a list, as guesses need to know it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ListMember:
    """A page of a list, as the map has it in this run."""

    number: int
    key: str
    wire: str
    is_linked: bool
    is_guess: bool  # tried in this run
    state: str
    is_redirected: bool
    rejection: str | None  # why its answer is no page
    text_print: int | None
    found: int | None  # of a guess: pages that the run had not seen before
    has_next: bool  # it names a next page
