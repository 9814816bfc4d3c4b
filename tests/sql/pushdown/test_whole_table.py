"""The min, max and count of whole tables come from metadata."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from bound_queries import bound
from datafusion import SessionConfig, SessionContext
from lance_engine.errors import ColumnNotFoundError

import lance_sql
from lance_sql.pushdown.metadata_aggregates import whole_table_aggregates

ROWS = 50_000


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    directory = tmp_path_factory.mktemp("whole")
    day = datetime.date(2024, 1, 1)
    table = pa.table(
        {
            "n": pa.array([None if i == 7 else i * 31 % ROWS for i in range(ROWS)], pa.int32()),
            "text": [f"text {i % 977}" for i in range(ROWS)],
            "amount": pa.array([Decimal(i % 5000).scaleb(-2) for i in range(ROWS)], pa.decimal128(12, 2)),
            "day": pa.array([day + datetime.timedelta(i % 300) for i in range(ROWS)]),
            "real": pa.array([float("nan") if i == 3 else i / 2 for i in range(ROWS)]),
            "none": pa.nulls(ROWS, pa.int64()),
        }
    )
    dataset = lance_sql.write(table, directory / "t.lance", max_rows_per_file=20_000)
    dataset.delete("n < 10")
    return directory


ANSWERED = [
    "SELECT min(n), max(n), count(*) FROM t",
    "SELECT MIN(text) AS low, max(text) FROM 't.lance'",
    'SELECT max("amount"), min(amount) FROM t;',
    "SELECT min(day), max(day) FROM t AT (VERSION => 1)",
    "SELECT count(*) FROM t",
    "SELECT max(none) FROM t",
    "SELECT min(a.n), max(A.N) AS most FROM t a",
]
LEFT = [
    "SELECT min(real), max(real) FROM t",
    "SELECT min(n) FROM t WHERE n > 100",
    "SELECT min(n) FROM t GROUP BY day",
    "SELECT min(n + 1) FROM t",
    "SELECT count(n) FROM t",
    "SELECT count(DISTINCT n) FROM t",
    "SELECT min(n), n FROM t GROUP BY n LIMIT 1",
    "SELECT min(text) FROM t, (SELECT 1 AS one) AS u",
    "SELECT count(*) FROM t.fragments",
    "SELECT min(n) FROM (SELECT 1 AS n)",
]


@pytest.mark.parametrize("text", ANSWERED)
def test_answered(directory, engine, text):
    with lance_sql.connect(directory, engine=engine) as connection:
        result = connection.sql(text)
        found = result.arrow()
        assert result.metrics["scans"] == []
        assert "answered from metadata" in connection.explain(text).plan
        other = connection.sql(text.rstrip(";") + " WHERE 1 = 1")
        assert "answered" not in other.explain().plan
        assert found.to_pylist() == other.arrow().to_pylist()
        assert found.schema == other.arrow().schema
        assert [batch.num_rows for batch in connection.sql(text)] == [1]


@pytest.mark.parametrize("text", LEFT)
def test_left_to_the_engine(directory, engine, text):
    with lance_sql.connect(directory, engine=engine) as connection:
        assert "answered" not in connection.explain(text).plan


@pytest.mark.parametrize(
    "text", ["", "SELECT", "SELECT min(", "SELECT min(x)", "SELECT min(x) FROM", "FROM t", "SELECT min(x),"]
)
def test_fragments_of_statements(text):
    query = bound(text, {"t": ["x"]})
    assert query is None or whole_table_aggregates(query) is None


def test_missing_columns_are_told_by_the_engine(directory, engine):
    with (
        lance_sql.connect(directory, engine=engine) as connection,
        pytest.raises(ColumnNotFoundError),
    ):
        connection.sql("SELECT min(missing) FROM t").arrow()


def test_both_bounds_of_a_column_are_found_at_once(directory, monkeypatch):
    from lance_engine.dataset import DatasetVersion

    asked = []
    min_max = DatasetVersion.min_max
    monkeypatch.setattr(
        DatasetVersion, "min_max", lambda self, column: asked.append(column) or min_max(self, column)
    )
    with lance_sql.connect(directory) as connection:
        found = connection.sql("SELECT min(n), max(day), max(n), min(n) FROM t").arrow()
    assert list(found.to_pylist()[0].values())[:3] == [10, datetime.date(2024, 10, 26), ROWS - 1]
    assert sorted(asked) == ["day", "n"]


@pytest.mark.parametrize("keeps_case", [True, False])
def test_names_in_mixed_case(tmp_path, keeps_case):
    """A setting of DataFusion keeps the case of unquoted names."""
    lance_sql.write(
        pa.table({"EventDate": [3, 1, 2], "Both": [7, 8, 9], "both": [1, 2, 3]}), tmp_path / "t.lance"
    )
    setting = "datafusion.sql_parser.enable_ident_normalization"
    own = SessionContext(SessionConfig().set(setting, "false" if keeps_case else "true"))
    with lance_sql.connect(tmp_path, datafusion=own) as connection:
        text = 'SELECT min("EventDate"), max("EventDate") FROM t'
        assert "answered from metadata" in connection.explain(text).plan
        if keeps_case:
            text = "SELECT min(EventDate), max(EventDate) FROM t"
            assert "answered from metadata" in connection.explain(text).plan
        else:
            with pytest.raises(ColumnNotFoundError):
                connection.sql("SELECT min(EventDate) FROM t")
        assert connection.sql(text).fetchall() == [(1, 3)]
        assert connection.sql("SELECT max(Both) FROM t").fetchall() == [(9 if keeps_case else 3,)]
        assert connection.sql("SELECT max(both) FROM t").fetchall() == [(3,)]
