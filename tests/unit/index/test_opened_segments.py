"""What the segments of searched indices check when they are opened, and what they write for others."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError
from lance_engine.index.inverted.layout import posting_metadata
from lance_engine.index.inverted.partition import TextPartition
from lance_engine.index.vector import segment


class OpenedError(Exception):
    """The tokens are opened after the documents were checked."""


def open_documents(rows: list[int]) -> None:
    batch = pa.record_batch(
        {"_rowid": pa.array(rows, pa.uint64()), "_num_tokens": pa.array(rows, pa.uint32())}
    )

    def opened(name: str, columns: Any = None) -> Any:
        if "tokens" in name:
            raise OpenedError
        return SimpleNamespace(path=name, read=lambda names: batch)

    layout: Any = SimpleNamespace(block_size=256, with_position=False)
    files: Any = SimpleNamespace(open=opened)
    TextPartition(files, 0, layout)


@pytest.mark.parametrize("rows", [[], [7], [1, 2, 3], [3, 1, 2], [3, 2, 1]])
def test_documents_have_any_order(rows: list[int]) -> None:
    with pytest.raises(OpenedError):
        open_documents(rows)


@pytest.mark.parametrize("rows", [[1, 1], [1, 2, 2], [2, 1, 2], [3, 2, 2]])
def test_a_document_cannot_occur_twice(rows: list[int]) -> None:
    with pytest.raises(CorruptFileError, match="more than once"):
        open_documents(rows)


def test_only_files_with_positions_name_their_layout() -> None:
    assert {"positions_layout", "positions_codec"} <= posting_metadata(with_position=True).keys()
    assert not [name for name in posting_metadata(with_position=False) if name.startswith("positions")]


@pytest.mark.parametrize("place", ["", "-1", "x", "²", "1234567890"])
def test_partitions_must_be_in_a_buffer(place: str) -> None:
    with pytest.raises(UnsupportedFeatureError, match="not in a buffer"):
        segment._ivf(SimpleNamespace(), {"lance:ivf": place})  # type: ignore[arg-type]


def test_the_buffer_of_the_partitions_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment, "parse_ivf", lambda data, rows: (data, rows))
    file: Any = SimpleNamespace(buffer=lambda number: f"buffer {number}", rows=9)
    assert segment._ivf(file, {"lance:ivf": "123456789"}) == ("buffer 123456789", 9)


@pytest.mark.parametrize(
    ("centroids", "partitions", "error"),
    [(True, (1, 2), None), (True, (1, 3), "different partitions"), (False, (1, 2), "different partitions")],
)
def test_both_files_of_a_segment_have_the_same_partitions(
    monkeypatch: pytest.MonkeyPatch, centroids: bool, partitions: Any, error: str | None
) -> None:
    metadata = {"lance:index": json.dumps({"type": "IVF_FLAT", "distance_type": "l2"})}
    opened: Any = {name: SimpleNamespace(path=name, schema=SimpleNamespace(metadata=metadata))
                   for name in (segment.INDEX_FILE, segment.VECTORS_FILE)}  # fmt: skip
    found = {
        segment.INDEX_FILE: SimpleNamespace(centroids="held" if centroids else None, partitions=(1, 2)),
        segment.VECTORS_FILE: SimpleNamespace(centroids=None, partitions=partitions),
    }
    monkeypatch.setattr(segment, "is_untrained", lambda files: False)
    monkeypatch.setattr(segment, "_ivf", lambda file, _: found[file.path])
    monkeypatch.setattr(segment.VectorSegment, "_graph_entries", lambda self, _: None)
    monkeypatch.setattr(segment.VectorSegment, "_open_codec", lambda self, coding: coding)
    files: Any = SimpleNamespace(open=opened.get, is_local=True, segment=SimpleNamespace(name="v_idx"))
    if error is None:
        assert segment.VectorSegment(files).codec == "FLAT"
    else:
        with pytest.raises(CorruptFileError, match=error):
            segment.VectorSegment(files)
