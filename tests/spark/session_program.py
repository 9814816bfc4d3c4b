"""One program for every kind of Spark session: prints what it found, and the plan of a query, as JSON.

    python session_program.py classic|connect|sail with|without FOLDER

The second argument says whether the planner's jar is on the class path. Sail, which knows no jars, runs in
the process of the program.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import lance_sql.spark
from lance_sql.spark.planner import planner_jar


def main() -> None:
    kind, jar, folder = sys.argv[1:]
    spark = session(kind, jar == "with")
    try:
        found = program(spark, f"{folder}/t.lance")
        if kind != "sail":  # which loses the options of a view
            found["inserted"] = insert(spark, f"{folder}/t.lance")
        if jar == "with":
            found["saved"] = saved(spark, folder)
        frame = spark.read.format("lance").load(f"{folder}/t.lance")
        found["plan"] = explained(frame.where("id = 3").select("name"))
        print(json.dumps(found, default=str))
    finally:
        spark.stop()


def session(kind: str, with_planner: bool) -> SparkSession:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    if kind == "classic":
        builder = builder.master("local[2]")
    else:
        os.environ["SPARK_TESTING"] = "1"  # the server listens on a free port
        builder = builder.remote("local[2]" if kind == "connect" else sail_server())
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
    }
    if with_planner:
        settings["spark.jars"] = str(planner_jar())
    for key, value in settings.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    lance_sql.spark.register(spark)
    return spark


def sail_server() -> str:
    """The address of a server that runs until this process ends."""
    from pysail.spark import SparkConnectServer

    server = SparkConnectServer("127.0.0.1", 0)
    server.start(background=True)
    atexit.register(server.stop)
    _, port = server.listening_address
    return f"sc://127.0.0.1:{port}"


def program(spark: SparkSession, path: str) -> dict[str, Any]:
    made = (
        spark.range(20_000)
        .selectExpr(
            "id",
            "DATE'2024-01-01' + int(id / 1000) AS day",
            "cast(id * 1.25 AS decimal(12, 2)) AS price",
            "if(id % 3 = 0, null, concat('ü', id % 10)) AS name",
            "named_struct('a', id % 7) AS st",
        )
        .repartition(2)
    )  # without which Sail 0.7 writes no projection of a range, whatever the data source
    lance_sql.spark.write(made, path)
    made.where("id < 10").repartition(1).write.format("lance").mode("append").save(path)
    frame = spark.read.format("lance").load(path)
    month = frame.where("day >= '2024-01-10'").groupBy("name").agg(sf.sum("price"), sf.count("*"))
    oldest = (
        f"SELECT name, min(id) FROM lance.`{path}` VERSION AS OF 1 WHERE id > 100 GROUP BY name ORDER BY name"
    )
    return {
        "all": frame.count(),
        "one": frame.where("id = 7").collect(),
        "month": month.orderBy("name").collect(),
        "struct": frame.where("st.a = 3 AND id < 50").select("id", "st.a").orderBy("id").collect(),
        "limit": len(frame.select("name").limit(7).collect()),
        "join": frame.join(frame.where("id < 5"), "id").count(),
        "version": spark.read.format("lance").option("version", 1).load(path).count(),
        "table": lance_sql.spark.table(spark, path, columns=["id"]).agg(sf.sum("id")).collect(),
        "sql": lance_sql.spark.sql(spark, oldest).collect(),
    }


def insert(spark: SparkSession, path: str) -> list[Any]:
    """The rows that SQL inserts through a view."""
    spark.read.format("lance").load(path).createOrReplaceTempView("v")
    rows = "SELECT id, DATE'2025-01-01', 0, 'new', named_struct('a', 0L) FROM range(-5, 0)"
    spark.sql(f"INSERT INTO v {rows}").collect()
    return spark.read.format("lance").load(path).where("id < 0").orderBy("id").collect()


def saved(spark: SparkSession, folder: str) -> list[int]:
    """Rows after `save` in every mode, and of a table of Spark's own catalog."""
    counts, rows = [], spark.range(3)
    for mode in ("error", "append", "ignore", "overwrite"):  # Connect does not know "errorifexists"
        rows.write.format("lance").mode(mode).save(f"{folder}/saved.lance")
        counts.append(spark.read.format("lance").load(f"{folder}/saved.lance").count())
    rows.write.format("lance").saveAsTable("saved")
    rows.writeTo("saved").append()
    return [*counts, spark.table("saved").count()]


def explained(frame: DataFrame) -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        frame.explain()
    return text.getvalue()


if __name__ == "__main__":
    main()
