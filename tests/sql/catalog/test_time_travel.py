"""Versions and metadata tables in SQL: the same names in our sessions and in the user's own."""

from __future__ import annotations

import datetime
import gc

import datafusion
import duckdb
import pyarrow as pa
import pytest
from lance_engine.errors import DatasetNotFoundError, VersionNotFoundError

import lance_sql


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    """A directory with the dataset `t`: version n has the rows 1 to n; version 2 is tagged `prod`."""
    directory = tmp_path_factory.mktemp("history")
    for value in (1, 2, 3):
        lance_sql.write(
            pa.table({"x": [value]}), directory / "t.lance", mode="append" if value > 1 else "create"
        )
    dataset = lance_sql.open(directory / "t.lance")
    dataset.tags.create("prod", 2)
    dataset.branches.create("try/out", 1)
    dataset.branches.create("dev", 2)
    lance_sql.write(pa.table({"x": [7, 8, 9]}), directory / "t.lance", mode="append", branch="dev")
    return directory


@pytest.fixture(params=["connection", "installed"])
def rows(request, history, engine):
    """A function from a statement to its rows, in a session of ours or in the user's own."""
    if request.param == "connection":
        connection = lance_sql.connect(history, engine=engine)
        yield lambda text: connection.sql(text).fetchall()
        connection.close()
    elif engine == "duckdb":
        with duckdb.connect() as session:
            lance_sql.duckdb.install(session, str(history))
            yield lambda text: session.execute(text).fetchall()
    else:
        context = datafusion.SessionContext()
        lance_sql.datafusion.install(context, str(history))
        yield lambda text: [tuple(row.values()) for row in context.sql(text).to_arrow_table().to_pylist()]


def committed_at(history, version):
    versions = lance_sql.open(history / "t.lance").inspect.versions().to_pylist()
    return versions[version - 1]["committed_at"]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("t", 3),
        ("t AT (VERSION => 1)", 1),
        ("t AT (TAG => 'prod')", 2),
        ("t AT (TAG => prod) AS old", 2),
        ("'{path}' AT (VERSION => 2)", 2),
        ("'{path}@1'", 1),
        ('"{path}@prod"', 2),
        ("'t.lance@2'", 2),
        ('"t@prod"', 2),
        ("lance_scan('{path}', version => 1)", 1),
        ("lance_scan('{path}', tag := 'prod')", 2),
        ("lance_scan('{path}', 2) s", 2),
        ("t AT (TIMESTAMP => now() + INTERVAL 1 DAY)", 3),
        ("t AT (TIMESTAMP => '{moment}')", 2),
        ("lance_scan('{path}', as_of => '{moment}')", 2),
        ("t AT (BRANCH => 'dev')", 5),
        ("t AT (BRANCH => dev, VERSION => 2)", 2),
        ("'{path}@dev'", 5),
        ("'{path}@try/out'", 1),
        ("lance_scan('{path}', branch => 'try/out')", 1),
    ],
)
def test_versions_by_every_name(rows, history, table, expected):
    moment = committed_at(history, 2).isoformat()
    table = table.format(path=history / "t.lance", moment=moment)
    assert rows(f"SELECT count(*) FROM {table} WHERE x > 0") == [(expected,)]


def test_versions_join(rows):
    text = "SELECT new.x FROM t new LEFT JOIN t AT (TAG => 'prod') old ON new.x = old.x WHERE old.x IS NULL"
    assert rows(text) == [(3,)]


def test_a_registered_branch_travels_on_itself(history, engine):
    with lance_sql.connect(engine=engine) as connection:
        connection.register("b", lance_sql.open(history / "t.lance", branch="dev"))
        assert connection.sql("SELECT count(*) FROM b").fetchall() == [(5,)]
        assert connection.sql("SELECT count(*) FROM b AT (VERSION => 3)").fetchall() == [(5,)]
        assert connection.sql("SELECT count(*) FROM b AT (TAG => 'prod')").fetchall() == [(2,)]


def test_a_version_or_tag_that_is_not_there(rows):
    for table, message in [("t AT (VERSION => 9)", "9"), ("t AT (TAG => 'staging')", "staging"),
                           ("'t.lance@9'", "9"), ("'t.lance@staging'", "tag"),
                           ("t AT (BRANCH => 'staging')", "staging")]:  # fmt: skip
        with pytest.raises(VersionNotFoundError, match=message):
            rows(f"SELECT * FROM {table}")
    past = (datetime.datetime.now() - datetime.timedelta(days=1)).isoformat()
    with pytest.raises(VersionNotFoundError, match="oldest"):
        rows(f"SELECT * FROM t AT (TIMESTAMP => '{past}')")


