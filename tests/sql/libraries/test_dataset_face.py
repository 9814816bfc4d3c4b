"""`lance_sql.Dataset`: an object of its own, its pyarrow dataset, a DuckDB variable, a pickle, a picture."""

from __future__ import annotations

import pickle
import subprocess
import sys

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads
import pytest
import sql_tables
from engine_versions import needs_duckdb_2
from lance_engine.errors import ColumnNotFoundError, UnsupportedFeatureError

import lance_sql
from lance_sql.errors import PackageNotInstalledError


@pytest.fixture
def dataset(warehouse):
    return lance_sql.open(warehouse / "measurements.lance")


def same(found: pa.Table, expected: pa.Table) -> bool:
    """Equal, with NaN equal to itself."""
    return found.schema.equals(expected.schema) and str(found.to_pylist()) == str(expected.to_pylist())


def test_importing_the_package_imports_no_engine():
    heavy = ("duckdb", "datafusion", "pyarrow.dataset", "pandas", "sqlglot", "click")
    code = f"import sys, lance_sql; print([name for name in {heavy} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_public_names():
    assert lance_sql.__all__ == sorted(lance_sql.__all__)
    for name in lance_sql.__all__:
        assert name in dir(lance_sql)
        if name != "spark":  # needs the optional pyspark
            getattr(lance_sql, name)
    with pytest.raises(AttributeError, match="nonsense"):
        lance_sql.nonsense  # noqa: B018


def test_reads_as_pyarrow_datasets_do(dataset):
    expected = sql_tables.measurements()
    for either in (dataset, dataset.to_arrow_dataset()):
        assert either.schema.equals(expected.schema)
        assert same(either.to_table(), expected)
        assert either.count_rows() == 12
        assert either.count_rows(pc.field("small") == 2) == 4
        assert either.head(2, columns=["label"]).to_pylist() == [{"label": "apple"}, {"label": "Banana"}]
        found = either.to_table(columns=["id"], filter=pc.field("small") == 2)
        assert found["id"].to_pylist() == [2, 5, 8, 11]
        assert either.scanner(columns=["id"], batch_size=3).count_rows() == 12
        assert sum(batch.num_rows for batch in either.to_batches(columns=["id"])) == 12
        with pytest.raises(ValueError, match="Unknown option 'limits'"):
            either.to_table(limits=3)
    assert dataset.to_arrow_dataset().partition_expression.equals(pc.scalar(True))


def test_take_has_one_meaning_for_each_object(tmp_path):
    """Row ids for a dataset, positions for its pyarrow dataset, as pylance and pyarrow have them."""
    import lance

    table = pa.table({"x": range(100)})
    changed = lance_sql.write(table, tmp_path / "t.lance", max_rows_per_file=30).delete("x < 5 OR x = 40")
    live = changed.to_table()
    positions, ids = [0, 50, 3, 3, 90], changed.scan(["_rowid"]).to_table()["_rowid"].to_pylist()
    arrow = changed.to_arrow_dataset()
    assert isinstance(arrow, pads.Dataset)
    assert not isinstance(changed, pads.Dataset)
    expected = live.take(positions)
    assert arrow.take(positions).equals(expected)
    assert arrow.take(pa.array(positions)).equals(lance.dataset(str(tmp_path / "t.lance")).take(positions))
    assert changed.take_positions(positions).equals(expected)
    assert changed.take([ids[position] for position in positions]).equals(expected)
    filtered = arrow.take([2, 0], columns=["x"], filter=pc.field("x") > 50)
    assert filtered["x"].to_pylist() == [53, 51]
    with pytest.raises(IndexError, match="95"):
        arrow.take([95])
    with pytest.raises(LookupError, match=r"row ids not found, or deleted.*take_positions\(\)"):
        changed.take([0, 1])


def test_no_method_of_a_dataset_only_raises():
    """pyarrow's methods that need files of pyarrow belong to its dataset only."""
    assert not {"filter", "join", "join_asof", "replace_schema", "sort_by", "get_fragments"} & set(
        dir(lance_sql.Dataset)
    )


def test_other_libraries_read_the_pyarrow_dataset(dataset):
    import datafusion
    import polars as pl

    arrow = dataset.to_arrow_dataset()
    assert pl.scan_pyarrow_dataset(arrow).filter(pl.col("id") > 8).select("id").collect()["id"].to_list() == [
        9,
        10,
        11,
    ]
    context = datafusion.SessionContext()
    context.register_dataset("m", arrow)
    assert context.sql("SELECT max(id) AS m FROM m WHERE id < 7").to_pydict() == {"m": [6]}
    with duckdb.connect() as connection:
        assert connection.sql("SELECT count(*), max(id) FROM arrow WHERE id < 6").fetchall() == [(6, 5)]
        connection.register("registered", arrow)
        assert connection.sql("SELECT max(label) FROM registered WHERE id < 6").fetchall() == [("cherry",)]
    assert lance_sql.sql("SELECT max(id) FROM arrow").fetchall() == [(11,)]
    assert pickle.loads(pickle.dumps(arrow)).to_table(columns=["id"]).num_rows == 12


def test_filters_have_sql_semantics(dataset):
    """NaN is greater than every number here, unlike in pyarrow's comparison."""
    assert dataset.to_table(columns=["id"], filter=pc.field("value") > 3)["id"].to_pylist() == [
        2,
        5,
        6,
        8,
        11,
    ]


def test_fragments_cover_every_row_once(dataset):
    fragments = list(dataset.to_arrow_dataset().get_fragments())
    ids = [
        key
        for fragment in fragments
        for batch in fragment.scanner(dataset.schema, columns=["id"], batch_size=8192).to_batches()
        for key in batch.column(0).to_pylist()
    ]
    assert ids == list(range(12))


