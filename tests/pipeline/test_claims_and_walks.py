"""Whole crawls of webs without end, with an innocent site beside them; and a fetcher with few open files."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from crawler.database.digest import digest
from crawler.demo.server import serve_terrain
from crawler.model.settings import Config, CrawlerSettings
from crawler.workspace.clock import read_clock
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.gate_file import GateFile
from crawler.workspace.files.spool import Reader, Writer, segment_path
from crawler.workspace.log import Damage
from tests.hostile import HostileServer
from tests.pipeline.crawling import rows, run
from tests.pipeline.fetching import PlainTerrain, config_for, finish, pages, prepare, release, start_fetcher, wait_for

CONFIG = """
[crawler]
max-depth = 3
minimum-time-on-page = 100
max-concurrent-pages-open = 20
workers = 1
[user-agent]
contact-email = "someone@example.com"
[network]
ca-bundle = "hostile-ca.pem"
[network.resolve]
"*" = "127.0.0.1:{port}"
[traps]
max-subdomains = 5
[[quality]]
domain = "*.many.test"
seeds = ["https://h0.many.test/~hosts"]
[[quality]]
domain = "walk0.test"
seeds = ["https://walk0.test/~walk"]
[[quality]]
domain = "base.test"
seeds = ["https://base.test/~long-base"]
[[quality]]
domain = "honest.test"
seeds = ["https://honest.test/plain", "https://honest.test/chunked"]
"""


def test_webs_without_end_come_to_an_end_and_the_innocent_site_beside_them_is_done(tmp_path: Path) -> None:
    with HostileServer(tmp_path) as server:
        (tmp_path / "web.toml").write_text(
            CONFIG.format(port=server.port).replace("max-depth = 3", "max-depth = 3\nmax-domain-requests = 30")
        )
        run("crawl", "web.toml", "-q", cwd=tmp_path)
        asked = {seen.host for seen in server.seen()}
    # The seed's host is named by the config and does not count.
    assert len([host for host in asked if host.endswith(".many.test")]) == 6
    assert {host for host in asked if host.startswith("walk")} == {f"walk{number}.test" for number in range(11)}
    walked = rows(tmp_path, "SELECT state, error_message FROM pages WHERE url LIKE 'https://walk%'")
    assert walked == [("failed", "redirect-limit: more than 10 redirects in a row")] * 12
    hosts = rows(tmp_path, "SELECT state, substr(error_message, 1, 16) FROM pages WHERE url LIKE '%.many.test/~hosts'")
    assert sorted(set(hosts), key=str) == [("failed", "trap-subdomains:"), ("processed", None)]
    innocent = rows(tmp_path, "SELECT state FROM pages WHERE url IN ('https://honest.test/plain',"
                    " 'https://honest.test/chunked')")  # fmt: skip
    assert innocent == [("processed",)] * 2
    base = rows(tmp_path, "SELECT url FROM pages WHERE url LIKE 'https://base.test/p%' LIMIT 1")
    assert len(base) == 1 and len(base[0][0]) < 100, "a base over the limit is no base"
    assert rows(tmp_path, "SELECT status FROM runs") == [("completed",)]
    run("replay", "web.toml", "--into", "again.db", cwd=tmp_path)
    assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")


def test_a_fetcher_with_few_open_files_does_many_domains_a_few_at_a_time_and_says_so(tmp_path: Path) -> None:
    hosts = tuple(f"h{number}.test" for number in range(120))
    with serve_terrain(PlainTerrain(hosts), tmp_path) as served:
        crawler = CrawlerSettings(minimum_time_on_page=100, max_active_domains=600, max_concurrent_pages_open=20)
        config: Config = config_for(served, tmp_path / "workspace", crawler)
        workspace = prepare(config)
        release(workspace, [f"https://{host}/" for host in hosts])
        few = 256
        process = start_fetcher(
            config, tmp_path, preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (few, few)), capture=True
        )
        try:
            wait_for(lambda: len(pages(workspace)) >= len(hosts) or process.poll() is not None, 120)
            beat = workspace.heartbeats()["fetcher-01"]
            finish(workspace)
            _, errors = process.communicate(timeout=30)
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()
    assert process.returncode == 0, errors.decode()
    assert {page.domain for page in pages(workspace)} == set(hosts)
    assert {page.state for page in pages(workspace)} == {"processed"}
    assert errors.decode().count("The system allows 256 open files") == 1, errors.decode()
    assert b'"open_files":256' in beat


def test_a_lease_that_was_removed_begins_with_a_greater_token(tmp_path: Path) -> None:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    writer = workspace.job_writer()
    tokens = []
    for _ in range(3):
        workspace.layout.jobs_of("a.test").mkdir()
        claim = workspace.claim("a.test")
        assert claim is not None
        tokens.append(claim.token)
        claim.release()
        writer.remove("a.test", 1)
        writer.clean()
        assert not workspace.layout.lease_of("a.test").exists()
    assert tokens == sorted(set(tokens))


def test_idle_gates_and_robots_are_removed_and_a_handle_on_one_finds_the_new_file(tmp_path: Path) -> None:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    for host in ("old.test", "new.test"):
        gate = workspace.gate(host, read_clock)
        gate.update(1, lambda record: record)
        gate.close()
        workspace.keep_robots(host, b'{"v":1}')
    held = GateFile(workspace.layout.gate_of("old.test"))
    layout = workspace.layout
    claim = workspace.claim("old.test")
    assert claim is not None
    claim.release()
    for path in (layout.gate_of("old.test"), layout.robots_of("old.test"), layout.lease_of("old.test")):
        os.utime(path, (1, 1))
    assert workspace.forget_idle(3600) == 3
    assert not layout.lease_of("old.test").exists()
    assert not workspace.layout.gate_of("old.test").exists() and workspace.layout.gate_of("new.test").exists()
    assert workspace.robots("old.test") is None and workspace.robots("new.test") is not None
    assert held.update(2, lambda record: record)
    assert workspace.layout.gate_of("old.test").exists(), "the handle made the gate anew"
    held.close()


def test_a_folder_in_the_place_of_a_segment_is_damage_with_a_path_and_the_rest_is_read(tmp_path: Path) -> None:
    segment_path(tmp_path, 1).mkdir()
    writer = Writer(tmp_path)
    writer.append(b'{"v":1}')
    writer.close()
    found: list[Damage] = []
    reader = Reader(tmp_path, on_damage=found.append)
    assert len(reader.read()) == 1
    reader.close()
    assert [damage.place for damage in found] == [str(segment_path(tmp_path, 1))]


STATUS = """
import os, pathlib, sys
from crawler.observe.status import Status
from crawler.workspace.files.file_workspace import FileWorkspace
workspace = FileWorkspace(pathlib.Path(sys.argv[1]))
if os.getuid() == 0:  # root may write everything
    os.setgid(65534)
    os.setuid(65534)
print([stage.name for stage in Status(workspace).snapshot.stages if stage.is_running])
"""


def test_the_status_of_a_workspace_that_cannot_be_written_is_shown() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        workspace = FileWorkspace(root / "workspace")
        workspace.prepare()
        workspace.take_role("scheduler").release()
        held = workspace.take_role("ingest")
        for path in (root, *root.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        try:
            done = subprocess.run(
                [sys.executable, "-c", STATUS, str(root / "workspace")], capture_output=True, text=True, check=False
            )
        finally:
            for path in (root, *root.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
            held.release()
    assert done.stdout.split() == ["['ingest']"], done.stderr


@pytest.mark.parametrize("workers", [1, 4])
def test_the_number_of_workers_makes_no_other_configuration(workers: int) -> None:
    assert Config(crawler=CrawlerSettings(workers=workers)).config_hash == Config().config_hash
    assert Config(crawler=CrawlerSettings(max_depth=1)).config_hash != Config().config_hash
