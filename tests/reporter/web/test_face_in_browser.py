"""The web face as a person uses it, in a real browser: `make test-web`. Skipped where there is no browser."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.places import ROOT
from tests.reporter.terrain import MapBuilder
from tests.reporter.web.face_browser import AXE, Demo, Watched, base_of, browser, missing
from tests.reporter.web.serving import CONFIG, served

pytestmark = [
    pytest.mark.xdist_group("face-browser"),
    pytest.mark.skipif(os.environ.get("TEST_WEB") != "1", reason="make test-web runs it: it takes minutes"),
    pytest.mark.skipif(missing() is not None, reason=f"{missing()}: `make test-web` installs what it needs"),
]
BUILT = ROOT / "reporter" / "web" / "static" / "built" / "sigma_map.js"
HOSTILE = "</title><script>document.title='owned'</script><img src=x onerror=alert(1)>\u202egnirts\x07"
BREWING = "https://tea-almanac.test/brewing"
PAGES = (
    *("/", "/map", "/pages", "/domains", "/curation", "/runs", "/run?run=1", "/waiting", "/log"),
    *("/domain?domain=tea-almanac.test", f"/page?url={BREWING}", f"/referrers?url={BREWING}"),
    *(f"/map?level=paths&url={BREWING}", "/map?select=moss-notes.test"),
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as opened:
        yield opened


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """The demo, crawled once."""
    made = Demo(tmp_path_factory.mktemp("demo"))
    made.crawled()
    return made


@pytest.fixture(scope="module")
def signed_in(chromium: Any, demo: Demo) -> Iterator[tuple[str, dict[str, Any]]]:
    """The address of the demo's face, and a session of its owner."""
    with demo.served() as link:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(link)
        page.wait_for_selector("body[data-ready]")
        state = context.storage_state()
        context.close()
        yield base_of(link), {**state, "link": link}


@pytest.fixture
def face(chromium: Any, signed_in: tuple[str, dict[str, Any]]) -> Iterator[Watched]:
    """A signed-in tab. At the end: no message in the console, no request to anything but the server."""
    base, state = signed_in
    kept = {name: state[name] for name in ("cookies", "origins")}
    context = chromium.new_context(storage_state=kept, viewport={"width": 1280, "height": 800})
    watched = Watched(context, base)
    yield watched
    context.close()
    assert watched.complaints == []
    assert watched.foreign == []


def select_domain(face: Watched, name: str) -> None:
    """A real click where a domain is drawn."""
    page = face.page
    face.until("globalThis.sumiRippleMap && sumiRippleLevel.counts.shown > 0")
    at = page.evaluate(
        f"(() => {{ const at = sumiRippleMap.placeOf(sumiRippleLevel.nodes.name.indexOf({json.dumps(name)}));"
        " const box = document.getElementById('map').getBoundingClientRect();"
        " return [at.x + box.left, at.y + box.top]; })()"
    )
    page.mouse.click(*at)


def test_nobody_sees_anything_without_signing_in(chromium: Any, signed_in: tuple[str, dict[str, Any]]) -> None:
    context = chromium.new_context()
    watched = Watched(context, signed_in[0])
    for path in ("/", "/map", "/pages"):
        page = watched.open(path)
        assert "You are signed out" in page.inner_text("main") and "tea-almanac" not in page.inner_text("body")
    page.fill("input[name=name]", "nobody")
    page.fill("input[name=password]", "a wrong password")
    page.click("button[type=submit]")
    page.wait_for_selector("[role=alert]:not([hidden])")
    assert "the name or the password is wrong" in page.inner_text("[role=alert]")
    context.close()


def test_the_link_signs_in_once(chromium: Any, signed_in: tuple[str, dict[str, Any]]) -> None:
    base, state = signed_in
    context = chromium.new_context()
    watched = Watched(context, base)
    watched.page.goto(state["link"])
    watched.page.wait_for_selector("text=This link was used already, or is too old")
    context.close()


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_every_page_can_be_used_by_everybody(face: Watched, path: str, width: int, scheme: str) -> None:
    """axe-core finds nothing, in light and dark, at the width of a desk and of a phone."""
    if not AXE.exists():
        pytest.skip("axe-core is not there: `make test-web` brings it, where npm is")
    face.page.set_viewport_size({"width": width, "height": 800})
    face.page.emulate_media(color_scheme=scheme)
    page = face.open(path)
    assert face.violations() == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out at the side"


