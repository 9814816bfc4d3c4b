"""An error in one run of a statement does not affect later runs or other statements."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from lance_engine.errors import ColumnNotFoundError, CorruptFileError, LanceError

import lance_sql
from lance_sql.engines.statement_run import Runs, StatementRun


@pytest.fixture
def damaged(tmp_path):
    """A dataset of several fragments whose files are gone but for the first."""
    uri = tmp_path / "damaged.lance"
    rows = pa.table({"a": range(70_000)})
    lance_sql.write(rows, uri)
    (first,) = (uri / "data").iterdir()
    for _ in range(5):
        lance_sql.write(rows, uri, mode="append")
    for file in (uri / "data").iterdir():
        if file != first:
            file.unlink()
    return str(uri)


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_an_error_of_one_statement_does_not_mask_that_of_the_next(damaged, engine):
    """Several scans of a statement may fail, also behind the rows that it needs."""
    with lance_sql.connect(engine=engine) as connection:
        for _ in range(20):
            with pytest.raises(CorruptFileError, match="missing"):
                connection.sql(f"SELECT sum(a) FROM '{damaged}'").arrow()
            with pytest.raises(ColumnNotFoundError):
                connection.sql(f"SELECT nope FROM '{damaged}'").arrow()


@pytest.mark.pushdowns
def test_scans_that_nobody_asked_for_the_error_of(damaged):
    """As when DuckDB needs no more rows than came before the error."""
    with lance_sql.connect() as connection:
        connection.register("t", lance_sql.open(damaged))
        connection.sql("SELECT count(*) FROM t").arrow()
        (source,) = connection._session._engine._tables.values()
        with pytest.raises(pa.ArrowInvalid, match="missing"):
            pa.RecordBatchReader.from_stream(source).read_all()
        with pytest.raises(ColumnNotFoundError):
            connection.sql("SELECT nope FROM t").arrow()


def test_statements_side_by_side_have_scans_of_their_own(tmp_path):
    uris = []
    for number in range(2):
        uris.append(str(tmp_path / f"t{number}.lance"))
        lance_sql.write(pa.table({"a": range(1000)}), uris[-1])
    with lance_sql.connect(engine="datafusion") as connection:
        results = [connection.sql(f"SELECT a FROM '{uri}'") for uri in uris]
        readers = [result.reader() for result in results]
        assert [reader.read_all().num_rows for reader in readers] == [1000, 1000]
        read = [{scan["table"] for scan in result.metrics["scans"]} for result in results]
        assert read == [{uris[0]}, {uris[1]}]


def test_cancelling_one_statement_leaves_those_beside_it(tmp_path):
    uri = str(tmp_path / "t.lance")
    lance_sql.write(pa.table({"a": range(1000)}), uri)
    with lance_sql.connect(engine="datafusion") as connection:
        kept, ended = (connection.sql(f"SELECT a FROM '{uri}'") for _ in range(2))
        readers = [result.reader() for result in (kept, ended)]
        ended._last_run.cancel()
        assert readers[0].read_all().num_rows == 1000


def test_the_first_failure_is_that_of_the_run():
    run = StatementRun()
    first, second = LanceError("first"), LanceError("second")
    for error in (ValueError("none of ours"), first, second):
        run.failed(error)
    assert run.failure is first


def test_threads_have_runs_of_their_own_where_statements_run_side_by_side():
    for side_by_side, seen in ((True, None), (False, "run")):
        runs, found = Runs(side_by_side), []
        run = StatementRun()
        with runs.during(run):
            thread = threading.Thread(target=lambda: found.append(runs.current))  # noqa: B023
            thread.start()
            thread.join()
        assert found == [run if seen else None]
        assert runs.current is None
