"""The commands over the stored pages: store cat, stats, verify, forget, pack. None of them sends a request."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crawler.cli.help_format import PlainCommand
from crawler.cli.map_commands import OptionalConfigArgument, last_config
from crawler.cli.options import JsonOption, WorkspaceOption, complete_config, load_config, show
from crawler.model.errors import UsageError

if TYPE_CHECKING:
    from crawler.model.settings import Config

_MOST_SHOWN = 20  # of each kind of finding

store_commands = typer.Typer(
    name="store",
    help="The pages themselves, where [store] html keeps them. docs/keeping.md tells more.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _words(metavar: str) -> Any:
    return typer.Argument(
        metavar=metavar,
        help="And the config file, unless it is the one that ./workspace was last crawled with.",
        autocompletion=complete_config,
        show_default=False,
    )


def _config_and_words(words: list[str], workspace: Path | None, what: str) -> tuple[Config, list[str]]:
    configs = [word for word in words if word.endswith(".toml")]
    rest = [word for word in words if word not in configs]
    if not rest or len(configs) > 1:
        raise UsageError(f"give {what} and at most one config (a .toml file)")
    return (load_config(Path(configs[0]), workspace) if configs else last_config(workspace)), rest


def _key_of(url: str, config: Config) -> str:
    from crawler.model.urls import UrlError, normalize

    try:
        if "://" not in url:
            raise UrlError("no scheme")
        return normalize(url, config.crawler.tracking_parameters)
    except UrlError:
        raise UsageError(f"{url[:200]!r} is no URL; write it whole, like https://example.com/page") from None


@store_commands.command("cat", cls=PlainCommand)
def cat(
    words: Annotated[list[str], _words("URL [CONFIG]")],
    run: Annotated[int | None, typer.Option("--run", metavar="N", help="As this run saw it.", min=1)] = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Print a page as its server sent it: of its last accepted visit, or of a run."""
    from crawler.keep.stored_pages import page_content

    config, urls = _config_and_words(words, workspace, "one URL")
    if len(urls) != 1:
        raise UsageError("give one URL and at most one config (a .toml file)")
    sys.stdout.buffer.write(page_content(config, _key_of(urls[0], config), run))
    sys.stdout.buffer.flush()


@store_commands.command("stats", cls=PlainCommand)
def stats(
    config: OptionalConfigArgument = None, as_json: JsonOption = False, workspace: WorkspaceOption = None
) -> None:
    """Show what the store holds and what it takes on disk."""
    from crawler.keep.stored_pages import figures
    from crawler.model.shown_text import counted, domain_words, size_words

    loaded = load_config(config, workspace) if config else last_config(workspace)
    found = figures(loaded)
    if as_json:
        import orjson

        typer.echo(orjson.dumps(asdict(found)).decode())
        return
    is_all_known = found.bytes and found.known == found.blobs  # the map does not know sizes of earlier contents
    ratio = f", 1/{found.content_bytes / found.bytes:.1f} of their size" if is_all_known else ""
    show(f"Pages of the map that have their content here: {found.pages:,}, {size_words(found.page_bytes)}")
    show(f"Different contents of all runs: {found.blobs:,}, {size_words(found.bytes)} on disk{ratio}")
    show(f"  {counted(found.loose, 'file')}, {size_words(found.loose_bytes)}")
    packed = counted(found.packed, "content")
    show(f"  {counted(found.packs, 'pack')} with {packed}, {size_words(found.pack_bytes)}")
    if found.noarchive:
        show(f"Pages that ask not to be kept (noarchive): {found.noarchive:,}")
    for domain, pages, size in found.domains:
        show(f"  {domain_words(domain)}: {counted(pages, 'page')}, {size_words(size)}")


