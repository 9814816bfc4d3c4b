"""Displayed text contains no control characters and no secrets."""

from __future__ import annotations

import json
import re
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from lance_engine.errors import LanceError
from lance_engine.legible import legible, legible_line, without_secrets

import lance_sql
from lance_sql.cli.app import app
from lance_sql.display.tables import text_table
from lance_sql.errors import SqlError, TableNotFoundError

#: Sets the title of a window, clears the screen (C1), turns the direction of writing, begins a line.
NASTY = "x\x1b]0;owned\x07\x9b2J\u202egnp\u2066\u200b\x7f\r"
UNFIT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]")


def test_escapes() -> None:
    assert legible("plain\ttext\n") == "plain\ttext\n"
    assert legible("Grüße, 日本 🙂") == "Grüße, 日本 🙂"
    assert legible("\x1b[2J\x9b\u202e\ud800") == "\\x1b[2J\\x9b\\u202e\\ud800"
    assert legible_line("a\nb\tc") == "a\\nb\\tc"
    assert not UNFIT.search(legible(NASTY))


def test_errors_are_legible_and_keep_secrets() -> None:
    error = LanceError(f"bad {NASTY}", path=f"s3://me:pw@host/{NASTY}\n", remedy=NASTY)
    assert not UNFIT.search(str(error))
    assert "pw" not in str(error)
    assert "\n" not in str(error)
    assert "hunter2" not in repr(LanceError("at https://me:hunter2@host/x?sig=hunter2"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("https://me:pw@host/x?sig=1&a=2", "https://host/x?sig=...&a=2"),
        ("see https://token@host/x, and s3://k:s@b/y", "see https://host/x, and s3://b/y"),
        ("abfss://c@a.dfs/x?sig=1", "abfss://c@a.dfs/x?sig=..."),
        ("s3+ddb://b/x?ddbTableName=t", "s3+ddb://b/x?ddbTableName=t"),
        ("https://h/x?X-Amz-Signature=a", "https://h/x?X-Amz-Signature=..."),
        ("/a@b/c?d", "/a@b/c?d"),
        ("s3://AK:se/cr+et@bucket/x", "s3://bucket/x"),
        ("https://h:80/a@b/c", "https://h:80/a@b/c"),
        ("CREATE SECRET s (KEY_ID 'AK', SECRET 'hun''ter2')", "CREATE SECRET s (KEY_ID '...', SECRET '...')"),
        ("create secret (type gcs,\n  secret 'hunter2", "create secret (type gcs,\n  secret '...'"),
        ("{'aws_secret_access_key': 'x', 'region': 'y'}", "{'aws_secret_access_key': '...', 'region': 'y'}"),
        ("AccountName=a;AccountKey=b==;Suffix=c", "AccountName=a;AccountKey=...;Suffix=c"),
        ("host=a password=b", "host=a password=..."),
        ("sv=2024&sig=abc", "sv=2024&sig=..."),
        ("Authorization: Bearer abcdef.ghi", "Authorization: Bearer ..."),
        ("The secret 's1' already exists", "The secret 's1' already exists"),
        ("Column 'token' not found: significant=3", "Column 'token' not found: significant=3"),
    ],
)
def test_uris_are_shown_without_secrets(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.fixture
def nasty(tmp_path: Path) -> str:
    table = pa.table({NASTY: [NASTY, "b"], "s": [{"k": NASTY}, None], "n": [[NASTY], None]})
    path = tmp_path / "t.lance"
    dataset = lance_sql.write(table, path)
    dataset.create_index("s.k", name=f"i{NASTY}")
    return str(path)


def test_tables_and_plans(nasty: str) -> None:
    dataset = lance_sql.open(nasty)
    assert not UNFIT.search(text_table(dataset.scan().to_table(), 10))
    assert not UNFIT.search(repr(dataset) + dataset._repr_html_())
    query = lance_sql.sql(f"SELECT * FROM '{nasty}'")
    assert not UNFIT.search(repr(query) + query._repr_html_() + str(query.explain(analyze=True)))
    for filter in (f'"{NASTY}" = 3 AND', f'"{NASTY}x" = 1'):
        with pytest.raises(LanceError) as caught:
            dataset.scan(filter=filter).to_table()
        assert not UNFIT.search(str(caught.value))


@pytest.mark.parametrize(
    "arguments",
    [
        ["inspect", "{}"],
        ["inspect", "{}", "--json"],
        ["SELECT * FROM '{}'"],
        ["SELECT * FROM '{}'", "--explain"],
        ["SELECT * FROM '{}'", "--format", "markdown"],
        ["SELECT * FROM '{}'", "--format", "json"],
        ["SELECT * FROM '{}'", "--format", "ndjson"],
        ['SELECT "' + NASTY + "x\" FROM '{}'"],
        ["diff", "{}", "1", "2"],
        ["index", "list", "{}"],
        ["verify", "{}"],
        ["health", "{}"],
    ],
)
def test_commands(nasty: str, arguments: list[str]) -> None:
    result: Any = CliRunner().invoke(app, [argument.replace("{}", nasty) for argument in arguments])
    assert result.output
    assert not UNFIT.search(result.output)
    if "ndjson" in arguments:
        assert json.loads(result.stdout.splitlines()[0])[NASTY] == NASTY


SECRET = "hunter2xyz"
OPTIONS = {"aws_access_key_id": "AK", "aws_secret_access_key": SECRET, "region": "x"}


@pytest.mark.parametrize(
    "place",
    [
        {"path": f"s3://AK:{SECRET}@b/x"},
        {"path": Path(f"/x?X-Amz-Signature={SECRET}")},
        {"options": OPTIONS, "paths": [f"az://c/x?sig={SECRET}", OPTIONS]},
        {"filter": f"CREATE SECRET x (TYPE S3, SECRET '{SECRET}')"},
        {"error": ValueError(f"password={SECRET}")},
    ],
)
def test_no_part_of_an_error_has_credentials(place: dict[str, Any]) -> None:
    text = f"Cannot read https://u:{SECRET}@h/x?sig={SECRET}"
    errors = [
        SqlError(text, remedy=text, **place),
        LanceError("x").at(**place),
        TableNotFoundError(text, remedy=text),
    ]
    for error in errors:
        error.add_note(text)
        error.message, error.remedy = f"{text} {error.message}", text
        shown = [
            str(error),
            repr(error),
            str(error.args),
            str(error.place),
            *traceback.format_exception(error),
        ]
        assert SECRET not in "".join(shown)
        assert SECRET not in str(vars(error))


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
@pytest.mark.parametrize(
    "options",
    [
        f"TYPE GCS, KEY_ID 'AK', SECRET '{SECRET}'",
        f"TYPE S3, KEY_ID 'AK', SECRET '{SECRET}' oops",
        f" '{SECRET}' ",
        f"TYPE S3,\n SECRET :={SECRET}",
        f"TYPE NONSENSE, SECRET '{SECRET}'",
    ],
)
def test_errors_of_create_secret_have_no_credentials(engine: str, options: str) -> None:
    with lance_sql.connect(engine=engine) as connection, pytest.raises(LanceError) as caught:
        connection.sql(f"CREATE SECRET s ({options})")
    assert SECRET not in "".join(traceback.format_exception(caught.value)) + str(vars(caught.value))


def test_statements_with_credentials_show_no_position() -> None:
    with lance_sql.connect() as connection, pytest.raises(LanceError) as caught:
        connection.sql(f"SELECT 1 WHERE\n secret = '{SECRET}' oops oops")
    assert SECRET not in str(caught.value)
