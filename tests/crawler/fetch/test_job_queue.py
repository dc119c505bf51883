"""The jobs of one domain, read from a real job log."""

from __future__ import annotations

import pytest

from crawler.fetch.job_queue import JOBS_AT_ONCE, REMEMBERED_KEYS, JobQueue
from crawler.model.records import Job, Release, dump
from crawler.workspace.files.file_workspace import FileWorkspace
from crawler.workspace.files.spool import Writer


def job(number: int, run: int = 1) -> Job:
    return Job(run, f"https://a.test/{number}", f"https://a.test/{number}", "a.test")


def release(workspace: FileWorkspace, *numbers: int) -> None:
    workspace.job_writer().write("a.test", [job(number) for number in numbers])


def queue_of(workspace: FileWorkspace) -> JobQueue:
    return JobQueue(workspace.jobs("a.test"))


def rest_of(queue: JobQueue) -> list[int]:
    found = []
    while queue.fill():
        while (following := queue.next()) is not None:
            found.append(int(following[0].key.rpartition("/")[2]))
    return found


def test_jobs_come_in_order_and_once_over_windows_and_groups(workspace: FileWorkspace) -> None:
    numbers = list(range(JOBS_AT_ONCE + 10))
    release(workspace, *numbers)
    queue = queue_of(workspace)
    assert queue.next() is None, "nothing is read before `fill`"
    assert queue.fill() and len(queue) == JOBS_AT_ONCE
    assert rest_of(queue) == numbers
    release(workspace, 500)
    assert rest_of(queue) == [500]


def test_each_job_has_the_cursor_after_it(workspace: FileWorkspace) -> None:
    release(workspace, 1, 2)
    queue = queue_of(workspace)
    queue.fill()
    ends = [line.end for line in workspace.jobs("a.test")]
    assert [queue.next(), queue.next()] == [(job(1), ends[0]), (job(2), ends[1])]


def test_lines_that_hold_no_job_are_passed_over(workspace: FileWorkspace) -> None:
    writer = Writer(workspace.layout.jobs_of("a.test"))
    writer.append_all([dump(job(1)), dump(Release(1, "a.test", 1)), dump(job(2))])
    writer.close()
    assert rest_of(queue_of(workspace)) == [1, 2]


def test_jobs_done_recently_are_known_and_the_oldest_are_forgotten(workspace: FileWorkspace) -> None:
    queue = queue_of(workspace)
    for number in range(REMEMBERED_KEYS + 1):
        queue.remember(job(number))
    assert not queue.is_done(job(0))
    assert queue.is_done(job(1)) and queue.is_done(job(REMEMBERED_KEYS))
    assert not queue.is_done(job(1, run=2))


@pytest.mark.parametrize("last", [0, 5, JOBS_AT_ONCE - 1, JOBS_AT_ONCE, 2 * JOBS_AT_ONCE + 3])
def test_all_jobs_up_to_the_last_one_with_a_result_are_skipped(workspace: FileWorkspace, last: int) -> None:
    numbers = list(range(2 * JOBS_AT_ONCE + 5))
    release(workspace, *numbers)
    queue = queue_of(workspace)
    queue.fill()
    ends = [line.end for line in workspace.jobs("a.test")]
    done = {(1, job(number).key) for number in range(0, last + 1, 2)} | {(1, job(last).key)}
    assert queue.skip_done_jobs(done) == ends[last]
    assert rest_of(queue) == numbers[last + 1 :]
    assert queue.is_done(job(last))


def test_without_a_result_nothing_is_skipped(workspace: FileWorkspace) -> None:
    release(workspace, 1, 2)
    queue = queue_of(workspace)
    queue.fill()
    assert queue.skip_done_jobs({(1, "https://a.test/elsewhere"), (2, job(1).key)}) is None
    assert rest_of(queue) == [1, 2]
