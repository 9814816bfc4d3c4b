"""Fixtures for tests of several kinds."""

from __future__ import annotations

import functools
import gc
import logging
import os
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


#: What Spark's Python processes import first.
SPARK_PROCESSES = Path(__file__).parent / "support" / "spark_processes"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--first-seed", default="0", help="the first seed of random sequences of operations")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from workers import FilesAndOneJvm

    return FilesAndOneJvm(config, log)


@pytest.hookimpl(tryfirst=True)  # before those that are slow are left out
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    from counts import mark_most_as_slow

    mark_most_as_slow(items)
    if hasattr(config, "workerinput"):
        from workers import longest_first

        longest_first(items)


def pytest_collection_finish() -> None:
    # The garbage collector need not look at all tests and modules each time, which takes half a second.
    gc.freeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of the test run, in which ``format("lance")`` is registered."""
    import lance_sql.spark

    problem = lance_sql.spark.java_problem()
    if problem is not None:
        pytest.skip(problem)
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        # The JVM's second compiler takes half of its processor time in runs as short as these.
        patch.setenv("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
        patch.setenv("PYTHONPATH", str(SPARK_PROCESSES), prepend=os.pathsep)
        # Starting the JVM forks, of which the official implementation warns; Spark warns of pandas 3.
        warnings.simplefilter("ignore")
        session = lance_sql.spark.local_session(memory="2g")
    yield session
    session.stop()


@functools.cache
def client(endpoint: str, service: str):  # type: ignore[no-untyped-def]
    """A client of botocore, which takes most of a second to create."""
    from botocore.session import Session

    return Session().create_client(
        service,
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )


class ObjectStore(NamedTuple):
    """An S3 bucket of its own, and a DynamoDB table for manifests, on a server of this machine."""

    endpoint: str
    bucket: str
    table: str

    @property
    def options(self) -> dict[str, str]:
        """Storage options in the spelling that both implementations understand."""
        return {
            "aws_endpoint": self.endpoint,
            "dynamodb_endpoint": self.endpoint,
            "allow_http": "true",
            "aws_access_key_id": "test",
            "aws_secret_access_key": "test",
            "aws_region": "us-east-1",
        }

    def s3(self, name: str) -> str:
        return f"s3://{self.bucket}/{name}"

    def ddb(self, name: str) -> str:
        return f"s3+ddb://{self.bucket}/{name}?ddbTableName={self.table}"

    def client(self, service: str):  # type: ignore[no-untyped-def]
        return client(self.endpoint, service)

    def create_manifest_table(self) -> None:
        """The table of DynamoDB for manifests."""
        self.client("dynamodb").create_table(
            TableName=self.table,
            KeySchema=[
                {"AttributeName": "base_uri", "KeyType": "HASH"},
                {"AttributeName": "version", "KeyType": "RANGE"},
            ],
            AttributeDefinitions=[
                {"AttributeName": "base_uri", "AttributeType": "S"},
                {"AttributeName": "version", "AttributeType": "N"},
            ],
            BillingMode="PAY_PER_REQUEST",
        )


@pytest.fixture(scope="session")
def object_store_endpoint() -> Iterator[str]:
    """An emulator of S3 and DynamoDB on an unused port of the loopback interface."""
    from moto.dynamodb.responses import DynamoHandler
    from moto.s3.responses import S3Response
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    # The emulator tests the condition of a put and then stores the item or object: two threads may both pass
    # the test. DynamoDB and S3 do both at once.
    one_at_a_time = threading.Lock()

    def alone(handle: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(handle)
        def handle_alone(*arguments: Any, **options: Any) -> Any:
            with one_at_a_time:
                return handle(*arguments, **options)

        return handle_alone

    conditional = [(DynamoHandler, "call_action"), (S3Response, "_key_response_put")]
    conditional.append((S3Response, "_key_response_post"))
    with pytest.MonkeyPatch.context() as patch:
        for handler, name in conditional:
            patch.setattr(handler, name, alone(getattr(handler, name)))
        server.start()
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
        server.stop()


@pytest.fixture
def object_store(object_store_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    """A new bucket and a new table; the environment is that of a user of this server."""
    unique = uuid.uuid4().hex[:12]
    store = ObjectStore(object_store_endpoint, f"bucket-{unique}", f"manifests-{unique}")
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", object_store_endpoint),
        ("DYNAMODB_ENDPOINT", object_store_endpoint),
        ("EXAMPLE_BUCKET", store.bucket),
    ):
        monkeypatch.setenv(name, value)
    store.client("s3").create_bucket(Bucket=store.bucket)
    store.create_manifest_table()
    return store
