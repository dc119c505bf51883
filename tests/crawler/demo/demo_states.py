"""Every page that a finished crawl of the demo terrain must find, with its state. Written by hand."""

from __future__ import annotations

from crawler.demo.terrain import IDN_HOST, LADDER_HOPS

_FIXED = {
    "processed": """
        https://tea-almanac.test/
        https://tea-almanac.test/teas
        https://tea-almanac.test/teas/green
        https://tea-almanac.test/teas/oolong
        https://tea-almanac.test/teas/smoked
        https://tea-almanac.test/brewing
        https://tea-almanac.test/seasons
        https://tea-almanac.test/letters
        https://tea-almanac.test/letters/unsent
        https://tea-almanac.test/guestbook
        https://tea-almanac.test/echo
        https://tea-almanac.test/echo/echo
        https://tea-almanac.test/echo/echo/echo
        https://chart-room.test/
        https://chart-room.test/maps
        https://chart-room.test/maps/coast
        https://chart-room.test/maps/island
        https://chart-room.test/instruments
        https://chart-room.test/workshop/compass
        https://chart-room.test/workshop/lens?a=1&b=2
        https://chart-room.test/errata
        https://chart-room.test/visitors
        https://press-garden.test/
        https://press-garden.test/about
        https://press-garden.test/hours
        https://type.press-garden.test/
        https://type.press-garden.test/cases
        https://type.press-garden.test/ligatures
        https://type.press-garden.test/ink
        https://type.press-garden.test/ink/black
        https://type.press-garden.test/ink/soot
        https://paper.press-garden.test/
        https://paper.press-garden.test/fibres
        https://ledger.press-garden.test/
        https://ledger.press-garden.test/journal
        https://ledger.press-garden.test/journal/page/2
        https://ledger.press-garden.test/journal/page/3
        https://ledger.press-garden.test/journal/page/4
        https://ledger.press-garden.test/1911/04/first-sheet
        https://ledger.press-garden.test/1911/05/damp-paper
        https://ledger.press-garden.test/1911/05/stuck-leaf
        https://ledger.press-garden.test/1911/05
        https://ledger.press-garden.test/1911/05/unsigned
        https://moss-notes.test/
        https://moss-notes.test/walls
        https://moss-notes.test/ponds
        https://moss-notes.test/turn
        https://pond-diary.test/
        https://pond-diary.test/frogs
        https://storm-mill.test/
        https://storm-mill.test/waterwheel
        https://quiet-abbey.test/
        https://quiet-abbey.test/garden
        https://quiet-abbey.test/cloister/well
        https://winding-path.test/
        https://winding-path.test/start
        https://winding-path.test/bend
        https://winding-path.test/rest?seen=1
        https://winding-path.test/to-lamps
        https://winding-path.test/to-library
        https://winding-path.test/nowhere
    """,
    "dead_link": """
        https://tea-almanac.test/brewing/with-snow
        https://tea-almanac.test/brewing/tin-kettle
        https://moss-notes.test/lost-stone
        https://moss-notes.test/walls/north
        https://winding-path.test/not-there
        https://ledger.press-garden.test/journal/page/5
        https://ledger.press-garden.test/1911
        https://ledger.press-garden.test/1911/04
    """,
    "failed": """
        https://tea-almanac.test/kitchen/stove
        https://tea-almanac.test/echo/echo/echo/echo
        https://storm-mill.test/sails
        https://storm-mill.test/stones
        https://storm-mill.test/miller-only
        https://quiet-abbey.test/cloister/cells
        https://winding-path.test/loop/a
        https://winding-path.test/loop/b
        https://winding-path.test/loop/c
        https://winding-path.test/knot
        https://winding-path.test/to-mail
        https://spiral-stair.test/step/0
        https://spiral-stair.test/step/1
        https://foggy-harbour.test/
        https://slow-temple.test/
    """,
    "unreachable": """
        https://shut-gate.test/
        https://shut-gate.test/keys
        https://rusty-lock.test/
        https://wrong-name.test/
        https://old-seal.test/
    """,
    "rate_limited": """
        https://busy-counter.test/
        https://busy-counter.test/spring
        https://busy-counter.test/autumn
        https://busy-counter.test/orders?open=1
    """,
    "content_mismatch": """
        https://chart-room.test/files/tide-table.pdf
        https://chart-room.test/files/harbour-plan
        https://chart-room.test/files/legend
    """,
    "depth_exceeded": """
        https://pond-diary.test/lilies
        https://far-island.test/
    """,
    "discovered": """
        https://unvisited-cove.test/
        https://unvisited-cove.test/sand
        https://unvisited-cove.test/rocks
    """,
    "blacklisted": """
        https://ad-lantern.test/banner?slot=3
        https://ad-lantern.test/lamps
        https://cdn.beacon-count.test/pixel.gif?who=reader
        https://px.beacon-count.test/hit
    """,
    "stubbed": """
        https://library-shelf.test/bowls/blue-glaze
        https://library-shelf.test/smoke/pine?page=12
        https://library-shelf.test/atlases/small
        https://library-shelf.test/new
        https://tea.encyclopaedia.test/wiki/Oolong
        https://maps.encyclopaedia.test/wiki/Portolan
        https://people.encyclopaedia.test/wiki/Compositor
    """,
}

