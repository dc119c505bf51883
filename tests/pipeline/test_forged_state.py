"""Whole crawls over state that somebody forged or replaced: one interrupted crawl, copied for each.

`tests/pipeline/test_damaged_state.py` has each forgery by itself, in one process.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.model.records import Job, PageResult, Release, dump
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer
from crawler.workspace.runs import Run, RunStatus, write_run
from tests.hostile import HostileServer
from tests.pipeline.crawling import PATIENCE, command, rows, run
from tests.pipeline.test_hostile_crawl import write_config

pytestmark = pytest.mark.xdist_group("forged")

AT = "2026-01-01T00:00:00.000Z"
HOST = "innocent0.test"
FORGED_WIRES = ("https://", "", "ftp://a/", "https://elsewhere.test/", "https://[")
_PR_CAPBSET_DROP = 24
_CAPABILITIES = (1, 2, 3)  # by which root reads and writes whatever the permission bits say


@dataclass(frozen=True)
class Interrupted:
    """A crawl folder with a run that stopped at a limit, and the digest that the whole crawl has."""

    folder: Path
    whole: str
    server: HostileServer

    def copy(self, target: Path) -> Path:
        shutil.copytree(self.folder, target, ignore=shutil.ignore_patterns("bells"))
        return target


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Interrupted]:
    root = tmp_path_factory.mktemp("forged")
    with HostileServer(root) as server:
        folder = root / "crawl"
        folder.mkdir()
        config = write_config(folder, server, [f"https://{HOST}/", "https://innocent1.test/"])
        (folder / "limited.toml").write_text(config.read_text() + "[limits]\nmax-pages = 5\n")
        run("crawl", "limited.toml", "--workspace", "ws", "-q", "--workers", "1", cwd=folder)
        undisturbed = root / "undisturbed"
        shutil.copytree(folder, undisturbed, ignore=shutil.ignore_patterns("bells"))
        run("crawl", "crawl.toml", "--workspace", "ws", "-q", cwd=undisturbed)
        assert rows(undisturbed, "SELECT count(*) FROM pages WHERE visited_run = 1") == [(14,)]
        yield Interrupted(folder, digest(undisturbed / "sumi-ripple.db"), server)


def forge(workspace: FileWorkspace, precious: Path) -> None:
    """Everything at once that a stranger with access to the workspace might write."""
    layout = workspace.layout
    write_run(workspace, Run(1, RunStatus.COMPLETED))
    results = workspace.results.writer("fetcher-09", segment_bytes=1 << 20)
    for number in (50, 2**40):
        results.append(dump(PageResult(number, f"https://{HOST}/", f"https://{HOST}/", HOST, AT, "dead_link")))
    results.close()
    jobs = Writer(layout.jobs_of(HOST))
    jobs.append_all(dump(Job(1, f"https://{HOST}/", wire, HOST)) for wire in FORGED_WIRES)
    jobs.append(dump(Job(2**40, f"https://{HOST}/", f"https://{HOST}/", HOST)))
    jobs.close()
    releases = Writer(layout.releases)
    releases.append(dump(Release(1, HOST, len(FORGED_WIRES) + 1, 0)))
    releases.close()
    layout.scheduler_file.write_bytes(b'{"v":1,"epoch":%d}' % 2**70)
    for path in (layout.gate_of(HOST), layout.lease_of(HOST), layout.document("crawl"), layout.robots_of(HOST)):
        path.unlink(missing_ok=True)
        path.symlink_to(precious)
    layout.root.chmod(0o777)


def test_a_forged_workspace_is_crawled_to_its_end_and_nothing_outside_is_touched(
    interrupted: Interrupted, tmp_path: Path
) -> None:
    folder = interrupted.copy(tmp_path / "crawl")
    precious = tmp_path / "precious"
    precious.write_bytes(b"keep me")
    forge(FileWorkspace(folder / "ws"), precious)
    before = len(interrupted.server.seen())
    done = run("crawl", "crawl.toml", "--workspace", "ws", cwd=folder)
    assert "Every user of this system can write to the workspace" in done.stdout + done.stderr
    assert digest(folder / "sumi-ripple.db") == interrupted.whole
    assert rows(folder, "SELECT id, status FROM runs") == [(1, "completed")]
    assert precious.read_bytes() == b"keep me"
    assert {seen.host for seen in interrupted.server.seen()[before:]} <= {HOST, "innocent1.test"}


@pytest.mark.parametrize(
    "name",
    [
        "state/run.json",
        f"state/gates/{HOST}",
        f"spool/jobs/{HOST}/bookmark.json",
        "state/scheduler.json",
        "locks/fetcher-01.lock",
    ],
)
def test_a_folder_in_the_place_of_a_file_is_named(interrupted: Interrupted, tmp_path: Path, name: str) -> None:
    folder = interrupted.copy(tmp_path / "crawl")
    path = folder / "ws" / name
    path.unlink(missing_ok=True)
    path.mkdir(parents=True)
    done = run("crawl", "crawl.toml", "--workspace", "ws", "-q", cwd=folder, ok=1)
    lines = (done.stdout + done.stderr).splitlines()
    assert lines and all(str(path) in line and "Is a directory" in line for line in lines), lines


def without_privilege() -> None:
    """For a child of root to call before it starts: permission bits count for it too."""
    if os.geteuid() == 0:
        for capability in _CAPABILITIES:
            ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def ask(*words: str, cwd: Path, before: Callable[[], None] = without_privilege) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), cwd=cwd, preexec_fn=before, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


def test_a_read_only_crawl_folder_can_be_asked_and_says_that_it_cannot_be_crawled(
    interrupted: Interrupted, tmp_path: Path
) -> None:
    folder = interrupted.copy(tmp_path / "crawl")
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        for words in (("status",), ("audit",), ("stats",), ("explain",)):
            more = (f"https://{HOST}/",) if words == ("explain",) else ()
            done = ask(*words, "crawl.toml", *more, "--workspace", "ws", cwd=folder)
            assert (done.returncode, done.stderr) == (0, ""), words
        done = ask("crawl", "crawl.toml", "--workspace", "ws", cwd=folder)
        assert done.returncode != 0 and "may not be written to" in done.stderr
    finally:
        for path in (folder, *folder.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_an_audit_without_the_crawls_workers_finds_no_other_configuration(interrupted: Interrupted) -> None:
    """The crawl was made with --workers 1, the config says 2."""
    done = run("audit", "limited.toml", "--workspace", "ws", cwd=interrupted.folder)
    assert "onfiguration" not in done.stdout + done.stderr
