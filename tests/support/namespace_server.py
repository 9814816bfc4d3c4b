"""A small REST server of namespaces over a directory, as `lance-namespace` specifies it."""

from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@contextmanager
def namespace_server(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """The address of the server and the requests it received; it requires the token ``secret``."""
    tables: dict[str, str] = {}
    namespaces: set[str] = set()
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self._answer(json.loads(body or b"{}"))

        def _answer(self, body: dict[str, object]) -> None:
            url = urllib.parse.urlsplit(self.path)
            _, kind, name, *action = (urllib.parse.unquote(part) for part in url.path.strip("/").split("/"))
            what = f"{kind} {' '.join(action)}"
            requests.append(what)
            query = dict(urllib.parse.parse_qsl(url.query))
            name = name.strip("$")
            if self.headers.get("Authorization") != "Bearer secret":
                self._send(401, {"error": "who are you?", "code": 13})
                return
            below = f"{name}$" if name else ""
            match what:
                case "namespace list":
                    self._send(200, {"namespaces": [] if name else sorted(namespaces)})
                case "namespace table list":
                    known = sorted(key.removeprefix(below) for key in tables if key.startswith(below))
                    here = [key for key in known if "$" not in key]
                    start = int(query.get("page_token") or 0)  # pages of one table
                    token = str(start + 1) if start + 1 < len(here) else None
                    self._send(200, {"tables": here[start : start + 1], "page_token": token})
                case "namespace create":
                    namespaces.add(name)
                    self._send(200, {})
                case "namespace drop":
                    namespaces.discard(name)
                    self._send(200, {})
                case "table describe" if name in tables:
                    self._send(200, {"location": tables[name], "storage_options": {}})
                case "table declare":
                    tables[name] = str(folder / f"{name.replace('$', '_')}.lance")
                    self._send(200, {"location": tables[name]})
                case "table deregister":
                    del tables[name]
                    self._send(200, {})
                case _:
                    self._send(404, {"error": f"no {name}", "code": 4})

        def _send(self, status: int, body: dict[str, object]) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
