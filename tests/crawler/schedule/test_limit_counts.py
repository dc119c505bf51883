"""The limits of a run: what counts, what is kept over a crash, and what a new start renews."""

from __future__ import annotations

from pathlib import Path

from crawler.model.settings import LimitSettings
from crawler.schedule.limit_counts import LimitCounts
from crawler.workspace.files.file_workspace import FileWorkspace


def begun(tmp_path: Path, limits: LimitSettings, *, pages: int = 0, is_renewed: bool = True) -> LimitCounts:
    workspace = FileWorkspace(tmp_path)
    workspace.prepare()
    made = LimitCounts(limits, workspace)
    made.begin(1, pages, [], 0.0, is_renewed=is_renewed)
    return made


def test_no_more_pages_are_released_than_the_limit_allows(tmp_path: Path) -> None:
    limits = begun(tmp_path, LimitSettings(max_pages=10))
    assert limits.pages_left(4) == 6
    limits.note_visits(6, 0)
    assert limits.pages_left(4) == 0
    assert limits.reached(1.0, 4) is None, "pages in flight are waited for"
    limits.note_visits(4, 0)
    assert limits.reached(2.0, 0) == "max-pages = 10"


def test_a_domain_that_has_begun_goes_on_and_a_new_one_is_barred(tmp_path: Path) -> None:
    limits = begun(tmp_path, LimitSettings(max_domains=1))
    assert limits.may_serve("a.test")
    limits.note_domain("a.test")
    assert limits.may_serve("a.test") and not limits.has_barred
    assert not limits.may_serve("b.test") and limits.has_barred


def test_time_and_bytes_end_a_run(tmp_path: Path) -> None:
    limits = begun(tmp_path, LimitSettings(max_duration=60, max_bytes=1000))
    assert limits.reached(59.0, 3) is None
    limits.note_visits(1, 1000)
    assert limits.reached(59.5, 3) == "max-bytes = 1,000"
    assert limits.reached(60.0, 3) == "max-duration = 60 s"


def test_a_scheduler_that_was_killed_goes_on_counting_and_a_new_start_counts_anew(tmp_path: Path) -> None:
    settings = LimitSettings(max_pages=10, max_duration=100)
    limits = begun(tmp_path, settings)
    limits.note_visits(4, 0)
    assert limits.reached(50.0, 0) is None
    killed = begun(tmp_path, settings, pages=4, is_renewed=False)
    assert killed.pages_left(0) == 6
    assert killed.reached(50.0, 0) == "max-duration = 100 s"
    renewed = begun(tmp_path, settings, pages=10)
    assert renewed.pages_left(0) == 10 and renewed.reached(50.0, 0) is None


def test_a_limit_that_comes_later_counts_what_the_run_has_used_before(tmp_path: Path) -> None:
    free = begun(tmp_path, LimitSettings())
    free.note_visits(4, 900)
    assert free.reached(50.0, 0) is None
    free.save()
    limited = begun(tmp_path, LimitSettings(max_pages=10, max_duration=60, max_bytes=1000), pages=4, is_renewed=False)
    assert limited.left() == {"pages": 6, "seconds": 10, "bytes": 100}
