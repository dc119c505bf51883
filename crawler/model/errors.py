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
        # Where a file cannot take its place, that place is the one to name, not the scratch file.
        place = problem.filename2 or problem.filename
        return f"{problem.strerror}: {place}" if place else str(problem.strerror)
    return str(problem) or type(problem).__name__
