"""Where the tests find things: the repository, and the public cases beside it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFORMANCE = ROOT.parent / "shared" / "conformance"  # not part of the project; tests skip where it is missing
