"""The door to everything that the stages share. Stages speak to these interfaces, never to paths or locks.

`crawler.workspace.files` implements them with files on one machine, `crawler.workspace.postgres` in a database that
many machines share. One contract suite
(`tests/crawler/workspace/test_contract.py`) runs over all implementations.

Promises that every implementation keeps:

- a record is returned by readers exactly as it was appended, or not at all;
- a domain is claimed by at most one holder, and each claim of a domain has a greater `token` than all before;
- a gate lets one request to its domain through at a time, across all holders, and remembers when it ended;
- roles, claims, slots and gates of a process that dies are free again without anybody's help;
- a bell may be lost; flags, heartbeats and documents are read as they were last written, whole.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from crawler.model.errors import SumiError
from crawler.model.moments import Moment
from crawler.model.records import Job
from crawler.pace.decisions import Adjust, Entry, EntryRequest
from crawler.pace.gate_record import GateRecord
from crawler.workspace.bookmarks import Bookmark, BookmarkMove
from crawler.workspace.log import BEGINNING, Cursor, Damage, Line, LogReader, LogWriter, OnDamage

STAGES = ("scheduler", "fetcher", "ingest")
LONGEST_REQUEST_MS = 120_000


class WorkspaceError(SumiError):
    """The workspace cannot be used; the message says why and what to do."""


class RoleTaken(WorkspaceError):
    """Another live process already has this role in this workspace. `by` is that process, see `Workspace.who_has`."""

    def __init__(
        self, role: str, workspace: str, by: str = "", *, instead: str = "give this one its own --workspace"
    ) -> None:
        super().__init__(
            f"another {role} is already at work in {workspace}{f', {by}' if by else ''}; stop it first, or {instead}"
        )
        self.role = role
        self.by = by


class LeaseLost(WorkspaceError, OSError):
    """This process was away for too long, and others have taken over what it held: it is to end, and to start anew."""


class Unreachable(WorkspaceError, OSError):
    """The workspace is not there just now: a process that is started later may find it."""


class StoppedWhileAway(Unreachable):
    """This process was told to end while the workspace could not be reached: it ends as after any other interrupt."""

    exit_code = 130

    def __init__(self, why: str) -> None:
        words = "stopped; what was not written yet is done again when the same command goes on"
        OSError.__init__(self, errno.ENOTCONN, f"{words} ({why})")

    def __str__(self) -> str:
        return str(self.strerror)


class ArchiveAway(WorkspaceError):
    """Results that were moved to an archive are asked for where that archive is not; the message says where it is."""


class GateError(OSError):
    """A gate cannot be kept: no request to its domain may leave."""


class Held(Protocol):
    """Something that one process holds until it releases it, or dies."""

    def release(self) -> None:
        """Safe to call twice."""


class Claim(Held, Protocol):
    """The right to be the one fetcher of a domain."""

    @property
    def token(self) -> int:
        """The fencing number: greater than that of every earlier claim of this domain."""


class RequestSpan(NamedTuple):
    """A request's time as the ledger keeps it, on the clock that all holders of the gate share. `clock` names it."""

    clock: str
    start_ms: int
    wall_ms: int  # of the start, for people
    elapsed_ms: int


