"""The errors when storage refuses access."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import LanceError, StorageAccessError
from lance_engine.io.access import access_explained
from lance_engine.write.dataset import write_dataset

if TYPE_CHECKING:
    from conftest import ObjectStore

TABLE = pa.table({"id": [1]})


class RefusalError(Exception):
    """As botocore, gcsfs and azure raise it."""

    def __init__(self, **attributes: object) -> None:
        super().__init__("it says no")
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("uri", "error", "names"),
    [
        ("s3://b/t", RefusalError(response={"Error": {"Code": "InvalidAccessKeyId"}}), "AWS_TEST_ONLY"),
        (
            "s3+ddb://t",
            RefusalError(response={"Error": {"Code": "UnrecognizedClientException"}}),
            "AWS_TEST_ONLY",
        ),
        ("gs://b/t", RefusalError(code=403), "google_service_account"),
        ("az://c/t", RefusalError(status_code=401), "azure_storage_sas_token"),
        ("sftp://host/t", PermissionError("it says no"), "it says no"),
    ],
)
def test_refusals_name_what_was_tried(
    uri: str, error: Exception, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_TEST_ONLY", "its value")
    with (
        pytest.raises(StorageAccessError, match="it says no") as caught,
        access_explained(uri, {"aws_region": "x", "secret": "hush"}),
    ):
        raise error
    text = str(caught.value)
    assert names in text
    assert uri in text
    assert uri.startswith("sftp") or "the storage options aws_region, secret" in text
    # Names, never values.
    assert "hush" not in text
    assert "its value" not in text


@pytest.mark.parametrize(
    "error", [FileNotFoundError("x"), RefusalError(code=500), LanceError("x"), OSError("x")]
)
def test_other_errors_stay(error: Exception) -> None:
    with pytest.raises(type(error)) as caught, access_explained("s3://b/t", {}):
        raise error
    assert caught.value is error


@pytest.mark.parametrize("kind", ["s3", "ddb"])
def test_without_credentials(object_store: ObjectStore, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    # Neither files of whoever runs the tests, nor a service of the machine.
    monkeypatch.setenv("HOME", "/nowhere")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    options = {name: value for name, value in object_store.options.items() if "key" not in name}
    uri = getattr(object_store, kind)("t.lance")
    for attempt in (
        lambda: DatasetVersion.open(uri, storage_options=options),
        lambda: write_dataset(TABLE, uri, storage_options=options),
    ):
        with pytest.raises(StorageAccessError, match="locate credentials") as caught:
            attempt()
        assert "allow_http, aws_endpoint, aws_region, dynamodb_endpoint" in str(caught.value)
        assert "AWS_EC2_METADATA_DISABLED" in str(caught.value)
        assert "aws_access_key_id and aws_secret_access_key" in caught.value.remedy
