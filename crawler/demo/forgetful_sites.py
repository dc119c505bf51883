"""PURE. A demo site that forgets links: the old ledger has pages that no link leads to, and only a guess finds.

Its journal is a list whose first page links the second and the third; the fourth is there and nobody links it. Its
entries have their month in their addresses; the page of one month lists an entry that nothing else mentions.
"""

from __future__ import annotations

from crawler.demo.sites import Page, Site

LEDGER_HOST = "ledger.press-garden.test"
_NAME = "The Old Ledger"
_BACK = ("/journal", "The journal")


def old_ledger() -> Site:
    """A list with a missing next link, and an archive that is not linked."""
    return Site(
        LEDGER_HOST,
        _NAME,
        pages=(
            Page(
                "/", _NAME, ("Who printed what, and for whom.",), (_BACK, ("/1911/04/first-sheet", "The first sheet"))
            ),
            Page(
                "/journal",
                f"Journal - {_NAME}",
                ("The newest leaf. The binder numbered the leaves and lost interest.",),
                (("/journal/page/2", "2"), ("/journal/page/3", "3"), ("/1911/05/damp-paper", "Damp paper")),
            ),
            Page("/journal/page/2", f"Journal, leaf 2 - {_NAME}", ("Ink was dear.",), (_BACK,)),
            Page("/journal/page/3", f"Journal, leaf 3 - {_NAME}", ("The cat walked over the type.",), (_BACK,)),
            Page(
                "/journal/page/4",
                f"Journal, leaf 4 - {_NAME}",
                ("A leaf that stuck to the cover.",),
                (_BACK, ("/1911/05/stuck-leaf", "What stood on it")),
            ),
            Page("/1911/04/first-sheet", f"The first sheet - {_NAME}", ("It was printed upside down.",), (_BACK,)),
            Page("/1911/05/damp-paper", f"Damp paper - {_NAME}", ("It rained into the shed.",), (_BACK,)),
            Page("/1911/05/stuck-leaf", f"The stuck leaf - {_NAME}", ("Nothing of importance.",), (_BACK,)),
            Page(
                "/1911/05",
                f"May 1911 - {_NAME}",
                ("All entries of the month.",),
                (("/1911/05/damp-paper", "Damp paper"), ("/1911/05/unsigned", "An entry without a name")),
            ),
            Page("/1911/05/unsigned", f"An entry without a name - {_NAME}", ("Somebody was here.",), (_BACK,)),
        ),
        menu=(("/", "Home"),),
    )