def test_a_click_on_the_map_explains_a_domain_and_the_links_behind_an_edge(face: Watched) -> None:
    page = face.open("/map")
    assert "Showing 32 of 32 domains" in page.inner_text("#map-counts")
    select_domain(face, "moss-notes.test")
    assert page.inner_text("#panel-title") == "moss-notes.test"
    assert "Linked from" in page.inner_text("#panel")
    page.get_by_role("button", name="to the list").first.click()
    assert page.evaluate("document.activeElement.id") == "neighbours-incoming"
    page.click("#panel button[aria-label='Page links: tea-almanac.test']")
    page.wait_for_selector("#panel li a >> nth=1")
    assert "https://tea-almanac.test/" in page.inner_text("#panel") and "moss-notes.test" in page.inner_text("#panel")
    page.click("#panel >> text=https://moss-notes.test >> nth=0")
    page.wait_for_selector("body[data-ready] h1")
    assert "/page?url=" in page.url


def test_a_search_on_the_map_finds_and_selects_by_keyboard(face: Watched) -> None:
    page = face.open("/map")
    face.until("globalThis.sumiRippleMap")
    page.keyboard.press("/")
    page.keyboard.type("ferry")
    assert page.inner_text("#results").splitlines() == ["tired-ferry.test", "Look among all domains"]
    page.keyboard.press("Enter")
    assert page.inner_text("#panel-title") == "tired-ferry.test"
    page.select_option("#class", "quality")
    face.until("document.getElementById('map-counts').innerText.includes('7 pass the filters')")


def test_levels_go_from_communities_to_a_page_and_the_path_to_it(face: Watched) -> None:
    page = face.open("/map?level=communities")
    face.until("globalThis.sumiRippleLevel?.level === 'communities'")
    page.evaluate("sumiRippleMap.select(0)")
    page.click("text=Show its domains")
    face.until("sumiRippleLevel.level === 'domains' && location.search.includes('group=')")
    select_domain(face, "tea-almanac.test")
    page.click("text=Its pages")
    face.until("sumiRippleLevel.level === 'pages'")
    page.evaluate("sumiRippleMap.select(sumiRippleLevel.nodes.name.indexOf('https://tea-almanac.test/brewing'))")
    page.click("text=Path from a quality domain")
    face.until("sumiRippleLevel.level === 'paths'")
    assert "chart-room.test" in page.inner_text("#panel") and "depth 2" in page.inner_text("#panel")
    page.go_back()
    face.until("sumiRippleLevel.level === 'pages'")


def test_words_are_found_in_titles_and_addresses(face: Watched) -> None:
    page = face.open("/pages")
    page.fill("input[name=q]", "brew almanac")
    page.click("button[type=submit]")
    page.wait_for_selector("text=Brewing - The Tea Almanac")
    assert "q=brew+almanac" in page.url
    page.click("text=Brewing - The Tea Almanac")
    page.wait_for_selector("text=Depth, with a shortest path")


def test_a_candidate_is_accepted_with_a_preview_and_taken_back(face: Watched, demo: Demo) -> None:
    before = demo.config.read_bytes()
    page = face.open("/curation")
    page.click("button[aria-label='accept moss-notes.test']")
    page.wait_for_selector("#preview li")
    assert demo.config.read_bytes() == before, "a preview changes nothing"
    assert "pages" in page.inner_text("#preview")
    page.fill("dialog input[name=note]", "kept by a friend")
    page.click("dialog button[type=submit]")
    page.wait_for_selector("button[aria-label='Undo accept moss-notes.test']")
    assert b"moss-notes.test" in demo.config.read_bytes() and b"kept by a friend" in demo.config.read_bytes()
    page.click("button[aria-label='Undo accept moss-notes.test']")
    page.wait_for_selector("text=Nothing has been decided yet.")
    assert demo.config.read_bytes() == before


