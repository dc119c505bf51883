"""One server for the tests that change nothing, and a fresh one for the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reporter.web.serving import Served, make_rich_folder, served


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A face without limits on the rich map; its tests leave it as it is."""
    with served(make_rich_folder(tmp_path_factory.mktemp("face"))) as found:
        yield found


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Served]:
    """A face of its own, with limits, on the rich map."""
    with served(make_rich_folder(tmp_path), limited=True) as found:
        yield found
