"""Names that other libraries use: what they are here, or what to call instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Of `lance_sql`.
PACKAGE = {
    "DataFrame": "lance_sql.open(path).to_pandas()",
    "LanceDataset": "lance_sql.open(path)",
    "SQLContext": "lance_sql.connect()",
    "SessionContext": "lance_sql.connect(engine='datafusion')",
    "attach": "lance_sql.connect(directory)",
    "copy": "lance_sql.write(lance_sql.open(path), other_path)",
    "create_dataset": "lance_sql.write(data, path)",
    "create_table": "lance_sql.write(data, path)",
    "cursor": "lance_sql.connect().cursor()",
    "dataset": "lance_sql.open(path)",
    "execute": "lance_sql.sql(statement)",
    "from_arrow": "lance_sql.write(table, path)",
    "from_df": "lance_sql.write(frame, path)",
    "from_pandas": "lance_sql.write(frame, path)",
    "from_polars": "lance_sql.write(frame, path)",
    "load": "lance_sql.open(path)",
    "load_dataset": "lance_sql.open(path)",
    "open_dataset": "lance_sql.open(path)",
    "open_table": "lance_sql.open(path)",
    "query": "lance_sql.sql(query)",
    "read": "lance_sql.open(path)",
    "read_csv": "lance_sql.sql(\"FROM read_csv('x.csv')\")",
    "read_dataset": "lance_sql.open(path)",
    "read_json": "lance_sql.sql(\"FROM read_json('x.json')\")",
    "read_lance": "lance_sql.open(path)",
    "read_parquet": "lance_sql.sql(\"FROM 'x.parquet'\")",
    "read_sql": "lance_sql.sql(query).to_pandas()",
    "read_sql_query": "lance_sql.sql(query).to_pandas()",
    "read_table": "lance_sql.open(path).to_table()",
    "register": "lance_sql.connect().register(name, data)",
    "run": "lance_sql.sql(statement)",
    "save": "lance_sql.write(data, path)",
    "scan": "lance_sql.open(path).scan()",
    "scan_dataset": "lance_sql.open(path).scan()",
    "scan_lance": "lance_sql.scan_polars(path)",
    "select": "lance_sql.sql(query)",
    "sink_lance": "lance_sql.write(frame, path)",
    "table": "lance_sql.open(path)",
    "to_arrow": "lance_sql.open(path).to_table()",
    "to_pandas": "lance_sql.open(path).to_pandas()",
    "to_polars": "lance_sql.open(path).to_polars()",
    "write_dataset": "lance_sql.write(data, path)",
    "write_lance": "lance_sql.write(data, path)",
    "write_table": "lance_sql.write(data, path)",
    # Modules that are imported by their users.
    "daft": "'import lance_sql.daft' first",
    "dask": "'import lance_sql.dask' first",
    "huggingface": "'import lance_sql.huggingface' first",
    "polars": "'import lance_sql.polars' first, or lance_sql.scan_polars(path)",
    "ray": "'import lance_sql.ray' first",
    "torch": "'import lance_sql.torch' first",
}

#: Of `lance_sql.spark`.
SPARK = {
    "load": "spark.read.format('lance').load(path)",
    "merge_into": "lance_sql.spark.merge",
    "open": "spark.read.format('lance').load(path)",
    "optimize": "lance_sql.spark.compact",
    "query": "lance_sql.spark.sql",
    "read": "spark.read.format('lance').load(path)",
    "save": "lance_sql.spark.write(frame, path)",
    "session": "lance_sql.spark.local_session()",
    "stream": "spark.readStream.format('lance').load(path)",
    "upsert": "lance_sql.spark.merge",
    "vacuum": "lance-sql cleanup path",
}

#: Of a dataset.
DATASET = {
    "add": "lance_sql.write(data, ds.uri, mode='append')",
    "alter_columns": "ds.alter_column(...) or ds.rename_column(old, new)",
    "append": "lance_sql.write(data, ds.uri, mode='append')",
    "arrow": "ds.to_table()",
    "checkout": "lance_sql.open(ds.uri, version)",
    "checkout_version": "lance_sql.open(ds.uri, version)",
    "cleanup_old_versions": "ds.cleanup(older_than)",
    "collect": "ds.to_table(), ds.to_pandas() or ds.to_polars()",
    "column_names": "ds.columns",
    "compact_files": "ds.compact()",
    "count": "ds.count_rows(filter)",
    "create_scalar_index": "ds.create_index(column, 'btree')",
    "lance_schema": "ds.schema",
    "stats": "ds.health() or ds.inspect.columns()",
    "statistics": "ds.health() or ds.inspect.columns()",
    "validate": "ds.verify()",
    "create_fts_index": "ds.create_index(column, 'inverted')",
    "describe": "lance_sql.sql(\"SUMMARIZE 'path.lance'\")",
    "df": "ds.to_pandas()",
    "drop": "ds.drop_columns(columns)",
    "dtypes": "ds.schema.types",
    "execute": "lance_sql.sql(statement)",
    "filter": "ds.scan(filter='price > 10')",
    "get_fragments": "ds.inspect.fragments(), or ds.to_arrow_dataset().get_fragments()",
    "fetchall": "list(ds) or ds.to_table().to_pylist()",
    "group_by": "lance_sql.sql('... GROUP BY ...')",
    "groupby": "lance_sql.sql('... GROUP BY ...')",
    "history": "ds.inspect.versions()",
    "iloc": "ds[5], ds[10:20] or ds.take_positions(positions)",
    "info": "print(ds) or ds.inspect",
    "insert": "lance_sql.write(data, ds.uri, mode='append')",
    "join": "lance_sql.sql('... FROM ds JOIN other ...')",
    "join_asof": "lance_sql.sql('... FROM ds ASOF JOIN other ...')",
    "latest_version": "lance_sql.open(ds.uri).version",
    "lazy": "lance_sql.scan_polars(ds.uri)",
    "limit": "ds.head(rows) or ds.scan(limit=rows)",
    "list_indices": "ds.inspect.indices()",
    "describe_indices": "ds.inspect.indices()",
    "loc": "ds.scan(columns, filter)",
    "merge_insert": "ds.merge(data, key)",
    "metadata": "ds.schema.metadata",
    "names": "ds.columns",
    "ncols": "len(ds.columns)",
    "nrows": "len(ds)",
    "num_columns": "len(ds.columns)",
    "num_rows": "len(ds)",
    "optimize": "ds.compact() and ds.optimize_indices()",
    "path": "ds.uri",
    "pl": "ds.to_polars()",
    "query": "ds.scan(columns, filter) or lance_sql.sql(query)",
    "read": "ds.to_table()",
    "partition_expression": "ds.to_arrow_dataset().partition_expression",
    "replace_schema": "ds.to_table().cast(schema)",
    "sample": "lance_sql.sql(\"FROM 'path.lance' USING SAMPLE 10 ROWS\")",
    "select": "ds.scan(columns)",
    "show": "ds.head(10).to_pandas() or lance_sql.sql(\"FROM 'path.lance'\").show()",
    "sort": "lance_sql.sql('... ORDER BY ...')",
    "sort_by": "lance_sql.sql('... ORDER BY ...')",
    "sql": "lance_sql.sql('... FROM ds'), with ds as a variable",
    "tail": "ds[-5:]",
    "to_arrow": "ds.to_table()",
    "to_df": "ds.to_pandas()",
    "to_pylist": "ds.to_table().to_pylist()",
    "upsert": "ds.merge(data, key).when_matched_update_all().when_not_matched_insert_all().execute()",
    "values": "ds.to_pandas()['column'].to_numpy()",
    "versions": "ds.inspect.versions()",
    "where": "ds.scan(filter='price > 10')",
    "with_columns": "ds.add_columns({'name': 'expression'})",
    "write": "lance_sql.write(data, ds.uri, mode='append')",
    "write_parquet": "lance_sql.sql(\"COPY (FROM 'path.lance') TO 'x.parquet'\")",
    "to_parquet": "lance_sql.sql(\"COPY (FROM 'path.lance') TO 'x.parquet'\")",
}

#: Options of a dataset's `to_table`, `to_batches` and `scanner`.
SCAN_OPTIONS = {
    "fast_search": "ds.nearest(column, vector, k)",
    "full_text_query": "ds.search(words, column)",
    "limit": "ds.scan(columns, filter, limit=10)",
    "nearest": "ds.nearest(column, vector, k)",
    "offset": "ds.scan(columns, filter, limit=10, offset=20)",
    "order_by": "lance_sql.sql('... ORDER BY ...')",
    "with_row_address": "the column '_rowaddr'",
    "with_row_id": "the column '_rowid'",
}

#: Of a connection.
CONNECTION = {
    "arrow": "con.sql(query).arrow()",
    "df": "con.sql(query).df()",
    "executemany": "con.sql('INSERT INTO t SELECT * FROM rows'), with rows as a variable",
    "fetchall": "con.sql(query).fetchall()",
    "fetchdf": "con.sql(query).df()",
    "fetchone": "con.sql(query).fetchone()",
    "from_arrow": "con.register(name, table)",
    "from_df": "con.register(name, frame)",
    "from_pandas": "con.register(name, frame)",
    "load_extension": "con.sql('LOAD extension')",
    "install_extension": "con.sql('INSTALL extension')",
    "create_index": "con.sql('CREATE INDEX ...')",
    "create_table": "con.sql('CREATE TABLE name AS FROM data'), with data as a variable",
    "drop_table": "con.sql('DROP TABLE name')",
    "open": "lance_sql.open(path)",
    "open_table": "lance_sql.open('directory/name.lance')",
    "query": "con.sql",
    "read_csv": "con.sql(\"FROM read_csv('x.csv')\")",
    "read_parquet": "con.sql(\"FROM 'x.parquet'\")",
    "read_table": "con.table",
    "show_tables": "con.tables()",
    "view": "con.table",
    "write": "lance_sql.write(data, path) or con.sql('CREATE TABLE ... AS ...')",
}

#: Of the result of a query.
RESULT = {
    "aggregate": "lance_sql.sql('SELECT sum(x) FROM ...')",
    "collect": "result.arrow()",
    "description": "result.columns and result.types",
    "dtypes": "result.types",
    "fetch_arrow_table": "result.arrow()",
    "fetch_df": "result.df()",
    "fetch_record_batch": "result.reader()",
    "filter": "lance_sql.sql('... WHERE ...')",
    "head": "result.fetchmany(5), or LIMIT 5 in the query",
    "limit": "LIMIT in the query",
    "num_rows": "result.arrow().num_rows",
    "order": "lance_sql.sql('... ORDER BY ...')",
    "print": "result.show()",
    "project": "lance_sql.sql('SELECT ... FROM ...')",
    "shape": "result.arrow().shape",
    "to_arrow": "result.arrow()",
    "to_arrow_table": "result.arrow()",
    "to_csv": "result.write_csv",
    "to_df": "result.df()",
    "to_dicts": "result.arrow().to_pylist()",
    "to_parquet": "result.write_parquet",
    "to_pylist": "result.arrow().to_pylist()",
    "to_table": "result.arrow()",
}


#: what is our own member by another name
_SAME = re.compile(r"(?:ds|con|result)\.(\w+)(?:\(\))?")


def other_attribute(
    owner: object, shown: str, name: str, elsewhere: Mapping[str, str], known: Iterable[str]
) -> Any:
    """What an attribute of another library is here; AttributeError if no single member of `owner` is that."""
    same = _SAME.fullmatch(elsewhere.get(name, ""))
    if same is None:
        raise no_attribute(owner, shown, name, elsewhere, known)
    return getattr(owner, same.group(1))


def no_attribute(
    owner: object, shown: str, name: str, elsewhere: Mapping[str, str], known: Iterable[str]
) -> AttributeError:
    """The error for an attribute that `owner` does not have. It says what to use instead, if known."""
    instead = elsewhere.get(name)
    if instead is None and not name.startswith("_"):
        from lance_engine.base import nearest_name

        near = nearest_name(name, [candidate for candidate in known if not candidate.startswith("_")], 0.75)
        hint = f". Did you mean {near!r}?" if near else ""
    else:
        hint = f". Use {instead}" if instead else ""
    return AttributeError(f"{shown} has no attribute {name!r}{hint}", name=name, obj=owner)
