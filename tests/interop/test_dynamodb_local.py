"""Writers of both implementations that race for versions in Amazon's own DynamoDB server.

The server comes from Maven Central and runs on this machine; it keeps conditions of puts as DynamoDB does,
also for concurrent writers.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import lance
import pyarrow as pa
import pytest
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import LanceError
from lance_engine.io.dynamodb import DynamoDBManifestStore
from lance_engine.io.external import ManifestEntry
from lance_engine.write.dataset import write_dataset

if TYPE_CHECKING:
    from conftest import ObjectStore

FOLDER = Path(__file__).parents[2] / "build" / "dynamodb-local"
POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>tests</groupId><artifactId>dynamodb-local</artifactId><version>1</version><dependencies><dependency>
<groupId>com.amazonaws</groupId><artifactId>DynamoDBLocal</artifactId><version>2.6.1</version>
</dependency></dependencies></project>"""
WRITERS, EACH = 6, 4

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def _jars() -> Path:
    """The folder with the jars, and the native libraries under the names that their jar looks for."""
    jars = FOLDER / "jars"
    if not jars.exists():
        maven = shutil.which("mvn")
        if maven is None or shutil.which("java") is None:
            pytest.skip("Maven and Java are not installed")
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / "pom.xml").write_text(POM)
        shutil.rmtree(FOLDER / "unfinished", ignore_errors=True)
        copy = [maven, "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=unfinished"]
        subprocess.run(copy, cwd=FOLDER, check=True, capture_output=True)
        for library in (FOLDER / "unfinished").glob("libsqlite4java-*.so"):
            library.with_name(library.name.replace("-1.0.392", "")).write_bytes(library.read_bytes())
        (FOLDER / "unfinished").rename(jars)
    return jars


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    jars = _jars()
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    command = ["java", f"-Djava.library.path={jars}", "-cp", f"{jars}/*"]
    command += ["com.amazonaws.services.dynamodbv2.local.main.ServerRunner", "-inMemory", "-disableTelemetry"]
    command += ["-port", str(port)]
    with subprocess.Popen(
        command, cwd=FOLDER, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            for _ in range(600):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                assert server.poll() is None, "DynamoDB Local has ended"
                time.sleep(0.1)
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


@pytest.fixture
def options(endpoint: str, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The storage options for data on the emulator of S3, and manifests in this server."""
    monkeypatch.setenv("DYNAMODB_ENDPOINT", endpoint)
    store = object_store._replace(endpoint=endpoint)
    store.create_manifest_table()
    return {**object_store.options, "dynamodb_endpoint": endpoint}


def test_one_of_many_writers_wins_each_version(options: dict[str, str], object_store: ObjectStore) -> None:
    manifests = DynamoDBManifestStore(object_store.table, options)

    def wins(writer: int, version: int) -> bool:
        try:
            manifests.add("d", ManifestEntry(version, f"d/_versions/{version}.manifest-{writer}", 1))
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        for version in range(1, 101):
            assert sum(pool.map(wins, range(WRITERS), [version] * WRITERS)) == 1


def test_no_acknowledged_row_is_lost(options: dict[str, str], object_store: ObjectStore) -> None:
    uri = object_store.ddb("raced.lance")
    write_dataset(pa.table({"id": pa.array([-1], pa.int64())}), uri, storage_options=options)

    def write(writer: int) -> list[int]:
        acknowledged = []
        for number in range(writer * 100, writer * 100 + EACH):
            rows = pa.table({"id": pa.array([number], pa.int64())})
            try:
                if writer % 2:
                    lance.write_dataset(rows, uri, mode="append", storage_options=options)
                else:
                    write_dataset(rows, uri, "append", storage_options=options)
            except (LanceError, OSError):
                continue  # too many conflicts
            acknowledged.append(number)
        return acknowledged

    with ThreadPoolExecutor(WRITERS) as pool:
        acknowledged = [number for numbers in pool.map(write, range(WRITERS)) for number in numbers]
    assert len(acknowledged) > WRITERS
    found = DatasetVersion.open(uri, storage_options=options)
    rows = sorted(found.scan().to_table()["id"].to_pylist())
    assert rows == sorted([-1, *acknowledged])
    assert found.version == len(rows)
    assert sorted(lance.dataset(uri, storage_options=options).to_table()["id"].to_pylist()) == rows
