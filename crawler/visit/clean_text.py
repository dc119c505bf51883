"""PURE. Text of a page, made safe to show: one line without controls."""

from __future__ import annotations

import re

# Never shown to anyone: controls (terminal escapes begin with one), direction marks, surrogates and the like.
_UNSAFE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e007f]"
)


def cleaned(text: str, longest: int) -> str:
    """The text on one line, its blanks collapsed, without controls and direction marks, and no longer than this."""
    if text.isascii() and text.isprintable():
        words = text[: longest * 40].split()
    else:  # enough once its spaces are collapsed, and quick about a megabyte
        words = _UNSAFE.sub("", text[: longest * 40]).split()
    return " ".join(words)[:longest].rstrip()
