"""The default command, and the layout of the help."""

from __future__ import annotations

import re
from collections.abc import Container
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

DEFAULT_COMMAND = "crawl"
_GROUP_OPTIONS = ("-h", "--help", "-V", "--version", "--install-completion", "--show-completion")
_TYPE_NAME = re.compile(r" <.*>$")
_RANGE = re.compile(r"\s*\[(\d+<=)?x[<>]=\d+\]")  # the help texts say it in words


class DefaultToCrawl(TyperGroup):
    """`sumi-ripple my.toml …` means `sumi-ripple crawl my.toml …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return super().parse_args(ctx, with_default(args, self.commands))


def with_default(args: list[str], commands: Container[str]) -> list[str]:
    """The arguments, with the default command in front if they name no command."""
    words = [word for word in args if not word.startswith("-")]
    if args and args[0] in _GROUP_OPTIONS:
        return args
    if not words:
        return [DEFAULT_COMMAND, *args] if args else args
    first = words[0]
    if first in commands or (first == args[0] and not looks_like_a_file(first)):
        return args  # a command, or a misspelt one, for which the group has a message
    return [DEFAULT_COMMAND, *args]


def looks_like_a_file(word: str) -> bool:
    return "." in word or "/" in word or Path(word).exists()


class PlainCommand(TyperCommand):
    """A command whose help shows `CONFIG [OPTIONS]`, without names of Python types."""

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
                row = _TYPE_NAME.sub("", record[0]), _RANGE.sub("", record[1])
                found[param.param_type_name].append(row)
        for kind, rows in found.items():
            if rows:
                with formatter.section(f"{kind.capitalize()}s"):
                    formatter.write_dl(rows)
