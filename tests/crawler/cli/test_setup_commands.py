"""configure and reset: everything is made and nothing overwritten; all is moved aside and nothing lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from crawler.config.load import load
from crawler.database.digest import digest
from crawler.workspace.files.file_workspace import FileWorkspace
from tests.crawler.cli.calling import called, sumi
from tests.pipeline.crawling import eventually
from tests.reporter.terrain import MapBuilder


def test_configure_makes_all_that_a_crawl_needs_and_twice_does_no_harm(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called("configure", "my.toml") == 0
    said = capsys.readouterr().out
    assert "my.toml" in said and "seeds.txt" in said and "workspace" in said
    loaded = load(here / "my.toml")
    assert loaded.quality[0].seeds == ("https://example.com/",)
    for name in ("spool/results", "state/gates", "locks", "logs", "metadata", "store/html", "summaries"):
        assert (here / "workspace" / name).is_dir(), name
    (here / "seeds.txt").write_text("https://example.com/mine\n")
    assert called("configure", "my.toml") == 0
    assert "nothing was changed" in capsys.readouterr().out
    assert (here / "seeds.txt").read_text() == "https://example.com/mine\n"
    (here / "seeds.txt").unlink()
    assert called("configure", "my.toml") == 0
    assert (here / "seeds.txt").read_text().endswith("https://example.com/\n"), "what is missing is made again"


def test_configure_with_a_bad_config_makes_nothing(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = '[[quality]]\ndomain = "a.test"\nseeds-file = "new.txt"\n[crawler]\nodd = 1\n'
    (here / "half.toml").write_text(text)
    assert called("configure", "half.toml") == 2
    assert "crawler.odd" in capsys.readouterr().err
    assert [path.name for path in here.iterdir()] == ["half.toml"]


def _crawled(here: Path) -> Path:
    b = MapBuilder(here / "sumi-ripple.db", ("a.test",))
    b.page("https://a.test/")
    b.save()
    b.db.close()
    root = here / "workspace"
    FileWorkspace(root).prepare()
    for name in ("spool/results/fetcher-01/000000000001.jsonl", "logs/pages-1.csv", "store/html/aa/bb/x.html.zst"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"content of {name}\n")
    return root


def test_reset_moves_everything_aside_and_keeps_the_folders(here: Path, config_path: Path) -> None:
    root = _crawled(here)
    before = digest(here / "sumi-ripple.db")
    done = sumi("reset", config_path, "--yes", cwd=here)
    assert done.returncode == 0, done.stderr
    (kept,) = root.glob("old-*")
    assert (kept / "logs" / "pages-1.csv").read_text() == "content of logs/pages-1.csv\n"
    assert (kept / "store" / "html" / "aa" / "bb" / "x.html.zst").exists()
    (moved,) = here.glob("sumi-ripple.*.db")
    assert digest(moved) == before and not (here / "sumi-ripple.db").exists()
    for name in ("spool/results", "logs", "metadata", "store/html", "summaries"):
        assert (root / name).is_dir() and not [path for path in (root / name).rglob("*") if path.is_file()], name
    again = sumi("reset", config_path, "--yes", cwd=here)
    assert again.returncode == 0 and "nothing to move aside" in again.stdout


def test_reset_with_purge_deletes_what_it_moved_and_nothing_else(here: Path, config_path: Path) -> None:
    root = _crawled(here)
    assert called("reset", config_path, "--yes") == 0
    _crawled(here)
    (here / ".purging-left").mkdir()  # by a purge that was killed
    assert called("reset", config_path, "--yes", "--purge") == 0
    assert not (here / "sumi-ripple.db").exists()
    eventually(lambda: not [*here.glob(".purging-*"), *root.glob(".purging-*")], "all of it is deleted")
    assert len(list(root.glob("old-*"))) == 1 and len(list(here.glob("sumi-ripple.*.db"))) == 1, "the first reset's"


def test_reset_leaves_a_store_on_its_own_disk_and_purges_it_there(here: Path, config_path: Path) -> None:
    """docs/keeping.md: workspace/store may be a symbolic link."""
    root, disk = _crawled(here), here / "disk"
    (root / "store").rename(disk)
    (root / "store").symlink_to(disk)
    assert called("reset", config_path, "--yes") == 0
    assert (root / "store").is_symlink() and (disk / "html").is_dir(), "the next crawl stores its pages there"
    (moved,) = root.glob("old-*")
    assert (moved / "store" / "html" / "aa" / "bb" / "x.html.zst").exists() and (disk / moved.name).is_dir()
    (disk / "html" / "later").mkdir()
    (disk / "html" / "later" / "y.html.zst").write_text("of the next crawl")
    assert called("reset", config_path, "--yes", "--purge") == 0
    eventually(lambda: not list(root.glob(".purging-*")), "the second crawl is deleted")
    assert [path.name for path in disk.glob("old-*")] == [moved.name], "only what this reset moved is gone"
    assert not (disk / "html" / "later").exists()


def test_reset_refuses_while_a_crawl_is_at_work(
    here: Path, config_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = _crawled(here)
    role = FileWorkspace(root).take_role("supervisor")
    assert called("reset", config_path, "--yes") == 1
    role.release()
    assert "a crawl is already running" in capsys.readouterr().err
    assert (here / "sumi-ripple.db").exists() and not list(root.glob("old-*"))
