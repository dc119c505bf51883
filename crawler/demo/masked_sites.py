"""PURE. Demo pages that are none, though they answer 200: a challenge, a shell that needs JavaScript, a soft 404.

Each is known by its own bytes, so the map does not depend on the order of visits. What the soft 404 links to is
recorded and not followed.
"""

from __future__ import annotations

from crawler.demo.sites import Page, Site

BALL_HOST = "masked-ball.test"

_CHALLENGE = b"""<!DOCTYPE html>
<html lang="en"><head><title>Making sure you're not a bot!</title></head>
<body><h1>Making sure you're not a bot!</h1><p>Loading...</p>
<script id="anubis_challenge" type="application/json">{"rules":{"difficulty":4}}</script>
<script src="/guard.mjs" type="module"></script></body></html>
"""
_SHELL = b"""<!DOCTYPE html>
<html lang="en"><head><title>Dance card</title></head>
<body><noscript>You need to enable JavaScript to see your dance card.</noscript>
<div id="root"></div><script src="/dance-card.js"></script></body></html>
"""


def masked_ball() -> Site:
    """A site whose good pages stand beside three that only look like pages."""
    return Site(
        BALL_HOST,
        "The Masked Ball",
        pages=(
            Page(
                "/",
                "The Masked Ball",
                ("Everybody comes as somebody else. The access denied to the curious is part of the fun.",),
                (
                    ("/guard", "The guard at the door"),
                    ("/dance-card", "Your dance card"),
                    ("/left-glove", "A glove that was left behind"),
                    ("/mirrors", "The hall of mirrors"),
                ),
            ),
            Page("/guard", raw=_CHALLENGE),
            Page("/dance-card", raw=_SHELL),
            Page(
                "/left-glove",
                "Page not found - The Masked Ball",
                ("The page you are looking for does not exist, or has gone home.",),
                (("/backstage", "Backstage"),),
            ),
            Page(
                "/mirrors", "The hall of mirrors - The Masked Ball", ("Please enable JavaScript, says the left one.",)
            ),
        ),
        menu=(("/", "Home"),),
    )
