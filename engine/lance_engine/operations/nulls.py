"""Whether a column may become NOT NULL."""

from __future__ import annotations

from lance_engine.errors import SchemaMismatchError, UnsupportedFeatureError
from lance_engine.expr import build
from lance_engine.progress import Reporter
from lance_engine.scan.partial import scan
from lance_engine.table.snapshot import Snapshot


def require_no_nulls(snapshot: Snapshot, column: str, reporter: Reporter) -> None:
    if column not in snapshot.schema.names:
        raise UnsupportedFeatureError("A struct field cannot be made non-nullable", column=column)
    reporter.begin("looking for nulls")
    nulls = scan(snapshot, [], build.is_null(build.column(snapshot.schema.to_arrow(), [column]))).count()
    reporter.end()
    if nulls:
        raise SchemaMismatchError(
            f"Cannot make the column non-nullable: {nulls} rows are null",
            column=column,
            remedy="Update or delete those rows first",
        )
