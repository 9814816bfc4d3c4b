"""Searches and filters by indices of vectors, words, lists and more, with one file of the index changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lance
import numpy as np
import pyarrow as pa
from fuzz_files import RawFile
from fuzz_loop import Target
from fuzz_tables import MAKERS, TableFile, allowed, load_table_file, read_table_file, table_files
from lance.indices import IndexConfig
from lance_engine.dataset import DatasetVersion
from lance_engine.search.text.query import Match, Phrase
from lance_engine.write.dataset import write_dataset

ROWS, DIM = 300, 8
VECTOR_KINDS = ("IVF_FLAT", "IVF_PQ", "IVF_SQ", "IVF_RQ", "IVF_HNSW_FLAT", "IVF_HNSW_SQ", "IVF_HNSW_PQ")
#: Options that give files of other layouts.
VARIANTS = {
    "IVF_PQ 4 bits": {"num_sub_vectors": 4, "num_bits": 4},
    "IVF_RQ 1 bit": {"num_bits": 1},
    "IVF_RQ 7 bits": {"num_bits": 7},
    "IVF_HNSW_SQ cosine": {"metric": "cosine"},
}
#: Inverted indices: of ours, and of pylance's in all versions of the format.
TEXT_VERSIONS = ("ours", "pylance", "pylance 1", "pylance 2", "pylance 3", "n-grams", "lists")
FILTERS = {
    "label_list": (
        "array_has(tags, 't3')",
        "array_has_any(tags, ['t1', 'x'])",
        "array_has_all(tags, ['t2', 'all'])",
    ),
    "ngram": ("contains(text, 'fox1')", "text LIKE '%dog%7%'", "starts_with(text, 'the')"),
    "json": (
        "json_get_int(doc, 'n') = 7",
        "json_get_int(doc, 'n') > 290",
        "json_get_int(doc, 'n') IN (1, 900)",
    ),
    "rtree": ("g.x < 9 AND g.y < 9", "g.x BETWEEN 3 AND 50 AND g.y <= 40", "g.x = 7 AND g.y = 8"),
}


def _vectors() -> pa.Array:
    values = np.random.default_rng(0).normal(size=ROWS * DIM).astype(np.float32)
    return pa.FixedSizeListArray.from_arrays(pa.array(values), DIM)


def _texts() -> list[str | None]:
    return [None if n % 29 == 3 else f"the fox{n % 60} and a dog {n}" for n in range(ROWS)]


def _points() -> pa.Array:
    sides = [pa.array(np.arange(ROWS, dtype=np.float64) + number) for number in range(2)]
    return pa.StructArray.from_arrays(sides, fields=[pa.field(name, pa.float64(), False) for name in "xy"])


def _vector_index(name: str, folder: str) -> None:
    table = pa.table({"id": range(ROWS), "v": _vectors()})
    kind = name.split()[0]
    options: dict[str, Any] = {"num_sub_vectors": 4} if kind.endswith("PQ") else {}
    options |= VARIANTS.get(name, {})
    if kind in ("IVF_RQ", "IVF_HNSW_PQ"):  # these we only read
        options |= {"num_bits": 8} if kind == "IVF_HNSW_PQ" else {}
        lance.write_dataset(table, folder).create_index("v", kind, num_partitions=2, **options)
        return
    DatasetVersion(write_dataset(table, folder)).create_index("v", kind, num_partitions=1, **options)


def _bits_index(folder: str) -> None:
    values = np.random.default_rng(0).integers(0, 256, ROWS * DIM, dtype=np.uint8)
    table = pa.table({"id": range(ROWS), "v": pa.FixedSizeListArray.from_arrays(pa.array(values), DIM)})
    DatasetVersion(write_dataset(table, folder)).create_index("v", "IVF_FLAT", num_partitions=1)


def _text_index(by: str, folder: str) -> None:
    texts = [None if text is None else [text, text[:9]] for text in _texts()] if by == "lists" else _texts()
    table = pa.table({"id": range(ROWS), "text": texts})
    if not by.startswith("pylance"):
        options = {"base_tokenizer": "ngram"} if by == "n-grams" else {}
        plain = DatasetVersion(write_dataset(table, folder))
        plain.create_index("text", "INVERTED", with_position=True, **options)
        return
    version = by.partition(" ")[2]
    with patch.dict(os.environ, {"LANCE_FTS_FORMAT_VERSION": version} if version else {}):
        lance.write_dataset(table, folder).create_scalar_index("text", "INVERTED", with_position=True)


def _scalar_index(kind: str, folder: str) -> None:
    columns = {
        "label_list": ("tags", [[f"t{n % 9}", "all"][: n % 3] for n in range(ROWS)]),
        "ngram": ("text", _texts()),
        "json": ("doc", pa.array([json.dumps({"n": n % 295}) for n in range(ROWS)], pa.json_())),
        "rtree": ("g", _points()),
    }
    name, values = columns[kind]
    array = pa.array(values) if isinstance(values, list) else values
    metadata = {"ARROW:extension:name": "geoarrow.point"} if kind == "rtree" else None
    schema = pa.schema([("id", pa.int64()), pa.field(name, array.type, metadata=metadata)])
    ds = lance.write_dataset(pa.Table.from_arrays([pa.array(range(ROWS)), array], schema=schema), folder)
    if kind == "json":
        ds.create_scalar_index("doc", IndexConfig("json", {"target_index_type": "btree", "path": "n"}))
    elif kind == "rtree":
        ds.create_scalar_index("g", "RTREE")
    else:
        DatasetVersion.open(folder).create_index(name, kind)


MAKERS.update({f"vector {kind}": partial(_vector_index, kind) for kind in (*VECTOR_KINDS, *VARIANTS)})
MAKERS["vector bits"] = _bits_index
MAKERS.update({f"words {by}": partial(_text_index, by) for by in TEXT_VERSIONS})
MAKERS.update({f"finder {kind}": partial(_scalar_index, kind) for kind in FILTERS})


def _nearest(dataset: DatasetVersion, number: int) -> str:
    return _found(dataset, np.random.default_rng(number).normal(size=DIM).astype(np.float32), number)


def _nearest_by_bits(dataset: DatasetVersion, number: int) -> str:
    return _found(dataset, np.random.default_rng(number).integers(0, 256, DIM, dtype=np.uint8), number)


def _found(dataset: DatasetVersion, query: np.ndarray, number: int) -> str:
    options = ({}, {"refine_factor": 2}, {"nprobes": 1, "ef": 500}, {"filter": "id > 250"})[number % 4]
    k = (1, 10, 400)[number % 3]
    found = allowed(lambda: dataset.nearest("v", query, k, columns=["id"], **options))
    if found is None:
        return ""
    ids, distances = found["id"].to_pylist(), found["_distance"].to_pylist()
    if len(ids) > min(k, ROWS) or distances != sorted(distances):
        return f"{len(ids)} rows of {k}, at {distances}"
    return "" if all(0 <= row < ROWS for row in ids) else f"rows {ids}"


def _words(dataset: DatasetVersion, number: int) -> str:
    queries = (
        Match("fox7 dog"),
        Match("fax1", fuzziness=1),
        Phrase("and dog"),
        Match("the a 12", operator="and"),
    )
    found = allowed(lambda: dataset.search(queries[number % len(queries)], "text", 20, columns=["id"]))
    if found is None or found.num_rows <= 20:
        return ""
    return f"{found.num_rows} rows of 20"


def _filtered(kind: str, dataset: DatasetVersion, number: int) -> str:
    filter = FILTERS[kind][number % len(FILTERS[kind])]
    found = allowed(lambda: dataset.scan(["id"], filter).to_table())
    if found is None or found.num_rows <= ROWS:
        return ""
    return f"{filter}: {found.num_rows} of {ROWS} rows are found"


def _seeds(table: str) -> list[TableFile]:
    return [
        TableFile(table, f"_indices/*/{Path(name).name}", RawFile(content, pa.schema([]), ROWS))
        for name, content in table_files(table).items()
        if name.startswith("_indices/")
    ]


def _target(
    table: str, read: Callable[[DatasetVersion, int], str], native: bool, kept: bool = False
) -> Target:
    return Target(
        f"search: {table}",
        lambda: _seeds(table),
        lambda input: read_table_file(input, read),
        native=native,
        load=load_table_file if kept else None,
    )


#: The texts whose findings are in the corpus.
KEPT = ("ours", "lists")

TARGETS = [
    *(_target(f"vector {kind}", _nearest, True) for kind in (*VECTOR_KINDS, *VARIANTS)),
    _target("vector bits", _nearest_by_bits, True),
    *(_target(f"words {by}", _words, True, by in KEPT) for by in TEXT_VERSIONS),
    *(_target(f"finder {kind}", partial(_filtered, kind), False) for kind in FILTERS),
]
