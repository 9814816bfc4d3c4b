"""Every setting of a catalog is obeyed or refused by name; users cannot set what only the planner sets."""

from __future__ import annotations

import re
import shutil
import uuid
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import lance_sql
from lance_sql.spark.options import OURS, InvalidOptionError, Options, Use

needs_jdk = pytest.mark.skipif(
    shutil.which("javac") is None, reason="the catalog is built where there is a JDK (javac)"
)

DIRECTORY = [{"path": "{lake}"}, {"impl": "dir", "root": "{lake}"}, {"IMPL": "dir", "path": "{lake}"}]
REFUSED = {
    "single_level_ns": ("true", "Leave it out"),
    "parent": ("a$b", "name the folder of that namespace"),
    "parent_delimiter": ("$", "name the folder of that namespace"),
    "storage_option": ("{}", "did you mean 'storage_options'"),
    "rooot": ("/x", "has no option 'rooot'"),
    "storage_options": ("{", "'storage_options' cannot be"),
    "allow_external": ("sometimes", "allow_external"),
    "limit": ("5", "has no option 'limit'"),
    "packed": ("{}", "has no option 'packed'"),
}


@pytest.mark.parametrize("setting", REFUSED)
def test_settings_that_cannot_be_obeyed(setting: str) -> None:
    value, message = REFUSED[setting]
    with pytest.raises(InvalidOptionError, match=re.escape(message)):
        Options.parse({"path": "p", setting: value})


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("settings")
    lance_sql.write(pa.table({"a": [1, 2]}), folder / "t.lance")
    lance_sql.write(pa.table({"a": [3]}), folder / "t.lance", mode="append")
    lance_sql.open(folder / "t.lance").tags.create("first", 1)
    return folder


def catalog(spark: SparkSession, lake: Path, settings: dict[str, str]) -> str:
    name = f"c_{uuid.uuid4().hex[:8]}"
    spark.conf.set(f"spark.sql.catalog.{name}", "lancesql.spark.LanceCatalog")
    for key, value in settings.items():
        spark.conf.set(f"spark.sql.catalog.{name}.{key}", value.replace("{lake}", str(lake)))
    return name


@needs_jdk
@pytest.mark.parametrize(
    ("place", "setting"), list(zip(DIRECTORY, ["limit", "single_level_ns", "rooot"], strict=True))
)
def test_a_catalog_obeys_or_refuses_each_setting(
    spark: SparkSession, lake: Path, place: dict[str, str], setting: str
) -> None:
    """Whatever names the directory, Python gets all other settings."""
    plain = catalog(spark, lake, {**place, "row_id": "true"})
    assert spark.table(f"{plain}.t").columns == ["a", "_rowid"]
    value, message = REFUSED[setting]
    name = catalog(spark, lake, {**place, setting: value})
    with pytest.raises(Exception, match=re.escape(message)):
        spark.table(f"{name}.t")


@needs_jdk
def test_single_options_of_the_object_store(spark: SparkSession, lake: Path) -> None:
    bad = catalog(spark, lake, {**DIRECTORY[0], "storage.allow_external": "sometimes"})
    with pytest.raises(Exception, match="allow_external"):
        spark.table(f"{bad}.t")
    both = catalog(spark, lake, {**DIRECTORY[1], "storage.region": "x", "storage_options": "{}"})
    with pytest.raises(Exception, match="cannot be combined"):
        spark.table(f"{both}.t")


@needs_jdk
def test_versions_by_the_names_of_spark(spark: SparkSession, lake: Path) -> None:
    path, plain = str(lake / "t.lance"), catalog(spark, lake, DIRECTORY[0])
    moment = lance_sql.open(path).inspect.versions()["committed_at"][0].as_py().isoformat()
    for name, value, rows in (
        ("versionAsOf", "2", 3),
        ("versionAsOf", "first", 2),
        ("timestampAsOf", moment, 2),
    ):
        frame = spark.read.format("lance").option(name, value).load(path)
        assert len(frame.where("a > 0").collect()) == rows, (name, value)
    assert spark.read.format("lance_python").option("versionAsOf", 1).load(path).count() == 2
    assert spark.read.option("versionAsOf", 1).table(f"{plain}.t").count() == 2
    versions = spark.table(f"{plain}.t.versions").select("version", "rows")
    assert dict(versions.dtypes) == {"version": "bigint", "rows": "bigint"}
    assert [tuple(row) for row in versions.collect()] == [(1, 2), (2, 3)]


INTERNAL = ["pushed_filters", "limit", "packed", "part", "catalog_command", "namespace", "declared"]


@pytest.mark.parametrize("name", [*INTERNAL, "parallelism", "changed_version", "given"])
@pytest.mark.parametrize("use", Use)
def test_options_of_the_planner_are_unknown(name: str, use: Use) -> None:
    with pytest.raises(InvalidOptionError, match=f"Lance has no option '{name}'") as caught:
        Options.parse({"path": "p", name: "1"}, use)
    assert OURS not in str(caught.value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"versionAsOf": "1", "version": "2"}, "'version' is given twice"),
        ({"versionAsOf": "1", "timestampAsOf": "2026-01-01"}, "cannot be combined"),
        ({"timestampAsOf": "yesterday"}, "'timestampAsOf' cannot be 'yesterday'"),
        ({"storage.region": "x"}, "'storage_options'"),
    ],
)
def test_mistakes(texts: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        Options.parse({"path": "p", **texts}, Use.READ)


def test_writes_take_no_version() -> None:
    with pytest.raises(InvalidOptionError, match="for reading, not for writing"):
        Options.parse({"path": "p", "versionAsOf": "1"}, Use.WRITE)
