"""PURE. What the map's statements need in a schema of PostgreSQL beside its tables: SQLite has it built in.

Numbers that SQLite takes for conditions, and conditions that it adds up, are not among them: `dialect` says what
statements have to keep to.
"""

from __future__ import annotations

FUNCTIONS = """
CREATE FUNCTION numbers_in(list text) RETURNS TABLE(key bigint, value bigint) LANGUAGE sql STABLE ROWS 200 AS
$$ SELECT place - 1, number FROM unnest(translate(list, '[]', '{}')::bigint[]) WITH ORDINALITY AS found(number, place)
$$;
CREATE FUNCTION texts_in(list text) RETURNS TABLE(key bigint, value text) LANGUAGE sql STABLE ROWS 20 AS
$$ SELECT place - 1, word COLLATE "C" FROM json_array_elements_text(list::json) WITH ORDINALITY AS found(word, place)
$$;
"""
