"""PURE. The supervisor's decisions: the meaning of an exit, pauses before restarts, phases and deadlines of a stop."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum, auto

DONE = 0
EXPLAINED = 1  # the stage logged why it cannot go on; a restart would not help
CRASHED = 70  # a bug; its traceback is kept, a restart may help
INTERRUPTED = 130  # by SIGINT or SIGTERM, after saving
TERMINATED = 143  # by a second SIGTERM
REPLACED = 75  # after saving, to be started again under another config
GRACEFUL = frozenset({DONE, INTERRUPTED, TERMINATED, REPLACED})

FIRST_PAUSE = 0.5  # seconds before a stage that died is restarted; doubles with every further death
LONGEST_PAUSE = 30.0
HEALTHY_AFTER = 60.0  # seconds; a stage that ran longer is restarted after a short pause again
MOST_DEATHS = 5  # in a row without progress; then the supervisor gives up


class Outcome(Enum):
    """The end of a supervisor's work."""

    COMPLETED = auto()
    INTERRUPTED = auto()
    FAILED = auto()  # it was said why; a restart would not help before that is mended
    BROKEN = auto()  # a restart may help


EXIT_CODES = {
    Outcome.COMPLETED: DONE,
    Outcome.FAILED: EXPLAINED,
    Outcome.INTERRUPTED: INTERRUPTED,
    Outcome.BROKEN: CRASHED,
}


# -- phases ---------------------------------------------------------------------------------------------------


class Phase(Enum):
    RUNNING = auto()  # stages that die are restarted
    STOPPING = auto()  # scheduler and fetchers were asked to end; the ingest goes on
    DRAINING = auto()  # the ingest, the last one, was asked to end
    ENDED = auto()


def next_phase(phase: Phase, alive: Collection[str]) -> Phase:
    """The phase that follows, by the stages (`scheduler`, `fetcher`, `ingest`) that are still alive."""
    if phase is Phase.RUNNING:
        return phase
    if not alive:
        return Phase.ENDED
    return Phase.DRAINING if all(stage == "ingest" for stage in alive) else phase


# -- patience -------------------------------------------------------------------------------------------------

PATIENCE = 60.0  # seconds for a stage to finish what is in flight
STUCK_PATIENCE = 3.0  # for a fetcher that is stuck
# After a Ctrl-C a crawl ends within five seconds, whatever its stages are at: a kill loses nothing.
WIRE_DEADLINE = 3.8  # seconds after a Ctrl-C for scheduler and fetchers; these give themselves half a second less
INTERRUPT_DEADLINE = 4.6  # for the ingest


def kill_at(stage: str, asked_at: float, interrupted_at: float | None, *, is_stuck: bool) -> float:
    """The moment from which a stage that was asked to end is not waited for any longer."""
    moment = asked_at + (STUCK_PATIENCE if is_stuck else PATIENCE)
    if interrupted_at is None:
        return moment
    return min(moment, interrupted_at + (INTERRUPT_DEADLINE if stage == "ingest" else WIRE_DEADLINE))


# -- exits ----------------------------------------------------------------------------------------------------


class Verdict(Enum):
    """The consequence of a stage's exit."""

    OVER = auto()  # it ended as it should
    PARK = auto()  # its flag file stopped it; it is restarted when the flag is removed
    RESTART = auto()  # it died
    RUN_COMPLETED = auto()  # the scheduler ended with its run: stop the others
    INTERRUPT_ALL = auto()  # the flag file for all stages stopped it: stop the others
    FAIL_ALL = auto()  # it cannot go on, and the others cannot without it


@dataclass(frozen=True, slots=True)
class Situation:
    """The circumstances of an exit.

    `owns_run`: the supervisor runs a whole crawl. If not, its stages end by themselves and are not restarted then.
    """

    phase: Phase = Phase.RUNNING
    owns_run: bool = True
    is_run_completed: bool = False
    is_stop_set: bool = False  # the flag for all stages
    is_own_stop_set: bool = False  # the flag for this stage

    @property
    def is_undisturbed(self) -> bool:
        """Is the crawl to go on as it is?"""
        is_ending = self.is_run_completed or self.is_stop_set or self.is_own_stop_set
        return self.phase is Phase.RUNNING and not is_ending


def judge_exit(stage: str, code: int, situation: Situation) -> Verdict:
    """The consequence of a stage's exit with this code."""
    if code == EXPLAINED:
        return Verdict.FAIL_ALL
    if situation.phase is not Phase.RUNNING:
        return Verdict.OVER
    if code not in GRACEFUL:
        return Verdict.RESTART
    if not situation.owns_run:
        return Verdict.OVER
    if situation.is_run_completed:
        return Verdict.RUN_COMPLETED if stage == "scheduler" else Verdict.OVER
    if situation.is_stop_set:
        return Verdict.INTERRUPT_ALL
    if situation.is_own_stop_set:
        return Verdict.PARK
    return Verdict.RESTART


# -- restarts -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Deaths:
    """The deaths of a stage so far. `progress`: a value that differs whenever the stage has done something."""

    in_a_row: int = 0  # without progress
    pause: float = 0.0  # seconds before the restart after the last death
    progress: object = None  # at the last death


NO_DEATHS = Deaths()


def after_death(before: Deaths, lived: float, progress: object, first_pause: float = FIRST_PAUSE) -> Deaths:
    """The deaths of a stage that just died after it `lived` so many seconds."""
    is_stuck = before.in_a_row == 0 or progress == before.progress
    is_first = before.in_a_row == 0 or lived > HEALTHY_AFTER
    return Deaths(
        before.in_a_row + 1 if is_stuck else 1,
        first_pause if is_first else min(before.pause * 2, LONGEST_PAUSE),
        progress,
    )
