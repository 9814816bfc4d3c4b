"""What the catalog of Spark asks Python, over a directory and over a REST server: the same answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import LanceError, UnsupportedFeatureError
from namespace_server import namespace_server
from pyspark.sql.types import LongType, StructType

import lance_sql
from lance_sql.spark.commands import run
from lance_sql.spark.facts import KEY
from lance_sql.spark.options import Options

SCHEMA = StructType().add("id", LongType()).json()
NEW = {"schema": SCHEMA, "replaces": False, "must_exist": False, "only_check": False}

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(params=["directory", "service"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ask]:
    with namespace_server(tmp_path) as (endpoint, _):
        service = {"impl": "rest", "uri": endpoint, "bearer_token": "secret"}
        options = {"path": str(tmp_path)}
        if request.param == "service":
            options = {"path": endpoint, "planner.namespace": json.dumps(service)}

        def answer(do: str, **more: Any) -> dict[str, Any]:
            schema = run(
                Options.parse({**options, "planner.catalog_command": json.dumps({"do": do, **more})})
            )
            return json.loads(schema.fields[0].metadata[KEY])

        yield answer


def test_namespaces(ask: Ask) -> None:
    assert ask("namespaces", namespace=[]) == {"names": []}
    assert ask("create_namespace", namespace=["s"]) == {}
    assert ask("create_namespace", namespace=["s"]) == {"exists": True}
    assert ask("namespaces", namespace=[]) == {"names": ["s"]}
    assert ask("namespaces", namespace=["s"]) == {"names": []}
    assert ask("namespaces", namespace=["nothing"]) == {"missing": True}
    ask("create", namespace=["s"], table="t", **NEW, properties={})
    assert ask("drop_namespace", namespace=["s"]) == {"filled": True}
    assert ask("drop", namespace=["s"], table="t") == {}
    assert ask("drop_namespace", namespace=["s"]) == {}
    assert ask("namespaces", namespace=[]) == {"names": []}


@pytest.mark.parametrize("namespace", [[], ["s"]])
def test_tables(ask: Ask, namespace: list[str]) -> None:
    if namespace:
        ask("create_namespace", namespace=namespace)
    here = {"namespace": namespace, "table": "t"}
    assert ask("load", **here) == {"missing": True}
    assert ask("create", **here, **NEW, properties={"team": "data"}) == {}
    assert ask("create", **here, **NEW, properties={}) == {"exists": True}
    assert ask("tables", namespace=namespace) == {"names": ["t"]}
    found = ask("load", **here)
    path = found["options"]["path"]
    known = {"provider": "lance", "location": path}
    assert (found["rows"], found["properties"]) == (0, {"team": "data", **known})
    lance_sql.write(pa.table({"id": [1, 2]}), path, mode="append")
    assert ask("load", **here)["rows"] == 2
    assert ask("load", **here, version="1")["options"] == {"path": path, "version": "1"}
    assert ask("load", namespace=[*namespace, "t"], table="versions")["options"]["planner.part"] == "versions"
    assert ask("alter", **here, changes=[{"do": "property", "key": "team", "value": None}]) == {}
    assert ask("load", **here)["properties"] == known
    assert ask("delete", path=path, filters="[]", storage_options=None) == {}
    assert lance_sql.open(path).count_rows() == 0
    assert ask("drop", **here) == {}
    assert ask("drop", **here) == {"missing": True}
    assert not Path(path).exists()


def test_services_do_not_rename(tmp_path: Path) -> None:
    command = {"do": "rename", "namespace": [], "table": "t", "to": {"namespace": ["ns"], "table": "u"}}
    service = {"impl": "rest", "uri": "http://127.0.0.1:1"}
    texts = {
        "path": "x",
        "planner.namespace": json.dumps(service),
        "planner.catalog_command": json.dumps(command),
    }
    with pytest.raises(UnsupportedFeatureError, match="cannot be renamed"):
        run(Options.parse(texts))


def test_unknown_settings_of_a_service_are_refused() -> None:
    texts = {
        "path": "x",
        "planner.namespace": json.dumps({"impl": "rest", "uri": "http://127.0.0.1:1", "tokn": "secret"}),
        "planner.catalog_command": json.dumps({"do": "load", "namespace": [], "table": "t"}),
    }
    with pytest.raises(LanceError, match=r"Unknown option 'tokn'.*bearer_token"):
        run(Options.parse(texts))


def test_a_server_that_refuses_says_so(tmp_path: Path) -> None:
    with namespace_server(tmp_path) as (endpoint, _):
        service = {"impl": "rest", "uri": endpoint}
        command = {"do": "load", "namespace": [], "table": "t"}
        texts = {
            "path": "x",
            "planner.namespace": json.dumps(service),
            "planner.catalog_command": json.dumps(command),
        }
        with pytest.raises(LanceError, match=r"The namespace refused a request: .*who are you"):
            run(Options.parse(texts))
