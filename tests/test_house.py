"""The house rules that imports can break (docs/pipeline.md, the layout): who may know whom, and who is pure."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("crawler", "ingest", "reporter")
# The composition root: it alone may reach for the other packages, and only inside its functions.
COMPOSERS = {
    "crawler.cli.crawl_commands",
    "crawler.cli.map_commands",
    "crawler.cli.stage_commands",
    "crawler.supervise.stages",
}
PURE = {
    "crawler.observe.audit_report",
    "crawler.observe.live_text",
    "crawler.supervise.exit_rules",
    "crawler.rules.lists",
    "crawler.model.states",
    "crawler.rules.traps",
    "crawler.schedule.turns",
    "crawler.visit.flow",
    "crawler.visit.pure_scanner",
    "crawler.visit.references",
    "crawler.model.messages",
    "crawler.database.format",
    "crawler.database.ids",
    "ingest.rules.depth",
    "ingest.rules.page_state",
    "reporter.counting",
    "reporter.error_categories",
    "reporter.escape",
    "reporter.explain.facts",
    "reporter.explain.wording",
    "reporter.export.formats",
    "reporter.figures",
    "reporter.summary.markdown",
}
PURE_WITH = {
    "crawler.model.records": {"msgspec"},
    "crawler.pace.decisions": {"msgspec"},
    "crawler.pace.gate_record": {"msgspec"},
    "crawler.model.urls": {"ada_url"},
    "crawler.visit.robots": {"protego"},
    "crawler.visit.html": {"ada_url"},
}
IMPURE = {"os", "socket", "time", "sqlite3", "subprocess", "threading", "multiprocessing", "random", "select", "signal"}
HEAVY = ("rich", "lxml", "requests", "urllib3", "sqlite3", "ssl", "multiprocessing", "parsel", "trustme", "ada_url")


def modules() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


def imports(path: Path, *, is_nested: bool | None = None) -> set[str]:
    """Modules that a file imports: everywhere, only inside functions (True), or only outside of them (False)."""
    tree = ast.parse(path.read_text())
    nested = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    typing_only = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and isinstance(branch.test, ast.Name) and branch.test.id == "TYPE_CHECKING"
        for node in ast.walk(branch)
    }
    found: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in typing_only or (is_nested is not None and (id(node) in nested) is not is_nested):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute here"
            found.add(node.module or "")
            found |= {f"{node.module}.{alias.name}" for alias in node.names if node.module in PACKAGES}
    return found


def package_of(module: str) -> str:
    return module.partition(".")[0]


ALL = list(modules())


@pytest.mark.parametrize(("name", "path"), ALL, ids=[name for name, _ in ALL])
def test_packages_know_only_whom_they_may_know(name: str, path: Path) -> None:
    known = {package_of(module) for module in imports(path)}
    if package_of(name) == "crawler":
        if name in COMPOSERS:
            known = {package_of(module) for module in imports(path, is_nested=False)}
        assert not known & {"ingest", "reporter"}, "crawler imports neither ingest nor reporter"
    if package_of(name) == "ingest":
        assert "reporter" not in known
    if package_of(name) == "reporter":
        assert "ingest" not in known


@pytest.mark.parametrize("name", sorted(PURE | PURE_WITH.keys()))
def test_pure_modules_import_only_pure_things(name: str) -> None:
    path = dict(ALL).get(name)
    assert path is not None, f"{name} has gone: take it off the list"
    for module in imports(path):
        package = package_of(module)
        if package in PACKAGES or package == "orjson" or package in PURE_WITH.get(name, ()):
            continue
        assert package in sys.stdlib_module_names, f"{name} is pure and must not import {module}"
        assert package not in IMPURE, f"{name} is pure and must not import {module}"


def test_no_room_is_called_utils() -> None:
    assert not [name for name, _ in ALL if name.rpartition(".")[2] in ("utils", "util", "helpers", "common", "misc")]


def test_the_command_line_imports_nothing_heavy_before_it_knows_the_command() -> None:
    import subprocess

    code = (
        "import sys\n"
        "sys.argv = ['sumi-ripple', '--help']\n"
        "from crawler.__main__ import main\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        f"print(sorted(set({HEAVY!r}) & sys.modules.keys()), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "Usage: sumi-ripple" in done.stdout
    assert done.stderr.strip() == "[]"
