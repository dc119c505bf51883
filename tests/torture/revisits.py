"""The demo terrain crawled four times in a row under kills: visited, visited again unchanged, and again with changes;
in the fourth run almost no page is due, and the others are carried into it.

After each run the map must be that of calm crawls, with and without the store, and the very pages must have been
confirmed by a 304 that the calm crawl had confirmed. Most pages show enough to be noted beside their files. In every
second round stored pages are packed all the while, by a process that is often killed too; then they are read again. In
the end every page that a result names is there, whole, and nothing else is.
"""

from __future__ import annotations

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from crawler.config.load import load
from crawler.database.digest import digest
from crawler.demo.demo_config import write_demo_config
from crawler.demo.server import Served, serve_terrain
from crawler.demo.sites import Answer, Certificate, Page, SiteTerrain
from crawler.demo.terrain import demo_terrain
from crawler.keep.stored_pages import verify
from crawler.model.records import PageResult
from crawler.observe.audit import audit
from crawler.store.file_store import open_store
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.reading import read_records
from tests.ingest.terrains import read_database
from tests.torture.run import DEEDS, LIMITS, ROOT, Crawl, check_logs, endure, lay_tokens, results_twice, too_close

RUNS = 4  # the web is unchanged in the second run, and changed in the third, which plans the fourth
CHANGES = 3
CHANGED = (("tea-almanac.test", "/brewing"), ("tea-almanac.test", "/seasons"), ("chart-room.test", "/maps/"))
WORDY = "There is more to be told about it than anybody wants to hear. " * 20
FEWEST_NOTES = 40
NEW = "https://tea-almanac.test/new"  # one more page, which the changed ones link to


@dataclass
class ChangingTerrain:
    """The demo, and the demo with some pages changed while the flag file is there."""

    flag: Path
    before: SiteTerrain = field(default_factory=lambda: wordy_terrain(demo_terrain()))
    after: SiteTerrain = field(default_factory=lambda: changed_terrain(wordy_terrain(demo_terrain())))

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        return self.before.certificates

    def answer(self, host: str, method: str, target: str) -> Answer:
        return (self.after if self.flag.exists() else self.before).answer(host, method, target)


def wordy_terrain(terrain: SiteTerrain) -> SiteTerrain:
    """The same with a long paragraph on every page that has one, so that no page is too thin to be noted."""
    sites = [
        replace(
            site, pages=tuple(replace(page, text=(*page.text, WORDY)) if page.text else page for page in site.pages)
        )
        for site in terrain.sites
    ]
    return SiteTerrain(tuple(sites))


def changed_terrain(terrain: SiteTerrain) -> SiteTerrain:
    """The same with each of CHANGED changed, and one page more."""
    sites = []
    for site in terrain.sites:
        pages = [_changed(page) if (site.host, page.path) in CHANGED else page for page in site.pages]
        if site.host == "tea-almanac.test":
            pages.append(Page("/new", "New", ("There was nothing here.",)))
        sites.append(replace(site, pages=tuple(pages)))
    return SiteTerrain(tuple(sites))


def _changed(page: Page) -> Page:
    return replace(page, text=(*page.text, "Written since."), links=(*page.links, (NEW, "New")))


class Packer:
    """`store pack`, again and again, beside a crawl. It is killed as often as it comes to its end."""

    def __init__(self, config: Path, chance: random.Random, *, is_at_work: bool) -> None:
        self._config = config
        self._is_at_work = is_at_work
        self._chance = chance
        self._process: subprocess.Popen[bytes] | None = None
        self.done = self.killed = 0

    def turn(self) -> None:
        """End the packing that is under way, and begin another, if they are to be packed meanwhile."""
        if self._is_at_work:
            self.pack()

    def pack(self) -> None:
        self.end(is_killed=self._chance.random() < 0.5)
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "crawler", "store", "pack", str(self._config)),
                *("--older-than", "0", "--workspace", str(self._config.parent)),
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=(self._config.parent / "pack-stderr.txt").open("ab"),
        )

    def end(self, *, is_killed: bool = False) -> None:
        if self._process is None:
            return
        if is_killed:
            self._process.kill()
        code = self._process.wait(60)
        said = (self._config.parent / "pack-stderr.txt").read_text()[-2000:]
        assert code == 0 or (is_killed and code == -signal.SIGKILL), f"store pack ended with {code}: {said}"
        self.killed += code != 0
        self.done += code == 0
        self._process = None


