"""The public interface of the engine: one version of a dataset, and its operations.

Each operation is imported when it is called, so that programs that only inspect a dataset start without the
code for scanning, writing and maintenance. The file is long because it contains all public signatures and
their documentation.
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
from lance_engine.public import Public
from lance_engine.scan.fragment_readers import FragmentReaders
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
    from lance_engine.operations.merge import MergeBuilder
    from lance_engine.operations.tags import Tags
    from lance_engine.operations.values import Compiler, Value
    from lance_engine.progress import ProgressOption
    from lance_engine.scan.code_columns import CodeColumn
    from lance_engine.scan.extremes import Extremes, Known
    from lance_engine.scan.plan import FilterPlan
    from lance_engine.scan.scanner import Scanner
    from lance_engine.scan.splits import ScanSplit
    from lance_engine.schema_tree import Field
    from lance_engine.search.text.query import TextQuery
    from lance_engine.table.cleanup import CleanupReport

__all__ = ["DatasetVersion", "known_extremes"]


class DatasetVersion(Public):
    """One version of a dataset. Immutable and thread-safe; sharing it also shares cached metadata.

    Operations that change the dataset do not modify this object: they return the dataset at its new version.
    """

    _ours = frozenset({"snapshot"})

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._schema: pa.Schema | None = None
        self._reader = FragmentReaders(snapshot)

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
        """Open the dataset at `uri`: its latest version, or the one that another argument selects.

        `tag` selects a tagged version, and `as_of` the version that was current at that time (a naive time is
        local time). `version` and `as_of` apply to `branch`, by default the main branch. DatasetNotFoundError
        if the dataset does not exist, VersionNotFoundError if the version does not exist. `allow_external`
        controls which locations outside of the dataset it may read: ``"none"``, ``"same-store"`` (the
        default: base paths on the same disk or in the same bucket), ``"all"``, or a list of allowed
        locations; a dictionary also gives storage options for each.
        """
        options = with_external_access(storage_options, allow_external)
        return cls(select_snapshot(uri, version, tag, as_of, options, branch))

    @property
    def uri(self) -> str:
        """The location that was opened."""
        return self.snapshot.uri

    @property
    def version(self) -> int:
        """The number of this version."""
        return self.snapshot.version

    @property
    def branch(self) -> str | None:
        """The branch of this version, None for the main branch."""
        return self.snapshot.manifest.branch

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the data columns.

        Columns have the extension types that scans return: those registered by pyarrow or another package,
        such as UUID, JSON and tensors. Blob columns of file version 2.2 are shown as `lance.blob.v2`; scans
        return their bytes, see `scan().schema`.
        """
        if self._schema is None:
            fields = self.snapshot.schema.fields
            self._schema = with_blob_types(with_extensions(self.storage_schema), fields)
        return self._schema

    @property
    def storage_schema(self) -> pa.Schema:
        """The schema of scans with storage types; names of extension types are in the metadata."""
        return self.snapshot.schema.to_arrow()

    @property
    def primary_key(self) -> list[str]:
        """The columns of the primary key, in its order; empty without one."""
        from lance_engine.table.constraints import constraints_of

        keys = constraints_of(self.snapshot.schema).keys
        return next((list(key.columns) for key in keys if key.is_primary), [])

    @property
    def inspect(self) -> Inspector:
        """The contents of this version as Arrow tables: ``inspect.fragments()`` and so on."""
        from lance_engine.inspection.inspector import Inspector

        return Inspector(self.snapshot)

    def verify(self, *, values: bool = False) -> pa.Table:
        """The problems of this version, one per row: missing, damaged or inconsistent files.

        Reads only metadata; `values` also decodes every value.
        """
        return self.inspect.verify(values=values)

    def health(self) -> pa.Table:
        """What slows this version down or wastes space: one row per metric, with a command to fix it."""
        return self.inspect.health()

    def count_rows(self, filter: str | pc.Expression | Node | None = None) -> int:
        """The number of rows that pass `filter`; without a filter, it comes from metadata."""
        if filter is None:
            return self.snapshot.num_rows
        return self.scan(columns=[], filter=filter).count()

    def scan(
        self,
        columns: Sequence[str | Field | CodeColumn] | None = None,
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
        """Create a scan; data is only read when a method of the result returns rows.

        `columns` are names in the requested order, including ``_rowid`` and ``_rowaddr``; None means all data
        columns, and an empty list returns batches with only a row count. A pyarrow field in `columns` selects
        a top-level field with only some of its children, and a `CodeColumn` the dictionary codes of
        a column. `limit` is the most rows to return, after leaving out the first `offset` of those that
        pass. `filter` is SQL text, a pyarrow expression, or a
        filter tree (or its plan), with SQL semantics. `batch_size` limits the rows of a batch, and
        `batch_bytes` its bytes, unless a single row exceeds them. `splits` restricts the scan to some ranges
        of physical rows, as returned by `splits()`. Rows that cannot match the filter according to zone maps
        and indices are not read, unless `zone_maps` or `indices` is False. String columns in `dictionaries`
        are returned as dictionary arrays, whose dictionaries differ between batches and may repeat values;
        this is fast for the columns that `dictionary_columns()` returns. At most about `read_ahead` bytes of
        batches are decoded before they are requested, by default a quarter of the memory limit (see
        `lance_engine.cache`). For remote files, it limits the data that is fetched ahead and decoded
        together; the default is half of the memory limit.
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

        `row_ids` is a list, a numpy array or an Arrow array of integers, in one dimension. Scans return them
        if asked: ``scan(columns=["_rowid", ...])``. They are not positions: see `take_positions`, which reads
        what ``take`` of pyarrow and pylance reads. If an id does not exist or its row was deleted,
        RowNotFoundError lists all such ids; ``missing="skip"`` leaves them out. Requests, bytes and times are
        added to `metrics`, if given. Thread-safe.
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

        `positions` is a list, a numpy array or an Arrow array of integers, in one dimension. Position 0 is
        the first row that a scan without a filter returns; deleted rows are not counted, so the position of a
        row changes when rows before it are deleted. A position outside of the dataset is a
        PositionOutOfRangeError, which is an IndexError. Requests, bytes and times are added to `metrics`.
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
        estimates: bool = False,
    ) -> pa.Table:
        """The `k` rows whose vectors in `column` are nearest to `query`, nearest first, with their distances.

        `query` is a vector as a list, a numpy array or an Arrow array, or several vectors as rows: the result
        then starts with the column ``query_index``, and has up to `k` rows for each. `metric` is ``l2``
        (squared), ``cosine`` (1 minus the cosine), ``dot`` (1 minus the inner product), or ``hamming`` for
        bytes; the default is the metric of the index on the column, used or not, and without an index
        ``hamming`` for uint8 and ``l2`` for other types. Only rows that pass `filter` (see `scan`), and with
        a distance from `lower` up to, but not, `upper`, are returned. `columns` selects the columns of the
        result, all by default; ``_distance`` follows them unless it is included, then ``_rowid`` with
        `with_row_id`. Rows with equal distances are ordered by row id; rows without a vector, or whose
        distance is undefined, are left out.

        In a column of lists of vectors, the distance of a row is the sum, over the vectors of the query, of
        the distance to the nearest vector in the list.

        A vector index on the column with this metric makes this faster, unless `use_index` is False: it may
        miss rows, but the distances of those that it finds are exact. `nprobes` is the number of index
        partitions to search, by default from `minimum_nprobes` up to `maximum_nprobes`, depending on their
        distances; more are searched while fewer than `k` rows are found. `refine_factor` times `k` rows are
        found by their codes, and compared by their vectors; the default depends on the index. With
        `estimates`, the distances are those that the codes of IVF_PQ, IVF_SQ and IVF_RQ give, which is
        faster; they are exact if the index does not cover all rows, or a filter leaves few. `ef` is the
        number of candidates in the search of an HNSW graph. Rows that the index does not cover are searched
        exactly, unless `fast_search` leaves them out.
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
                use_index,
                fast_search,
                nprobes,
                minimum_nprobes,
                maximum_nprobes,
                refine_factor,
                ef,
                estimates,
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

        All matching rows are returned if `k` is None. `query` is a text, of which rows contain at least one
        word, or a query from `lance_sql.full_text`. `column` is the column to search, a string column or one
        of lists of strings, or several: then the highest score counts. By default, these are all columns with
        an inverted index, or if there is no such index, the string columns in `columns`. Only rows that pass
        `filter` (see `scan`) are returned. `columns` selects the columns of the result, all by default;
        ``_score`` follows them unless it is included, then ``_rowid`` with `with_row_id`. Rows with equal
        scores are ordered by row id.

        An inverted index on the column makes this fast, unless `use_index` is False; rows that it does not
        cover are read and scored as well, unless `fast_search` leaves them out. Texts are tokenized with the
        options of the index, or without an index with the options in `analysis`, which are those of
        `create_index`; by default words are not changed.
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
        """The `k` best rows by vector and full-text search: combines `nearest` and `search`.

        `vector` is one vector, compared with those in `vector_column`, and `query` the words or the query
        that `search` takes, for the texts in `column` (by default all that have a text index). Both searches
        find `oversample` times `k` rows. By default, rows are scored by their ranks (reciprocal rank fusion).
        With `alpha`, distances and scores are scaled to the range from 0 to 1 and added, with weight `alpha`
        for vectors and ``1 - alpha`` for texts. The result has the columns ``_distance`` and ``_score``, null
        if a search did not find the row, and ``_hybrid_score``, in descending order. With `use_index` False,
        vectors are compared exactly; words are looked up in their index all the same. The options `metric`,
        `nprobes`, `refine_factor`, `fast_search` and `with_row_id` are those of `nearest`.
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
        """The min and max of a column, null if all values are null; NaN is the largest number.

        They come from zone maps if these are exact: only zones with deleted rows, long strings or no zone map
        are read, and only if they can change the result. UnsupportedTypeError if the type has no order.
        """
        from lance_engine.scan.extremes import min_max

        return min_max(self.snapshot, self._reader, column)

    def dictionary_columns(
        self, max_entries: int | None = None, *, columns: Sequence[str] | None = None
    ) -> list[str]:
        """String columns that are stored as dictionaries, according to the first fragment.

        With `max_entries`, only those where no page has more entries than this in its dictionary. They are
        among `columns`, which may be paths to fields of structs; by default among all at the top level.
        """
        return self._reader.dictionary_columns(max_entries, columns)

    def splits(self, count: int) -> list[ScanSplit]:
        """Split the dataset into up to about `count` ranges of rows of similar size."""
        from lance_engine.scan.splits import split_rows

        return split_rows(self.snapshot.fragments, count)

    # Operations. Each commits one new version, and returns the dataset at that version; this object does not
    # change. Long operations report `progress` events (see `lance_engine.progress`); an exception in the
    # callback cancels them. If another writer has changed the same rows since, the operation is repeated on
    # the latest version; IncompatibleChangeError means that it cannot be applied there.

    def delete(
        self,
        where: str | pc.Expression | Node | None = None,
        *,
        row_ids: npt.ArrayLike | None = None,
        progress: ProgressOption = None,
    ) -> Self:
        """Delete the rows that pass `where`, or those with these `row_ids`, as `take` has them.

        InvalidArgumentError for both or neither (`truncate` deletes all rows), RowNotFoundError for an id
        that does not exist.
        """
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
        """Update columns of the rows that pass `where`, or of all rows.

        `values` maps a column to SQL text over the old values of the row, or to a function from the batch of
        these rows to an array.
        """
        from lance_engine.operations.update import update

        return self._at(update(self.snapshot, values, where, compiler=self._compiler, progress=progress))

    def merge(self, source: Any, on: str | Sequence[str]) -> MergeBuilder[Self]:
        """Update, insert and delete by key: ``merge(source, on="id").when_matched_update_all().execute()``.

        `source` is anything that `write` accepts; the methods of the result define the actions.
        """
        from lance_engine.operations.merge import MergeBuilder

        return MergeBuilder(self.snapshot, self._source(source), on, self._at, self._compiler)

    def replace_columns(self, values: Mapping[str, Value], *, progress: ProgressOption = None) -> Self:
        """Update whole columns without moving rows: only these columns are written.

        `values` are those of `update`; row ids and addresses do not change. Rows that are appended
        concurrently keep their values.
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
        """Add nullable columns; existing columns are not rewritten.

        `columns` maps new names to SQL text over the other columns, to functions from a batch to an array, or
        to Arrow types for columns of nulls. It can also be an Arrow field or schema for columns of nulls, or
        a function from a batch to a batch with all new columns. `read` lists the columns that are passed to
        functions, all by default.
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
        """Rename a column, or a field of a struct, such as ``a.b``, to `name`: ``b`` becomes `name`.

        No data is rewritten. SchemaMismatchError if there is a column of this name.
        """
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
        """Cast a column to the Arrow type `type`, which rewrites it, or change whether it is `nullable`.

        What is None stays as it is.
        InvalidFilterError if a value cannot be cast, SchemaMismatchError if there are nulls.
        """
        from lance_engine.operations.alter_columns import alter_column

        return self._at(alter_column(self.snapshot, column, type=type, nullable=nullable, progress=progress))

    def add_key(self, columns: Sequence[str], *, primary: bool = False, enforced: bool = True) -> Self:
        """Declare that the values of some columns occur once, as UNIQUE or with `primary` as PRIMARY KEY.

        `ConstraintError`, with some of the keys, if that is not so. From then on, every writer of this
        library checks it when it commits. The columns of a primary key become NOT NULL, and other tools see
        it in the metadata of the format; without `enforced` it is only that.
        """
        from lance_engine.operations.constraints import add_key

        return self._at(add_key(self.snapshot, columns, is_primary=primary, is_enforced=enforced))

    def add_check(self, condition: str, name: str | None = None) -> Self:
        """Declare that `condition`, SQL text as in filters, is false for no row, now and after any commit.

        `name` is that of the constraint; the default is made of the names of its columns.
        """
        from lance_engine.operations.constraints import add_check

        return self._at(add_check(self.snapshot, condition, name))

    def drop_constraint(self, name: str) -> Self:
        """Remove the key or CHECK condition called `name`; ``ds.inspect.constraints()`` shows the names."""
        from lance_engine.operations.constraints import drop_constraint

        return self._at(drop_constraint(self.snapshot, name))

    def restore(self, version: int | None = None) -> Self:
        """Restore an earlier version, by default this one, as a new version."""
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
        """Merge neighbouring fragments of fewer than `target_rows` rows and `target_bytes`.

        Fragments whose share of deleted rows exceeds `deleted_share` are rewritten without these rows. Stable
        row ids are kept; row ids that are addresses change. If there is nothing to do, the result has the
        same version.
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
        retain_versions: int = 1,
        dry_run: bool = False,
        delete_unverified: bool = False,
        progress: ProgressOption = None,
    ) -> CleanupReport:
        """Remove versions committed longer ago than `older_than`, and the files that only they need.

        `older_than` is a duration; the newest `retain_versions` versions and tagged versions are kept. With
        `dry_run`, nothing is removed: the result reports what would be. Files that no version refers to are
        removed when they are seven days old, or at once with `delete_unverified`; no writer may be active
        then.
        """
        from lance_engine.table.cleanup import cleanup

        return cleanup(
            self.snapshot,
            older_than,
            retain_versions=retain_versions,
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
        train: bool = True,
        progress: ProgressOption = None,
        **options: Any,
    ) -> Self:
        """Build an index on a column, or on a field of a struct, such as ``a.b``.

        `kind` is btree, bitmap, zonemap or bloomfilter; label_list for lists, ngram for parts of strings;
        IVF_FLAT, IVF_PQ, IVF_SQ, IVF_HNSW_FLAT or IVF_HNSW_SQ for vectors (see `nearest`); or INVERTED for
        texts (see `search`). `name` is ``<column>_idx`` by default; IndexExistsError if it exists, unless
        `replace` is set. Rows added later are scanned until `optimize_indices`; without `train`, so are all
        rows (not possible for vectors and texts).
        Options: ``page_rows`` for btree; ``rows_per_zone`` for zonemap and bloomfilter; for vector indices
        ``metric``, ``num_partitions``, ``num_sub_vectors``, ``num_bits``, ``m``, ``ef_construction``,
        ``sample_rate``, ``max_iters`` and ``trainer`` (own or faiss); for INVERTED ``with_position``, which
        speeds up phrase searches,
        ``base_tokenizer``, ``language``, ``max_token_length``, ``lower_case``, ``stem``,
        ``remove_stop_words``, ``custom_stop_words``, ``ascii_folding``, ``min_ngram_length``,
        ``max_ngram_length`` and ``prefix_only``.
        UnsupportedTypeError if the index does not support the type.
        """
        from lance_engine.operations.indices import create_index

        return self._at(
            create_index(
                self.snapshot,
                column,
                kind,
                name=name,
                replace=replace,
                train=train,
                progress=progress,
                **options,
            )
        )

    def drop_index(self, name: str) -> Self:
        """Remove the index `name`, of any kind; IndexNotFoundError lists the existing ones."""
        from lance_engine.operations.indices import drop_index

        return self._at(drop_index(self.snapshot, name))

    def optimize_indices(
        self,
        names: Sequence[str] | None = None,
        *,
        retrain: bool = False,
        progress: ProgressOption = None,
    ) -> Self:
        """Update indices to cover rows added later, reading only these rows; one commit per index.

        `names` selects indices, by default all; IndexNotFoundError if one does not exist. With `retrain`,
        they are built again from all rows, with the same options.
        """
        from lance_engine.operations.indices import optimize_indices

        return self._at(optimize_indices(self.snapshot, names, retrain=retrain, progress=progress))

    def index_statistics(self, name: str) -> dict[str, Any]:
        """The coverage and structure of the index `name`, in numbers; IndexNotFoundError if unknown."""
        from lance_engine.inspection.indices import index_statistics

        return index_statistics(self.snapshot, name)

    def update_config(self, entries: Mapping[str, str | None], *, replace: bool = False) -> Self:
        """Set keys of the table's configuration to the texts in `entries`; None removes a key.

        With `replace`, all other keys are removed.
        """
        from lance_engine.operations.metadata import update_metadata

        return self._at(update_metadata(self.snapshot, "config", entries, replace=replace))

    def update_metadata(self, entries: Mapping[str, str | None], *, replace: bool = False) -> Self:
        """Like `update_config`, with the same `entries` and `replace`, for the metadata of the table."""
        from lance_engine.operations.metadata import update_metadata

        return self._at(update_metadata(self.snapshot, "table", entries, replace=replace))

    def update_schema_metadata(
        self, entries: Mapping[str, str | None], *, column: str | None = None, replace: bool = False
    ) -> Self:
        """Like `update_config`, with the same `entries` and `replace`, for the metadata of the Arrow schema.

        With `column`, for the metadata of this column or field.
        """
        from lance_engine.operations.metadata import update_metadata

        return self._at(update_metadata(self.snapshot, "schema", entries, replace=replace, column=column))

    @property
    def tags(self) -> Tags:
        """Named versions."""
        from lance_engine.operations.tags import Tags

        return Tags(self.snapshot)

    @property
    def branches(self) -> Branches:
        """Branches."""
        from lance_engine.operations.branches import Branches

        return Branches(self.snapshot)

    def shallow_clone(
        self,
        uri: str,
        version: int | None = None,
        *,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Self:
        """Create another dataset from a version of this one, by default this version, without copying data.

        The clone refers to the files of this dataset: cleaning up this dataset may break it.
        `storage_options` are those of the clone, by default those of this dataset. DatasetExistsError if a
        dataset exists at `uri`.
        """
        from lance_engine.operations.branches import shallow_clone

        return self._at(shallow_clone(self.snapshot, uri, version, storage_options))

    # Evaluates SQL text that the engine's own filters do not support; None if it cannot.
    _compiler: Compiler | None = None

    @staticmethod
    def _source(data: Any) -> Any:
        """Data to merge, in a form that the engine accepts."""
        return data

    def _at(self, snapshot: Snapshot) -> Self:
        return type(self)(snapshot)


def known_extremes(dataset: DatasetVersion, column: str) -> Known | None:
    """The min, max and number of nulls of a column from zone maps; None if rows have to be read."""
    from lance_engine.scan.extremes import known

    return known(dataset.snapshot, dataset._reader, column)
