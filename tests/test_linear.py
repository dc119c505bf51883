"""Code that reads the bytes of strangers takes time in proportion to them, whatever they are.

The inputs and readers are those of `make fuzz-linear`, which tries them at 1, 2 and 4 MB. Here they are small, and
sixteen times as much may take four times sixteen as long: quadratic code takes sixteen times sixteen.
(`tests/crawler/visit/test_scanner.py` does more for the scanner.)
"""

from __future__ import annotations

import importlib
import re

import pytest

from crawler.model import urls
from tests.fuzz.linear import READERS, Reader, cpu, inputs_of, patterns_of, suspects, text_of
from tests.places import ROOT

ROOMS = ("crawler/visit", "crawler/net", "crawler/model", "crawler/rules", "reporter/escape.py")
SCREEN = 4 * 1024
SMALL = 1024
MOST_GROWTH = 4 * 16
NOTHING = 0.001  # seconds for the large input that are in order whatever the small one takes
ATTEMPTS = 3  # a busy machine may spoil two


def growing_input(reader: Reader, units: list[str]) -> str | None:
    """What grows faster than its input; None: nothing does."""
    return next((unit for unit in suspects(reader, units, SCREEN) if is_steep(reader, unit, SMALL)), None)


def is_steep(reader: Reader, unit: str, small: int) -> bool:
    """Does sixteen times as much take far more than sixteen times as long?"""
    for _ in range(ATTEMPTS):
        if cpu(reader, text_of(unit, 16 * small)) <= MOST_GROWTH * cpu(reader, text_of(unit, small)) + NOTHING:
            return False
    return True


def test_every_module_with_an_expression_over_strangers_text_is_tried_here() -> None:
    found = set()
    for room in ROOMS:
        paths = [ROOT / room] if room.endswith(".py") else sorted((ROOT / room).glob("*.py"))
        for path in paths:
            module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            values = vars(importlib.import_module(module)).values()
            if any(True for value in values for _ in patterns_of(value)):
                found.add(module)
    assert found <= set(READERS)


@pytest.mark.parametrize("module", READERS)
def test_cpu_grows_no_faster_than_the_input(module: str) -> None:
    units = inputs_of(module)
    assert {name: growing_input(reader, units) for name, reader in READERS[module].items()} == dict.fromkeys(
        READERS[module]
    )


@pytest.mark.parametrize("pattern", [r"<[^>]*>", r"\s+;", r"<!--.*?-->"])
def test_a_quadratic_expression_is_found(pattern: str) -> None:
    """Expressions that look harmless, as the readers had them once."""
    search = re.compile(pattern, re.DOTALL).search
    assert growing_input(search, ["<", "<a", "<!--", " ", "a", "-"]) is not None


@pytest.mark.parametrize("unit", ["./", "../"])
def test_dots_in_front_of_an_address_are_resolved_in_one_pass(unit: str) -> None:
    """`make fuzz-linear` found a copy of the rest for each of them: 99 s for 4 MB."""
    base = urls.Base("https://a.test/" + "d/" * 20_000)
    assert not is_steep(lambda text: base.addresses([text]), unit, 64 * 1024)
