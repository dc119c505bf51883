"""Maps of older formats, made from new ones: SQL that takes away what a format added."""

from __future__ import annotations

TO_FORMAT_7 = "ALTER TABLE pages DROP COLUMN links_print; UPDATE meta SET value = '7' WHERE name = 'schema_version';"
TO_FORMAT_6 = TO_FORMAT_7 + "DROP TABLE page_answers; UPDATE meta SET value = '6' WHERE name = 'schema_version';"
TO_FORMAT_5 = (
    TO_FORMAT_6 + "DROP VIEW IF EXISTS v_pages; DROP VIEW IF EXISTS v_links; DROP VIEW IF EXISTS v_domain_links;"
    "DROP TABLE page_facts; DROP TABLE page_fields;"
    "ALTER TABLE pages DROP COLUMN page_type; ALTER TABLE pages DROP COLUMN class; DROP TABLE cap_pages;"
    "DROP TABLE revisits; DROP TABLE lastmod_proofs;"
    "UPDATE meta SET value = '5' WHERE name = 'schema_version';"
)
TO_FORMAT_4 = (
    TO_FORMAT_5 + "DROP INDEX idx_frontier_domain; ALTER TABLE frontier DROP COLUMN turn;"
    "CREATE INDEX idx_frontier_domain ON frontier(domain_id, priority, id);"
    "ALTER TABLE domain_states DROP COLUMN cut_run; DROP TABLE breakers; DROP TABLE link_texts;"
    "ALTER TABLE pages DROP COLUMN truncated; ALTER TABLE pages DROP COLUMN validation;"
    "ALTER TABLE pages DROP COLUMN rejection_reason;"
    "ALTER TABLE pages DROP COLUMN text_print; ALTER TABLE pages DROP COLUMN origin;"
    "DROP TABLE sitemaps; DROP TABLE sitemap_entries; DROP TABLE next_pages; DROP TABLE pagination_rules;"
    "DROP TABLE list_pages; DROP TABLE guesses; DROP TABLE archive_rules; DROP TABLE archive_pages;"
    "UPDATE meta SET value = '4' WHERE name = 'schema_version';"
)
TO_FORMAT_3 = (
    TO_FORMAT_4
    + "DROP TABLE run_figures; DROP TABLE run_settings; UPDATE meta SET value = '3' WHERE name = 'schema_version';"
)
TO_FORMAT_2 = (
    TO_FORMAT_3
    + "DROP VIEW unsummed_links; DROP TABLE unsummed_visits; UPDATE meta SET value = '2' WHERE name = 'schema_version';"
)
