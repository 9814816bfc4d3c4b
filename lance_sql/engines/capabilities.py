"""The capabilities of an engine: code checks these instead of engine names."""

from __future__ import annotations

from typing import NamedTuple

from lance_sql.engines.messages import Messages


class Capabilities(NamedTuple):
    """The capabilities of the engine `name`.

    `runs_statements_side_by_side`: planned statements are unaffected by other statements and new names.
    `numbers_parameters`: ``?`` must be written ``$1``, ``$2`` ... `shares_names`: cursors share one name
    registry. `folds_names`: unquoted names are converted to lower case, otherwise they match in any case.
    `computes_statements`: it supports the SQL dialect in which statements compute values, describe queries
    and copy files; for other engines, a separate session does this. `has_procedures`: it has procedures of
    its own. `filters_joins`: its joins drop rows without a match early, as join keys in a scan do.
    `reads_tables_ahead`: some tables of a join are read before it begins, once for all of their scans.
    `groups_by_numbers`: it groups by numbers faster than by strings. `groups_by_codes`: but not faster than
    by one column of strings with a small dictionary. `backslash_escapes`: after a backslash,
    a character of a LIKE pattern has no special meaning.
    `messages`: how it words its errors. `unknown_column_remedy`: the hint in errors about unknown columns.
    """

    name: str
    runs_statements_side_by_side: bool
    numbers_parameters: bool
    shares_names: bool
    folds_names: bool
    computes_statements: bool
    has_procedures: bool
    filters_joins: bool
    reads_tables_ahead: bool
    groups_by_numbers: bool
    groups_by_codes: bool
    backslash_escapes: bool
    messages: Messages
    unknown_column_remedy: str
