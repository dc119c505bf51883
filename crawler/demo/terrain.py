"""PURE. The demo web: some two dozen invented sites about tea, maps, printing and gardens.

Between them their pages end in every state that a finished crawl can hold, and they have most of what makes
the real web hard: redirects of every kind, servers that falter, lie, refuse or limit, odd encodings, traps,
bad certificates.

The map of it does not depend on the order of visits nor on pages being visited twice. Three things
could have made it so, and are therefore written as they are:
- the domain that answers 429 answers it always, and all its pages are linked from one page only;
- the domain that outgrows its budget is one long chain of pages, and so is the calendar without end: there is
  only ever one next page to ask for;
- the page that answers 503 at first counts its answers by URL, and is well for ever afterwards.
"""

from __future__ import annotations

import gzip

from crawler.demo.failing_sites import FERRY_HOST, tired_ferry
from crawler.demo.forgetful_sites import LEDGER_HOST, old_ledger
from crawler.demo.masked_sites import BALL_HOST, masked_ball
from crawler.demo.sites import Page, Site, SiteTerrain

SCROLL_LENGTH = 40  # pages of the long scroll; the budget ends before them
LADDER_HOPS = 12  # redirects from the bottom of the spiral stair to its top
TIDE_DAYS = 400  # as good as endless

QUALITY = {
    "tea-almanac.test": ("https://tea-almanac.test/",),
    "chart-room.test": ("https://chart-room.test/", "https://chart-room.test/maps/"),
    "*.press-garden.test": ("https://press-garden.test/", "https://type.press-garden.test/cases"),
    "long-scroll.test": ("https://long-scroll.test/scroll/1",),
}
BLACKLIST = ("ad-lantern.test", "*.beacon-count.test")
STUB = ("library-shelf.test", "*.encyclopaedia.test")
REFUSED_HOST = "shut-gate.test"  # nothing listens there
IDN_HOST = "xn--bltterwald-r5a.test"  # blätterwald.test


def demo_terrain() -> SiteTerrain:
    """All sites of the demo."""
    return SiteTerrain(
        (
            _tea_almanac(),
            _chart_room(),
            *_press_garden(),
            old_ledger(),
            _long_scroll(),
            _moss_notes(),
            _pond_diary(),
            _storm_mill(),
            _quiet_abbey(),
            _winding_path(),
            _spiral_stair(),
            _leaf_forest(),
            tired_ferry(),
            masked_ball(),
            *_closed_doors(),
            *_never_visited(),
        )
    )


# -- quality ----------------------------------------------------------------------------------------------


def _sitemap(root: str, item: str, *entries: tuple[str, str]) -> bytes:
    """A sitemap of (address, date of the last change) pairs."""
    rows = "".join(f"<{item}><loc>{url}</loc><lastmod>{date}</lastmod></{item}>\n" for url, date in entries)
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{space}">\n{rows}</{root}>\n'.encode()


