"""`sumi-ripple engine`: the schemas made, checked and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from crawler.config.load import load
from crawler.engine.engine_connection import connect
from crawler.model.map_place import EngineMap
from crawler.model.records import PageResult, dump
from crawler.supervise.before_start import prepare_stage
from crawler.workspace.control import StageControl
from crawler.workspace.postgres.engine_workspace import EngineWorkspace
from crawler.workspace.postgres.workspace_schema import WORKSPACE
from ingest.loop import Ingest
from ingest.writing.store import Store
from tests.crawler.cli.calling import Call, calls_told
from tests.ingest.terrains import AT
from tests.ingest.test_loop import begun, drain, write
from tests.pipeline.crawling import eventually, run
from tests.postgres_server import clean_database

SEED = "https://example.com/"
QUALITY = '[[quality]]\ndomain = "example.com"\nseeds = ["https://example.com/"]\n'


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return calls_told(capsys)


@pytest.fixture
def url() -> Iterator[str]:
    with clean_database() as made:
        yield made


@pytest.fixture
def config(url: str, tmp_path: Path) -> Path:
    path = tmp_path / "my.toml"
    path.write_text(f'{QUALITY}[engine]\nurl = "{url}"\n')
    return path


def test_an_engine_is_made_checked_and_shown(call: Call, config: Path, url: str) -> None:
    before = call("engine", "check", config)
    assert before.exit_code == 1
    assert "has no schema sumi_workspace yet; make it with: sumi-ripple engine init" in before.output
    first, again = call("engine", "init", config), call("engine", "init", config)
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert f"sumi_workspace is made (version {WORKSPACE.newest})" in first.output
    assert "sumi_workspace is up to date" in again.output
    checked = call("engine", "check", config)
    assert checked.exit_code == 0
    assert "Version      PostgreSQL 1" in checked.output and "Encryption   none" in checked.output
    workspace = EngineWorkspace(config.parent / "workspace", url)
    role = workspace.take_role("ingest")
    workspace.claim("a.test")
    shown = call("engine", "stats", config)
    assert "1 on 1 machines; roles taken: ingest" in shown.output and "1 gates, 1 leased" in shown.output
    found = json.loads(call("engine", "stats", config, "--json").output)
    assert (found["processes"], found["leased"], found["roles"]) == (1, 1, ["ingest"])
    assert ("sumi_workspace", "gates") in {(table["schema"], table["table"]) for table in found["tables"]}
    role.release()
    workspace.close()
    password = url.split(":")[2].split("@")[0]
    assert password not in before.output + first.output + checked.output + shown.output


def test_an_engine_that_is_missing_foreign_or_newer_is_a_sentence(call: Call, config: Path, url: str) -> None:
    with connect(url, "test") as admin:
        admin.execute("CREATE SCHEMA sumi_workspace")
        refused = call("engine", "init", config)
        assert refused.exit_code == 1 and "was not made by this program" in refused.output
        admin.execute("DROP SCHEMA sumi_workspace")
        call("engine", "init", config)
        admin.execute("UPDATE sumi_workspace.schema_version SET version = %s", (WORKSPACE.newest + 1,))
    for words in (("engine", "check", config), ("engine", "stats", config), ("status", config), ("audit", config)):
        newer = call(*words)
        assert newer.exit_code == 1 and "newer than this program" in newer.output, words
    config.write_text(QUALITY)
    without = call("engine", "check", config)
    assert without.exit_code == 2 and "names no engine" in without.output
    config.write_text(f'{QUALITY}[engine]\nurl = "postgresql://crawl:s3cr3t@127.0.0.1:1/terrain"\n')
    for words in (("engine", "check", config), ("status", config), ("pause", config), ("crawl", config)):
        away = call(*words)
        assert away.exit_code == 1 and "cannot reach the engine terrain on 127.0.0.1, port 1" in away.output, words
        assert "s3cr3t" not in away.output and "Traceback" not in away.output
        text = " ".join(away.output.split())
        assert text.count("is the server running there, and is [engine] url right?") == 1, words
        assert text.endswith("sumi-ripple engine check CONFIG") == (words[0] != "engine"), words
    for words in (("export", config, "a.warc.gz"), ("archive", config, "--before", "2030-01-01")):
        away = call(*words)
        assert away.exit_code == 1 and away.output.startswith("sumi-ripple: cannot reach the engine"), words


def test_a_map_of_another_program_or_of_a_newer_one_is_found_before_a_crawl(call: Call, config: Path, url: str) -> None:
    made = call("engine", "init", config)
    assert made.exit_code == 0 and "sumi_map is made by the first ingest" in made.output
    with connect(url, "test") as admin:
        admin.execute("CREATE SCHEMA sumi_map CREATE TABLE cats (name text)")
        for words in (("engine", "init", config), ("engine", "check", config), ("stats", config), ("ingest", config)):
            refused = call(*words)
            assert refused.exit_code == 1 and "move the schema sumi_map away" in refused.output, words
            assert "database-path" not in refused.output, words
        admin.execute("DROP SCHEMA sumi_map CASCADE")
    Store(EngineMap(url), load(config)).close()
    assert "Map          sumi_map, format " in call("engine", "check", config).output
    with connect(url, "test") as admin:
        admin.execute("UPDATE sumi_map.meta SET value = '99' WHERE name = 'schema_version'")
    newer = call("engine", "check", config)
    assert newer.exit_code == 1 and "its schema version is 99" in newer.output and "use a newer" in newer.output


def test_flags_are_set_and_cleared_from_any_machine(call: Call, config: Path, url: str, tmp_path: Path) -> None:
    call("engine", "init", config)
    elsewhere = tmp_path / "elsewhere"
    assert call("pause", config, "fetcher", "--workspace", elsewhere).exit_code == 0
    assert "pause.fetcher" in json.loads(call("status", config, "--json").output)["flags"]
    assert call("resume", config).exit_code == 0
    assert EngineWorkspace(tmp_path, url).flags() == []
    elsewhere.mkdir()
    (elsewhere / "pause").touch()
    here, there = EngineWorkspace(tmp_path / "workspace", url), EngineWorkspace(elsewhere, url)
    assert (here.is_flagged("pause"), there.is_flagged("pause")) == (False, True), (
        "a machine's own file is for it alone"
    )
    assert call("resume", config, "--workspace", elsewhere).exit_code == 0
    assert not (elsewhere / "pause").exists() and there.flags() == []


def test_a_crawl_on_another_machine_is_found_by_the_commands_that_the_refusal_names(
    call: Call, config: Path, url: str, tmp_path: Path
) -> None:
    call("engine", "init", config)
    there, here = EngineWorkspace(tmp_path / "there", url), tmp_path / "here"
    roles = [there.take_role("supervisor"), there.take_role("ingest")]
    for words in (("crawl", config), ("crawl", config, "--fresh"), ("reset", config, "--yes")):
        refused = call(*words, "--workspace", here)
        text = " ".join(refused.output.split())
        assert refused.exit_code == 1 and "a crawl is already running in the engine" in text, words
        status, stop = (re.findall(rf"sumi-ripple ({word} [^;]+);", text)[0].split() for word in ("status", "stop"))
        assert "ingest" in call(*status).output and str(here) not in text
        assert call(*stop).output == "Told ingest to finish what is in flight, save and end\n", words
    for role in roles:
        role.release()
    there.close()


def test_a_command_without_a_config_means_the_crawl_in_the_engine(
    call: Call, config: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder alone looks like a crawl that has not begun."""
    call("engine", "init", config)
    monkeypatch.chdir(config.parent)
    assert "name a config file" in call("storage").output
    prepare_stage(load(config), "fetcher")
    crawl(config)
    elsewhere = EngineWorkspace(config.parent / "elsewhere", url)
    assert call("pause", "fetcher").exit_code == 0
    assert elsewhere.flags() == ["pause.fetcher"] and "pause.fetcher" in call("status").output
    assert call("resume", "--workspace", config.parent / "workspace").exit_code == 0
    assert elsewhere.flags() == []
    assert "engine: map" in call("storage").output and call("explain", "example.com").exit_code == 0
    assert "sumi_map in the engine" in call("crawl", config, "--dry-run").output