def test_a_crawl_is_watched_paused_resumed_and_seen_to_its_end(face: Watched, demo: Demo) -> None:
    """Also: the two runs are then compared, in words and on the map."""
    page = face.open("/")
    page.wait_for_selector("text=Run 1 is complete")
    run = demo.crawl()
    try:
        face.until(
            "Number(document.querySelector(\"a.figure[href='/pages?state=queued&run=2'] .value\")?.innerText) > 0"
        )
        page.click("#do-pause")
        page.wait_for_selector("text=Run 2 is paused")
        page.wait_for_selector("#waiting >> text=crawl is paused")
        assert page.inner_text("#states h2") == "Pages by state run 2", "the figures are those of the run under way"
        page.click("#do-resume")
        page.focus("a.figure >> nth=1")
        page.wait_for_selector("text=Run 2 is complete")
        assert page.evaluate("document.activeElement.innerText.startsWith('crawled')"), (
            "figures change, the focus stays"
        )
        assert int(page.inner_text("a.figure[href='/pages?state=processed'] .value")) > 50
    finally:
        (demo.workspace / "pause").unlink(missing_ok=True)
        words, _ = run.communicate(timeout=120)
    assert run.returncode == 0, words
    page = face.open("/diff?before=1&after=2")
    page.wait_for_selector("text=From run 1 to run 2")
    page.click("text=On the map")
    face.until("globalThis.sumiRippleLevel?.against")
    assert "Run 2 compared with run 1" in page.inner_text("#map-title")
    page = face.open("/runs")
    assert "#2" in page.inner_text("main") and "#1" in page.inner_text("main")


def test_every_page_that_has_a_link_to_mend_is_listed(face: Watched) -> None:
    page = face.open("/curation")
    page.click("#broken a[href^='/referrers'] >> nth=0")
    page.wait_for_selector("text=Pages that link to one page")
    page.wait_for_selector("table tbody tr")
    assert "Only those of paper.press-garden.test" in page.inner_text("main")
    assert page.get_attribute("a[download]", "href") == page.url.replace(face.base, "").replace(
        "/referrers?", "/api/export/referrers.csv?"
    )


def test_note_and_tags_of_an_entry_are_changed_and_filter_the_map(face: Watched, demo: Demo) -> None:
    before = demo.config.read_bytes()
    page = face.open("/map?select=tea-almanac.test")
    page.click("#panel >> text=Note and tags")
    page.wait_for_selector("#preview li")
    page.fill("dialog input[name=tags]", "leaf, pot")
    page.wait_for_selector("#preview >> text=tags: none → leaf, pot")
    page.click("dialog button[type=submit]")
    face.until("!document.getElementById('tag').parentElement.hidden")
    page.select_option("#tag", "leaf")
    face.until("document.getElementById('map-counts').innerText.includes('1 pass the filters')")
    page = face.open(page.url.replace(face.base, ""))
    assert page.input_value("#tag") == "leaf", "the address remembers the filters"
    page = face.open("/curation")
    page.click("button[aria-label='Undo note tea-almanac.test']")
    page.wait_for_selector("text=Nothing has been decided yet.")
    assert demo.config.read_bytes() == before


def test_a_page_can_be_walked_by_keyboard_alone(face: Watched) -> None:
    """Every stop has a name and a visible ring; the first leads past the bar."""
    page = face.open("/")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    stops = []
    for _ in range(150):
        page.keyboard.press("Tab")
        name, ring = page.evaluate(
            "(() => { const at = document.activeElement, style = getComputedStyle(at);"
            " return [at === document.body ? null : at.ariaLabel || at.innerText, style.outlineStyle]; })()"
        )
        if name is None:
            break
        assert name and ring == "solid"
        stops.append(name)
    assert any(name.startswith("crawled") for name in stops) and "API" in stops


def test_figures_come_without_a_stream_too(chromium: Any, signed_in: tuple[str, dict[str, Any]]) -> None:
    base, state = signed_in
    context = chromium.new_context(storage_state={name: state[name] for name in ("cookies", "origins")})
    context.route("**/api/stream", lambda route: route.abort())
    watched = Watched(context, base)
    page = watched.open("/")
    page.wait_for_selector("#is-live.is-good")
    assert page.inner_text("h1").startswith("Run")
    context.close()


