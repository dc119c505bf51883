"""The pipeline end to end, on real processes, real HTTPS and real signals."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from crawler.database.digest import digest, parts
from crawler.database.ingest_progress import spool_positions
from crawler.demo.server import Served, serve_terrain
from crawler.demo.terrain import demo_terrain
from crawler.keep.restore import restore
from crawler.model.records import PageResult, parse
from crawler.model.states import PageState
from crawler.observe.audit import audit
from crawler.store.file_store import FileStore
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.opening import open_workspace
from ingest.replay import replay
from tests.crawler.demo.demo_states import MASKED, UNLINKED, expected_states
from tests.pipeline.crawling import eventually, pages_done, prepared, rows, run, smaller_files, started
from tests.places import ROOT
from tests.postgres_server import own_server
from tests.torture.machines import Terrain, check, only_quality, places, serve_on
from tests.torture.run import kill

MORE_ROOM = "\n[spool]\nmax-backlog = 99999\n"
pytestmark = pytest.mark.xdist_group("crawl")  # one after the other: each wants both cores


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_terrain(demo_terrain(), tmp_path_factory.mktemp("server"), log=True) as server:
        yield server


@pytest.fixture(scope="module")
def calm(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which an undisturbed crawl has been done."""
    folder = tmp_path_factory.mktemp("calm")
    run("crawl", prepared(folder, served), "--workspace", "workspace", cwd=folder)
    return folder


