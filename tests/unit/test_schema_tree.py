"""The schema tree and its mapping to Arrow types."""

from __future__ import annotations

import pickle

import pyarrow as pa
import pytest
from lance_engine.errors import (
    ColumnNotFoundError,
    CorruptFileError,
    SchemaMismatchError,
    UnsupportedFeatureError,
    UnsupportedTypeError,
)
from lance_engine.schema_tree import Field, Schema

FLAT = [
    ("null", pa.null()),
    ("bool", pa.bool_()),
    ("int8", pa.int8()),
    ("int64", pa.int64()),
    ("uint8", pa.uint8()),
    ("uint64", pa.uint64()),
    ("halffloat", pa.float16()),
    ("float", pa.float32()),
    ("double", pa.float64()),
    ("string", pa.string()),
    ("binary", pa.binary()),
    ("large_string", pa.large_string()),
    ("large_binary", pa.large_binary()),
    ("date32:day", pa.date32()),
    ("date64:ms", pa.date64()),
    ("time32:s", pa.time32("s")),
    ("time32:ms", pa.time32("ms")),
    ("time64:us", pa.time64("us")),
    ("time64:ns", pa.time64("ns")),
    ("timestamp:s:-", pa.timestamp("s")),
    ("timestamp:us:UTC", pa.timestamp("us", "UTC")),
    ("timestamp:ns:+05:30", pa.timestamp("ns", "+05:30")),
    ("duration:ms", pa.duration("ms")),
    ("decimal:128:15:2", pa.decimal128(15, 2)),
    ("decimal:128:5:-3", pa.decimal128(5, -3)),
    ("decimal:256:60:10", pa.decimal256(60, 10)),
    ("fixed_size_binary:16", pa.binary(16)),
    ("fixed_size_list:float:8", pa.list_(pa.float32(), 8)),
    ("fixed_size_list:bool:3", pa.list_(pa.bool_(), 3)),
    ("fixed_size_list:decimal:128:9:2:4", pa.list_(pa.decimal128(9, 2), 4)),
    ("fixed_size_list:fixed_size_list:int8:2:3", pa.list_(pa.list_(pa.int8(), 2), 3)),
    ("dict:string:int16:false", pa.dictionary(pa.int16(), pa.string())),
    ("dict:double:uint8:false", pa.dictionary(pa.uint8(), pa.float64())),
]


@pytest.mark.parametrize(("logical_type", "arrow_type"), FLAT)
def test_flat_types_map_both_ways(logical_type: str, arrow_type: pa.DataType) -> None:
    (field,) = Schema.from_arrow(pa.schema([("x", arrow_type)])).fields
    assert field.logical_type == logical_type
    assert field.children == ()
    assert Field("x", 0, -1, logical_type, True).arrow_type == arrow_type


STRUCT = pa.struct([pa.field("x", pa.int32(), nullable=False), ("y", pa.string())])
NESTED = [
    ("struct", STRUCT, ["c", "x", "y"]),
    ("struct", pa.struct([]), ["c"]),
    ("list", pa.list_(pa.int8()), ["c", "item"]),
    ("list", pa.list_(pa.field("element", pa.int8(), nullable=False)), ["c", "element"]),
    ("list", pa.list_(pa.list_(pa.utf8())), ["c", "item", "item"]),
    ("list.struct", pa.list_(STRUCT), ["c", "item", "x", "y"]),
    ("large_list", pa.large_list(pa.int8()), ["c", "item"]),
    ("large_list.struct", pa.large_list(STRUCT), ["c", "item", "x", "y"]),
    ("map", pa.map_(pa.string(), pa.int32()), ["c", "entries", "key", "value"]),
    ("fixed_size_list:struct:3", pa.list_(STRUCT, 3), ["c", "item", "x", "y"]),
]


@pytest.mark.parametrize(("logical_type", "arrow_type", "names"), NESTED)
def test_nested_types_map_both_ways(logical_type: str, arrow_type: pa.DataType, names: list[str]) -> None:
    schema = Schema.from_arrow(pa.schema([("c", arrow_type)]))
    assert schema.fields[0].logical_type == logical_type
    assert [node.name for node in schema.walk()] == names
    assert schema.to_arrow().field("c").type.equals(arrow_type, check_metadata=True)


def test_views_are_stored_as_their_plain_types() -> None:
    schema = Schema.from_arrow(pa.schema([("s", pa.string_view()), ("b", pa.binary_view())]))
    assert [top.logical_type for top in schema.fields] == ["string", "binary"]


