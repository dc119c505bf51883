"""Bad input in the commands that read and curate the map: one sentence, exit 2, nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from crawler.cli.app import app
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.cli.calling import called
from tests.reporter.terrain import MapBuilder

LONG = "a" * 5000
DECIDING = ("accept", "reject", "stub")
BAD: list[tuple[str, ...]] = [
    *(
        (command, *words)
        for command in ("runs", "diff", "candidates", "export", "map", "explain")
        for words in ((), ("none.toml", "x.html"), ("folder.toml", "x.html"), ("binary.toml", "x.html"))
        if (command, words) != ("diff", ())
    ),
    ("diff", "my.toml", "1"),
    ("diff", "my.toml", "1", "2", "3"),
    ("diff", "my.toml", "2", "1"),
    ("diff", "my.toml", "1", "1"),
    ("diff", "my.toml", "x", "y"),
    ("diff", "my.toml", "--json", "--csv"),
    ("candidates", "my.toml", "--limit", "0"),
    ("candidates", "my.toml", "--limit", "x"),
    ("candidates", "my.toml", "--json", "--csv"),
    ("export", "my.toml", "x.xls"),
    ("export", "my.toml", "x"),
    ("export", "my.toml", "--format", "csv"),
    ("export", "my.toml", "my.toml", "--format", "gexf"),
    ("export", "my.toml", "sumi-ripple.db", "--format", "gexf"),
    ("export", "my.toml", "x.csv", "--level", "host"),
    ("export", "my.toml", "x.csv", "--class", "good"),
    ("export", "my.toml", "x.csv", "--state", "odd"),
    ("export", "my.toml", "x.csv", "--depth", "-1"),
    ("export", "my.toml", "x.csv", "--domain", "a b"),
    ("export", "my.toml", "x.csv", "--around", "*.a.test"),
    ("export", "my.toml", "x.csv", "--around", ""),
    ("export", "my.toml", "x.csv", "--steps", "2"),
    ("export", "my.toml", "x.csv", "--run", "0"),
    ("export", "my.toml", "x.warc"),
    ("export", "my.toml", "x.warc.gz"),  # nothing is stored
    ("export", "my.toml", "--format", "warc"),
    ("export", "my.toml", "x.gz", "--format", "warc"),
    ("export", "my.toml", "x.warc.gz", "--level", "domain"),
    ("export", "my.toml", "x.warc.gz", "--state", "processed"),
    ("export", "my.toml", "x.warc.gz", "--domain", "a b"),
    ("export", "sumi-ripple.db", "x.warc.gz"),
    ("export", "none.toml", "x.warc.gz"),
    ("replay", "my.toml", "--into", "x.db", "--from-store"),  # nothing is stored
    ("replay", "my.toml", "--into", "sumi-ripple.db", "--from-store"),
    ("map", "my.toml", "x.txt"),
    ("map", "my.toml", "my.toml"),
    ("map", "my.toml", "x.html", "--domains", "0"),
    ("map", "my.toml", "x.html", "--domains", "5001"),
    ("hooks",),
    ("hooks", "none.toml"),
    ("hooks", "my.toml", "--test"),
    ("hooks", "my.toml", "--resend", "0"),
    ("hooks", "my.toml", "--resend", "7"),
    ("metrics",),
    ("metrics", "none.toml"),
    ("metrics", "my.toml", "--output", "figures.txt"),
    ("metrics", "my.toml", "--output", "nowhere/figures.prom"),
    ("check-url",),
    ("check-url", "my.toml"),
    ("check-url", "https://a.test/"),
    ("check-url", "https://a.test/", "none.toml"),
    ("check-url", "", "my.toml"),
    ("check-url", "https://a.test/", "ftp://a.test/", "my.toml"),
    ("store", "sell"),
    *(("store", command, "none.toml") for command in ("stats", "verify", "pack")),
    *(("store", command, *words) for command in ("cat", "forget") for words in ((), ("my.toml",), ("", "my.toml"))),
    ("store", "cat", "a.test", "my.toml"),
    ("store", "cat", "ftp://a.test/", "my.toml"),
    ("store", "cat", "https://a.test/", "https://b.test/", "my.toml"),
    ("store", "cat", "https://a.test/", "my.toml", "--run", "0"),
    ("store", "forget", "../x", "my.toml"),
    ("store", "forget", "ftp://a.test/", "my.toml"),
    ("store", "pack", "my.toml", "--older-than", "soon"),
    ("explain", "", "my.toml"),
    ("explain", "ftp://a.test/", "my.toml"),
    ("explain", "*.a.test", "my.toml"),
    ("explain", "a.test", "b.test", "my.toml"),
    *(
        (command, *words, *more)
        for command in DECIDING
        for words, more in (
            ((), ()),
            (("my.toml",), ()),
            (("a b", "my.toml"), ()),
            (("https://x.test/", "my.toml"), ()),
            (("", "my.toml"), ()),
            ((LONG + ".test", "my.toml"), ()),
            (("x.test", "y.test", "my.toml"), ()),
            (("x.test", "none.toml"), ()),
            (("x.test", "my.toml"), ("--undo",)),
            (("x.test", "my.toml"), ("--undo", "--note", "why")),
            (("x.test", "my.toml"), ("--tag", "two words")),
            (("x.test", "my.toml"), ("--note", "n" * 10_000)),
        )
    ),
    ("accept", "a.test", "my.toml"),  # listed already
    ("backup",),
    ("backup", "b", "none.toml"),
    ("backup", "b", "binary.toml"),
    ("backup", "b", "my.toml", "--store", "half"),
    ("backup", "my.toml", "my.toml"),
    ("backup", "folder.toml/..", "my.toml"),
    ("backup", "workspace/b", "my.toml"),
    ("restore",),
    ("restore", "none"),
    ("restore", "my.toml"),
    ("restore", "folder.toml", "--into", "new"),
    ("prune", "my.toml"),
    ("prune", "my.toml", "--yes", "--dry-run"),
    ("prune", "none.toml", "--yes"),
    ("prune", "binary.toml", "--yes"),
    ("prune", "pages", "my.toml", "--yes"),
    ("prune", "results", "my.toml", "--yes"),  # no limit is set
    ("prune", "my.toml", "my.toml", "--yes"),
    ("archive",),
    ("archive", "my.toml"),
    ("archive", "my.toml", "--before", "yesterday"),
    ("archive", "my.toml", "--before", "2025-02-30"),
    ("archive", "none.toml", "--before", "2025-01-31"),
    ("archive", "my.toml", "x", "--before", "2025-01-31"),
    ("archive", "my.toml", "--before", "2025-01-31", "--into", "folder.toml"),
    ("archive", "open"),
    ("archive", "open", "none"),
    ("archive", "open", "my.toml"),
    ("archive", "open", "folder.toml", "--before", "2025-01-31"),
    ("storage", "none.toml"),
    ("storage", "binary.toml"),
    ("storage", "my.toml", "x"),
    ("crawl", "my.toml", "--unified", "--workers", "2"),
    ("configure",),
    ("configure", "folder.toml"),
    ("configure", "binary.toml"),
    ("configure", "nowhere/new.toml"),
    ("reset",),
    ("reset", "none.toml", "--yes"),
    ("reset", "binary.toml", "--yes"),
    ("reset", "my.toml"),  # nobody can answer
    ("reset", "my.toml", "--purge"),
    ("reload", "none.toml"),
    ("reload", "binary.toml"),
    ("reload", "my.toml", "ingest"),
    ("reload", "my.toml", "other.toml"),
    ("reload", "odd"),
    ("reload", "my.toml"),  # nothing was ever crawled there
    ("init", "my.toml", "--from", "list.txt"),
    ("init", "new.toml", "--from", "none.txt"),
    ("init", "new.toml", "--from", "folder.toml"),
    ("init", "new.toml", "--from", "binary.toml"),
    ("init", "nowhere/new.toml", "--from", "list.txt"),
    ("serve", "none.toml"),
    ("serve", "my.toml", "--demo"),
    ("serve", "my.toml", "--port", "65536"),
    ("serve", "my.toml", "--host", "0.0.0.0"),  # without --allow-remote
    ("serve", "my.toml", "--tls-key", "none.pem"),
    ("serve", "my.toml", "--tls-key", "none.pem", "--tls-certificate", "none.pem"),
    ("user", "add"),
    ("user", "add", "ada", "none.toml"),
    ("user", "add", "ada", "my.toml", "--role", "root"),
    ("user", "role", "ada", "root", "my.toml"),
    ("user", "password", "ada", "my.toml"),  # there is no such account
    ("user", "odd"),
]


def files_of(folder: Path) -> dict[str, bytes]:
    """All that people made. (A reader may leave the map's -wal and -shm behind, a decision its lock.)"""
    aside = ("-wal", "-shm", ".lock")
    kept = (path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(aside))
    return {str(path.relative_to(folder)): path.read_bytes() for path in kept}


@pytest.fixture
def folder(here: Path, config_path: Path, workspace: FileWorkspace) -> Path:
    b = MapBuilder(here / "sumi-ripple.db", ("a.test",))
    b.page("https://a.test/")
    b.save()
    b.db.close()
    (here / "folder.toml").mkdir()
    (here / "binary.toml").write_bytes(b"\xff\xfe\x00\x01")
    (here / "list.txt").write_text("https://b.test/\n")
    return here


@pytest.mark.parametrize("words", BAD, ids=lambda words: " ".join(words)[:60])
def test_bad_input_is_one_sentence_and_changes_nothing(
    words: tuple[str, ...], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files_of(folder)
    assert called(*words) == 2
    said = capsys.readouterr()
    assert said.out == ""
    *usage, sentence = said.err.rstrip("\n").split("\n")
    assert sentence.startswith("sumi-ripple: ") if not usage else sentence.startswith("Error: ")
    assert len(said.err) < 700 and "Traceback" not in said.err
    assert files_of(folder) == before


def _every_command(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of each command, those of groups (`store cat`) included."""
    if not hasattr(command, "commands"):
        yield path
        return
    for name, each in command.commands.items():
        yield from _every_command(each, (*path, name))


def test_every_command_refuses_a_config_that_is_none(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "wrong.toml").write_text("[crawler]\nmax-dept = 3\n")
    before = files_of(folder)
    for words in _every_command(typer.main.get_command(app)):
        if words[0] in ("demo", "init"):
            continue  # they need none, and write one
        for config in ("wrong.toml", "folder.toml"):
            assert called(*words, config) == 2, (words, config)
            said = capsys.readouterr()
            assert said.out == "" and 0 < len(said.err) < 700 and "Traceback" not in said.err
    assert files_of(folder) == before
