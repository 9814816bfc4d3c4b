"""Writing the files of a segment of an inverted index."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from lance_engine import kernels
from lance_engine.index.inverted import layout as names
from lance_engine.index.inverted.analysis import Analysis
from lance_engine.index.inverted.layout import file_name, posting_metadata, written_metadata
from lance_engine.index.kind import IndexOutput

# Documents of posting lists that are laid out at once.
_DOCUMENTS: Final = 1 << 21

_TOKENS: Final = pa.schema(
    [
        pa.field(names.TRANSDUCER, pa.large_binary(), nullable=False),
        pa.field(names.TRANSDUCER_KEYS, pa.uint32(), nullable=False),
        pa.field(names.TRANSDUCER_TOTAL, pa.uint64(), nullable=False),
    ]
)
_DOCS: Final = pa.schema(
    [
        pa.field(names.ROW_ID, pa.uint64(), nullable=False),
        pa.field(names.LENGTH, pa.uint32(), nullable=False),
    ]
)
_LISTS: Final = [
    pa.field(names.POSTING, pa.list_(pa.large_binary()), nullable=False),
    pa.field(names.BEST, pa.float32(), nullable=False),
    pa.field(names.COUNT, pa.uint32(), nullable=False),
]
_POSITIONS: Final = [
    pa.field(names.POSITIONS, pa.large_binary(), nullable=False),
    pa.field(names.POSITION_OFFSETS, pa.list_(pa.uint32()), nullable=False),
]


def write_partition(
    builder: kernels.IndexBuilder, number: int, output: IndexOutput, *, with_position: bool
) -> None:
    """Write a partition with the documents of a builder, which is finished."""
    builder.finish()
    terms = builder.terms
    tokens, total = builder.transducer()
    file = output.create(file_name(number, "tokens"), _TOKENS)
    file.write(
        pa.RecordBatch.from_arrays(
            [
                _binaries(tokens, np.array([0, len(tokens)])),
                pa.array([terms], pa.uint32()),
                pa.array([total], pa.uint64()),
            ],
            schema=_TOKENS,
        )
    )
    file.finish({})
    rows, lengths = builder.rows(), builder.lengths()
    file = output.create(file_name(number, "docs"), _DOCS)
    file.write(pa.RecordBatch.from_arrays([pa.array(rows), pa.array(lengths)], schema=_DOCS))
    file.finish({"total_tokens": str(int(lengths.sum(dtype="u8")))})
    schema = pa.schema([*_LISTS, *_POSITIONS] if with_position else _LISTS)
    file = output.create(file_name(number, "invert"), schema)
    first = 0
    while first < terms or first == 0:
        last = builder.cut(first, _DOCUMENTS) if terms else 0
        file.write(_lists(builder, first, last, schema))
        if last == terms:
            break
        first = last
    file.finish(posting_metadata(with_position=with_position))


def write_metadata(output: IndexOutput, analysis: Analysis, *, with_position: bool, partitions: int) -> None:
    """Write the file that describes a segment."""
    schema = pa.schema([pa.field(names.DELETED, pa.binary(), nullable=False)])
    file = output.create(names.METADATA_FILE, schema)
    file.write(pa.RecordBatch.from_arrays([pa.array([BitMap().serialize()], pa.binary())], schema=schema))
    file.finish(written_metadata(analysis, with_position=with_position, partitions=partitions))


def _lists(builder: kernels.IndexBuilder, first: int, last: int, schema: pa.Schema) -> pa.RecordBatch:
    blocks, ends, lists, best, counts, positions, position_ends, offsets = builder.columns(first, last)
    binaries = _binaries(blocks, ends)
    columns = [
        pa.ListArray.from_arrays(pa.array(lists), binaries),
        pa.array(best),
        pa.array(counts),
    ]
    if len(schema) > len(columns):
        # Positions start over with each block, so that there are as many begins as blocks.
        columns += [
            _binaries(positions, position_ends),
            pa.ListArray.from_arrays(pa.array(lists), pa.array(offsets)),
        ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _binaries(data: object, ends: object) -> pa.Array:
    count = len(ends) - 1  # type: ignore[arg-type]
    return pa.Array.from_buffers(pa.large_binary(), count, [None, pa.py_buffer(ends), pa.py_buffer(data)])
