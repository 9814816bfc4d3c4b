"""What the kernels make of the metadata of columns: pages, or refusals that say where and why."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lance_engine import kernels
from lance_engine.format.container import direct_encoding
from lance_engine.format.pb import encodings21_pb2 as pb
from lance_engine.format.pb import encodings_pb2, file_v2_pb2

ROWS = 100
VALUES = np.arange(ROWS, dtype="<i8").tobytes()
Encoding = pb.CompressiveEncoding
LZ4 = pb.BufferCompression(scheme=pb.BufferCompression.LZ4)


def flat(bits: int = 64, **changes: Any) -> pb.CompressiveEncoding:
    return Encoding(flat=pb.Flat(bits_per_value=bits, **changes))


def variable(offset_bits: int = 32, **changes: Any) -> pb.CompressiveEncoding:
    return Encoding(variable=pb.Variable(**{"offsets": flat(offset_bits), **changes}))


def general(values: pb.CompressiveEncoding, scheme: int = 2) -> pb.CompressiveEncoding:
    return Encoding(general=pb.General(compression=pb.BufferCompression(scheme=scheme), values=values))


def nested(depth: int) -> pb.CompressiveEncoding:
    inner = flat()
    for _ in range(depth):
        inner = general(inner)
    return inner


def packed_struct(*bits: int, row_bits: int | None = None) -> pb.CompressiveEncoding:
    rows = flat(sum(bits) if row_bits is None else row_bits)
    return Encoding(packed_struct=pb.PackedStruct(bits_per_value=bits, values=rows))


def variable_packed(*fields: tuple[pb.CompressiveEncoding, dict[str, int]]) -> pb.CompressiveEncoding:
    kind = pb.VariablePackedStruct
    encodings = [kind.FieldEncoding(value=value, **width) for value, width in fields]
    return Encoding(variable_packed_struct=kind(fields=encodings))


def fixed_size_list(items: pb.CompressiveEncoding, dimension: int = 4) -> pb.CompressiveEncoding:
    return Encoding(fixed_size_list=pb.FixedSizeList(items_per_value=dimension, values=items))


def layout(**changes: Any) -> pb.PageLayout:
    """100 flat numbers in two chunks, or something near to that."""
    parts = {"value_compression": flat(), "layers": [1], "num_buffers": 1, "num_items": ROWS, **changes}
    return pb.PageLayout(mini_block_layout=pb.MiniBlockLayout(**parts))


def values(encoding: pb.CompressiveEncoding) -> pb.PageLayout:
    return layout(value_compression=encoding)


def full_zip(encoding: pb.CompressiveEncoding, **changes: Any) -> pb.PageLayout:
    parts = {"value_compression": encoding, "layers": [1], "num_items": ROWS, "num_visible_items": ROWS}
    return pb.PageLayout(full_zip_layout=pb.FullZipLayout(**{**parts, **changes}))


def zipped(encoding: pb.CompressiveEncoding) -> pb.PageLayout:
    return full_zip(encoding, bits_per_offset=32)


def pages_of(message: pb.PageLayout | bytes, **column: Any) -> list[kernels.Page]:
    value = message if isinstance(message, bytes) else message.SerializeToString()
    page = file_v2_pb2.ColumnMetadata.Page(
        buffer_offsets=[0, 8],
        buffer_sizes=[4, 900],
        length=ROWS,
        encoding=direct_encoding("lance.encodings21.PageLayout", value),
    )
    parts = {
        "encoding": direct_encoding("lance.encodings.ColumnEncoding", b"\n\0"),
        "pages": [page],
        **column,
    }
    return read(file_v2_pb2.ColumnMetadata(**parts).SerializeToString())


def read(metadata: bytes, size: int = 1000) -> list[kernels.Page]:
    return kernels.column_pages(source_of(metadata, size), size, len(metadata), lambda *_: None)


def source_of(metadata: bytes, size: int) -> kernels.SegmentSource:
    source = kernels.SegmentSource(size + len(metadata))
    source.add(size, metadata)
    return source


@pytest.mark.parametrize(
    "sound",
    [layout(), full_zip(flat(), bits_per_value=64), zipped(variable()), values(packed_struct(32, 32))],
    ids=["mini-block", "full-zip", "strings", "packed"],
)
def test_pages_that_are_sound(sound: pb.PageLayout) -> None:
    assert [page.rows for page in pages_of(sound)] == [ROWS]


LONG = 2**31
CORRUPT = {
    "no layers": (layout(layers=[]), "layer", "mini-block"),
    "other number of items": (layout(num_items=ROWS + 1), "items|rows|values", "mini-block"),
    "endless nesting": (values(nested(40)), "nested too deep", "mini-block" + 17 * " > general"),
    "both layouts": (
        layout().SerializeToString() + pb.PageLayout(constant_layout={}).SerializeToString(),
        "says two things at once",
        None,
    ),
    "twice": (
        b"\x0a\x04\x1a\x00\x1a\x00",  # a mini-block layout with two value compressions
        "says something twice",
        "mini-block",
    ),
    "cut": (layout().SerializeToString()[:-1], "ends before", None),
    "a number without end": (b"\x0a" + b"\xff" * 12, "number in a message does not end", None),
    "a number in place of a message": (b"\x08\x01", "is not a message", None),
    "a number in place of an encoding": (b"\x0a\x02\x18\x01", "has no length", "mini-block"),
    "an encoding in place of a number": (b"\x0a\x02\x42\x00", "is not a number", "mini-block"),
    "odd offsets": (values(variable(33)), "32 or 64 bits wide, not 33", "mini-block > variable"),
    "a sum": (values(packed_struct(32, 16, row_bits=64)), "do not add up", "mini-block > packed_struct"),
    "indices": (layout(value_compression=variable(), dictionary=flat()), "as 'variable'", "mini-block"),
    "two widths": (
        b"\x1a\x04\x18\x40\x20\x20",  # bits per value and bits per offset
        "fixed and of variable width",
        "full-zip",
    ),
    "silence": (full_zip(Encoding(), bits_per_value=8), "does not say how", "full-zip"),
    "no fields": (zipped(variable_packed()), "has no fields", "full-zip > variable_packed_struct"),
    "a wide field": (
        zipped(variable_packed((flat(2**40), {"bits_per_value": 2**40}))),
        "impossibly wide",
        "full-zip > variable_packed_struct",
    ),
    "another width": (
        zipped(variable_packed((flat(32), {"bits_per_value": 64}))),
        "contradicts its width",
        "full-zip > variable_packed_struct",
    ),
    "endless lists": (
        zipped(
            variable_packed((fixed_size_list(fixed_size_list(flat(), 2**31), 2**31), {"bits_per_value": 8}))
        ),
        "impossibly wide",
        "full-zip > variable_packed_struct",
    ),
}


@pytest.mark.parametrize("name", CORRUPT)
def test_tells_what_contradicts_itself(name: str) -> None:
    description, match, encoding = CORRUPT[name]
    with pytest.raises(kernels.CorruptDataError, match=match) as caught:
        pages_of(description)
    what, column, page, path = caught.value.args
    assert (column, page, path) == (None, 0, encoding), what


UNSUPPORTED = {
    "unknown layer": (layout(layers=[9]), "layer of the unknown kind 9", "mini-block"),
    "deep repetition index": (layout(repetition_index_depth=2), "index of depth 2", "mini-block"),
    "compressed flat": (values(flat(data=LZ4)), "compression of its own", "mini-block > flat"),
    "compressed offsets": (
        values(variable(offsets=general(flat(32)))),
        "offsets of strings are not flat",
        "mini-block > variable",
    ),
    "compressed strings": (values(variable(values=LZ4)), "compression of its own", "mini-block > variable"),
    "compressed packing": (
        values(Encoding(inline_bitpacking=pb.InlineBitpacking(values=LZ4))),
        "compression of its own",
        "mini-block > inline_bitpacking",
    ),
    "packed packing": (
        layout(
            rep_compression=Encoding(out_of_line_bitpacking=pb.OutOfLineBitpacking(values=general(flat())))
        ),
        "out-of-line bit-packing are not flat",
        "mini-block > out_of_line_bitpacking",
    ),
    "scheme": (values(general(flat(), 0)), "scheme number 0 is not known", "mini-block > general"),
    "runs": (
        values(Encoding(rle=pb.Rle(values=flat(), run_lengths=flat(16)))),
        "not of 8 bits",
        "mini-block > rle",
    ),
    "runs of others": (
        values(Encoding(rle=pb.Rle(values=variable(), run_lengths=flat(8)))),
        "values of runs are not flat",
        "mini-block > rle",
    ),
    "byte streams": (
        values(Encoding(byte_stream_split=pb.ByteStreamSplit(values=variable()))),
        "byte streams are not flat",
        "mini-block > byte_stream_split",
    ),
    "symbols": (
        values(Encoding(fsst=pb.Fsst(symbol_table=b"", values=flat()))),
        "in symbols are not variable",
        "mini-block > fsst",
    ),
    "items": (
        values(fixed_size_list(variable())),
        "items of a fixed-size list are not flat",
        "mini-block > fixed_size_list",
    ),
    "odd fields": (values(packed_struct(33, 15)), "whole bytes", "mini-block > packed_struct"),
    "rows in chunks": (
        values(variable_packed()),
        "'variable_packed_struct' for the values of a mini-block page",
        "mini-block > variable_packed_struct",
    ),
    "lists as levels": (
        layout(def_compression=fixed_size_list(flat())),
        "'fixed_size_list' for a whole buffer",
        "mini-block > fixed_size_list",
    ),
    "deep": (values(general(general(flat(data=LZ4)))), "of its own", "mini-block > general > general > flat"),
    "fixed strings": (
        full_zip(variable(), bits_per_value=8),
        "'variable' for values of fixed width",
        "full-zip > variable",
    ),
    "variable numbers": (zipped(flat()), "'flat' for values of variable width", "full-zip > flat"),
    "compressed numbers": (zipped(general(flat())), "values are not variable", "full-zip > general"),
    "odd field": (
        zipped(variable_packed((flat(33), {"bits_per_value": 33}))),
        "whole bytes",
        "full-zip > variable_packed_struct",
    ),
    "a struct in a struct": (
        zipped(variable_packed((variable_packed((flat(), {"bits_per_value": 64})), {"bits_per_length": 32}))),
        "packed struct in a packed struct",
        "full-zip > variable_packed_struct",
    ),
    "null lists": (
        zipped(variable_packed((fixed_size_list(Encoding(constant=pb.Constant())), {"bits_per_value": 8}))),
        "nothing but nulls",
        "full-zip > variable_packed_struct",
    ),
    "blobs": (
        pb.PageLayout(blob_layout=pb.BlobLayout(inner_layout=full_zip(flat()))),
        "not in a mini-block layout",
        "blob",
    ),
    "constant values": (
        values(Encoding(constant=pb.Constant())),
        "'constant' for the values of a mini-block page",
        "mini-block > constant",
    ),
}


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_tells_what_it_does_not_know(name: str) -> None:
    description, match, encoding = UNSUPPORTED[name]
    with pytest.raises(kernels.UnsupportedError, match=match) as caught:
        pages_of(description)
    what, page, path, missing = caught.value.args
    assert (page, path, missing) == (0, encoding, None), what


FUTURE = bytes([0xF2, 0x03, 2, 8, 1])  # field 62
MISSING = {
    "no values": (values(Encoding()), "CompressiveEncoding of no kind"),
    "a kind of values of the future": (values(Encoding.FromString(FUTURE)), "CompressiveEncoding number 62"),
    "dictionary values": (values(Encoding(dictionary=pb.Dictionary())), "dictionary"),
    "sparse": (pb.PageLayout(sparse_layout=pb.SparseLayout()), "sparse_layout"),
    "nothing": (pb.PageLayout(), "PageLayout of no kind"),
    "a layout of the future": (FUTURE, "PageLayout number 62"),
}


@pytest.mark.parametrize("name", MISSING)
def test_names_encodings_without_a_decoder(name: str) -> None:
    description, encoding = MISSING[name]
    with pytest.raises(kernels.UnsupportedError, match="no decoder is configured") as caught:
        pages_of(description)
    assert caught.value.args[1] == 0
    assert caught.value.args[3] == encoding


@pytest.mark.parametrize("size", [903, 500, 8, 0])
def test_refuses_buffers_outside_the_file(size: int) -> None:
    """The metadata alone reach past the end: the file is shorter than its buffers."""
    page = file_v2_pb2.ColumnMetadata.Page(
        buffer_offsets=[0, 1 << 63], buffer_sizes=[4, (1 << 63) + size], length=ROWS
    )
    page.encoding.CopyFrom(direct_encoding("lance.encodings21.PageLayout", layout().SerializeToString()))
    with pytest.raises(kernels.CorruptDataError, match="outside the file"):
        pages_of(layout(), pages=[page])


def test_refuses_other_numbers_of_offsets_than_of_sizes() -> None:
    page = file_v2_pb2.ColumnMetadata.Page(buffer_offsets=[0, 8], buffer_sizes=[4], length=ROWS)
    page.encoding.CopyFrom(direct_encoding("lance.encodings21.PageLayout", layout().SerializeToString()))
    with pytest.raises(kernels.CorruptDataError, match="different numbers of buffer offsets"):
        pages_of(layout(), pages=[page])


def test_refuses_columns_that_are_encoded_otherwise() -> None:
    other = direct_encoding("lance.encodings.ColumnEncodings", b"\n\0")
    with pytest.raises(kernels.UnsupportedError, match="column encoding 'lance"):
        pages_of(layout(), encoding=other)
    with pytest.raises(kernels.UnsupportedError, match="indirectly stored"):
        pages_of(layout(), encoding=file_v2_pb2.Encoding(none=file_v2_pb2.Empty()))


def test_shows_no_control_characters_of_a_name() -> None:
    with pytest.raises(kernels.CorruptDataError, match=r"malformed type name 'a\?\[31m'"):
        pages_of(layout(), encoding=nameless("a\x1b[31m"))
    with pytest.raises(kernels.UnsupportedError, match=r"column encoding '\?\[31m'"):
        pages_of(layout(), encoding=nameless("/\x1b[31m"))


def nameless(url: str) -> file_v2_pb2.Encoding:
    described = b"\x0a" + bytes([len(url)]) + url.encode()
    return file_v2_pb2.Encoding(direct=file_v2_pb2.DirectEncoding(encoding=described))


Array = encodings_pb2.ArrayEncoding


def array_flat(bits: int = 64, **changes: Any) -> encodings_pb2.ArrayEncoding:
    return Array(flat=encodings_pb2.Flat(bits_per_value=bits, buffer=encodings_pb2.Buffer(), **changes))


def in_buffer(index: int, kind: int) -> encodings_pb2.ArrayEncoding:
    buffer = encodings_pb2.Buffer(buffer_index=index, buffer_type=kind)  # type: ignore[arg-type]
    return Array(flat=encodings_pb2.Flat(bits_per_value=64, buffer=buffer))


def in_lists(depth: int) -> encodings_pb2.ArrayEncoding:
    inner = array_flat()
    for _ in range(depth):
        inner = Array(fixed_size_list=encodings_pb2.FixedSizeList(dimension=1, items=inner))
    return inner


def array_pages(message: encodings_pb2.ArrayEncoding | bytes) -> list[kernels.Page]:
    value = message if isinstance(message, bytes) else message.SerializeToString()
    page = file_v2_pb2.ColumnMetadata.Page(
        buffer_offsets=[0],
        buffer_sizes=[900],
        length=ROWS,
        encoding=direct_encoding("lance.encodings.ArrayEncoding", value),
    )
    header = page.__class__(encoding=direct_encoding("lance.encodings.ArrayEncoding", b"\x2a\0"))
    encoding = direct_encoding("lance.encodings.ColumnEncoding", b"\n\0")
    metadata = file_v2_pb2.ColumnMetadata(encoding=encoding, pages=[header, page]).SerializeToString()
    source = source_of(metadata, 1000)
    return kernels.array_pages(source, 1000, len(metadata), "fixed", 8, False, False, lambda *_: None)


def test_arrays_that_are_sound() -> None:
    """The page without rows does not count."""
    assert [page.rows for page in array_pages(array_flat())] == [ROWS]
    assert [page.rows for page in array_pages(in_lists(20))] == [ROWS]


REFUSED_ARRAYS = {
    "scheme": (
        array_flat(compression=encodings_pb2.Compression(scheme="sn\x07ppy")),
        kernels.UnsupportedError,
        r"compression 'sn\?ppy' is not known",
        "flat",
    ),
    "buffer": (in_buffer(3, 0), kernels.CorruptDataError, "refers to buffer 3, there are 1", "flat"),
    "column buffer": (in_buffer(0, 1), kernels.CorruptDataError, "refers to buffer 0, there are 0", "flat"),
    "file buffer": (in_buffer(0, 2), kernels.UnsupportedError, "file buffer", "flat"),
    "nulls": (
        Array(nullable=encodings_pb2.Nullable()),
        kernels.UnsupportedError,
        "unknown way which values are null",
        "nullable",
    ),
    "indices": (
        Array(dictionary=encodings_pb2.Dictionary(indices=in_lists(1), items=array_flat())),
        kernels.UnsupportedError,
        "neither flat nor bit-packed",
        "dictionary",
    ),
    "lists": (
        Array(list=encodings_pb2.List()),
        kernels.UnsupportedError,
        "encoding 'list', no decoder",
        None,
    ),
    "nothing": (b"", kernels.UnsupportedError, "'ArrayEncoding of no kind', no decoder", None),
    "the future": (FUTURE, kernels.UnsupportedError, "'ArrayEncoding number 62', no decoder", None),
    "endless nesting": (
        in_lists(40),
        kernels.CorruptDataError,
        "nested too deep",
        " > ".join(["fixed_size_list"] * 33),
    ),
}


@pytest.mark.parametrize("name", REFUSED_ARRAYS)
def test_tells_what_is_wrong_with_arrays(name: str) -> None:
    message, error, match, encoding = REFUSED_ARRAYS[name]
    with pytest.raises(error, match=match) as caught:
        array_pages(message)
    page, path = caught.value.args[-3:-1] if error is kernels.UnsupportedError else caught.value.args[-2:]
    assert (page, path) == (1, encoding)


def test_descriptions_of_what_cannot_be_read() -> None:
    """They refuse nothing that can be parsed."""
    descriptions = {
        "mini-block(compression number 7(flat64))": values(general(flat(), 7)),
        "mini-block(unknown)": values(Encoding()),
        "mini-block(CompressiveEncoding number 62)": values(Encoding.FromString(FUTURE)),
        "mini-block(dictionary)": values(Encoding(dictionary=pb.Dictionary())),
        "full-zip(packed-struct[1](flat33))": zipped(variable_packed((flat(33), {"bits_per_value": 33}))),
        "sparse_layout": pb.PageLayout(sparse_layout=pb.SparseLayout()),
        "unknown": pb.PageLayout(),
    }
    for expected, message in descriptions.items():
        found = kernels.describe_page("lance.encodings21.PageLayout", message.SerializeToString())
        assert found == expected
    assert kernels.describe_page("lance.encodings.ArrayEncoding", b"\x2a\0") == "struct"
    assert kernels.describe_page("acme.Encoding", b"\xff") == "acme.Encoding"
    with pytest.raises(kernels.CorruptDataError):
        kernels.describe_page("lance.encodings21.PageLayout", b"\xff")


def test_every_cut_and_every_changed_byte_is_survived() -> None:
    page = file_v2_pb2.ColumnMetadata.Page(
        buffer_offsets=[0, 8],
        buffer_sizes=[4, 900],
        length=ROWS,
        encoding=direct_encoding("lance.encodings21.PageLayout", layout().SerializeToString()),
    )
    encoding = direct_encoding("lance.encodings.ColumnEncoding", b"\n\0")
    sound = file_v2_pb2.ColumnMetadata(encoding=encoding, pages=[page]).SerializeToString()
    refused = 0
    for at in range(len(sound)):
        changed = (sound[:at] + bytes([value]) + sound[at + 1 :] for value in (0, 1, 0x7F, 0x80, 0xFF))
        for metadata in (sound[:at], *changed):
            try:
                read(metadata)
            except (kernels.CorruptDataError, kernels.UnsupportedError):
                refused += 1
    assert refused > len(sound)
    assert len(read(sound)) == 1
