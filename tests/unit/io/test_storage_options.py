"""Storage options in the spellings of pylance and of fsspec."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lance_engine.errors import UnsupportedFeatureError
from lance_engine.io.fsspec_store import FsspecStore
from lance_engine.io.resolve import open_store
from lance_engine.io.storage_options import botocore_options, fsspec_options
from lance_engine.io.store import max_in_flight_of
from lance_engine.io.substore import SubStore

S3: dict[str, Any] = {
    "key": "k",
    "secret": "s",
    "token": "t",
    "endpoint_url": "http://localhost:1",
    "client_kwargs": {"region_name": "eu-west-1"},
}


@pytest.mark.parametrize(
    "given",
    [
        {
            "aws_access_key_id": "k",
            "aws_secret_access_key": "s",
            "aws_session_token": "t",
            "aws_endpoint": "http://localhost:1",
            "aws_region": "eu-west-1",
            "allow_http": "true",
        },
        {
            "access_key_id": "k",
            "secret_access_key": "s",
            "session_token": "t",
            "endpoint": "http://localhost:1",
            "region": "eu-west-1",
        },
        {
            "AWS_ACCESS_KEY_ID": "k",
            "AWS_SECRET_ACCESS_KEY": "s",
            "AWS_SESSION_TOKEN": "t",
            "AWS_ENDPOINT_URL": "http://localhost:1",
            "AWS_DEFAULT_REGION": "eu-west-1",
        },
        S3,
    ],
)
def test_spellings_of_s3(given: dict[str, Any]) -> None:
    assert fsspec_options("s3", given) == S3
    assert botocore_options(given) == {
        "aws_access_key_id": "k",
        "aws_secret_access_key": "s",
        "aws_session_token": "t",
        "region_name": "eu-west-1",
    }


def test_s3_switches() -> None:
    assert fsspec_options("s3", {"aws_skip_signature": "true"}) == {"anon": True}
    assert fsspec_options("s3", {"skip_signature": "false"}) == {"anon": False}
    assert fsspec_options("s3a", {"virtual_hosted_style_request": "true"}) == {
        "config_kwargs": {"s3": {"addressing_style": "virtual"}}
    }
    assert fsspec_options("s3", {"allow_invalid_certificates": True}) == {"client_kwargs": {"verify": False}}
    assert fsspec_options(
        "s3", {"aws_server_side_encryption": "aws:kms", "aws_sse_kms_key_id": "id", "requester_pays": True}
    ) == {
        "s3_additional_kwargs": {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": "id"},
        "requester_pays": True,
    }


def test_google() -> None:
    assert fsspec_options("gs", {"google_service_account": "/key.json"}) == {"token": "/key.json"}
    assert fsspec_options("gcs", {"service_account_key": '{"type": "x"}'}) == {"token": {"type": "x"}}
    assert fsspec_options("gs", {"GOOGLE_SKIP_SIGNATURE": "true", "project": "p"}) == {
        "token": "anon",
        "project": "p",
    }


@pytest.mark.parametrize("scheme", ["az", "abfs", "abfss"])
def test_azure(scheme: str) -> None:
    assert fsspec_options(
        scheme, {"azure_storage_account_name": "n", "account_key": "k", "azure_tenant_id": "t"}
    ) == {"account_name": "n", "account_key": "k", "tenant_id": "t"}


def test_other_file_systems_get_their_options_unchanged() -> None:
    options = {"host": "h", "username": "u", "endpoint": "e"}
    assert fsspec_options("sftp", {**options, "manifest_store": "sqlite:///x.db"}) == options


@pytest.mark.parametrize("value", [0, -1, "many", 1.5, True, 10_000])
def test_how_many_requests_may_be_under_way_is_a_number(value: object, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedFeatureError, match="max_in_flight"):
        open_store(str(tmp_path), {"max_in_flight": value})


def test_how_many_requests_may_be_under_way_reaches_every_store(tmp_path: Path) -> None:
    options = {"max_in_flight": "7", "aws_region": "eu-west-1"}
    remote = open_store("s3://bucket/x.lance", options)
    assert max_in_flight_of(remote) == max_in_flight_of(SubStore(remote, "tree/b")) == 7
    assert max_in_flight_of(FsspecStore("memory://x.lance", {"MAX_IN_FLIGHT": 5})) == 5
    assert max_in_flight_of(open_store(str(tmp_path), options)) is None
    assert "max_in_flight" not in fsspec_options("s3", options)


@pytest.mark.parametrize(
    ("scheme", "name", "meant"),
    [
        ("s3", "acces_key_id", "access_key_id"),
        ("s3", "AWS_REGOIN", "aws_region"),
        ("s3", "s3_endpoint", "aws_endpoint"),
        ("s3", "conect_timeout", "connect_timeout"),
        ("gs", "google_service_acount", "google_service_account"),
        ("az", "acount_name", "account_name"),
    ],
)
def test_misspelt_options_are_refused(scheme: str, name: str, meant: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match=rf"Unknown storage option '{name}'\. .*'{meant}'\?"):
        open_store(f"{scheme}://bucket/x.lance", {name: "value"})


@pytest.mark.parametrize("name", ["client_max_retries", "headers.x", "use_listings_cache", "aws_s3_express"])
def test_options_of_other_clients_are_accepted(name: str) -> None:
    open_store("s3://bucket/x.lance", {name: "1", "region": "eu-west-1"})
