"""Datasets on a web server that lists folders and answers with range requests."""

from __future__ import annotations

import base64
import logging
import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import DatasetNotFoundError, StorageUnavailableError, UnsupportedFeatureError
from lance_engine.io import open_store
from lance_engine.io.http_store import HttpStore
from lance_engine.write.dataset import write_dataset

TABLE = pa.table({"id": range(1000), "s": [f"s{i}" for i in range(1000)]})


class _Handler(SimpleHTTPRequestHandler):
    """Like other web servers; Python's own only returns whole files."""

    protocol_version = "HTTP/1.1"
    ranges = True

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        wanted = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not self.ranges or wanted is None or not path.is_file():
            super().do_GET()
            return
        content = path.read_bytes()
        if wanted[1]:
            start, stop = int(wanted[1]), min(len(content), int(wanted[2] or len(content)) + 1)
        else:
            start, stop = max(0, len(content) - int(wanted[2])), len(content)
        body = content[start:stop]
        self.send_response(206 if body else 416)
        self.send_header("Content-Range", f"bytes {start}-{stop - 1}/{len(content)}")
        self.send_header("Last-Modified", self.date_time_string(int(path.stat().st_mtime)))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class _WholeFiles(_Handler):
    ranges = False


@pytest.fixture(params=[_Handler])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    handler = partial(request.param, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


class _AsksForAPassword(_Handler):
    def do_GET(self) -> None:
        if self.headers.get("Authorization") == f"Basic {base64.b64encode(b'me:hunter2@x').decode()}":
            super().do_GET()
        else:
            self.send_error(401)


@pytest.mark.parametrize("address", [_AsksForAPassword], indirect=True)
def test_the_password_of_a_url_is_in_no_log(
    address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_dataset(TABLE, tmp_path / "t.lance")
    host = address.partition("://")[2]
    with caplog.at_level(logging.DEBUG, ""):
        remote = DatasetVersion.open(f"http://me:hunter2%40x@{host}/t.lance")
        assert remote.scan(["s"], filter="id = 500").to_table().to_pylist() == [{"s": "s500"}]
        assert "hunter2" not in repr(remote.snapshot.store)
        # What is opened again by its location is opened with the password.
        assert DatasetVersion.open(remote.uri).count_rows() == 1000
        with pytest.raises(DatasetNotFoundError):
            DatasetVersion.open(f"http://me:hunter2%40x@{host}/nothing.lance")
    assert any(record.name.startswith("fsspec") for record in caplog.records)
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("scheme", ["s3", "gs"])
def test_passwords_in_the_path_of_a_bucket(scheme: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="cannot have a user and a password") as caught:
        open_store(f"{scheme}://me:hunter2@bucket/t.lance")
    assert "hunter2" not in str(caught.value)


def test_a_dataset_is_read(address: str, tmp_path: Path) -> None:
    path = tmp_path / "with space" / "t.lance"
    ds = DatasetVersion(write_dataset(TABLE, path))
    ds.delete("id < 10")
    for uri in (f"{address}/with space/t.lance", f"{address}/with%20space/t.lance/"):
        remote = DatasetVersion.open(uri)
        assert (remote.version, remote.count_rows()) == (2, 990)
        assert remote.scan(["s"], filter="id = 500").to_table().to_pylist() == [{"s": "s500"}]
    store = open_store(uri)
    assert isinstance(store, HttpStore)
    assert store.list("") == open_store(path).list("")
    assert "_versions" in store.names("")
    (data,) = store.list("data")
    content = (path / data).read_bytes()
    assert store.read_tail(data, 7) == (content[-7:], len(content))
    assert store.size(data) == len(content)


def test_nothing_is_committed_to_it(address: str, tmp_path: Path) -> None:
    write_dataset(TABLE, tmp_path / "t.lance")
    with pytest.raises(UnsupportedFeatureError, match="manifest_store"):
        open_store(f"{address}/t.lance").put_if_absent("_versions/2.manifest", b"")
    with pytest.raises(StorageUnavailableError, match="status 501"):
        DatasetVersion.open(f"{address}/t.lance").delete("id = 1")
    assert DatasetVersion.open(tmp_path / "t.lance").version == 1


def test_there_is_no_dataset(address: str) -> None:
    with pytest.raises(DatasetNotFoundError):
        DatasetVersion.open(f"{address}/t.lance")


@pytest.mark.parametrize("address", [_WholeFiles], indirect=True)
def test_servers_that_know_no_ranges_are_told_of(address: str, tmp_path: Path) -> None:
    write_dataset(TABLE, tmp_path / "t.lance")
    store = open_store(f"{address}/t.lance")
    (data,) = store.list("data")
    with pytest.raises(StorageUnavailableError, match="range requests"):
        store.read(data, 10, 20)


def test_signed_addresses_are_refused_without_their_signature(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for query in ("sig=sentinel", "X-Amz-Signature=sentinel&X-Amz-Credential=sentinel"):
        with pytest.raises(UnsupportedFeatureError, match="query") as caught:
            DatasetVersion.open(f"https://127.0.0.1:9/x.lance?{query}")
        assert "sentinel" not in f"{caught.value} {caught.value!r} {caplog.text}"


def test_a_server_that_is_not_there_is_an_error_of_ours(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with pytest.raises(StorageUnavailableError, match="not responding") as caught:
        DatasetVersion.open("http://user:sentinel@127.0.0.1:9/x.lance")
    assert "sentinel" not in f"{caught.value} {caught.value!r} {caplog.text}"
