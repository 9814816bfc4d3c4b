"""Spark SQL with a namespace service, which provides the locations of tables."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from namespace_server import namespace_server
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import lance_sql

pytestmark = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_tables_of_a_rest_server(spark: SparkSession, tmp_path: Path) -> None:
    with namespace_server(tmp_path) as (endpoint, _):
        spark.conf.set("spark.sql.catalog.served", "lancesql.spark.LanceCatalog")
        spark.conf.set("spark.sql.catalog.served.impl", "rest")
        spark.conf.set("spark.sql.catalog.served.uri", endpoint)
        spark.conf.set("spark.sql.catalog.served.bearer_token", "secret")
        spark.sql("CREATE NAMESPACE served.s")
        spark.sql("CREATE TABLE served.s.t AS SELECT id, 'new' AS name FROM range(10)")
        assert lance_sql.open(tmp_path / "s_t.lance").count_rows() == 10
        spark.sql("UPDATE served.s.t SET name = upper(name) WHERE id % 2 = 0")
        spark.sql("DELETE FROM served.s.t WHERE id < 4")
        found = spark.sql("SELECT name, count(*) FROM served.s.t GROUP BY ALL ORDER BY 1").collect()
        assert [tuple(row) for row in found] == [("NEW", 3), ("new", 3)]
        assert spark.sql("SELECT count(*) FROM served.s.t VERSION AS OF 2").first()[0] == 10
        assert [row.tableName for row in spark.sql("SHOW TABLES IN served.s").collect()] == ["t"]
        with pytest.raises(Exception, match=r"cannot be found|NOT_FOUND"):
            spark.sql("SELECT * FROM served.nothing").collect()
        spark.sql("DROP TABLE served.s.t")
        assert not (tmp_path / "s_t.lance").exists()


def test_metadata_tables_are_found_in_the_namespace_of_use(spark: SparkSession, tmp_path: Path) -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.catalog.used", "lancesql.spark.LanceCatalog")
    session.conf.set("spark.sql.catalog.used.path", str(tmp_path))
    lance_sql.write({"id": [1]}, tmp_path / "s" / "o.lance")
    lance_sql.write({"id": [1]}, tmp_path / "s" / "o" / "t.lance")  # a namespace of the same name
    session.sql("USE used.s")
    for name in ("tags", "indexes", "fragments"):
        assert session.sql(f"DESCRIBE o.{name}").count() > 0
    assert session.sql("SELECT version FROM o.versions").collect() == [(1,)]
    assert session.sql("SELECT id FROM s.o.t").collect() == [(1,)]
    with pytest.raises(PySparkException, match="Unknown metadata table 't' of the table 'o'"):
        session.sql("SELECT * FROM o.t")