def _tea_almanac() -> Site:
    """A quality domain: tracking parameters, a canonical link, dead links, a nofollow page, an echo trap, and a letter
    that only its sitemap knows.
    """
    return Site(
        "tea-almanac.test",
        "The Tea Almanac",
        menu=(
            ("/", "Home"),
            ("/teas/", "Teas"),
            ("/brewing", "Brewing"),
            ("/seasons", "Seasons"),
            ("/letters", "Letters"),
        ),
        footer=(("https://www.ad-lantern.test/banner?slot=3", "Lamp oil, half price"),),
        robots="User-agent: *\nDisallow: /kitchen/\n\nSitemap: https://tea-almanac.test/sitemap.xml\n",
        pages=(
            Page(
                "/",
                "The Tea Almanac",
                (
                    "A leaf a day, with the water it likes and the weather it remembers.",
                    "We keep a table by the window and write down what we drink there. Nothing is for sale.",
                ),
                (
                    ("/teas/green?utm_source=home&utm_medium=web", "Tea of the week: a steamed green"),
                    ("https://chart-room.test/", "Our neighbours, who draw the roads that tea takes"),
                    ("https://press-garden.test/", "The printers of our labels"),
                    ("https://library-shelf.test/bowls/blue-glaze", "A book about bowls"),
                    ("/guestbook", "Guestbook"),
                    ("/echo/", "Say something in the cellar"),
                    ("mailto:table@tea-almanac.test", "Write to us"),
                    ("javascript:window.print()", "Print this page"),
                    ("tel:+000", "Ring the bell"),
                ),
            ),
            Page(
                "/sitemap.xml",
                content_type="application/xml",
                raw=_sitemap(
                    "sitemapindex", "sitemap", ("https://tea-almanac.test/sitemaps/letters.xml.gz", "2024-05")
                ),
            ),
            Page(
                "/sitemaps/letters.xml.gz",
                content_type="application/gzip",
                raw=gzip.compress(
                    _sitemap(
                        "urlset",
                        "url",
                        ("https://tea-almanac.test/letters", "2024-05-06T07:08:09+02:00"),
                        ("https://tea-almanac.test/letters/unsent", "2019"),
                        ("https://elsewhere.test/not-ours", "2020-01-01"),
                    ),
                    mtime=0,
                ),
            ),
            Page(
                "/letters/unsent",
                "A letter that was never sent - The Tea Almanac",
                ("It lies in the drawer of the table. Only the inventory of the house mentions it.",),
            ),
            Page("/teas", location="/teas/", status=301),
            Page(
                "/teas/",
                "Teas - The Tea Almanac",
                ("Green teas are picked in the cool of the morning; oolongs wait for the sun.",),
                (
                    ("green?ref=index", "Steamed green"),
                    ("oolong#second-infusion", "Rolled oolong"),
                    ("./../teas/smoked", "Smoked over pine"),
                    ("https://tea.encyclopaedia.test/wiki/Oolong", "Oolong, in the encyclopaedia"),
                ),
            ),
            Page(
                "/teas/green",
                "Steamed green - The Tea Almanac",
                ("Seventy degrees and no more than ninety seconds. The cup should smell of cut grass.",),
                (("https://moss-notes.test/", "Notes on moss, which likes the same weather"),),
                extra_head='<link rel="canonical" href="https://tea-almanac.test/teas/green">',
            ),
            Page(
                "/teas/oolong",
                "Rolled oolong - The Tea Almanac",
                ("The leaf opens slowly; the fourth cup is the one to keep for a guest.",),
                (
                    ("http://moss-notes.test/walls", "A wall worth a visit"),
                    ("https://tea.encyclopaedia.test/wiki/Oolong", "Oolong, in the encyclopaedia"),
                ),
            ),
            Page(
                "/teas/smoked",
                "Smoked over pine - The Tea Almanac",
                ("It keeps for years in a tin, and the tin keeps the smell for longer.",),
                (("https://library-shelf.test/smoke/pine?page=12", "On pine smoke"),),
            ),
            Page(
                "/brewing",
                "Brewing - The Tea Almanac",
                ("Warm the pot first. Everything else can be mended.",),
                (
                    ("/brewing/with-snow", "Melted snow, an experiment"),
                    ("/brewing/tin-kettle", "Why we gave up the tin kettle"),
                    ("/kitchen/stove", "Our stove"),
                    ("https://storm-mill.test/", "The mill that grinds our powdered tea"),
                    ('/files/labels.zip" download="labels.zip', "Labels"),
                ),
            ),
            Page(
                "/brewing/tin-kettle",
                "Gone",
                ("We took this page down on purpose.",),
                status=410,
            ),
            Page(
                "/seasons",
                "Seasons - The Tea Almanac",
                ("First flush, second flush, and the autumn nobody writes about.",),
                (
                    ("https://busy-counter.test/", "The shop at the station"),
                    ("https://busy-counter.test/spring", "Its spring list"),
                    ("https://busy-counter.test/autumn", "Its autumn list"),
                    ("https://busy-counter.test/orders?open=1", "Open orders"),
                    ("https://quiet-abbey.test/", "The abbey whose garden sets our calendar"),
                ),
            ),
            Page(
                "/letters",
                "Letters - The Tea Almanac",
                ("Readers send us roads, mostly. Some of them lead somewhere.",),
                (
                    ("https://winding-path.test/", "A walk with many turns"),
                    (f"https://{BALL_HOST}/", "An invitation"),
                    ("https://spiral-stair.test/step/0", "A staircase, counted"),
                    ("https://blätterwald.test/", "Blätterwald, a wood of leaves"),
                    (f"https://{REFUSED_HOST}/", "A gate"),
                    (f"https://{REFUSED_HOST}/keys", "Its keys"),
                    ("https://rusty-lock.test/", "A lock that vouches for itself"),
                    ("https://wrong-name.test/", "A house with another's name on the door"),
                    ("https://old-seal.test/", "A seal past its date"),
                    ("https://foggy-harbour.test/", "A harbour in fog"),
                    ("https://slow-temple.test/", "A temple that asks for patience"),
                    ("https://cdn.beacon-count.test/pixel.gif?who=reader", "Counted"),
                ),
            ),
            Page(
                "/guestbook",
                "Guestbook - The Tea Almanac",
                ("What guests link to is theirs to answer for, so we ask robots not to follow.",),
                (
                    ("https://unvisited-cove.test/", "A cove nobody else mentions"),
                    ("https://unvisited-cove.test/sand", "Its sand"),
                    ("/teas/green", "The green one was lovely"),
                ),
                extra_head='<meta name="robots" content="noarchive, nofollow">',
            ),
            *(Page("/echo" * depth, location="/echo" * depth + "/", status=308) for depth in range(1, 9)),
            *(
                Page(
                    "/echo/" + "echo/" * depth,
                    "Echo - The Tea Almanac",
                    ("Whatever is said here comes back a step deeper.",),
                    (("echo/", "Again"),),
                )
                for depth in range(8)
            ),
        ),
    )


