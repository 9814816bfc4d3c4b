"""What an engine can do: what is asked of it instead of its name."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What tells the engine `name` from others.

    `runs_statements_side_by_side`: a planned statement runs as it was planned, whatever other statements and
    names come in between. `numbers_parameters`: ``?`` must be written ``$1``, ``$2`` ... `shares_names`:
    cursors look names up in the same place. `folds_names`: names without quotes are read in lower case, else
    in any case. `computes_statements`: it speaks the SQL in which statements compute values, describe queries
    and copy files; others leave that to a separate session. `has_procedures`: it knows procedures of its
    own. `filters_joins`: its joins find rows without a match before they look for one, as keys in a scan do.
    `unknown_column_remedy`: what to do about a column that it does not find.
    """

    name: str
    runs_statements_side_by_side: bool
    numbers_parameters: bool
    shares_names: bool
    folds_names: bool
    computes_statements: bool
    has_procedures: bool
    filters_joins: bool
    unknown_column_remedy: str
