"""The web face: its server, and the accounts of those who may use it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crawler.cli.help_format import PlainCommand
from crawler.cli.map_commands import last_config
from crawler.cli.options import WorkersOption, WorkspaceOption, complete_config, load_config, version
from crawler.model.errors import UsageError

if TYPE_CHECKING:
    from crawler.config.curation import Decision
    from crawler.model.settings import Config
    from reporter.web.face import Tools
    from reporter.web.routing import Role
    from reporter.web.web_accounts import WebAccounts
    from reporter.web.web_server import Place

ServedArgument = Annotated[
    Path | None,
    typer.Argument(
        metavar="[CONFIG]",
        help="The config file, unless it is the one that ./workspace was last crawled with.",
        autocompletion=complete_config,
        show_default=False,
    ),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The account.", show_default=False)]
RoleOption = Annotated[
    str, typer.Option("--role", metavar="ROLE", help="user: may see everything; admin: may change things too.")
]


def serve(
    config: ServedArgument = None,
    port: Annotated[int, typer.Option("--port", metavar="N", min=0, max=65535, help="0: any free one.")] = 8700,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    names: Annotated[
        list[str] | None,
        typer.Option("--name", metavar="NAME", help="A host name that people use for this server; may be repeated."),
    ] = None,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Listen where other machines can reach it; needs an account.")
    ] = False,
    certificate: Annotated[
        Path | None,
        typer.Option(
            "--tls-certificate", metavar="FILE", help="Speak HTTPS with this certificate.", show_default=False
        ),
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--tls-key", metavar="FILE", help="The key of the certificate.", show_default=False)
    ] = None,
    behind_tls: Annotated[
        bool, typer.Option("--behind-tls", help="A proxy in front speaks HTTPS: cookies are for HTTPS alone.")
    ] = False,
    demo: Annotated[bool, typer.Option("--demo", help="Show the built-in demo; it is crawled if need be.")] = False,
    workers: WorkersOption = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Open the web face on the map and the crawl: pages for people, an API for programs. On this machine only, unless
    told otherwise.
    """
    from reporter.web.web_server import Place

    place = Place(host, port, tuple(names or ()), allow_remote, certificate, key, behind_tls)
    if demo:
        if config is not None:
            raise UsageError("--demo has its own config; give one or the other")
        _serve_demo(place, workspace, workers)
    else:
        _serve(load_config(config, workspace) if config else last_config(workspace), place)


def _serve(config: Config, place: Place) -> None:
    from reporter.web.web_server import serve as run_server

    def say(line: str) -> None:
        typer.echo(line)
        sys.stdout.flush()

    run_server(config, place, version(), tools(), say)


def tools() -> Tools:
    """What needs the ingest, which the reporter does not import."""
    from crawler.cli.history_commands import changes_between
    from ingest.run_maps import map_of_run
    from reporter.web.face import Tools

    return Tools(
        map_of_run=lambda config, run: map_of_run(config, run),
        changes=lambda config, numbers: changes_between(config, numbers, None),
        preview=preview_of,
    )


def preview_of(config: Config, decision: Decision) -> tuple[list[str], list[str]]:
    """What a decision would change, worked out by a process of its own: a replay takes a core, and memory."""
    import subprocess

    import orjson

    from crawler.config.list_edit import EditError

    command = [sys.executable, "-m", "crawler", decision.command, "--dry-run", "--json"]
    command += [
        f"--workspace={config.workspace}",
        f"--note={decision.note}",
        *(f"--tag={tag}" for tag in decision.tags),
    ]
    command += ["--", decision.domain, str(config.source)]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["the preview failed"]
        raise EditError(lines[-1].removeprefix("sumi-ripple: "))
    found = orjson.loads(done.stdout)
    return [str(line) for line in found["lines"]], [str(line) for line in found["warnings"]]


def _serve_demo(place: Place, workspace: Path | None, workers: int | None) -> None:
    """Serve the demo's sites and its web face; crawl it first if no run of it is completed."""
    from crawler.cli.crawl_commands import crawl_demo, served_demo
    from crawler.workspace.opening import open_workspace
    from crawler.workspace.runs import RunStatus, read_run

    with served_demo(workspace, workers) as config:
        run = read_run(open_workspace(config))
        if run is None or run.status is not RunStatus.COMPLETED:
            code = crawl_demo(config)
            if code:
                raise typer.Exit(code)
        _serve(config, place)


