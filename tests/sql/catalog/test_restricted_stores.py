"""Restricted sessions send no request to a server: stores, services, URLs and paths in every statement."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lance_sql

STATEMENTS = """
SELECT * FROM '{x}'
FROM '{x}@1'
SELECT * FROM '{x}'.versions
SELECT * FROM '{x}' AT (VERSION => 1)
SELECT * FROM lance_scan('{x}')
SELECT * FROM lance_metadata('{x}', 'versions')
SELECT * FROM lance_vector_search('{x}', 'v', [1.0, 2.0], k => 1)
SELECT * FROM lance_fts('{x}', 'text', 'words')
SELECT * FROM lance_hybrid_search('{x}', 'v', [1.0, 2.0], 'text', 'words')
SELECT * FROM kept JOIN '{x}' USING (id)
CREATE TABLE '{x}' AS SELECT 1 AS id
CREATE TABLE made AS SELECT * FROM '{x}'
CREATE VIEW v AS SELECT * FROM '{x}'
COPY kept TO '{x}' (FORMAT lance)
COPY kept TO '{x}.csv'
COPY kept TO '{x}.parquet' (FORMAT parquet)
COPY kept FROM '{x}'
COPY kept FROM '{x}.csv'
COPY (SELECT * FROM '{x}') TO 'made.lance' (FORMAT lance)
EXPORT DATABASE '{x}'
IMPORT DATABASE '{x}'
INSERT INTO '{x}' VALUES (1)
INSERT INTO kept (id) SELECT id FROM '{x}'
UPDATE '{x}' SET id = 1
UPDATE kept SET id = s.id FROM '{x}' s
DELETE FROM '{x}'
DELETE FROM kept USING '{x}' s WHERE kept.id = s.id
MERGE INTO '{x}' t USING kept s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO kept t USING '{x}' s ON t.id = s.id WHEN MATCHED THEN DELETE
MERGE INTO kept t USING ('{x}' JOIN kept k USING (id)) ON t.id = k.id WHEN MATCHED THEN DELETE
MERGE INTO kept t USING kept k JOIN '{x}' s USING (id) ON t.id = k.id WHEN MATCHED THEN DELETE
TRUNCATE '{x}'
ALTER TABLE '{x}' ADD COLUMN more BIGINT
CREATE INDEX i ON '{x}' (id)
DROP TABLE '{x}'
OPTIMIZE '{x}'
VACUUM '{x}'
SHOW VERSIONS FROM '{x}'
DESCRIBE '{x}'
SUMMARIZE '{x}'
CALL restore('{x}', 1)
CALL create_tag('{x}', 't', 1)
ATTACH '{x}' AS other (TYPE lance)
ATTACH IF NOT EXISTS '{x}' AS other (TYPE lance)
ATTACH 'ns' AS other (TYPE lance, ENDPOINT '{url}')
"""
PLACES = [
    "s3://bucket/x.lance",
    "S3://bucket/x.lance",
    "s3a://bucket/x.lance",
    "s3+ddb://bucket/x.lance?ddbTableName=t",
    "{url}/x.lance",
    "file://{folder}/x.lance",
]


class _Counting(http.server.BaseHTTPRequestHandler):
    requests: list[str]

    def answer(self) -> None:
        self.requests.append(f"{self.command} {self.path}")
        self.send_response(404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815

    def log_message(self, format: str, *arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    requests: list[str] = []
    handler = type("Handler", (_Counting,), {"requests": requests})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}", requests
        running.shutdown()


def session(which: str, folder: Path, url: str, *allowed: str) -> lance_sql.Connection:
    store = {
        "aws_endpoint": url, "aws_access_key_id": "a", "aws_secret_access_key": "b", "aws_region": "r",
        "allow_http": "true",
    }  # fmt: skip
    if which != "set":
        return lance_sql.connect(
            folder,
            engine=which,
            storage_options=store,
            enable_external_access=False,
            allowed_directories=list(allowed),
        )
    found = lance_sql.connect(folder, storage_options=store)
    found.sql(f"SET allowed_directories = {list(allowed)}")
    found.sql("SET enable_external_access = false")
    found.sql("SET lock_configuration = true")
    return found


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("which", ["set", "duckdb", "datafusion"])
def test_no_statement_reaches_a_store(
    tmp_path: Path, server: tuple[str, list[str]], which: str, place: str
) -> None:
    url, requests = server
    inside, outside = tmp_path / "in", tmp_path / "out"
    rows = pa.table({"id": [1], "text": ["words"], "v": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))})
    for path in (inside / "kept.lance", outside / "x.lance"):
        path.parent.mkdir()
        lance_sql.write(rows, path)
    x = place.format(url=url, folder=outside)
    with session(which, inside, url, "s3://bucket/other/", f"{tmp_path}/ou") as con:
        for text in STATEMENTS.strip().splitlines():
            with pytest.raises(lance_sql.LanceError):
                con.sql(text.format(x=x, url=url)).fetchall()
            assert not requests, text
        with pytest.raises(lance_sql.LanceError):
            con.register("r", x)
        assert con.sql("SELECT id FROM kept").fetchall() == [(1,)]
    assert not requests
    assert lance_sql.open(outside / "x.lance").version == 1


@pytest.mark.parametrize("which", ["set", "duckdb", "datafusion"])
def test_an_allowed_folder_of_a_store_is_reached(
    tmp_path: Path, server: tuple[str, list[str]], which: str
) -> None:
    url, requests = server
    with session(which, tmp_path, url, "s3://bucket/shared/") as con:
        for refused in (
            "s3://bucket/sharedx/x.lance",
            "s3://bucket/shared/../x.lance",
            "s3://bucket2/shared/x.lance",
        ):
            with pytest.raises(lance_sql.LanceError, match="no access"):
                con.sql(f"SELECT * FROM '{refused}'")
        assert not requests
        with pytest.raises(lance_sql.LanceError):
            con.sql("SELECT * FROM 's3://bucket/shared/x.lance'").fetchall()
        assert requests
