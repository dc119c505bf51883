"""PURE. Is an answer a page, or garbage: a challenge, a block page, a shell, a parked domain, a login form, a soft 404?

    validator = Validator(config.validation, config.garbage)
    validator.judge(answer, page)      Validation(word, reason); None: an answer without a page, and without evidence

Evidence decides, and a good page is never rejected for how it reads: a phrase alone, a short text, a missing `<p>` or
the words of a `<noscript>` count for nothing. What counts:

- hard: a header that only challenges carry; the markup of a provider's challenge on a thin page, or with 403, 429 or
  503; the whole title of a block page on a thin page, with an error status or a phrase of such pages.
- soft, of an answer with 2xx: nothing shown and no links; a mount node or a sentence about JavaScript and nothing
  else; a parked domain; a login form and little besides; the title of a 404 with a phrase of one.

A page is *thin* if it shows less than `THIN` bytes and has few links. Of 7,581 real pages of documentation one in 13
shows so little; what else must be there keeps all of them. An ordinary page costs a few dictionary look-ups: only a
thin one is looked at again. Signatures are data (`signatures`); users add their own (`[[garbage]]`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from crawler.model.messages import Response
from crawler.model.settings import GarbageRule, ValidationSettings
from crawler.model.urls import hash64
from crawler.model.validity import NEEDS_RENDERING, SOFT_404, Validity
from crawler.visit import signatures
from crawler.visit.html import Extracted
from crawler.visit.references import in_text
from crawler.visit.scanner import LONGEST_TEXT
from crawler.visit.signatures import texts_of

THIN = 1000  # bytes of text; challenge and block pages show 40 to 900
LITTLE = 2000  # bytes: with the title and a phrase of a 404
FEW_LINKS = 20  # addresses of a thin page
SENTENCE = 300  # bytes: a sentence about JavaScript, alone
LOADING = 60  # bytes: "Loading…" in a mount node, alone
LOGIN_FORM = 400  # bytes, under the title of a login
LOGIN_ALONE = 150  # bytes, under any title
LOGIN_LINKS = 8  # addresses of a page with a form for a password, or of a shell
BLOCK_LINKS = 5  # of a challenge or block page
LONGEST_USER_TEXT = 1024 * 1024  # bytes of a page that are searched for a user's text
FEWEST_BYTES = 20  # of a text that is compared with that of a 404

_BLOCKS = frozenset({403, 429, 503})
_PROOF_HEADERS = frozenset(proof.header for proof in signatures.HEADER_PROOFS)
_MISSING = frozenset({404, 410})

_BLOCK_TITLES = frozenset(texts_of(signatures.BLOCK_TITLES))
_NOT_FOUND_TITLES = frozenset(texts_of(signatures.NOT_FOUND_TITLES))
_NOT_FOUND_WORDS = frozenset(title.split()[-1] for title in _NOT_FOUND_TITLES)  # each has its last one
_MOUNT_IDS = frozenset(texts_of(signatures.MOUNT_NODES))
_PARKING_HOSTS = tuple((text, text.encode()) for text in texts_of(signatures.PARKING_HOSTS))
_PARKING_SCRIPTS = tuple(text.encode() for text in texts_of(signatures.PARKING_SCRIPTS))
_SEPARATOR = re.compile(r"\s+[|·•»«:–—-]+\s+")
_DOMAIN_NAME = re.compile(r"[\w-]+(?:\.[\w-]+)+")

_CUT = re.compile(rb"<(script|style|noscript|template)(?=[\s/>])|<!--")
_ANCHOR = re.compile(rb"<a[\s/][^<>]*?href")
_SHOWN = re.compile(
    rb"<(?:img|image|iframe|frame|frameset|object|embed|video|audio|canvas|svg|math|input|textarea|select|button|xmp"
    rb"|plaintext|applet|area|picture)[\s/>]|background"
)
_INTERACTIVE = re.compile(rb"<(?:iframe|frame|object|embed|video|audio|canvas|input|textarea|select|xmp)[\s/>]")
_REFRESH = re.compile(rb"http-equiv[\s]*=[\s]*[\"']?refresh")
_ID = re.compile(rb"[\s\"']id[\s]*=[\s]*[\"']?([\w-]{1,40})")
_PASSWORD = re.compile(rb"type[\s]*=[\s]*[\"']?password")
_SOURCE_HOST = re.compile(rb"src[\s]*=[\s]*[\"']?(?:https?:)?//([\w.-]{1,253})", re.IGNORECASE)
_MOUNT_ELEMENT = re.compile(
    rb"<(?:%b)[\s/>]" % b"|".join(text.encode() for text in texts_of(signatures.MOUNT_ELEMENTS))
)


class Validation(NamedTuple):
    """The judgement of an answer. `reason` is None for a good page, else a slug and words, as errors are."""

    word: Validity
    reason: str | None = None


GOOD = Validation(Validity.OK)


_BLOCK_PHRASES = texts_of(signatures.BLOCK_PHRASES)
_ERROR_PHRASES = _BLOCK_PHRASES + texts_of(signatures.ERROR_PHRASES)
_LOADING = texts_of(signatures.LOADING)
_NEEDS_SCRIPTS = texts_of(signatures.NEEDS_SCRIPTS)
_PARKING_PHRASES = texts_of(signatures.PARKING_PHRASES)
_NOT_FOUND_PHRASES = texts_of(signatures.NOT_FOUND_PHRASES)
_MISSING_PHRASES = _NOT_FOUND_PHRASES + texts_of(signatures.MISSING_PHRASES)
_LOGIN_WORD = re.compile(rf"\b(?:{'|'.join(re.escape(text) for text in texts_of(signatures.LOGIN_WORDS))})\b")


class Validator:
    """Judges answers by one configuration."""

    def __init__(self, settings: ValidationSettings, garbage: Sequence[GarbageRule] = ()) -> None:
        self.is_enabled = settings.enabled
        self._ignored = frozenset(settings.ignore)
        self._texts = [(plain(rule.text), rule) for rule in garbage if rule.text]
        self._selectors = [rule for rule in garbage if rule.selector]
        self.longest_text = LONGEST_USER_TEXT if self._texts and settings.enabled else LONGEST_TEXT

    @property
    def looks_into_pages(self) -> bool:
        """Are there signatures of a user's own, which the bytes of every page have to be searched for?"""
        return self.is_enabled and bool(self._texts or self._selectors)

    def judge(self, answer: Response, page: Extracted | None) -> Validation | None:
        """The judgement of an answer. `page` is what its body says; None: no HTML was read.

        None: nothing is known about it. An error answer without evidence is just that.
        """
        if not self.is_enabled:
            return None
        is_page = 200 <= answer.status <= 299 and page is not None
        found = self._signs(answer, page)
        if found is not None and found.reason is not None and found.reason.partition(":")[0] in self._ignored:
            found = None
        if found is None and is_page and page is not None:
            found = self._by_user(answer, page)
        return found or (GOOD if is_page else None)

    def _signs(self, answer: Response, page: Extracted | None) -> Validation | None:
        found = _header_proof(answer)
        if found is not None or page is None or answer.status in _MISSING:
            return found
        size = len(page.text)
        if not 200 <= answer.status <= 299:
            return _error_page(answer, page) if size < LITTLE else None
        if size >= LITTLE:
            return None
        if is_judged_by_its_markup(page.text, page.hrefs):
            return _thin_page(answer, page) or _soft_404(page)
        return _soft_404(page)

    def _by_user(self, answer: Response, page: Extracted) -> Validation | None:
        if self._texts:
            shown = f"{plain(page.title or '')} {_text_of(page)}"
            for text, rule in self._texts:
                if text in shown:
                    return Validation(Validity(rule.verdict), f"{rule.name}: it says {rule.text!r}")
        if self._selectors:
            from crawler.visit.selector_rules import matching  # parsel takes longer to import than all else here

            content_type = answer.headers.get("content-type")
            found = matching(answer.body, content_type, self._selectors)
            if found is not None:
                return Validation(Validity(found.verdict), f"{found.name}: {found.selector} matches")
        return None


