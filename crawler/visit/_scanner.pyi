from collections.abc import Callable

from crawler.visit.pure_scanner import Found, Limits

CONTRACT: int

def scan(
    data: bytes,
    most: int,
    is_xml: bool,
    elements: tuple[str, ...],
    refresh: Callable[[str], str | None],
    limits: Limits,
    has_links: bool,
    in_attribute: Callable[[bytes], bytes],
    /,
) -> Found: ...
