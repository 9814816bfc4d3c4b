"""The options of ``format("lance")`` for reading, writing and streams: parses and checks them."""

from __future__ import annotations

import dataclasses
import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any, get_args

from lance_engine.dataset import DatasetVersion
from lance_engine.encodings.profile import PROFILES
from lance_engine.encodings.settings import GENERAL_SCHEMES
from lance_engine.errors import DatasetNotFoundError, LanceError
from lance_engine.io.external_access import ALLOW_EXTERNAL, external_access, with_external_access
from lance_engine.io.resolve import open_store
from lance_engine.io.store import Store
from lance_engine.spelling import nearest
from lance_engine.table.branches import read_branch
from lance_engine.table.refs import branch_store
from lance_engine.table.snapshot import Snapshot
from lance_engine.table.versions import open_snapshot
from lance_engine.write.options import WriteOptions, ZoneMapForm

_LIMITS = WriteOptions()
# Bytes of data files per task: the same as Spark uses for Parquet.
PARTITION_BYTES = 128 << 20
COMPRESSIONS = (*GENERAL_SCHEMES, "fsst", "none")


class InvalidOptionError(LanceError, ValueError):
    """An unknown option, or one with a missing or invalid value."""


@dataclasses.dataclass(frozen=True)
class Options:
    """The given options; None if an option was not set."""

    path: str
    version: int | None = None
    tag: str | None = None
    as_of: datetime.datetime | None = None
    branch: str | None = None
    storage_options: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    allow_external: str | None = None
    # Reading
    columns: tuple[str, ...] | None = None
    row_id: bool = False
    filter: str | None = None
    pushed_filters: str | None = None
    limit: int | None = None
    packed: str | None = None
    part: str | None = None
    catalog_command: str | None = None
    namespace: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    partitions: int | None = None
    parallelism: int | None = None
    partition_bytes: int = PARTITION_BYTES
    batch_size: int | None = None
    # Writing
    data_storage_version: str | None = None
    max_rows_per_file: int = _LIMITS.max_rows_per_file
    max_bytes_per_file: int = _LIMITS.max_bytes_per_file
    profile: str = _LIMITS.profile
    compression: str | None = None
    zone_maps: bool = _LIMITS.zone_maps
    zone_rows: int = _LIMITS.zone_rows
    zone_index: str = _LIMITS.zone_index
    stable_row_ids: bool | None = None
    fixed_size_lists: Mapping[str, int] | None = None
    merge_schema: bool = False
    create: bool = False
    changed_version: int | None = None
    # Streams
    start_version: int | None = None
    versions_per_batch: int | None = None
    ignore_changes: bool = False
    stream_id: str | None = None
    checkpoint_location: str | None = None

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> Options:
        """Options as Spark passes them: names in any case, values as text; or InvalidOptionError.

        Underscores in names are optional, as is usual in Spark: ``mergeSchema`` is ``merge_schema``.
        """
        values: dict[str, Any] = {}
        for key, text in texts.items():
            name = _NAMES.get(key.lower().replace("_", ""))
            if name is None:
                near = nearest(key.lower(), _PARSERS)
                hint = f"did you mean '{near}'?" if near else f"known are: {', '.join(_PARSERS)}"
                raise InvalidOptionError(f"Lance has no option '{key}'; {hint}")
            try:
                values[name] = _PARSERS[name](text)
            except ValueError as error:
                shown = "the given value" if name == "storage_options" else repr(text)
                raise InvalidOptionError(f"Option '{key}' cannot be {shown}: {error}") from error
        if not values.get("path"):
            raise InvalidOptionError("No path: use .load(path), .save(path) or the option 'path'")
        chosen = [name for name in ("version", "tag", "as_of") if values.get(name) is not None]
        if len(chosen) > 1:
            raise InvalidOptionError(f"The options '{chosen[0]}' and '{chosen[1]}' cannot be combined")
        values["storage_options"] = with_external_access(
            values.get("storage_options"), values.get("allow_external")
        )
        return cls(**values)

    def open(self) -> DatasetVersion:
        """The version of the dataset selected by the options."""
        return DatasetVersion.open(
            self.path,
            self.version,
            tag=self.tag,
            as_of=self.as_of,
            branch=self.branch,
            storage_options=self.storage_options,
        )

    def at(self, dataset: DatasetVersion) -> Options:
        """The same options, fixed to this version of the dataset, regardless of later commits."""
        return dataclasses.replace(self, version=dataset.version, tag=None, as_of=None, branch=dataset.branch)

    def store(self) -> Store:
        """The location to write to: the dataset, or a branch of it (which must exist)."""
        store = open_store(self.path, self.storage_options)
        if self.branch is None:
            return store
        read_branch(store, self.branch)
        return branch_store(store, self.branch)

    def latest(self) -> Snapshot | None:
        """The version to write to, None if there is no dataset."""
        try:
            return open_snapshot(self.store(), storage_options=self.storage_options)
        except DatasetNotFoundError:
            return None