def is_judged_by_its_markup(text: bytes, hrefs: Sequence[str]) -> bool:
    """Is a page with 2xx so thin that its bytes are looked at, too? Of others, what they show is enough, and of those
    that show `LITTLE` bytes or more it is its length alone.
    """
    return len(text) < THIN and len(hrefs) <= FEW_LINKS


def plain(text: str) -> str:
    """A text as the signatures have theirs: lower case, plain apostrophes, single spaces."""
    return " ".join(text.replace("’", "'").casefold().split())


def text_print(page: Extracted, url: str) -> int | None:
    """A number that two pages share if they show the same title and text, digits and their own addresses aside.

    None: the page shows too much to be the page for missing ones, or too little to tell.
    """
    if not FEWEST_BYTES <= len(page.text) < LITTLE:
        return None
    data = (page.title or "").encode("utf-8", "surrogatepass") + b"\n" + page.text
    file = url.partition("?")[0].rpartition("/")[2]
    # The file's name is part of all the others, unless there are several forms of each. Most pages show none of them.
    if len(file) <= 2 or "%" in url or "&" in url or file.encode("utf-8", "replace") in data:
        for piece in _own_names(url):
            data = data.replace(piece, b"")
    return hash64(data.translate(None, b"0123456789").decode("utf-8", "surrogateescape")) >> 2  # records hold 62 bits


