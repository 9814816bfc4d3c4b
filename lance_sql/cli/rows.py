"""``lance-sql head``, ``take``, ``nearest`` and ``search``: some rows of a dataset."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from lance_sql.cli.failures import reports_errors
from lance_sql.cli.options import dataset_options, json_option, open_dataset
from lance_sql.display.formats import BINARY, FORMATS

if TYPE_CHECKING:
    import pyarrow as pa
    from lance_engine.dataset import DatasetVersion

_columns_option = click.option(
    "--columns", "-c", metavar="A,B", help="Columns to show; may include _rowid. Default: all."
)
_format_option = click.option("--format", type=click.Choice(list(FORMATS)), default="table")


@click.command("head")
@dataset_options
@click.option(
    "-n",
    "--limit",
    "count",
    type=click.IntRange(min=0),
    default=10,
    help="Number of rows to show. Default: 10.",
)
@click.option("--where", help='SQL filter, such as "price > 10".')
@_columns_option
@_format_option
@json_option
@reports_errors
def head_command(
    path: str,
    count: int,
    where: str | None,
    columns: str | None,
    format: str,
    as_json: bool,
    **which: Any,
) -> None:
    """Show the first rows of a dataset.

    \b
    lance-sql head sales.lance -n 5 --columns day,price --where "price > 10"
    """
    dataset = open_dataset(path, **which)
    _show(dataset.scan(_names(columns), where, limit=count).to_table(), format, as_json)


@click.command("take")
@dataset_options
@click.argument("row_ids", nargs=-1, required=True, type=click.IntRange(min=0), metavar="ROW_ID...")
@_columns_option
@_format_option
@click.option("--skip-missing", is_flag=True, help="Skip row ids that do not exist.")
@json_option
@reports_errors
def take_command(
    path: str,
    row_ids: tuple[int, ...],
    columns: str | None,
    format: str,
    skip_missing: bool,
    as_json: bool,
    **which: Any,
) -> None:
    """Fetch rows by row id, the values of the column _rowid, in the given order.

    Row ids are not positions:
    lance-sql query "SELECT _rowid, * FROM 'sales.lance'" shows them.

    \b
    lance-sql take sales.lance 17 4 17 --columns day,price
    """
    dataset = open_dataset(path, **which)
    missing: Any = "skip" if skip_missing else "error"
    _show(dataset.take(list(row_ids), _names(columns), missing=missing), format, as_json)


@click.command("nearest")
@dataset_options
@click.argument("column")
@click.argument("vector", metavar="VECTOR")
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=10, help="Number of rows to show. Default: 10."
)
@click.option("--where", help='SQL filter, such as "price > 10".')
@click.option(
    "--metric",
    type=click.Choice(["l2", "cosine", "dot", "hamming"]),
    help="Distance metric. Default: that of the index, or l2.",
)
@click.option("--exact", is_flag=True, help="Compare all vectors, without an index.")
@_columns_option
@_format_option
@json_option
@reports_errors
def nearest_command(
    path: str,
    column: str,
    vector: str,
    count: int,
    where: str | None,
    metric: str | None,
    exact: bool,
    columns: str | None,
    format: str,
    as_json: bool,
    **which: Any,
) -> None:
    """Show the rows whose vectors are nearest to VECTOR: a JSON list, or row:ID for the vector of a row.

    \b
    lance-sql nearest items.lance embedding "[0.1, 0.7, 0.2]" -k 3 --columns id,title
    lance-sql nearest items.lance embedding row:17
    """
    dataset = open_dataset(path, **which)
    nearest = dataset.nearest(
        column,
        _vector(dataset, column, vector),
        count,
        metric,
        filter=where,
        columns=_names(columns),
        use_index=not exact,
    )
    _show(nearest, format, as_json)


@click.command("search")
@dataset_options
@click.argument("words")
@click.option("--column", help="Column to search. Default: all with an inverted index.")
@click.option(
    "-k", "count", type=click.IntRange(min=1), default=10, help="Number of rows to show. Default: 10."
)
@click.option("--where", help='SQL filter, such as "price > 10".')
@click.option("--all", "every", is_flag=True, help="Require all words instead of any.")
@click.option("--phrase", is_flag=True, help="Require the words in this order.")
@click.option("--exact", is_flag=True, help="Read all texts and ignore indices.")
@_columns_option
@_format_option
@json_option
@reports_errors
def search_command(
    path: str,
    words: str,
    column: str | None,
    count: int,
    where: str | None,
    every: bool,
    phrase: bool,
    exact: bool,
    columns: str | None,
    format: str,
    as_json: bool,
    **which: Any,
) -> None:
    """Show the rows whose texts match WORDS best, with their scores.

    \b
    lance-sql search notes.lance "quick fox" --column text -k 3
    lance-sql search notes.lance "quick brown" --column text --phrase
    """
    from lance_sql.full_text import Match, Phrase

    query = Phrase(words) if phrase else Match(words, operator="and" if every else "or")
    hits = open_dataset(path, **which).search(
        query, column, count, filter=where, columns=_names(columns), use_index=not exact
    )
    _show(hits, format, as_json)


def _vector(dataset: DatasetVersion, column: str, text: str) -> Any:
    import json

    kind, _, number = text.partition(":")
    if kind == "row" and number.isdecimal():
        return dataset.take([int(number)], [column])[column][0].as_py()
    try:
        vector = json.loads(text)
    except ValueError:
        vector = None
    if not isinstance(vector, list) or not vector:
        raise click.BadParameter("Pass a vector as [0.1, 0.2] or row:17", param_hint="VECTOR")
    return vector


def _names(columns: str | None) -> list[str] | None:
    return None if columns is None else [name.strip() for name in columns.split(",")]


def _show(table: pa.Table, format: str, as_json: bool) -> None:
    from lance_sql.display.output import TableRows, opened, write_rows

    chosen = "json" if as_json else format
    with opened(None, binary=chosen in BINARY) as target:
        write_rows(TableRows(table), chosen, target, max_rows=sys.maxsize)
