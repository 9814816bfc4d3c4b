"""MERGE INTO: a single query determines which clause applies to each row, and the new values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from lance_engine.base import distinct_numbers
from lance_engine.errors import AmbiguousMergeError, ConstraintError, UnsupportedFeatureError
from lance_engine.operations import RowChanges
from lance_engine.scan import ROW_ADDRESS

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.defaults import default_of
from lance_sql.display.amounts import counted as amount
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError
from lance_sql.statements.changes import addresses, assignments, bind, commit, computed, with_addresses
from lance_sql.statements.clauses import refuse_unsupported_clauses
from lance_sql.statements.fitting import column_name
from lance_sql.statements.merge_source import MergeSource
from lance_sql.statements.outcome import check_returning, counted, returned
from lance_sql.statements.session import LENT, Rows, Session
from lance_sql.statements.targets import call_by_name, find, name_of
from lance_sql.syntax.scopes import conjuncts
from lance_sql.syntax.source import as_written, leave_out
from lance_sql.text.merges import MESSAGE, NO_MESSAGE
from lance_sql.text.tokens import quote
from lance_sql.types.casts import stored_value, unchanged_value
from lance_sql.types.declared import has_nanoseconds, has_wide_decimals
from lance_sql.types.duckdb_names import duckdb_types
from lance_sql.types.stored import stored_batches

if TYPE_CHECKING:
    from sqlglot import exp

# Columns of the query that belong neither to the dataset nor to the source.
_CLAUSE, PRESENT = "lance_sql_clause", "lance_sql_present"
_QUERY: Final = re.compile(r"\(\s*(?:FROM|SELECT|TABLE|VALUES|WITH)\b", re.IGNORECASE)
_SITUATIONS: Final = {
    "both": "WHEN MATCHED",
    "source": "WHEN NOT MATCHED",
    "target": "WHEN NOT MATCHED BY SOURCE",
}
#: The value of ``merge_action`` in RETURNING: ``INSERT``, ``UPDATE`` or ``DELETE``.
_ACTION = "merge_action"


@dataclass(frozen=True)
class Clause:
    """``WHEN situation [AND condition] THEN action``; `values` are expressions by column.

    `situation` is "both", "source" (no row of the dataset) or "target" (no row of the source); `action` is
    "update", "insert", "delete", "error" or "nothing". An error may have a `message`.
    """

    situation: str
    condition: str | None
    action: str
    values: dict[str, str]
    message: str | None = None


def merge(
    session: Session,
    statement: exp.Merge,
    params: Parameters,
    matched_by: Sequence[str],
    *,
    prepares: bool = False,
) -> pa.Table | Rows | None:
    """``MERGE INTO t USING source ON condition | USING (columns) WHEN ... THEN ... [RETURNING ...]``.

    `matched_by` has NAME or POSITION for each clause whose action is BY one of them. With `prepares`, the
    statement is only checked.
    """
    dataset = find(session.catalog, statement.this)
    if dataset is None:
        return None
    refuse_unsupported_clauses(statement)
    call_by_name(statement, statement.this)
    returning = statement.args.get("returning")
    if returning is not None:
        nothing = _with_actions(dataset.storage_schema.empty_table(), [])
        if nothing.num_columns > len(dataset.storage_schema):
            for part in returning.expressions:
                leave_out(part, _ACTION)
        check_returning(session, returning, nothing, name_of(statement.this))
    schema = dataset.storage_schema
    source = MergeSource(session, statement, dataset, params)
    clauses = [
        _clause(when, schema, source, name_of(statement.this), by)
        for when, by in zip(statement.args["whens"].expressions, matched_by, strict=True)
    ]
    text = source.before + clause_query(
        quote(name_of(statement.this)),
        f"({source.text} CROSS JOIN (SELECT true AS {PRESENT}))",
        _condition(statement),
        schema,
        clauses,
        shown=returning is not None,
    )
    if prepares:
        bind(session, dataset, text, params)
        return None
    keys = _matched_columns(statement, schema)

    @contextmanager
    def rows_of(target: SqlDataset) -> Iterator[tuple[RowChanges, dict[str, pa.Table]]]:
        rows = computed(session, target, text, params)
        _raise_error(rows, clauses)
        yield chosen_changes(rows, schema, clauses, keys)

    def answer(by_action: dict[str, pa.Table]) -> pa.Table | Rows:
        if returning is None:
            return counted(sum(rows.num_rows for rows in by_action.values()))
        actions = [pa.repeat(action.upper(), rows.num_rows) for action, rows in by_action.items()]
        changed = _with_actions(changed_rows(by_action, schema), actions)
        return returned(session, returning, changed, name_of(statement.this))

    return commit(session, dataset, rows_of, answer)


def chosen_changes(
    rows: pa.Table, schema: pa.Schema, clauses: Sequence[Clause], matched_by: Sequence[str]
) -> tuple[RowChanges, dict[str, pa.Table]]:
    """The changes for the rows of a `clause_query`, and these rows by action.

    `matched_by` are columns that are equal in all rows that match, if known.
    """
    numbers = rows.column(_CLAUSE)
    by_clause = [rows.filter(pc.equal(numbers, number)) for number in range(len(clauses))]
    by_action = {
        action: pa.concat_tables(
            [
                rows.slice(0, 0),
                *(chosen for chosen, one in zip(by_clause, clauses, strict=True) if one.action == action),
            ]
        )
        for action in ("update", "insert", "delete")
    }
    _check_once(pa.concat_tables([by_action["update"], by_action["delete"]]))
    replaced = [
        _values(batch, schema, clause.values)
        for chosen, clause in zip(by_clause, clauses, strict=True)
        if clause.action == "update"
        for batch in chosen.to_batches()
    ]
    added = list(stored_batches(by_action["insert"].select(schema.names).to_batches(), schema))
    changes = RowChanges(
        distinct_numbers(addresses(by_action["delete"])),
        replaced,
        added,
        inserts_keys=by_action["insert"].num_rows > 0,
        matched_by=matched_by,
    )
    return changes, by_action


def _raise_error(rows: pa.Table, clauses: Sequence[Clause]) -> None:
    """ConstraintError for the first row to which an ERROR applies."""
    errors = [number for number, clause in enumerate(clauses) if clause.action == "error"]
    numbers = rows.column(_CLAUSE).to_pylist() if errors else []
    place = next((place for place, number in enumerate(numbers) if number in errors), None)
    if place is None:
        return
    clause = clauses[numbers[place]]
    told = ""
    if clause.message is not None:
        message = rows.column(MESSAGE)[place].as_py()
        told = f": {'NULL' if message is None else message}"
    raise ConstraintError(
        f"The ERROR of {_SITUATIONS[clause.situation]} applies{told}",
        remedy="Nothing was changed. Correct the source, or the conditions of the clauses",
    )


def changed_rows(by_action: dict[str, pa.Table], schema: pa.Schema) -> pa.Table:
    """The rows of all actions, as they are stored."""
    batches = [
        batch
        for rows in by_action.values()
        for batch in stored_batches(rows.select(schema.names).to_batches(), schema)
    ]
    return pa.Table.from_batches(batches, schema=schema)


def _values(batch: pa.RecordBatch, schema: pa.Schema, columns: Iterable[str]) -> pa.RecordBatch:
    """The addresses of rows and their new values of some columns."""
    names = list(columns)
    changed = pa.schema([schema.field(name) for name in names])
    [rows] = stored_batches([batch.select(names)], changed)
    return with_addresses(batch.column(ROW_ADDRESS), rows)


def _with_actions(rows: pa.Table, actions: list[pa.Array]) -> pa.Table:
    """`rows` with the action applied to each, unless they have a column of that name."""
    if _ACTION in (name.lower() for name in rows.column_names):
        return rows
    return rows.append_column(_ACTION, pa.chunked_array(actions, pa.string()))


def _check_once(touched: pa.Table) -> None:
    touched_addresses = addresses(touched)
    if len(distinct_numbers(touched_addresses)) < len(touched_addresses):
        raise AmbiguousMergeError(
            "Several source rows match the same row of the dataset",
            remedy="Deduplicate the source by key, for example with QUALIFY row_number() OVER (...) = 1",
        )


def _whole_rows(source: MergeSource, schema: pa.Schema, by: str) -> dict[str, str]:
    """The values of UPDATE and INSERT of all columns: those of the source, ``BY NAME`` or ``BY POSITION``.

    Otherwise DuckDB matches by position, and other databases by name: only statements where both agree are
    run, and those where only positions say what is meant.
    """
    offered = list(source.columns)
    given, known = [name.lower() for name in offered], [name.lower() for name in schema.names]
    if by == "POSITION":
        if len(given) != len(known):
            raise SqlError(
                f"The source has {amount(len(given), 'column')}, and the dataset {len(known)}",
                remedy="List the columns and their values, as in INSERT (a) VALUES (s.a)",
            )
        return dict(zip(schema.names, source.columns.values(), strict=True))
    if by != "NAME" and given != known:
        if sorted(given) == sorted(known):
            raise SqlError(
                "The source has the columns of the dataset in another order",
                remedy="Write INSERT BY NAME and UPDATE BY NAME, or BY POSITION, or list the columns",
            )
        if len(given) == len(known) and all(
            one == other or one not in known for one, other in zip(given, known, strict=True)
        ):
            return dict(zip(schema.names, source.columns.values(), strict=True))
    return {column_name(schema, name): text for name, text in source.columns.items()}


def _clause(when: exp.When, schema: pa.Schema, source: MergeSource, owner: str, by: str) -> Clause:
    from sqlglot import exp

    situation = "both" if when.args["matched"] else ("target" if when.args.get("source") else "source")
    condition = when.args.get("condition")
    then = when.args["then"]
    source.scope(situation, [*([] if condition is None else [condition]), *_values_of(then)])
    text = as_written(condition) if condition is not None else None
    if isinstance(then, exp.Var):
        action = {"DELETE": "delete", "DO NOTHING": "nothing"}.get(then.name.upper())
        if action is None:
            raise UnsupportedFeatureError(f"Unsupported MERGE action {then.name}")
        return Clause(situation, text, action, {})
    if isinstance(then, exp.Delete):
        return Clause(situation, text, "delete", {})
    if isinstance(then, exp.Update):
        given = then.expressions or [exp.Star()]
        assigned = given[0].this.name if isinstance(given[0], exp.EQ) else ""
        if assigned in (MESSAGE, NO_MESSAGE):
            message = as_written(given[0].expression) if assigned == MESSAGE else None
            return Clause(situation, text, "error", {}, message)
        if isinstance(given[0], exp.Star):
            values = _whole_rows(source, schema, by)
        else:
            values = assignments(schema, given, owner)
        return Clause(situation, text, "update", values)
    if situation != "source":
        raise SqlError("INSERT is only allowed in WHEN NOT MATCHED")
    return Clause(situation, text, "insert", _inserted(then, schema, source, by))


def _values_of(then: exp.Expression) -> list[exp.Expression]:
    """The expressions of an action, without the names of columns that get their values."""
    from sqlglot import exp

    if isinstance(then, exp.Update):
        return [part.expression for part in then.expressions if isinstance(part, exp.EQ)]
    values = then.args.get("expression") if isinstance(then, exp.Insert) else None
    return list(values.expressions) if isinstance(values, exp.Tuple) else [values] if values else []


def _inserted(then: exp.Insert, schema: pa.Schema, source: MergeSource, by: str) -> dict[str, str]:
    from sqlglot import exp

    columns, values = then.this, then.args.get("expression")
    if not values:
        if isinstance(columns, exp.Tuple):
            if columns.sql(dialect="duckdb").upper() == '("DEFAULT")':  # parsed INSERT DEFAULT VALUES
                return {}
            raise SqlError("INSERT lists columns but no VALUES")
        return _whole_rows(source, schema, by)
    names = [column_name(schema, part.name) for part in columns.expressions] if columns else schema.names
    expressions = values.expressions if isinstance(values, exp.Tuple) else [values]
    if len(names) != len(expressions):
        raise SqlError(f"Got {amount(len(expressions), 'value')} for {amount(len(names), 'column')}")
    return {
        name: default_of(schema.field(name)) or "NULL" if _is_default(value) else as_written(value)
        for name, value in zip(names, expressions, strict=True)
    }


def _is_default(value: exp.Expression) -> bool:
    from sqlglot import exp

    return isinstance(value, exp.Column | exp.Var) and as_written(value).upper() == "DEFAULT"


def clause_query(
    target: str,
    source: str,
    condition: str,
    schema: pa.Schema,
    clauses: Sequence[Clause],
    *,
    shown: bool,
) -> str:
    """Address, clause and new values of every row to which a clause applies.

    Values that no clause sets are not stored: `shown` if they must be right nevertheless.
    `target` is the name of the dataset in expressions; `source` the text of the other table, with a column
    that is true (`PRESENT`); and `condition` begins with ON or USING.
    """
    tests = {
        "both": f"{target}.{ROW_ADDRESS} IS NOT NULL AND {PRESENT}",
        "source": f"{target}.{ROW_ADDRESS} IS NULL",
        "target": f"{PRESENT} IS NULL",
    }
    choice = "".join(
        f" WHEN {tests[clause.situation]}"
        + (f" AND ({clause.condition})" if clause.condition is not None else "")
        + f" THEN {number}"
        for number, clause in enumerate(clauses)
    )
    chosen = f"CASE{choice} END"
    # DuckDB does not let other columns refer to one with a subquery.
    named = chosen if any(_has_query(clause.condition) for clause in clauses) else _CLAUSE
    columns = []
    for field, kind in zip(schema, duckdb_types(schema), strict=True):
        is_wide = has_wide_decimals(field.type)
        cases = ""
        for number, clause in enumerate(clauses):
            value = clause.values.get(field.name)
            if value is None and clause.action == "insert":
                value = default_of(field) or "NULL"
            if value is not None:
                cast = stored_value(value, field) if is_wide else f"CAST({value} AS {kind})"
                cases += f" WHEN {number} THEN {cast}"
        own = f"{target}.{quote(field.name)}"
        if has_nanoseconds(field.type) and not shown:
            own = f"CAST(NULL AS {kind})"  # DuckDB may not read it
        own = unchanged_value(own, field) if is_wide else own
        value = f"CASE {named}{cases} ELSE {own} END" if cases else own
        value = value if is_wide else stored_value(value, field)
        columns.append(f"{value} AS {quote(field.name)}")
    messages = "".join(
        f" WHEN {number} THEN CAST({clause.message} AS VARCHAR)"
        for number, clause in enumerate(clauses)
        if clause.message is not None
    )
    if messages:
        columns.append(f"CASE {named}{messages} END AS {MESSAGE}")
    situations = {clause.situation for clause in clauses}
    join = {
        (False, False): "JOIN",
        (True, False): "RIGHT JOIN",
        (False, True): "LEFT JOIN",
        (True, True): "FULL JOIN",
    }["source" in situations, "target" in situations]
    return (
        f"SELECT {target}.{ROW_ADDRESS}, {chosen} AS {_CLAUSE}, "
        f"{', '.join(columns)} FROM {LENT} AS {target} "
        f"{join} {source} {condition} WHERE {named} IS NOT NULL"
    )


def _has_query(condition: str | None) -> bool:
    return condition is not None and _QUERY.search(condition) is not None


def _matched_columns(statement: exp.Merge, schema: pa.Schema) -> list[str]:
    """Columns of the dataset that equal a column of the source, in every pair of rows that match."""
    from sqlglot import exp

    target = name_of(statement.this).lower()
    equal = [key.name for key in statement.args.get("using_cond") or ()]
    for part in conjuncts(statement.args.get("on") or None):
        sides = [part.this.unnest(), part.expression.unnest()] if isinstance(part, exp.EQ) else []
        if all(isinstance(side, exp.Column) and len(side.parts) == 2 for side in sides):
            owners = {side.table.lower(): side.name for side in sides}
            if len(owners) == 2 and target in owners:
                equal.append(owners[target])
    known = {name.lower(): name for name in schema.names}
    return [known[name.lower()] for name in equal if name.lower() in known]


def _condition(statement: exp.Merge) -> str:
    keys = statement.args.get("using_cond")
    if keys:
        return f"USING ({', '.join(quote(key.name) for key in keys)})"
    if not statement.args["on"]:
        raise SqlError("MERGE needs a condition", remedy="Write USING source ON t.id = source.id")
    return f"ON {as_written(statement.args['on'])}"