def _chart_room() -> Site:
    """A quality domain: old encodings, a base href, files with page-like names, a calendar without end."""
    return Site(
        "chart-room.test",
        "The Chart Room",
        menu=(("/", "Home"), ("/maps/", "Maps"), ("/instruments", "Instruments"), ("/tides?day=1", "Tides")),
        footer=(("https://px.beacon-count.test/hit", "Visitors"),),
        aliases=("www.chart-room.test",),
        pages=(
            Page(
                "/",
                "The Chart Room",
                ("Maps are promises about places. We draw small ones and try to keep them.",),
                (
                    ("https://tea-almanac.test/", "The Tea Almanac, whose roads these are"),
                    (
                        "https://tea-almanac.test/teas/oolong?fbclid=x1y2",
                        "A tea for long evenings over a map",
                    ),
                    ("https://www.chart-room.test/errata", "Errata"),
                    ("/visitors", "Visitors' book"),
                    ("/files/tide-table.pdf", "Tide table (PDF)"),
                    ("/files/harbour-plan", "Harbour plan"),
                    ("/files/legend", "Legend"),
                    (f"https://{FERRY_HOST}/", "The ferry, if the ferryman is awake"),
                    ("//library-shelf.test/atlases/small", "A shelf of small atlases"),
                ),
            ),
            Page(
                "/maps/",
                "Maps - The Chart Room",
                ("Coasts first, islands second, and the blank parts last.",),
                (
                    ("coast", "The coast"),
                    ("island", "The island"),
                    ("https://maps.encyclopaedia.test/wiki/Portolan?source=maps", "Portolan charts"),
                    ("https://storm-mill.test/waterwheel", "A wheel on the river sheet"),
                ),
            ),
            Page(
                "/maps/coast",
                "Café “Küste” – The Chart Room",
                ("Soundings in brasses, heights in pieds. The old sheet uses an old encoding.",),
                (("/maps/island", "Next sheet"),),
                content_type="text/html",
                extra_head='<meta charset="windows-1252">',
                encoding="windows-1252",
            ),
            Page(
                "/maps/island",
                "島の地図 - The Chart Room",
                ("この島には道が三本あります。",),
                (("/maps/coast", "Previous sheet"),),
                content_type="text/html; charset=shift_jis",
                encoding="shift_jis",
            ),
            Page(
                "/instruments",
                "Instruments - The Chart Room",
                ("Everything on this page lies in the workshop, so the links start there.",),
                (("compass", "Compass"), ("lens?b=2&amp;a=1", "Lens"), ("lens?a=1&amp;b=2", "The same lens")),
                extra_head='<base href="/workshop/">',
            ),
            Page(
                "/workshop/compass",
                "Compass - The Chart Room",
                ("It points where it likes, but always the same way.",),
            ),
            Page("/workshop/lens", "Lens - The Chart Room", ("Ground in winter, polished in spring.",)),
            *(
                Page(
                    f"/tides?day={day}",
                    f"Tides, day {day} - The Chart Room",
                    ("High water in the morning, low water at tea.",),
                    ((f"/tides?day={day + 1}", "Tomorrow"),),
                )
                for day in range(1, TIDE_DAYS)
            ),
            Page(
                "/errata",
                "Errata | *bold* [click](javascript:alert(1)) <script>alert(2)</script>"
                " \x1b[31mred\x1b[0m \x07 '); DROP TABLE pages;-- =HYPERLINK(1)",
                ("Sheet four: the title of this page is as bad as we could make it.",),
                (("/maps/", "Back to the maps"),),
            ),
            Page(
                "/visitors",
                "Visitors - The Chart Room",
                ("Signed by people we have not met.",),
                (("https://unvisited-cove.test/rocks", "Rocks"), ("/", "Home")),
                headers=(("X-Robots-Tag", "nofollow"),),
            ),
            Page("/files/tide-table.pdf", content_type="application/pdf", raw=b"%PDF-1.4\n% tides\n"),
            Page(
                "/files/harbour-plan",
                content_type="application/pdf",
                head_type="text/html",
                raw=b"%PDF-1.4\n% plan\n",
            ),
            Page("/files/legend", content_type="application/octet-stream", raw=b"\x00\x01\x02 legend"),
        ),
    )