def test_scans_without_columns_keep_the_row_count(dataset):
    batches = list(dataset.scanner(columns=[], filter=pc.field("small") == 2).to_batches())
    assert [batch.num_columns for batch in batches] == [0] * len(batches)
    assert sum(batch.num_rows for batch in batches) == 4


@pytest.mark.parametrize(
    "operation",
    [
        lambda dataset: dataset.filter(pc.field("id") > 1),
        lambda dataset: dataset.join(dataset, "id"),
        lambda dataset: dataset.join_asof(dataset, "id", "id", 1),
        lambda dataset: dataset.sort_by("id"),
        lambda dataset: dataset.replace_schema(dataset.schema),
        lambda dataset: dataset.scanner(columns={"twice": pc.field("id") * 2}),
    ],
)
def test_unsupported_operations_say_what_to_use(dataset, operation):
    dataset = dataset.to_arrow_dataset()
    with pytest.raises(UnsupportedFeatureError, match=r"lance_sql\.sql|to_table"):
        operation(dataset)


def test_native_code_of_pyarrow_fails_cleanly(dataset):
    """Operations in C++ that bypass the methods raise an error with a remedy instead of crashing."""
    dataset = dataset.to_arrow_dataset()
    for operation in (
        lambda: pads.dataset([dataset, dataset]).to_table(),
        lambda: pads.InMemoryDataset(pa.table({"id": [1]})).join(dataset, "id"),
    ):
        with pytest.raises((OSError, UnsupportedFeatureError), match=r"(?i)use .*to_table\(\)"):
            operation()


def test_arrow_streams(dataset):
    assert same(pa.table(dataset), sql_tables.measurements())
    assert pa.schema(dataset).equals(dataset.schema)


def test_pickles_by_location_and_version(tmp_path):
    dataset = lance_sql.write(pa.table({"x": [1]}), tmp_path / "t.lance")
    lance_sql.write(pa.table({"x": [2]}), tmp_path / "t.lance", mode="append")
    pickled = pickle.dumps(dataset)
    assert len(pickled) < 500
    again = pickle.loads(pickled)
    assert (again.uri, again.version) == (dataset.uri, 1)
    assert again.to_table()["x"].to_pylist() == [1]


def test_repr(dataset):
    assert repr(dataset).startswith(
        f"<lance_sql.Dataset {dataset.uri}>\nversion 1, 12 rows in 3 fragments, 8 columns"
    )
    assert "\n  amount: decimal128(12, 2)\n" in repr(dataset)
    assert '>label</td><td style="text-align: left">string</td>' in dataset._repr_html_()


def test_a_python_variable_in_duckdb(dataset):
    """DuckDB finds the dataset by its variable's name and reads it."""
    with duckdb.connect() as connection:
        text = "SELECT count(*), max(label) FROM dataset WHERE id < 6"
        assert connection.sql(text).fetchall() == [(6, "cherry")]
    assert dataset.count_rows() == 12


@needs_duckdb_2
def test_the_size_of_a_python_variable_in_duckdb(dataset):
    with duckdb.connect() as connection:
        plan = connection.sql("EXPLAIN SELECT id FROM dataset").fetchall()[0][1]
    assert "~12 rows" in plan


def test_pandas_writes_and_reads(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({"x": [1, 2], "s": ["a", None]})
    lance_sql.write(frame, tmp_path / "f.lance")
    assert lance_sql.sql(f"SELECT * FROM '{tmp_path}/f.lance' ORDER BY x").df()["x"].tolist() == [1, 2]


def test_a_python_variable_in_duckdb_once_other_connections_know_lance_names(dataset):
    """Only connections with `install` change their behaviour."""
    with duckdb.connect() as installed, duckdb.connect() as connection:
        lance_sql.duckdb.install(installed)
        for either in (installed, connection):
            assert either.sql("SELECT count(*) FROM dataset").fetchall() == [(12,)]
            assert either.execute("SELECT count(*) FROM dataset").fetchall() == [(12,)]
        assert installed.sql(f"SELECT count(*) FROM '{dataset.uri}'").fetchall() == [(12,)]


def test_data_frames_by_their_usual_names(dataset):
    expected = dataset.to_table(columns=["id", "label"]).to_pylist()
    assert dataset.to_polars(["id", "label"]).to_dicts() == expected
    frame = dataset.to_pandas(["id"], filter="id < 3")
    assert list(frame["id"]) == [0, 1, 2]


def test_a_data_frame_library_that_is_not_installed(dataset, monkeypatch):
    for package in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, package, None)
    result = lance_sql.sql("SELECT 1 AS a")
    for ask, package in (
        (dataset.to_pandas, "pandas"),
        (dataset.to_polars, "polars"),
        (result.df, "pandas"),
        (result.pl, "polars"),
    ):
        with pytest.raises(PackageNotInstalledError, match=f"pip install {package}"):
            ask()


def test_columns_of_tables_are_those_of_scans(dataset):
    """to_table(), to_batches() and scanner() select row ids too, and say which column does not exist."""
    for either in (dataset, dataset.to_arrow_dataset()):
        assert either.to_table(["_rowid", "id"]).to_pylist()[3] == {"_rowid": 3, "id": 3}
        assert either.scanner(["_rowaddr"]).projected_schema.names == ["_rowaddr"]
        with pytest.raises(ColumnNotFoundError, match=r"Column 'ids' not found.*'id'"):
            either.to_table(["ids"])
