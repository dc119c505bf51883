"""Soft 404s by likeness: pages that show what the domain shows for missing ones.

Which of the two is visited first is chance, so this is decided when all visits of a run are applied: with its end. It
is a function of the recorded prints (`crawler.visit.validation.text_print`), and a replay decides the same. The links
of such a page have been followed by then, as those of any good page. Guesses are made when all visits are applied, too,
and end with such a page (`crawler.schedule.page_guesses`).
"""

from __future__ import annotations

from crawler.database.missing_prints import MISSING_PRINTS
from crawler.model.validity import SOFT_404, Validity
from ingest.writing.engine import MapConnection

_REASON = f"{SOFT_404}: it shows what the domain shows for missing pages"
_ANY_MISSING = "SELECT 1 FROM pages WHERE visited_run = ? AND state = 'dead_link' AND text_print IS NOT NULL LIMIT 1"
_LIKE_A_404 = f"""
WITH missing AS MATERIALIZED ({MISSING_PRINTS})
UPDATE pages SET validation = ?2, rejection_reason = ?3
WHERE visited_run = ?1 AND validation = 'ok' AND text_print IS NOT NULL
  AND (domain_id, text_print) IN (SELECT domain_id, text_print FROM missing)
"""


def reject_soft_404s(db: MapConnection, run: int) -> None:
    """Mark the good pages of a run that show what a missing page of their domain showed in the same run."""
    if db.execute(_ANY_MISSING, (run,)).fetchone() is None:
        return
    db.execute(  # a run that was finished, resumed and finished again is judged anew
        "UPDATE pages SET validation = ?, rejection_reason = NULL WHERE visited_run = ? AND rejection_reason = ?",
        (Validity.OK.value, run, _REASON),
    )
    db.execute(_LIKE_A_404, (run, Validity.SOFT.value, _REASON))
