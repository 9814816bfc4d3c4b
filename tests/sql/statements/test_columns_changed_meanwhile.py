"""Statements whose columns get other types while they run are conflicts, and can run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import CommitConflictError, SchemaMismatchError

import lance_sql


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("INSERT INTO t VALUES (3, 3)", "insert.write_dataset"),
        ("INSERT INTO t VALUES (3, 3) ON CONFLICT DO NOTHING", "changes.apply_changes"),
        (
            "MERGE INTO t USING (SELECT 3 AS id, 3 AS b) s ON t.id = s.id "
            "WHEN NOT MATCHED THEN INSERT (id, b) VALUES (s.id, s.b)",
            "changes.apply_changes",
        ),
    ],
)
def test_a_column_of_another_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, statement: str, place: str
) -> None:
    lance_sql.write(pa.table({"id": [1, 2], "b": [1, 2]}), tmp_path / "t.lance").add_key(["id"])
    session = lance_sql.connect(tmp_path, engine=engine)
    module, _, name = f"lance_sql.statements.{place}".rpartition(".")
    original = getattr(__import__(module, fromlist=[name]), name)

    def late(*given: Any, **options: Any) -> Any:
        monkeypatch.undo()
        lance_sql.open(tmp_path / "t.lance").alter_column("b", type=pa.float64())
        return original(*given, **options)

    monkeypatch.setattr(f"{module}.{name}", late)
    with pytest.raises(CommitConflictError, match="Another writer changed the columns") as caught:
        session.sql(statement)
    assert isinstance(caught.value.__cause__, SchemaMismatchError)
    assert session.sql("SELECT count(*) AS n FROM t").fetchall() == [(2,)]
    session.sql(statement)
    assert session.sql("SELECT b FROM t WHERE id = 3").fetchall() == [(3.0,)]
