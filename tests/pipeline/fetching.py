"""Parts for tests of whole fetchers: a terrain on loopback, jobs written by hand, results read back."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from crawler.demo.server import Served
from crawler.demo.sites import Answer, Certificate, response
from crawler.model.records import Job, PageResult, Record, Release, dump, parse
from crawler.model.settings import Config, CrawlerSettings, NetworkSettings, UserAgentSettings
from crawler.model.urls import domain_of, normalize
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Reader, Writer
from crawler.workspace.runs import Run, RunStatus, write_run

ROBOTS = b"User-agent: *\nDisallow: /private\n"


@dataclass
class PlainTerrain:
    """Small pages at every path of its hosts; some paths and some robots.txt answer with an error."""

    hosts: tuple[str, ...]
    delay: float = 0.0
    robots: dict[str, bytes | None] = field(default_factory=dict)  # None: it cannot be read

    @property
    def certificates(self) -> tuple[Certificate, ...]:
        return (Certificate(self.hosts),)

    def answer(self, host: str, method: str, target: str) -> Answer:
        with_body = method != "HEAD"
        if target == "/robots.txt":
            body = self.robots.get(host, ROBOTS)
            if body is None:
                return Answer(response(500, b"", with_body=with_body))
            return Answer(response(200, body, "text/plain", with_body=with_body))
        if target.startswith("/502"):
            return Answer(response(502, b"", with_body=with_body))
        if target.startswith("/503"):
            return Answer(response(503, b"", headers=(("Retry-After", "3"),), with_body=with_body))
        if target.startswith("/429"):
            return Answer(response(429, b"", with_body=with_body))
        page = f'<title>{target}</title><a href="/next{target}">next</a>'.encode()
        return Answer(response(200, page, with_body=with_body), delay=self.delay)


def config_for(served: Served, workspace: Path, crawler: CrawlerSettings, **network: object) -> Config:
    return Config(
        crawler=crawler,
        user_agent=UserAgentSettings(contact_url="https://example.com/bot"),
        network=replace(
            NetworkSettings(ca_bundle=served.ca_path, resolve=(("*", f"127.0.0.1:{served.port}"),)), **network
        ),
        workspace=workspace,
    )


def prepare(config: Config, run: int = 1) -> FileWorkspace:
    workspace = FileWorkspace(config.workspace)
    workspace.prepare()
    write_run(workspace, Run(run, RunStatus.RUNNING))
    return workspace


def release(workspace: FileWorkspace, urls: Iterable[str], run: int = 1) -> list[Job]:
    """Put jobs into the spools as the scheduler would."""
    jobs = [Job(run, key := normalize(url), url, domain_of(key)) for url in urls]
    by_domain: dict[str, list[Job]] = {}
    for job in jobs:
        by_domain.setdefault(job.domain, []).append(job)
    releases = Writer(workspace.layout.releases)
    for turn, (domain, its_jobs) in enumerate(by_domain.items()):
        writer = Writer(workspace.layout.jobs_of(domain))
        writer.append_all(dump(job) for job in its_jobs)
        writer.close()
        releases.append(dump(Release(run, domain, len(its_jobs), turn)))
    releases.close()
    return jobs


def records(workspace: FileWorkspace) -> list[Record]:
    found: list[Record] = []
    for name in workspace.results.writers():
        reader = Reader(workspace.layout.results_of(name))
        found += [parse(line.body) for line in reader]
        reader.close()
    return found


def pages(workspace: FileWorkspace) -> list[PageResult]:
    return [record for record in records(workspace) if isinstance(record, PageResult)]


def start_fetcher(
    config: Config,
    folder: Path,
    index: int = 0,
    workers: int = 1,
    *,
    preexec: Callable[[], None] | None = None,
    capture: bool = False,
) -> subprocess.Popen[bytes]:
    """A fetcher in a process of its own."""
    call = f"from crawler.fetch.fetcher import run_fetcher; sys.exit(run_fetcher(config, {index}, {workers}))"
    return _start(config, folder, call, preexec, capture)


def start_pool(config: Config, folder: Path, workers: int) -> subprocess.Popen[bytes]:
    """A pool of fetchers, as in a terminal."""
    return _start(
        config,
        folder,
        f"from crawler.supervise.fetchers import run_fetchers; sys.exit(run_fetchers(config, {workers}))",
    )


def _start(
    config: Config, folder: Path, call: str, preexec: Callable[[], None] | None = None, capture: bool = False
) -> subprocess.Popen[bytes]:
    settings = folder / "config.pickle"
    settings.write_bytes(pickle.dumps(config))
    code = (
        "import pickle, sys, logging, pathlib\n"
        "if __name__ == '__main__':\n"
        "    logging.basicConfig(level='WARNING')\n"
        f"    config = pickle.loads(pathlib.Path({str(settings)!r}).read_bytes())\n"
        f"    {call}\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code], preexec_fn=preexec, stderr=subprocess.PIPE if capture else None
    )


def wait_for(happened: Callable[[], bool], seconds: float = 30.0) -> None:
    """Return as soon as `happened` is true; fail if that takes longer than `seconds`."""
    until = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > until:
            raise AssertionError("it did not happen in time")
        time.sleep(0.02)


def finish(workspace: FileWorkspace, run: int = 1) -> None:
    """Complete the run, as the scheduler would."""
    write_run(workspace, Run(run, RunStatus.COMPLETED))
