"""The print of the code that reads pages covers all of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from crawler.fetch import reading_code
from crawler.fetch.reading_code import MODULES, print_of_reading
from tests.test_house import MODULES as ALL
from tests.test_house import ROOT, imports


def test_every_module_that_reading_a_page_comes_to_is_in_the_print() -> None:
    found, waiting = set[str](), ["crawler.visit.html"]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [each for each in imports(name) if each in ALL and each.rpartition(".")[2] != "__init__"]
    packages = {name for name in found if name in {"crawler", "crawler.model", "crawler.visit"}}
    assert found - packages | {"crawler.visit.reading_note", "crawler.visit.validation"} == set(MODULES)


def test_another_file_gives_another_print(monkeypatch: pytest.MonkeyPatch) -> None:
    before = print_of_reading()
    assert before and before == print_of_reading()
    content = reading_code._content
    changed = lambda path: content(path) + (b"#" if str(path).endswith("simhash.py") else b"")  # noqa: E731
    monkeypatch.setattr(reading_code, "_content", changed)
    assert print_of_reading() != before


def test_without_files_there_is_no_print(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(reading_code, "_content", lambda path: (tmp_path / "none").read_bytes())
    assert print_of_reading() == b""


def test_the_print_is_that_of_the_code_in_memory_whatever_is_installed_over_it(tmp_path: Path) -> None:
    """The fork server imports it once; a fetcher that is started an hour later has that code."""
    shutil.copytree(ROOT / "crawler", tmp_path / "crawler", ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "from pathlib import Path; from crawler.fetch import domain_worker, reading_code as code;"
        "from crawler.visit import simhash; path = Path(simhash.__file__); before = code.print_of_reading();"
        "path.write_bytes(path.read_bytes() + b'#'); assert path.is_relative_to(Path.cwd());"
        "assert domain_worker.READING_CODE == before != code.print_of_reading()"
    )
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, timeout=60)