def test_ids_are_numbered_depth_first_with_parents() -> None:
    arrow = pa.schema(
        [("a", pa.int8()), ("s", pa.struct([("l", pa.list_(pa.int8())), ("y", pa.int8())])), ("z", pa.int8())]
    )
    schema = Schema.from_arrow(arrow, first_id=10)
    assert [(node.name, node.id, node.parent_id) for node in schema.walk()] == [
        ("a", 10, -1),
        ("s", 11, -1),
        ("l", 12, 11),
        ("item", 13, 12),
        ("y", 14, 11),
        ("z", 15, -1),
    ]


def test_metadata_and_nullability_survive() -> None:
    inner = pa.field("x", pa.int8(), nullable=False, metadata={"k": "v"})
    arrow = pa.schema(
        [pa.field("s", pa.struct([inner]), nullable=False, metadata={"bytes": b"\xff\x00"})],
        metadata={"owner": "me"},
    )
    made = Schema.from_arrow(arrow)
    assert made.fields[0].metadata == {"bytes": "\udcff\0"}
    shown = arrow.set(0, arrow.field(0).with_metadata({"bytes": "\ufffd\0"}))  # which engines can read
    assert made.to_arrow().equals(shown, check_metadata=True)


def test_requested_field_ids_are_not_stored() -> None:
    arrow = pa.schema([pa.field("a", pa.int8(), metadata={"lance:field_id": "7"})])
    assert Schema.from_arrow(arrow).fields[0].metadata == {}


def test_leaves_are_the_fields_with_a_column() -> None:
    arrow = pa.schema(
        [
            ("a", pa.int8()),
            ("s", pa.struct([("x", pa.int8()), ("l", pa.list_(pa.string()))])),
            ("f", pa.list_(pa.float32(), 4)),
            pa.field("packed", STRUCT, metadata={"packed": "true"}),
            pa.field("packed2", STRUCT, metadata={"lance-encoding:packed": "true"}),
            pa.field("unpacked", STRUCT, metadata={"packed": "false"}),
            pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"}),
            pa.field("blob2", STRUCT, metadata={"ARROW:extension:name": "lance.blob.v2"}),
            ("empty", pa.struct([])),
            ("m", pa.map_(pa.string(), pa.int8())),
        ]
    )
    leaves = [leaf.name for leaf in Schema.from_arrow(arrow).leaves()]
    assert leaves == [
        "a", "x", "item", "f", "packed", "packed2", "x", "y", "blob", "blob2", "empty", "key", "value",
    ]  # fmt: skip


def test_extension_types_are_kept_as_storage_and_metadata() -> None:
    schema = Schema.from_arrow(pa.schema([("u", pa.uuid()), ("b", pa.bool8())]))
    uuid, bool8 = schema.fields
    assert (uuid.logical_type, uuid.metadata["ARROW:extension:name"]) == (
        "fixed_size_binary:16",
        "arrow.uuid",
    )
    assert (bool8.logical_type, bool8.metadata["ARROW:extension:name"]) == ("int8", "arrow.bool8")
    assert schema.to_arrow().field("u").type == pa.binary(16)


def test_extension_parameters_are_kept() -> None:
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 2])
    (field,) = Schema.from_arrow(pa.schema([("t", tensor)])).fields
    assert field.logical_type == "fixed_size_list:float:4"
    assert '"shape":[2,2]' in field.metadata["ARROW:extension:metadata"]


@pytest.mark.parametrize(
    "given",
    [
        pa.field("j", pa.large_binary(), metadata={"ARROW:extension:name": "lance.json"}),
        pa.field("j", pa.string(), metadata={"ARROW:extension:name": "arrow.json"}),
        pa.field("j", pa.json_(pa.large_string())),
    ],
)
def test_json_is_text_in_arrow_and_binary_in_files(given: pa.Field) -> None:
    (field,) = Schema.from_arrow(pa.schema([given])).fields
    assert field.logical_type == "json"
    assert field.metadata["ARROW:extension:name"] == "lance.json"
    assert field.column_type == pa.large_binary()
    text = pa.field(
        "j", pa.string(), metadata={"ARROW:extension:name": "arrow.json", "ARROW:extension:metadata": ""}
    )
    assert field.to_arrow().equals(text, check_metadata=True)
    assert Schema.from_arrow(pa.schema([field.to_arrow()])).fields == (field,)


