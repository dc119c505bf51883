"""The house rules that a program can check: who may import whom, who is pure, which part stands in which room.

`crawler/__init__.py` states the rules in prose. The tables here are the rules: a new package gets a row, and a new
import that no row allows is a question to ask before it is a row to add.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.places import ROOT

pytestmark = pytest.mark.xdist_group("house")  # every module is parsed once
TOP = ("crawler", "ingest", "reporter")

# Package → the packages that it may import, itself aside.
ALLOWED: dict[str, set[str]] = {
    "crawler": {"crawler.cli"},
    "crawler.model": set(),
    "crawler.rules": {"crawler.model"},
    "crawler.pace": {"crawler.model"},
    "crawler.resilience": {"crawler.model"},
    "crawler.visit": {"crawler.model"},
    "crawler.store": {"crawler.model"},
    "crawler.engine": {"crawler.model"},
    "crawler.workspace": {"crawler.model", "crawler.pace", "crawler.resilience"},
    "crawler.workspace.files": {"crawler.model", "crawler.pace", "crawler.workspace"},
    "crawler.workspace.postgres": {
        *("crawler.model", "crawler.pace", "crawler.engine", "crawler.workspace", "crawler.workspace.files"),
    },
    "crawler.database": {"crawler.model", "crawler.workspace", "crawler.engine"},
    "crawler.config": {
        *("crawler.model", "crawler.rules", "crawler.visit", "crawler.workspace", "crawler.database"),
        "crawler.engine",
    },
    "crawler.net": {"crawler.model", "crawler.visit"},
    "crawler.schedule": {
        *("crawler.model", "crawler.rules", "crawler.resilience", "crawler.workspace", "crawler.database"),
        "crawler.pace",
    },
    "crawler.fetch": {
        *("crawler.model", "crawler.rules", "crawler.pace", "crawler.visit", "crawler.net", "crawler.workspace"),
        *("crawler.resilience", "crawler.store"),
    },
    "crawler.observe": {
        "crawler.pace",
        *("crawler.model", "crawler.rules", "crawler.visit", "crawler.config", "crawler.workspace", "crawler.database"),
        "crawler.resilience",
    },
    "crawler.hooks": {"crawler.model", "crawler.net", "crawler.workspace"},
    "crawler.supervise": {
        *(
            "crawler.hooks",
            "crawler.model",
            "crawler.pace",
            "crawler.config",
            "crawler.net",
            "crawler.observe",
            "crawler.resilience",
            "crawler.workspace",
            "crawler.database",
        ),
    },
    "crawler.keep": {
        *("crawler.model", "crawler.config", "crawler.visit", "crawler.store", "crawler.workspace", "crawler.database"),
        "crawler.rules",
    },
    "crawler.demo": {"crawler.workspace"},
    "crawler.library.sumi_ripple": {"crawler.cli", "crawler.config", "crawler.database", "crawler.model"},
    "crawler.cli": {"crawler.model"},
    "ingest.rules": {"crawler.model", "crawler.rules", "crawler.database"},
    "ingest.memory": {"crawler.model", "crawler.rules", "crawler.workspace", "ingest.rules"},
    "ingest.writing": {
        *("crawler.model", "crawler.rules", "crawler.workspace", "crawler.database", "ingest.rules", "ingest.memory"),
    },
    "ingest.sqlite": {"crawler.model", "crawler.workspace", "crawler.database", "ingest.writing"},
    "ingest.postgres": {"crawler.model", "crawler.database", "crawler.engine", "ingest.writing"},
    "ingest.upkeep": {"crawler.model", "crawler.workspace"},
    "ingest": {
        *("crawler.model", "crawler.rules", "crawler.pace", "crawler.resilience", "crawler.workspace"),
        *("crawler.database", "crawler.store", "ingest.rules", "ingest.memory", "ingest.writing", "ingest.upkeep"),
    },
    "reporter.queries": {"crawler.model", "crawler.database"},
    "reporter": {"crawler.model", "crawler.database", "reporter.queries"},
    "reporter.summary": {
        *("crawler.model", "crawler.engine", "crawler.workspace", "crawler.database", "reporter", "reporter.queries"),
    },
    "reporter.diff": {"crawler.model", "crawler.database", "reporter", "reporter.queries"},
    "reporter.explain": {
        *("crawler.model", "crawler.rules", "crawler.visit", "crawler.config", "crawler.net", "crawler.database"),
        *("reporter", "reporter.queries"),
    },
    "reporter.map": {
        *("crawler.model", "crawler.rules", "crawler.workspace", "crawler.database", "reporter", "reporter.queries"),
    },
    "reporter.atlas": {
        *("crawler.model", "crawler.rules", "crawler.database", "reporter.map", "reporter.explain", "reporter.queries"),
    },
    "reporter.metrics": {
        *("crawler.model", "crawler.observe", "crawler.workspace", "reporter.queries"),
    },
    "reporter.web": {
        "reporter.metrics",
        *("crawler.model", "crawler.rules", "crawler.config", "crawler.observe", "crawler.workspace"),
        *("crawler.database", "reporter", "reporter.queries", "reporter.diff", "reporter.explain"),
        *("reporter.export", "reporter.map", "reporter.atlas", "crawler.store", "crawler.visit"),
        *("crawler.hooks", "crawler.keep", "crawler.pace"),
    },
    "reporter.export": {
        *("crawler.model", "crawler.rules", "crawler.config", "crawler.store", "crawler.workspace", "crawler.database"),
        *("reporter", "reporter.queries"),
    },
}
# Composition roots: what they start, they import inside of functions, once it is known what is to be started.
COMPOSES: dict[str, set[str]] = {
    "crawler.cli": {*ALLOWED},
    "crawler.supervise": {"crawler.schedule", "crawler.fetch", "ingest"},
    "crawler.workspace": {"crawler.workspace.files", "crawler.workspace.postgres", "crawler.engine"},
    "ingest.writing": {"ingest.sqlite", "ingest.postgres"},
    "ingest": {"ingest.postgres"},
}

# Modules that say PURE in their docstrings, all of them and no others: no clock, no files, no network, no chance.
PURE_PACKAGES = (
    "crawler.model",
    "crawler.rules",
    "crawler.pace",
    "crawler.resilience",
    "crawler.visit",
    "ingest.rules",
)
PURE_MODULES = {
    "crawler.config.checks",
    "crawler.config.describe",
    "crawler.config.list_edit",
    "crawler.config.estimate",
    "crawler.config.template",
    "crawler.config.warnings",
    "crawler.database.dialect",
    "crawler.database.engine_functions",
    "crawler.database.format",
    "crawler.database.ids",
    "crawler.engine.advice",
    "crawler.engine.place",
    "crawler.demo.failing_sites",
    "crawler.demo.forgetful_sites",
    "crawler.demo.masked_sites",
    "crawler.demo.sites",
    "crawler.demo.terrain",
    "crawler.hooks.hook_message",
    "crawler.net.addresses",
    "crawler.net.codings",
    "crawler.net.http1",
    "crawler.observe.audit_report",
    "crawler.observe.left_words",
    "crawler.observe.live_text",
    "crawler.schedule.domain_queues",
    "crawler.schedule.turns",
    "crawler.supervise.exit_rules",
    "crawler.workspace.bookmarks",
    "crawler.workspace.files.layout",
    "crawler.workspace.log",
    "crawler.workspace.seals",
    "reporter.atlas.community_level",
    "reporter.atlas.run_difference",
    "reporter.candidate_views",
    "reporter.counting",
    "reporter.diff.diff_views",
    "reporter.diff.run_changes",
    "reporter.error_categories",
    "reporter.escape",
    "reporter.explain.domain_facts",
    "reporter.explain.facts",
    "reporter.explain.turn",
    "reporter.explain.url_check",
    "reporter.explain.wording",
    "reporter.export.formats",
    "reporter.export.warc_records",
    "reporter.figures",
    "reporter.guess_ends",
    "reporter.near_duplicates",
    "reporter.map.communities",
    "reporter.map.kept_places",
    "reporter.map.placement",
    "reporter.readable_text",
    "reporter.summary.ending",
    "reporter.summary.markdown",
    "reporter.verdict",
    "reporter.web.problems",
}
IMPURE = {
    *("os", "socket", "ssl", "select", "selectors", "time", "random", "secrets", "uuid", "sqlite3", "shutil"),
    *(
        "subprocess",
        "threading",
        "multiprocessing",
        "concurrent",
        "asyncio",
        "signal",
        "resource",
        "tempfile",
        "logging",
    ),
}
# Pure but for one thing: `scanner` reads an environment variable at its import, which implementation to use.
EXCEPTIONS = {"crawler.visit.scanner": {"os"}}
# Third-party parts that compute and do nothing else.
PURE_PARTS = {
    *("ada_url", "brotli", "backports", "compression", "lxml", "msgspec", "orjson", "parsel", "publicsuffixlist"),
    *("re2", "tomli", "tomlkit", "webencodings"),
}

# A part → the only packages that import it.
ROOMS: dict[str, tuple[str, ...]] = {
    "sqlite3": ("crawler.database", "ingest.sqlite", "reporter.queries"),
    "fcntl": ("crawler.workspace.files",),
    "filelock": ("crawler.workspace.files",),
    "socket": ("crawler.net", "crawler.demo"),
    "ssl": ("crawler.net", "crawler.demo"),
    "greenlet": ("crawler.net",),
    "pycares": ("crawler.net",),
    "lxml": ("crawler.visit",),
    "re2": ("crawler.rules",),
    "parsel": ("crawler.visit",),
    "urllib3": ("crawler.hooks",),
    "requests": ("crawler.hooks",),
    "psycopg": ("crawler.engine", "crawler.workspace.postgres", "crawler.database"),
    "redis": (),
    "tomlkit": ("crawler.config",),
    "typer": ("crawler.cli",),
    "trustme": ("crawler.demo",),
    "multiprocessing": ("crawler.supervise", "crawler.demo"),
    "prometheus_client": ("reporter.metrics",),
    "asyncio": ("reporter.web",),
    "starlette": ("reporter.web",),
    "uvicorn": ("reporter.web",),
    "sse_starlette": ("reporter.web",),
    "limits": ("reporter.web",),
    "argon2": ("reporter.web",),
}
SQL_ROOMS = (
    "crawler.database",
    "crawler.engine",
    "crawler.workspace.postgres",
    "ingest.sqlite",
    "ingest.postgres",
    "ingest.writing",
    "reporter.queries",
)
SQL = re.compile(
    r"\b(SELECT\b.*\bFROM|INSERT\s+(OR \w+ )?INTO|UPDATE\b.*\bSET|DELETE\s+FROM|CREATE\s+(TABLE|INDEX)|PRAGMA)\b"
)
HEAVY = (
    "rich",
    "lxml",
    "requests",
    "urllib3",
    "sqlite3",
    "ssl",
    "multiprocessing",
    "parsel",
    "trustme",
    "ada_url",
    "psycopg",
    *("starlette", "uvicorn", "limits", "argon2"),
)


def _modules() -> Iterator[tuple[str, Path]]:
    for top in TOP:
        for path in sorted((ROOT / top).rglob("*.py")):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            yield name.removesuffix(".__init__"), path


MODULES = dict(_modules())
PACKAGES = {name for name, path in MODULES.items() if path.name == "__init__.py"}


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text())


def package_of(module: str) -> str:
    """The innermost package that a module is in, or is."""
    while module not in PACKAGES:
        module = module.rpartition(".")[0]
    return module


@cache
def imports(name: str, *, is_nested: bool | None = None) -> frozenset[str]:
    """Modules that a module imports: all, only inside functions (True), or only outside of them (False)."""
    tree = tree_of(name)
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
            assert node.level == 0 and node.module, f"{name}: imports are absolute here"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                found.add(full if full in MODULES else node.module)
    return frozenset(found)


def project_packages(name: str, *, is_nested: bool | None = None) -> set[str]:
    modules = {module for module in imports(name, is_nested=is_nested) if module.partition(".")[0] in TOP}
    return {package_of(module) for module in modules} - {package_of(name)}


def is_in(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_imports_only_packages_that_its_row_allows(name: str) -> None:
    package = package_of(name)
    assert package in ALLOWED, f"{package} is a new package: give it a row"
    above = project_packages(name, is_nested=False) - ALLOWED[package]
    inside = project_packages(name, is_nested=True) - ALLOWED[package] - COMPOSES.get(package, set())
    if name == "crawler.__main__":
        inside -= {"crawler.cli"}
    assert not above, f"{name} imports {sorted(above)}"
    assert not inside, f"{name} imports {sorted(inside)} inside of functions"


def test_the_packages_depend_on_each_other_in_one_direction() -> None:
    TopologicalSorter({package: allowed for package, allowed in ALLOWED.items() if package != "crawler"}).prepare()


def test_every_row_is_a_package_and_allows_no_import_that_nobody_makes() -> None:
    made: dict[str, set[str]] = {}
    for name in MODULES:
        made.setdefault(package_of(name), set()).update(project_packages(name))
    assert ALLOWED.keys() == PACKAGES
    idle = {package: allowed - made[package] for package, allowed in ALLOWED.items() if allowed - made[package]}
    assert not idle, "take these off the table"


def is_listed_as_pure(name: str) -> bool:
    return name in PURE_MODULES or is_in(name, PURE_PACKAGES)


@pytest.mark.parametrize("name", MODULES)
def test_a_module_says_that_it_is_pure_exactly_if_it_is_listed(name: str) -> None:
    says = (ast.get_docstring(tree_of(name)) or "").startswith("PURE.")
    assert says == is_listed_as_pure(name), f"{name}: the docstring and the list disagree"


@pytest.mark.parametrize("name", [name for name in MODULES if is_listed_as_pure(name)])
def test_a_pure_module_imports_only_pure_things(name: str) -> None:
    """With every project module that it imports pure as well, it is pure through and through."""
    for module in imports(name):
        part = module.partition(".")[0]
        if part in TOP:
            assert is_listed_as_pure(module), f"{name} is pure and imports {module}, which is not"
        else:
            allowed = PURE_PARTS | EXCEPTIONS.get(name, set()) | (sys.stdlib_module_names - IMPURE)
            assert part in allowed, f"{name} is pure and imports {module}"


@pytest.mark.parametrize("part", ROOMS)
def test_a_part_is_imported_only_in_its_rooms(part: str) -> None:
    users = [name for name in MODULES if any(module.partition(".")[0] == part for module in imports(name))]
    assert [name for name in users if not is_in(name, ROOMS[part])] == []


@pytest.mark.parametrize("name", [name for name in MODULES if not is_in(name, SQL_ROOMS)])
def test_sql_stands_only_in_its_rooms(name: str) -> None:
    texts = [node.value for node in ast.walk(tree_of(name)) if isinstance(node, ast.Constant)]
    assert [text for text in texts if isinstance(text, str) and SQL.search(text)] == []


def test_no_module_name_is_used_twice() -> None:
    seen: dict[str, str] = {}
    for name in MODULES:
        leaf = name.rpartition(".")[2]
        if name in PACKAGES or leaf == "__main__":
            continue
        assert leaf not in seen, f"{name} and {seen[leaf]}"
        seen[leaf] = name


def test_no_room_is_called_utils() -> None:
    assert not [name for name in MODULES if name.rpartition(".")[2] in ("utils", "util", "helpers", "common", "misc")]


@pytest.mark.parametrize("name", sorted(PACKAGES))
def test_every_package_tells_its_part_of_the_journey(name: str) -> None:
    assert ast.get_docstring(tree_of(name))


def test_tests_mirror_the_packages() -> None:
    """A test file is found by its module's name; what is about no single module says so in its own place."""
    aside = {"tests.pipeline", "tests.torture", "tests.benchmarks", "tests.fuzz", "tests"}
    for path in (ROOT / "tests").rglob("test_*.py"):
        place = ".".join(path.parent.relative_to(ROOT).parts)
        if place not in aside:
            assert place.removeprefix("tests.") in PACKAGES, f"{path}: there is no such package"


def test_the_command_line_imports_nothing_heavy_before_it_knows_the_command() -> None:
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
