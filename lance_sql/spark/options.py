"""The options of ``format("lance")``, for reading and writing: text in, checked values out."""

from __future__ import annotations

import dataclasses
import difflib
import json
from collections.abc import Callable, Mapping
from typing import Any

from lance_engine.write.options import WriteOptions

_LIMITS = WriteOptions()


class InvalidOptionError(ValueError):
    """An option that does not exist, lacks its value or has a value of the wrong form."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What a user asked for; None where nothing was said."""

    path: str
    version: int | None = None
    columns: tuple[str, ...] | None = None
    filter: str | None = None
    partitions: int | None = None
    batch_size: int | None = None
    data_storage_version: str | None = None
    max_rows_per_file: int = _LIMITS.max_rows_per_file
    max_bytes_per_file: int = _LIMITS.max_bytes_per_file
    storage_options: Mapping[str, Any] | None = None

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Options:
        """Options as Spark hands them over: names in any case, values text; or InvalidOptionError."""
        values: dict[str, Any] = {}
        for key, text in texts.items():
            name = key.lower()
            parse = _PARSERS.get(name)
            if parse is None:
                near = difflib.get_close_matches(name, _PARSERS, n=1)
                hint = f"did you mean '{near[0]}'?" if near else f"known are: {', '.join(_PARSERS)}"
                raise InvalidOptionError(f"Lance has no option '{key}'; {hint}")
            try:
                values[name] = parse(text)
            except ValueError as error:
                raise InvalidOptionError(f"Option '{key}' cannot be {text!r}: {error}") from error
        if not values.get("path"):
            raise InvalidOptionError("No path: use .load(path), .save(path) or the option 'path'")
        return cls(**values)


def _path(text: str) -> str:
    # Hadoop spells local paths with one slash; everything else is passed on as it is.
    return (
        text.removeprefix("file:") if text.startswith("file:/") and not text.startswith("file://") else text
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("it must be at least 1")
    return number


def _columns(text: str) -> tuple[str, ...]:
    """A JSON list of names, or names separated by commas."""
    names = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in text.split(",")]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("it must name columns, such as 'a,b' or '[\"a\", \"b\"]'")
    return tuple(names)


def _object(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError('it must be a JSON object, such as {"anon": true}')
    return value


_PARSERS: dict[str, Callable[[str], Any]] = {
    "path": _path,
    "version": _positive,
    "columns": _columns,
    "filter": str,
    "partitions": _positive,
    "batch_size": _positive,
    "data_storage_version": str,
    "max_rows_per_file": _positive,
    "max_bytes_per_file": _positive,
    "storage_options": _object,
}
