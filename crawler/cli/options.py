"""How the command line feels: its default command, its help, its completion, and what its commands share."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from crawler.model.settings import Config

DEFAULT_COMMAND = "crawl"
_GROUP_OPTIONS = ("-h", "--help", "-V", "--version", "--install-completion", "--show-completion")


class DefaultToCrawl(TyperGroup):
    """`sumi-ripple my.toml …` means `sumi-ripple crawl my.toml …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_default(args, self.commands))


def with_default(args: list[str], commands: Any) -> list[str]:
    """The arguments with the default command put in front, where no command is named."""
    words = [word for word in args if not word.startswith("-")]
    if args and args[0] in _GROUP_OPTIONS:
        return args
    if not words:
        return [DEFAULT_COMMAND, *args] if args else args
    first = words[0]
    if first in commands or (first == args[0] and not looks_like_a_file(first)):
        return args  # a command, or a misspelt one: the group knows what to say
    return [DEFAULT_COMMAND, *args]


def looks_like_a_file(word: str) -> bool:
    return "." in word or "/" in word or Path(word).exists()


class PlainCommand(TyperCommand):
    """A command whose help says `CONFIG [OPTIONS]` and leaves the names of Python's types out."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [param for param in self.get_params(ctx) if param.param_type_name == "argument"]
        names = [str(param.metavar or param.name) for param in arguments]
        pieces = [
            name if param.required or name.startswith("[") else f"[{name}]"
            for param, name in zip(arguments, names, strict=True)
        ]
        return [*pieces, "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        found: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None:
                found[param.param_type_name].append((re.sub(r" <.*>$", "", record[0]), record[1]))
        for kind, records in found.items():
            if records:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(records)


# -- shared arguments and options -----------------------------------------------------------------------------


def complete_config(incomplete: str) -> list[str]:
    """TOML files and folders that begin like this."""
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
    Path, typer.Argument(metavar="CONFIG", help="The TOML config.", autocompletion=complete_config, show_default=False)
]
WorkspaceOption = Annotated[
    Path | None,
    typer.Option(
        "--workspace", metavar="DIR", help="Where spools and state lie. [default: ./workspace]", show_default=False
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers",
        metavar="N",
        min=1,
        max=64,
        help="Fetcher processes. [default: as many as fit the cores]",
        show_default=False,
    ),
]
VerboseOption = Annotated[
    int, typer.Option("-v", "--verbose", count=True, help="Log what happens; -vv logs more.", show_default=False)
]
QuietOption = Annotated[bool, typer.Option("-q", "--quiet", help="Only errors.")]
JsonOption = Annotated[bool, typer.Option("--json", help="As JSON, for programs.")]


# -- how most commands begin ----------------------------------------------------------------------------------


def load_config(path: Path, workspace: Path | None = None, workers: int | None = None) -> Config:
    from crawler.config.load import load

    return load(path, workspace=workspace, workers=workers)


def log_to_stderr(verbose: int, quiet: bool) -> int:
    """Begin to log; the level that these options mean."""
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
