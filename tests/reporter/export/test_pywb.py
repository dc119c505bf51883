"""Exported WARC files in pywb, the archive server: its own index is ours, and it serves pages and revisits.

pywb pins other versions of what we pin, so it has an environment of its own: `make test-warc` makes it in .venv-warc.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import orjson
import pytest

from reporter.export.warc import ExportedWarc
from tests.pipeline.crawling import eventually
from tests.places import ROOT
from tests.reporter.export import test_warc
from tests.reporter.export.test_warc import FIRST, SECOND

PYWB = ROOT / ".venv-warc" / "bin"
pytestmark = pytest.mark.skipif(
    not (PYWB / "wayback").exists(), reason="pywb is not here: make test-warc installs it and runs these tests"
)

config, exported = test_warc.config, test_warc.exported


def pywb(command: str, *words: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [PYWB / command, *map(str, words)], cwd=cwd, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def served(exported: tuple[ExportedWarc, Path], tmp_path: Path) -> Iterator[int]:
    """The port of a pywb with one collection: our file and our index."""
    place = tmp_path / "pywb"
    place.mkdir()
    pywb("wb-manager", "init", "mine", cwd=place)
    shutil.copy(exported[1], place / "collections" / "mine" / "archive")
    shutil.copy(exported[0].files[1], place / "collections" / "mine" / "indexes")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (tmp_path / "pywb.log").open("wb") as log:
        server = subprocess.Popen(
            [PYWB / "wayback", "-b", "127.0.0.1", "-p", str(port), "-d", place], cwd=place, stdout=log, stderr=log
        )
    try:
        eventually(lambda: server.poll() is not None or answers(port), "pywb listens")
        assert server.poll() is None, (tmp_path / "pywb.log").read_text()
        yield port
    finally:
        server.terminate()
        server.wait(timeout=30)


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def page(port: int, stamp: str, url: str) -> tuple[int, bytes, dict[str, str]]:
    """A page as it was at that time, without pywb's own banner and changed links (`id_`)."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", f"/mine/{stamp}id_/{url}")
        answer = connection.getresponse()
        return answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
    finally:
        connection.close()


def test_pywb_makes_the_same_index(exported: tuple[ExportedWarc, Path], tmp_path: Path) -> None:
    theirs = pywb("cdx-indexer", "--cdxj", "--sort", exported[1], cwd=tmp_path).splitlines()
    ours = exported[0].files[1].read_text().splitlines()
    for lines in (ours, theirs):
        lines[:] = [line for line in lines if not line.startswith("!")]
    assert [entry(line) for line in ours] == [entry(line) for line in theirs] and len(ours) == 5


def entry(line: str) -> tuple[str, str, dict[str, str]]:
    key, stamp, fields = line.split(" ", 2)
    return key, stamp, orjson.loads(fields)


def test_pywb_serves_pages_and_the_revisits_of_them_as_they_were(served: int) -> None:
    for stamp, url, body in (
        ("20250101100000", "https://www.a.test/x", FIRST),
        ("20250102100000", "https://www.a.test/x", FIRST),  # a 304: the page is in the record of the day before
        ("20250102100000", "https://www.a.test/y", SECOND),  # sent again, the same
        ("20250102100000", "https://a.test/z", b"<title>three</title>"),
    ):
        status, found, headers = page(served, stamp, url)
        assert (status, found) == (200, body), (stamp, url)
        assert headers["memento-datetime"].startswith(("Wed, 01 Jan 2025", "Thu, 02 Jan 2025"))
        assert not [name for name in headers if "cookie" in name]
    assert page(served, "20250101100000", "https://www.a.test/gone")[0] == 404
