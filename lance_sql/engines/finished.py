"""The result of a completed statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from lance_sql.engines.statement_run import StatementRun


class Finished:
    """The result of a completed statement, as an engine query."""

    def __init__(self, answer: pa.Table, kinds: Sequence[Any] = ()) -> None:
        self._answer = answer
        self._kinds = kinds

    def schema(self) -> pa.Schema:
        return self._answer.schema

    def to_table(self, run: StatementRun) -> pa.Table:
        return self._answer

    def kinds(self) -> Sequence[Any]:
        return self._kinds

    def stream(self, run: StatementRun) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        return self._answer.schema, iter(self._answer.to_batches())