class Gate(Protocol):
    """One domain's gate. Every request to the domain passes it; `try_enter` … `finish` surround one request.

    Used by one thread at a time. Between the two calls every other holder of the gate finds it busy. A holder that
    closes its gate or dies in between leaves a request whose end is not known: it counts as sent, and the next holder
    takes its end as "now".

    `crawler.pace.decisions` decides everything; an implementation locks, stores and reads the clock.
    """

    @property
    def record(self) -> GateRecord:
        """The record as this holder last read or wrote it in `try_enter`, `finish` or `update`."""

    @property
    def span(self) -> RequestSpan:
        """The last request that this holder finished."""

    @property
    def clock_name(self) -> str:
        """The clock of `span`: this boot of the machine, or an engine that many machines share."""

    @property
    def is_behind(self) -> bool:
        """Does `record` count ledger entries that are not kept yet? `update` keeps them."""

    def try_enter(self, request: EntryRequest, *, adjust: Adjust | None = None) -> Entry:
        """Ask to send one request now. On `Open` the gate is held until `finish`, and the request is counted.

        On `Busy` nothing was read or changed. `adjust` may change the record before the decision. Raises GateError.
        """

    def finish(self, *, is_ledgered: bool = False) -> Moment:
        """The request has ended; returns when. `is_ledgered`: it counts as recorded in a ledger. Raises GateError."""

    def update(self, run: int, adjust: Adjust) -> bool:
        """Change the record without a request. False: the gate is busy, and nothing was changed. Raises GateError."""

    def read(self) -> GateRecord:
        """The stored record as it is now, without holding the gate: `is_in_flight` while somebody's request is out."""

    def close(self) -> None:
        """Release this handle, and the gate if it is held."""


class BusyWork(NamedTuple):
    """Work that a process began at `since_ns` (monotonic) and has not interrupted since. `job` is the job's number."""

    pid: int
    since_ns: int
    domain: str
    run: int
    job: int


class Activity(Protocol):
    """The work of a fetcher, told beforehand: who watches it can read it while the fetcher itself is stuck.

    A fetcher has places, one for each domain that it works on at the same time.
    """

    def assign(self, place: int, domain: str, run: int, job: int) -> None:
        """The work of this place is about this job from now on."""

    def enter(self, place: int) -> None:
        """The request loop works for this place from now on, and for no other."""

    def leave(self) -> None:
        """The request loop waits."""

    def enter_thread(self, place: int) -> None:
        """A thread begins to work for this place."""

    def leave_thread(self, place: int) -> None:
        """That thread is done."""

    def close(self) -> None:
        """Tell nothing more."""


class Slots(Protocol):
    """The permits of `max-concurrent-pages-open`: one slot, one request on the wire."""

    @property
    def held(self) -> int:
        """The number of slots that this process holds."""

    def acquire(self, wanted: int) -> None:
        """Acquire up to `wanted` more slots, as far as any are free."""

    def give_back(self, count: int) -> None:
        """Give back `count` of the slots held; none if it is not positive."""

    def close(self) -> None:
        """Give all back."""


class Bell(Protocol):
    """The listening end of a stage's bell."""

    def wait(self, seconds: float) -> bool:
        """Sleep up to `seconds`. True: somebody rang."""

    def close(self) -> None:
        """Stop listening."""


class ResultLogs(Protocol):
    """The result logs, one for each writer: the fetchers, and the scheduler for its decisions. They are kept."""

    def writers(self) -> list[str]:
        """Names of all who have ever written results here, sorted."""

    def writer(
        self,
        name: str,
        *,
        segment_bytes: int,
        before_sync: Callable[[], None] | None = None,
        gathers: bool = False,
    ) -> LogWriter:
        """The writing end of a log; its first append starts a new segment.

        `gathers`: appends may wait in memory until the next `sync`, and are lost with the process until then.

        `before_sync` is called before lines are made durable: it does that with what they name (`crawler.store`).
        """

    def reader(
        self,
        name: str,
        start: Cursor = BEGINNING,
        on_damage: OnDamage | None = None,
        *,
        will_sync: bool = False,
        is_live_only: bool = False,
    ) -> LogReader:
        """A reader from `start` on. Where segments were moved to an archive, it reads them there: raises ArchiveAway.

        `is_live_only`: for stages that follow what happens now, on any machine. Archived segments are passed over.
        """

    def end(self, name: str) -> Cursor:
        """The cursor after everything that is in a log now."""

    def is_line_end(self, name: str, cursor: Cursor) -> bool:
        """Can a reader have stopped at this cursor? False: it belongs to another log of the same name."""

    def segments(self, name: str) -> list[int]:
        """Numbers of the segments that are there, oldest first."""

    def segment_lines(self, name: str, number: int, on_damage: OnDamage | None = None) -> Iterator[Line]:
        """The lines of one segment alone. Raises ArchiveAway."""

    def last_line(self, name: str, number: int) -> Line | None:
        """The last line of a segment; None if it has none. It is known of archived segments, too, on any machine."""

    def segment_damage(self, name: str, line: Line, reason: str) -> Damage:
        """The damage that a verified line of a segment is, if it holds no record."""

    def segment_bytes(self, name: str, number: int) -> int:
        """The size of a segment; 0 if it is gone."""

    def unread_bytes(self, positions: Mapping[str, Cursor]) -> int:
        """Bytes after these positions, in all logs together; a log that is not named is unread."""

    def make_durable(self, name: str, numbers: Iterable[int]) -> None:
        """Sync segments that another process wrote. Segments that are gone are passed over."""

    def remove_segment(self, name: str, number: int) -> None:
        """Delete one segment, archived or not. What is gone cannot be replayed."""

    def archive(self, segments: Iterable[tuple[str, int]]) -> Iterator[tuple[str, int]]:
        """Move each (log, segment) out of an engine into the archive of this machine; returns those moved, one by one.

        Nothing is gone at any moment: a segment is a durable file before it leaves the engine. What is archived
        already, a log's newest segment, and those that a fetcher may still ask for, stay as they are. With files
        nothing is moved. Raises LogError.
        """

    def quarantine(self, name: str, damage: Damage) -> str:
        """Keep damaged bytes aside; returns the place, for people."""


