"""The map page in a real browser: it asks for nothing, shows a domain's figures, and strangers' text stays text."""

from __future__ import annotations

import json
import re
import tomllib
from base64 import b64encode
from collections.abc import Iterator
from fnmatch import fnmatch
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reporter.map.map_page import MapNotWritten, embedded_json, page, write_map
from tests.places import ROOT
from tests.reporter.map.browser import CHROMIUM, Browser, browser
from tests.reporter.terrain import MapBuilder

HOSTILE_NAME = "x</script><img src=https://evil.test/a onerror=alert(1)>\u2028.test"
HOSTILE_TITLE = "</script><script>document.title='owned'</script><b>&amp;\u202e\u2029"


@pytest.fixture(scope="module")
def window(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no chromium here: the page is not tried in a browser")
    with browser(tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture
def opened(window: Browser, database: Path, tmp_path: Path) -> Iterator[Browser]:
    """The page of the rich map, opened in the browser. At the end: no complaint, and no request but the page itself."""
    write_map(database, tmp_path / "map.html")
    window.requests.clear()
    window.complaints.clear()
    window.resize(1100, 700)
    window.prefer("light")
    window.open(tmp_path / "map.html")
    yield window
    assert window.complaints == []
    assert set(window.requests) == {(tmp_path / "map.html").as_uri()}


def hostile_map(path: Path) -> Path:
    b = MapBuilder(path)
    b.page("https://q.test/", title=HOSTILE_TITLE)
    b.page("https://bad.test/", title="Bad")
    b.link("https://q.test/", "https://bad.test/")
    b.db.execute("UPDATE domain_states SET domain = ? WHERE domain = 'bad.test'", (HOSTILE_NAME,))
    b.db.execute("UPDATE pages SET domain = ?, url = 'javascript:alert(1)' WHERE domain = 'bad.test'", (HOSTILE_NAME,))
    return b.save()


def test_the_page_says_how_much_it_shows_and_asks_for_nothing(opened: Browser, database: Path) -> None:
    assert opened.text("#counts").startswith("Showing 52 of 52 domains")
    assert opened.ask("document.getElementById('panel').hidden") is True
    assert opened.ask("document.querySelectorAll('.class-switch').length") == 4


def test_a_click_on_a_domain_shows_its_figures_neighbours_and_pages(opened: Browser) -> None:
    opened.click_domain("friend.test")
    panel = opened.text("#panel")
    assert opened.text("#name") == "friend.test"
    assert "Quality domains that link here\n2" in panel
    assert "Linked from 3 domains" in panel and "far1.test" in panel and "A friend" in panel
    link = "document.querySelector('#pages a')"
    assert opened.ask(f"{link}.href") == "https://friend.test/"
    assert opened.ask(f"{link}.rel") == "noreferrer noopener"
    opened.ask("[...document.querySelectorAll('.neighbour')].find(e => e.innerText.includes('q.test')).click()")
    assert opened.text("#name") == "q.test"
    opened.press("Escape")
    assert opened.ask("document.getElementById('panel').hidden") is True


def test_a_search_by_keyboard_finds_a_domain(opened: Browser) -> None:
    opened.press("/", "/")
    opened.type("far1")
    assert opened.text("#results").split() == [
        "far1.test",
        *(f"far{number}.test" for number in range(10, 20)),
    ]
    opened.press("ArrowDown")
    opened.press("ArrowDown")
    opened.press("Enter")
    assert opened.text("#name") == "far10.test"
    opened.press("/", "/")
    opened.ask("document.getElementById('search').value = ''")
    opened.type("nowhere.zzz")
    assert "No domain on this map" in opened.text("#results")
    opened.press("Escape")
    assert opened.ask("document.activeElement.id") == "map"


def test_keys_move_and_zoom_the_map(opened: Browser) -> None:
    place = "JSON.stringify([0, 1].map(sumiRippleMap.placeOf))"
    before = opened.ask(place)
    opened.ask("document.getElementById('map').focus()")
    for key in ("ArrowRight", "+"):
        opened.press(key)
        assert opened.ask(place) != before
    opened.press("0")
    assert opened.ask(place) == before


def test_a_class_can_be_hidden_and_shown(opened: Browser) -> None:
    opened.ask("[...document.querySelectorAll('.class-switch')].find(e => e.innerText.includes('discovered')).click()")
    opened.click_domain("friend.test")
    assert opened.ask("sumiRippleMap.selected") is None
    opened.ask("[...document.querySelectorAll('.class-switch')].find(e => e.innerText.includes('discovered')).click()")
    opened.click_domain("friend.test")
    assert opened.text("#name") == "friend.test"


def test_the_map_is_drawn_in_light_and_dark_and_at_phone_width(opened: Browser) -> None:
    corner = (  # through a canvas for reading: reading the page's own makes it slow, and Chromium says so
        "(() => { const copy = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });"
        " copy.drawImage(document.getElementById('map'), 0, 0);"
        " return [...copy.getImageData(0, 0, 1, 1).data].slice(0, 3); })()"
    )
    assert min(opened.ask(corner)) > 240
    opened.prefer("dark")
    assert max(opened.ask(corner)) < 40
    opened.resize(390, 780, is_phone=True)
    opened.click_domain("q.test")
    assert opened.ask("document.documentElement.scrollWidth") <= 390
    box = opened.ask("JSON.stringify(document.getElementById('map').getBoundingClientRect())")
    assert json.loads(box)["height"] > 150 and json.loads(box)["width"] == 390


def test_names_and_titles_of_strangers_are_inert(window: Browser, tmp_path: Path) -> None:
    write_map(hostile_map(tmp_path / "map.db"), tmp_path / "map.html")
    window.requests.clear()
    window.complaints.clear()
    window.open(tmp_path / "map.html")
    window.ask("sumiRippleMap.select(1)")
    assert window.text("#name").startswith("x</script><img src=https://evil.test/a")
    assert window.ask("document.querySelectorAll('#pages a').length") == 0, "javascript: is no link"
    window.ask("sumiRippleMap.select(0)")
    assert "</script><script>document.title='owned'" in window.text("#pages")
    assert window.ask("document.title") == "Domain map"
    assert window.ask("document.querySelectorAll('img').length + document.scripts.length") == 2
    assert window.complaints == []
    assert set(window.requests) == {(tmp_path / "map.html").as_uri()}


def test_an_empty_map_says_so(window: Browser, tmp_path: Path) -> None:
    write_map(MapBuilder(tmp_path / "map.db").save(), tmp_path / "map.html")
    window.complaints.clear()
    window.open(tmp_path / "map.html")
    assert "nothing on this map yet" in window.text("#empty")
    assert window.complaints == []


def test_the_policy_names_no_place_and_the_hashes_of_style_and_script(database: Path, tmp_path: Path) -> None:
    write_map(database, tmp_path / "map.html")
    text = (tmp_path / "map.html").read_text()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy and "default-src 'none'" in policy[1] and not re.search(r"https?:|unsafe|\*|data:|self", policy[1])
    for tag, start in (("style", "<style>"), ("script", '<script type="module">')):
        content = text.split(start)[1].split(f"</{tag}>")[0]
        assert f"sha256-{b64encode(sha256(content.encode()).digest()).decode()}" in policy[1]
    assert not re.search(r"""(src|href)=["']""", text), "nothing is loaded from anywhere"


@given(st.recursive(st.text() | st.integers(-9, 9), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_data_in_the_page_can_end_no_element_and_comes_back_whole(value: object) -> None:
    text = embedded_json(value)
    assert not set("<>&\u2028\u2029") & set(text)
    assert json.loads(text) == value


def test_the_placeholders_of_the_template_are_all_filled(database: Path) -> None:
    made = page({"title": "{script}{style}{policy}{data}"})
    assert made.count("{script}{style}{policy}{data}") == 1, "in the data alone"


def test_a_page_that_cannot_be_written_is_one_sentence(database: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MapNotWritten, match=r"^cannot write .*map\.html: "):
        write_map(database, tmp_path / "file" / "map.html")


def test_an_installed_copy_has_every_part_of_the_page() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["reporter.map"]
    parts = [path.name for path in (ROOT / "reporter" / "map").iterdir() if path.is_file() and path.suffix != ".py"]
    assert len(parts) == 4
    assert [name for name in parts if not any(fnmatch(name, pattern) for pattern in patterns)] == []
