"""Everything that the handlers of one server share."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from crawler.config.curation import Decision
from crawler.config.load import load
from crawler.database.completed_map import ShownMap, shown_map
from crawler.model.map_place import MapPlace
from crawler.model.settings import Config
from crawler.workspace.door import Workspace
from crawler.workspace.opening import open_workspace
from reporter.diff.run_changes import Changes
from reporter.web.call_limits import CallLimits
from reporter.web.live_figures import LiveFigures
from reporter.web.page_search import PageSearch
from reporter.web.prepared import Prepared
from reporter.web.preview_tokens import PreviewTokens
from reporter.web.web_accounts import WebAccounts
from reporter.web.web_sessions import WebSessions
from reporter.web.write_log import WriteLog

HASHES_AT_ONCE = 2  # argon2 takes 64 MiB and all of a core for each


@dataclass(frozen=True, slots=True)
class Binding:
    """Where the server listens. `hosts` are the values of Host that are its own."""

    port: int
    hosts: frozenset[str]
    is_tls: bool = False
    is_loopback: bool = True

    @property
    def scheme(self) -> str:
        return "https" if self.is_tls else "http"

    @property
    def cookie(self) -> str:
        """With the port: cookies do not tell ports apart, and two servers on one machine would sign each other out."""
        return f"sumi-session-{self.port}"


@dataclass(frozen=True, slots=True)
class Tools:
    """What needs the ingest: results are read again. The reporter does not import it, so the command line hands it in.

    `map_of_run`: the map of one run alone. `changes`: from one run to another. `preview`: what the map would become
    under a decision, as (lines, warnings), without changing anything; each raises SumiError.
    """

    map_of_run: Callable[[Config, int], Path]
    changes: Callable[[Config, tuple[int, int] | None], Changes]
    preview: Callable[[Config, Decision], tuple[list[str], list[str]]]


@dataclass(slots=True)
class Face:
    """The config as the file has it now, the workspace, the accounts, the sessions, the limits."""

    first_config: Config
    binding: Binding
    version: str
    tools: Tools
    workspace: Workspace = field(init=False)
    accounts: WebAccounts = field(init=False)
    sessions: WebSessions = field(init=False)
    limits: CallLimits = field(init=False)
    live: LiveFigures = field(init=False)
    hashes: threading.Semaphore = field(init=False)
    prepared: Prepared = field(init=False)
    log: WriteLog = field(init=False)
    search: PageSearch = field(init=False)
    previews: PreviewTokens = field(init=False)
    replays: threading.Lock = field(init=False)  # one at a time: each takes a core and memory
    _config: Config = field(init=False)
    _stamp: tuple[int, int] | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        root = self.first_config.workspace
        self.workspace = open_workspace(self.first_config)
        self.accounts = WebAccounts(self.workspace, root)
        self.sessions = WebSessions(root, self.accounts)
        self.limits = CallLimits()
        self.live = LiveFigures(self.workspace)
        self.hashes = threading.Semaphore(HASHES_AT_ONCE)
        self.prepared = Prepared()
        self.log = WriteLog(root)
        self.search = PageSearch(self.database)
        self.previews = PreviewTokens()
        self.replays = threading.Lock()
        self._config = self.first_config
        self._stamp = _stamp(self.first_config.source)

    @property
    def config(self) -> Config:
        """The config as its file has it now. Raises ConfigError while the file cannot be loaded."""
        source = self.first_config.source
        stamp = _stamp(source)
        if source is not None and stamp != self._stamp:
            self._config = load(source, workspace=self.first_config.workspace)
            self._stamp = stamp
        return self._config

    @property
    def database(self) -> MapPlace:
        return self.first_config.map_place

    def shown(self) -> ShownMap:
        """The map that people see: the last completed run's while another one is under way."""
        return shown_map(self.database)


def _stamp(path: Path | None) -> tuple[int, int] | None:
    try:
        found = path.stat() if path is not None else None
    except OSError:
        return None
    return None if found is None else (found.st_mtime_ns, found.st_ino)