class AppendedFile(Protocol):
    """A file for people that one stage appends to."""

    def size(self) -> int:
        """Its length; 0: there is none."""

    def open_at(self, size: int) -> int:
        """Open it for appending, cut to `size`; returns the length.

        If that is less than `size`, rows are lost, and the last whole one ends there.
        """

    def append(self, content: bytes) -> None:
        """Raises OSError."""

    def sync(self) -> None:
        """Return once everything appended would survive a power cut."""

    def close(self) -> None:
        """Safe to call twice."""

    def lines(self, size: int | None = None) -> Iterator[bytes]:
        """Its whole lines, with their ends, or those of its first `size` bytes; none if there is no file."""


class LogFolder(Protocol):
    """The files for people: `logs/pages-3.csv`, `metadata/crawl_metadata.jsonl`."""

    @property
    def place(self) -> str:
        """The machine and the folder: other machines have other files under the same names. `beside` has the same."""

    def file(self, name: str) -> AppendedFile: ...

    def names(self) -> list[str]:
        """Names of all files that are there."""

    def beside(self, name: str) -> LogFolder:
        """Another place for the same files, inside of this one."""

    def set_aside(self, name: str) -> None:
        """Give a file another name, in which a number says that it is an old one."""

    def clear(self) -> None:
        """Remove all files."""

    def take_from(self, other: Any) -> None:
        """Let all files of another such folder take the places of those here."""


class JobWriter(Protocol):
    """The scheduler's end of the job windows. Window numbers are never used twice, over all starts."""

    def write(self, domain: str, jobs: Sequence[Job]) -> int:
        """Release these jobs as one window; returns its number. Raises WorkspaceError."""

    def windows(self) -> Iterator[JobWindow]:
        """Every window that is there, with those of its jobs that can be read."""

    def remove(self, domain: str, number: int) -> None:
        """None of this window's pages waits any more."""

    def is_worked_off(self, domain: str) -> bool:
        """Has a fetcher's bookmark passed every job of this domain?"""

    def remove_all(self) -> None:
        """Remove every window: at the end of a run no job is left to do."""

    def clean(self) -> None:
        """Remove what domains without jobs leave, unless a fetcher holds one of them."""


class JobWindow(Protocol):
    """One released window, as found after a restart."""

    @property
    def number(self) -> int: ...
    @property
    def jobs(self) -> Sequence[Job]: ...

    def remove(self) -> None:
        """Delete it: none of its pages waits."""


