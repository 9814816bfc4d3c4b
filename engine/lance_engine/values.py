"""The interface of Arrow values, and of schemas as the format stores them."""

from typing import TYPE_CHECKING

from lance_engine.lazy import lazy_names

if TYPE_CHECKING:
    from lance_engine.arrow_values import array, of_numpy, scalar, to_numpy
    from lance_engine.distinct import distinct as distinct_numbers
    from lance_engine.logical_types import (
        EXTENSION_METADATA,
        EXTENSION_NAME,
        OPAQUE_EXTENSION,
        plain_field,
        text_metadata,
        viewed,
        with_extensions,
        with_types,
        without_extensions,
    )
    from lance_engine.python_values import python_rows as rows_as_python
    from lance_engine.python_values import python_values as values_as_python
    from lance_engine.schema_tree import BLOB_ENCODING, Schema
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "arrow_values": "array of_numpy scalar to_numpy",
            "distinct": "distinct=distinct_numbers",
            "logical_types": (
                "EXTENSION_METADATA EXTENSION_NAME OPAQUE_EXTENSION plain_field "
                "text_metadata viewed with_extensions with_types without_extensions"
            ),
            "python_values": "python_rows=rows_as_python python_values=values_as_python",
            "schema_tree": "BLOB_ENCODING Schema",
        },
    )
