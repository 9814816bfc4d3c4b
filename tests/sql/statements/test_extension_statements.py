"""The statements and functions of DuckDB's Lance extension."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import IndexNotFoundError, InvalidArgumentError, UnsupportedFeatureError

import lance_sql
from lance_sql.errors import SqlError, TableNotFoundError
from lance_sql.session.connection import session_of

Run = Callable[[str], list[tuple[Any, ...]]]


@pytest.fixture(params=["duckdb", "datafusion"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Run:
    vectors = pa.array([[float(row), 1.0] for row in range(40)], pa.list_(pa.float32(), 2))
    lance_sql.write(pa.table({"id": range(40), "v": vectors, "w": ["a word"] * 40}), tmp_path / "t.lance")
    session = lance_sql.connect(tmp_path, engine=request.param)
    return lambda text: session.sql(text).fetchall()


def versions(run: Run) -> int:
    return int(run("SELECT count(*) AS n FROM t.versions")[0][0])


@pytest.mark.parametrize("kind", ["config", "table_metadata", "schema_metadata"])
def test_keys_and_values(run: Run, tmp_path: Path, kind: str) -> None:
    path = f"'{tmp_path}/t.lance'"
    assert run(f"SELECT * FROM lance_set_{kind}({path}, 'a', '1')") == [(1,)]
    assert run(f"SELECT count FROM lance_set_{kind}('lance.main.t', 'b', 'it''s')") == [(1,)]
    held = run(f"SELECT key, value FROM lance_{kind}(t) ORDER BY key")
    assert [row for row in held if row[0] in "ab"] == [("a", "1"), ("b", "it's")]
    assert run(f"SELECT count(*) AS n FROM lance_unset_{kind}(t, 'a')") == [(1,)]
    assert run(f"SELECT value FROM lance_{kind}(lance.main.t) WHERE key IN ('a', 'b')") == [("it's",)]
    assert run(f"SELECT value FROM 't.lance'.{kind} WHERE key = 'b'") == [("it's",)]


def test_keys_of_columns(run: Run) -> None:
    run("SELECT * FROM lance_set_column_metadata('t', 'id', 'unit', 'm')")
    run("SELECT * FROM lance_set_column_metadata('t', 'w', 'unit', 's')")
    assert run("SELECT value FROM lance_column_metadata('t', 'ID') WHERE key = 'unit'") == [("m",)]
    assert run("SELECT x.value FROM lance_column_metadata(t, 'w') AS x WHERE x.key = 'unit'") == [("s",)]
    run("SELECT * FROM lance_unset_column_metadata('t', 'w', 'unit')")
    assert run("SELECT \"column\" FROM t.column_metadata WHERE key = 'unit'") == [("id",)]
    with pytest.raises(UnsupportedFeatureError, match="needs the name of a column"):
        run("SELECT * FROM lance_column_metadata(t)")


def test_functions_that_change_a_table_run_once_or_not_at_all(run: Run) -> None:
    before = versions(run)
    for text in (
        "SELECT * FROM (SELECT * FROM lance_set_config('t', 'a', '1')) x",
        "SELECT * FROM t, lance_set_config('t', 'a', '1')",
        "SELECT * FROM lance_set_config('t', 'a', '1') UNION ALL SELECT count(*) FROM t",
        "SELECT * FROM lance_set_config('t', 'a', '1') x JOIN t ON true",
        "SELECT * FROM lance_set_config('t', 'a', '1') WHERE count IN (SELECT id FROM t)",
        "SELECT lance_compact_files('t')",
    ):
        with pytest.raises(UnsupportedFeatureError, match="must be the only table"):
            run(text)
    for text in ("lance_set_config('t', 'a')", "lance_set_config('t', 'a', 1 + 1)", "lance_compact_files()"):
        with pytest.raises(UnsupportedFeatureError, match="takes constants"):
            run(f"SELECT * FROM {text}")
    with pytest.raises(TableNotFoundError):
        run("SELECT * FROM lance_compact_files('nothing')")
    assert versions(run) == before
    run("CALL lance_set_config('t', 'a', '1')")
    run("FROM lance_set_config('t', 'b', '1')")
    assert versions(run) == before + 2


def test_indexes(run: Run) -> None:
    run("SELECT * FROM lance_create_scalar_index('t', 'id', 'by_id')")
    run("CREATE INDEX vec ON 't.lance' (v) USING IVF_FLAT WITH (num_partitions = 1, metric_type = 'l2')")
    run("CREATE INDEX empty ON t (w) USING BTREE WITH (train = false)")
    expected = [("by_id", "BTree", "id", 40), ("empty", "BTree", "w", 0), ("vec", "IVF_FLAT", "v", 40)]
    columns = "index_name, index_type, fields, rows_indexed"
    for function in ("lance_indexes('t.lance')", "lance_indices('lance.main.t')", "t.indexes"):
        assert run(f"SELECT {columns} FROM {function} ORDER BY index_name") == expected
    shown = sorted(run("SHOW INDEXES ON 't.lance'"))
    assert [row[:4] for row in shown] == expected
    assert json.loads(shown[1][4])["unindexed_rows"] == 40
    with pytest.raises(UnsupportedFeatureError, match="must be trained"):
        run("CREATE INDEX later ON t (v) USING IVF_FLAT WITH (train = false)")


def test_indices_are_extended_and_built_again(run: Run, tmp_path: Path) -> None:
    run("CREATE INDEX vec ON t (v) USING IVF_FLAT WITH (num_partitions = 1)")
    run("CREATE INDEX words ON t (w) USING INVERTED")
    run("CREATE INDEX by_id ON t (id) USING BTREE")
    lance_sql.write(
        pa.table({"id": [40], "v": pa.array([[40.0, 1.0]], pa.list_(pa.float32(), 2)), "w": ["another"]}),
        tmp_path / "t.lance",
        mode="append",
    )
    coverage = "SELECT index_name, rows_indexed FROM lance_indexes(t) ORDER BY index_name"
    assert run("ALTER INDEX by_id ON t OPTIMIZE")[0][:2] == ("optimize_index", "t")
    assert run(coverage) == [("by_id", 41), ("vec", 40), ("words", 40)]
    run("ALTER INDEX vec ON 't.lance' OPTIMIZE WITH (mode = 'merge', num_indices_to_merge = 4)")
    before = lance_sql.open(tmp_path / "t.lance").inspect.indices().to_pylist()
    ((_, _, metrics),) = run("REINDEX words ON t RETRAIN")
    assert json.loads(metrics)["mode"] == "retrain"
    run("ALTER INDEX vec ON t OPTIMIZE WITH (mode = 'retrain')")
    run("REINDEX by_id ON t RETRAIN")
    assert run(coverage) == [("by_id", 41), ("vec", 41), ("words", 41)]
    after = lance_sql.open(tmp_path / "t.lance").inspect.indices().to_pylist()
    assert len(after) == 3  # one segment each
    assert not {row["uuid"] for row in before} & {row["uuid"] for row in after}
    assert run("SELECT id FROM lance_fts('t', 'w', 'another')") == [(40,)]
    assert run("SELECT id FROM lance_vector_search('t', 'v', [40.0, 1.0], k = 1)") == [(40,)]
    with pytest.raises(IndexNotFoundError):
        run("REINDEX nothing ON t")
    with pytest.raises(SqlError, match="Unknown mode"):
        run("ALTER INDEX vec ON t OPTIMIZE WITH (mode = 'fast')")
    with pytest.raises(SqlError, match="can only OPTIMIZE"):
        run("ALTER INDEX vec ON t RENAME TO other")


def test_optimize(run: Run, tmp_path: Path) -> None:
    for row in range(3):
        lance_sql.open(tmp_path / "t.lance").delete(f"id = {row}")
    ((operation, target, _),) = run(
        "OPTIMIZE 't.lance' WITH (target_rows_per_fragment = 1048576, materialize_deletions = false, "
        "num_threads = 0, batch_size = 0, max_rows_per_group = 1024, max_bytes_per_file = 0)"
    )
    assert (operation, target) == ("compact", "t.lance")
    assert lance_sql.open(tmp_path / "t.lance").inspect.deletions().num_rows == 1
    run("OPTIMIZE t WITH (materialize_deletions_threshold = 0.01)")
    assert lance_sql.open(tmp_path / "t.lance").inspect.deletions().num_rows == 0
    for options, message in (
        ("defer_index_remap = true", "defer_index_remap"),
        ("materialize_deletions_threshold = 2", "between 0 and 1"),
        ("target_rows_per_fragment = many", "a whole number"),
        ("colour = 1", "Unknown option colour"),
    ):
        with pytest.raises((SqlError, UnsupportedFeatureError), match=message):
            run(f"OPTIMIZE t WITH ({options})")


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_registered_datasets_are_what_optimize_made_of_them(tmp_path: Path, engine: str) -> None:
    dataset = lance_sql.write(pa.table({"id": range(10)}), tmp_path / "r.lance", max_rows_per_file=5)
    with lance_sql.connect(engine=engine) as connection:
        connection.register("r", dataset)
        connection.sql("OPTIMIZE r")
        lance_sql.open(tmp_path / "r.lance").cleanup(datetime.timedelta(0))
        # The files of the version that was registered are gone.
        assert connection.sql("SELECT sum(id) FROM r").fetchall() == [(45,)]


def test_old_versions(run: Run, tmp_path: Path) -> None:
    for number in range(5):
        run(f"SELECT * FROM lance_set_config('t', 'a', '{number}')")
    assert run("VACUUM LANCE t")[0][0] == "cleanup"
    assert versions(run) == 6
    lance_sql.open(tmp_path / "t.lance").tags.create("kept", 2)
    with pytest.raises(SqlError, match=r"Tags name versions .*: kept"):
        run("VACUUM LANCE t WITH (older_than_seconds = 0, error_if_tagged_old_versions = true)")
    ((_, _, metrics),) = run("VACUUM LANCE 't.lance' WITH (retain_n_versions = 3)")
    assert json.loads(metrics)["versions"] == [1, 3]
    assert run("SELECT version FROM t.versions ORDER BY version") == [(2,), (4,), (5,), (6,)]
    run("SELECT * FROM lance_cleanup_old_versions('t', 0, false)")
    assert run("SELECT version FROM t.versions ORDER BY version") == [(2,), (6,)]
    with pytest.raises(SqlError, match="retain_n_versions must be > 0"):
        run("VACUUM LANCE t WITH (retain_n_versions = 0)")


@pytest.mark.parametrize(
    "text",
    [
        "VACUUM t RETAIN 900000 DAYS",
        "VACUUM LANCE t WITH (older_than_seconds = 99999999999999)",
        "SELECT * FROM lance_cleanup_old_versions('t', 99999999999999, false)",
    ],
)
def test_ages_that_are_longer_than_time(run: Run, text: str) -> None:
    run("SELECT * FROM lance_set_config('t', 'a', 'b')")
    before = versions(run)
    run(text)
    assert versions(run) == before


def test_automatic_cleanup(run: Run) -> None:
    assert run("SHOW MAINTENANCE ON t") == [("enabled", "false")]
    ((operation, target, metrics),) = run(
        "ALTER TABLE t SET AUTO_CLEANUP WITH (interval = 1, older_than = '0s', retain_versions = 2)"
    )
    assert (operation, target) == ("set_auto_cleanup", "t")
    assert json.loads(metrics) == {"enabled": True, "interval": 1, "older_than": "0s", "retain_versions": 2}
    assert run("SHOW MAINTENANCE ON 't.lance'") == [
        ("enabled", "true"), ("interval", "1"), ("older_than", "0s"), ("retain_versions", "2"),
    ]  # fmt: skip
    for number in range(3):
        run(f"DELETE FROM t WHERE id = {number}")
    assert versions(run) == 2
    assert run("ALTER TABLE t UNSET AUTO_CLEANUP")[0][0] == "unset_auto_cleanup"
    assert run("SHOW MAINTENANCE ON lance.main.t") == [("enabled", "false")]
    for options, error, message in (
        ("interval = 0, older_than = '1s'", SqlError, "interval must be > 0"),
        ("interval = 1", SqlError, "requires interval and older_than"),
        ("interval = 1, older_than = '1s', retain_versions = 0", SqlError, "retain_versions must be > 0"),
        ("interval = 1, older_than = 'soon'", InvalidArgumentError, "not a duration"),
    ):
        with pytest.raises(error, match=message):
            run(f"ALTER TABLE t SET AUTO_CLEANUP WITH ({options})")


def test_maintenance_is_not_part_of_a_transaction(run: Run) -> None:
    for text in (
        "OPTIMIZE t",
        "VACUUM LANCE t",
        "SELECT * FROM lance_set_config('t', 'a', '1')",
        "ALTER TABLE t UNSET AUTO_CLEANUP",
    ):
        run("BEGIN")
        with pytest.raises(UnsupportedFeatureError, match="transaction"):
            run(text)
        run("ROLLBACK")


def test_nothing_has_to_be_installed(run: Run) -> None:
    for text in ("INSTALL lance", "INSTALL lance FROM community", "FORCE INSTALL 'lance'", "LOAD lance"):
        assert run(text) == []


def test_directories_are_created_by_their_first_table(tmp_path: Path) -> None:
    session = lance_sql.connect(tmp_path / "new")
    with pytest.raises(TableNotFoundError, match="does not exist; the first CREATE TABLE creates it"):
        session.sql("FROM t")
    session.sql(f"ATTACH '{tmp_path}/other' AS ns (TYPE LANCE)")
    assert session.sql("SHOW TABLES FROM ns.main").fetchall() == []
    assert not list(tmp_path.iterdir())
    session.sql("CREATE TABLE t AS SELECT 1 AS a")
    session.sql("CREATE TABLE ns.main.t AS SELECT 2 AS a")
    assert session.sql("SELECT a FROM t UNION ALL SELECT a FROM ns.t ORDER BY a").fetchall() == [(1,), (2,)]
    (tmp_path / "file").write_text("text")
    for place in ("missing/new", "file"):
        with pytest.raises(lance_sql.errors.LanceError, match="cannot be created here"):
            lance_sql.connect(tmp_path / place)


def test_options_mean_what_they_say(tmp_path: Path) -> None:
    """Words, strings and numbers with a sign are values of options, with or without quotes."""
    place = tmp_path / "n.lance"
    with lance_sql.connect(tmp_path) as session:
        for value in ("false", "'false'", "off"):
            for statement in (
                f"CREATE OR REPLACE TABLE n WITH (zone_maps = {value}) AS FROM range(9)",
                f"COPY (FROM range(9)) TO '{place}' (FORMAT lance, MODE overwrite, zone_maps {value})",
            ):
                session.sql(statement).arrow()
                assert session.sql("SELECT count(*) FROM n.zones").fetchall() == [(0,)], statement
        with pytest.raises(InvalidArgumentError, match="at least 1, not -3"):
            session.sql("CREATE TABLE m WITH (max_rows_per_file = -3) AS SELECT 1 AS a").arrow()


def test_secrets_of_the_extension_are_storage_options(tmp_path: Path) -> None:
    with lance_sql.connect(tmp_path) as session:
        session.sql(
            "CREATE SECRET s (TYPE LANCE, PROVIDER config, SCOPE 's3://lake/', ACCESS_KEY_ID 'id', "
            "SECRET_ACCESS_KEY 'key', ENDPOINT 'http://127.0.0.1:1', ALLOW_HTTP true)"
        ).arrow()
        (secret,) = session_of(session).catalog.secrets.values()
        assert secret.scopes == ("s3://lake/",)
        assert secret.options == {
            "access_key_id": "id",
            "secret_access_key": "key",
            "endpoint": "http://127.0.0.1:1",
            "allow_http": "true",
        }
        session.sql("DROP SECRET s").arrow()
        assert not session_of(session).catalog.secrets
