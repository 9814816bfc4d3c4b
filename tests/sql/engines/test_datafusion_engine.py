"""The DataFusion side: partitions, pushed filters, plain sessions, and leaving while threads still scan."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from lance_engine.errors import CorruptFileError
from lance_engine.scan.stream import ScanStream

import lance_sql
from lance_sql.engines.table import EngineTable


@pytest.fixture
def session(warehouse):
    context = SessionContext()
    lance_sql.datafusion.register(context, "m", lance_sql.open(warehouse / "measurements.lance"))
    return context


def rows(frame):
    return [tuple(row.values()) for row in frame.to_arrow_table().to_pylist()]


def test_filters_and_columns_are_pushed(session):
    plan = rows(session.sql("EXPLAIN SELECT label FROM m WHERE id < 5"))[1][1]
    assert "DatasetExec" in plan
    assert "filter_expr=(id < 5), projection=[label]" in plan
    assert "FilterExec" not in plan


def test_counting_reads_no_column(session):
    assert rows(session.sql("SELECT count(*) FROM m WHERE label LIKE 'a%' OR small = 1")) == [(7,)]
    assert rows(session.sql("SELECT count(*) FROM m")) == [(12,)]


def test_registering_again_replaces(session, warehouse):
    lance_sql.datafusion.register(session, "m", lance_sql.open(warehouse / "orders.lance"))
    assert rows(session.sql("SELECT count(*) FROM m")) == [(6,)]


def test_names_need_no_escaping(warehouse):
    context = SessionContext()
    name = 'odd "name".lance'
    lance_sql.datafusion.register(context, name, lance_sql.open(warehouse / "orders.lance"))
    assert rows(context.sql('SELECT count(*) FROM "odd ""name"".lance"')) == [(6,)]


@pytest.mark.parametrize("max_rows_per_file", [300_000, 10_000])
def test_large_tables_are_scanned_in_partitions(tmp_path, max_rows_per_file):
    count = 300_000
    table = pa.table({"x": np.arange(count)})
    dataset = lance_sql.write(table, tmp_path / "t.lance", max_rows_per_file=max_rows_per_file)
    context = SessionContext(SessionConfig().with_target_partitions(4))
    lance_sql.datafusion.register(context, "t", dataset)
    plan = rows(context.sql("EXPLAIN SELECT x FROM t"))[1][1]
    assert "number_of_fragments=4" in plan
    assert rows(context.sql("SELECT count(*), sum(x), count(DISTINCT x) FROM t")) == [
        (count, count * (count - 1) // 2, count)
    ]


def test_each_partition_of_narrow_rows_is_planned_and_read_once(tmp_path, monkeypatch):
    count = 300_000
    lance_sql.write({"x": np.arange(count) % 50}, tmp_path / "t.lance")
    planned, read = [], []
    scan, read_rows = EngineTable.scan, ScanStream.read

    def noted_scan(*arguments, **named):
        planned.append(named["splits"])
        return scan(*arguments, **named)

    def noted_read(stream, number, begin, end):
        read.append((begin, end))
        return read_rows(stream, number, begin, end)

    monkeypatch.setattr(EngineTable, "scan", noted_scan)
    monkeypatch.setattr(ScanStream, "read", noted_read)
    context = SessionContext(SessionConfig().with_target_partitions(2))
    with lance_sql.connect(tmp_path, datafusion=context) as connection:
        found = connection.sql("SELECT count(*) FROM t WHERE x <> 7").fetchall()
    assert found == [(count - count // 50,)]
    assert len(planned) == 2
    assert None not in planned
    assert [begin for begin, _ in sorted(read)] == [0, sorted(read)[0][1]]
    assert max(end for _, end in read) == count


def test_errors_of_partitions_keep_their_class(tmp_path, monkeypatch):
    lance_sql.write({"x": np.arange(1000)}, tmp_path / "t.lance")

    def failing(*arguments, **named):
        raise CorruptFileError("The page is damaged", path="t.lance")

    with lance_sql.connect(tmp_path, engine="datafusion") as connection:
        result = connection.sql("SELECT sum(x) FROM t WHERE x > 3")
        monkeypatch.setattr(EngineTable, "scan", failing)
        with pytest.raises(CorruptFileError, match="The page is damaged"):
            result.arrow()


def test_empty_tables(tmp_path):
    dataset = lance_sql.write(pa.table({"x": pa.array([], pa.int64())}), tmp_path / "t.lance")
    context = SessionContext()
    lance_sql.datafusion.register(context, "t", dataset)
    assert rows(context.sql("SELECT count(*), sum(x) FROM t")) == [(0, None)]
    assert rows(context.sql("SELECT x FROM t")) == []


def test_install_for_plain_sessions(warehouse):
    context = SessionContext()
    context.sql("CREATE TABLE kept AS SELECT 1 AS customer").collect()
    lance_sql.datafusion.install(context)
    path = f"{warehouse}/orders.lance"
    assert rows(context.sql(f"SELECT count(*) FROM '{path}' o JOIN kept USING (customer)")) == [(2,)]
    assert rows(context.sql(f"SELECT count(*) FROM lance_scan('{path}')")) == [(6,)]
    assert rows(context.sql(f"SELECT count(*) FROM '{path}@1'")) == [(6,)]
    context.sql("CREATE VIEW later AS SELECT 2 AS customer")
    assert rows(context.sql("SELECT customer FROM later")) == [(2,)]
    with pytest.raises(lance_sql.LanceError, match="nowhere"):
        context.sql("SELECT * FROM 'nowhere.lance'")


@pytest.mark.slow
def test_the_interpreter_exits_while_threads_scan(tmp_path):
    """After a LIMIT, worker threads of DataFusion are still in the iterators when the process ends."""
    path = tmp_path / "t.lance"
    numbers = np.random.default_rng(0).random(2_000_000)
    lance_sql.write(pa.table({"x": numbers, "y": numbers}), path)
    statement = f"SELECT * FROM '{path}' LIMIT 2"
    code = f"import lance_sql; print(lance_sql.sql({statement!r}, engine='datafusion'))"
    for _ in range(3):
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (found.returncode, found.stderr) == (0, "")
        assert "2 rows" in found.stdout


ABANDON_A_STREAM = """
import gc, sys
import lance_sql
from lance_sql.engines.partitions import TableScanner

def abandon():
    batches = iter(lance_sql.sql(sys.argv[1], engine="datafusion"))
    next(batches)
    cycle = [batches]
    cycle.append(cycle)

def collect_first(self, *arguments, **options):
    gc.collect()
    plain_init(self, *arguments, **options)

gc.disable()
abandon()
plain_init, TableScanner.__init__ = TableScanner.__init__, collect_first
print(lance_sql.sql(sys.argv[1], engine="datafusion").arrow().num_rows)
"""


def test_an_abandoned_stream_is_freed_inside_a_scan(warehouse):
    """Garbage collection may run in a call from DataFusion and free what another query holds."""
    statement = f"SELECT * FROM '{warehouse}/measurements.lance'"
    found = subprocess.run(
        [sys.executable, "-c", ABANDON_A_STREAM, statement], capture_output=True, text=True
    )
    assert (found.returncode, found.stderr, found.stdout) == (0, "", "12\n")
