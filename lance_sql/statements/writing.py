"""Writes the rows of a query to datasets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import pyarrow as pa
from lance_engine.errors import CommitConflictError, DatasetExistsError, SchemaMismatchError
from lance_engine.operations import latest
from lance_engine.write import write_dataset

from lance_sql.catalog.dataset import SqlDataset
from lance_sql.catalog.transaction import Mode
from lance_sql.engines.base import Parameters
from lance_sql.errors import SqlError
from lance_sql.statements.outcome import Counter, counted
from lance_sql.statements.session import Session
from lance_sql.statements.types import stored_query
from lance_sql.text.statement import Statement
from lance_sql.types.stored import in_type

if TYPE_CHECKING:
    from sqlglot import exp


def _yes(text: str) -> bool:
    return text.lower() not in ("false", "off", "no", "0")


#: Metadata of fields with constraints and defaults.
_RULES: Final = (b"lance-schema:unenforced-", b"lance-sql:")

#: Options of ``WITH (...)`` and COPY, and how their values are parsed.
_OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "data_storage_version": str,
    "max_bytes_per_file": int,
    "max_rows_per_file": int,
    "profile": str,
    "zone_maps": _yes,
    "zone_rows": int,
}


def write_options(given: Mapping[str, exp.Expression]) -> dict[str, Any]:
    """The options of `write_dataset` among `given`; SqlError for unknown options."""
    options = {}
    for name, value in given.items():
        text = _as_text(value)
        # An option of DuckDB's lance extension. Here a dataset without rows is always written.
        if name.lower() == "write_empty_file" and _yes(text):
            continue
        convert = _OPTIONS.get(name.lower())
        if convert is None:
            raise SqlError(f"Unknown option {name}", remedy=f"Choose from {', '.join(sorted(_OPTIONS))}")
        try:
            options[name.lower()] = convert(text)
        except ValueError:
            raise SqlError(f"Invalid value {text!r} for the option {name}") from None
    return options


def _as_text(value: exp.Expression | None) -> str:
    """The value of an option: a word, a string, a number with its sign, or true and false."""
    from sqlglot import exp

    if value is None:
        return "true"
    is_word = isinstance(value, exp.Literal | exp.Var | exp.Column)
    return str(value.name if is_word else value.sql(dialect="duckdb"))


def write_query(
    session: Session, query: str, location: str, mode: str, params: Parameters, options: Mapping[str, Any]
) -> pa.Table:
    """Write the rows of `query` to the dataset at `location`, as one version."""
    if mode not in ("create", "append", "overwrite"):
        raise SqlError(f"Unknown mode {mode}", remedy="Choose from create, append, overwrite")
    counter = Counter()
    text, schema = stored_query(session, query, params)
    selected = session.select(text, params).reader()
    rows = _declared(counter.through(_without_qualifiers(selected, query)), schema)
    write_rows(session, rows, location, cast(Mode, mode), options)
    return counted(counter.rows)


def _without_qualifiers(rows: pa.RecordBatchReader, query: str) -> pa.RecordBatchReader:
    """The rows under names without those of tables: DataFusion calls a column ``t.id + Int64(1)``.

    Columns of datasets have no dots in their names. Names that the query gives are kept, and refused later.
    """
    if not any("." in name for name in rows.schema.names):
        return rows
    words = {token.value for token in Statement(query).tokens if token.kind in ("word", "quoted", "string")}
    qualifier = re.compile(
        "|".join(rf"(?<!\w){re.escape(word)}\." for word in sorted(words, key=len, reverse=True))
    )
    schema = pa.schema(
        [
            field if field.name in words else field.with_name(qualifier.sub("", field.name))
            for field in rows.schema
        ]
    )
    return pa.RecordBatchReader.from_batches(schema, (batch.rename_columns(schema.names) for batch in rows))


def _declared(rows: pa.RecordBatchReader, schema: pa.Schema | None) -> pa.RecordBatchReader:
    """The rows with nullable columns, in the types of `schema` if there is one.

    A query result without nulls does not mean that the table cannot contain nulls, and its columns have no
    keys and defaults of the table that they come from.
    """
    given = schema or rows.schema
    named = zip(given, _numbered(given.names), strict=True)
    stored = pa.schema([_without_rules(field.with_name(name).with_nullable(True)) for field, name in named])

    def declared() -> Iterator[pa.RecordBatch]:
        for batch in rows:
            arrays = [in_type(array, field.type) for array, field in zip(batch.columns, stored, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=stored)

    return pa.RecordBatchReader.from_batches(stored, declared())


def _without_rules(field: pa.Field) -> pa.Field:
    metadata = field.metadata or {}
    return field.with_metadata({key: metadata[key] for key in metadata if not key.startswith(_RULES)})


def _numbered(names: Sequence[str]) -> list[str]:
    """Names that occur only once, as DuckDB chooses them: ``a``, ``a_1``, ``A_2``."""
    taken: dict[str, int] = {}
    numbered = []
    for name in names:
        chosen = name
        while chosen.lower() in taken:
            chosen = f"{name}_{taken[name.lower()]}"
            taken[name.lower()] += 1
        taken[chosen.lower()] = 1
        numbered.append(chosen)
    return numbered


@contextmanager
def with_columns_of(dataset: SqlDataset) -> Iterator[None]:
    """In the block, rows that do not fit because another writer changed the columns are a conflict.

    A statement casts its rows to the types that the columns had when it began.
    """
    try:
        yield
    except SchemaMismatchError as error:
        newest = latest(dataset.snapshot)
        if newest.schema == dataset.snapshot.schema:
            raise
        raise CommitConflictError(
            f"Another writer changed the columns while the statement ran: {error.message}",
            path=dataset.uri,
            version=newest.version,
            remedy="Run the statement again",
        ) from error


@contextmanager
def remedy_if_exists(remedy: str) -> Iterator[None]:
    """In the block, the error for a dataset that exists has this remedy."""
    try:
        yield
    except DatasetExistsError as error:
        error.remedy = remedy
        raise


def write_rows(session: Session, rows: Any, location: str, mode: Mode, options: Mapping[str, Any]) -> None:
    """Write Arrow rows to the dataset at `location`, as one version."""
    storage_options = session.catalog.options_of(location)
    with session.catalog.writing(location, mode) as (target, mode):
        written = write_dataset(rows, target, mode, storage_options=storage_options, **options)
        session.catalog.renew(SqlDataset(written))