def _own_names(url: str) -> list[bytes]:
    """The forms in which a page may show its own address, a longer one before one that is part of it."""
    path = "/" + url.partition("://")[2].partition("/")[2]
    bare = path.partition("?")[0]
    names = [url, path, bare, bare.rpartition("/")[2]]
    if "%" in path:
        names = [form for name in names for form in (name, unquote(name))]
    if "&" in path:
        names = [form for name in names for form in (name.replace("&", "&amp;"), name)]
    return [name.encode("utf-8", "replace") for name in names if len(name) > 2]


def _text_of(page: Extracted) -> str:
    return plain(in_text(page.text).decode("utf-8", "replace"))


def _header_proof(answer: Response) -> Validation | None:
    headers: Mapping[str, str] = answer.headers
    if _PROOF_HEADERS.isdisjoint(headers):
        return None
    for proof in signatures.HEADER_PROOFS:
        value = headers.get(proof.header)
        if value is None or (proof.statuses and answer.status not in proof.statuses):
            continue
        if not proof.values or value.strip().lower() in proof.values:
            return _hard(proof.name, f"the header {proof.header} says {value.strip()[:40]!r}")
    return None


def _markup(body: bytes) -> Validation | None:
    for mark in signatures.MARKUP:
        if mark.pieces[0] in body and all(piece in body for piece in mark.pieces):
            return _hard(mark.name, f"its markup has {mark.pieces[0].decode()}")
    return None


def _error_page(answer: Response, page: Extracted) -> Validation | None:
    """An error status with a block page's markup, title or words."""
    found = _markup(answer.body) if answer.status in _BLOCKS else None
    if found is not None:
        return found
    title = plain(page.title or "")
    if title in _BLOCK_TITLES:
        return _hard("block-page", f"status {answer.status} and the title {title!r}")
    phrase = _first(_ERROR_PHRASES, _text_of(page)) if answer.status in _BLOCKS else None
    return None if phrase is None else _hard("block-page", f"status {answer.status} and the words {phrase!r}")


def _thin_page(answer: Response, page: Extracted) -> Validation | None:
    """A page with 2xx that shows little and has few links."""
    found = _block_page(answer, page) if len(page.hrefs) <= BLOCK_LINKS else None
    if found is None and (b"domain" in page.text.lower() or len(page.text) < LOGIN_ALONE):
        found = _parked(answer.body, plain(page.title or ""), _text_of(page))
    if found is not None or len(page.text) > LOGIN_FORM or len(page.hrefs) > LOGIN_LINKS:
        return found
    look = _Skeleton(answer.body)
    if "refresh" in answer.headers or _REFRESH.search(look.markup):
        return None  # it sends its visitors on
    text = _text_of(page)
    return _empty(look, page, text) or _login(look, plain(page.title or ""), text)


def _block_page(answer: Response, page: Extracted) -> Validation | None:
    found = _markup(answer.body)
    title = plain(page.title or "") if found is None else ""
    if title not in _BLOCK_TITLES:
        return found
    phrase = _first(_BLOCK_PHRASES, _text_of(page))
    return None if phrase is None else _hard("block-page", f"the title {title!r} and the words {phrase!r}")