@store_commands.command("verify", cls=PlainCommand)
def verify(config: OptionalConfigArgument = None, workspace: WorkspaceOption = None) -> None:
    """Read every stored page and compare it with its hash; look for every page that results name. Exit 1: damage."""
    from crawler.keep.stored_pages import verify as verify_store
    from crawler.model.shown_text import counted

    loaded = load_config(config, workspace) if config else last_config(workspace)
    found = verify_store(loaded)
    show(f"Read {counted(found.blobs, 'stored content')}; results and map name {found.named:,}")
    if found.forgotten:
        show(f"Removed on purpose (store forget, prune): {found.forgotten:,}")
    _list("damaged; a visit that fetches the page stores it again", [str(problem) for problem in found.damaged])
    whole = "damaged, while the content is whole elsewhere; `sumi-ripple store pack` leaves these copies out"
    _list(whole, [str(problem) for problem in found.spare])
    packs = "of the packs cannot be opened; visits store the pages again, and once none is missing, remove such a file"
    _list(packs, [str(problem) for problem in found.packs])
    _list("missing", [f"{url}: {digest}" for url, digest in found.missing])
    _list("not of the store", [str(path) for path in found.strangers])
    if not found.is_sound:
        raise typer.Exit(1)
    show("Every one is whole, and none is missing")


def _list(word: str, lines: list[str]) -> None:
    if lines:
        show(f"{len(lines):,} {word}:", err=True)
        for line in lines[:_MOST_SHOWN]:
            show(f"  {line}", err=True)
        if len(lines) > _MOST_SHOWN:
            show(f"  and {len(lines) - _MOST_SHOWN:,} more", err=True)


@store_commands.command("forget", cls=PlainCommand)
def forget(words: Annotated[list[str], _words("URL|DOMAIN... [CONFIG]")], workspace: WorkspaceOption = None) -> None:
    """Remove the content of pages, or of whole domains, of every run. The map and the results stay as they are.

    A pattern like *.example.org means a domain and its subdomains. A content that another page has, too, is kept.
    """
    from crawler.config.checks import Bad, domain_pattern
    from crawler.keep.stored_pages import forget as forget_pages
    from crawler.model.shown_text import counted
    from crawler.rules.lists import matches

    config, targets = _config_and_words(words, workspace, "a URL or a domain")
    keys: set[str] = set()
    patterns: list[str] = []
    for target in targets:
        if "://" in target:
            keys.add(_key_of(target, config))
            continue
        try:
            patterns.append(domain_pattern(target))
        except Bad as problem:
            raise UsageError(f"{target[:200]!r}: give a URL, or a domain: {problem}") from None
    done = forget_pages(
        config, lambda copy: copy.url in keys or any(matches(pattern, copy.domain) for pattern in patterns)
    )
    if not done.pages:
        show("No page of that name was ever accepted: nothing was removed", err=True)
        raise typer.Exit(1)
    kept = f", {done.shared:,} kept because other pages have the same content" if done.shared else ""
    show(f"{counted(done.pages, 'page')}: {counted(done.removed, 'content')} removed{kept}")


@store_commands.command("pack", cls=PlainCommand)
def pack(
    config: OptionalConfigArgument = None,
    older_than: Annotated[
        str, typer.Option("--older-than", metavar="AGE", help="Pack what was stored so long ago: 30d, 12h; 0: all.")
    ] = "1d",
    workspace: WorkspaceOption = None,
) -> None:
    """Put old stored pages into packs, one for each site, compressed with a dictionary of what its pages share."""
    from crawler.config.checks import Bad, seconds_or_none
    from crawler.keep.stored_pages import pack as pack_pages
    from crawler.model.shown_text import counted, size_words

    loaded = load_config(config, workspace) if config else last_config(workspace)
    try:
        age = seconds_or_none(0 if older_than == "0" else older_than)
    except Bad as problem:
        raise UsageError(f"--older-than {older_than}: {problem}") from None
    done = pack_pages(loaded, age)
    if done.damaged:
        show(f"{done.damaged:,} are damaged and stay where they are: sumi-ripple store verify", err=True)
    if done.left_out:
        copies = "copy" if done.left_out == 1 else "copies"
        show(f"Left out {done.left_out:,} {copies} that a whole one made needless")
    if not done.blobs:
        show(f"Nothing to pack: no page was stored longer than {older_than} ago" if age else "Nothing to pack")
        return
    words = f"{size_words(done.bytes_before)} before, {size_words(done.bytes_after)} now"
    show(f"Packed {counted(done.blobs, 'content')} into {counted(done.packs, 'pack')}: {words}")
