"""The part of a dataset that a report describes: reports of very wide or very long tables stay small."""

from __future__ import annotations

import dataclasses

from lance_engine.base import Schema
from lance_engine.dataset import DatasetVersion

from lance_sql.display.amounts import counted

#: Maximum number of stored columns, of fragments, and of columns of fragments whose metadata is read.
MOST_COLUMNS, MOST_FRAGMENTS, MOST_CELLS = 300, 200, 4000
#: Maximum number of indices.
MOST_INDICES = 200


def shown_part(dataset: DatasetVersion) -> tuple[DatasetVersion, str]:
    """The first columns and fragments of the dataset, and a note on what is left out, if anything is."""
    manifest = dataset.snapshot.manifest
    fields, columns = [], 0
    for field in manifest.schema.fields:
        columns += sum(1 for _ in field.leaves())
        if columns > MOST_COLUMNS:
            break
        fields.append(field)
    width = max(1, sum(1 for field in fields for _ in field.leaves()))
    fragments = tuple(manifest.fragments[: min(MOST_FRAGMENTS, max(1, MOST_CELLS // width))])
    all_fields, all_fragments = len(manifest.schema.fields), len(manifest.fragments)
    if len(fields) == all_fields and len(fragments) == all_fragments:
        return dataset, ""
    schema = Schema(tuple(fields), manifest.schema.metadata)
    part = dataclasses.replace(manifest, schema=schema, fragments=fragments)
    return type(dataset)(dataset.snapshot.with_manifest(part)), (
        f"This report describes the first {len(fields):,} of {counted(all_fields, 'column')} and the first "
        f"{len(fragments):,} of {counted(all_fragments, 'fragment')}."
    )
