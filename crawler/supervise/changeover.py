"""The order in which stages start where settings have changed, at a reload as at a start.

    fetchers under the old settings end ──▶ scheduler: settings recorded, windows released anew ──▶ fetchers start

So no request leaves under settings that are not recorded, and none under old ones once others are. The ingest waits for
nobody: it may have a map to rebuild, which the scheduler waits for.
"""

from __future__ import annotations

from crawler.model.settings import Config
from crawler.workspace.door import Workspace
from crawler.workspace.runs import RunStatus, read_run
from crawler.workspace.terms import read_terms

LOOK_EVERY = 0.03  # seconds between looks whether it is over, while fetchers wait for that


class Changeover:
    """From the reading of a config until it is in force."""

    def __init__(self, config: Config, workspace: Workspace) -> None:
        self._config_hash = config.config_hash
        self._workspace = workspace

    def is_over(self) -> bool:
        """Are these settings recorded, and all jobs released under them? Not to be asked while a scheduler under other
        settings is at work.
        """
        run = read_run(self._workspace)
        if run is None or run.status is RunStatus.COMPLETED:
            return True  # a run that is yet to be started has no jobs: fetchers may be there before it
        return read_terms(self._workspace) == self._config_hash
