"""Creating a file only if it is absent, on a server that answers as the object stores do."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.io import Store, open_store
from lance_engine.io.fsspec_store import FsspecStore

if TYPE_CHECKING:
    from conftest import ObjectStore


class _Server(BaseHTTPRequestHandler):
    """Uploads of Google Cloud Storage and of Azure Blob Storage; unconditional ones are refused."""

    protocol_version = "HTTP/1.1"
    names: set[str]
    lock = threading.Lock()

    def do_PUT(self) -> None:
        self._body()
        google = "x-goog-if-generation-match" in self.headers
        if google:
            assert self.headers["x-goog-if-generation-match"] == "0"
        else:
            assert self.headers["If-None-Match"] == "*"
        if self._take(self.path):
            self._answer(200 if google else 201, {"x-goog-generation": "1"})
        elif google:
            self._answer(412, {}, b"<Error><Code>PreconditionFailed</Code></Error>")
        else:
            self._answer(409, {"x-ms-error-code": "BlobAlreadyExists"})

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers["Content-Length"]))

    def _take(self, name: str) -> bool:
        with self.lock:
            taken = name in self.names
            self.names.add(name)
        return not taken

    def _answer(self, status: int, headers: dict[str, str], body: bytes = b"") -> None:
        self.send_response(status)
        times = {"ETag": '"1"', "Last-Modified": "Fri, 20 Nov 2026 20:00:00 GMT"}
        for key, value in {**times, **headers}.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endpoint() -> Iterator[str]:
    handler = type("Handler", (_Server,), {"names": set()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def _check(store: Store) -> None:
    """One of several writers creates the file, the others are told."""

    def write(number: int) -> bool:
        try:
            store.put_if_absent("_versions/1.manifest", bytes([number]))
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(write, range(4))) == [False, False, False, True]


def test_s3(object_store: ObjectStore) -> None:
    store = open_store(object_store.s3("t.lance"), object_store.options)
    _check(store)
    # Too large for one request.
    with pytest.raises(FileExistsError):
        store.put_if_absent("_versions/1.manifest", bytes(101 << 20))


def test_s3_ranges_and_listings(object_store: ObjectStore) -> None:
    store = open_store(object_store.s3("t.lance"), object_store.options)
    assert store.list("data") == []
    store.put("data/a", b"0123456789")
    assert store.list("data") == ["data/a"]
    assert store.exists("data/a")
    other = open_store(object_store.s3("t.lance"), object_store.options)
    other.delete("data/a")
    other.delete("data/a")
    assert not store.exists("data/a")
    assert store.list("data") == []
    store.put("data/a", b"012345678901234")
    assert store.size("data/a") == 15
    assert store.read_ranges("data/a", [(0, 2), (13, 2)]) == [b"01", b"34"]
    for offset, length in ((10, 6), (15, 1), (20, 1)):
        with pytest.raises(CorruptFileError):
            store.read("data/a", offset, length)
        with pytest.raises(CorruptFileError):
            store.read_ranges("data/a", [(0, 1), (offset, length)])
    with pytest.raises(FileNotFoundError):
        store.read("data/b")
    with store.create("data/large") as sink:
        sink.write(bytes(12 << 20))
    assert store.size("data/large") == 12 << 20
    sink = store.create("data/discarded")
    sink.write(bytes(60 << 20))
    sink.discard()
    assert store.list("data") == ["data/a", "data/large"]
    uploads = object_store.client("s3").list_multipart_uploads(Bucket=object_store.bucket)
    assert "Uploads" not in uploads
    missing = open_store("s3://no-such-bucket/t.lance", object_store.options)
    assert missing.list("_versions") == []


def test_google_cloud_storage(endpoint: str) -> None:
    options = {"google_endpoint": f"http://{endpoint}", "google_skip_signature": "true"}
    _check(open_store("gs://bucket/t.lance", options))


@pytest.mark.parametrize(
    "uri", ["az://container/t.lance", "abfss://container@devaccount.dfs.core.windows.net/t"]
)
def test_azure_blob_storage(endpoint: str, uri: str) -> None:
    connection = (
        "DefaultEndpointsProtocol=http;AccountName=devaccount;AccountKey=c2VjcmV0;"
        f"BlobEndpoint=http://{endpoint}/devaccount;"
    )
    _check(open_store(uri, {"connection_string": connection}))


def test_other_storage_is_refused_with_what_to_do() -> None:
    store = FsspecStore(f"memory://{uuid.uuid4().hex}")
    with pytest.raises(UnsupportedFeatureError, match="manifest_store") as caught:
        store.put_if_absent("_versions/1.manifest", b"")
    assert "cannot atomically create a file" in str(caught.value)
    assert store.list("") == []


def test_errors_that_are_no_conflict_stay(object_store: ObjectStore) -> None:
    store = open_store("s3://no-such-bucket/t.lance", object_store.options)
    with pytest.raises(FileNotFoundError):
        store.put_if_absent("_versions/1.manifest", b"")
