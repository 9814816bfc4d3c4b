"""Options arrive as text and are checked."""

from __future__ import annotations

import pytest

from lance_sql.spark.options import GIVEN, InvalidOptionError, Options, Use


def test_options_are_parsed_whatever_their_case() -> None:
    texts = {
        "PATH": "s3://bucket/t.lance",
        "Version": "3",
        "columns": "a, b",
        "filter": "a > 1",
        "storage_options": '{"anon": true}',
    }
    assert Options.parse(texts) == Options(
        "s3://bucket/t.lance", version=3, columns=("a", "b"), filter="a > 1", storage_options={"anon": True}
    )


def test_columns_may_be_a_json_list() -> None:
    assert Options.parse({"path": "p", "columns": '["a,b", "c"]'}).columns == ("a,b", "c")


@pytest.mark.parametrize(
    ("given", "path"),
    [("file:/d/t", "/d/t"), ("file:///d/t", "file:///d/t"), ("/d/t", "/d/t"), ("s3://b/t", "s3://b/t")],
)
def test_local_paths_as_hadoop_spells_them(given: str, path: str) -> None:
    assert Options.parse({"path": given}).path == path


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({}, "No path"),
        ({"path": "p", "versoin": "1"}, "did you mean 'version'"),
        ({"path": "p", "zzz": "1"}, "known are: path, version"),
        ({"path": "p", "version": "latest"}, "'version' cannot be 'latest'"),
        ({"path": "p", "partitions": "0"}, "at least 1"),
        ({"path": "p", "columns": "a,,b"}, "must be a list of columns"),
        ({"path": "p", "storage_options": "[]"}, "JSON object"),
        ({"path": "p", "storage_options": "{"}, "'storage_options' cannot be"),
    ],
)
def test_mistakes_are_explained(texts: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        Options.parse(texts)


@pytest.mark.parametrize(
    ("use", "texts", "message"),
    [
        (Use.READ, {"profile": "size"}, "'profile' is for writing and writing streams, not for reading"),
        (Use.READ, {"start_version": "1"}, "not for reading"),
        (Use.WRITE, {"batch_size": "5"}, "not for writing: it would have no effect"),
        (Use.WRITE, {"stream_id": "s"}, "'stream_id' is for writing streams, not for writing"),
        (Use.STREAM_READ, {"version": "3"}, "'version' is for reading, not for reading streams"),
        (Use.STREAM_WRITE, {"partitions": "3"}, "not for writing streams"),
        (Use.WRITE, {"max_rows_per_group": "5"}, "files have no row groups"),
        (Use.WRITE, {"write_mode": "append"}, r"use df\.write\.mode"),
        (Use.READ, {"topN_push_down": "true"}, "Leave it out"),
        (Use.READ, {"pushDownFilters": "false"}, "Leave it out"),
        (Use.WRITE, {"data_storage_version": "LEGACY"}, "can only be read"),
    ],
)
def test_options_without_effect_are_refused(use: Use, texts: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidOptionError, match=message):
        Options.parse({"path": "p", **texts}, use)


@pytest.mark.parametrize("use", Use)
def test_options_of_tables_and_catalogs_are_for_every_use(use: Use) -> None:
    """Only what was given for this read or write is checked; the planner says what that is."""
    texts = {"path": "p", "batch_size": "5", "profile": "size", "start_version": "1", "stream_id": "s"}
    Options.parse({**texts, GIVEN: "path"}, use)
    with pytest.raises(InvalidOptionError, match="no effect"):
        Options.parse({**texts, GIVEN: "batchsize,profile"}, use)


@pytest.mark.parametrize("name", ["version", "tag", "as_of", "columns", "filter", "row_id"])
def test_parts_of_a_table_are_not_written_to(name: str) -> None:
    value = {"version": "1", "as_of": "2026-01-01", "row_id": "true"}.get(name, "a")
    with pytest.raises(InvalidOptionError, match=f"'{name}' is for reading"):
        Options.parse({"path": "p", name: value, GIVEN: "path"}, Use.WRITE)


def test_options_of_lance_spark_have_our_meaning() -> None:
    texts = {
        "path": "p",
        "max_row_per_file": "5",
        "enable_stable_row_ids": "true",
        "file_format_version": "2.0",
    }
    assert Options.parse(texts, Use.WRITE) == Options(
        "p", max_rows_per_file=5, stable_row_ids=True, data_storage_version="2.0"
    )
    assert Options.parse({"path": "p", "data_storage_version": "STABLE"}).data_storage_version is None


def test_unknown_options_are_answered_with_those_that_have_a_use() -> None:
    with pytest.raises(InvalidOptionError) as caught:
        Options.parse({"path": "p", "zzz": "1"}, Use.READ)
    known = str(caught.value).partition("known are: ")[2].split(", ")
    assert {"version", "filter", "batch_size"} <= set(known)
    assert not {"profile", "packed", "catalog_command", "declared", "stream_id"} & set(known)
