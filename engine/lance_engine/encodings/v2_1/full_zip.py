"""Full-zip layout: levels and value of each entry side by side, for large values (format 2.1, full-zip)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from lance_engine import kernels
from lance_engine.encodings import compressive
from lance_engine.encodings.v2_1 import fixed_size_list, general, variable, variable_packed_struct
from lance_engine.encodings.v2_1.layers import layers_of
from lance_engine.errors import CorruptFileError, UnsupportedFeatureError


def page_maker(message: Any) -> Callable[..., kernels.Page]:
    common = {
        "layers": layers_of(message),
        "bits_rep": message.bits_rep,
        "bits_def": message.bits_def,
    }
    if message.WhichOneof("details") == "bits_per_offset":
        if message.value_compression.WhichOneof("compression") == "variable_packed_struct":
            packed = message.value_compression.variable_packed_struct
            return partial(
                kernels.full_zip_packed_page,
                **common,
                bits_per_offset=message.bits_per_offset,
                fields=variable_packed_struct.packed_fields(packed, _variable_codec),
            )
        codec, symbol_table = _variable_codec(message.value_compression)
        return partial(
            kernels.full_zip_variable_page,
            **common,
            bits_per_offset=message.bits_per_offset,
            codec=codec,
            symbol_table=symbol_table,
        )
    layers = _fixed_layers(message.value_compression)
    return partial(
        kernels.full_zip_fixed_page, **common, bits_per_value=message.bits_per_value, **layers._asdict()
    )


def describe(message: Any) -> str:
    return f"full-zip({compressive.describe(message.value_compression)})"


def _fixed_layers(encoding: Any) -> fixed_size_list.Layers:
    kind = encoding.WhichOneof("compression")
    if kind == "flat":
        return fixed_size_list.Layers([], [], encoding.flat.bits_per_value)
    if kind == "fixed_size_list":
        return fixed_size_list.flatten(encoding.fixed_size_list)
    raise UnsupportedFeatureError(f"A full-zip page of fixed-width '{kind}' values cannot be read")


def _variable_codec(encoding: Any) -> tuple[str, bytes]:
    kind = encoding.WhichOneof("compression")
    if kind == "variable":
        variable.offset_bits(encoding.variable)
        return "plain", b""
    if kind == "fsst" and encoding.fsst.values.WhichOneof("compression") == "variable":
        return "fsst", encoding.fsst.symbol_table
    if kind == "general" and encoding.general.values.WhichOneof("compression") == "variable":
        return general.scheme(encoding.general), b""
    if kind is None:
        raise CorruptFileError("A full-zip page does not say how its values are encoded")
    raise UnsupportedFeatureError(f"A full-zip page of variable-width '{kind}' values cannot be read")
