"""backup, restore, storage: the commands that keep a crawl, on a crawl of the demo and on damage."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from crawler.database.digest import digest
from crawler.model.records import PageResult, dump
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.cli.calling import called
from tests.reporter.terrain import MapBuilder

Crawled = tuple[Path, subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def kept(crawled: Crawled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup of the demo. Its config names the certificate of the demo's server by an absolute path."""
    folder = tmp_path_factory.mktemp("backups") / "first"
    demo = crawled[0] / "workspace" / "demo"
    assert called("backup", folder, demo / "demo.toml", "--workspace", demo) == 0
    return folder


def copied(kept: Path, folder: Path) -> Path:
    """A backup to be damaged."""
    subprocess.run(["cp", "-r", str(kept), str(folder)], check=True)
    return folder


def test_a_restored_demo_is_the_same_crawl_below_its_new_folder(
    kept: Path, crawled: Crawled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    demo = crawled[0] / "workspace" / "demo"
    assert called("restore", kept, "--into", tmp_path / "new") == 0
    said = capsys.readouterr().out
    assert f"it names ./{'ca.pem'} now" in said and f"To go on: sumi-ripple {tmp_path / 'new' / 'demo.toml'}\n" in said
    assert digest(tmp_path / "new" / "sumi-ripple.db") == digest(demo / "sumi-ripple.db")
    assert str(crawled[0]) not in (tmp_path / "new" / "demo.toml").read_text()
    assert called("audit", tmp_path / "new" / "demo.toml") == 0
    assert called("replay", tmp_path / "new" / "demo.toml", "--into", tmp_path / "again.db") == 0
    assert digest(tmp_path / "again.db") == digest(demo / "sumi-ripple.db")
    assert called("restore", kept, "--into", tmp_path / "new") == 2
    assert "not an empty folder" in capsys.readouterr().err


def test_a_folder_that_is_named_by_way_of_another_or_of_a_link_is_no_other_place(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here, real = tmp_path / "here", tmp_path / "real"
    here.mkdir()
    real.mkdir()
    (tmp_path / "linked").symlink_to(real)
    monkeypatch.chdir(here)
    for into in ("../there", "../linked/there"):
        assert called("restore", kept, "--into", into) == 0
        said = capsys.readouterr().out
        assert "database-path" not in said and "--workspace" not in said
        assert said.rstrip().endswith(f"sumi-ripple {into}/demo.toml")


def test_a_folder_with_something_else_in_it_is_no_backup_to_verify(
    tmp_path: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("mine")
    for place in (tmp_path / "other", tmp_path / "other" / "a.txt"):
        assert called("backup", place, config_path, "--verify") == 2
        assert f"{place} is no backup: it has no backup.json" in capsys.readouterr().err
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["a.txt"]


def test_the_checksums_of_a_backup_are_those_that_sha256sum_reads(kept: Path) -> None:
    done = subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert called("backup", kept, "--verify") == 0


@pytest.mark.parametrize("name", ["map.db", "config/demo.toml", "workspace/spool/results/scheduler/000000000001.jsonl"])
def test_one_flipped_bit_in_a_backup_is_found_and_nothing_is_restored(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    damaged = copied(kept, tmp_path / "damaged")
    content = bytearray((damaged / name).read_bytes())
    content[len(content) // 2] ^= 1
    (damaged / name).write_bytes(content)
    for words in (("backup", damaged, "--verify"), ("restore", damaged, "--into", tmp_path / "new")):
        capsys.readouterr()
        assert called(*words) == 1
        error = capsys.readouterr().err
        assert f"is damaged: {name}: not as it was written" in error and error.count("\n") == 1
    assert not (tmp_path / "new").exists()


def test_a_backup_that_lacks_a_file_has_one_more_or_was_cut_off_is_none(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, code, change in (
        ("completed.db", 1, lambda path: path.write_bytes(b"x")),
        ("map.db", 1, lambda path: path.unlink()),
        ("SHA256SUMS", 1, lambda path: path.write_text("")),
        ("backup.json", 1, lambda path: path.write_text("{}")),
        ("backup.json", 2, lambda path: path.unlink()),
    ):
        damaged = copied(kept, tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}")
        change(damaged / name)
        assert called("restore", damaged, "--into", tmp_path / "new") == code
        error = capsys.readouterr().err
        assert name in error and error.count("\n") == 1
    assert called("backup", kept, "--store", "whole") == 2, "a backup is never written over another"


def test_a_backup_whose_account_of_itself_was_changed_in_any_place_is_damaged(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged = copied(kept, tmp_path / "damaged")
    fields = orjson.loads((kept / "backup.json").read_bytes())
    for name, value in fields.items():
        other = value + 1 if isinstance(value, int) else {**value, "x": "y"} if isinstance(value, dict) else f"{value}x"
        (damaged / "backup.json").write_bytes(orjson.dumps({**fields, name: other}))
        assert called("backup", damaged, "--verify") == 1, name
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and ("is damaged" in error or name == "v")


def test_a_forged_backup_writes_nothing_outside_its_folder_and_reads_nothing_there(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number, (name, place) in enumerate(
        (("database", "../x.db"), ("config", "/tmp/x.toml"), ("workspace", "a/../.."))
    ):
        forged = copied(kept, tmp_path / f"forged-{number}")
        fields = orjson.loads((forged / "backup.json").read_bytes())
        (forged / "backup.json").write_bytes(orjson.dumps({**fields, name: place}))
        assert called("restore", forged, "--into", tmp_path / "new" / "deep") == 1
        assert "names places outside of it" in capsys.readouterr().err
    linked = copied(kept, tmp_path / "linked")
    (linked / "workspace" / "quarantine").mkdir(exist_ok=True)
    (linked / "workspace" / "quarantine" / "x").symlink_to("/etc/passwd")
    assert called("restore", linked, "--into", tmp_path / "new" / "deep") == 1
    assert "quarantine/x: a symlink" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_backup_that_cannot_be_completed_leaves_its_folder_empty(
    here: Path, config_path: Path, workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("backup", "kept", "my.toml") == 1
    assert "there is no database" in capsys.readouterr().err and not Path("kept").exists()
    Path("sumi-ripple.db").write_bytes(b"SQLite format 3\0" + bytes(100))
    assert called("backup", "kept", "my.toml") == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert list(Path("kept").iterdir()) == []


def test_storage_names_each_part_once_and_says_when_the_disk_is_full(
    demo_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("storage", "demo.toml", "--workspace", demo_folder, "--json") == 0
    found = orjson.loads(capsys.readouterr().out)
    sizes = {part["name"]: part["size"] for part in found["parts"]}
    assert {"map", "results", "state", "summaries"} <= sizes.keys()
    assert found["together"]["size"] == sum(sizes.values()) == found["together"]["last_day"]
    results = sum(path.stat().st_blocks * 512 for path in (demo_folder / "spool" / "results").rglob("*.jsonl"))
    assert sizes["results"] == results
    (disk,) = found["disks"]
    assert disk["full_in_days"] == disk["free"] // disk["daily"]
    assert called("storage", "demo.toml", "--workspace", demo_folder) == 0
    text = capsys.readouterr().out
    assert "together" in text and " free; at " in text


def test_storage_of_nothing_is_one_sentence(here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert called("storage", "my.toml") == 1
    assert "nothing has been crawled" in capsys.readouterr().err


RETENTION = """
[retention]
results = 2
logs = "7d"
quarantine = "30d"
summaries = "90d"
run-maps = "7d"
aside = "90d"
"""


@pytest.fixture
def aged(here: Path, config_path: Path, workspace: FileWorkspace) -> Path:
    """A crawl with two files of each kind, a year old and new."""
    config_path.write_text(config_path.read_text() + RETENTION)
    b = MapBuilder(here / "sumi-ripple.db", ("a.test",))
    b.page("https://a.test/")
    b.save()
    with closing(sqlite3.connect(here / "sumi-ripple.db")) as db, db:
        db.execute("UPDATE runs SET status = 'completed'")
        db.execute("INSERT OR REPLACE INTO run_figures VALUES (1, 5, 9, 7, 2, 3)")
    visits = (
        "timestamp,url,http_status,content_bytes\r\n2025-01-01T10:00:00Z,a,200,10\r\n"
        "2025-01-01T11:00:00Z,b,404,\r\n2025-01-02T00:00:00Z,c,304,\r\n"
    )
    for name, text in {
        "logs/pages-1.csv": visits,
        "logs/metrics-1.csv": "timestamp,metric,value\n1735725600,pages,1\n1735729200,pages,4\n1735729200,pages,x\n",
        "quarantine/x.bad": "{",
        "summaries/run-1.md": "# one",
        "old-20250101-000000/spool/results/f/1.jsonl": "{}",
        "../sumi-ripple.db.runs/run-1-abc.db": "map",
        "../sumi-ripple.20250101-000000.db": "map",
    }.items():
        for place in (here / "workspace" / name, here / "workspace" / name.replace("1", "2")):
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
    year = time.time() - 365 * 86_400
    for path in [*here.rglob("*1*"), here / "workspace" / "quarantine" / "x.bad"]:
        os.utime(path, (year, year))
    return here


def left(folder: Path) -> set[str]:
    aside = ("-wal", "-shm", ".lock", "format")
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(aside)
    }


def test_prune_says_first_what_would_go_then_removes_exactly_that(
    aged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = left(aged)
    assert called("prune", "my.toml", "--dry-run") == 0
    told = capsys.readouterr().out
    assert left(aged) == before
    assert "logs: logs/pages-1.csv (" in told and "would go: older than 7 days ([retention] logs)" in told
    assert "aside: 2 older than the limit stay" in told
    assert called("prune", "my.toml", "--yes") == 0
    gone = {
        *("workspace/logs/pages-1.csv", "workspace/logs/metrics-1.csv", "workspace/quarantine/x.bad"),
        *("workspace/summaries/run-1.md", "sumi-ripple.db.runs/run-1-abc.db"),
    }
    rolled = {f"workspace/rolled-up/{name}.csv" for name in ("visits", "metrics", "runs")}
    assert left(aged) == (before - gone) | rolled
    table = (aged / "workspace" / "rolled-up" / "visits.csv").read_text().splitlines()
    assert table[1:] == ["2025-01-01,2,1,0,1,0,0,10,logs/pages-1.csv", "2025-01-02,1,0,1,0,0,0,0,logs/pages-1.csv"]
    table = (aged / "workspace" / "rolled-up" / "metrics.csv").read_text().splitlines()
    assert table[1:] == ["2025-01-01,pages,2,1,2.5,4,4,logs/metrics-1.csv"]
    assert ",completed,5,9,7,2,3,summaries/run-1.md" in (aged / "workspace" / "rolled-up" / "runs.csv").read_text()
    capsys.readouterr()
    assert called("prune", "my.toml", "--yes") == 0
    assert capsys.readouterr().out.endswith("Nothing is older than [retention] allows\n")


def test_a_prune_that_was_cut_off_rolls_no_figure_up_twice(aged: Path) -> None:
    log = aged / "workspace" / "logs" / "pages-1.csv"
    content, times = log.read_bytes(), (log.stat().st_atime, log.stat().st_mtime)
    assert called("prune", "logs", "my.toml", "--yes") == 0
    table = (aged / "workspace" / "rolled-up" / "visits.csv").read_bytes()
    log.write_bytes(content)  # as if it had been cut off before it removed the file
    os.utime(log, times)
    assert called("prune", "logs", "my.toml", "--yes") == 0
    assert not log.exists()
    assert (aged / "workspace" / "rolled-up" / "visits.csv").read_bytes() == table


def test_crawls_that_were_moved_aside_go_only_by_name(aged: Path) -> None:
    before = left(aged)
    assert called("prune", "aside", "my.toml", "--yes") == 0
    assert before - left(aged) == {
        "workspace/old-20250101-000000/spool/results/f/1.jsonl",
        "sumi-ripple.20250101-000000.db",
    }


def test_without_a_retention_table_everything_is_kept(
    here: Path, config_path: Path, workspace: FileWorkspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("prune", "my.toml", "--yes") == 0
    assert "everything is kept" in capsys.readouterr().out


def test_an_archive_has_every_visit_and_opens_as_a_read_only_table(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("restore", kept, "--into", tmp_path / "demo") == 0
    config, folder = tmp_path / "demo" / "demo.toml", tmp_path / "demo" / "archive" / "before-2999-01-01"
    assert called("archive", config, "--before", "2000-01-01") == 1
    assert "there is no visit before" in capsys.readouterr().err
    assert called("archive", config, "--before", "2999-01-01") == 0
    assert {path.name for path in folder.iterdir()} == {
        *("archive.json", "pages.csv.gz", "failures.csv.gz", "figures.jsonl.gz"),
    }
    assert called("archive", config, "--before", "2999-01-01") == 2, "an archive is never written over another"
    capsys.readouterr()
    assert called("archive", "open", folder) == 0
    assert "read-only: archived_pages (" in capsys.readouterr().out
    sql = "SELECT url, state, status_code, title, bytes, error FROM archived_pages"
    of_map = "SELECT url, state, status_code, title, bytes, error_message FROM pages WHERE visited_run IS NOT NULL"
    with (
        closing(sqlite3.connect(f"file:{folder / 'archive.db'}?mode=ro", uri=True)) as archived,
        closing(sqlite3.connect(tmp_path / "demo" / "sumi-ripple.db")) as map_,
    ):
        visits = {row[0]: row for row in archived.execute(sql)}
        known = {row[0]: row for row in map_.execute(of_map)}
        assert visits.keys() == known.keys()
        same = [url for url, row in visits.items() if row[1:3] == known[url][1:3]]
        assert len(same) > 0.8 * len(visits), "the map judges some of them by what it knows of others"
        failures = archived.execute("SELECT count(*) FROM archived_failures WHERE slug <> ''").fetchone()[0]
        assert failures == len([row for row in visits.values() if row[1] != "processed" and row[5]]) > 10
        days = archived.execute(
            "SELECT sum(figures ->> 'visits') FROM archived_figures WHERE figures ->> 'kind' = 'day'"
        )
        assert days.fetchone()[0] == len(visits)
    assert (folder / "archive.db").stat().st_mode & 0o777 == 0o400
    content = bytearray((folder / "pages.csv.gz").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "pages.csv.gz").write_bytes(content)
    assert called("archive", "open", folder, "--into", tmp_path / "x.db") == 1
    error = capsys.readouterr().err
    assert "is damaged" in error and error.count("\n") == 1 and not (tmp_path / "x.db").exists()


def test_an_archive_has_each_visit_once_and_knows_those_whose_results_are_gone(aged: Path) -> None:
    """A kill may leave a result twice; a page that is not due keeps the time of its visit, in every run."""
    with closing(sqlite3.connect(aged / "sumi-ripple.db")) as db, db:
        db.execute("UPDATE runs SET started_at = '2025-01-01T00:00:00.000Z'")
        db.execute(
            "INSERT INTO runs (id, started_at, status, config_hash)"
            " VALUES (2, '2025-01-05T00:00:00.000Z', 'completed', '')"
        )
        db.execute("UPDATE pages SET visited_run = 2, visited_at = '2025-01-01T09:00:00.000Z', state = 'processed'")
        db.execute("INSERT INTO meta VALUES ('results_kept_from_run', '2')")
        facts = "SELECT id, 2, 'abc', 1, 0, 9, NULL, NULL, NULL, NULL, NULL, NULL, 7, NULL, NULL FROM pages"
        db.execute(f"INSERT INTO page_facts {facts}")
    visit = PageResult(2, "https://a.test/b", "https://a.test/b", "a.test", "2025-01-05T01:00:00.000Z", "processed")
    writer = FileWorkspace(aged / "workspace").results.writer("fetcher-01", segment_bytes=1 << 20)
    for _ in range(2):
        writer.append(dump(visit))
    writer.close()
    assert called("archive", "my.toml", "--before", "2025-01-06", "--into", aged / "cold") == 0
    assert orjson.loads((aged / "cold" / "archive.json").read_bytes())["pages"] == 2
    assert called("archive", "open", aged / "cold") == 0
    with closing(sqlite3.connect(f"file:{aged / 'cold' / 'archive.db'}?mode=ro", uri=True)) as db:
        found = db.execute("SELECT run, url, content_hash, links FROM archived_pages ORDER BY run").fetchall()
    assert found == [(1, "https://a.test/", "abc", 7), (2, "https://a.test/b", None, 0)]


def test_stored_pages_give_the_same_map_again_and_another_one_under_other_rules(
    kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("restore", kept, "--into", tmp_path / "demo") == 0
    config, live = tmp_path / "demo" / "demo.toml", tmp_path / "demo" / "sumi-ripple.db"
    assert called("replay", config, "--into", tmp_path / "same.db", "--from-store") == 0
    assert "pages read again from the store" in capsys.readouterr().out
    assert digest(tmp_path / "same.db") == digest(live)
    config.write_text(config.read_text().replace("[crawler]", "[crawler]\nlink-text = true", 1))
    for name, options in (("recorded", ()), ("read", ("--from-store",))):
        assert called("replay", config, "--into", tmp_path / f"{name}.db", *options) == 0
    counts = []
    for name in ("recorded", "read"):
        with closing(sqlite3.connect(tmp_path / f"{name}.db")) as db:
            counts += db.execute("SELECT count(*) FROM link_texts").fetchone()
    assert counts[0] == 0 < 100 < counts[1], "no request, and yet every link of a stored page has its text"


def test_the_demo_as_a_web_archive(kept: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from warcio.archiveiterator import ArchiveIterator

    assert called("restore", kept, "--into", tmp_path / "demo") == 0
    config, target = tmp_path / "demo" / "demo.toml", tmp_path / "demo.warc.gz"
    assert called("export", config, target) == 0
    assert "responses and " in capsys.readouterr().out
    with target.open("rb") as file:
        pages = {
            record.rec_headers.get_header("WARC-Target-URI"): record.content_stream().read()
            for record in ArchiveIterator(file, check_digests="raise")
            if record.rec_type == "response"
        }
    assert b"<title>" in pages["https://tea-almanac.test/"] and len(pages) > 50
    assert len((tmp_path / "demo.cdxj").read_text().splitlines()) >= len(pages)
    assert called("export", config, tmp_path / "x.warc.gz", "--run", "9") == 2
    assert "no visit in run 9 of" in capsys.readouterr().err