def _path(text: str) -> str:
    # Hadoop writes local paths with one slash; everything else is passed on unchanged.
    return (
        text.removeprefix("file:") if text.startswith("file:/") and not text.startswith("file://") else text
    )


def _positive(text: str) -> int:
    return _at_least(1, text)


def _whole(text: str) -> int:
    return _at_least(0, text)


def _at_least(least: int, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError("it must be a whole number") from None
    if number < least:
        raise ValueError(f"it must be at least {least}")
    return number


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


def _one_of(*known: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in known:
            raise ValueError(f"it must be one of {', '.join(known)}")
        return text.lower()

    return parse


def _columns(text: str) -> tuple[str, ...]:
    """A JSON list of names, or comma-separated names."""
    names = json.loads(text) if text.lstrip().startswith("[") else [name.strip() for name in text.split(",")]
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("it must be a list of columns, such as 'a,b' or '[\"a\", \"b\"]'")
    return tuple(names)


def _sizes(text: str) -> Mapping[str, int]:
    """Names with sizes: ``a=128, b=3``, or a JSON object."""
    if text.lstrip().startswith("{"):
        pairs = list(_object(text).items())
    else:
        pairs = [(name.strip(), size) for name, _, size in (item.rpartition("=") for item in text.split(","))]
    try:
        sizes = {name: int(size) for name, size in pairs}
    except (TypeError, ValueError):
        sizes = {}
    if not sizes or not all(name and size > 0 for name, size in sizes.items()):
        raise ValueError("it must give a size per column, such as 'vector=128'")
    return sizes


def _external(text: str) -> str:
    external_access({ALLOW_EXTERNAL: text})  # raises an error with the reason
    return text


def _object(text: str) -> Mapping[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise ValueError('it must be a JSON object, such as {"anon": true}')
    return value


_PARSERS: dict[str, Callable[[str], Any]] = {
    "path": _path,
    "version": _positive,
    "tag": str,
    "as_of": datetime.datetime.fromisoformat,
    "branch": str,
    "storage_options": _object,
    "allow_external": _external,
    "columns": _columns,
    "row_id": _flag,
    "filter": str,
    "pushed_filters": str,
    "limit": _whole,
    "packed": str,
    "part": str,
    "catalog_command": str,
    "namespace": _object,
    "partitions": _positive,
    "parallelism": _positive,
    "partition_bytes": _positive,
    "batch_size": _positive,
    "data_storage_version": str,
    "max_rows_per_file": _positive,
    "max_bytes_per_file": _positive,
    "profile": _one_of(*PROFILES),
    "compression": _one_of(*COMPRESSIONS),
    "zone_maps": _flag,
    "zone_rows": _positive,
    "zone_index": _one_of(*get_args(ZoneMapForm)),
    "stable_row_ids": _flag,
    "fixed_size_lists": _sizes,
    "merge_schema": _flag,
    "create": _flag,
    "changed_version": _positive,
    "start_version": _whole,
    "versions_per_batch": _positive,
    "ignore_changes": _flag,
    "stream_id": str,
    "checkpoint_location": str,
}
_NAMES = {name.replace("_", ""): name for name in _PARSERS}
