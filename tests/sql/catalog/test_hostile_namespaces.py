"""REST namespaces whose server returns nonsense or redirects requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from lance_engine.errors import ExternalAccessError, LanceError

import lance_sql
from lance_sql.catalog.service_places import options_for_place


class _Handler(BaseHTTPRequestHandler):
    body = b""
    elsewhere: str | None = None
    #: where answers are endless: how often the body was sent
    repeats = 0
    seen: list[dict[str, str]]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.do_GET()

    def do_GET(self) -> None:
        self.seen.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200 if self.elsewhere is None else 307)
        if self.elsewhere is not None:
            self.send_header("Location", f"{self.elsewhere}{self.path}")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.body) if not self.repeats else 3 << 30))
        self.end_headers()
        self.wfile.write(self.body)
        while self.repeats:
            try:
                self.wfile.write(self.body)
            except OSError:
                self.close_connection = True
                return
            type(self).repeats += 1

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[list[tuple[str, type[_Handler]]]]:
    """The address and the handler of two servers."""
    running = []
    for name in ("127.0.0.1", "localhost"):
        handler = type("Handler", (_Handler,), {"seen": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        running.append((f"http://{name}:{server.server_port}", handler, server))
    yield [(address, handler) for address, handler, _ in running]
    for *_, server in running:
        server.shutdown()
        server.server_close()


def attached(address: str, **options: Any) -> lance_sql.Connection:
    session = lance_sql.connect(**options)
    secrets = "BEARER_TOKEN 'b-secret', API_KEY 'k-secret'"
    session.sql(f"ATTACH '' AS ns (TYPE LANCE, ENDPOINT '{address}', {secrets})")
    return session


@pytest.mark.parametrize(
    "body", [b"null", b"{{{", b"[1]", b'{"tables": [1], "location": 5}', b"[" * 100_000, b""]
)
def test_nonsense(servers: list[tuple[str, type[_Handler]]], body: bytes) -> None:
    (address, handler), _ = servers
    handler.body = body
    with attached(address) as session:
        for statement in (
            "SHOW TABLES FROM ns",
            "SELECT * FROM ns.t",
            "CREATE TABLE ns.q AS SELECT 1 AS a",
            "DROP TABLE ns.t",
        ):
            with pytest.raises(LanceError) as caught:
                session.sql(statement).arrow()
            assert "secret" not in str(caught.value)


def located(handler: type[_Handler], location: object, **options: str) -> None:
    handler.body = json.dumps(
        {"location": str(location), "storage_options": options, "namespaces": [], "tables": ["t"]}
    ).encode()


@pytest.mark.parametrize("engine", ["duckdb", "datafusion"])
def test_a_table_that_was_not_made_for_the_service_is_not_dropped(
    servers: list[tuple[str, type[_Handler]]], tmp_path: Path, engine: Any
) -> None:
    (address, handler), _ = servers
    victim = tmp_path / "mine.lance"
    lance_sql.write({"a": [1]}, victim)
    located(handler, victim, allow_external="all")
    with attached(address, engine=engine) as session:
        assert session.sql("SELECT a FROM ns.t").fetchall() == [(1,)]
        with pytest.raises(ExternalAccessError, match="says that the table to remove is") as caught:
            session.sql("DROP TABLE ns.t")
        assert f"allow_external=['{tmp_path}']" in str(caught.value)
        with pytest.raises(ExternalAccessError):
            session.sql("USE ns; DROP TABLE t")
        with pytest.raises(ExternalAccessError):
            session.sql("ALTER TABLE ns.t RENAME TO u")
    assert lance_sql.open(victim).count_rows() == 1
    with attached(address, engine=engine, allow_external=[str(tmp_path)]) as session:
        session.sql("DROP TABLE ns.t")
    assert not victim.exists()


def test_local_folders_are_for_servers_of_this_machine(
    servers: list[tuple[str, type[_Handler]]], tmp_path: Path
) -> None:
    (address, handler), _ = servers
    lance_sql.write({"a": [1]}, tmp_path / "t.lance")
    for location in (tmp_path / "t.lance", f"file://{tmp_path}/t.lance"):
        located(handler, location)
        with attached(address, allow_external="none") as session:
            for statement in ("SELECT * FROM ns.t", "INSERT INTO ns.t VALUES (2)", "DROP TABLE ns.t"):
                with pytest.raises(ExternalAccessError, match="as the place of a table"):
                    session.sql(statement).fetchall()
        with pytest.raises(ExternalAccessError, match="as the place of a table"):
            options_for_place("https://catalog.example.com/v1", str(location), None, None)
        assert options_for_place("http://[::1]:80/", str(location), None, None) is None


@pytest.mark.parametrize(
    "location",
    [
        "http://evil.example/t.lance",
        "https://evil.example/t",
        "sftp://h/t",
        "github://a:b@/t",
        "memory://x/t",
    ],
)
def test_other_schemes(location: str) -> None:
    with pytest.raises(ExternalAccessError, match="allow_external"):
        options_for_place("https://catalog.example.com", location, None, None)
    allowed = {"allow_external": [location]}
    assert options_for_place("https://catalog.example.com", location, allowed, None) == allowed


def test_credentials_are_not_for_endpoints_that_the_service_chooses() -> None:
    own = {"aws_secret_access_key": "mine", "allow_external": "same-store"}
    vended = {"aws_session_token": "theirs", "Allow_External": "all"}
    place = "s3://bucket/t.lance"
    assert options_for_place("https://c", place, own, vended) == {**own, "aws_session_token": "theirs"}
    elsewhere = {"aws_endpoint": "http://evil.example"}
    assert options_for_place("https://c", place, own, elsewhere) == {
        "allow_external": "same-store",
        **elsewhere,
    }


def test_an_endless_answer(servers: list[tuple[str, type[_Handler]]]) -> None:
    (address, handler), _ = servers
    handler.body, handler.repeats = b" " * (1 << 20), 1
    with attached(address) as session, pytest.raises(LanceError, match="a response of more than 64 MB"):
        session.sql("SHOW TABLES FROM ns").arrow()
    assert handler.repeats < 200


def test_another_host_gets_no_credentials(servers: list[tuple[str, type[_Handler]]]) -> None:
    (address, handler), (other, elsewhere) = servers
    handler.elsewhere, elsewhere.body = other, b'{"tables": [], "namespaces": []}'
    with attached(address) as session:
        session.sql("SHOW TABLES FROM ns").arrow()
    assert handler.seen[0]["x-api-key"] == "k-secret"
    assert elsewhere.seen
    assert not {"x-api-key", "authorization"} & set(elsewhere.seen[0])
