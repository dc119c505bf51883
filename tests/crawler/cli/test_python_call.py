"""The Python call: mistakes are exceptions with the command line's own sentences, and nothing is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.cli.python_call import crawl
from crawler.config.load import ConfigError, load_values
from crawler.database.map_errors import BadQuery, NoDatabase, NotAMap
from crawler.database.map_handle import Map
from crawler.model.errors import SumiError
from tests.reporter.terrain import MapBuilder


def test_a_dictionary_is_a_config_whose_paths_begin_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = load_values({"crawler": {"max-depth": 1}, "quality": [{"domain": "a.test", "seeds": ["https://a.test/"]}]})
    assert made.crawler.max_depth == 1 and made.source is None
    assert made.output.database_path == tmp_path / "sumi-ripple.db" and made.workspace == tmp_path / "workspace"


def test_mistakes_are_raised_and_nothing_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="there is no config file"):
        crawl("none.toml")
    with pytest.raises(ConfigError, match="max-depht") as found:
        crawl({"crawler": {"max-depht": 1}, "quality": "odd"})
    assert len(found.value.mistakes) == 2 and isinstance(found.value, SumiError)
    assert list(tmp_path.iterdir()) == [] and capfd.readouterr() == ("", "")


def test_a_handle_answers_from_the_map_and_outlives_it(tmp_path: Path) -> None:
    path = tmp_path / "map.db"
    handle = Map(path)
    with pytest.raises(NoDatabase):
        handle.run()
    b = MapBuilder(path, ("a.test",))
    b.page("https://a.test/")
    b.save()
    b.db.close()
    assert [page["url"] for page in handle.pages()] == ["https://a.test/"]
    assert list(handle.query("SELECT count(*) AS pages FROM pages")) == [{"pages": 1}]
    assert list(handle.pages(domain="b.test")) == [] and repr(handle) == f"Map('{path}')"


@pytest.mark.parametrize(
    ("sql", "parameters", "words"),
    [
        ("select * from nope", (), "no such table: nope"),
        ("DELETE FROM pages", (), "attempt to write a readonly database; the map is only read here"),
        ("SELECT url FROM pages WHERE id = ?", (), "Incorrect number of bindings"),
        ("SELECT abs(-9223372036854775807 - id) FROM pages", (), "integer overflow"),
        ("SELECT 1; SELECT 2", (), "one statement at a time"),
    ],
)
def test_a_query_that_is_wrong_is_blamed_and_not_the_map(
    tmp_path: Path, sql: str, parameters: tuple[object, ...], words: str
) -> None:
    path = tmp_path / "map.db"
    b = MapBuilder(path, ("a.test",))
    b.page("https://a.test/")
    b.save()
    b.db.close()
    with pytest.raises(BadQuery) as caught:
        list(Map(path).query(sql, parameters))
    assert f"the query to {path} cannot be answered: " in str(caught.value) and words in str(caught.value)
    assert isinstance(caught.value, SumiError) and len(list(Map(path).pages())) == 1
    path.write_bytes(b"no database" * 100)
    with pytest.raises(NotAMap):
        list(Map(path).query(sql, parameters))