def test_what_only_files_can_do_is_said(call: Call, config: Path, tmp_path: Path) -> None:
    call("engine", "init", config)
    backup = call("backup", tmp_path / "backup", config)
    assert backup.exit_code == 1 and "pg_dump" in backup.output


def crawl(config: Path) -> None:
    """One run, in the engine, with the map of it; every record is a segment."""
    loaded = load(config)
    workspace = EngineWorkspace(loaded.workspace, loaded.engine.url)
    workspace.prepare()
    page = PageResult(1, SEED, SEED, "example.com", AT, "processed", status=200, base=SEED, hrefs=("/a", "/b"))
    other = PageResult(1, f"{SEED}a", f"{SEED}a", "example.com", AT, "processed", status=200, base=SEED)
    for name, results in (("scheduler", begun()), ("fetcher-01", [page, other])):
        for result in results:
            log = workspace.results.writer(name, segment_bytes=1)
            log.append(dump(result))
            log.close()
    ingest = Ingest(loaded, StageControl(workspace, "ingest"))
    while ingest.step():
        pass
    ingest.shutdown()
    workspace.close()


def archive(config: Path, *segments: tuple[str, int]) -> None:
    workspace = EngineWorkspace(config.parent / "workspace", load(config).engine.url)
    assert list(workspace.results.archive(segments)) == list(segments)
    workspace.close()


