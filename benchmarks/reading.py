"""What reading a page costs in CPU, step by step, in one process: `make bench-reading`.

Extraction is what every page pays. Beside it stand the steps that judge a page (`crawler.visit.validation`) and that
label the next page of its list (`crawler.model.pagination`): each in microseconds a page, and as a share of extraction.
Pages are the HTML files under the given folders, by default what documentation packages install. Each round reads all
of them with every step, and the best round of each step counts, so that other processes disturb little.

On a busy machine, count instructions instead: `valgrind --tool=callgrind python -m benchmarks.reading --only judge
--rounds 5 --pages 150`, and the same with one round. The difference is that of four rounds of the step.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from crawler.model.messages import Response
from crawler.model.pagination import label_next
from crawler.model.settings import ValidationSettings
from crawler.model.urls import normalize, wire_of
from crawler.visit.html import Extracted, extract
from crawler.visit.scanner import IMPLEMENTATION
from crawler.visit.validation import Validator, text_print

_FOLDERS = ("/usr/share/doc",)
_MOST_PAGES = 2000
_LARGEST = 512 * 1024  # bytes: a few giants would count for more than all others
_TYPE = "text/html; charset=utf-8"
_HEADERS = {
    "server": "nginx",
    "date": "Wed, 01 Jan 2025 00:00:00 GMT",
    "content-type": _TYPE,
    "content-length": "1000",
    "last-modified": "Wed, 01 Jan 2025 00:00:00 GMT",
    "connection": "keep-alive",
    "etag": '"1"',
}


def pages_under(folders: Sequence[Path], most: int) -> list[tuple[str, bytes]]:
    """(URL, body) of HTML files, spread evenly over all that there are."""
    files = sorted({path for folder in folders for path in folder.rglob("*.html") if _is_page(path)})
    step = max(1, -(-len(files) // most))
    return [(wire_of(f"https://docs.test{path.as_posix()}"), path.read_bytes()) for path in files[::step]]


def _is_page(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and 0 < path.stat().st_size <= _LARGEST


def steps(pages: Sequence[tuple[str, bytes]]) -> Iterator[tuple[str, Callable[[], object]]]:
    """(name, the step over all pages). A step needs what those before it found, which is made here, unmeasured."""
    validator = Validator(ValidationSettings())
    read = [_read(url, body) for url, body in pages]
    marked = [_read(url, body, wants_next=True) for url, body in pages]
    answers = [Response(200, dict(_HEADERS), body) for _, body in pages]
    keys = [normalize(url) for url, _ in pages]
    yield "extract", lambda: [_read(url, body) for url, body in pages]
    yield "extract, no text", lambda: [_read(url, body, longest_text=0) for url, body in pages]
    yield "extract, lists", lambda: [_read(url, body, wants_next=True) for url, body in pages]
    yield "judge", lambda: [validator.judge(answer, page) for answer, page in zip(answers, read, strict=True)]
    yield "print", lambda: [text_print(page, url) for (url, _), page in zip(pages, read, strict=True)]
    yield (
        "label",
        lambda: [
            label_next(key, page.base, page.numbered, page.rel_next) for key, page in zip(keys, marked, strict=True)
        ],
    )


def _read(url: str, body: bytes, *, wants_next: bool = False, longest_text: int = 2048) -> Extracted:
    return extract(body, _TYPE, url, 10_000, wants_next=wants_next, longest_text=longest_text)


def measure(pages: Sequence[tuple[str, bytes]], rounds: int) -> dict[str, float]:
    """Microseconds a page of every step, in the best of the rounds."""
    best: dict[str, float] = {}
    todo = list(steps(pages))
    for _ in range(rounds):
        for name, step in todo:
            before = time.process_time()
            step()
            taken = (time.process_time() - before) / len(pages) * 1e6
            best[name] = min(best.get(name, taken), taken)
    return best


def report(found: dict[str, float], pages: int) -> str:
    whole = found["extract"]
    rows = {
        "collecting text": max(0.0, whole - found["extract, no text"]),
        "judging": found["judge"],
        "print of the text": found["print"],
        "marks of lists": max(0.0, found["extract, lists"] - whole),
        "labelling": found["label"],
    }
    validation = rows["collecting text"] + rows["judging"] + rows["print of the text"]
    labels = rows["marks of lists"] + rows["labelling"]
    lines = [f"{pages:,} pages, scanner: {IMPLEMENTATION}", f"{'extraction':20}{whole:8.1f} µs"]
    for name, taken in [*rows.items(), ("validation, in all", validation), ("labels, in all", labels)]:
        lines.append(f"{name:20}{taken:8.1f} µs {taken / whole:7.1%} of extraction")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="CPU of reading a page, step by step.")
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(folder) for folder in _FOLDERS])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pages", type=int, default=_MOST_PAGES)
    parser.add_argument("--only", metavar="STEP", help="make the rounds of this step alone, and measure nothing")
    options = parser.parse_args()
    pages = pages_under(options.folders, options.pages)
    if not pages:
        print(f"no HTML pages under {', '.join(map(str, options.folders))}; name a folder that has some")
        return 2
    if options.only:
        step = dict(steps(pages)).get(options.only)
        if step is None:
            parser.error(f"there is no step {options.only!r}; steps: {', '.join(name for name, _ in steps(pages[:1]))}")
        for _ in range(options.rounds):
            step()
        return 0
    print(report(measure(pages, options.rounds), len(pages)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
