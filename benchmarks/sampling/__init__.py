"""Where the CPU of a crawl goes, step by step, without changing the crawl.

The folder is put on PYTHONPATH, so that every Python process of the crawl imports `sitecustomize` from it. That
starts a thread which looks at all other threads every few milliseconds, for a fraction of one, and charges the CPU
time that each used meanwhile to the function it is in. `read` puts the processes' notes together, and scales what
was seen of a process to all of its CPU time.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).resolve().parent
NOTES = "SUMI_BENCH_SAMPLES"  # the folder that the notes go to
ROOM = "SUMI_BENCH_ROOT"  # functions in files below this folder are the project's


def environment(notes: Path, root: Path) -> dict[str, str]:
    """The environment of a crawl that is to be sampled."""
    notes.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, NOTES: str(notes), ROOM: str(root)}


def read(notes: Path, stages: Mapping[int, str]) -> dict[str, dict[str, float]]:
    """CPU seconds by stage and step; fetchers together. Processes that no stage's name is known of are left out."""
    found: dict[str, Counter[str]] = {}  # a Counter takes fractions as well
    for path in notes.glob("*.json"):
        name = stages.get(int(path.stem))
        if name is None:
            continue
        stage = "fetchers" if name.startswith("fetcher") else name
        note = json.loads(path.read_text())
        scale = note["cpu"] / max(sum(note["steps"].values()), 1e-9)
        found.setdefault(stage, Counter()).update({step: seen * scale for step, seen in note["steps"].items()})
    return {stage: dict(steps.most_common()) for stage, steps in found.items()}