def _press_garden() -> tuple[Site, ...]:
    """A quality wildcard: the bare host sends everybody to `www.`; two subdomains are sites of their own."""
    bare, www = "press-garden.test", "www.press-garden.test"
    main = Site(
        bare,
        "The Press Garden",
        aliases=(www,),
        menu=(("/", "Home"), ("/about/", "About")),
        robots="User-agent: *\nAllow: /\n",
        pages=(
            Page("/", location=f"https://{www}/", status=301, answers_on=(bare,)),
            Page("/about", location=f"https://{www}/about/", status=301, answers_on=(bare,)),
            Page("/about/", location=f"https://{www}/about/", status=301, answers_on=(bare,)),
            Page("/hours", location=f"https://{www}/hours", status=302, answers_on=(bare,)),
            Page(
                "/",
                "The Press Garden",
                ("A garden between two printing sheds. Type dries on the lines where washing used to.",),
                (
                    ("https://type.press-garden.test/", "The type shed"),
                    ("https://paper.press-garden.test/", "The paper shed"),
                    (f"https://{LEDGER_HOST}/", "The old ledger"),
                    ("https://tea-almanac.test/brewing", "Tea for the dry months"),
                    ("https://press-garden.test/hours", "Hours"),
                    ("https://ad-lantern.test/lamps", "Lamps"),
                ),
                answers_on=(www,),
            ),
            Page("/about", location="/about/", status=301, answers_on=(www,)),
            Page(
                "/about/",
                "About - The Press Garden",
                ("Three people, two presses, one cat.",),
                (("https://people.encyclopaedia.test/wiki/Compositor", "What a compositor does"),),
                answers_on=(www,),
            ),
            Page(
                "/hours",
                "Hours - The Press Garden",
                ("From the first bell to the last light.",),
                answers_on=(www,),
            ),
        ),
    )
    types = Site(
        "type.press-garden.test",
        "The Type Shed",
        menu=(("/", "Shed"), ("/cases", "Cases")),
        pages=(
            Page(
                "/",
                "The Type Shed",
                ("Lead on the left, wood on the right.",),
                (("https://press-garden.test/", "Back to the garden"), ("/ligatures", "Ligatures")),
            ),
            Page(
                "/cases",
                "Cases - The Type Shed",
                ("The e lies nearest to the hand.",),
                (("https://chart-room.test/maps/coast", "A map set in this type"), ("/ink", "Ink")),
            ),
            Page(
                "/ligatures",
                "Ligatures - The Type Shed",
                ("Letters that lean on each other.",),
                head_status=405,
            ),
            Page(
                "/ink",
                "Ink - The Type Shed",
                ("This page has been poured into another jar.",),
                extra_head='<meta http-equiv="refresh" content="3; url=/ink/black">',
            ),
            Page("/ink/black", "Black ink - The Type Shed", ("Soot, oil, patience.",)),
            Page("/ink/soot", location="/ink/black", status=301),  # still linked to from the paper shed
        ),
    )
    paper = Site(
        "paper.press-garden.test",
        "The Paper Shed",
        menu=(("/", "Shed"), ("/fibres", "Fibres")),
        pages=(
            Page(
                "/",
                "The Paper Shed",
                ("Sheets hang here until they are straight.",),
                (("https://moss-notes.test/ponds?gclid=77", "Where our water comes from"),),
            ),
            Page(
                "/fibres",
                "Fibres - The Paper Shed",
                ("Mulberry, hemp and old shirts.",),
                (("https://type.press-garden.test/ink/soot", "The ink that they take"),),
            ),
        ),
    )
    return main, types, paper