@pytest.fixture(scope="module")
def ample(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with a budget that nothing exhausts: requests that are lost with their fetcher count against it."""
    folder = tmp_path_factory.mktemp("ample")
    run("crawl", prepared(folder, served, max_domain_requests=2000), "--workspace", "workspace", cwd=folder)
    return folder


def page_results(workspace: Path) -> Iterator[PageResult]:
    results = FileWorkspace(workspace).results
    for writer in results.writers():
        for line in results.reader(writer).read(10_000):
            if isinstance(record := parse(line.body), PageResult):
                yield record


def test_every_page_of_the_demo_ends_in_the_state_written_down_for_it(calm: Path) -> None:
    found = dict(rows(calm, "SELECT url, state FROM pages"))
    assert found == expected_states()


def test_every_state_that_a_finished_crawl_can_hold_occurs(calm: Path) -> None:
    finished = {state.value for state in PageState} - {"queued", "fetching"}
    assert {row[0] for row in rows(calm, "SELECT DISTINCT state FROM pages")} == finished


def test_a_finished_crawl_leaves_a_completed_run_an_empty_frontier_and_a_summary(calm: Path) -> None:
    assert rows(calm, "SELECT id, status FROM runs") == [(1, "completed")]
    assert rows(calm, "SELECT count(*) FROM frontier") == [(0,)]
    assert "# Sumi-Ripple Crawl Summary" in (calm / "crawl-summary.md").read_text()


def test_the_summary_of_the_demo_has_every_section_but_the_one_for_damage(calm: Path) -> None:
    text = (calm / "crawl-summary.md").read_text()
    for section in (
        "## Candidates",
        "## Links Worth Mending",
        "### Gone",
        "### Not Reachable Today",
        "### Permanently Redirected",
        "Domains That Link Back",
        "Closed Early",
        "Trap Warnings",
    ):
        assert f"{section} " in text.replace("\n", " "), section
    assert "| `https://type.press-garden.test/ink/soot` | `https://type.press-garden.test/ink/black` |" in text


def test_every_page_in_the_store_is_what_the_server_sent(calm: Path) -> None:
    store, terrain = FileStore(calm / "workspace" / "store" / "html"), demo_terrain()
    named = set()
    for result in page_results(calm / "workspace"):
        if result.stored:
            host, target = (result.answered_by or result.wire).removeprefix("https://").split("/", 1)
            sent = terrain.answer(host, "GET", f"/{target}").data.split(b"\r\n\r\n", 1)[1]
            assert store.get(result.content_hash or "") == sent, result.wire
            assert isinstance(result.headers, dict) and result.headers["content-length"] == str(len(sent))
            named.add(result.content_hash)
    assert len(named) > 60
    assert named == set(store.hashes()), "nothing else is kept"
    assert list(store.strangers()) == []
    assert named == {row[0] for row in rows(calm, "SELECT content_hash FROM page_facts WHERE stored")}


def test_a_page_that_asks_not_to_be_kept_is_mapped_and_hashed_and_not_stored(calm: Path) -> None:
    found = rows(calm, "SELECT url, content_hash, stored FROM pages JOIN page_facts USING (id) WHERE noarchive")
    assert [(url, stored) for url, _, stored in found] == [("https://tea-almanac.test/guestbook", 0)]
    assert not FileStore(calm / "workspace" / "store" / "html").has(found[0][1])


def test_the_map_knows_what_accepted_pages_say_about_themselves(calm: Path) -> None:
    columns = "language, heading, canonical, link_count, length(content_hash), length(text_hash)"
    where = "url = 'https://tea-almanac.test/teas/green'"
    (found,) = rows(calm, f"SELECT {columns} FROM pages JOIN page_facts USING (id) WHERE {where}")
    links = rows(calm, f"SELECT count(*) FROM links JOIN pages ON pages.id = from_page_id WHERE {where}")
    assert found[:3] == ("en", "The Tea Almanac: teas/green", "https://tea-almanac.test/teas/green")
    assert found[3] >= links[0][0]
    assert found[4:] == (64, 32)
    accepted = "SELECT count(*) FROM pages WHERE state = 'processed' AND status_code = 200 AND validation = 'ok'"
    assert rows(calm, accepted + " AND NOT truncated AND id NOT IN (SELECT id FROM page_facts)") == [(0,)]
    assert rows(calm, "SELECT count(*) FROM page_facts JOIN pages USING (id) WHERE validation IN ('soft', 'hard')") == [
        (0,)
    ]


def test_stored_pages_are_printed_counted_packed_verified_and_forgotten(calm: Path, tmp_path: Path) -> None:
    shutil.copytree(calm, folder := tmp_path / "crawl")
    at = ("demo.toml", "--workspace", "workspace")
    url = "https://tea-almanac.test/teas/green"
    printed = run("store", "cat", url, *at, cwd=folder).stdout
    assert "<title>" in printed and printed == run("store", "cat", url, *at, "--run", "1", cwd=folder).stdout
    assert "0 packs" in run("store", "stats", *at, cwd=folder).stdout
    assert "none is missing" in run("store", "verify", *at, cwd=folder).stdout
    assert "Nothing to pack" in run("store", "pack", *at, cwd=folder).stdout
    assert "into 1 pack: " in run("store", "pack", *at, "--older-than", "0", cwd=folder).stdout
    assert " 0 files" in run("store", "stats", *at, cwd=folder).stdout
    assert "none is missing" in run("store", "verify", *at, cwd=folder).stdout
    assert run("store", "cat", url, *at, cwd=folder).stdout == printed
    assert "noarchive" in run("store", "cat", "https://tea-almanac.test/guestbook", *at, cwd=folder, ok=1).stderr
    assert "1 page: 1 content removed" in run("store", "forget", url, *at, cwd=folder).stdout
    assert "store forget" in run("store", "cat", url, *at, cwd=folder, ok=1).stderr
    assert "Removed on purpose (store forget, prune): 1" in run("store", "verify", *at, cwd=folder).stdout
    run("store", "forget", "nowhere.test", *at, cwd=folder, ok=1)
    (folder / "workspace/store/html/aa").write_bytes(b"")
    pack = next((folder / "workspace/store/html/packs").iterdir())
    pack.write_bytes(pack.read_bytes()[:-9])
    broken = run("store", "verify", *at, cwd=folder, ok=1).stderr
    assert "1 of the packs cannot be opened;" in broken and "missing:" in broken and "1 not of the store:" in broken


def test_the_domain_that_trips_its_breaker_recovers_and_every_change_is_shown(calm: Path) -> None:
    found = rows(calm, "SELECT domain, state, changes FROM breakers JOIN domain_states USING (id)")
    assert found == [("tired-ferry.test", "closed", 3)]
    assert "| tired-ferry.test | closed | 3 | visits succeed again |" in (calm / "crawl-summary.md").read_text()
    exported = run("export", "demo.toml", "--workspace", "workspace", "--level", "domain", cwd=calm).stdout
    (ferry,) = [line for line in exported.splitlines() if '"tired-ferry.test"' in line and '"breaker"' in line]
    assert '"breaker":"closed"' in ferry
    told = run("explain", "tired-ferry.test", calm / "demo.toml", "--workspace", "workspace", cwd=calm).stdout
    assert "breaker       closed after 3 changes: visits succeed again\n" in told


def test_pages_that_are_none_are_rejected_and_no_others(calm: Path) -> None:
    slug = "substr(rejection_reason, 1, instr(rejection_reason, ':') - 1)"
    found = rows(calm, f"SELECT url, validation, {slug} FROM pages WHERE validation IN ('soft', 'hard')")
    assert {url: (word, reason) for url, word, reason in found} == MASKED
    judged = "SELECT validation, count(*) FROM pages WHERE state = 'processed' AND redirect_to IS NULL GROUP BY 1"
    counts = dict(rows(calm, judged))
    assert counts["ok"] > 50 and None not in counts
    behind = (
        "SELECT kind FROM links JOIN pages ON pages.id = to_page_id WHERE url = 'https://masked-ball.test/backstage'"
    )
    assert rows(calm, behind) == [(1,)]
    shell = "https://masked-ball.test/dance-card"
    text = (calm / "crawl-summary.md").read_text()
    assert "## Rejected Pages" in text and f"| `{shell}` | soft |" in text
    told = run("explain", shell, "demo.toml", "--workspace", "workspace", cwd=calm).stdout
    assert "rejected      soft, needs-rendering: " in told


def test_pages_that_no_link_leads_to_are_found_and_told_apart(calm: Path) -> None:
    found = rows(calm, "SELECT url, origin FROM pages WHERE origin NOT IN ('seed', 'linked')")
    assert {url: origin for url, origin in found if url in UNLINKED} == UNLINKED
    ends = rows(calm, "SELECT form, ended_by FROM pagination_rules WHERE ended_by IS NOT NULL")
    assert ends == [("https://ledger.press-garden.test/journal/page/{n}", "dead-link")]
    told = run("explain", "ledger.press-garden.test", "demo.toml", "--workspace", "workspace", cwd=calm).stdout
    assert "journal/page/{n}, up to 5; 2 pages tried beyond the linked ones, until one was not there" in told
    assert "{year}/{month}: links show 2; 2 tried without a link, until one was not there" in told
    leaf = "https://ledger.press-garden.test/journal/page/4"
    told = run("explain", leaf, "demo.toml", "--workspace", "workspace", cwd=calm).stdout
    assert "no page in the map: it was tried, after the last page of its list" in told


def test_the_audit_of_a_calm_crawl_is_clean(calm: Path) -> None:
    assert "clean" in run("audit", "demo.toml", "--workspace", "workspace", cwd=calm).stdout


def test_replay_builds_the_same_map(calm: Path) -> None:
    run("replay", "demo.toml", "--workspace", "workspace", "--into", "again.db", cwd=calm)
    assert parts(calm / "again.db") == parts(calm / "sumi-ripple.db")


def test_the_stages_started_by_hand_in_any_order_give_the_same_map(served: Served, calm: Path, tmp_path: Path) -> None:
    for number, order in enumerate((["fetch", "ingest", "schedule"], ["schedule", "fetch", "ingest"])):
        folder = tmp_path / str(number)
        config = prepared(folder, served)
        with ExitStack() as stack:
            processes = []
            for stage in order:
                words = (stage, config, "--workspace", "workspace")
                processes.append(stack.enter_context(started(*words, cwd=folder)))
            for process in processes:
                output, _ = process.communicate(timeout=90)
                assert process.returncode == 0, output
        run("report", config, "--workspace", "workspace", cwd=folder)
        assert (folder / "crawl-summary.md").exists()
        assert parts(folder / "sumi-ripple.db") == parts(calm / "sumi-ripple.db")


def test_an_interrupted_crawl_saves_exits_130_and_goes_on_where_it_was(
    served: Served, calm: Path, tmp_path: Path
) -> None:
    config = prepared(tmp_path, served)
    for _ in range(2):
        before = pages_done(tmp_path)
        with started("crawl", config, "--workspace", "workspace", cwd=tmp_path) as process:
            eventually(lambda before=before: pages_done(tmp_path) > before + 5, "some pages more")
            os.kill(process.pid, signal.SIGINT)
            output, _ = process.communicate(timeout=60)
        assert process.returncode == 130, output
        assert rows(tmp_path, "SELECT status FROM runs") == [("interrupted",)]
        run("replay", config, "--workspace", "workspace", "--into", f"at-{before}.db", cwd=tmp_path)
        assert parts(tmp_path / f"at-{before}.db") == parts(tmp_path / "sumi-ripple.db")
    run("crawl", config, "--workspace", "workspace", cwd=tmp_path)
    assert rows(tmp_path, "SELECT id, status FROM runs") == [(1, "completed")]
    assert parts(tmp_path / "sumi-ripple.db") == parts(calm / "sumi-ripple.db")


def test_no_request_leaves_while_paused_and_removing_the_flag_resumes(
    served: Served, calm: Path, tmp_path: Path
) -> None:
    config = prepared(tmp_path, served)
    with started("crawl", config, "--workspace", "workspace", cwd=tmp_path) as process:
        eventually(lambda: pages_done(tmp_path) > 5, "some pages")
        (tmp_path / "workspace" / "pause").touch()
        status = run("status", "--workspace", "workspace", cwd=tmp_path).stdout
        assert "paus" in status

        def is_quiet() -> bool:
            seen = len(served.requests())
            run("status", "--workspace", "workspace", "--json", cwd=tmp_path)  # takes its while
            return len(served.requests()) == seen

        eventually(is_quiet, "silence on the wire")
        assert process.poll() is None
        (tmp_path / "workspace" / "pause").unlink()
        output, _ = process.communicate(timeout=90)
        assert process.returncode == 0, output
    assert parts(tmp_path / "sumi-ripple.db") == parts(calm / "sumi-ripple.db")


def test_a_second_crawl_of_one_workspace_is_refused_with_a_sentence(served: Served, tmp_path: Path) -> None:
    config = prepared(tmp_path, served)
    with started("crawl", config, "--workspace", "workspace", cwd=tmp_path):
        eventually(lambda: pages_done(tmp_path) > 0, "a page")
        refused = run("crawl", config, "--workspace", "workspace", cwd=tmp_path, ok=1)
    assert "already" in refused.stderr and "Traceback" not in refused.stderr


def test_rules_changed_between_stop_and_resume_are_applied_and_shown(served: Served, tmp_path: Path) -> None:
    config = prepared(tmp_path, served)
    with started("crawl", config, "--workspace", "workspace", cwd=tmp_path) as process:
        eventually(lambda: pages_done(tmp_path) > 20, "some pages")
        os.kill(process.pid, signal.SIGTERM)
        process.communicate(timeout=60)
    text = config.read_text() + '\n[[blacklist]]\ndomain = "moss-notes.test"\n'
    config.write_text(text.replace("max-depth = 2", "max-depth = 1"))
    resumed = run("crawl", config, "--workspace", "workspace", cwd=tmp_path)
    assert "max-depth" in resumed.stdout + resumed.stderr
    states = dict(rows(tmp_path, "SELECT url, state FROM pages"))
    assert states["https://moss-notes.test/"] == "blacklisted"
    assert list(tmp_path.glob("sumi-ripple.db.before-*"))
    run("replay", config, "--workspace", "workspace", "--into", "again.db", cwd=tmp_path)
    assert digest(tmp_path / "again.db") == digest(tmp_path / "sumi-ripple.db")


def test_the_map_of_a_replay_can_be_crawled_on_from(served: Served, calm: Path, tmp_path: Path) -> None:
    """Under wider rules: the pages that are still to be fetched are in the frontier, and only those are fetched."""
    config = prepared(tmp_path, served, max_depth=1)
    run("crawl", config, "--workspace", "workspace", cwd=tmp_path)
    shallow = pages_done(tmp_path)
    text = config.read_text().replace("max-depth = 1", "max-depth = 2")
    config.write_text(text.replace('"sumi-ripple.db"', '"deeper.db"'))
    output = run("replay", config, "--workspace", "workspace", "--into", "deeper.db", cwd=tmp_path).stdout
    assert "still to be fetched" in output
    assert rows(tmp_path, "SELECT count(*) FROM frontier", "deeper.db")[0][0] > 0
    seen = len(served.requests())
    run("crawl", config, "--workspace", "workspace", cwd=tmp_path)
    assert rows(tmp_path, "SELECT id, status FROM runs", "deeper.db") == [(1, "completed")]
    assert len(served.requests()) - seen < shallow, "what had been fetched is not asked for again"
    assert parts(tmp_path / "deeper.db") == parts(calm / "sumi-ripple.db")


def unapplied_bytes(folder: Path) -> int:
    positions = spool_positions(folder / "sumi-ripple.db") or {}
    results = open_workspace(folder / "workspace").results
    return sum(results.reader(writer, cursor).unread_bytes() for writer, cursor in positions.items())


def test_a_backup_of_a_crawl_under_load_goes_on_elsewhere_after_a_kill(
    served: Served, ample: Path, tmp_path: Path
) -> None:
    """Issue 19: backup under load, kill, restore elsewhere: same digest, audit clean."""
    first, second, kept = tmp_path / "first", tmp_path / "second", tmp_path / "kept"
    config = prepared(first, served, max_domain_requests=2000)
    with started("crawl", config, "--workspace", "workspace", cwd=first):
        eventually(lambda: pages_done(first) > 30, "some pages")
        (first / "workspace" / "pause.ingest").touch()
        eventually(lambda: unapplied_bytes(first) > 2000, "results that are not in the map")
        said = run("backup", kept, config, "--workspace", "workspace", "--verify", cwd=first).stdout
        assert "Backed up run 1 (running)" in said and "is whole" in said
        assert "of results were not in the map yet" in said
        before = pages_done(first)
    shutil.rmtree(first)
    restored = restore(kept, second)
    found = digest(second / "sumi-ripple.db")
    assert restored.manifest.digest == found
    replay(restored.config, second / "again.db")
    assert digest(second / "again.db") == found, "results and map of a backup are of one moment"
    assert 30 < pages_done(second) <= before < pages_done(ample)
    run("crawl", "demo.toml", "--workspace", "workspace", cwd=second)
    assert rows(second, "SELECT id, status FROM runs") == [(1, "completed")]
    assert parts(second / "sumi-ripple.db") == parts(ample / "sumi-ripple.db")
    assert audit(restored.config).is_clean


def test_a_full_disk_ends_the_crawl_with_a_sentence_and_loses_nothing(
    served: Served, ample: Path, tmp_path: Path
) -> None:
    config = prepared(tmp_path, served, max_domain_requests=2000)
    words = ("crawl", config, "--workspace", "workspace")
    with started(*words, cwd=tmp_path, before=smaller_files(150_000)) as process:
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "nothing is lost" in output and "Traceback" not in output
    run(*words, cwd=tmp_path)
    assert parts(tmp_path / "sumi-ripple.db") == parts(ample / "sumi-ripple.db")


def test_a_fetcher_that_cannot_write_its_results_stops_with_a_sentence_and_acknowledges_nothing(
    served: Served, ample: Path, tmp_path: Path
) -> None:
    config = prepared(tmp_path, served, max_domain_requests=2000)
    where = (config, "--workspace", "workspace")
    with started("schedule", *where, cwd=tmp_path) as scheduler, started("ingest", *where, cwd=tmp_path) as ingest:
        with started("fetch", *where, "--workers", "1", cwd=tmp_path, before=smaller_files(6_000)) as fetcher:
            output, _ = fetcher.communicate(timeout=60)
        assert fetcher.returncode == 1, output
        assert "spool" in output and "Traceback" not in output
        run("fetch", *where, cwd=tmp_path)
        for process in (scheduler, ingest):
            output, _ = process.communicate(timeout=60)
            assert process.returncode == 0, output
    assert parts(tmp_path / "sumi-ripple.db") == parts(ample / "sumi-ripple.db")


def test_machines_that_are_killed_and_cut_off_and_an_engine_that_crashes_end_in_the_map_of_files(
    served: Served, tmp_path: Path
) -> None:
    """`make torture ENGINE=postgresql`, in short: what happens next waits for what happened before."""
    calm = prepared(tmp_path / "calm", served, max_domain_requests=2000)
    calm.write_text(only_quality(calm.read_text(), ("tea-almanac.test",)))
    told: list[str] = []

    def story(terrain: Terrain) -> Iterator[None]:
        """Two machines have a fetcher each, the first has the scheduler and the ingest."""
        while not (held := holders_of_the_first(terrain)):
            yield
        cut_off = next(name for name in ("machine-2", "machine-3") if set(held) & set(terrain.holders_on(name)))
        other = "machine-2" if cut_off == "machine-3" else "machine-3"
        terrain.networks.cut(cut_off)
        told.append("cut off")
        while not (killed := terrain.holders_on(other)):
            yield
        for process in terrain.machines[other]:
            for stage in process.stages():
                kill(stage)
        told.append("killed")
        while not terrain.have_nothing_left(held + killed):
            yield
        told.append("taken over")
        terrain.networks.heal(cut_off)
        terrain.server.crash()
        terrain.server.start()
        told.append("crashed")

    with (
        places(tmp_path) as (networks, authority, certificate),
        started("crawl", calm, "-q", cwd=calm.parent) as undisturbed,
        serve_on(networks, tmp_path / "web") as web,
        own_server(is_durable=False, certificate=certificate, host=networks.host("engine")) as server,
    ):
        terrain = Terrain(tmp_path, web, server, networks, random.Random(1), authority, workers=1, lease=5)
        fetching = ["machine-2", "machine-3"]
        terrain.set_up(fetching=fetching, ingesting=["machine-1"], only=("tea-almanac.test",))
        terrain.crawl(story(terrain))
        output, _ = undisturbed.communicate(timeout=60)
        assert undisturbed.returncode == 0, output
        check(terrain, digest(calm.parent / "sumi-ripple.db"), 0)
    assert told == ["cut off", "killed", "taken over", "crashed"]


def holders_of_the_first(terrain: Terrain) -> list[int]:
    """Who has the domain that the run begins with, and asked it: it will not be done in a moment."""
    rows = terrain.watch.session.execute(
        "SELECT holder FROM gates WHERE domain = 'tea-almanac.test' AND holder IS NOT NULL AND entered_us IS NOT NULL"
    )
    return [number for (number,) in rows]


def test_a_crawl_in_one_process_is_interrupted_and_a_python_call_brings_it_to_the_same_map(
    served: Served, ample: Path, tmp_path: Path
) -> None:
    config = prepared(tmp_path, served, max_domain_requests=2000)
    with started("crawl", config, "--unified", "--workspace", "workspace", cwd=tmp_path) as process:
        eventually(lambda: pages_done(tmp_path) >= 20, "some pages are crawled")
        assert not Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split(), "it is one process"
        sound, answer = config.read_text(), tmp_path / "workspace" / "state" / "reloaded.json"
        for text, word in ((sound.replace("max-depth", "max-depht"), "max-depht"), (sound + MORE_ROOM, "max-backlog")):
            config.write_text(text)
            os.kill(process.pid, signal.SIGHUP)
            eventually(lambda word=word: answer.exists() and word in answer.read_text(), f"the answer names {word}")
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate(timeout=90)
        assert process.returncode == 130, output
        assert "crawler.max-depht: an unknown key" in output and "spool.max-backlog: 100000 → 99999" in output
    assert rows(tmp_path, "SELECT id, status FROM runs") == [(1, "interrupted")]
    call = subprocess.run(
        [sys.executable, "-m", "tests.pipeline.unified_steps", str(config), str(tmp_path / "workspace")],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'crawler' / 'library'}"},
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert call.returncode == 0, call.stderr
    said = json.loads(call.stdout)
    assert said["digest"] == digest(ample / "sumi-ripple.db")
    assert (said["code"], said["run"], said["is_complete"]) == (0, [1, "completed"], True)
    assert said["states"]["processed"] > 90 and "https://tea-almanac.test/brewing/with-snow" in said["gone"]
    assert "https://tea-almanac.test/brewing" in said["linked"]
    run("audit", config, "--workspace", "workspace", cwd=tmp_path)
    run("replay", config, "--workspace", "workspace", "--into", "again.db", cwd=tmp_path)
    assert digest(tmp_path / "again.db") == said["digest"]