def _parked(body: bytes, title: str, text: str) -> Validation | None:
    for parking, host in _PARKING_HOSTS:
        if host in body and any(_is_of(found, host) for found in _SOURCE_HOST.findall(body)):
            return _soft("parked", f"it loads {parking}")
    if any(script in body for script in _PARKING_SCRIPTS):
        return _soft("parked", "its only script leads to a lander")
    if "domain" not in text:
        return None
    phrases = [phrase for phrase in _PARKING_PHRASES if phrase in text or phrase in title]
    is_parked = len(phrases) > 1 or (len(phrases) == 1 and _DOMAIN_NAME.fullmatch(title) is not None)
    return _soft("parked", f"it says {phrases[0]!r}") if is_parked else None


def _is_of(host: bytes, domain: bytes) -> bool:
    host = host.lower()
    return host == domain or host.endswith(b"." + domain)


class _Skeleton:
    """The markup without scripts, styles, templates, `<noscript>` and comments, in lower case; the number of scripts.

    One that is never closed stays: to cut off the rest could cut off the page.
    """

    def __init__(self, body: bytes) -> None:
        lower = body.lower()
        parts: list[bytes] = []
        unclosed: set[bytes] = set()
        self.scripts = 0
        start = 0
        while (found := _CUT.search(lower, start)) is not None:
            name = found[1] or b"!--"
            self.scripts += name == b"script"
            end = -1 if name in unclosed else lower.find(b"-->" if name == b"!--" else b"</" + name, found.end())
            if end < 0:
                unclosed.add(name)  # looked for once: the rest is searched at most once for each name
                parts.append(lower[start : found.end()])
                start = found.end()
            else:
                parts.append(lower[start : found.start()])
                start = end + 2
        parts.append(lower[start:])
        self.markup = b" ".join(parts)
        self.has_links = _ANCHOR.search(self.markup) is not None


def _empty(look: _Skeleton, page: Extracted, text: str) -> Validation | None:
    if look.has_links:
        return None
    if not text and not _SHOWN.search(look.markup):
        if look.scripts:
            return _soft(NEEDS_RENDERING, "nothing but scripts")
        return _soft("empty", "nothing is shown")
    if not look.scripts or _INTERACTIVE.search(look.markup):
        return None
    size = len(page.text)
    is_bare = not text or (size <= LOADING and text.startswith(_LOADING))
    if is_bare and (node := _mount_node(look.markup)) is not None:
        return _soft(NEEDS_RENDERING, f"an empty {node} and scripts")
    if size <= SENTENCE and (phrase := _first(_NEEDS_SCRIPTS, text)) is not None:
        return _soft(NEEDS_RENDERING, f"it only says {phrase!r}")
    return None


def _mount_node(markup: bytes) -> str | None:
    for found in _ID.findall(markup):
        if (name := found.decode("ascii", "replace")) in _MOUNT_IDS:
            return f"#{name}"
    element = _MOUNT_ELEMENT.search(markup)
    return None if element is None else element[0].decode("ascii", "replace").strip("</> ")


def _login(look: _Skeleton, title: str, text: str) -> Validation | None:
    if len(_PASSWORD.findall(look.markup)) != 1:
        return None  # two of them are for a new password
    word = _LOGIN_WORD.search(title) or (_LOGIN_WORD.search(text) if len(text) <= LOGIN_ALONE else None)
    return None if word is None else _soft("login-wall", f"a form for a password and the words {word[0]!r}")


def _soft_404(page: Extracted) -> Validation | None:
    title = plain(page.title or "")
    if _NOT_FOUND_WORDS.isdisjoint(title.split()):
        return None
    part = next((part for part in (title, *_SEPARATOR.split(title)) if part in _NOT_FOUND_TITLES), None)
    if part is None:
        return None
    phrase = _first(_MISSING_PHRASES if len(page.text) < THIN else _NOT_FOUND_PHRASES, _text_of(page))
    return None if phrase is None else _soft(SOFT_404, f"the title {part!r} and the words {phrase!r}")


def _first(phrases: Sequence[str], text: str) -> str | None:
    return next((phrase for phrase in phrases if phrase in text), None)


def _hard(name: str, words: str) -> Validation:
    return Validation(Validity.HARD, f"{name}: {words}")


def _soft(name: str, words: str) -> Validation:
    return Validation(Validity.SOFT, f"{name}: {words}")


REASONS = frozenset(  # the slugs of every reason that is not a user's own
    {
        *(proof.name for proof in signatures.HEADER_PROOFS),
        *(mark.name for mark in signatures.MARKUP),
        *("block-page", "empty", NEEDS_RENDERING, "parked", "login-wall", SOFT_404),
    }
)
