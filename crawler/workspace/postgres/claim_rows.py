"""Claims of domains: a column of the gates' rows. Many are taken, or given back, by one durable statement."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress

from crawler.engine.packed_arrays import texts
from crawler.workspace.postgres.engine_session import Connection, EngineSession, Fenced, Gone, durably

# Rows that somebody holds are passed over without a lock: their holder's requests would wait until this is durable.
# Always in the same order, so that two who claim the same domains do not wait for each other. What this process holds
# and does not know of was claimed when the answer was lost.
_CLAIM = """
INSERT INTO gates (domain, holder, token, used_us)
SELECT a.domain, %(me)s, 1, clock_us() FROM unnest(%(domains)s::text[]) AS a(domain)
WHERE NOT EXISTS (SELECT FROM gates g WHERE g.domain = a.domain AND g.holder <> %(me)s)
ORDER BY a.domain
ON CONFLICT (domain) DO UPDATE SET holder = excluded.holder, token = gates.token + 1, version = gates.version + 1
WHERE gates.holder IS NULL OR gates.holder = excluded.holder
RETURNING domain, token
"""
_RELEASE = """
UPDATE gates SET holder = NULL, version = version + 1 WHERE domain = ANY(%(domains)s) AND holder = %(me)s
"""


class ClaimRow:
    """See `crawler.workspace.door.Claim`."""

    __slots__ = ("_session", "domain", "is_held", "token")

    def __init__(self, session: EngineSession, domain: str, token: int) -> None:
        self._session = session
        self.domain = domain
        self.is_held = True
        self.token = token

    def release(self) -> None:
        release_claims(self._session, [self])


def claim_domains(connection: Connection, session: EngineSession, me: int, domains: Collection[str]) -> dict[str, int]:
    """Claim those that are free, or whose holder is dead; returns their tokens."""
    tokens: dict[str, int] = {}
    wanted = sorted(set(domains) - session.claimed)
    for _ in range(2):
        if not wanted:
            break
        tokens |= dict(durably(connection, _CLAIM, {"me": me, "domains": texts(wanted)}))
        left = [domain for domain in wanted if domain not in tokens]
        rows = connection.execute(
            "SELECT domain, holder FROM gates WHERE domain = ANY(%s) AND holder IS NOT NULL", (texts(left),)
        ).fetchall()
        holders = {holder for _, holder in rows}
        dead = {holder for holder in holders if session.free_of_dead(connection, holder)}
        wanted = [domain for domain, holder in rows if holder in dead]
    session.claimed |= tokens.keys()
    return tokens


def release_claims(session: EngineSession, claims: Collection[ClaimRow]) -> None:
    """Give these back, durably. Claims that are not held any more are passed over."""
    held = [claim for claim in claims if claim.is_held]
    for claim in held:
        claim.is_held = False
        session.claimed.discard(claim.domain)
    if held:
        values = {"domains": texts(sorted(claim.domain for claim in held)), "me": session.holder}
        with suppress(Fenced, Gone):  # then they are free already, or others will find out
            session.execute(_RELEASE, values, is_durable=True)