def schemas(url: str) -> set[str]:
    with connect(url, "test") as admin:
        return {name for (name,) in admin.execute("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'sumi%'")}


def test_what_an_engine_takes_is_shown_and_what_was_moved_aside_goes_when_asked(
    call: Call, config: Path, url: str, tmp_path: Path
) -> None:
    call("engine", "init", config)
    crawl(config)
    archive(config, ("fetcher-01", 1))
    folder = tmp_path / "workspace" / "archive" / "results"
    (first,) = folder.iterdir()
    assert "Archived    results/fetcher-01: " in call("engine", "stats", config).output
    parts = {part["name"]: part for part in json.loads(call("storage", config, "--json").output)["parts"]}
    assert {"engine: map", "engine: results", "engine: state", "archives"} <= parts.keys()
    assert parts["engine: results"]["size"] > 0 == parts["engine: results"]["last_week"], "they are old"
    run("reset", config, "--yes", cwd=tmp_path)  # in processes of their own, which end with what they hold
    before = schemas(url)
    assert len([name for name in before if "_old_" in name]) == 2 and first.is_dir(), "nothing is deleted unasked"
    shown = call("storage", config)
    assert "engine: aside" in shown.output and "Moved aside in the engine" in shown.output
    crawl(config)
    archive(config, ("fetcher-01", 1))
    purged = run("reset", config, "--yes", "--purge", cwd=tmp_path)
    assert "2 schemas of the engine deleted" in purged.stdout
    assert schemas(url) == before - {"sumi_map"}, "only what this reset moved is gone"
    eventually(lambda: [path.name for path in folder.iterdir()] == [first.name], "and its archive with it")
    config.write_text(config.read_text() + '[retention]\naside = "1s"\n')
    eventually(lambda: "aside: 3 older than" in call("prune", config, "--dry-run").output, "they are a second old")
    run("prune", "aside", config, "--yes", cwd=tmp_path)
    assert not any("_old_" in name for name in schemas(url)) and not first.exists()


def test_a_crawl_goes_into_the_engine_with_its_map_and_back_with_the_same_digest(
    call: Call, config: Path, tmp_path: Path
) -> None:
    plain = tmp_path / "plain.toml"
    plain.write_text(QUALITY)
    page = PageResult(1, SEED, SEED, "example.com", AT, "processed", status=200, base=SEED, hrefs=("/a", "/b"))
    write(load(plain), "scheduler", begun())
    write(load(plain), "fetcher-01", [page])
    drain(load(plain))
    before = call("digest", plain).output
    assert call("engine", "init", config).exit_code == 0
    moved = call("engine", "import", config)
    assert (moved.exit_code, f"3 pages, digest {before.strip()}" in moved.output) == (0, True), moved.output
    assert call("digest", config).output == before
    assert "sumi_map.pages: about" in call("engine", "stats", config).output
    again = call("engine", "import", config)
    assert again.exit_code == 0 and "has this crawl already, and its map: nothing was changed" in again.output
    back = call("engine", "export", config, "--into", tmp_path / "back")
    assert back.exit_code == 0, back.output
    assert call("digest", tmp_path / "back" / "sumi-ripple.db").output == before
    assert call("replay", config, "--into", tmp_path / "again.db", "--quiet").exit_code == 0
    assert call("digest", tmp_path / "again.db").output == before
    for path in (plain, config):  # under other rules, beside the map as it is: in a file, and in an engine
        path.write_text(path.read_text() + '[[blacklist]]\ndomain = "example.com"\n')
    told = [
        call("replay", path, "--into", tmp_path / f"{path.stem}.db", "--compare").output for path in (plain, config)
    ]
    assert "pages that went from processed to blacklisted: 1" in told[0]
    assert [line for line in told[1].splitlines()[:-1] if line] == told[0].splitlines()[:-1]


def test_page_records_of_a_crawl_in_an_engine_go_by_their_age(call: Call, config: Path, tmp_path: Path) -> None:
    config.write_text(config.read_text() + '[logs]\nmetadata = true\n[retention]\nmetadata = "1s"\n')
    call("engine", "init", config)
    crawl(config)
    records = tmp_path / "workspace" / "metadata" / "crawl_metadata.jsonl"
    assert len(records.read_bytes().splitlines()) == 2
    assert "2 lines of metadata/crawl_metadata.jsonl" in call("prune", config, "--yes").output
    assert records.read_bytes() == b"" and (tmp_path / "workspace" / "rolled-up" / "records.csv").exists()
