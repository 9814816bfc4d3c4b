"""Options arrive as text and are checked."""

from __future__ import annotations

import pytest

from lance_sql.spark.options import InvalidOptionError, Options


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
