"""The options of ``format("lance")`` for reading, writing and streams: parses and checks them."""

from __future__ import annotations

import dataclasses
import datetime
import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, NoReturn, get_args

from lance_engine.base import nearest_name
from lance_engine.dataset import DatasetVersion
from lance_engine.errors import DatasetNotFoundError, LanceError
from lance_engine.io import Store, open_store, with_external_access
from lance_engine.table import Snapshot, branch_store, open_snapshot, read_branch
from lance_engine.write import GENERAL_SCHEMES, PROFILES, WriteOptions, ZoneMapForm

import lance_sql.spark.option_values as values

_LIMITS = WriteOptions()
# Bytes of data files per task: the same as Spark uses for Parquet.
PARTITION_BYTES = 128 << 20
COMPRESSIONS = (*GENERAL_SCHEMES, "fsst", "none")
#: Before the names of options that only the planner sets, as in PythonSource.java.
OURS: Final = "planner."
#: The option with the names of the options that were given for this read or write, as in PythonSource.java.
GIVEN: Final = f"{OURS}given"
_VERSIONS: Final = ("version", "tag", "as_of")


class InvalidOptionError(LanceError, ValueError):
    """An unknown option, or one with a missing or invalid value."""


class Use(enum.Flag):
    """What options are given for."""

    READ = enum.auto()
    WRITE = enum.auto()
    STREAM_READ = enum.auto()
    STREAM_WRITE = enum.auto()


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
    search: Mapping[str, Any] | None = None
    catalog_command: str | None = None
    namespace: Mapping[str, Any] | None = dataclasses.field(default=None, repr=False)
    declared: Mapping[str, Any] | None = None
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
    keeps_schema: bool = False
    changed_version: int | None = None
    changed_columns: str | None = None
    replaced_rows: Mapping[str, Any] | None = None
    # Streams
    start_version: int | None = None
    versions_per_batch: int | None = None
    ignore_changes: bool = False
    stream_id: str | None = None
    checkpoint_location: str | None = None

    @classmethod
    def parse(cls, texts: Mapping[str, str], use: Use | None = None) -> Options:
        """Options as Spark passes them: names in any case, values as text; or InvalidOptionError.

        Underscores in names are optional, as is usual in Spark: ``mergeSchema`` is ``merge_schema``. With
        `use`, an option that would have no effect there is an error. Options of tables and catalogs are for
        all uses, so the planner in the JVM lists those `GIVEN` for this read or write.
        """
        given = texts.get(GIVEN)
        strict = None if given is None else {_plain(name) for name in given.split(",")}
        parsed: dict[str, Any] = {}
        for key, text in texts.items():
            if key == GIVEN:
                continue
            name = _name(key, text)
            if name is None:
                _refuse_unknown(key, use)
            option = _OPTIONS[name]
            if use is not None and (strict is None or _plain(key) in strict):
                _check_use(key, option, use)
            try:
                value = option.parse(text)
            except ValueError as error:
                shown = "the given value" if name == "storage_options" else repr(text)
                raise InvalidOptionError(f"Option '{key}' cannot be {shown}: {error}") from error
            if parsed.setdefault(name, value) != value:
                raise InvalidOptionError(f"The option '{name}' is given twice, as '{key}' too: leave one out")
        if not parsed.get("path"):
            raise InvalidOptionError("No path: use .load(path), .save(path) or the option 'path'")
        chosen = [name for name in _VERSIONS if parsed.get(name) is not None]
        if len(chosen) > 1:
            raise InvalidOptionError(f"The options '{chosen[0]}' and '{chosen[1]}' cannot be combined")
        if use is not None and use & _WRITES:
            _refuse_parts(parsed)
        parsed["storage_options"] = with_external_access(
            parsed.get("storage_options"), parsed.get("allow_external")
        )
        return cls(**parsed)

    @staticmethod
    def is_name(name: str) -> bool:
        """Whether this is an option of reads or writes, of ours or of lance-spark."""
        plain = _plain(name)
        return plain in (*_OF_LANCE_SPARK, _VERSION_AS_OF) or (
            plain in _NAMES and bool(_OPTIONS[_NAMES[plain]].uses)
        )

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


def _refuse_parts(parsed: Mapping[str, Any]) -> None:
    """InvalidOptionError for a write to a view of an old version or of some columns or rows."""
    for name in (*_VERSIONS, "columns", "filter", "row_id"):
        if parsed.get(name):
            raise InvalidOptionError(
                f"The option '{name}' is for reading: rows are written to the latest version of the whole "
                "table. Leave it out, or write to the table without it"
            )


def _refuse_unknown(name: str, use: Use | None) -> NoReturn:
    plain = _plain(name)
    if plain in _OF_LANCE_SPARK:
        raise InvalidOptionError(
            f"The option '{name}' of lance-spark is not supported: {_OF_LANCE_SPARK[plain]}"
        )
    if plain.startswith("storage."):
        raise InvalidOptionError(
            f"Lance has no option '{name}'; give the options of the object store as a JSON object in "
            "'storage_options'"
        )
    known = [other for other, option in _OPTIONS.items() if (option.uses & use if use else option.uses)]
    near = nearest_name(name.lower(), known)
    hint = f"did you mean '{near}'?" if near else f"known are: {', '.join(known)}"
    raise InvalidOptionError(f"Lance has no option '{name}'; {hint}")


def _check_use(name: str, option: _Option, use: Use) -> None:
    """InvalidOptionError for an option that would have no effect."""
    if option.uses and not option.uses & use:
        uses = " and ".join(_USES[other] for other in Use if other & option.uses)
        raise InvalidOptionError(
            f"The option '{name}' is for {uses}, not for {_USES[use]}: it would have no effect. Leave it out"
        )