# -- accounts ---------------------------------------------------------------------------------------------------

user_commands = typer.Typer(
    name="user",
    help="The accounts of the web face.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@user_commands.command("add", cls=PlainCommand)
def add(
    name: NameArgument, config: ServedArgument = None, role: RoleOption = "user", workspace: WorkspaceOption = None
) -> None:
    """Make an account. The password is asked for, or read from standard input."""
    accounts, wanted = _accounts(config, workspace), _role(role)
    accounts.add(name, wanted, _new_password(name))
    typer.echo(f"Made the account {name} with the role {wanted.word}")


@user_commands.command("password", cls=PlainCommand)
def password(name: NameArgument, config: ServedArgument = None, workspace: WorkspaceOption = None) -> None:
    """Set another password; who is signed in with the old one is signed out."""
    accounts = _accounts(config, workspace)
    _require_account(accounts, name)
    accounts.set_password(name, _new_password(name))
    typer.echo(f"The account {name} has another password; its sessions have ended")


@user_commands.command("role", cls=PlainCommand)
def role(
    name: NameArgument,
    word: Annotated[str, typer.Argument(metavar="ROLE", help="user or admin.", show_default=False)],
    config: ServedArgument = None,
    workspace: WorkspaceOption = None,
) -> None:
    """Give an account another role."""
    wanted = _role(word)
    _accounts(config, workspace).set_role(name, wanted)
    typer.echo(f"The account {name} has the role {wanted.word} now")


@user_commands.command("token", cls=PlainCommand)
def token(
    name: NameArgument,
    config: ServedArgument = None,
    label: Annotated[str, typer.Option("--label", metavar="TEXT", help="What it is for.")] = "",
    remove: Annotated[bool, typer.Option("--remove-all", help="Remove the account's tokens instead.")] = False,
    workspace: WorkspaceOption = None,
) -> None:
    """Make a bearer token for scripts. It is printed once and cannot be read again."""
    accounts = _accounts(config, workspace)
    if remove:
        accounts.remove_tokens(name)
        typer.echo(f"The account {name} has no tokens any more")
    else:
        typer.echo(accounts.add_token(name, label))


@user_commands.command("remove", cls=PlainCommand)
def remove(name: NameArgument, config: ServedArgument = None, workspace: WorkspaceOption = None) -> None:
    """Remove an account; its sessions and tokens end."""
    _accounts(config, workspace).remove(name)
    typer.echo(f"Removed the account {name}")


@user_commands.command("list", cls=PlainCommand)
def list_accounts(config: ServedArgument = None, workspace: WorkspaceOption = None) -> None:
    """List the accounts."""
    found = _accounts(config, workspace).all()
    for account in found:
        tokens = ", ".join(each.name for each in account.tokens)
        typer.echo(
            f"{account.name}  {account.role}  since {account.created}" + (f"  tokens: {tokens}" if tokens else "")
        )
    if not found:
        typer.echo("There are no accounts; on this machine, the link that `sumi-ripple serve` prints is enough")


@user_commands.command("link", cls=PlainCommand)
def link(
    config: ServedArgument = None,
    port: Annotated[int, typer.Option("--port", metavar="N", help="The port of the server.")] = 8700,
    workspace: WorkspaceOption = None,
) -> None:
    """Print another single-use link that signs the owner in, on this machine."""
    typer.echo(f"http://127.0.0.1:{port}/enter?token={_accounts(config, workspace).add_link()}")


def _accounts(config: Path | None, workspace: Path | None) -> WebAccounts:
    from crawler.workspace.opening import open_workspace
    from reporter.web.web_accounts import WebAccounts

    loaded = load_config(config, workspace) if config else last_config(workspace)
    return WebAccounts(open_workspace(loaded), loaded.workspace)


def _role(word: str) -> Role:
    from reporter.web.routing import Role

    if word not in ("user", "admin"):
        raise UsageError(f"{word!r} is not a role; give user or admin")
    return Role[word.upper()]


def _require_account(accounts: WebAccounts, name: str) -> None:
    if accounts.find(name) is None:
        raise UsageError(f"there is no account {name!r}; to make it: sumi-ripple user add {name}")


def _new_password(name: str) -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(f"Password for {name}", hide_input=True, confirmation_prompt=True))
    given = sys.stdin.readline().rstrip("\r\n")
    if not given:
        raise UsageError("give the password on standard input, or run this in a terminal")
    return given
