"""The shared corpus: named tables over types, nulls, nestings, value shapes and forced encodings.

Tables are built on demand from a fixed seed, small, and full of what Arrow allows but few expect: values
below nulls, items below null lists, slices. Used by the tests of the reference decoders, the interoperability
tests and the generated page on format support.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

ROWS = 150
BOTH = ("2.1", "2.2")


@dataclass(frozen=True)
class Mix:
    """The shares of null slots, of empty lists and of null items inside fixed-size lists."""

    name: str
    nulls: float = 0.0
    empties: float = 0.0
    item_nulls: float = 0.0


NONE = Mix("no nulls")
SOME = Mix("some nulls", nulls=0.25)
ALL = Mix("all null", nulls=1.0)
EMPTIES = Mix("empty lists", empties=0.3)
NULLS_AND_EMPTIES = Mix("nulls and empty lists", nulls=0.2, empties=0.3)
ALL_EMPTY = Mix("only empty lists", empties=1.0)
ITEM_NULLS = Mix("item nulls", nulls=0.2, item_nulls=0.3)


@dataclass(frozen=True)
class Case:
    """One table: `group` and `kind` classify it (area, type), `mix` names its nulls."""

    group: str
    kind: str
    mix: str
    build: Callable[[], pa.Table] = field(repr=False)
    versions: tuple[str, ...] = BOTH

    @property
    def kind_name(self) -> str:
        return f"{self.group}-{self.kind}".replace(" ", "_")

    @property
    def name(self) -> str:
        return f"{self.kind_name}-{self.mix}".replace(" ", "_")


LEAF_TYPES: dict[str, pa.DataType] = {
    str(each): each
    for each in (
        [pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64()]
        + [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.float16(), pa.float32(), pa.float64()]
        + [pa.decimal128(9, 2), pa.decimal128(38, -3), pa.decimal256(60, 10), pa.date32(), pa.date64()]
        + [pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")]
        + [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")]
        + [pa.timestamp("us", "UTC"), pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("ms", "+05:30")]
        + [pa.duration(unit) for unit in ("s", "ms", "us", "ns")]
        + [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()]
        + [pa.binary(1), pa.binary(7), pa.binary(16), pa.binary(40), pa.null()]
        + [
            pa.list_(pa.float32(), 4),
            pa.list_(pa.int8(), 3),
            pa.list_(pa.float16(), 8),
            pa.list_(pa.bool_(), 8),
        ]
        + [pa.list_(pa.float64(), 40), pa.list_(pa.list_(pa.int16(), 2), 3), pa.list_(pa.timestamp("us"), 2)]
        + [
            pa.list_(pa.null(), 2),
            pa.dictionary(pa.int8(), pa.string()),
            pa.dictionary(pa.int32(), pa.int64()),
        ]
        + [pa.dictionary(pa.uint16(), pa.bool_()), pa.dictionary(pa.int64(), pa.float32())]
    )
}


def _leaf_data(arrow_type: pa.DataType, count: int, rng: np.random.Generator) -> pa.Array:
    """Random values without nulls."""
    if pt.is_null(arrow_type):
        return pa.nulls(count)
    if pt.is_boolean(arrow_type):
        return pa.array(rng.random(count) < 0.5)
    if pt.is_floating(arrow_type):
        return pa.array(rng.normal(0, 100, count).astype(arrow_type.to_pandas_dtype()), arrow_type)
    if pt.is_decimal(arrow_type):
        digits = min(arrow_type.precision, 18)
        numbers = rng.integers(-(10**digits) + 1, 10**digits, count)
        width = arrow_type.bit_width // 8
        raw = b"".join(int(number).to_bytes(width, "little", signed=True) for number in numbers)
        return pa.Array.from_buffers(arrow_type, count, [None, pa.py_buffer(raw)])
    if pt.is_date64(arrow_type):
        return pa.array(rng.integers(-10_000, 30_000, count) * 86_400_000).view(arrow_type)
    if pt.is_time(arrow_type):
        dtype = np.int32 if arrow_type.bit_width == 32 else np.int64
        return pa.array(rng.integers(0, 86_400, count).astype(dtype)).view(arrow_type)
    if pt.is_temporal(arrow_type):
        dtype = np.int32 if arrow_type.bit_width == 32 else np.int64
        return pa.array(rng.integers(-(10**6), 10**6, count).astype(dtype)).view(arrow_type)
    if pt.is_integer(arrow_type):
        info = np.iinfo(arrow_type.to_pandas_dtype())
        numbers = rng.integers(info.min, info.max, count, dtype=info.dtype, endpoint=True)
        return pa.array(numbers, arrow_type)
    if pt.is_fixed_size_binary(arrow_type):
        return pa.array([rng.bytes(arrow_type.byte_width) for _ in range(count)], arrow_type)
    if pt.is_dictionary(arrow_type):
        values = _leaf_data(arrow_type.value_type, 20, rng)
        indices = pa.array(rng.integers(0, 20, count), arrow_type.index_type)
        return pa.DictionaryArray.from_arrays(indices, values)
    offsets = np.concatenate([[0], rng.integers(0, 12, count)]).cumsum().astype(np.int32)
    letters = rng.integers(97, 123, int(offsets[-1])).astype(np.uint8).tobytes()
    words = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(letters)])
    return words.cast(arrow_type)


def _validity(count: int, share: float, rng: np.random.Generator) -> Any:
    if share == 0.0:
        return None
    return pa.py_buffer(np.packbits(rng.random(count) >= share, bitorder="little").tobytes())


def random_array(arrow_type: pa.DataType, count: int, mix: Mix, rng: np.random.Generator) -> pa.Array:
    """`count` random slots. Null slots keep what lies below them: values, and items of lists."""
    if pt.is_struct(arrow_type):
        children = [random_array(each.type, count, mix, rng) for each in arrow_type]
        return pa.Array.from_buffers(arrow_type, count, [_validity(count, mix.nulls, rng)], children=children)
    if pt.is_fixed_size_list(arrow_type):
        inner = mix if pt.is_struct(arrow_type.value_type) else Mix("", mix.item_nulls, 0, mix.item_nulls)
        child = random_array(arrow_type.value_type, count * arrow_type.list_size, inner, rng)
        return pa.Array.from_buffers(arrow_type, count, [_validity(count, mix.nulls, rng)], children=[child])
    if pt.is_list(arrow_type) or pt.is_large_list(arrow_type) or pt.is_map(arrow_type):
        lengths = rng.integers(1, 4, count)
        lengths[rng.random(count) < mix.empties] = 0
        offsets = np.concatenate([[0], lengths]).cumsum()
        total = int(offsets[-1])
        if pt.is_map(arrow_type):
            entries = pa.struct([arrow_type.key_field, arrow_type.item_field])
            keys = random_array(arrow_type.key_type, total, NONE, rng)
            items = random_array(arrow_type.item_type, total, mix, rng)
            child = pa.Array.from_buffers(entries, total, [None], children=[keys, items])
        else:
            child = random_array(arrow_type.value_type, total, mix, rng)
        raw = offsets.astype(np.int64 if pt.is_large_list(arrow_type) else np.int32).tobytes()
        buffers = [_validity(count, mix.nulls, rng), pa.py_buffer(raw)]
        return pa.Array.from_buffers(arrow_type, count, buffers, children=[child])
    plain = _leaf_data(arrow_type, count, rng)
    if mix.nulls == 0.0 or pt.is_null(arrow_type):
        return plain
    if pt.is_dictionary(arrow_type):
        mask = pa.array(rng.random(count) < mix.nulls)
        indices = pa.Array.from_pandas(plain.indices.to_numpy(), mask=mask.to_numpy(False))
        return pa.DictionaryArray.from_arrays(indices.cast(arrow_type.index_type), plain.dictionary)
    buffers = [_validity(count, mix.nulls, rng), *plain.buffers()[1:]]
    return pa.Array.from_buffers(arrow_type, count, buffers)


def _rng(*seed: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(seed).encode()))


def one_column(array: pa.Array, metadata: Mapping[str, str] | None = None) -> pa.Table:
    """A table with the one column `value`."""
    schema = pa.schema([pa.field("value", array.type, metadata=dict(metadata) if metadata else None)])
    return pa.Table.from_arrays([array], schema=schema)


def _random_table(arrow_type: pa.DataType, count: int, mix: Mix) -> pa.Table:
    return one_column(random_array(arrow_type, count, mix, _rng(str(arrow_type), count, mix)))


def _random_case(group: str, kind: str, arrow_type: pa.DataType, mix: Mix, versions: tuple[str, ...]) -> Case:
    return Case(group, kind, mix.name, lambda: _random_table(arrow_type, ROWS, mix), versions)


def leaf_cases() -> Iterable[Case]:
    """Every leaf type with no, some and only nulls, and without rows."""
    for kind, arrow_type in LEAF_TYPES.items():
        mixes = [NONE] if pt.is_null(arrow_type) else [NONE, SOME, ALL]
        if pt.is_fixed_size_list(arrow_type):
            mixes += [ITEM_NULLS, Mix("all items null", item_nulls=1.0)]
        for mix in mixes:
            yield _random_case("leaf", kind, arrow_type, mix, BOTH)
        yield Case("leaf", kind, "no rows", lambda each=arrow_type: _random_table(each, 0, NONE))


WRAPPERS: dict[str, Callable[[pa.DataType], pa.DataType]] = {
    "list": pa.list_,
    "large_list": pa.large_list,
    "struct": lambda inner: pa.struct([("a", inner), ("b", pa.int16())]),
}
NESTING_MIXES = (NONE, SOME, EMPTIES, NULLS_AND_EMPTIES, ALL, ALL_EMPTY)


def nested_types() -> dict[str, tuple[pa.DataType, tuple[str, ...]]]:
    """Lists and structs up to three deep over numbers and strings, and what lies off that grid."""
    shapes = [shape for depth in (1, 2, 3) for shape in product(("list", "struct"), repeat=depth)]
    shapes += [
        ("large_list",),
        ("large_list", "list"),
        ("struct", "large_list"),
        ("list", "large_list", "struct"),
    ]
    types = {}
    for index, shape in enumerate(shapes):
        for leaf in (pa.int32(), pa.string()) if len(shape) < 3 else ((pa.int32(), pa.string())[index % 2],):
            arrow_type = leaf
            for wrapper in reversed(shape):
                arrow_type = WRAPPERS[wrapper](arrow_type)
            types["<".join((*shape, str(leaf)))] = (arrow_type, BOTH)
    vector = pa.list_(pa.float32(), 4)
    types["list<vector"] = (pa.list_(vector), BOTH)
    types["struct<vector"] = (pa.struct([("v", vector), ("n", pa.int64())]), BOTH)
    types["list<bool"] = (pa.list_(pa.bool_()), BOTH)
    types["list<dictionary"] = (pa.list_(pa.dictionary(pa.int8(), pa.string())), BOTH)
    types["list<null"] = (pa.list_(pa.null()), BOTH)
    types["struct<null"] = (pa.struct([("a", pa.null()), ("b", pa.int8())]), BOTH)
    types["struct<struct<struct<list<string"] = (
        pa.struct([("a", pa.struct([("b", pa.struct([("c", pa.list_(pa.string())), ("d", pa.date32())]))]))]),
        BOTH,
    )
    types["list<list<list<list<int8"] = (pa.list_(pa.list_(pa.list_(pa.list_(pa.int8())))), BOTH)
    types["map<string,int32"] = (pa.map_(pa.string(), pa.int32()), ("2.2",))
    types["list<map<int8,string"] = (pa.list_(pa.map_(pa.int8(), pa.string())), ("2.2",))
    types["map<string,list<int32"] = (pa.map_(pa.string(), pa.list_(pa.int32())), ("2.2",))
    point = pa.struct([("x", pa.float32()), ("label", pa.string())])
    types["fixed_size_list<struct"] = (pa.list_(point, 3), ("2.2",))
    types["struct<fixed_size_list<struct"] = (
        pa.struct([("p", pa.list_(point, 2)), ("n", pa.int8())]),
        ("2.2",),
    )
    return types


def nested_cases() -> Iterable[Case]:
    """Every nesting with every mix of nulls and empty lists."""
    for kind, (arrow_type, versions) in nested_types().items():
        has_lists = "list" in kind.replace("fixed_size_list", "") or "map" in kind
        for mix in NESTING_MIXES if has_lists else (NONE, SOME, ALL):
            yield _random_case("nested", kind, arrow_type, mix, versions)
        yield Case("nested", kind, "no rows", lambda each=arrow_type: _random_table(each, 0, NONE), versions)


def _integers(shape: str, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    rng = _rng(shape)
    values = {
        "random": lambda: rng.integers(-(2**62), 2**62, count),
        "small": lambda: rng.integers(0, 50, count),
        "negative": lambda: rng.integers(-3, 3, count),
        "sorted": lambda: np.sort(rng.integers(0, 100_000, count)),
        "runs": lambda: np.repeat(rng.integers(0, 1000, count // 100 + 1), 100)[:count],
        "long runs": lambda: np.repeat([5, 7, 5], [600, 3, count])[:count],
        "constant": lambda: np.full(count, 42),
        "sequence": lambda: np.arange(count),
        "outlier": lambda: np.where(np.arange(count) == count // 2, 2**60, 1),
    }
    return values[shape]().astype(np.int64)


def _strings(shape: str, count: int) -> list[bytes]:
    rng = _rng(shape)
    words = [rng.integers(97, 123, 8).astype(np.uint8).tobytes() for _ in range(200)]
    picks = rng.integers(0, 200, (count, 6))
    shapes: dict[str, Callable[[int], bytes]] = {
        "low cardinality": lambda row: words[picks[row, 0] % 10],
        "high cardinality": lambda row: b"row %07d" % row,
        "text": lambda row: b" ".join(words[pick] for pick in picks[row]),
        "constant": lambda row: b"always the same",
        "constant long": lambda row: b"always the same " * 20,
        "long": lambda row: (words[picks[row, 0]] * 200)[: 200 + int(picks[row, 1]) * 7],
        "one long": lambda row: b"x" * 40_000 if row == count // 2 else b"y",
        "empty": lambda row: b"",
    }
    return [shapes[shape](row) for row in range(count)]


INTEGER_SHAPES = (
    "random",
    "small",
    "negative",
    "sorted",
    "runs",
    "long runs",
    "constant",
    "sequence",
    "outlier",
)
STRING_SHAPES = (
    "low cardinality",
    "high cardinality",
    "text",
    "constant",
    "constant long",
    "long",
    "one long",
    "empty",
)


def with_nulls(array: pa.Array, share: float) -> pa.Array:
    """The array with a share of its slots set to null."""
    buffers = [_validity(len(array), share, _rng("nulls", len(array))), *array.buffers()[1:]]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def shape_cases() -> Iterable[Case]:
    """Distributions of values that make a writer choose its encodings."""
    for shape, nulls in product(INTEGER_SHAPES, (0.0, 0.3)):
        for arrow_type, count in (
            (pa.int64(), 3000),
            (pa.int32(), 5000),
            (pa.int16(), 3000),
            (pa.uint8(), 6000),
        ):

            def integers(
                shape: str = shape, nulls: float = nulls, to: pa.DataType = arrow_type, count: int = count
            ) -> pa.Table:
                raw = _integers(shape, count).astype(to.to_pandas_dtype())
                return one_column(with_nulls(pa.array(raw, to), nulls))

            yield Case("values", f"{arrow_type} {shape}", "some nulls" if nulls else "no nulls", integers)
    for shape, nulls in product(STRING_SHAPES, (0.0, 0.3)):
        for arrow_type in (pa.string(), pa.large_binary()):

            def strings(shape: str = shape, nulls: float = nulls, to: pa.DataType = arrow_type) -> pa.Table:
                binary = pa.binary() if pt.is_string(to) else pa.large_binary()
                return one_column(with_nulls(pa.array(_strings(shape, 2500), binary).cast(to), nulls))

            yield Case("values", f"{arrow_type} {shape}", "some nulls" if nulls else "no nulls", strings)

    def floats() -> pa.Table:
        return one_column(pa.array(np.linspace(0, 1, 4000)))

    yield Case("values", "double smooth", "no nulls", floats)


COMPRESSION = "lance-encoding:compression"
STRUCTURE = "lance-encoding:structural-encoding"


def forced_cases() -> Iterable[Case]:
    """Encodings forced by field metadata."""
    text = pa.array(_strings("text", 2000)).cast(pa.string())
    inputs: dict[str, pa.Array] = {
        "int64": pa.array(_integers("small", 3000)),
        "double": pa.array(np.round(np.linspace(0, 100, 3000), 1)),
        "string": text,
        "string some nulls": with_nulls(text, 0.2),
        "int32 some nulls": with_nulls(pa.array(_integers("runs", 3000).astype(np.int32)), 0.2),
        "bool": pa.array(_integers("small", 3000) > 25),
        "vector": random_array(pa.list_(pa.float32(), 8), 500, SOME, _rng("vector")),
        "vector item nulls": random_array(pa.list_(pa.float32(), 8), 500, ITEM_NULLS, _rng("vector")),
        "list<string": random_array(pa.list_(pa.string()), 800, NULLS_AND_EMPTIES, _rng("forced list")),
        "list<int64": random_array(pa.list_(pa.int64()), 800, NULLS_AND_EMPTIES, _rng("forced list")),
        "struct<string": random_array(pa.struct([("a", pa.string())]), 800, SOME, _rng("forced struct")),
    }
    for (kind, array), compression, structure in product(
        inputs.items(), ("zstd", "lz4", "fsst", "none", ""), ("miniblock", "fullzip")
    ):
        metadata = {STRUCTURE: structure} | ({COMPRESSION: compression} if compression else {})
        yield Case(
            "forced",
            kind,
            f"{structure} {compression}".strip(),
            lambda array=array, metadata=metadata: one_column(array, metadata),
        )
    extra: dict[str, tuple[pa.Array, dict[str, str]]] = {
        "flat zstd": (pa.array(_integers("random", 100)[_integers("small", 4000)]), {COMPRESSION: "zstd"}),
        "bit-packed lz4": (pa.array(np.arange(20_000) % 50), {COMPRESSION: "lz4"}),
        "bit-packed zstd": (pa.array(np.arange(20_000) % 50), {COMPRESSION: "zstd"}),
        "rle lz4": (pa.array(np.repeat(np.arange(2000) % 7, 30) << 40), {COMPRESSION: "lz4"}),
        "rle zstd": (pa.array(np.repeat(np.arange(2000) % 7, 30) << 40), {COMPRESSION: "zstd"}),
        "bss": (pa.array(np.linspace(0, 1, 3000)), {COMPRESSION: "lz4", "lance-encoding:bss": "on"}),
        "bss float32 zstd": (
            pa.array(np.linspace(0, 1, 3000).astype(np.float32)),
            {COMPRESSION: "zstd", "lance-encoding:bss": "on", "lance-encoding:compression-level": "5"},
        ),
        "rle": (pa.array(_integers("runs", 3000)), {"lance-encoding:rle-threshold": "1.0"}),
        "no dictionary": (
            pa.array(_strings("low cardinality", 2000)).cast(pa.string()),
            {"lance-encoding:dict-divisor": "100000"},
        ),
        "dictionary zstd": (
            pa.array(_strings("low cardinality", 2000)).cast(pa.string()),
            {"lance-encoding:dict-values-compression": "zstd"},
        ),
        "large chunks": (text, {"lance-encoding:minichunk-size": "16384"}),
    }
    for kind, (array, metadata) in extra.items():
        yield Case(
            "forced", kind, "extra", lambda array=array, metadata=metadata: one_column(array, metadata)
        )


def packed_cases() -> Iterable[Case]:
    """Packed structs, of fixed width and (2.2) with strings or vectors."""
    fixed = pa.struct([pa.field("x", pa.int32(), False), pa.field("y", pa.float64(), False)])
    mixed = pa.struct([pa.field("x", pa.int32(), False), pa.field("s", pa.string(), False)])
    vector = pa.struct([pa.field("x", pa.int8(), False), pa.field("v", pa.list_(pa.float32(), 3), False)])
    for kind, arrow_type, versions in (
        ("fixed", fixed, BOTH),
        ("with string", mixed, ("2.2",)),
        ("with vector", vector, ("2.2",)),
    ):
        for nulls in (0.0, 0.3):

            def build(arrow_type: pa.DataType = arrow_type, nulls: float = nulls) -> pa.Table:
                plain = random_array(arrow_type, ROWS, NONE, _rng("packed"))
                children = [plain.field(index) for index in range(plain.type.num_fields)]
                validity = [_validity(ROWS, nulls, _rng("packed", nulls))]
                array = pa.Array.from_buffers(arrow_type, ROWS, validity, children=children)
                return one_column(array, {"lance-encoding:packed": "true"})

            yield Case("packed", kind, "some nulls" if nulls else "no nulls", build, versions)


def blob_cases() -> Iterable[Case]:
    """Large binaries kept outside the pages; read only, so they are not part of `all_cases`."""
    rng = _rng("blobs")
    blobs = [rng.bytes(int(size)) for size in rng.integers(1, 3000, ROWS)]
    inputs: dict[str, list[bytes | None]] = {
        "no nulls": blobs,
        "some nulls": [None if row % 5 == 2 else blob for row, blob in enumerate(blobs)],
        "empty values": [b"" if row % 3 == 0 else None if row % 7 == 0 else b"x" for row in range(ROWS)],
        "all null": [None] * ROWS,
        "no rows": [],
    }
    for mix, values in inputs.items():

        def build(values: list[bytes | None] = values) -> pa.Table:
            return one_column(pa.array(values, pa.large_binary()), {"lance-encoding:blob": "true"})

        yield Case("blob", "large_binary", mix, build, ("2.1",))


def json_cases() -> Iterable[Case]:
    """JSON as both sides write it: without white space, keys in order; not part of `all_cases` either."""
    rng = _rng("json")
    values = ['{"a":%d,"b":[0.5]}', "%d", '"%d é"', '[null,true,{"x":%d}]', "-%d", '{"n":{"m":"%d"}}']
    texts = [values[row % len(values)] % rng.integers(1, 2 ** (1 + row % 40)) for row in range(ROWS)]
    some = [None if row % 5 == 2 else text for row, text in enumerate(texts)]
    inputs: dict[str, list[str | None]] = {
        "no nulls": [*texts],
        "some nulls": some,
        "all null": [None] * ROWS,
        "JSON nulls": ["null"] * ROWS,
        "no rows": [],
    }
    kind = pa.json_()
    for mix, given in inputs.items():
        array = pa.array(given, kind)
        offsets = pa.array([0, *range(len(given))][: len(given) + 1], pa.int32())
        lists = pa.ListArray.from_arrays(offsets, array, pa.list_(pa.field("item", kind)))
        structs = pa.StructArray.from_arrays([array], fields=[pa.field("j", kind)])
        for name, built in {"json": array, "list<json": lists, "struct<json": structs}.items():
            yield Case("json", name, mix, lambda each=built: one_column(each))


def odd_cases() -> Iterable[Case]:
    """Slices, several columns, fields below null structs and other Arrow corners."""
    rng = _rng("odd")
    long_table = pa.table(
        {
            "i": pa.array(rng.integers(0, 1000, 900)),
            "s": random_array(pa.string(), 900, SOME, rng),
            "l": random_array(pa.list_(pa.int32()), 900, NULLS_AND_EMPTIES, rng),
            "st": random_array(pa.struct([("a", pa.list_(pa.string())), ("b", pa.bool_())]), 900, SOME, rng),
            "v": random_array(pa.list_(pa.float32(), 3), 900, SOME, rng),
            "b": random_array(pa.bool_(), 900, SOME, rng),
        }
    )
    yield Case("odd", "wide", "some nulls", lambda: long_table)
    yield Case("odd", "slice", "some nulls", lambda: long_table.slice(333, 401))
    yield Case("odd", "slice in the middle of a byte", "some nulls", lambda: long_table.slice(3, 5))
    yield Case("odd", "several chunks", "some nulls", lambda: pa.concat_tables([long_table.slice(7, 90)] * 5))
    yield Case("odd", "one row", "no nulls", lambda: long_table.slice(0, 1))

    def mixed_pages() -> pa.Table:
        parts = [pa.nulls(100, pa.int32()), pa.array([7] * 100, pa.int32()), pa.array(range(100), pa.int32())]
        return pa.table({"value": pa.chunked_array(parts)})

    yield Case("odd", "null then constant then random", "some nulls", mixed_pages)

    def straddling_list() -> pa.Table:
        lengths = [1, 5000, 0, 3, 9000, 2]
        offsets = np.concatenate([[0], lengths]).cumsum().astype(np.int32)
        values = pa.array(np.arange(offsets[-1]) * 1_000_003 % 65_537)
        return pa.table({"value": pa.ListArray.from_arrays(pa.array(offsets), values)})

    yield Case("odd", "lists over many chunks", "no nulls", straddling_list)


def multi_page_table() -> pa.Table:
    """Enough for several pages per column when written batch by batch (8 MiB of Arrow data make a page)."""
    rng = _rng("pages")
    count = 24_000
    return pa.table(
        {
            "id": pa.array(np.arange(count)),
            "v": pa.FixedSizeListArray.from_arrays(pa.array(rng.random(count * 256, np.float32)), 256),
            "tags": random_array(pa.list_(pa.string()), count, NULLS_AND_EMPTIES, rng),
        }
    )


@cache
def all_cases() -> tuple[Case, ...]:
    """The whole corpus."""
    groups = (leaf_cases, nested_cases, shape_cases, forced_cases, packed_cases, odd_cases)
    return tuple(case for group in groups for case in group())


def is_in_2_0(case: Case) -> bool:
    """Whether file version 2.0 can hold the case, and differently from another case of the corpus.

    It has no null structs, maps or fixed-size lists of structs, and ignores which structure is demanded.
    """
    if case.group == "nested":
        if "map" in case.kind or "fixed_size_list<struct" in case.kind:
            return False
        return "struct" not in case.kind or case.mix in (
            "no nulls",
            "empty lists",
            "only empty lists",
            "no rows",
        )
    if case.group == "values":
        return "string" in case.kind or "binary" in case.kind or case.kind.startswith("int64")
    if case.group == "forced":
        return "fullzip" not in case.mix and "struct" not in case.kind
    if case.group == "packed":
        return "string" not in case.kind and case.mix == "no nulls"
    if case.group == "odd":
        return case.kind in ("null then constant then random", "lists over many chunks")
    return True


def by_kind(cases: Iterable[Case], *, with_2_0: bool = False) -> list[Any]:
    """Parameters for pytest: the (case, version) pairs of each kind; `with_2_0` adds 2.0 where it fits.

    A test goes through its pairs in subtests, which name what failed: thousands of tests would spend most of
    their time in pytest.
    """
    import pytest

    kinds: dict[str, list[tuple[Case, str]]] = {}
    for case in cases:
        versions = (("2.0",) if with_2_0 and is_in_2_0(case) else ()) + case.versions
        kinds.setdefault(case.kind_name, []).extend((case, version) for version in versions)
    return [pytest.param(pairs, id=kind) for kind, pairs in kinds.items()]


def difference(actual: pa.Table, expected: pa.Table) -> str:
    """The difference, or nothing. Dictionary arrays compare by what they decode to; metadata is
    ignored.
    """
    if actual.column_names != expected.column_names:
        return f"columns {actual.column_names} instead of {expected.column_names}"
    if actual.num_rows != expected.num_rows:
        return f"{actual.num_rows} rows instead of {expected.num_rows}"
    for name, mine, theirs in zip(expected.column_names, actual.columns, expected.columns, strict=True):
        if mine.type != theirs.type:
            return f"{name}: type {mine.type} instead of {theirs.type}"
        mine.validate(full=True)
        if mine.equals(theirs):
            continue
        for row, (left, right) in enumerate(zip(mine.to_pylist(), theirs.to_pylist(), strict=True)):
            if left != right:
                return f"{name}, row {row}: {left!r} instead of {right!r}"
        if "dictionary" not in str(mine.type):
            return f"{name}: different, though equal row by row"
    return ""
