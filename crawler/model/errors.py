"""PURE. Errors that the command line shows as one sentence, without a traceback."""

from __future__ import annotations


class SumiError(Exception):
    """A problem that the user can mend. Its text is the sentence to print; `exit_code` ends the process."""

    exit_code = 1


class UsageError(SumiError):
    """The command line or the config holds something that cannot be used."""

    exit_code = 2


def sentence(problem: Exception) -> str:
    """An error in words, for one line (a config with many mistakes: for a few)."""
    if isinstance(problem, OSError) and problem.strerror:
        return f"{problem.strerror}: {problem.filename}" if problem.filename else str(problem.strerror)
    return str(problem) or type(problem).__name__