def _long_scroll() -> Site:
    """A quality domain that is one chain of pages, longer than any domain's budget."""
    return Site(
        "long-scroll.test",
        "The Long Scroll",
        menu=(("/scroll/1", "Beginning"),),
        robots="User-agent: *\nDisallow:\n",
        pages=tuple(
            Page(
                f"/scroll/{number}",
                f"The Long Scroll, part {number}",
                ("And then the river bent, and the painter with it.",),
                ((f"/scroll/{number + 1}", "Unroll"),),
            )
            for number in range(1, SCROLL_LENGTH + 1)
        ),
    )


# -- discovered -------------------------------------------------------------------------------------------


def _moss_notes() -> Site:
    """One step away: its own links are two steps away, and what those link to is too far."""
    return Site(
        "moss-notes.test",
        "Moss Notes",
        menu=(("/", "Home"), ("/walls", "Walls"), ("/ponds", "Ponds")),
        pages=(
            Page(
                "/",
                "Moss Notes",
                ("Moss has no hurry and no roots. We visit the same stones every month.",),
                (
                    ("https://visitor:secret@pond-diary.test/#today", "A diary kept beside a pond"),
                    ("https://tea-almanac.test/teas/green", "What we drink afterwards"),
                    ("/lost-stone", "The stone that was moved"),
                ),
            ),
            Page(
                "/walls",
                "Walls - Moss Notes",
                ("North side, knee high.",),
                (("/walls/north", "The north wall"),),
            ),
            Page(
                "/ponds",
                "Ponds - Moss Notes",
                ("Still water, soft edges.",),
                (("https://pond-diary.test/frogs", "Frogs"),),
            ),
            Page("/turn", "The turn - Moss Notes", ("You came a long way round.",)),
        ),
    )


def _pond_diary() -> Site:
    """Two steps away: crawled, but nothing that it links to."""
    return Site(
        "pond-diary.test",
        "Pond Diary",
        menu=(("/", "Today"), ("/frogs", "Frogs"), ("/lilies", "Lilies")),
        pages=(
            Page(
                "/",
                "Pond Diary",
                ("Two frogs, one heron, no wind.",),
                (("https://far-island.test/", "An island we have only heard of"),),
            ),
            Page("/frogs", "Frogs - Pond Diary", ("They were here before the pond.",)),
            Page("/lilies", "Lilies - Pond Diary", ("Closed by four.",)),
        ),
    )


def _storm_mill() -> Site:
    """A server that falters: one page recovers after two tries, others never do."""
    return Site(
        "storm-mill.test",
        "The Storm Mill",
        menu=(("/", "Mill"), ("/waterwheel", "Waterwheel"), ("/sails", "Sails")),
        robots="User-agent: *\nAllow: /\n",
        pages=(
            Page(
                "/",
                "The Storm Mill",
                ("It turns in any weather, though not always the way we would like.",),
                (("/stones", "The stones"), ("/miller-only", "For the miller")),
            ),
            Page("/waterwheel", "Waterwheel - The Storm Mill", ("It needs a push or two.",), failures_first=2),
            Page("/sails", "Sails", ("Torn.",), status=503),
            Page("/stones", "Stones", ("Cracked.",), status=500),
            Page("/miller-only", "No entry", ("Please knock.",), status=403),
        ),
    )


def _quiet_abbey() -> Site:
    """Asks for a longer pause between requests and for its cloister to be left alone."""
    return Site(
        "quiet-abbey.test",
        "The Quiet Abbey",
        menu=(("/", "Gatehouse"), ("/garden", "Garden"), ("/cloister/cells", "Cloister")),
        robots=(
            "# please walk slowly\n"
            "User-agent: *\nCrawl-delay: 0.3\nDisallow: /cloister\nAllow: /cloister/well$\n\n"
            "User-agent: hurried-bot\nDisallow: /\n"
        ),
        pages=(
            Page(
                "/",
                "The Quiet Abbey",
                ("Visitors are welcome in the garden between the bells.",),
                (("/cloister/well", "The well, which is open to all"),),
            ),
            Page("/garden", "Garden - The Quiet Abbey", ("Sage, rue and a bench.",)),
            Page("/cloister/well", "The well - The Quiet Abbey", ("Cold in every month.",)),
            Page("/cloister/cells", "Cells", ("You should not be reading this.",)),
        ),
    )


