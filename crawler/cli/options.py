"""Arguments and options that commands share, their completion, and the first steps of most commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from crawler.model.settings import Config


def complete_config(incomplete: str) -> list[str]:
    """TOML files and folders whose names start like this."""
    folder, _, start = incomplete.rpartition("/")
    base = Path(folder + "/") if folder or incomplete.startswith("/") else Path()
    found = []
    try:
        for path in sorted(base.iterdir()):
            if path.name.startswith(start) and not (path.name.startswith(".") and not start.startswith(".")):
                text = f"{folder}/{path.name}" if "/" in incomplete else path.name
                if path.is_dir():
                    found.append(text + "/")
                elif path.suffix == ".toml":
                    found.append(text)
    except OSError:
        pass
    return found


def complete_stage_or_config(incomplete: str) -> list[str]:
    from crawler.workspace.door import STAGES

    return [stage for stage in STAGES if stage.startswith(incomplete)] + complete_config(incomplete)


ConfigArgument = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The config file.", autocompletion=complete_config, show_default=False)
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace",
        metavar="DIR",
        help="The folder for spools and state. [default: workspace, beside the config file]",
        show_default=False,
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        max=64,
        help="Number of fetcher processes, 1 to 64. [default: one a core, 2 to 8]",
        show_default=False,
    ),
]
VerboseOption = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="Log each step; -vv logs more.", show_default=False)
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Show errors only.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print CSV.")]


# -- the first steps of most commands -------------------------------------------------------------------------


def load_config(path: Path, workspace: Path | None = None, workers: int | None = None) -> Config:
    from crawler.config.load import load

    return load(path, workspace=workspace, workers=workers)


def default_workspace(root: Path) -> Path:
    """The workspace meant by a command that names none: `root`, or the demo's workspace in it.

    The demo's, if a demo is running and no crawl, or if only the demo was ever crawled.
    """
    from crawler.config.last_used import engine_source
    from crawler.workspace.opening import open_workspace
    from crawler.workspace.runs import read_run

    if engine_source(root) is not None:
        return root
    workspace, demo = open_workspace(root), open_workspace(root / "demo")
    if workspace.is_role_taken("supervisor"):
        return root
    is_only_one = read_run(workspace) is None and read_run(demo) is not None
    return root / "demo" if is_only_one or demo.is_role_taken("supervisor") else root


def show(text: str, *, err: bool = False) -> None:
    """Print text for people: broken between words where a terminal is narrower, as it is in a pipe."""
    from crawler.observe.wrapping import fitted, terminal_width

    stream = sys.stderr if err else sys.stdout
    typer.echo(fitted(text, terminal_width(stream)), nl=not text.endswith("\n"), err=err)


def log_to_stderr(verbose: int, quiet: bool) -> int:
    """Start to log; returns the log level."""
    from crawler.observe.logs import configure, level_of

    level = level_of(verbose, quiet)
    configure(level)
    return level


def version() -> str:
    from importlib import metadata

    try:
        return metadata.version("sumi-ripple")
    except metadata.PackageNotFoundError:
        return "1.0.0"
