"""PURE. Why no more pages of a list, or of a form of archives, were tried: the words of a recorded end."""

from __future__ import annotations

GUESSES_ENDED = {  # the words of a recorded end
    "dead-link": "one was not there",
    "redirect": "one led elsewhere",
    "soft-404": "one said that it was not there",
    "same-text": "one showed the same as another",
    "nothing-new": "one led to nothing new",
    "out-of-scope": "one was out of scope",
    "failed": "one could not be read",
    "limit": "there were as many as [discovery] allows",
}
