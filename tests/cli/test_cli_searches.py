"""``lance-sql nearest`` and ``lance-sql search``: they find the same rows as the Python functions."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from click.testing import CliRunner
from vector_tables import clustered, vector_array

import lance_sql
from lance_sql.cli.app import app
from lance_sql.full_text import Match, Phrase

WORDS = ["red fox", "fox red", "blue dog", "red dog and fox", None]


@pytest.fixture
def ds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = pa.table(
        {
            "id": range(500),
            "v": vector_array(clustered(500, 8)),
            "text": [WORDS[row % 5] and f"{WORDS[row % 5]} {row}" for row in range(500)],
        }
    )
    ds = lance_sql.write(table, "t.lance").create_index("v", "IVF_FLAT", num_partitions=2)
    return ds.create_index("text", "INVERTED", with_position=True)


def told(*arguments: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code != 0
    assert "Traceback" not in done.output
    return " ".join(done.stderr.split())


def test_nearest(ds):
    vector = clustered(500, 8)[7].tolist()
    options = ("-k", "3", "--columns", "id")
    expected = ds.nearest("v", vector, 3, columns=["id"])["id"].to_pylist()
    assert [row["id"] for row in told("nearest", "t.lance", "v", json.dumps(vector), *options)] == expected
    assert [row["id"] for row in told("nearest", "t.lance", "v", "row:7", *options)] == expected
    assert expected[0] == 7
    found = told("nearest", "t.lance", "v", "row:7", "--where", "id > 100", "--exact", "--metric", "cosine")
    right = ds.nearest("v", vector, metric="cosine", filter="id > 100", use_index=False)
    assert [row["id"] for row in found] == right["id"].to_pylist()
    assert set(found[0]) == {"id", "v", "text", "_distance"}


def test_search(ds):
    options = ("-k", "4", "--columns", "id")
    for extra, query in [
        ((), Match("red fox")),
        (("--all",), Match("red fox", operator="and")),
        (("--phrase",), Phrase("red fox")),
        (("--where", "id > 400"), Match("red fox")),
    ]:
        filter = "id > 400" if "--where" in extra else None
        expected = ds.search(query, k=4, columns=["id"], filter=filter).to_pylist()
        assert told("search", "t.lance", "red fox", *extra, *options) == expected
        assert expected
    exact = told("search", "t.lance", "dog", "--column", "text", "--exact", *options)
    assert exact == ds.search("dog", "text", 4, columns=["id"], use_index=False).to_pylist()


def test_mistakes(ds):
    assert "[0.1, 0.2]" in refused("nearest", "t.lance", "v", "seven")
    assert "8" in refused("nearest", "t.lance", "v", "[1, 2]")
    assert "vectors" in refused("nearest", "t.lance", "id", "[1]")
    assert "text" in refused("search", "t.lance", "fox", "--column", "id")
    assert "nowhere" in refused("search", "t.lance", "fox", "--column", "nowhere")
