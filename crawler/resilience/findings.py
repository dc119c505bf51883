"""PURE. Findings of a diagnosis: one sentence each, with what to do. `docs/operations.md` says more about each word."""

from __future__ import annotations

from typing import NamedTuple


class Finding(NamedTuple):
    """`word` names the kind, and its place in docs/operations.md."""

    word: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.word}: {self.sentence}"


WORDS = ("network", "name-servers", "clock", "disk", "database", "file-handles", "memory", "unknown")


def network(hosts: int, words: str) -> Finding:
    return Finding(
        "network",
        f"this machine reaches none of {hosts} hosts that answered before, are named in [resilience] probe or are seeds"
        f" ({words}); check cable, Wi-Fi, VPN or firewall. The crawl goes on by itself when one answers",
    )


def one_site(domain: str, give_up_after: str) -> Finding:
    return Finding(
        "network",
        f"only {domain} has answered in this run, so a fault of the site looks like one of this machine's network; if "
        "other sites open on this machine, it is the site that is down: stop the crawl and go on later (nothing is "
        "lost), or name a host that always answers in [resilience] probe. Without either the crawl waits "
        f"{give_up_after}",
    )


def name_servers(words: str) -> Finding:
    return Finding(
        "name-servers",
        f"no name server answers ({words}); check /etc/resolv.conf and the name servers in it. The crawl goes on by "
        "itself when one answers",
    )


def clock_of_certificates(now: str) -> Finding:
    return Finding(
        "clock",
        f"this machine's clock says {now}, and certificates that were good before are not valid at that time; set the "
        "clock",
    )


def clock_was_set(seconds: float) -> Finding:
    return Finding(
        "clock", f"this machine's clock was set by {seconds:+,.0f} s during the crawl; check that it is right"
    )


def disk_is_full(place: str, free: int) -> Finding:
    return Finding("disk", f"only {free // (1024 * 1024):,} MiB are free at {place}; make room there")


def disk_is_read_only(place: str) -> Finding:
    return Finding("disk", f"{place} is read-only; mount it for writing and start again")


def database_is_silent(place: str, words: str) -> Finding:
    return Finding("database", f"the map {place} does not answer ({words}); see whether another program holds it")


def ingest_is_silent(seconds: float) -> Finding:
    return Finding("database", f"the ingest has not reported for {seconds:,.0f} s; `sumi-ripple status` shows it")


def few_file_handles(name: str, used: int, limit: int) -> Finding:
    return Finding("file-handles", f"{name} has {used:,} of {limit:,} open files; raise the limit (ulimit -n)")


def little_memory(free: int) -> Finding:
    return Finding(
        "memory",
        f"only {free // (1024 * 1024):,} MiB of memory are free; end other programs or lower [crawler] workers",
    )


def nothing_to_ask(seconds: float, more: int) -> Finding:
    """`more`: pauses that may follow this one before the failures are believed."""
    again = f"in {seconds:,.0f} s and believed then"
    if more:
        again = f"every {seconds:,.0f} s, {more + 1} times at the most, and believed then"
    return Finding(
        "unknown",
        "requests fail, and no host has answered yet that could tell whether it is this machine's network; the visits "
        f"are made again {again}. Name a host that always answers in [resilience] probe",
    )
