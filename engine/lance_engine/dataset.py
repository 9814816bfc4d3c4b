"""The facade of the engine: one version of a dataset, and its operations.

Each operation is imported when it is called: a command that only looks at a dataset then starts without what
scans, writes and maintains one. The file is long, since it is the public interface: all signatures, and what
they mean.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Self

import pyarrow as pa

from lance_engine.blob_type import with_blob_types
from lance_engine.io.external_access import AllowExternal, with_external_access
from lance_engine.logical_types import with_extensions
from lance_engine.operations.fragment_size import DELETED_SHARE, TARGET_BYTES, TARGET_ROWS
from lance_engine.table.selection import select_snapshot
from lance_engine.table.snapshot import Snapshot

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow.compute as pc

    from lance_engine.expr.tree import Node
    from lance_engine.inspection.inspector import Inspector
    from lance_engine.metrics import ScanMetrics
    from lance_engine.operations.add_columns import NewColumns
    from lance_engine.operations.branches import Branches
    from lance_engine.operations.cleanup import CleanupReport
    from lance_engine.operations.merge import MergeBuilder
    from lance_engine.operations.tags import Tags
    from lance_engine.operations.values import Compiler, Value
    from lance_engine.progress import ProgressOption
    from lance_engine.scan.extremes import Extremes
    from lance_engine.scan.fragment import FragmentReader
    from lance_engine.scan.plan import FilterPlan
    from lance_engine.scan.scanner import Scanner
    from lance_engine.scan.splits import ScanSplit
    from lance_engine.schema_tree import Field
    from lance_engine.search.text.query import TextQuery

__all__ = ["DatasetVersion"]


class DatasetVersion:
    """One version of a dataset. Immutable; threads may share it, and sharing keeps decoded metadata warm.

    Operations that change the dataset leave this object as it is: they return the dataset at its new version.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._schema: pa.Schema | None = None
        self._readers: dict[int, FragmentReader] = {}

    @classmethod
    def open(
        cls,
        uri: str,
        version: int | None = None,
        *,
        tag: str | None = None,
        as_of: datetime.datetime | None = None,
        branch: str | None = None,
        storage_options: Mapping[str, Any] | None = None,
        allow_external: AllowExternal | None = None,
    ) -> Self:
        """Open the dataset at `uri`: its latest version, or the one that one of the other arguments names.

        `tag` names a tagged version, `as_of` the one that was the latest at that time (a naive time is local
        time). `version` and `as_of` are those of `branch`, by default of the main history.
        DatasetNotFoundError if there is no dataset, VersionNotFoundError if there is no such version.
        `allow_external` says which places outside of the dataset it may read from: ``"none"``,
        ``"same-store"`` (the default: base paths on the same disk, or in the same bucket), ``"all"``, or a
        list of the places allowed; as a dictionary with storage options for each.
        """
        options = with_external_access(storage_options, allow_external)
        return cls(select_snapshot(uri, version, tag, as_of, options, branch))

    @property
    def uri(self) -> str:
        return self.snapshot.uri

    @property
    def version(self) -> int:
        return self.snapshot.version

    @property
    def branch(self) -> str | None:
        """The branch that this is a version of, None for the main history."""
        return self.snapshot.manifest.branch

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the data columns.

        Columns have the extension types that scans return: those that pyarrow or another package has
        registered, such as UUID, JSON and tensors. Blobs of the second kind (file version 2.2) are shown as
        `lance.blob.v2`; scans return their bytes, as `scan().schema` says.
        """
        if self._schema is None:
            fields = self.snapshot.schema.fields
            self._schema = with_blob_types(with_extensions(self.storage_schema), fields)
        return self._schema

    @property
    def storage_schema(self) -> pa.Schema:
        """What scans return, with storage types instead of extension types, whose names are metadata."""
        return self.snapshot.schema.to_arrow()

    @property
    def inspect(self) -> Inspector:
        """What this version consists of, as Arrow tables: ``inspect.fragments()`` and so on."""
        from lance_engine.inspection.inspector import Inspector

        return Inspector(self.snapshot)

    def verify(self, *, values: bool = False) -> pa.Table:
        """The problems of this version, one per row: missing or damaged files, contradictions; none if sound.

        Reads metadata; `values` also decodes every value.
        """
        return self.inspect.verify(values=values)

    def health(self) -> pa.Table:
        """What slows this version down or wastes space: one row per measure, with a command to fix it."""
        return self.inspect.health()

    def count_rows(self, filter: str | pc.Expression | Node | None = None) -> int:
        """How many rows pass `filter`; without one, known from metadata."""
        if filter is None:
            return self.snapshot.num_rows
        return self.scan(columns=[], filter=filter).count()

    def scan(
        self,
        columns: Sequence[str | Field] | None = None,
        filter: str | pc.Expression | Node | FilterPlan | None = None,
        *,
        limit: int | None = None,
        offset: int | None = None,
        batch_size: int | None = None,
        batch_bytes: int | None = None,
        splits: Sequence[ScanSplit] | None = None,
        zone_maps: bool = True,
        indices: bool = True,
        dictionaries: Collection[str] = (),
        read_ahead: int | None = None,
    ) -> Scanner:
        """Describe a scan; nothing is read before a method of the result asks for rows.

        `columns` are names in the order wanted, ``_rowid`` and ``_rowaddr`` included; None means all data
        columns, and an empty list batches that only have a row count. A top-level field stands for itself
        with some of its children left out. `filter` is SQL text, a pyarrow
        expression or a filter tree (or its plan), with the semantics of SQL. `batch_size` bounds the rows of
        a batch, `batch_bytes` its bytes, unless a single row exceeds them.
        `splits` restricts the scan to some ranges of physical rows, as `splits()` makes them. Rows
        that the filter cannot match, by what the files' zone maps and the table's indices say, are not read,
        unless `zone_maps` or `indices` is False. String
        columns named in `dictionaries` come as dictionary arrays, whose dictionaries differ between batches
        and may repeat values; this is cheap for those that `dictionary_columns()` names. At most about
        `read_ahead` bytes of batches are decoded before they are requested, by default a quarter of the limit
        of memory (see `lance_engine.cache`). Of files that are not local, it bounds what is fetched ahead and
        decoded together, by default half of the limit.
        """
        from lance_engine.scan.scanner import Scanner

        return Scanner(
            self.snapshot,
            self._reader,
            columns=columns,
            filter=filter,
            limit=limit,
            offset=offset,
            batch_size=batch_size,
            batch_bytes=batch_bytes,
            splits=splits,
            zone_maps=zone_maps,
            indices=indices,
            dictionaries=dictionaries,
            read_ahead=read_ahead,
        )

    def take(
        self,
        row_ids: npt.ArrayLike,
        columns: Sequence[str] | None = None,
        *,
        missing: Literal["error", "skip"] = "error",
        metrics: ScanMetrics | None = None,
    ) -> pa.Table:
        """The rows with these **row ids** (the column ``_rowid``), in this order, repeated if requested.

        Row ids are not positions: see `take_positions`. An id that does not exist or whose row was deleted
        is a RowNotFoundError that lists such ids, or left out with ``missing="skip"``.
        Requests, bytes and times are added to `metrics`, if given. Threads may take at the same time.
        """
        from lance_engine.scan.take import take

        return take(self.snapshot, self._reader, row_ids, columns, missing=missing, metrics=metrics)

    def take_positions(
        self,
        positions: npt.ArrayLike,
        columns: Sequence[str] | None = None,
        *,
        metrics: ScanMetrics | None = None,
    ) -> pa.Table:
        """The rows at these positions, in this order, repeated if requested.

        Position 0 is the first row that a scan without a filter returns; deleted rows do not count, so that a
        position means another row after rows before it were deleted. A position that is not below the number
        of rows is a PositionOutOfRangeError, which is an IndexError.
        """
        from lance_engine.scan.take import take_positions

        return take_positions(self.snapshot, self._reader, positions, columns, metrics=metrics)

    def nearest(
        self,
        column: str,
        query: Any,
        k: int = 10,
        metric: str | None = None,
        *,
        filter: str | pc.Expression | Node | None = None,
        columns: Sequence[str] | None = None,
        lower: float | None = None,
        upper: float | None = None,
        with_row_id: bool = False,
        use_index: bool = True,
        fast_search: bool = False,
        nprobes: int | None = None,
        minimum_nprobes: int | None = None,
        maximum_nprobes: int | None = None,
        refine_factor: int | None = None,
        ef: int | None = None,
    ) -> pa.Table:
        """The `k` rows whose vectors in `column` are nearest to `query`, nearest first, with their distances.

        `query` is a vector as a list, a numpy or an Arrow array, or several as rows: the answer then begins
        with the column ``query_index``, and has up to `k` rows for each. `metric` is ``l2`` (squared),
        ``cosine``, ``dot`` (1 minus the inner product), or ``hamming`` for bytes; by default that of the
        index, else ``hamming`` for uint8 and ``l2`` for others. Only rows that pass `filter` (see `scan`),
        and whose ``lower <= _distance < upper``, are looked at. `columns` are those of the answer, all by
        default; ``_distance`` follows them unless it is among them, then ``_rowid`` with `with_row_id`.
        Rows at the same distance come in the order of their row ids; those whose vector is null, or has no
        distance from the query, are left out.

        In a column of lists of vectors, the distance of a row is the sum over the vectors of the query of
        the distance to the nearest vector in the list.

        A vector index on the column makes this faster and approximate, unless `use_index` is False.
        `nprobes` is the number of its partitions that are searched, by default as many as are near, from
        `minimum_nprobes` up to `maximum_nprobes`; more are searched while fewer than `k` rows are found.
        With `refine_factor`, that many times `k` rows are found, and put in order by their exact
        distances. `ef` is the number of candidates that the search of a graph keeps. Rows that the index
        does not cover are searched exactly, unless `fast_search` leaves them out.
        """
        from lance_engine.search.exact import Bounds
        from lance_engine.search.nearest import nearest
        from lance_engine.search.options import AskedRows, SearchOptions

        return nearest(
            self.snapshot,
            self._reader,
            column,
            query,
            k,
            metric,
            AskedRows(filter, columns, with_row_id),
            Bounds(lower, upper),
            SearchOptions(
                use_index, fast_search, nprobes, minimum_nprobes, maximum_nprobes, refine_factor, ef
            ),
        )

    def search(
        self,
        query: str | TextQuery,
        column: str | Sequence[str] | None = None,
        k: int | None = 10,
        *,
        filter: str | pc.Expression | Node | None = None,
        columns: Sequence[str] | None = None,
        with_row_id: bool = False,
        use_index: bool = True,
        fast_search: bool = False,
        analysis: Mapping[str, Any] | None = None,
    ) -> pa.Table:
        """The `k` rows whose texts match `query` best, best first, with their BM25 scores.

        All are found if `k` is None. `query` is a text, of which rows have at least one word, or a query of
        `lance_sql.full_text`. `column` is the column that is searched, a string column or one of lists of
        strings, or several: then the best score among them counts. By default these are all columns with
        an inverted index, and if none has one the texts among `columns`. Only rows that pass
        `filter` (see `scan`) are looked at. `columns` are those of the answer, all by default; ``_score``
        follows them unless it is among them, then ``_rowid`` with `with_row_id`. Rows with equal scores come
        in the order of their row ids.

        An inverted index on the column makes this fast, unless `use_index` is False; rows that it does not
        cover are read and scored as well, unless `fast_search` leaves them out. Texts are cut into words as
        the index does, or without one as `analysis` says, with the options of `create_index`; by default
        words are taken as they are written.
        """
        from lance_engine.search.options import AskedRows, SearchOptions
        from lance_engine.search.text.search import search

        return search(
            self.snapshot,
            self._reader,
            query,
            column,
            k,
            AskedRows(filter, columns, with_row_id),
            SearchOptions(use_index, fast_search),
            analysis,
        )

    def hybrid(
        self,
        vector_column: str,
        vector: Any,
        query: str | TextQuery,
        column: str | Sequence[str] | None = None,
        k: int = 10,
        *,
        alpha: float | None = None,
        oversample: int = 4,
        metric: str | None = None,
        filter: str | pc.Expression | Node | None = None,
        columns: Sequence[str] | None = None,
        with_row_id: bool = False,
        use_index: bool = True,
        fast_search: bool = False,
        nprobes: int | None = None,
        refine_factor: int | None = None,
    ) -> pa.Table:
        """The `k` best rows by a vector and by words at once: `nearest` and `search`, joined.

        Both find `oversample` times `k` rows. By default their ranks decide (reciprocal rank fusion); with
        `alpha`, distances and scores are scaled to 0 up to 1 and added, those of vectors times `alpha`,
        those of texts times ``1 - alpha``. The answer has the columns ``_distance`` and ``_score``, null
        where a search did not find a row, and ``_hybrid_score``, largest first. The other options are
        those of `nearest` and `search`.
        """
        from lance_engine.search.hybrid import hybrid
        from lance_engine.search.options import AskedRows, SearchOptions

        return hybrid(
            self.snapshot,
            self._reader,
            vector_column,
            vector,
            query,
            column,
            k,
            alpha,
            oversample,
            metric,
            AskedRows(filter, columns, with_row_id),
            SearchOptions(use_index, fast_search, nprobes=nprobes, refine_factor=refine_factor),
        )

    def min_max(self, column: str) -> Extremes:
        """The min and max of a column, null if all values are; NaN is the largest number.

        Known from zone maps where these are exact: rows are read only of zones with deleted rows, long
        strings or no zone map, and only if they can matter. UnsupportedTypeError if the values have no order.
        """
        from lance_engine.scan.extremes import min_max

        return min_max(self.snapshot, self._reader, column)

    def dictionary_columns(self) -> list[str]:
        """String columns that are stored as dictionaries, if the first fragment shows it."""
        if not self.snapshot.fragments:
            return []
        reader = self._reader(self.snapshot.fragments[0].id)
        return [field.name for field in self.snapshot.schema.fields if reader.is_dictionary_coded(field.name)]

    def splits(self, count: int) -> list[ScanSplit]:
        """Split the dataset into up to about `count` ranges of rows of similar size."""
        from lance_engine.scan.splits import split_rows

        return split_rows(self.snapshot.fragments, count)

    # Operations. Each commits one new version, and returns the dataset at that version; this object stays the
    # version it is. Long ones report `progress` events (see `lance_engine.progress`); an exception that this
    # raises cancels them. When another writer changed the same rows since then, the operation is redone on
    # the latest version; IncompatibleChangeError means that the change does not apply there.

    def delete(
        self,
        where: str | pc.Expression | Node | None = None,
        *,
        row_ids: npt.ArrayLike | None = None,
        progress: ProgressOption = None,
    ) -> Self:
        """Delete the rows that pass a filter, or those with these row ids (RowNotFoundError if unknown)."""
        from lance_engine.operations.delete import delete

        return self._at(delete(self.snapshot, where, row_ids=row_ids, progress=progress))

    def truncate(self) -> Self:
        """Delete all rows."""
        from lance_engine.operations.delete import truncate

        return self._at(truncate(self.snapshot))

    def update(
        self,
        values: Mapping[str, Value],
        where: str | pc.Expression | Node | None = None,
        *,
        progress: ProgressOption = None,
    ) -> Self:
        """Give columns new values in the rows that pass `where`, in all rows without it.

        `values` maps a column to SQL text over the columns of the row as it was, or to a function from the
        batch of these rows to an array.
        """
        from lance_engine.operations.update import update

        return self._at(update(self.snapshot, values, where, compiler=self._compiler, progress=progress))

    def merge(self, source: Any, on: str | Sequence[str]) -> MergeBuilder[Self]:
        """Update, insert and delete by key: ``merge(source, on="id").when_matched_update_all().execute()``.

        `source` is anything that `write` takes; see the methods of the result for what can be done with it.
        """
        from lance_engine.operations.merge import MergeBuilder

        return MergeBuilder(self.snapshot, source, on, self._at, self._compiler)

    def replace_columns(self, values: Mapping[str, Value], *, progress: ProgressOption = None) -> Self:
        """Give whole columns new values without moving a row: only these columns are written.

        `values` are those of `update`; row ids and addresses stay. Rows that others append meanwhile keep
        their values.
        """
        from lance_engine.operations.replace_columns import replace_columns

        return self._at(replace_columns(self.snapshot, values, compiler=self._compiler, progress=progress))

    def add_columns(
        self,
        columns: NewColumns,
        *,
        read: Sequence[str] | None = None,
        progress: ProgressOption = None,
    ) -> Self:
        """Add nullable columns; those that exist are not rewritten.

        `columns` maps a new name to SQL text over the other columns, to a function from a batch to an array,
        or to an Arrow type for a column of nulls; or is an Arrow field or schema of columns of nulls; or a
        function from a batch to the batch of all new columns. `read` names the columns that functions get,
        all by default.
        """
        from lance_engine.operations.add_columns import add_columns

        return self._at(
            add_columns(self.snapshot, columns, read=read, compiler=self._compiler, progress=progress)
        )

    def drop_columns(self, columns: Sequence[str]) -> Self:
        """Remove columns; ``a.b`` is field ``b`` of the struct ``a``. No data is rewritten."""
        from lance_engine.operations.alter_columns import drop_columns

        return self._at(drop_columns(self.snapshot, columns))

    def rename_column(self, column: str, name: str) -> Self:
        """Give a column, or with ``a.b`` a field of a struct, another name."""
        from lance_engine.operations.alter_columns import alter_column

        return self._at(alter_column(self.snapshot, column, name=name))

    def alter_column(
        self,
        column: str,
        *,
        type: pa.DataType | None = None,
        nullable: bool | None = None,
        progress: ProgressOption = None,
    ) -> Self:
        """Cast a column to another type, which rewrites this column, or allow or forbid nulls in it.

        InvalidFilterError if a value does not fit, SchemaMismatchError if there are nulls.
        """
        from lance_engine.operations.alter_columns import alter_column

        return self._at(alter_column(self.snapshot, column, type=type, nullable=nullable, progress=progress))

    def restore(self, version: int | None = None) -> Self:
        """Make an earlier version, by default the one this object shows, the content of a new version."""
        from lance_engine.operations.restore import restore

        return self._at(restore(self.snapshot, self.version if version is None else version))

    def compact(
        self,
        *,
        target_rows: int = TARGET_ROWS,
        target_bytes: int = TARGET_BYTES,
        deleted_share: float = DELETED_SHARE,
        progress: ProgressOption = None,
    ) -> Self:
        """Join neighbouring fragments of fewer than `target_rows` rows and `target_bytes`.

        Fragments with more than `deleted_share` of deleted rows are rewritten without these. Stable row ids
        stay; row ids that are addresses change. The result has the same version if there was nothing to do.
        """
        from lance_engine.operations.compact import compact

        return self._at(
            compact(
                self.snapshot,
                target_rows=target_rows,
                target_bytes=target_bytes,
                deleted_share=deleted_share,
                progress=progress,
            )
        )

    def cleanup(
        self,
        older_than: datetime.timedelta,
        *,
        dry_run: bool = False,
        delete_unverified: bool = False,
        progress: ProgressOption = None,
    ) -> CleanupReport:
        """Remove versions committed longer ago than `older_than`, and the files that only they need.

        The latest version and tagged ones stay. A dry run only reports. Files that no version names go when
        they are seven days old, with `delete_unverified` at once; no writer may be active then.
        """
        from lance_engine.operations.cleanup import cleanup

        return cleanup(
            self.snapshot,
            older_than,
            dry_run=dry_run,
            delete_unverified=delete_unverified,
            progress=progress,
        )

    def create_index(
        self,
        column: str,
        kind: str = "btree",
        *,
        name: str | None = None,
        replace: bool = False,
        progress: ProgressOption = None,
        **options: Any,
    ) -> Self:
        """Build an index on a column, or with ``a.b`` on a field of a struct.

        `kind` is btree, bitmap, zonemap or bloomfilter, for lists label_list, for parts of texts ngram, for
        vectors IVF_FLAT, IVF_PQ, IVF_SQ, IVF_HNSW_FLAT or IVF_HNSW_SQ (see `nearest`), or for texts INVERTED
        (see `search`).
        `name` is ``<column>_idx`` by default;
        IndexExistsError if there is one of this name, unless `replace` is set. Rows that come later are
        scanned until `optimize_indices`.
        Options: ``page_rows`` of a btree, ``rows_per_zone`` of a zonemap or bloomfilter; of vector indices
        ``metric``, ``num_partitions``, ``num_sub_vectors``, ``num_bits``, ``m``, ``ef_construction``,
        ``sample_rate``, ``max_iters`` and ``trainer`` (own or faiss);
        of INVERTED ``with_position``, which phrases need to be fast,
        ``base_tokenizer``, ``language``, ``max_token_length``, ``lower_case``, ``stem``,
        ``remove_stop_words``, ``custom_stop_words``, ``ascii_folding``, ``min_ngram_length``,
        ``max_ngram_length`` and ``prefix_only``.
        UnsupportedTypeError if the values have no order, or no hash.
        """
        from lance_engine.operations.indices import create_index

        return self._at(
            create_index(
                self.snapshot, column, kind, name=name, replace=replace, progress=progress, **options
            )
        )

    def drop_index(self, name: str) -> Self:
        """Remove an index of any kind; IndexNotFoundError lists the existing ones."""
        from lance_engine.operations.indices import drop_index

        return self._at(drop_index(self.snapshot, name))

    def optimize_indices(self, *, progress: ProgressOption = None) -> Self:
        """Make indices cover the rows that came after them, reading only these; one commit per index."""
        from lance_engine.operations.indices import optimize_indices

        return self._at(optimize_indices(self.snapshot, progress=progress))

    def index_statistics(self, name: str) -> dict[str, Any]:
        """What an index covers and consists of, in numbers; IndexNotFoundError if none exists."""
        from lance_engine.inspection.indices import index_statistics

        return index_statistics(self.snapshot, name)

    def update_config(self, entries: Mapping[str, str | None], *, replace: bool = False) -> Self:
        """Set keys of the table's configuration, or remove those with the value None.

        With `replace` all other keys are removed.
        """
        from lance_engine.operations.metadata import update_metadata

        return self._at(update_metadata(self.snapshot, "config", entries, replace=replace))

    def update_metadata(self, entries: Mapping[str, str | None], *, replace: bool = False) -> Self:
        """As `update_config`, for the metadata of the table."""
        from lance_engine.operations.metadata import update_metadata

        return self._at(update_metadata(self.snapshot, "table", entries, replace=replace))

    def update_schema_metadata(
        self, entries: Mapping[str, str | None], *, column: str | None = None, replace: bool = False
    ) -> Self:
        """As `update_config`, for the metadata of the Arrow schema, or of one of its columns."""
        from lance_engine.operations.metadata import update_metadata

        return self._at(update_metadata(self.snapshot, "schema", entries, replace=replace, column=column))

    @property
    def tags(self) -> Tags:
        """The names of versions."""
        from lance_engine.operations.tags import Tags

        return Tags(self.snapshot)

    @property
    def branches(self) -> Branches:
        """Histories besides the main one."""
        from lance_engine.operations.branches import Branches

        return Branches(self.snapshot)

    def shallow_clone(
        self,
        uri: str,
        version: int | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Start another dataset with a version of this one, by default the one shown, without copying data.

        The clone refers to the files where they are: cleaning up this dataset may break it.
        `storage_options` are those of the clone, by default the ones of this dataset. DatasetExistsError if
        there is a dataset at `uri`.
        """
        from lance_engine.operations.branches import shallow_clone

        return self._at(shallow_clone(self.snapshot, uri, version, storage_options))

    # Computes SQL text that the engine's own filters do not know; None refuses it.
    _compiler: Compiler | None = None

    def _at(self, snapshot: Snapshot) -> Self:
        return type(self)(snapshot)

    def _reader(self, fragment_id: int) -> FragmentReader:
        found = self._readers.get(fragment_id)
        if found is None:
            from lance_engine.scan.fragment import FragmentReader

            reader = FragmentReader(self.snapshot, self.snapshot.fragment(fragment_id))
            found = self._readers.setdefault(fragment_id, reader)
        return found