def _winding_path() -> Site:
    """Redirects: a chain over three pages and two domains, a loop, a knot, and into both lists."""
    return Site(
        "winding-path.test",
        "The Winding Path",
        menu=(("/", "Trailhead"),),
        pages=(
            Page(
                "/",
                "The Winding Path",
                ("Every sign here points to another sign.",),
                (
                    ("/start", "Three turns"),
                    ("/loop/a", "Round in circles"),
                    ("/knot", "A knot"),
                    ("/to-lamps", "Lamps"),
                    ("/to-library", "Library"),
                    ("/nowhere", "Nowhere"),
                    ("/to-mail", "Post"),
                ),
            ),
            Page("/start", location="/bend", status=301),
            Page("/bend", location="//winding-path.test/rest?seen=1", status=302),
            Page("/rest", location="https://moss-notes.test/turn", status=307),
            Page("/loop/a", location="/loop/b", status=302),
            Page("/loop/b", location="/loop/c", status=302),
            Page("/loop/c", location="/loop/a", status=302),
            Page("/knot", location="/knot/", status=301),
            Page("/knot/", location="/knot", status=301),
            Page("/to-lamps", location="https://ad-lantern.test/lamps", status=301),
            Page("/to-library", location="https://library-shelf.test/new", status=303),
            Page("/nowhere", location="/not-there", status=301),
            Page("/to-mail", location="mailto:path@winding-path.test", status=302),
        ),
    )


def _spiral_stair() -> Site:
    """A redirect chain longer than anybody should walk."""
    steps = [
        Page(f"/step/{number}", location=f"/step/{number + 1}", status=301 if number % 2 else 308)
        for number in range(LADDER_HOPS)
    ]
    top = Page(f"/step/{LADDER_HOPS}", "The top of the stair", ("A view, at last.",))
    return Site("spiral-stair.test", "The Spiral Stair", (*steps, top), menu=())


def _leaf_forest() -> Site:
    """A host with letters beyond ASCII, and paths with them too."""
    return Site(
        IDN_HOST,
        "Blätterwald",
        menu=(("/", "Wald"), ("/%C3%A4ste", "Äste")),
        pages=(
            Page("/", "Blätterwald", ("Hier steht jedes Blatt für sich.",), (("/moos", "Moos"),)),
            Page("/%C3%A4ste", "Äste - Blätterwald", ("Oben wird es dünn.",)),
            Page("/moos", "Moos - Blätterwald", ("Unten bleibt es feucht.",)),
        ),
    )


# -- closed doors -----------------------------------------------------------------------------------------


def _closed_doors() -> tuple[Site, ...]:
    """Domains that cannot be visited, each for another reason."""
    return (
        Site("busy-counter.test", "The Busy Counter", (), robots="User-agent: *\nAllow: /\n", every_page=429),
        Site("foggy-harbour.test", "Foggy Harbour", (Page("/", "Foggy Harbour"),), robots="", robots_status=503),
        Site(
            "slow-temple.test",
            "Slow Temple",
            (Page("/", "Slow Temple"),),
            robots="User-agent: *\nCrawl-delay: 600\n",
        ),
        Site("rusty-lock.test", "Rusty Lock", (Page("/", "Rusty Lock"),), fault="self-signed"),
        Site("wrong-name.test", "Wrong Name", (Page("/", "Wrong Name"),), fault="wrong-name"),
        Site("old-seal.test", "Old Seal", (Page("/", "Old Seal"),), fault="expired"),
    )


def _never_visited() -> tuple[Site, ...]:
    """Sites that a crawl with the demo's config must not ask anything; served, so that asking would show."""
    hosts = (
        "unvisited-cove.test",
        "far-island.test",
        "ad-lantern.test",
        "www.ad-lantern.test",
        "px.beacon-count.test",
        "cdn.beacon-count.test",
        "library-shelf.test",
        "tea.encyclopaedia.test",
        "maps.encyclopaedia.test",
        "people.encyclopaedia.test",
    )
    return tuple(Site(host, host, (Page("/", host),)) for host in hosts)
