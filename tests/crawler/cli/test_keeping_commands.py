"""backup, restore, storage: the commands that keep a crawl, on a crawl of the demo and on damage."""

from __future__ import annotations

import subprocess
from pathlib import Path

import orjson
import pytest

from crawler.database.digest import digest
from tests.crawler.cli.calling import called

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