def test_bfloat16_lists_and_the_old_blob_type_are_read() -> None:
    assert Field("v", 0, -1, "fixed_size_list:lance.bfloat16:4", True).arrow_type == pa.list_(pa.binary(2), 4)
    blob = Field("b", 0, -1, "blob", True)
    assert blob.arrow_type == pa.large_binary()
    assert blob.is_blob


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.decimal32(5, 1),
        pa.decimal64(10, 1),
        pa.month_day_nano_interval(),
        pa.list_view(pa.int8()),
        pa.run_end_encoded(pa.int16(), pa.string()),
        pa.map_(pa.string(), pa.int8(), keys_sorted=True),
        pa.dense_union([pa.field("a", pa.int8())]),
        pa.list_(pa.string(), 2),
        pa.list_(pa.list_(pa.int8()), 2),
        pa.list_(pa.dictionary(pa.int8(), pa.int8()), 2),
        pa.dictionary(pa.int8(), pa.decimal128(5, 1)),
        pa.timestamp("s", "-"),
    ],
    ids=str,
)
def test_types_without_a_representation_are_refused_with_the_path(arrow_type: pa.DataType) -> None:
    with pytest.raises(UnsupportedTypeError, match=r"column: s\.inner"):
        Schema.from_arrow(pa.schema([("s", pa.struct([("inner", arrow_type)]))]))


@pytest.mark.parametrize(
    "logical_type",
    [
        "",
        "int128",
        "decimal:128:99:2",
        "decimal:64:9:2",
        "decimal:128",
        "timestamp:fortnight:-",
        "timestamp:us",
        "fixed_size_binary:-1",
        "fixed_size_binary:99999999999",
        "fixed_size_list:int8:x",
        "fixed_size_list:int8:-2",
        "fixed_size_list:" * 40 + "int8" + ":2" * 40,
        "dict:string:int16",
        "dict:nonsense:int16:false",
        "duration:day",
    ],
)
def test_unknown_logical_types_name_the_column(logical_type: str) -> None:
    schema = Schema((Field("odd", 0, -1, logical_type, True),))
    with pytest.raises(UnsupportedFeatureError, match="column: odd"):
        schema.to_arrow()


@pytest.mark.parametrize("logical_type", ["list", "large_list.struct", "map", "fixed_size_list:struct:2"])
def test_missing_children_are_corrupt(logical_type: str) -> None:
    with pytest.raises(CorruptFileError, match="column: odd"):
        _ = Field("odd", 0, -1, logical_type, True).arrow_type


def test_field_finds_children_and_suggests_names() -> None:
    schema = Schema.from_arrow(pa.schema([("price", pa.int8()), ("s", pa.struct([("inner", pa.int8())]))]))
    assert schema.field("s.inner").id == 2
    assert schema.field("s").id == 1
    assert schema.paths_by_id() == {0: "price", 1: "s", 2: "s.inner"}
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'price'"):
        schema.field("prise")
    with pytest.raises(ColumnNotFoundError, match=r"Did you mean 's\.inner'"):
        schema.field("s.iner")
    with pytest.raises(ColumnNotFoundError, match="Did you mean 'price'"):
        schema.field("PRICE")
    with pytest.raises(ColumnNotFoundError, match="Available columns: price, s"):
        schema.field("zzzzzz")


@pytest.mark.parametrize("names", [["a", "a"], ["a.b"]])
def test_ambiguous_names_are_refused(names: list[str]) -> None:
    with pytest.raises(SchemaMismatchError):
        Schema.from_arrow(pa.schema([pa.field(name, pa.int8()) for name in names]))


def test_fields_are_values() -> None:
    schema = Schema.from_arrow(pa.schema([("s", STRUCT)], metadata={"a": "b"}))
    assert pickle.loads(pickle.dumps(schema)) == schema
    assert hash(schema) == hash(Schema.from_arrow(pa.schema([("s", STRUCT)], metadata={"a": "b"})))


def test_tables_made_alike_share_a_schema() -> None:
    def made(metadata: dict[str, str], of_field: dict[str, str]) -> Schema:
        return Schema.from_arrow(
            pa.schema([pa.field("a", pa.int64(), metadata=of_field)], metadata=metadata)  # type: ignore[arg-type]
        )

    first = made({"k": "v"}, {"f": "1"})
    assert made({"k": "v"}, {"f": "1"}) is first
    assert made({"k": "w"}, {"f": "1"}).metadata == {"k": "w"}
    assert made({"k": "v"}, {"f": "2"}).fields[0].metadata == {"f": "2"}
