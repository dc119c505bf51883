"""PURE. A 64-bit SimHash of a text: texts that have most of their words in common differ in few bits.

Each word votes for the bits of its hash, with the logarithm of its count: a word that is repeated a hundred times says
not a hundred times as much. `reporter.near_duplicates` says how few.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from math import log2

FEWEST_WORDS = 20  # a shorter text says too little: a changed word is half of it
_LANE = 32  # bits for the votes of one bit
_SPREAD = tuple(sum(1 << (_LANE * bit) for bit in range(8) if value >> bit & 1) for value in range(256))
_MASK = (1 << _LANE) - 1


def simhash(words: list[bytes]) -> str | None:
    """The hash in 16 hex digits; None: the text is too short."""
    if len(words) < FEWEST_WORDS:
        return None
    votes = [0] * 8  # a number for each byte of the hash, with a lane for each of its bits
    total = 0
    for word, count in Counter(words).items():
        weight = round(16 * (1 + log2(count)))
        total += weight
        for place, value in enumerate(hashlib.blake2b(word, digest_size=8).digest()):
            votes[place] += _SPREAD[value] * weight
    number = 0
    for place, lanes in enumerate(votes):
        for bit in range(8):
            if 2 * (lanes >> (_LANE * bit) & _MASK) > total:
                number |= 1 << (8 * place + bit)
    return f"{number:016x}"
