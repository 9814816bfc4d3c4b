"""Random tables read the same as they were written, with pylance and with the engine."""

from __future__ import annotations

import tempfile

import lance
import pyarrow as pa
from corpus import difference
from counts import examples
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lance_engine.dataset import DatasetVersion
from lance_engine.encodings.profile import ProfileName
from lance_engine.errors import UnsupportedTypeError
from lance_engine.write.dataset import write_dataset

LEAVES: dict[pa.DataType, st.SearchStrategy[object]] = {
    pa.bool_(): st.booleans(),
    pa.int8(): st.integers(-128, 127),
    pa.int32(): st.one_of(st.integers(-(2**31), 2**31 - 1), st.integers(0, 3)),
    pa.int64(): st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(100, 110)),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.one_of(st.text(max_size=20), st.sampled_from(["", "a", "b" * 300])),
    pa.large_binary(): st.binary(max_size=30),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.decimal128(20, 2): st.decimals(-(10**17), 10**17, places=2),
    pa.date32(): st.dates(),
    pa.list_(pa.int16(), 3): st.lists(st.one_of(st.none(), st.integers(-5, 5)), min_size=3, max_size=3),
}
Typed = tuple[pa.DataType, st.SearchStrategy[object]]


def _nullable(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.one_of(values, st.none())


def _wrap(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    def list_of(item: Typed) -> Typed:
        return pa.list_(item[0]), st.lists(_nullable(item[1]), max_size=4)

    def large_list_of(item: Typed) -> Typed:
        return pa.large_list(item[0]), st.lists(_nullable(item[1]), max_size=4)

    def struct_of(items: list[Typed]) -> Typed:
        fields = {f"f{i}": item for i, item in enumerate(items)}
        kind = pa.struct([(name, item[0]) for name, item in fields.items()])
        return kind, st.fixed_dictionaries({name: _nullable(item[1]) for name, item in fields.items()})

    return st.one_of(
        inner.map(list_of), inner.map(large_list_of), st.lists(inner, min_size=1, max_size=2).map(struct_of)
    )


TYPED = st.recursive(st.sampled_from(sorted(LEAVES.items(), key=str)), _wrap, max_leaves=3)


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    columns = draw(st.lists(TYPED, min_size=1, max_size=3))
    rows = draw(st.integers(1, 25))
    # Few different rows repeated make dictionaries, runs and several chunks.
    repeat = draw(st.sampled_from([1, 1, 7, 60]))
    arrays = {}
    for number, (kind, values) in enumerate(columns):
        cells = draw(st.lists(_nullable(values), min_size=rows, max_size=rows))
        arrays[f"c{number}"] = pa.array(cells * repeat, kind)
    table = pa.table(arrays)
    start = draw(st.integers(0, table.num_rows - 1))
    return table.slice(start, draw(st.integers(1, table.num_rows - start)))


@settings(max_examples=examples(15), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    table=tables(),
    version=st.sampled_from(["2.0", "2.1", "2.2"]),
    profile=st.sampled_from(["size", "balanced", "speed"]),
    data=st.data(),
)
def test_tables_survive(table: pa.Table, version: str, profile: ProfileName, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        file_rows = data.draw(st.integers(1, table.num_rows * 2))
        try:
            write_dataset(
                table,
                folder,
                data_storage_version=version,
                profile=profile,
                max_rows_per_file=max(file_rows, table.num_rows // 4 + 1),
            )
        except UnsupportedTypeError:
            # Only null structs in the oldest version.
            assume(version != "2.0")
            raise
        theirs, ours = lance.dataset(folder), DatasetVersion.open(folder)
        assert not difference(theirs.to_table(), table)
        assert not difference(ours.scan().to_table(), table)
        rows = data.draw(st.lists(st.integers(0, table.num_rows - 1), min_size=1, max_size=10))
        expected = table.take(pa.array(rows))
        assert not difference(theirs.take(rows), expected)
        ids = ours.scan(columns=["_rowid"]).to_table().column("_rowid").take(pa.array(rows))
        assert not difference(ours.take(ids.to_numpy()), expected)