def test_what_is_not_there_or_goes_wrong_is_said_in_words(chromium: Any, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(CONFIG)
    with served(tmp_path) as server:
        context = chromium.new_context(storage_state={"cookies": [_cookie(server)], "origins": []})
        watched = Watched(context, server.base)
        assert "No run yet" in watched.open("/").inner_text("main")
        assert watched.complaints == [], "that there is no map yet is no error"
        for path in ("/map", "/pages", "/domains", "/curation", "/runs", "/run"):
            watched.open(path)
            watched.until("/nothing has been crawled|no map/i.test(document.getElementById('main').innerText)")
        context.route("**/api/log", lambda route: route.fulfill(status=503, headers={"Retry-After": "1"}, json={}))
        page = watched.page
        page.goto(f"{server.base}/log")
        page.wait_for_selector("text=This page goes on by itself")
        context.unroute("**/api/log")
        page.wait_for_selector("text=What was changed through this face")
        context.route("**/api/log", lambda route: route.fulfill(status=500, json={"detail": "it broke"}))
        assert "it broke" in watched.open("/log").inner_text("[role=alert]")
        context.close()


@pytest.mark.skipif(not BUILT.exists(), reason="the WebGL renderer is not built: `make web`")
def test_the_webgl_renderer_draws_and_selects_like_the_canvas(face: Watched) -> None:
    page = face.open("/map?renderer=sigma&select=moss-notes.test")
    page.wait_for_selector(".sigma-ground canvas")
    assert page.inner_text("#panel-title") == "moss-notes.test"
    page.fill("#search", "ferry")
    page.keyboard.press("Enter")
    assert page.inner_text("#panel-title") == "tired-ferry.test"
    page = face.open("/map?level=communities&renderer=sigma")
    face.until("sumiRippleLevel.level === 'communities'")
    face.complaints = [each for each in face.complaints if not each.startswith("warning: [")]  # of a software WebGL


def hostile_map(folder: Path) -> Path:
    b = MapBuilder(folder / "sumi-ripple.db")
    b.page("https://q.test/", title=HOSTILE)
    b.page("https://bad.test/", title=HOSTILE)
    b.link("https://q.test/", "https://bad.test/")
    path = b.save()
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO link_texts SELECT id, ?, NULL FROM links", (HOSTILE,))
        db.execute("UPDATE pages SET error_message = ?, state = 'failed' WHERE domain = 'bad.test'", (f"x: {HOSTILE}",))
    (folder / "my.toml").write_text(CONFIG)
    return folder


def test_titles_and_texts_of_strangers_are_inert(chromium: Any, tmp_path: Path) -> None:
    """No markup, no script, no request; what cannot be seen is shown as its code."""
    with served(hostile_map(tmp_path)) as server:
        context = chromium.new_context(storage_state={"cookies": [_cookie(server)], "origins": []})
        watched = Watched(context, server.base)
        for path in (
            "/pages",
            "/map",
            "/curation",
            "/page?url=https://bad.test/",
            "/domain?domain=bad.test",
            "/domains",
        ):
            page = watched.open(path)
            if path == "/map":
                select_domain(watched, "bad.test")
            watched.until("document.body.innerText.includes('bad.test')")
            assert page.title().endswith("Sumi-Ripple") and "owned" not in page.title().partition("<")[0]
            assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
        page = watched.open("/pages")
        assert "<script>document.title" in page.inner_text("main") and "U+202E" in page.inner_text("main")
        page = watched.open("/page?url=https://bad.test/")
        link = page.locator("main a[target=_blank]").first
        assert link.get_attribute("href") == "https://bad.test/" and "noreferrer" in str(link.get_attribute("rel"))
        assert page.evaluate("[...document.links].every(a => ['http:', 'https:'].includes(a.protocol))")
        assert watched.complaints == [] and watched.foreign == []
        context.close()


def _cookie(server: Any) -> dict[str, Any]:
    return {
        "name": server.face.binding.cookie,
        "value": server.entered(),
        "domain": "127.0.0.1",
        "path": "/",
        "expires": -1,
        "httpOnly": True,
        "secure": False,
        "sameSite": "Strict",
    }
