"""Answers that are worked out once for each state of the map."""

from __future__ import annotations

import threading

import pytest

from reporter.web.prepared import Prepared
from reporter.web.problems import Problem


def test_an_answer_is_worked_out_once_for_each_stamp() -> None:
    prepared, made = Prepared(), list[str]()

    def make(word: str) -> str:
        made.append(word)
        return word

    assert [prepared.get("name", "one", lambda: make("a")) for _ in range(3)] == ["a"] * 3
    assert prepared.get("name", "two", lambda: make("b")) == "b"
    assert prepared.get("other", "two", lambda: make("c")) == "c"
    assert made == ["a", "b", "c"]


def test_a_live_answer_is_good_for_a_while() -> None:
    prepared = Prepared()
    assert prepared.get("name", "one", lambda: "a", is_live=True) == "a"
    assert prepared.get("name", "two", lambda: "b", is_live=True) == "a"
    assert prepared.get("name", "two", lambda: "b") == "b"


def test_a_live_answer_that_is_old_is_waited_for_if_it_is_quickly_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reporter.web.prepared._FRESH", 0)
    monkeypatch.setattr("reporter.web.prepared._SHARE", 0)
    monkeypatch.setattr("reporter.web.prepared._QUICK", 60)
    monkeypatch.setattr("reporter.web.prepared._BRIEF", 60)
    prepared = Prepared()
    assert prepared.get("name", "one", lambda: "a", is_live=True) == "a"
    assert prepared.get("name", "two", lambda: "b", is_live=True) == "b"
    monkeypatch.setattr("reporter.web.prepared._QUICK", -1)
    assert prepared.get("name", "three", lambda: "c", is_live=True) == "b", "one that took long comes later"


def test_who_comes_too_early_is_told_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reporter.web.prepared.PATIENCE", 0.01)
    prepared, goes_on = Prepared(), threading.Event()
    with pytest.raises(Problem) as told:
        prepared.get("name", "one", lambda: goes_on.wait(30))
    assert (told.value.status, told.value.retry_after) == (503, 3)
    goes_on.set()
    monkeypatch.setattr("reporter.web.prepared.PATIENCE", 30)
    assert prepared.get("name", "one", lambda: False) is True


def test_a_failure_is_told_and_tried_again() -> None:
    prepared = Prepared()
    with pytest.raises(ZeroDivisionError):
        prepared.get("name", "one", lambda: 1 / 0)
    assert prepared.get("name", "one", lambda: 2.0) == 2.0