@dataclass(frozen=True)
class Found:
    """What a run left behind: its digest, and the pages that a 304 confirmed."""

    digest: str
    confirmed: frozenset[str]


def torture_revisits(
    rounds: int, seed: int, *, inside: int = 4, outside: int = 4, say: Callable[[str], None] = print
) -> int:
    """All rounds; returns the number of deaths. Raises AssertionError at the first map that differs."""
    chance = random.Random(seed)
    deaths: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="torture-") as name:
        base = Path(name)
        flag = base / "changed"
        with serve_terrain(ChangingTerrain(flag), base / "server", log=True) as served:
            _crawl(write_demo_config(base / "warm-up", served, LIMITS), 1)
            flag.unlink(missing_ok=True)
            calm = _calm(base / "calm", served, flag, say)
            plain = _calm(base / "plain", served, flag, lambda line: None, keeps_pages=False)
            assert [run.digest for run in plain] == [run.digest for run in calm], "the store changes the map"
            for number in range(1, rounds + 1):
                folder = base / f"round-{number}"
                flag.unlink(missing_ok=True)
                config = write_demo_config(folder, served, LIMITS)
                packer = Packer(config, chance, is_at_work=number % 2 == 0)
                before = len(served.requests())
                died: Counter[str] = Counter()
                for run in range(1, RUNS + 1):
                    _prepare(config, flag, run)
                    died += _run_under_torture(config, run, chance, inside, outside, packer)
                    found = _found(folder, run)
                    assert found.digest == calm[run - 1].digest, (
                        f"seed {seed}, round {number}, run {run}: another map\n"
                        + _differences(base / "calm" / f"map-{run}.db", folder / "sumi-ripple.db")
                    )
                    assert found.confirmed == calm[run - 1].confirmed, found.confirmed ^ calm[run - 1].confirmed
                    check_logs(folder, run)
                notes = _notes(config)
                packer.pack()
                packer.end()
                assert number % 2 == 0 or notes > FEWEST_NOTES, f"{notes} pages are noted"
                _check(folder, served, before)
                deaths += died
                again = results_twice(FileWorkspace(folder))
                say(
                    f"round {number}: {sum(died.values())} deaths ({dict(died)}), {packer.done} packings and"
                    f" {packer.killed} killed, {notes} notes, {again} results twice, the same maps and the same 304s"
                )
                assert again <= sum(died.values()) * LIMITS.max_concurrent_pages_open
    say(f"{rounds} rounds, {sum(deaths.values())} deaths {dict(deaths)}: every map the same")
    return sum(deaths.values())


def _calm(
    folder: Path, served: Served, flag: Path, say: Callable[[str], None], *, keeps_pages: bool = True
) -> list[Found]:
    """All runs, undisturbed. The server's own log must show what the results say."""
    flag.unlink(missing_ok=True)
    found = []
    config = write_demo_config(folder, served, LIMITS)
    if not keeps_pages:
        config.write_text(config.read_text().replace("html = true", "html = false"))
    for run in range(1, RUNS + 1):
        _prepare(config, flag, run)
        before = len(served.requests())
        _crawl(config, run)
        shutil.copy(folder / "sumi-ripple.db", folder / f"map-{run}.db")
        found.append(_found(folder, run))
        seen = Counter(request.status for request in served.requests()[before:])
        say(f"calm run {run}: {found[-1].digest[:16]}…, {len(found[-1].confirmed)} pages confirmed, {dict(seen)}")
        assert seen[304] == len(found[-1].confirmed), "the server sent another number of 304s"
    sent = {f"https://{host}{path.rstrip('/')}" for host, path in CHANGED} if keeps_pages else set()
    assert found[1].confirmed - found[2].confirmed == sent, "the changed pages were sent, and no others"
    assert not keeps_pages or (len(found[1].confirmed) > 50 and not found[3].confirmed)
    return found


