"""The one family of errors that a person is told about in a sentence, without a traceback."""

from __future__ import annotations


class SumiError(Exception):
    """Something that the user can mend. Its text is what to say; `exit_code` is what to end with."""

    exit_code = 1


class UsageError(SumiError):
    """The command was given something that it cannot use."""

    exit_code = 2


def sentence(problem: Exception) -> str:
    """An error in words, for one line (a config with many mistakes: for a few)."""
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.strerror}: {problem.filename}" if problem.filename else str(problem.strerror)
    return str(problem) or type(problem).__name__
