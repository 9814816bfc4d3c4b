"""PRIMARY KEY, UNIQUE and CHECK, in CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.operations import add_check, add_key, drop_constraint
from lance_engine.table import Check, Constraints, Key, constraints_of

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.errors import SqlError
from lance_sql.statements.fitting import column_name
from lance_sql.statements.outcome import done
from lance_sql.statements.session import Session
from lance_sql.statements.targets import find_named
from lance_sql.syntax.source import as_written
from lance_sql.text.statement import Statement
from lance_sql.text.tokens import Token, closing

if TYPE_CHECKING:
    from lance_engine.table import Snapshot
    from sqlglot import exp

_Change: TypeAlias = Callable[[SqlDataset], SqlDataset]


def _at(dataset: SqlDataset, snapshot: Snapshot) -> SqlDataset:
    return type(dataset)(snapshot)


def declared_constraints(parts: Sequence[exp.Expression], schema: pa.Schema) -> Constraints:
    """The keys and conditions among the parts of ``CREATE TABLE t (...)``, whose columns are `schema`."""
    keys: list[Key] = []
    checks: list[Check] = []
    names: set[str] = set()

    def named(name: str | None, default: str) -> str:
        free = name or default
        number = 0
        while free.lower() in names:
            number += 1
            free = f"{name or default}{number}"
        names.add(free.lower())
        return free

    for name, columns, node in _constraints(parts):
        kind = type(node).__name__
        if kind == "CheckColumnConstraint":
            used = dict.fromkeys(column_name(schema, column) for column in _columns(node))
            condition = as_written(node.this)
            checks.append(Check(named(name, "_".join([*used, "check"])), condition))
            continue
        members = tuple(column_name(schema, column) for column in columns)
        is_primary = kind in ("PrimaryKey", "PrimaryKeyColumnConstraint")
        suffix = "pkey" if is_primary else "key"
        keys.append(Key(named(name, "_".join([*members, suffix])), members, (), is_primary))
    return Constraints(tuple(keys), tuple(checks))


def _constraints(
    parts: Sequence[exp.Expression],
) -> Iterator[tuple[str | None, list[str], exp.Expression]]:
    """The name, the columns and the tree of each constraint."""
    from sqlglot import exp

    for part in parts:
        if isinstance(part, exp.ColumnDef):
            for constraint in part.args.get("constraints") or ():
                if isinstance(
                    constraint.kind,
                    exp.PrimaryKeyColumnConstraint | exp.UniqueColumnConstraint | exp.CheckColumnConstraint,
                ):
                    named = constraint.this
                    yield (named.name if named is not None else None), [part.name], constraint.kind
            continue
        named = part.this.name if isinstance(part, exp.Constraint) else None
        for node in part.expressions if isinstance(part, exp.Constraint) else [part]:
            if isinstance(node, exp.PrimaryKey):
                yield named, [_name(column) for column in node.expressions], node
            elif isinstance(node, exp.UniqueColumnConstraint):
                yield named, [_name(column) for column in node.this.expressions], node
            elif isinstance(node, exp.CheckColumnConstraint):
                yield named, [], node


def _name(column: exp.Expression) -> str:
    from sqlglot import exp

    identifier = column.find(exp.Identifier)
    return str(identifier.name if identifier is not None else column.name)


def _columns(node: exp.Expression) -> list[str]:
    from sqlglot import exp

    return [column.name for column in node.find_all(exp.Column)]


def alter_constraints(session: Session, statement: Statement) -> pa.Table | None:
    """``ALTER TABLE t ADD [CONSTRAINT c] PRIMARY KEY | UNIQUE (a, b) | CHECK (condition)``,
    ``DROP PRIMARY KEY``, ``DROP CONSTRAINT c`` and ``SET | UNSET UNENFORCED PRIMARY KEY``.

    None for another change, or a table of the engine.
    """
    tokens = [token for token in statement.tokens if token.text != ";"]
    words = [token.upper for token in tokens]
    if words[:2] != ["ALTER", "TABLE"]:
        return None
    start = 4 if words[2:4] == ["IF", "EXISTS"] else 2
    end = start + 1
    while end + 1 < len(tokens) and tokens[end].text == ".":
        end += 2
    change = _change(statement.original, tokens[end:])
    if change is None:
        return None
    names = tokens[start:end:2]
    name = ".".join(token.value for token in names)
    quoted = len(names) == 1 and names[0].kind != "word"
    dataset = find_named(session.catalog, name, quoted=quoted, must_exist=start == 2)
    if dataset is None:
        return None
    session.catalog.renew(change(dataset))
    return done()


def _change(text: str, tokens: Sequence[Token]) -> _Change | None:
    """What a statement does with the constraints of a table, by the tokens after its name."""
    words = [token.upper for token in tokens]
    match words:
        case ["ADD", "CONSTRAINT", _, *_]:
            return _addition(text, tokens[3:], tokens[2].value)
        case ["ADD", *_]:
            return _addition(text, tokens[1:], None)
        case ["SET", "UNENFORCED", "PRIMARY", "KEY", "(", *_]:
            columns = _names(tokens[4:])
            return lambda dataset: _with_key(dataset, columns, is_primary=True, is_enforced=False)
        case ["DROP", "PRIMARY", "KEY"] | ["UNSET", "UNENFORCED", "PRIMARY", "KEY"]:
            return lambda dataset: _at(dataset, drop_constraint(dataset.snapshot, None))
        case ["DROP", "CONSTRAINT", "IF", "EXISTS", _, *rest]:
            _no_more(rest)
            return lambda dataset: _dropped(dataset, tokens[4].value, must_exist=False)
        case ["DROP", "CONSTRAINT", _, *rest]:
            _no_more(rest)
            return lambda dataset: _dropped(dataset, tokens[2].value, must_exist=True)
    return None


def _no_more(words: Sequence[str]) -> None:
    if list(words) not in ([], ["CASCADE"], ["RESTRICT"]):
        raise UnsupportedFeatureError(
            "These changes cannot be combined in one commit",
            remedy="Use one ALTER TABLE statement for each change",
        )


def _addition(text: str, tokens: Sequence[Token], name: str | None) -> _Change | None:
    match [token.upper for token in tokens]:
        case ["PRIMARY", "KEY", "(", *_]:
            columns = _names(tokens[2:])
            return lambda dataset: _with_key(dataset, columns, is_primary=True, name=name)
        case ["UNIQUE", "(", *_]:
            columns = _names(tokens[1:])
            return lambda dataset: _with_key(dataset, columns, name=name)
        case ["CHECK", "(", *_]:
            end = _closing(tokens, 1)
            condition = text[tokens[1].end : tokens[end].start].strip()
            return lambda dataset: _at(dataset, add_check(dataset.snapshot, condition, name))
    return None


def _closing(tokens: Sequence[Token], start: int) -> int:
    end = closing(list(tokens), start)
    if end is None:
        raise SqlError("A closing parenthesis is missing")
    _no_more([token.upper for token in tokens[end + 1 :]])
    return end


def _names(tokens: Sequence[Token]) -> list[str]:
    """The names in ``(a, b)``, which ends the statement."""
    inside = tokens[1 : _closing(tokens, 0)]
    if any(token.text != "," for token in inside[1::2]) or len(inside) % 2 == 0:
        raise SqlError("A key is a list of columns", remedy="Write for example PRIMARY KEY (a, b)")
    return [token.value for token in inside[::2]]


def _with_key(
    dataset: SqlDataset,
    columns: list[str],
    *,
    is_primary: bool = False,
    is_enforced: bool = True,
    name: str | None = None,
) -> SqlDataset:
    members = [column_name(dataset.storage_schema, column) for column in columns]
    changed = add_key(dataset.snapshot, members, is_primary=is_primary, is_enforced=is_enforced, name=name)
    return _at(dataset, changed)


def _dropped(dataset: SqlDataset, name: str, *, must_exist: bool) -> SqlDataset:
    known = constraints_of(dataset.snapshot.schema).names
    name = next((one for one in known if one.lower() == name.lower()), name)
    if name not in known and not must_exist:
        return dataset
    return _at(dataset, drop_constraint(dataset.snapshot, name))
