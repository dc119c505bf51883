"""PostgreSQL, for crawls on more than one machine: the connection, and the schemas in it.

`[engine] url` names a database. `engine_connection` opens it: encrypted off this machine, with one sentence where that
fails, and no password in any of them. `schemas` makes and checks the schemas: one for each concern, each with its own
version. Statements stand where their concern is.
"""
