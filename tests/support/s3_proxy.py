"""A proxy for an object store that counts requests and makes some of them fail."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Literal
from urllib.parse import urlsplit

#: 503: SlowDown. reset: the connection breaks before the store sees the request. truncate: half of the body
#: comes. short: the same, but the header fits. stall: nothing for a while. lost: carried out, not answered.
Fault = Literal["403", "503", "reset", "truncate", "short", "stall", "lost"]

_REFUSALS: Final[dict[Fault, bytes]] = {
    "403": b"<Error><Code>AccessDenied</Code><Message>No</Message></Error>",
    "503": b"<Error><Code>SlowDown</Code><Message>Please wait</Message></Error>",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client."""

    method: str
    path: str
    range: str | None


class Gathering:
    """Holds requests until `count` different ones are open together: that they overlap needs no clock.

    After `seconds` in which they did not, all are answered, these and later ones.
    """

    def __init__(self, count: int, kind: Callable[[Request], bool], seconds: float) -> None:
        #: the most different requests of the kind that were open at the same time
        self.most = 0
        self._count = count
        self._kind = kind
        self._seconds = seconds
        self._open: Counter[Request] = Counter()
        self._lock = threading.Lock()
        self._released = threading.Event()

    @property
    def is_holding(self) -> bool:
        """Whether no request of the kind has been answered yet."""
        return not self._released.is_set()

    @contextmanager
    def held(self, request: Request) -> Iterator[None]:
        """A block that answers the request."""
        if not self._kind(request):
            yield
            return
        with self._lock:
            self._open[request] += 1  # a repeated one is not another one
            self.most = max(self.most, len(self._open))
            if self.most >= self._count:
                self._released.set()
        try:
            if not self._released.wait(self._seconds):
                self._released.set()
            yield
        finally:
            with self._lock:
                self._open[request] -= 1
                self._open += Counter()


@dataclass
class S3Proxy:
    """What went through, and what is to go wrong: `fault` tells for each request."""

    endpoint: str
    requests: list[Request] = field(default_factory=list)
    fault: Callable[[Request], Fault | None] = lambda request: None
    stall_seconds: float = 30.0
    #: of each request, in seconds
    delay: float = 0.0
    gathering: Gathering | None = None
    in_flight: int = 0
    most_in_flight: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reset(self) -> None:
        """Count from zero."""
        with self.lock:
            self.requests.clear()
            self.most_in_flight = 0

    @contextmanager
    def gather(
        self, count: int, kind: Callable[[Request], bool], seconds: float = 60.0
    ) -> Iterator[Gathering]:
        """A block in which requests of a kind are answered once `count` of them are open together."""
        self.gathering = Gathering(count, kind, seconds)
        try:
            yield self.gathering
        finally:
            self.gathering = None

    def methods(self) -> list[str]:
        """The methods of the requests, in order."""
        return [request.method for request in self.requests]

    def fail(self, fault: Fault, *, times: int, method: str = "", path: str = "") -> None:
        """Answer the next `times` requests of this kind badly."""
        left = [times]

        def next_fault(request: Request) -> Fault | None:
            if request.method.startswith(method) and path in request.path and left[0]:
                left[0] -= 1
                return fault
            return None

        self.fault = next_fault


def new_bucket(proxy: S3Proxy, name: str) -> dict[str, str]:
    """Create a bucket behind the proxy; returns the storage options for it."""
    request = urllib.request.Request(f"{proxy.endpoint}/{name}", method="PUT")
    urllib.request.urlopen(request, timeout=30).close()
    return {
        "aws_endpoint": proxy.endpoint,
        "allow_http": "true",
        "aws_access_key_id": "test",
        "aws_secret_access_key": "test",
        "aws_region": "us-east-1",
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    proxy: S3Proxy
    upstream: str

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        request = Request(self.command, self.path, self.headers.get("Range"))
        proxy = self.proxy
        with proxy.lock:
            proxy.requests.append(request)
            proxy.in_flight += 1
            proxy.most_in_flight = max(proxy.most_in_flight, proxy.in_flight)
            fault = proxy.fault(request)
        try:
            time.sleep(proxy.delay)
            gathering = proxy.gathering
            with nullcontext() if gathering is None else gathering.held(request):
                self._answer(body, fault)
        finally:
            with proxy.lock:
                proxy.in_flight -= 1

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = _serve  # noqa: N815 - as http.server calls them

    def _answer(self, body: bytes, fault: Fault | None) -> None:
        if fault == "stall":
            time.sleep(self.proxy.stall_seconds)
        if fault in ("reset", "stall"):
            self._break()
            return
        if fault in _REFUSALS:
            # An answer to HEAD has no body: whatever came would be taken for the next answer.
            self._send(int(fault), {}, b"" if self.command == "HEAD" else _REFUSALS[fault], None)
            return
        connection = http.client.HTTPConnection(self.upstream)
        try:
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if fault == "lost":
            self._break()
            return
        headers = {
            name: value
            for name, value in answer.getheaders()
            if name.lower() not in ("connection", "transfer-encoding", "content-length", "server", "date")
        }
        length = answer.getheader("Content-Length") if self.command == "HEAD" else None
        if fault == "truncate":
            self._send(answer.status, headers, content[: len(content) // 2], str(len(content)))
            self._break()
            return
        if fault == "short":
            content = content[: len(content) // 2]
        self._send(answer.status, headers, content, length)

    def _send(self, status: int, headers: dict[str, str], body: bytes, length: str | None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _break(self) -> None:
        """Close the connection without a response."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        """The tests are about clients that give up."""


@contextmanager
def s3_proxy(endpoint: str) -> Iterator[S3Proxy]:
    """A proxy before the store at `endpoint`, on a free port of this machine."""
    handler = type("Handler", (_Handler,), {"upstream": urlsplit(endpoint).netloc})
    with _Server(("127.0.0.1", 0), handler) as server:
        proxy = S3Proxy(f"http://127.0.0.1:{server.server_port}")
        handler.proxy = proxy  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
