"""Every command that reads the map finds it under any file name."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.cli.app import run
from tests.reporter.terrain import MapBuilder

NAMES = ("a#b.db", "a?b.db", "a%20b.db")


@pytest.mark.parametrize("name", NAMES)
def test_every_reading_command_takes_any_file_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    builder = MapBuilder(tmp_path / name)
    builder.page("https://q.test/")
    builder.add_run(1)
    builder.domain("q.test", closed_reason="rate-limited")
    builder.save()
    Path("my.toml").write_text(
        f'[output]\ndatabase-path = "{name}"\n[[quality]]\ndomain = "q.test"\nseeds = ["https://q.test/"]\n'
    )
    for arguments in (
        ["digest", name],
        ["digest", "my.toml", "--parts"],
        ["stats", name],
        ["stats", "my.toml", "--by", "domain"],
        ["explain", "https://q.test/", "my.toml"],
        ["export", "my.toml", "map.gexf"],
        ["export", "my.toml", "--format", "jsonl"],
        ["map", "my.toml", "map.html"],
        ["report", "my.toml"],
        ["status", "my.toml"],
    ):
        assert run(arguments) == 0, (arguments, capsys.readouterr())
    shown = capsys.readouterr().out
    assert "q.test" in shown and "processed since run 1" in shown
    databases = {path.name for path in tmp_path.iterdir() if path.name.endswith(".db")}
    assert databases == {name}