# Its breaker opens after the five that it refuses, and closes again.
FERRY_CROSSED = tuple(
    f"https://tired-ferry.test/{path}" for path in ("", "landings/north-bank", "landings/south-bank", "landings/island")
)
FERRY_REFUSED = tuple(
    f"https://tired-ferry.test/crossings/{day}" for day in ("monday", "tuesday", "wednesday", "thursday", "friday")
)

# Pages that are none, with their verdicts, beside good ones; the link of a rejected page is not followed.
MASKED = {
    "https://masked-ball.test/guard": ("hard", "anubis-challenge"),
    "https://masked-ball.test/dance-card": ("soft", "needs-rendering"),
    "https://masked-ball.test/left-glove": ("soft", "soft-404"),
}
BALL = ("https://masked-ball.test/", "https://masked-ball.test/mirrors")

# Pages that no link leads to, with the way to them.
UNLINKED = {
    "https://tea-almanac.test/letters/unsent": "sitemap",
    "https://ledger.press-garden.test/1911": "archive",
    "https://ledger.press-garden.test/1911/05": "archive",
    "https://ledger.press-garden.test/1911/04": "archive",
    "https://ledger.press-garden.test/journal/page/4": "speculated",
    "https://ledger.press-garden.test/journal/page/5": "speculated",
}

# The stable first words of what went wrong.
EXPECTED_SLUGS = {
    "https://tea-almanac.test/kitchen/stove": "robots-denied",
    "https://tea-almanac.test/echo/echo/echo/echo": "trap-path-repeats",
    "https://storm-mill.test/sails": "http-503",
    "https://storm-mill.test/stones": "http-500",
    "https://storm-mill.test/miller-only": "http-403",
    "https://quiet-abbey.test/cloister/cells": "robots-denied",
    "https://winding-path.test/loop/a": "redirect-loop",
    "https://winding-path.test/knot": "redirect-loop",
    "https://spiral-stair.test/step/0": "redirect-limit",
    FERRY_REFUSED[0]: "http-403",
    "https://foggy-harbour.test/": "robots-unreachable",
    "https://slow-temple.test/": "crawl-delay-too-long",
    "https://shut-gate.test/": "connection-refused",
    "https://rusty-lock.test/": "tls",
    "https://wrong-name.test/": "tls",
    "https://old-seal.test/": "tls",
}


def expected_states(budget: int = 40, query_variants: int = 4, scroll_length: int = 40) -> dict[str, str]:
    """Key → state of every page in the finished map, under these limits of the demo's config."""
    states = {key: state for state, keys in _FIXED.items() for key in keys.split()}
    states |= dict.fromkeys(FERRY_CROSSED, "processed") | dict.fromkeys(FERRY_REFUSED, "failed")
    states |= dict.fromkeys((*BALL, *MASKED), "processed") | {"https://masked-ball.test/backstage": "discovered"}
    for path in ("/", "/%C3%A4ste", "/moos"):
        states[f"https://{IDN_HOST}{path}"] = "processed"
    for step in range(LADDER_HOPS):  # the walk ends after ten redirects: the top is never found
        states[f"https://spiral-stair.test/step/{step}"] = "failed"
    for day in range(1, query_variants + 1):
        states[f"https://chart-room.test/tides?day={day}"] = "processed"
    states[f"https://chart-room.test/tides?day={query_variants + 1}"] = "failed"
    # One request for robots.txt, two for each page: the first page that would need one more than the budget.
    last = (budget - 1) // 2 + 1
    for number in range(1, min(last, scroll_length + 1)):
        states[f"https://long-scroll.test/scroll/{number}"] = "processed"
    if last <= scroll_length:
        states[f"https://long-scroll.test/scroll/{last}"] = "request_limit_hit"
    else:  # the scroll ends with a link to nowhere
        end = "dead_link" if 1 + 2 * scroll_length < budget else "request_limit_hit"
        states[f"https://long-scroll.test/scroll/{scroll_length + 1}"] = end
    return states
