"""Object stores: how many requests it takes, and clients in several processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import UnsupportedFeatureError, VersionNotFoundError
from lance_engine.io import open_store
from lance_engine.io.cloud_options import Waiting, cloud_config, waiting
from lance_engine.io.fsspec_store import FsspecStore
from lance_engine.io.listed_files import ListedFiles, Tag
from lance_engine.io.manifest_names import VERSIONS
from lance_engine.io.obstore_store import ObstoreStore
from lance_engine.write.dataset import write_dataset
from moto.s3.models import s3_backends
from s3_proxy import S3Proxy, s3_proxy

if TYPE_CHECKING:
    from conftest import ObjectStore

TABLE = pa.table({"id": range(100)})


@pytest.fixture
def proxy(object_store: ObjectStore) -> Iterator[S3Proxy]:
    with s3_proxy(object_store.endpoint) as proxy:
        yield proxy


@pytest.fixture
def options(object_store: ObjectStore, proxy: S3Proxy) -> dict[str, str]:
    return {**object_store.options, "aws_endpoint": proxy.endpoint}


def test_whole_files_and_ends_of_files_cost_one_request(
    object_store: ObjectStore, proxy: S3Proxy, options: dict[str, str]
) -> None:
    store = open_store(object_store.s3("t.lance"), options)
    store.put("a", b"0123456789")
    proxy.reset()
    assert store.read("a") == b"0123456789"
    assert store.read_tail("a", 3) == (b"789", 10)
    assert proxy.methods() == ["GET", "GET"]


def test_opening_costs_two_requests_of_however_many_versions(
    object_store: ObjectStore, proxy: S3Proxy, options: dict[str, str]
) -> None:
    uri = object_store.s3("t.lance")
    write_dataset(TABLE, uri, storage_options=options)
    write_dataset(TABLE, uri, "append", storage_options=options)
    # More than one request for a listing tells; put past the server, which runs in this process.
    backend = s3_backends["123456789012"]["aws"]
    for number in range(1100):
        name = f"t.lance/{VERSIONS}/{2**64 - 1}.manifest-{number}"
        backend.put_object(object_store.bucket, name, b"")
    assert len(open_store(uri, object_store.options).names(VERSIONS)) == 1102
    proxy.reset()
    assert DatasetVersion.open(uri, storage_options=options).version == 2
    assert proxy.methods() == ["GET", "GET"]
    assert "list-type" in proxy.requests[0].path


def test_opening_what_has_not_changed_costs_a_listing(
    object_store: ObjectStore, proxy: S3Proxy, options: dict[str, str]
) -> None:
    uri = object_store.s3("t.lance")
    write_dataset(TABLE, uri, storage_options=options)

    def opened() -> tuple[list[object], list[str]]:
        proxy.reset()
        dataset = DatasetVersion.open(uri, storage_options=options)
        requests = proxy.methods()
        return [dataset.version, dataset.count_rows()], requests

    rows = TABLE.num_rows
    assert opened() == ([1, rows], ["GET", "GET"])
    assert opened() == ([1, rows], ["GET"])
    assert "list-type" in proxy.requests[0].path
    # Another writer, with a client of its own.
    write_dataset(TABLE, uri, "append", storage_options=object_store.options)
    assert opened() == ([2, 2 * rows], ["GET", "GET"])
    assert opened() == ([2, 2 * rows], ["GET"])
    with pytest.raises(VersionNotFoundError):
        DatasetVersion.open(uri, 3, storage_options=options)
    assert DatasetVersion.open(uri, 1, storage_options=options).count_rows() == rows


def test_a_dataset_that_was_made_again_is_read_again(
    object_store: ObjectStore, proxy: S3Proxy, options: dict[str, str]
) -> None:
    uri = object_store.s3("t.lance")
    store = open_store(uri, object_store.options)
    for value in (1, 2, 3):
        for path in store.list(""):
            store.delete(path)
        write_dataset(pa.table({"a": [value] * 5}), uri, storage_options=object_store.options)
        for _ in range(2):
            dataset = DatasetVersion.open(uri, storage_options=options)
            assert dataset.version == 1
            assert dataset.scan().to_table().to_pydict() == {"a": [value] * 5}
    reading = open_store(uri, options)
    for content in (b"12345", b"23456", b"34567"):  # only the tags tell them apart
        store.put("other/a", content)
        for _ in range(2):
            assert reading.first_names("other") == (["a"], True)
            assert reading.read("other/a") == content


def test_files_that_listings_name_are_kept_within_bounds() -> None:
    def tag(entity: str | None, size: int = 5) -> Tag | None:
        return Tag.of({"e_tag": entity, "size": size, "last_modified": 0})

    first, other = tag("1"), tag("2")
    assert first is not None
    assert other is not None
    assert tag(None) is None
    files = ListedFiles(most_bytes=12, most_files=3)
    files.note("a", first)
    assert files.listed("b") is None
    assert files.listed("a") == first
    assert files.listed("a") is None  # each listing is relied on once
    files.keep("a", first, b"first")
    assert files.find("a", first) == b"first"
    assert files.find("a", other) is None
    assert first.is_of({"e_tag": "1", "size": 5})
    assert not first.is_of({"e_tag": "2", "size": 5})
    assert not first.is_of({"e_tag": "1", "size": 6})
    files.keep("a", other, b"again")
    files.keep("b", first, b"other")
    assert [files.find("a", first), files.find("a", other)] == [None, b"again"]
    files.keep("c", first, b"third")  # 15 bytes: what was used least recently goes
    assert [files.find("b", first), files.find("a", other)] == [None, b"again"]
    files.keep("d", first, b"too much for all")
    assert [files.find(name, first) for name in "acd"] == [None, None, None]
    for number in range(5):
        files.keep(number, first, b"")
    assert [files.find(number, first) for number in range(5)] == [None, None, b"", b"", b""]


def test_creating_and_appending_cost_few_requests(
    object_store: ObjectStore, proxy: S3Proxy, options: dict[str, str]
) -> None:
    uri = object_store.s3("t.lance")
    write_dataset(TABLE, uri, storage_options=options)
    # The data, the look for the newest version, the transaction and the manifest.
    assert proxy.methods()[-4:] == ["PUT", "GET", "PUT", "PUT"]
    proxy.reset()
    write_dataset(TABLE, uri, "append", storage_options=options)
    # Before them the dataset is opened. HEAD: whether it is still the same dataset.
    assert proxy.methods() == ["GET", "GET", "PUT", "GET", "HEAD", "PUT", "PUT"]


def test_stores_are_pickled_by_their_options(object_store: ObjectStore) -> None:
    store = open_store(object_store.s3("t.lance"), object_store.options)
    store.put("a", b"x")
    copy = pickle.loads(pickle.dumps(store))
    assert copy.uri == store.uri
    assert copy.read("a") == b"x"
    assert len(pickle.dumps(store)) < 2000


def _read_in_child(store: ObstoreStore, answers: multiprocessing.SimpleQueue[bytes]) -> None:
    answers.put(store.read("a"))
    if store.read("a", 0, 1) == b"x":
        answers.put(b"again")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore")
def test_forked_processes_have_clients_of_their_own(object_store: ObjectStore) -> None:
    store = open_store(object_store.s3("t.lance"), object_store.options)
    store.put("a", b"x" * 1000)
    assert store.read("a", 1, 1) == b"x"
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_read_in_child, args=(store, answers), daemon=True)
    child.start()
    deadline = time.monotonic() + 60
    while child.is_alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    alive = child.is_alive()
    child.kill()
    child.join()
    assert not alive
    assert [answers.get(), answers.get()] == [b"x" * 1000, b"again"]
    assert store.read("a", 1, 1) == b"x"


def test_neither_errors_nor_descriptions_tell_secrets(object_store: ObjectStore) -> None:
    options = {**object_store.options, "aws_secret_access_key": "HUSH", "aws_session_token": "HUSH"}
    store = open_store(object_store.s3("t.lance"), options)
    config = cloud_config("s3", "bucket", options)
    assert "HUSH" not in repr(store) + repr(config)
    with pytest.raises(UnsupportedFeatureError) as caught:
        open_store(object_store.s3("t.lance"), {**options, "aws_checksum_algorithm": "HUSH"}).read("a")
    assert "HUSH" not in str(caught.value)
    assert caught.value.__cause__ is None


def _config(scheme: str, options: dict[str, object]) -> dict[str, str | bool]:
    config = cloud_config(scheme, "bucket", options)
    assert config is not None
    return {**dict(config.config), **dict(config.client)}


def test_options_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ENDPOINT_URL", "STORAGE_EMULATOR_HOST", "AZURE_STORAGE_CONNECTION_STRING"):
        monkeypatch.delenv(name, raising=False)
    expected = {
        "access_key_id": "k",
        "secret_access_key": "s",
        "endpoint": "http://h",
        "region": "r",
        "allow_invalid_certificates": True,
        "server_side_encryption": "aws:kms",
    }
    assert expected == _config(
        "s3",
        {
            "key": "k",
            "secret": "s",
            "client_kwargs": {"region_name": "r", "endpoint_url": "http://h", "verify": False},
            "s3_additional_kwargs": {"ServerSideEncryption": "aws:kms"},
        },
    )
    assert expected == _config(
        "s3a",
        {
            "AWS_ACCESS_KEY_ID": "k",
            "secret_access_key": "s",
            "aws_endpoint": "http://h",
            "region": "r",
            "allow_invalid_certificates": "true",
            "aws_server_side_encryption": "aws:kms",
            "azure_storage_account_name": "of another cloud",
        },
    )
    assert _config("s3", {"endpoint": "http://h:1", "aws_virtual_hosted_style_request": "true"}) == {
        "endpoint": "http://bucket.h:1",
        "virtual_hosted_style_request": True,
    }
    assert _config("gs", {"google_service_account": "/key.json", "user_agent": "me"}) == {
        "service_account": "/key.json",
        "user_agent": "me",
    }
    assert _config("gcs", {"token": {"type": "x"}}) == {"service_account_key": '{"type": "x"}'}
    assert _config("az", {"azure_storage_account_name": "n", "sas_token": "?sv=1"}) == {
        "account_name": "n",
        "sas_key": "sv=1",
    }
    assert _config("abfs", {"azure_storage_access_key": "k", "azure_tenant_id": "t"}) == {
        "account_key": "k",
        "tenant_id": "t",
    }


def test_options_for_fsspec_alone_use_fsspec(object_store: ObjectStore) -> None:
    options = {**object_store.options, "config_kwargs": {"retries": {"max_attempts": 2}}}
    store = open_store(object_store.s3("t.lance"), options)
    assert isinstance(store, FsspecStore)
    store.put("a", b"x")
    assert store.read_tail("a", 9) == (b"x", 1)


def test_times() -> None:
    assert waiting({}) == Waiting()
    assert waiting({"request_timeout": "500ms", "RETRY_TIMEOUT": 5, "connect_timeout": "2m"}) == Waiting(
        120.0, 0.5, 5.0
    )
    assert waiting({"client_retry_timeout": "30 seconds", "timeout": "1.5s"}) == Waiting(2.0, 1.5, 30.0)
    for wrong in ("soon", "0", "-1"):
        with pytest.raises(UnsupportedFeatureError, match="request_timeout"):
            waiting({"request_timeout": wrong})


@pytest.mark.parametrize(
    "address",
    [
        "http://user:hunter2@host",
        "user:hunter2@host",
        "host:9000",
        "http://[hunter2",
        "http://a b",
        "ftp://hunter2",
    ],
)
@pytest.mark.parametrize("option", ["aws_endpoint", "google_endpoint", "azure_endpoint", "dynamodb_endpoint"])
def test_endpoints_are_addresses_of_servers_without_credentials(option: str, address: str) -> None:
    scheme = {"aws": "s3", "google": "gs", "azure": "az", "dynamodb": "s3+ddb"}[option.partition("_")[0]]
    uri = f"{scheme}://bucket/t.lance" + ("?ddbTableName=commits" if scheme == "s3+ddb" else "")
    with pytest.raises(UnsupportedFeatureError, match="is not the address of a server") as caught:
        write_dataset(TABLE, uri, storage_options={option: address})
    failure: BaseException | None = caught.value
    while failure is not None:
        assert "hunter2" not in f"{failure} {failure.args}"
        failure = failure.__cause__ or failure.__context__


def test_invalid_values_of_options_are_not_quoted() -> None:
    with pytest.raises(UnsupportedFeatureError, match="Invalid duration") as caught:
        open_store("s3://bucket/t.lance", {"timeout": "hunter2"})
    assert "hunter2" not in str(caught.value)
