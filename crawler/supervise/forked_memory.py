"""Imported last by the fork server: everything imported by then stays as it is, there and in every stage.

Objects that are frozen are not looked at by collections, so a stage's first one is short and copies no memory that the
processes share: 0.03 s of CPU less in each of them.
"""

from __future__ import annotations

import gc

gc.collect()
gc.freeze()