class HintLog(Protocol):
    """A log that is only ever tailed: releases for the fetchers, the feed for the scheduler. A loss costs time only."""

    def writer(self, *, segment_bytes: int, durable: bool = False) -> LogWriter:
        """The writing end."""

    def reader(self) -> LogReader:
        """A reader of everything that is appended from now on."""

    def whole_reader(self) -> LogReader:
        """A reader of everything that is kept, from its beginning."""

    def recent_reader(self) -> LogReader:
        """A reader that begins a little earlier: at the start of the newest segment."""

    def remove_before(self, segment: int) -> None:
        """Remove older segments: nobody reads them again."""


class Workspace(Protocol):
    """Everything that the stages of one crawl share."""

    @property
    def name(self) -> str:
        """The name of this workspace in messages."""

    @property
    def results(self) -> ResultLogs: ...
    @property
    def releases(self) -> HintLog: ...
    @property
    def feed(self) -> HintLog: ...
    @property
    def orders(self) -> HintLog:
        """What people ask the crawl to do. Who writes has the role `orders` meanwhile."""

    @property
    def logs(self) -> LogFolder: ...

    # -- the workspace itself ------------------------------------------------------------------------

    def endure(self, is_over: Callable[[], bool]) -> None:
        """For stages: where the workspace cannot be reached for a while, wait for it, until `is_over`. Files can."""

    def wait_in(self, waiter: Any) -> None:
        """For fetchers: calls of this hub's greenlets do not block their thread (`crawler.net.hub`)."""

    def exists(self) -> bool:
        """Has anybody used this workspace before?"""

    def check_format(self) -> None:
        """Raise WorkspaceError if what is here has a format that this program does not read."""

    def prepare(self, *, is_to_be_cleared: bool = False) -> None:
        """Make it ready for stages. Raises WorkspaceError. `is_to_be_cleared`: the format does not matter."""

    def free_bytes(self) -> int | None:
        """Bytes that can still be written here; None: that is not known."""

    def is_open_to_others(self) -> bool:
        """Can every user of the system write to it?"""

    def prepare_outputs(self) -> None:
        """Make the places for logs, stored pages and summaries beforehand, for people to see."""

    def move_aside(self, stamp: str, recent_seconds: float, *, is_whole: bool = False) -> list[str]:
        """Move everything that was crawled aside under `stamp`, and prepare anew; returns where it is, for people.

        Stored pages and summaries stay, unless `is_whole`.
        Empty: there was nothing. The gates of domains asked within `recent_seconds` stay, with budgets begun anew.
        """

    def is_aside(self, stamp: str) -> bool:
        """Was something moved aside under this stamp before?"""

    # -- roles ---------------------------------------------------------------------------------------

    def take_role(self, role: str) -> Held:
        """Become the one `role` of this workspace, until released. Raises RoleTaken."""

    def is_role_taken(self, role: str) -> bool:
        """Is a live process in this role now?"""

    def who_has(self, role: str) -> str:
        """The process that has this role, and its machine, for people; empty: nobody has it, or that is not known."""

    def roles(self) -> list[str]:
        """Names of all roles that were ever taken here."""

    # -- domains -------------------------------------------------------------------------------------

    def claim(self, domain: str) -> Claim | None:
        """Become the one fetcher of a domain; None if another one is."""

    def claim_all(self, domains: Collection[str]) -> Mapping[str, Claim]:
        """Become the one fetcher of each of these domains that has none."""

    def release_all(self, claims: Collection[Claim]) -> None:
        """Release these claims of this workspace. Some may be released already."""

    def bookmarks(self, domains: Collection[str]) -> Mapping[str, Bookmark]:
        """The bookmark of each of these domains."""

    def bookmark(self, domain: str) -> Bookmark:
        """The domain's bookmark; the very beginning where there is none that can be read."""

    def save_bookmarks(self, moves: Collection[BookmarkMove], *, after: Callable[[], None] | None = None) -> None:
        """Replace these domains' bookmarks, durably. None is written any more when this returns or raises.

        `after` is what `begin_sync` of this process's result log returned; without it, their results are durable
        already. It is called first, and if it fails, no bookmark moves. Where the workspace has transactions, results
        and bookmarks are one: both are there, or neither. Raises LeaseLost if others have taken over what this process
        held; then nothing is written. Only the first bookmark of a claim must survive a power cut: later ones may fall
        back, never behind results that they passed.
        """

    @property
    def bookmarks_go_with_results(self) -> bool:
        """Does it cost no commit of its own to move bookmarks with every group of results?"""

    def job_writer(self) -> JobWriter:
        """The scheduler's end of the job windows."""

    def jobs(self, domain: str, start: Cursor = BEGINNING) -> LogReader:
        """A reader of the domain's jobs."""

    def domains_with_jobs(self) -> list[str]:
        """Every domain that has jobs, worked off or not."""

    def waiting_job_bytes(self) -> Mapping[str, int]:
        """Bytes of jobs after the bookmark, by domain; only domains that have some. Names may be shortened."""

    def gate(self, domain: str, clock: Callable[[], Moment], longest_ms: int = LONGEST_REQUEST_MS) -> Gate:
        """The domain's gate, for requests that take `longest_ms` at most.

        Raises GateError (an OSError) where it cannot be kept: then no request may leave.
        """

    def slots(self, limit: int) -> Slots:
        """The permits of `max-concurrent-pages-open`."""

    def activity(self, name: str) -> Activity:
        """The place where a fetcher of this name tells what it is at. A failure is ignored: nobody watches it then."""

    def busy_work(self) -> list[BusyWork]:
        """All that fetchers are at just now, of each the longest first. The processes may be dead."""

    # -- robots.txt ----------------------------------------------------------------------------------

    def robots(self, host: str) -> bytes | None:
        """The kept robots.txt record of a host; None if there is none."""

    def keep_robots(self, host: str, content: bytes) -> None:
        """Keep it. A failure is ignored: it is asked for once more than needed."""

    def forget_idle(self, seconds: float) -> int:
        """Remove the gates, claims and kept robots.txt records that were not used for so long; returns how many.

        Only between runs: a gate holds its domain's budget of the run.
        """

    # -- flags, bells, heartbeats --------------------------------------------------------------------

    def is_flagged(self, word: str, stage: str | None = None) -> bool:
        """Is `pause` or `stop` set for this stage, or for all? Without a stage: for all."""

    def flags(self) -> list[str]:
        """Names of the flags that are set: `pause`, `stop.fetcher`, …"""

    def set_flag(self, word: str, stage: str | None = None) -> None:
        """Raises WorkspaceError."""

    def clear_flag(self, word: str, stage: str | None = None) -> bool:
        """Was it set? Raises WorkspaceError."""

    def bell(self, name: str) -> Bell:
        """Listen on a bell. One process listens on a name."""

    def ring(self, name: str) -> None:
        """End the wait of the stage that listens under this name; nobody listening is fine."""

    def bells(self) -> list[str]:
        """Names under which somebody has ever listened."""

    def beat(self, name: str, content: bytes) -> None:
        """Replace a process's heartbeat. A failure is ignored."""

    def heartbeats(self) -> dict[str, bytes]:
        """The last heartbeat of every process, by its name."""

    def heartbeat(self, name: str) -> bytes | None:
        """The last heartbeat of one process; None if there is none."""

    def record_crash(self, name: str, text: str) -> str:
        """Keep the traceback of a stage that crashed; returns the place, for people."""

    # -- small documents: the run, the last config ----------------------------------------------------

    def document(self, name: str) -> bytes | None:
        """A small shared document (`run`, `config`, `crawl`); None if there is none."""

    def glance(self, name: str) -> bytes | None:
        """A small document as it is, or was a quarter of a second ago: for those who look in every round."""

    def look_again(self) -> None:
        """Something may have changed: the next look at a document or a flag is not at what was."""

    def write_document(self, name: str, content: bytes) -> None:
        """Replace it, durably and as a whole."""
