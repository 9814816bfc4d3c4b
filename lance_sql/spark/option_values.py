"""How the values of options are written as text: every function checks one and raises ValueError."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any

from lance_engine.io import ALLOW_EXTERNAL, access_of


def path(text: str) -> str:
    # Hadoop writes local paths with one slash; everything else is passed on unchanged.
    return (
        text.removeprefix("file:") if text.startswith("file:/") and not text.startswith("file://") else text
    )


def positive(text: str) -> int:
    return _at_least(1, text)


def whole(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("it must be a whole number") from None
    if number < least:
        raise ValueError(f"it must be at least {least}")
    return number


def flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


def one_of(*known: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(f"it must be one of {', '.join(known)}")
        return text.lower()

    return parse


def columns(text: str) -> tuple[str, ...]:
    """A JSON list of names, or comma-separated names."""
    names = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in text.split(",")]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("it must be a list of columns, such as 'a,b' or '[\"a\", \"b\"]'")
    return tuple(names)


def sizes(text: str) -> Mapping[str, int]:
    """Names with sizes: ``a=128, b=3``, or a JSON object."""
    if text.lstrip().startswith("{"):
        pairs = list(object(text).items())
    else:
        pairs = [(name.strip(), size) for name, _, size in (item.rpartition("=") for item in text.split(","))]
    try:
        sizes = {name: int(size) for name, size in pairs}
    except (TypeError, ValueError):
        sizes = {}
    if not sizes or not all(name and size > 0 for name, size in sizes.items()):
        raise ValueError("it must give a size per column, such as 'vector=128'")
    return sizes


def external(text: str) -> str:
    access_of({ALLOW_EXTERNAL: text})  # raises an error with the reason
    return text


def object(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError('it must be a JSON object, such as {"anon": true}')
    return value


def moment(text: str) -> datetime.datetime:
    """A time in ISO notation; local time if it names no zone."""
    return datetime.datetime.fromisoformat(text)


def storage_version(text: str) -> str | None:
    """A version of the file format; ``stable`` is the default, as in lance-spark."""
    if text.lower() in ("legacy", "0.1"):
        raise ValueError("files of version 0.1 can only be read")
    return None if text.lower() == "stable" else text
