"""REST namespaces whose server answers nonsense, or sends requests elsewhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from lance_engine.errors import LanceError

import lance_sql


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


def attached(address: str) -> lance_sql.Connection:
    session = lance_sql.connect()
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


def test_an_endless_answer(servers: list[tuple[str, type[_Handler]]]) -> None:
    (address, handler), _ = servers
    handler.body, handler.repeats = b" " * (1 << 20), 1
    with attached(address) as session, pytest.raises(LanceError, match="an answer of more than 64 MB"):
        session.sql("SHOW TABLES FROM ns").arrow()
    assert handler.repeats < 200


def test_another_host_gets_no_credentials(servers: list[tuple[str, type[_Handler]]]) -> None:
    (address, handler), (other, elsewhere) = servers
    handler.elsewhere, elsewhere.body = other, b'{"tables": []}'
    with attached(address) as session:
        session.sql("SHOW TABLES FROM ns").arrow()
    assert handler.seen[0]["x-api-key"] == "k-secret"
    assert elsewhere.seen
    assert not {"x-api-key", "authorization"} & set(elsewhere.seen[0])