def _name(key: str, text: str) -> str | None:
    """Our name of an option; None if it is unknown."""
    plain = _plain(key)
    if plain == _VERSION_AS_OF:
        return "version" if text.isdecimal() else "tag"
    return _NAMES.get(plain)


def _plain(name: str) -> str:
    return name.lower().replace("_", "")


class _Option(NamedTuple):
    """How the value of an option is read, and what it is for; for nothing if only our planner sets it."""

    parse: Callable[[str], Any]
    uses: Use


_READS: Final = Use.READ | Use.STREAM_READ
_WRITES: Final = Use.WRITE | Use.STREAM_WRITE
_ALL: Final = _READS | _WRITES
_INTERNAL: Final = Use(0)
_USES: Final[Mapping[Use, str]] = {
    Use.READ: "reading",
    Use.WRITE: "writing",
    Use.STREAM_READ: "reading streams",
    Use.STREAM_WRITE: "writing streams",
}

_OPTIONS: Final[Mapping[str, _Option]] = {
    "path": _Option(values.path, _ALL),
    "version": _Option(values.positive, Use.READ),
    "tag": _Option(str, Use.READ),
    "as_of": _Option(values.moment, Use.READ),
    "branch": _Option(str, _ALL),
    "storage_options": _Option(values.object, _ALL),
    "allow_external": _Option(values.external, _ALL),
    "columns": _Option(values.columns, _READS),
    "row_id": _Option(values.flag, _READS),
    "filter": _Option(str, _READS),
    "partitions": _Option(values.positive, _READS),
    "partition_bytes": _Option(values.positive, _READS),
    "batch_size": _Option(values.positive, _READS),
    "data_storage_version": _Option(values.storage_version, _WRITES),
    "max_rows_per_file": _Option(values.positive, _WRITES),
    "max_bytes_per_file": _Option(values.positive, _WRITES),
    "profile": _Option(values.one_of(*PROFILES), _WRITES),
    "compression": _Option(values.one_of(*COMPRESSIONS), _WRITES),
    "zone_maps": _Option(values.flag, _WRITES),
    "zone_rows": _Option(values.positive, _WRITES),
    "zone_index": _Option(values.one_of(*get_args(ZoneMapForm)), _WRITES),
    "stable_row_ids": _Option(values.flag, _WRITES),
    "fixed_size_lists": _Option(values.sizes, _WRITES),
    "merge_schema": _Option(values.flag, _WRITES),
    "create": _Option(values.flag, _WRITES),
    "start_version": _Option(values.whole, Use.STREAM_READ),
    "versions_per_batch": _Option(values.positive, Use.STREAM_READ),
    "ignore_changes": _Option(values.flag, Use.STREAM_READ),
    "stream_id": _Option(str, Use.STREAM_WRITE),
    "checkpoint_location": _Option(str, Use.STREAM_WRITE),
    "pushed_filters": _Option(str, _INTERNAL),
    "limit": _Option(values.whole, _INTERNAL),
    "packed": _Option(str, _INTERNAL),
    "part": _Option(str, _INTERNAL),
    "search": _Option(values.object, _INTERNAL),
    "catalog_command": _Option(str, _INTERNAL),
    "namespace": _Option(values.object, _INTERNAL),
    "declared": _Option(values.object, _INTERNAL),
    "parallelism": _Option(values.positive, _INTERNAL),
    "keeps_schema": _Option(values.flag, _INTERNAL),
    "changed_version": _Option(values.positive, _INTERNAL),
    "changed_columns": _Option(values.one_of("add", "update"), _INTERNAL),
    "replaced_rows": _Option(values.object, _INTERNAL),
}
#: Other spellings, of lance-spark and Delta.
_ALIASES: Final[Mapping[str, str]] = {
    "maxrowperfile": "max_rows_per_file",
    "enablestablerowids": "stable_row_ids",
    "fileformatversion": "data_storage_version",
    "streamingqueryid": "stream_id",
    "timestampasof": "as_of",
}
#: Spark's name for a version by number or tag.
_VERSION_AS_OF: Final = "versionasof"
_NAMES: Final[Mapping[str, str]] = {
    **{_plain(name if option.uses else OURS + name): name for name, option in _OPTIONS.items()},
    **_ALIASES,
}
#: Options of lance-spark without a counterpart, and what to do instead.
_OF_LANCE_SPARK: Final[Mapping[str, str]] = {
    "writemode": 'use df.write.mode("append") or mode("overwrite")',
    "maxrowspergroup": "files have no row groups. Leave it out",
    "usequeuedwritebuffer": "rows are encoded while Spark sends them. Leave it out",
    "queuedepth": "rows are encoded while Spark sends them. Leave it out",
    "blocksize": "reads are planned by the bytes that a task needs. Leave it out",
    "indexcachesize": "each task opens the indices that it needs. Leave it out",
    "metadatacachesize": "workers keep the metadata of the last versions. Leave it out",
    "pushdownfilters": "filters are pushed down wherever the result stays the same. Leave it out",
    "topnpushdown": "Spark sorts. Leave it out",
    "singlelevelns": "tables may be next to namespaces, as in lake.t. Leave it out",
    "parent": "name the folder of that namespace as the directory of the catalog",
    "parentdelimiter": "name the folder of that namespace as the directory of the catalog",
    "lance.streaming.dedupe.lookback.versions": "all versions are searched for a batch. Leave it out",
}