def test_a_missing_dataset(rows):
    for table in ("'gone.lance'", "'gone.lance'.versions", "lance_scan('gone.lance')"):
        with pytest.raises(DatasetNotFoundError):
            rows(f"SELECT * FROM {table}")


def test_row_ids_when_named(rows):
    assert rows("SELECT x, _rowid = _rowaddr AS same FROM t WHERE x = 2 AND _rowid >= 0") == [(2, True)]
    assert rows("SELECT * FROM t AT (VERSION => 1)") == [(1,)]


@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT version, operation FROM t.versions ORDER BY version",
         [(1, "overwrite"), (2, "append"), (3, "append")]),
        ("SELECT max(v.version) FROM '{path}'.versions v", [(3,)]),
        ("SELECT versions.version FROM '{path}'.versions WHERE version > 2", [(3,)]),
        ("SELECT count(*) FROM '{path}'.fragments", [(3,)]),
        ("SELECT count(*) FROM '{path}'.fragments AT (VERSION => 2)", [(2,)]),
        ("SELECT count(*) FROM '{path}@prod'.files", [(2,)]),
        ("SELECT name, version FROM t.tags", [("prod", 2)]),
        ("SELECT count(*) FROM lance_metadata('{path}', 'fragments')", [(3,)]),
        ("SELECT count(*) FROM lance_metadata('{path}', 'fragments', tag => 'prod')", [(2,)]),
        ("SELECT count(*) FROM '{path}'.indices", [(0,)]),
        ("SELECT count(*) FROM t.columns c CROSS JOIN t.pages p CROSS JOIN t.zones z WHERE 1 = 0", [(0,)]),
    ],
)  # fmt: skip
def test_metadata_tables(rows, history, text, expected):
    assert rows(text.format(path=history / "t.lance")) == expected


def test_metadata_tables_tell_of_now(tmp_path, engine):
    dataset = lance_sql.write(pa.table({"x": [1]}), tmp_path / "t.lance")
    with lance_sql.connect(tmp_path, engine=engine) as connection:
        before = connection.sql("SELECT name FROM t.tags")
        dataset.tags.create("first")
        assert connection.sql("SELECT name FROM t.tags").fetchall() == [("first",)]
        assert before.fetchall() == []


def test_python_variables_stay_tables_of_an_installed_connection(history):
    with duckdb.connect() as session:
        lance_sql.duckdb.install(session)
        mine = pa.table({"x": [2, 5]})
        text = f"SELECT x FROM mine JOIN '{history}/t.lance' USING (x) WHERE x > ?"
        assert session.execute(text, [1]).fetchall() == [(2,)]
        assert session.sql(text, params=[1]).fetchall() == [(2,)]
        assert mine.num_rows == 2


def test_cursors_of_an_installed_connection_know_the_names(history):
    with duckdb.connect() as session:
        lance_sql.duckdb.install(session, str(history))
        with session.cursor() as cursor:
            assert cursor.execute("SELECT count(*) FROM t").fetchall() == [(3,)]


def test_other_connections_stay_as_they_are(history):
    with duckdb.connect() as session, duckdb.connect() as other:
        lance_sql.duckdb.install(session)
        with pytest.raises(duckdb.Error):
            other.execute(f"SELECT * FROM '{history}/t.lance'")


def test_an_installed_connection_can_be_forgotten():
    from lance_sql.installed import duckdb as duckdb_names

    session = duckdb.connect()
    gc.collect()
    before = len(duckdb_names._installed)
    lance_sql.duckdb.install(session)
    assert len(duckdb_names._installed) == before + 1
    session.close()
    del session
    gc.collect()
    assert len(duckdb_names._installed) == before


def test_external_tables_and_catalogs_of_datafusion(history):
    context = datafusion.SessionContext()
    lance_sql.datafusion.install(context)
    lance_sql.datafusion.register_directory(context, "lake", str(history))

    def rows(text):
        return [tuple(row.values()) for row in context.sql(text).to_arrow_table().to_pylist()]

    for options, expected in [("", 3), ("OPTIONS ('lance.version' '1')", 1), ("OPTIONS (tag 'prod')", 2)]:
        context.sql(f"CREATE EXTERNAL TABLE e STORED AS LANCE LOCATION '{history}/t.lance' {options}")
        assert rows("SELECT count(*) FROM e") == [(expected,)]
        context.sql("DROP TABLE e")
    with pytest.raises(Exception, match="Unknown option"):
        context.sql(
            f"CREATE EXTERNAL TABLE e STORED AS LANCE LOCATION '{history}/t.lance' OPTIONS (size '1')"
        )
    assert rows("SELECT count(*) FROM lake.public.t") == [(3,)]
    found = rows("SELECT table_name FROM information_schema.tables WHERE table_catalog = 'lake'")
    assert ("t",) in found
    assert context.table(f'"{history}/t.lance@1"').count() == 1
