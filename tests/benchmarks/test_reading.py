"""What `make bench-reading` measures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.reading import measure, pages_under, report


def test_every_step_is_measured_and_shown_as_a_share_of_extraction(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.html").write_text(f"<title>{number}</title><a href=page/2>x</a> " + "text " * 500)
    (tmp_path / "empty.html").write_text("")
    pages = pages_under([tmp_path], 3)
    assert [url.rpartition("/")[2] for url, _ in pages] == ["0.html", "2.html", "4.html"]
    found = measure(pages, 1)
    assert all(taken > 0 for taken in found.values())
    text = report({**found, "extract": 80.0, "extract, no text": 78.0, "judge": 1.0, "print": 1.0}, 3)
    assert "validation, in all       4.0 µs    5.0% of extraction" in text