def _prepare(config: Path, flag: Path, run: int) -> None:
    if run == CHANGES:
        flag.touch()
        config.write_text(config.read_text().replace("[store]", '[revisit]\nschedule = "30d"\n\n[store]'))


def _crawl(config: Path, run: int) -> None:
    tokens = config.parent / f"tokens-{run}"
    tokens.mkdir()
    crawl = Crawl(config, tokens)
    endure(crawl, random.Random(0), 0)
    assert crawl.starts == 1


def _run_under_torture(
    config: Path, run: int, chance: random.Random, inside: int, outside: int, packer: Packer
) -> Counter[str]:
    tokens = config.parent / f"tokens-{run}"
    lay_tokens(tokens, chance, inside, DEEDS)
    laid = len(list(tokens.iterdir()))
    crawl = Crawl(config, tokens)
    endure(crawl, chance, outside, before_a_death=packer.turn, is_over=lambda: _completed(config.parent) >= run)
    crawl.deaths["inside"] = laid - len(list(tokens.iterdir()))
    return crawl.deaths


def _completed(folder: Path) -> int:
    """The number of completed runs, as the map knows them."""
    try:
        with sqlite3.connect(f"file:{folder / 'sumi-ripple.db'}?mode=ro", uri=True) as db:
            return int(db.execute("SELECT count(*) FROM runs WHERE status = 'completed'").fetchone()[0])
    except sqlite3.Error:
        return 0


def _found(folder: Path, run: int) -> Found:
    read_database(folder / "sumi-ripple.db")  # does it agree with itself? Sums, least depths, ends of links
    logs = FileWorkspace(folder).results
    results = [result for writer in logs.writers() for result, _ in read_records(logs.reader(writer), PageResult)]
    confirmed = frozenset(result.key for result in results if result.run == run and result.is_confirmed)
    return Found(digest(folder / "sumi-ripple.db"), confirmed)


def _differences(calm: Path, other: Path) -> str:
    """The pages that two maps tell otherwise."""
    columns = "url, state, status_code, title, error_message"
    with sqlite3.connect(calm) as db:
        db.execute("ATTACH ? AS other", (str(other),))
        rows = db.execute(
            f"SELECT 'calm', * FROM (SELECT {columns} FROM pages EXCEPT SELECT {columns} FROM other.pages) UNION ALL"
            f" SELECT 'here', * FROM (SELECT {columns} FROM other.pages EXCEPT SELECT {columns} FROM pages)"
        )
        return "\n".join(map(str, rows.fetchmany(20)))


def _notes(config: Path) -> int:
    """Pages that a 304 would not read again."""
    store = open_store(load(config, workspace=config.parent))
    return sum(bool(store.note_of(digest)) for digest in store.hashes())


def _check(folder: Path, served: Served, since: int) -> None:
    """Every stored page is there and whole, the ledgers are in order, and no requests were too close together."""
    config = load(folder / "demo.toml", workspace=folder)
    found = verify(config)
    assert found.is_sound, f"damaged {found.damaged}, missing {found.missing}, strange {found.strangers}"
    assert found.named == found.blobs > 60, f"{found.named} named, {found.blobs} there"
    assert list(open_store(config).loose_hashes()) == [], "the last packing left files"
    report = audit(config)
    assert report.is_clean, "\n".join(report.lines())
    assert not (close := too_close(served, since)), close
